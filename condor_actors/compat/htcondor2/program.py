"""``param``, and what a program says of itself."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, MutableMapping
from typing import Any

from condor_actors.api import settings
from condor_actors.compat.errors import as_theirs
from condor_actors.compat.htcondor2.enums import LogLevel, SubsystemType

_outputs: dict[str, str] = {}
LOGS = {"MASTER_LOG": "MasterLog", "COLLECTOR_LOG": "CollectorLog", "NEGOTIATOR_LOG": "NegotiatorLog",
        "SCHEDD_LOG": "ScheddLog", "STARTD_LOG": "StartdLog"}
"""Where daemons log unless their setting says otherwise."""


class Param(MutableMapping[str, Any]):
    """The configuration as a mapping; what is set holds for this program, until `reload_config`."""

    def __getitem__(self, key: str) -> Any:
        if not isinstance(key, str):
            raise TypeError("key must be a string")
        with as_theirs():
            try:
                return settings.param[key]
            except KeyError:
                if key.upper() not in LOGS:
                    raise
                return f"{settings.param['LOG']}/{LOGS[key.upper()]}"

    def __setitem__(self, key: str, value: str) -> None:
        if not isinstance(key, str):
            raise TypeError("key must be a string")
        if not isinstance(value, str):
            raise TypeError("value must be a string")
        settings.param[key] = value

    def __delitem__(self, key: str) -> None:
        if not isinstance(key, str):
            raise TypeError("key must be a string")
        del settings.param[key]

    def __iter__(self) -> Iterator[str]:
        with as_theirs():
            return iter(list(settings.param))

    def __len__(self) -> int:
        with as_theirs():
            return len(settings.param)


param = Param()


def set_subsystem(name: str, daemon_type: SubsystemType = SubsystemType.Auto) -> None:
    """Whose settings apply (``SCHEDD.NAME``)."""
    settings.set_subsystem(name)


def reload_config(root_config_file: str | None = None) -> None:
    """Read the configuration anew, from another file if one is named."""
    if root_config_file is not None:
        os.environ["CONDOR_CONFIG"] = root_config_file
    settings.reload_config()


def reload_config_usermaps() -> None:
    """Read the maps of ``userMap()`` anew."""
    settings.load_user_maps()


def load_a_config_usermap_file(name: str, filepath: str) -> None:
    """Have ``userMap()`` know a file."""
    with as_theirs():
        settings.load_user_maps({name: filepath})


def enable_debug(flags: str | None = None) -> None:
    """Print what `log` is given on standard error."""
    _outputs["stderr"] = ""


def disable_debug() -> None:
    """No longer print what `log` is given."""
    _outputs.clear()


def enable_log() -> None:
    """Write what `log` is given into the file TOOL_LOG."""
    path = str(param["TOOL_LOG"])
    _outputs["file"] = path
    with open(path, "a", encoding="utf-8"):
        pass


def log(level: LogLevel | int, message: str) -> None:
    """A line for this program's log."""
    line = f"{time.strftime('%m/%d/%y %H:%M:%S')} {message}\n"
    if "stderr" in _outputs:
        sys.stderr.write(line)
    if "file" in _outputs:
        with open(_outputs["file"], "a", encoding="utf-8") as file:
            file.write(line)


def version() -> str:
    """The line of condor_version."""
    return settings.version_lines()[0]


def platform() -> str:
    """The second line of condor_version."""
    return settings.version_lines()[1]
