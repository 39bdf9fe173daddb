"""The configuration that a program's questions go by, and ``param``, which shows it as a mapping."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING

from condor_actors.api.errors import CondorError, as_condor_errors
from condor_actors.tools.lib.contact import load

if TYPE_CHECKING:
    from condor_actors.config import Config

Setting = str | int | float | bool

_lock = threading.Lock()
_overrides: dict[str, str] = {}
_loaded: dict[str, Config] = {}
_subsystem = ["TOOL"]


def config() -> Config:
    """The configuration, read once.

    Raises:
        CondorError: there is none, or it cannot be read.
    """
    with _lock:
        subsystem = _subsystem[0]
        if subsystem not in _loaded:
            with as_condor_errors():
                _loaded[subsystem] = load(subsystem, _overrides)
        return _loaded[subsystem]


def config_or_defaults() -> Config:
    """The configuration, or the defaults where no pool is configured: a description can be read without one."""
    try:
        return config()
    except CondorError:
        from condor_actors.config import load_config

        return load_config(subsystem="TOOL", environ={**os.environ, "CONDOR_CONFIG": "ONLY_ENV"})


def reload_config() -> None:
    """Read the configuration anew when it is next needed; what was set through ``param`` is forgotten."""
    with _lock:
        _loaded.clear()
        _overrides.clear()


def set_subsystem(name: str) -> None:
    """Say what this program is: ``NAME.SETTING`` counts for it then; ``TOOL`` until it is set."""
    with _lock:
        _subsystem[0] = name.upper()


def load_user_maps(files: Mapping[str, str] | None = None) -> None:
    """Have ``userMap()`` know the maps that the configuration names, read anew, and these files.

    Raises:
        CondorError: one of them cannot be read.
    """
    with _lock:
        names = f"{_subsystem[0]}_CLASSAD_USER_MAP_NAMES"
        for name, path in (files or {}).items():
            _overrides[f"CLASSAD_USER_MAPFILE_{name}"] = path
            _overrides[names] = f"{_overrides.get(names, f'$({names})')} {name}"
        _loaded.clear()
    config()


def version_lines() -> tuple[str, str]:
    """The two lines of condor_version."""
    from condor_actors.tools.lib.submission import environment

    world = environment(config_or_defaults())
    return world.version, world.platform


class Parameters(MutableMapping[str, Setting]):
    """The configuration as a mapping; numbers and truth values come as such, the rest as text.

    What is set here holds for this program only, until `reload_config`.
    """

    def __getitem__(self, name: str) -> Setting:
        from condor_actors.config import ConfigError, UnknownParameterError, find_parameter

        try:
            known = find_parameter(name)
            value = config().value(name) if known is not None else config().text(name)
        except UnknownParameterError:
            value = None
        except ConfigError as error:
            raise CondorError(str(error)) from None
        if value is None:
            raise KeyError(name)
        return value if isinstance(value, (bool, int, float)) else config().text(name) or ""

    def __setitem__(self, name: str, value: Setting) -> None:
        with _lock:
            _overrides[name] = str(value)
            _loaded.clear()

    def __delitem__(self, name: str) -> None:
        with _lock:
            if name not in _overrides:
                raise KeyError(name)
            del _overrides[name]
            _loaded.clear()

    def __iter__(self) -> Iterator[str]:
        """The names of those that have a value; a wrong one is told of when it is read."""
        return (name for name in config().names() if self._is_set(name))

    def _is_set(self, name: str) -> bool:
        try:
            self[name]
        except KeyError:
            return False
        except CondorError:
            pass
        return True

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return "param"


param = Parameters()
