"""One input of the fuzzer: any bytes as a configuration file, read, and every value of it asked for in every way.

Nothing but `ConfigError` may come out, and in reasonable time. Texts that could run programs are passed over.
"""

from __future__ import annotations

import os

from condor_actors.config import ConfigError, find_parameter, load_config
from tests.fuzz.folders import fuzz_folder

_FOLDER = fuzz_folder()
_FILE = os.path.join(_FOLDER, "condor_config")


def one_input(data: bytes) -> None:
    """Try one input.

    Args:
        data: any bytes.
    """
    lower = data.lower()
    if b"command" in lower or b"|" in lower or b"include" in lower or b"local_config" in lower:
        return
    with open(_FILE, "wb") as file:
        file.write(data)
    try:
        config = load_config(environ={"CONDOR_CONFIG": _FILE})
    except ConfigError as why:
        str(why)
        return
    for definition in list(config.macros):
        known = find_parameter(definition.name) is not None
        for ask in (config.text, config.raw, config.list_of, *((config.value,) if known else ())):
            try:
                ask(definition.name)
            except ConfigError as why:
                str(why)
        config.where(definition.name)
    for problem in config.problems():
        str(problem)
    for slip in config.slips():
        str(slip)
