"""condor_tail: the end of a file of a running job.

**Source**: the manual, condor_tail.
"""

from __future__ import annotations

import sys
import time

import attrs

from condor_actors.messages.queue import TailJob
from condor_actors.tools.contact import Schedd, ToolError, load, refused, schedd
from condor_actors.tools.flags import Flag, MissingValue, UnknownFlag, parse
from condor_actors.tools.job_ids import parse_id
from condor_actors.wire.blocking import RequestRefused, WireError

STDOUT, STDERR = "_condor_stdout", "_condor_stderr"
FOLLOW_S = 1.0
RETRY_S = 2.0
FLAGS = (
    Flag("help"),
    Flag("version", 1),
    Flag("debug", 1),
    Flag("pool", 1, 1),
    Flag("name", 1, 1),
    Flag("maxbytes", 1, 1),
    Flag("auto-retry", 1),
    Flag("follow", 1),
    Flag("no-stdout", 2),
    Flag("stderr", 1),
)
USAGE = """Usage: condor_tail [options] <job-id> [filename1[, filename2[, ...]]]
Tail a file in a running job's sandbox.
The options are:
    -help             Display options
    -version          Display version
    -pool <hostname>  Use this central manager
    -name <name>      Query this schedd
    -maxbytes         The maximum number of bytes to transfer.  Defaults to 1024
    -auto-retry       Auto retry if job is not running yet.
    -f,-follow        Follow the contents of a file.
By default, only stdout is returned.
    -no-stdout        Do not tail the job's stdout
    -stderr           Tail at the job's stderr"""


@attrs.define
class _File:
    """A file that is looked at, and how far it has been shown; -1: not yet."""

    path: str
    offset: int = -1


def main() -> int:
    """Entry of ``condor_tail``."""
    try:
        given = parse(sys.argv[1:], FLAGS)
    except (UnknownFlag, MissingValue) as error:
        print(f"Unrecognized or incomplete argument: {error.word}\n{USAGE}", file=sys.stderr)
        return 1
    values = {item.name: item.values[0] if item.values else "" for item in given if item.name}
    if "help" in values:
        print(USAGE, file=sys.stderr)
        return 0
    if "version" in values:
        from condor_actors.tools.version import platform_line, version_line

        print(f"{version_line()}\n{platform_line()}")
        return 0
    operands = [word for item in given if not item.name for word in item.values[0].split(",") if word]
    job = parse_id(operands[0]) if operands else None
    most = values.get("maxbytes", "1024")
    if job is None or not most.isdigit():
        what = "a job id" if job is None else f"a number for -maxbytes, not {most}"
        print(f"condor_tail: expected {what}\n{USAGE}", file=sys.stderr)
        return 1
    files = [_File(path) for path in operands[1:]]
    if not files and "no-stdout" not in values and "stderr" not in values:
        files.append(_File(STDOUT))
    if "stderr" in values:
        files.append(_File(STDERR))
    if not files:
        print("No file transfer specified.\n", file=sys.stderr)
        return 1
    try:
        with schedd(load(), name=values.get("name", ""), pool=values.get("pool", "")) as there:
            return _tail(there, (job[0], max(job[1], 0)), files, int(most), "follow" in values, "auto-retry" in values)
    except ToolError as error:
        print(error.text, file=sys.stderr)
        return error.status
    except WireError as error:
        print(refused(error), file=sys.stderr)
        return 1
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
