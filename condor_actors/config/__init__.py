"""condor_config: the language, the table of parameters, and a configuration's values by name.

``load_config`` finds and reads the files; the `Config` it gives answers by name, typed by the table in
``condor_actors.config.parameters``.
"""

from __future__ import annotations

from condor_actors.config.config import Config, Slip
from condor_actors.config.errors import ConfigError, UnknownParameterError, nearest_word
from condor_actors.config.loader import find_root_file, load_config, own_home
from condor_actors.config.parameter import Kind, Parameter
from condor_actors.config.parameters import all_parameters, find_parameter
from condor_actors.config.settings import setting

__all__ = [
    "Config",
    "ConfigError",
    "Kind",
    "Parameter",
    "Slip",
    "UnknownParameterError",
    "all_parameters",
    "find_parameter",
    "find_root_file",
    "load_config",
    "nearest_word",
    "own_home",
    "setting",
]
