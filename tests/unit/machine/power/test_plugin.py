"""What a program of the site says of power, and what becomes of what it says; the programs are real ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

from condor_actors.machine.power.plugin import MOST_BYTES, PluginPower
from condor_actors.machine.run.site_programs import PosixSitePrograms

DEADLINE_S = 60.0


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[PosixSitePrograms]:
    made = PosixSitePrograms(reactor, str(tmp_path), lambda: None)
    yield made
    made.close()


def power(programs: PosixSitePrograms, folder: Path, script: str) -> PluginPower:
    program = folder / "power"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return PluginPower(programs, (str(program), "-x"), {"PATH": "/usr/bin:/bin"})


def asked(made: PluginPower) -> Deferred[Any]:
    found: Deferred[Any] = Deferred()
    found.addTimeout(DEADLINE_S, reactor)
    made.ask(lambda *what: found.callback(what))
    return found


@pytest_twisted.ensureDeferred
async def test_it_says_what_it_can_do(programs: PosixSitePrograms, tmp_path: Path) -> None:
    made = power(programs, tmp_path, """echo "HibernationSupportedStates = \\"S3, S4\\""
echo "HibernationMethod = \\"$*\\"" """)
    assert await asked(made) == (("S3", "S4"), "-x ad", "")


@pytest.mark.parametrize(("script", "problem"), [
    ("echo sorry >&2; exit 3", "power ad: sorry"), ("exit 4", "power ad: it ends with 4"), ("", "names no states"),
    ("echo this is no ad", "prints is no ad"), ('echo "HibernationMethod = \\"x\\""', "names no states"),
    (f"head -c {10 * MOST_BYTES} /dev/zero", "power ad")])
@pytest_twisted.ensureDeferred
async def test_what_makes_no_sense_is_no_state(
        programs: PosixSitePrograms, tmp_path: Path, script: str, problem: str) -> None:
    states, _, said = await asked(power(programs, tmp_path, script))
    assert states == ()
    assert problem in said


@pytest_twisted.ensureDeferred
async def test_a_program_that_is_not_there_is_named(programs: PosixSitePrograms, tmp_path: Path) -> None:
    made = PluginPower(programs, (str(tmp_path / "none"),), {})
    assert "No such file" in (await asked(made))[2]


@pytest_twisted.ensureDeferred
async def test_the_end_of_the_program_is_the_end_of_the_sleep(programs: PosixSitePrograms, tmp_path: Path) -> None:
    made = power(programs, tmp_path, '[ "$3" = S3 ] || { echo "not $*" >&2; exit 1; }')
    for state, problem in (("S3", ""), ("S4", f"{tmp_path}/power set: not -x set S4")):
        over: Deferred[str] = Deferred()
        over.addTimeout(DEADLINE_S, reactor)
        made.sleep(state, over.callback)
        assert await over == problem
        await deferLater(reactor, 0.0)  # as daemons do: the next program is started in a turn of its own
    made.close()
