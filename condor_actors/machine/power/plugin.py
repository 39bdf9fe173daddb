"""The program that puts this machine to sleep (HIBERNATION_PLUGIN), run by the startd.

Theory: ``PROGRAM ARGUMENTS ad`` prints an ad that says by ``HibernationSupportedStates`` into which states it can put
the machine; ``PROGRAM ARGUMENTS set STATE`` does that, and ends with the status 0 when the machine is awake again.
With another status it has failed, and the machine has never slept.  A machine that is switched off (S5) takes the
program with it.

**Source**: HTCondor's manual, HIBERNATION_PLUGIN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from condor_actors.classads import ClassAd, ClassAdSyntaxError
from condor_actors.cores.site_programs.programs import SiteProgram
from condor_actors.machine.run.site_programs import SitePrograms

__all__ = ["PluginPower", "Power"]

MOST_BYTES = 64 * 1024
Known = Callable[[tuple[str, ...], str, str], None]
"""Called with the states, how, and why there are none."""


class Power(Protocol):
    """Puts the machine to sleep; the simulation has its own."""

    def ask(self, known: Known) -> None:
        """Into which states the machine can be put."""

    def sleep(self, state: str, over: Callable[[str], None]) -> None:
        """Put it into a state (``S3``); ``over`` is called with why that failed, or with nothing when it is awake."""

    def close(self) -> None:
        """Stop what runs; nothing is told any more."""


class PluginPower:
    """Power by a program of the site.

    Args:
        programs: runs it.
        command: the program and its arguments.
        environment: of the program, all of it.
    """

    def __init__(self, programs: SitePrograms, command: tuple[str, ...], environment: dict[str, str]) -> None:
        self._programs = programs
        self._command = command
        self._environment = tuple(environment.items())
        self._run = 0

    def _start(self, arguments: tuple[str, ...], over: Callable[[bytes, str], None]) -> None:
        self._run += 1
        said = bytearray()

        def wrote(data: bytes) -> None:
            said.extend(data[:MOST_BYTES - len(said)])

        def ended(status: int, problem: str, complaint: str) -> None:
            failed = problem or (complaint or f"it ends with {status}" if status else "")
            over(bytes(said), f"{self._command[0]} {arguments[0]}: {failed}" if failed else "")

        program = SiteProgram(name="power", executable=self._command[0], arguments=(*self._command[1:], *arguments),
                              environment=self._environment)
        self._programs.start(program, self._run, wrote, ended)

    def ask(self, known: Known) -> None:
        """See :class:`Power`."""
        def over(said: bytes, problem: str) -> None:
            try:
                ad = ClassAd.from_bytes(said)
            except ClassAdSyntaxError as error:
                ad, problem = ClassAd(), problem or f"what {self._command[0]} ad prints is no ad: {error}"
            states = tuple(word for word in ad.get_str("HibernationSupportedStates").replace(",", " ").split())
            if not states and not problem:
                problem = f"{self._command[0]} ad names no states (HibernationSupportedStates)"
            known(() if problem else states, ad.get_str("HibernationMethod"), problem)

        self._start(("ad",), over)

    def sleep(self, state: str, over: Callable[[str], None]) -> None:
        """See :class:`Power`."""
        self._start(("set", state), lambda said, problem: over(problem))

    def close(self) -> None:
        """See :class:`Power`."""
        self._programs.close()
