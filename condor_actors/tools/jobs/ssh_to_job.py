"""condor_ssh_to_job: a shell, or a command, beside a running job, in its folder and with its environment.

With ``-L``, ports of the job in place of a shell.  The bytes travel over the pool's own links, so no ssh daemon and no
keys are needed.  **Source**: the manual.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from condor_actors.messages.queue import ActOnJobs, JobAction
from condor_actors.tools.lib.command import ToolError, Words, operands_of, reminder_of, run, values_of
from condor_actors.tools.lib.contact import Schedd, load, schedd
from condor_actors.tools.lib.flags import NO_DEBUG, Flag, Given, match, parse
from condor_actors.tools.lib.job_ids import parse_id

RETRY_S = 5.0
FLAGS = (
    Flag("help"),
    Flag("version", 4),
    Flag("debug", 1, idle=NO_DEBUG),
    Flag("name", 1, 1),
    Flag("pool", 1, 1),
    Flag("ssh", 2, 1, refused="the shell comes over the pool's own connections, without ssh; "
                              "'condor_ssh_to_job JOB cat FILE' copies a file"),
    Flag("keygen-options", 1, 1, idle="no keys are made"),
    Flag("shells", 2, 1, refused="name the shell as the remote command: condor_ssh_to_job JOB /bin/zsh"),
    Flag("auto-retry", 1),
    Flag("remove-on-interrupt", 1),
    Flag("x", 1, refused="windows of the job's machine are not shown here"),
    Flag("L", 1, 1),
)


def main() -> int:
    """Entry of ``condor_ssh_to_job``."""
    wrong = "condor_ssh_to_job: '{word}' is invalid or needs a value\n{usage}"
    return run(_split, "condor_ssh_to_job", _answer, words=Words(unknown=wrong, missing=wrong, help_stream="err"))


def _answer(given: Sequence[Given]) -> int:
    values, words = values_of(given), operands_of(given)
    job = parse_id(words[0]) if words else None
    if job is None:
        raise ToolError(f"condor_ssh_to_job: expected a job id\n{reminder_of('condor_ssh_to_job')}")
    forwards = [item.values[0] for item in given if item.name == "L"]
    if forwards and len(words) > 1:
        raise ToolError("condor_ssh_to_job: -L brings ports here and runs no command: leave one of the two out")
    with schedd(load(), name=values.get("name", ""), pool=values.get("pool", "")) as there:
        try:
            return _run(there, (job[0], max(job[1], 0)), words[1:], forwards, retries="auto-retry" in values)
        except KeyboardInterrupt:
            if "remove-on-interrupt" in values:
                there.ask(ActOnJobs(action=JobAction.REMOVE, ids=((job[0], max(job[1], 0)),),
                                    reason="condor_ssh_to_job was interrupted"))
            raise


def _run(there: Schedd, job: tuple[int, int], command: Sequence[str], forwards: Sequence[str], *, retries: bool) -> int:
    from condor_actors.tools.lib.visits.job_shell import NotRunning, run_shell
    from condor_actors.tools.lib.visits.port_forwarding import forward, parse_forward

    wanted = [parse_forward(each) for each in forwards]
    while True:
        try:
            if wanted:
                return forward(there, job, wanted)
            return run_shell(there, job, command)
        except NotRunning as error:
            if not retries:
                raise
            print(error.text, file=sys.stderr)
            time.sleep(RETRY_S)


def _split(words: Sequence[str]) -> list[Given]:
    """Flags before the job id; everything behind it is the remote command, dashes and all."""
    end = 0
    while end < len(words) and words[end].startswith("-"):
        found = match(words[end], FLAGS)
        end += 1 + (found[0].takes if found is not None else 0)
    return [*parse(words[:end], FLAGS), *(Given("", (word,)) for word in words[end:])]


if __name__ == "__main__":
    sys.exit(main())
