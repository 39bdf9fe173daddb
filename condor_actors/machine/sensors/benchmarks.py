"""How fast this machine is: ``Mips`` and ``KFlops``, measured by a child process while nobody wants the machine.

Theory: the native program ``condor_benchmark`` measures processor time at the lowest priority, a third of a second for
each; here it is started, watched, and killed when the machine is wanted.  What each number counts is told in its
source.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from condor_actors.machine.native.programs import NativeProgramMissing, benchmark_path
from condor_actors.machine.run.process_watch import ProcessWatch

__all__ = ["Benchmarks", "Told"]

ATTRIBUTES = {"mips": "Mips", "kflops": "KFlops"}
Told = Callable[[tuple[tuple[str, int], ...], str], None]


class Benchmarks:
    """Measures ``Mips`` and ``KFlops`` in a child process.

    Args:
        names: what to measure (of BENCHMARKS_JOBLIST): ``mips``, ``kflops``; what else is there are programs of the
            site, which are not run here.
        reactor: Twisted's.
    """

    def __init__(self, names: Sequence[str], reactor: Any) -> None:
        self._names = tuple(name.lower() for name in names if name.lower() in ATTRIBUTES)
        self._reactor = reactor
        self._child: subprocess.Popen[bytes] | None = None
        self._watch: ProcessWatch | None = None

    def run(self, told: Told) -> None:
        """Measure; ``told`` gets the attributes and their values, or none and why."""
        self.stop()
        self._next(list(self._names), [], told)

    def _next(self, names: list[str], found: list[tuple[str, int]], told: Told) -> None:
        if not names:
            told(tuple(found), "")
            return
        name = names.pop(0)
        try:
            child = subprocess.Popen([benchmark_path(), name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL)
        except (OSError, NativeProgramMissing) as error:
            told((), str(error))
            return
        self._child = child

        def ended() -> None:
            self._child = self._watch = None
            text, _ = child.communicate()
            if child.returncode or not text.strip().isdigit():
                told((), f"condor_benchmark {name} ended with status {child.returncode}")
                return
            found.append((ATTRIBUTES[name], int(text)))
            self._next(names, found, told)

        self._watch = ProcessWatch(child.pid, self._reactor, ended)

    def stop(self) -> None:
        """The machine is wanted: nobody is told anything."""
        child, self._child = self._child, None
        if self._watch is not None:
            self._watch.stop()
            self._watch = None
        if child is not None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            child.communicate()
