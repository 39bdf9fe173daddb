"""A workflow's own job, for `Submit.from_dag`: what condor_submit_dag would submit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from condor_actors.compat.errors import HTCondorException

__all__ = ["OPTIONS", "description_of_dag"]

SWITCH, WORD, NUMBER = "bool", "str", "int"
OPTIONS = {
    "AddToEnv": ("insert_env", WORD), "AutoRescue": ("autorescue", NUMBER), "BatchName": ("batch-name", WORD),
    "ConfigFile": ("config", WORD), "DagmanPath": ("dagman", WORD), "DebugLevel": ("debug", NUMBER),
    "DoRecovery": ("dorecovery", SWITCH), "DoRescueFrom": ("dorescuefrom", NUMBER), "Force": ("force", SWITCH),
    "GetFromEnv": ("include_env", WORD), "ImportEnv": ("import_env", SWITCH), "LockFile": ("lockfile", WORD),
    "MaxHold": ("maxhold", NUMBER), "MaxIdle": ("maxidle", NUMBER), "MaxJobs": ("maxjobs", NUMBER),
    "MaxPost": ("maxpost", NUMBER), "MaxPre": ("maxpre", NUMBER), "Notification": ("notification", WORD),
    "OutfileDir": ("outfile_dir", WORD), "PostRun": ("alwaysrunpost", SWITCH), "Priority": ("priority", NUMBER),
    "Recurse": ("do_recurse", SWITCH), "RescueFile": ("rescuefile", WORD), "SaveFile": ("load_save", WORD),
    "SubmitMethod": ("submitmethod", NUMBER), "SuppressNotification": ("suppress_notification", SWITCH),
    "UpdateSubmit": ("update_submit", SWITCH), "UseDagDir": ("usedagdir", SWITCH), "Verbose": ("verbose", SWITCH),
}
"""The flag of condor_submit_dag for each option, and what it takes."""
NO = {"alwaysrunpost": "dontalwaysrunpost", "suppress_notification": "dont_suppress_notification"}
"""The flag that says the opposite, where there is one."""


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


KNOWN = {"dorecov": ("dorecovery", SWITCH)} | {
    _plain(name): option for key, option in OPTIONS.items() for name in (key, option[0])}


def description_of_dag(path: str, options: Mapping[str, int | bool | str]) -> str:
    """The text of the submit description for a workflow.

    Args:
        path: of the DAG file.
        options: those of `OPTIONS`, or the flags themselves.

    Raises:
        HTCondorException: the DAG cannot be run, or files of an earlier run are in the way; says what.
        TypeError, ValueError: an option is none.
    """
    if not isinstance(options, dict):
        raise TypeError("options must be a dict")
    if not Path(path).exists():
        raise HTCondorException(f"{path} does not exist")
    words = [word for name, value in options.items() for word in _flag(name, value)]
    command = [sys.executable, "-m", "condor_actors.tools.dag.submit_dag", "-no_submit", *words, path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise HTCondorException((done.stderr or done.stdout).strip())
    return Path(f"{path}.condor.sub").read_text()


def _flag(name: str, value: int | bool | str) -> list[str]:
    """The words of one option."""
    if not isinstance(name, str):
        raise TypeError("options keys must be strings")
    if not isinstance(value, (int, str)):
        raise TypeError(f"the option {name} must be a bool, an int or a str, not {type(value).__name__}")
    flag, takes = KNOWN.get(_plain(name), ("", ""))
    if not flag:
        raise ValueError(f"there is no option {name!r}; there are {', '.join(OPTIONS)}")
    if takes != SWITCH:
        return [f"-{flag}", str(int(value) if isinstance(value, bool) else value)]
    if str(value).lower() in ("true", "1"):
        return [f"-{flag}"]
    return [f"-{NO[flag]}"] if flag in NO else []
