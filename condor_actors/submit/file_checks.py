"""Whether the submitter's files are where a description says, before anything is queued.

====================================  ==================================================================
what                                  is looked at
====================================  ==================================================================
``initialdir``                        always
``executable``, if it travels         unless ``skip_filechecks``
``log``                               unless ``skip_filechecks``, ``-disable`` or ``-spool``: the first event
                                      is written at once, so a place that takes nothing is a mistake now
``input`` and ``transfer_input_…``    also only with ``SUBMIT_SKIP_FILECHECKS = False``: by default they are
``output``, ``error``                 looked at when they are used, and what is wrong then holds the job
====================================  ==================================================================

``skip_filechecks = warn`` tells instead of refusing.

**Source**: the manual, condor_submit ``-disable``, ``skip_filechecks``, ``SUBMIT_SKIP_FILECHECKS``.
"""

from __future__ import annotations

from condor_actors.messages.references.urls import local_path, travels_as_url
from condor_actors.submit.build_context import BuildContext
from condor_actors.submit.errors import SubmitError

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Final

__all__ = ["check_executable", "check_file", "check_log", "files_are_checked"]

NULL_FILE: Final = "/dev/null"
VERBS: Final = {"r": "reading", "w": "writing"}
REMEDIES: Final = {
    "r": "put the file there, or mend the path (relative paths begin at initialdir)",
    "w": "make its folder, get the right to write there, or name another path (relative ones begin at initialdir)",
}


def _skips(context: BuildContext) -> bool:
    """Whether the description itself wants no checks."""
    given = context.text("skip_filechecks")
    return given is not None and given.lower() != "warn" and context.truth("skip_filechecks", given)


def _refuse(context: BuildContext, problem: str, command: str, remedy: str = "") -> None:
    if (context.text("skip_filechecks") or "").lower() == "warn":
        context.warn(problem)
        return
    raise SubmitError(problem, command=command, remedy=remedy)


def files_are_checked(context: BuildContext) -> bool:
    """Whether inputs and outputs are looked at when jobs are submitted."""
    if context.trusts_files or context.needed("SUBMIT_SKIP_FILECHECKS").lower() in ("true", "yes", "1"):
        return False
    return not _skips(context)


def check_file(context: BuildContext, path: str, mode: str, command: str) -> None:
    """Refuse a file that cannot be opened: ``r`` or ``w``.

    Raises:
        SubmitError: it cannot.
    """
    if travels_as_url(path) or "$$(" in path or path == NULL_FILE:
        return
    path = local_path(path)
    problem = context.world.files.access_problem(context.absolute(path), mode)
    if problem:
        text = f'Can\'t open "{context.absolute(path)}"  for {VERBS[mode]} ({problem})'
        _refuse(context, text, command, REMEDIES[mode])


def check_log(context: BuildContext) -> None:
    """Refuse a user log that takes no events."""
    log = context.get("UserLog")
    if log is not None and not context.trusts_files and not _skips(context):
        check_file(context, log, "w", "log")


def check_executable(context: BuildContext, path: str) -> None:
    """Refuse a program that is not there, cannot be read, is empty, or is a script with DOS line ends."""
    if _skips(context):
        return
    files = context.world.files
    problem = files.access_problem(path, "r")
    if not problem and files.is_folder(path):
        problem = "Is a directory"
    if problem:
        _refuse(context, f"Can't access executable file {path}: {problem}", "executable",
                "put the program there, or mend the path; transfer_executable = false names one on the execute machine")
        return
    first = files.first_line(path)
    if not files.size_kib(path):
        _refuse(context, f"Executable file {path} has zero length", "executable", "give it something to run")
    elif first.startswith(b"#!") and first.rstrip(b"\n").endswith(b"\r"):
        sentence = f"Executable file {path} is a script with CRLF (DOS/Windows) line endings"
        if context.scope.live.get("allow_crlf_script"):
            context.warn(sentence)
        else:
            _refuse(context, f"{sentence}; run 'dos2unix {path}', or submit with -allow-crlf-script", "executable")
