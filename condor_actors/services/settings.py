"""What ``condor_config_val -set`` and ``-rset`` keep for the next reload of a daemon.

Persistent settings go to ``$(PERSISTENT_CONFIG_DIR)/.config.<DAEMON>``, one ``NAME = value`` a line, written anew each
time (new file, sync, rename).  Those until restart go to the same folder under the process id of the daemon, and are
removed when it starts again.
"""

from __future__ import annotations

import os
from pathlib import Path

from condor_actors.config import Config
from condor_actors.own_files import read_own, replace_own


def settings_file(config: Config, *, persistent: bool) -> Path:
    """Where a daemon's remotely set parameters lie."""
    named = config.text("PERSISTENT_CONFIG_DIR")
    folder = Path(named) if named else config.path("LOCAL_DIR") / "config"
    suffix = "" if persistent else f".{os.getpid()}"
    return folder / f".config.{config.subsystem}{suffix}"


def store_setting(config: Config, name: str, value: str | None, persistent: bool) -> None:
    """Keep ``NAME = value``, or forget the name when ``value`` is None.

    Raises:
        OSError: the file cannot be written; what was there before still is.
    """
    path = settings_file(config, persistent=persistent)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = read_own(path, roots=True).decode(errors="surrogateescape").splitlines()
    kept = [line for line in lines if line.partition("=")[0].strip().upper() != name.upper()]
    if value is not None:
        kept.append(f"{name} = {value}")
    replace_own(path, "".join(line + "\n" for line in kept).encode(errors="surrogateescape"), sync=True)
