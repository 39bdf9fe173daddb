"""Someone who sits down at a terminal with the README and a browser; how long each answer took is kept."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import attrs

from tests.harness.terminal import Terminal
from tests.harness.web_page import see
from tests.pool_fixture import BIN

__all__ = ["Newcomer", "Wait", "commands_of", "first_minutes", "table_of"]

ROOT = Path(__file__).resolve().parents[2]
PROMPT = re.compile(r"^\((\d+):(\d+)\) $")
LIMIT_S = 240.0
LAST_DIGITS = "21642019893"  # of pi, 2,000 digits after the point: as the README's program prints them
NOT_TYPED = ("make ", "export PATH")
"""Lines of the README that the tests' own environment has done."""


@attrs.frozen
class Wait:
    """How long it was until a command's prompt came back, or a page showed something; seconds."""

    what: str
    took_s: float


def commands_of(block: str) -> list[str]:
    """The commands of a block of shell, a text after ``<<`` with its command."""
    commands: list[str] = []
    word = ""
    for line in block.splitlines():
        if word:
            commands[-1] += "\n" + line
            if line == word:
                word = ""
        elif line.strip() and not line.startswith(NOT_TYPED):
            commands.append(line)
            found = re.search(r"<<\s*'?(\w+)'?", line)
            word = found[1] if found else ""
    return commands


class Newcomer:
    """A shell in a terminal window, a home directory of one's own, and a browser; a context manager.

    Args:
        home: an empty folder that jobs can enter; files are made there, the pool's in ``pool`` beside it, for the
            account of the tests may have a pool in its home.
        window: a page of the browser (playwright's).
    """

    def __init__(self, home: Path, window: Any) -> None:
        self.waits: list[Wait] = []
        self.window = window
        self._pool = home.parent / "pool"
        own: Mapping[str, str] = {name: value for name, value in os.environ.items() if "CONDOR" not in name.upper()}
        self._terminal = Terminal(
            ["bash", "--norc", "--noprofile", "-i"], columns=120, lines=60, cwd=home,
            environment={**own, "HOME": str(home), "PATH": f"{BIN}:{own['PATH']}", "PS1": r"(\#:$?) ", "PS2": "",
                         "HISTFILE": "", "PROMPT_COMMAND": ""})
        self._number = 1
        self._terminal.until(lambda _: self._status_at(1) is not None)

    def __enter__(self) -> Newcomer:
        self._terminal.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._terminal.__exit__(kind, error, trace)
        subprocess.run([str(BIN / "condor_personal"), "stop", "--dir", str(self._pool)], check=False, timeout=90,
                       capture_output=True)

    def _status_at(self, number: int) -> int | None:
        """The exit status before the prompt of this number, when it is there and waits for a command."""
        screen = self._terminal.screen
        found = PROMPT.match(screen.display[screen.cursor.y][:screen.cursor.x])
        return int(found[2]) if found and int(found[1]) == number else None

    def _clears(self) -> None:
        self._terminal.type("clear\n")
        self._number += 1
        self._terminal.until(lambda _: self._status_at(self._number) is not None, LIMIT_S)

    def types(self, command: str, status: int | None = 0) -> str:
        """Type a command; what it showed, once its prompt is back.

        Args:
            command: a line, or several with a text after ``<<``.
            status: the exit status that it must have; None: any.
        """
        self._clears()
        began_s = time.monotonic()
        self._terminal.type(re.sub(r"condor_personal \w+", rf"\g<0> --dir {self._pool}", command) + "\n")
        self._number += 1
        text = self._terminal.until(lambda _: self._status_at(self._number) is not None, LIMIT_S)
        self.waits.append(Wait(command.splitlines()[0], time.monotonic() - began_s))
        ended = self._status_at(self._number)
        assert status is None or ended == status, f"{command} ended with {ended}:\n{text}"
        return text

    def looks_into(self, command: str, shown: str, key: str) -> None:
        """Type a command that fills the screen, see something there, and leave it by a key."""
        self._clears()
        began_s = time.monotonic()
        self._terminal.type(command + "\n")
        self._terminal.until(shown)
        self.waits.append(Wait(f"{command}: {shown}", time.monotonic() - began_s))
        self._terminal.type(key)
        self._number += 1
        self._terminal.until(lambda _: self._status_at(self._number) == 0)

    def sees(self, what: str, expression: str) -> None:
        """Until an expression is true on the page."""
        began_s = time.monotonic()
        see(self.window, expression)
        self.waits.append(Wait(f"page: {what}", time.monotonic() - began_s))


def first_minutes(newcomer: Newcomer) -> None:
    """From nothing to a pool, jobs, mistakes, answers, a program that moves, and a page; each step must be right."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    personal, moving = (commands_of(block) for block in blocks if "<<'END'" in block)
    shown = [newcomer.types(command) for command in personal]
    assert "hello from 0" in shown[-1]
    assert "hello from 2" in shown[-1]
    found = re.search(r"http://\S+", shown[0])
    assert found is not None, shown[0]
    _page_and_queue(newcomer, found[0])
    _mistakes(newcomer)
    said = [newcomer.types(command) for command in moving]
    assert LAST_DIGITS in said[-1].replace("\n", "")
    assert "nothing" in newcomer.types("condor_personal stop; condor_personal status || echo nothing runs")


def _page_and_queue(newcomer: Newcomer, url: str) -> None:
    """A job that runs is in the queue and on the page, in its story, and gone from both when it is removed."""
    newcomer.window.goto(url)
    newcomer.sees("its slots", "document.querySelectorAll('#map button').length === 4")
    submitted = newcomer.types("condor_submit executable=/bin/sleep arguments=600 log=sleep.log -queue 1")
    found = re.search(r"cluster (\d+)", submitted)
    assert found is not None, submitted
    job = f"{found[1]}.0"
    listed = "[...document.querySelectorAll('#jobs tbody a')].map(link => link.textContent)"
    newcomer.window.click("nav >> text=Queue")
    newcomer.sees("the job", f"{listed}.includes('{job}')")
    assert job in newcomer.types("condor_q")
    newcomer.looks_into("condor_watch", job, "q")
    assert "Requirements" in newcomer.types(f"condor_q -better-analyze {job}")
    newcomer.types(f"condor_rm {job}")
    newcomer.sees("the job has gone", f"!{listed}.includes('{job}')")
    assert "Job was aborted" in newcomer.types("condor_wait sleep.log; cat sleep.log")


def _mistakes(newcomer: Newcomer) -> None:
    """What everybody does wrong at first is answered with what would be right."""
    newcomer.types("printf '%s\\n' executable=/bin/true request_memry=1GB queue > typo.sub")
    assert "did you mean request_memory?" in newcomer.types("condor_submit typo.sub", status=1)
    assert "/bin/slep" in newcomer.types("condor_submit executable=/bin/slep -queue 1", status=1)
    submitted = newcomer.types("condor_submit executable=/bin/true request_memory=900GB -queue 1")
    found = re.search(r"cluster (\d+)", submitted)
    assert found is not None, submitted
    assert "921600 MB of memory" in newcomer.types(f"condor_q -better-analyze {found[1]}.0 | head -n 12")
    newcomer.types(f"condor_rm {found[1]}")
    assert "condor_submit" in newcomer.types("condor_sumbit x.sub || condor_submit -help | head -n 20")


def table_of(waits: list[Wait]) -> str:
    """What was waited for, and how long."""
    rows = [f"{wait.took_s:7.2f} s  {wait.what}" for wait in waits]
    return "\n".join([*rows, f"{sum(wait.took_s for wait in waits):7.2f} s  in all"])
