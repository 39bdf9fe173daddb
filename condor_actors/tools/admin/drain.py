"""condor_drain: let a machine take no more jobs.

**Source**: the manual, condor_drain.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from condor_actors.messages.admin import CancelDrain, Drain
from condor_actors.tools.lib.command import ToolError, Words, operands_of, run, values_of
from condor_actors.tools.lib.contact import load
from condor_actors.tools.lib.flags import NO_DEBUG, Flag, Given
from condor_actors.tools.lib.machine_commands import STARTD, ask, startds

COMPLETIONS = {"resume-on-completion": "resume", "restart-on-completion": "restart",
               "reconfig-on-completion": "reconfig", "exit-on-completion": "exit"}
FLAGS = (
    Flag("help"),
    Flag("version", 1),
    Flag("debug", 1, idle=NO_DEBUG),
    Flag("pool", 1, 1),
    Flag("cancel", 1),
    Flag("fast", 1),
    Flag("quick", 1),
    Flag("graceful", 1),
    Flag("resume-on-completion", 1),
    Flag("restart-on-completion", 3),
    Flag("reconfig-on-completion", 3),
    Flag("exit-on-completion", 2),
    Flag("request-id", 3, 1),
    Flag("reason", 3, 1),
    Flag("check", 2, 1),
    Flag("start", 2, 1),
    Flag("verbose", 4),
)


def main() -> int:
    """Entry of ``condor_drain``."""
    return run(FLAGS, "condor_drain", _answer, words=Words(
        unknown="ERROR: unexpected argument: {word}", unknown_status=2, failure="ERROR: {text}", help_stream="err",
        missing="condor_drain: '{word}' requires another argument"))  # fmt: skip


def _answer(given: Sequence[Given]) -> int:
    values, machines = values_of(given), operands_of(given)
    problem = _problem(values, machines)
    if problem:
        raise ToolError(problem, 2)
    return _drain(given, values, machines[0])


def _problem(values: dict[str, str], machines: list[str]) -> str:
    if len(machines) != 1 or not machines[0].strip():
        return "must specify one target machine"
    if "cancel" in values:
        for name in ("check", "start", "reason"):
            if name in values:
                return f"-{name} may not be used with -cancel"
        if COMPLETIONS.keys() & values.keys():
            return "cannot use an -on-completion option with -cancel"
    elif "request-id" in values:
        return "-request-id may only be used with -cancel"
    if sum(name in values for name in ("fast", "quick", "graceful")) > 1:
        return "only one of -graceful, -quick and -fast may be given"
    return ""


def _drain(given: Sequence[Given], values: dict[str, str], machine: str) -> int:
    how = next((name for name in ("fast", "quick") if name in values), "graceful")
    done = next((word for name, word in COMPLETIONS.items() if name in values), "nothing")
    for name, address, client in startds(load(), names=(machine,), pool=values.get("pool", "")):
        with client:
            if "cancel" in values:
                ask(client, STARTD, CancelDrain(request_id=values.get("request-id", "")))
                print(f"Sent request to cancel draining on {name}")
                continue
            answer = ask(
                client,
                STARTD,
                Drain(
                    how=how, on_completion=done, check_expr=values.get("check", ""),
                    start_expr=values.get("start", ""), reason=values.get("reason", ""),
                ),
            )  # fmt: skip
            print(
                f"Sent request to drain the startd {address} with {name}. This only affects the single startd; "
                "any other startds running on the same host will not be drained."
            )
            if "verbose" in values:
                print(f"\tRequest id: {answer.text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
