"""The maps of ``userMap`` that the configuration names, for the evaluation of ClassAds.

``<SUBSYS>_CLASSAD_USER_MAP_NAMES`` lists them; each is a file, ``CLASSAD_USER_MAPFILE_<name>``, or stands in the
configuration itself, ``CLASSAD_USER_MAPDATA_<name>``. Source: HTCondor manual, "Configuration Macros".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from condor_actors.classads.builtins.user_maps import UserMap
    from condor_actors.config.config import Config

__all__ = ["use_user_maps", "user_maps"]


def user_maps(config: Config) -> dict[str, UserMap]:
    """Read the maps of a daemon.

    Raises:
        ConfigError: one of them has neither file nor data, or cannot be read, with the place.
    """
    wanted = config.text(f"{config.subsystem}_CLASSAD_USER_MAP_NAMES") or ""
    return {name: _read(config, name) for name in dict.fromkeys(wanted.replace(",", " ").split())}


def _read(config: Config, name: str) -> UserMap:
    from condor_actors.classads.builtins.user_maps import UserMapError, read_user_map
    from condor_actors.written_text import read_plain

    asked = f"{config.subsystem}_CLASSAD_USER_MAP_NAMES"
    macro = f"CLASSAD_USER_MAPFILE_{name}"
    path = config.text(macro)
    if path:
        try:
            data: str | None = read_plain(path).decode(errors="surrogateescape")
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", "") or error
            raise config.unusable(macro, f"cannot read the map {name}: {why}", "a readable file") from None
    else:
        macro = f"CLASSAD_USER_MAPDATA_{name}"
        data = config.text(macro)
        path = macro
    if data is None:
        raise config.unusable(asked, f"there is no CLASSAD_USER_MAPFILE_{name} and no {macro}")
    prefix = (config.text(f"CLASSAD_USER_MAP_PREFIX_{name}") or "").strip().lower() in ("true", "yes", "1")
    try:
        return read_user_map(data, prefix)
    except UserMapError as error:
        raise config.unusable(macro, f"line {error.line} of {path}: {error}", value="") from None


def use_user_maps(config: Config) -> None:
    """Let ``userMap`` know the maps of this process's daemon, and no others.

    Raises:
        ConfigError: as `user_maps`.
    """
    from condor_actors.classads.builtins.user_maps import define_user_map, user_map_names

    maps = user_maps(config)
    for name in user_map_names():
        define_user_map(name, None)
    for name, entries in maps.items():
        define_user_map(name, entries)
