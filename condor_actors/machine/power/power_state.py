"""The pool's own program that puts a machine to sleep: ``power_state [-method METHOD] ad | set STATE``.

Theory: :data:`METHODS` says how; the first that works here is taken, or the one that LINUX_HIBERNATION_METHOD names.
``/sys/power/state`` is written by root alone, and the write ends when the machine is awake again.  ``systemctl`` asks
logind, which asks polkit whether this account may, and does not wait: that the machine has slept is seen by the clock
that goes on meanwhile.

**Source**: HTCondor's manual, HIBERNATION_PLUGIN and LINUX_HIBERNATION_METHOD; the kernel's
``Documentation/admin-guide/pm/sleep-states.rst``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

__all__ = ["METHODS", "Machine", "main"]

WORDS: Mapping[str, str] = {"S3": "mem", "S4": "disk"}
"""What the kernel calls the states."""
ORDERS: Mapping[str, str] = {"S3": "suspend", "S4": "hibernate", "S5": "poweroff"}
"""What systemctl calls them."""
BEGINS_S = 120.0
"""So long after its order a machine may take to sleep; one that is switched off, to end this program."""
LOOK_S = 0.5
USAGE = 64
NEAR_S = 1.0
"""Clocks that differ by less tell of no sleep."""


def _asleep_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


@attrs.frozen
class Machine:
    """What the methods use of the machine.

    Attributes:
        state: the kernel's file.
        systemd: the folder that is there where systemd runs.
        asleep_s: for how long in all the machine has slept since it was started.
        begins_s: how long it may take to sleep.
    """

    state: Path = Path("/sys/power/state")
    systemd: Path = Path("/run/systemd/system")
    asleep_s: Callable[[], float] = _asleep_s
    begins_s: float = BEGINS_S

    def words(self) -> frozenset[str]:
        """The states that the kernel knows, in its own words."""
        try:
            return frozenset(self.state.read_text(encoding="ascii", errors="replace").split())
        except OSError:
            return frozenset()


@attrs.frozen
class Method:
    """One way to put a machine to sleep.

    Attributes:
        states: which states it can put it into; none: it does not work here.
        put: does it; why it failed, or nothing when the machine is awake again.
    """

    states: Callable[[Machine], tuple[str, ...]]
    put: Callable[[Machine, str], str]


def _of_systemctl(machine: Machine) -> tuple[str, ...]:
    if shutil.which("systemctl") is None or not machine.systemd.is_dir():
        return ()
    words = machine.words()
    return tuple(state for state in ORDERS if WORDS.get(state, "") in words or state not in WORDS)


def _by_systemctl(machine: Machine, state: str) -> str:
    before_s = machine.asleep_s()
    done = subprocess.run(["systemctl", ORDERS[state]], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)
    if done.returncode:
        return f"systemctl {ORDERS[state]}: {done.stderr.strip() or f'it ends with {done.returncode}'}"
    until_s = time.monotonic() + machine.begins_s
    while machine.asleep_s() - before_s < NEAR_S:
        if time.monotonic() > until_s:
            return f"systemctl {ORDERS[state]} was accepted, and after {machine.begins_s:.0f} s the machine is awake"
        time.sleep(LOOK_S)
    return ""


def _of_kernel(machine: Machine) -> tuple[str, ...]:
    if not os.access(machine.state, os.W_OK):
        return ()
    words = machine.words()
    return tuple(state for state, word in WORDS.items() if word in words)


def _by_kernel(machine: Machine, state: str) -> str:
    try:
        with machine.state.open("w", encoding="ascii") as file:
            file.write(WORDS[state])
    except OSError as error:
        return f"{machine.state}: {error.strerror or error}"
    return ""


METHODS: Mapping[str, Method] = {
    "systemctl": Method(_of_systemctl, _by_systemctl),
    "/sys": Method(_of_kernel, _by_kernel),
}
"""By the words of LINUX_HIBERNATION_METHOD, the preferred one first."""


def main(words: Sequence[str] | None = None, machine: Machine = Machine()) -> int:  # noqa: B008 - nothing changes it
    """Entry of the program; its exit status."""
    words = list(sys.argv[1:] if words is None else words)
    names = list(METHODS)
    if words[:1] == ["-method"] and len(words) > 1:
        if words[1] not in METHODS:
            return _failed(f"{words[1]} is no method; there are {', '.join(METHODS)}", USAGE)
        names, words = [words[1]], words[2:]
    name, states = next(((each, found) for each in names if (found := METHODS[each].states(machine))), ("NONE", ()))
    if words == ["ad"]:
        sys.stdout.write(f'HibernationSupportedStates = "{",".join(states)}"\nHibernationMethod = "{name}"\n')
        return 0
    if len(words) != 2 or words[0] != "set":
        return _failed("usage: power_state [-method METHOD] ad | set STATE", USAGE)
    if words[1] not in states:
        return _failed(f"this machine cannot be put into {words[1]}; it can into {', '.join(states) or 'no state'}", 1)
    problem = METHODS[name].put(machine, words[1])
    return _failed(problem, 1) if problem else 0


def _failed(text: str, status: int) -> int:
    sys.stderr.write(f"{text}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
