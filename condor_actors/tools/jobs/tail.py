"""condor_tail: the end of a file of a running job.

**Source**: the manual, condor_tail.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from condor_actors import records
from condor_actors.messages.interactive import TailJob
from condor_actors.tools.lib.command import ToolError, Words, reminder_of, run, values_of
from condor_actors.tools.lib.contact import Schedd, load, schedd
from condor_actors.tools.lib.flags import NO_DEBUG, Flag, Given
from condor_actors.tools.lib.job_ids import parse_id
from condor_actors.wire.blocking import RequestRefused

STDOUT, STDERR = "_condor_stdout", "_condor_stderr"
FOLLOW_S = 1.0
RETRY_S = 2.0
FLAGS = (
    Flag("help"),
    Flag("version", 1),
    Flag("debug", 1, idle=NO_DEBUG),
    Flag("pool", 1, 1),
    Flag("name", 1, 1),
    Flag("maxbytes", 1, 1),
    Flag("auto-retry", 1),
    Flag("follow", 1),
    Flag("no-stdout", 2),
    Flag("stderr", 1),
)


@records.define
class _File:
    """A file that is looked at, and how far it has been shown; -1: not yet."""

    path: str
    offset: int = -1


def main() -> int:
    """Entry of ``condor_tail``."""
    wrong = "Unrecognized or incomplete argument: {word}\n{usage}"
    return run(FLAGS, "condor_tail", _answer, words=Words(unknown=wrong, missing=wrong, help_stream="err"))


def _answer(given: Sequence[Given]) -> int:
    values = values_of(given)
    operands = [word for item in given if not item.name for word in item.values[0].split(",") if word]
    job = parse_id(operands[0]) if operands else None
    most = values.get("maxbytes", "1024")
    if job is None or not most.isdecimal():
        what = "a job id" if job is None else f"a number for -maxbytes, not {most}"
        raise ToolError(f"condor_tail: expected {what}\n{reminder_of('condor_tail')}")
    files = [_File(path) for path in operands[1:]]
    if not files and "no-stdout" not in values and "stderr" not in values:
        files.append(_File(STDOUT))
    if "stderr" in values:
        files.append(_File(STDERR))
    if not files:
        raise ToolError("No file transfer specified.\n")
    try:
        with schedd(load(), name=values.get("name", ""), pool=values.get("pool", "")) as there:
            return _tail(there, (job[0], max(job[1], 0)), files, int(most), "follow" in values, "auto-retry" in values)
    except (KeyboardInterrupt, BrokenPipeError):
        return 0


def _tail(
    there: Schedd, job: tuple[int, int], files: list[_File], most: int, is_following: bool, is_patient: bool
) -> int:
    has_shown = False
    while True:
        try:
            news = [_show(there, job, file, most) for file in files]
        except RequestRefused as error:
            if is_following and has_shown:
                return 0
            if is_patient and error.code in ("invalid", "busy"):
                time.sleep(RETRY_S)
                continue
            raise ToolError(str(error)) from None
        has_shown = True
        if not is_following:
            return 0
        if not any(news):
            time.sleep(FOLLOW_S)


def _show(there: Schedd, job: tuple[int, int], file: _File, most: int) -> int:
    """Print what is new of a file, at most ``most`` bytes; how many that were."""
    answer = there.ask(TailJob(cluster_id=job[0], proc_id=job[1], path=file.path, offset=file.offset, max_bytes=most))
    if answer.size_bytes < file.offset:
        file.offset = 0
        return 0
    sys.stdout.buffer.write(answer.data)
    sys.stdout.buffer.flush()
    file.offset = answer.offset + len(answer.data)
    return len(answer.data)


if __name__ == "__main__":
    sys.exit(main())
