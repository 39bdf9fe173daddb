"""Machines of one pool have two releases, as while it is upgraded: jobs run from each to each, and move between.

So do two pools that lend each other machines through gateways.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs
import pytest

from tests.harness.federation import a_federation
from tests.harness.namespaces import NEED_NAMESPACES, Machine, a_wire
from tests.harness.next_release import NEXT_VERSION, make_next_release
from tests.harness.standard_jobs import NEED_RUNTIME, Job
from tests.pool_fixture import fresh_folder, until

pytestmark = [*NEED_NAMESPACES, *NEED_RUNTIME]

VANILLA = """executable = /bin/cat
arguments = word
transfer_executable = false
should_transfer_files = yes
transfer_input_files = word
requirements = Machine == "{where}.trio"
output = {where}.out
log = {where}.log
queue
"""


@attrs.frozen
class Upgraded:
    """A pool that is being upgraded: the central manager, where jobs run as well, and a machine to submit from have
    this release; another pair has the next one."""

    manager: Machine
    submit: Machine
    next_submit: Machine
    next_execute: Machine


def runs(machine: Machine) -> str:
    """Which release its startd says that it is."""
    return machine.run("condor_status", "-af", "CondorVersion", "-constraint", f'Machine == "{machine.name}.trio"')


@pytest.fixture(scope="module")
def pool() -> Iterator[Upgraded]:
    """The pool, with all its machines."""
    with fresh_folder() as packages, a_wire("r") as wire:
        make_next_release(packages)
        manager = wire.manager()
        submit = wire.member(manager, "submit", "master,schedd")
        wire.packages = str(packages)
        made = Upgraded(manager, submit, wire.member(manager, "submitnext", "master,schedd"),
                        wire.member(manager, "executenext", "master,startd"))
        until(lambda: manager.run("condor_status", "-af", "Machine").count("executenext.trio"), "the next machine's ad")
        for each in (made.submit, made.next_submit):
            until((each.dir / "run" / "schedd.address").exists, "the schedds to listen")
        yield made


def test_each_has_its_release(pool: Upgraded) -> None:
    assert NEXT_VERSION in runs(pool.next_execute)
    assert NEXT_VERSION not in runs(pool.manager)


@pytest.mark.parametrize("home", ["submit", "next_submit"])
@pytest.mark.parametrize("where", ["manager", "executenext"])
def test_a_job_runs_with_its_files(pool: Upgraded, home: str, where: str) -> None:
    machine: Machine = getattr(pool, home)
    (machine.work / "word").write_text("hello\n")
    cluster = machine.submit(VANILLA.format(where=where))
    machine.wait(f"{where}.log")
    assert (machine.work / f"{where}.out").read_text() == "hello\n"
    assert machine.history(f"{cluster}.0")[0]["LastRemoteHost"].endswith(f"@{where}.trio")


@pytest.mark.parametrize("home", ["submit", "next_submit"])
def test_a_program_moves_from_one_release_to_the_other_and_back(pool: Upgraded, home: str) -> None:
    machine: Machine = getattr(pool, home)
    job = Job(machine, "mover", "14 3 8 11", requirements='Machine == "manager.trio"')
    for step, where in ((3, "executenext"), (8, "manager")):
        job.until_lines(step + 1)
        machine.run("condor_qedit", job.id, "Requirements", f'Machine == "{where}.trio"')
        machine.run("condor_vacate_job", job.id)
        until(lambda there=where: str(machine.jobs(job.id)[0].get("RemoteHost", "")).endswith(f"@{there}.trio"),
              f"it to run at {where}")
        job.go_on(step)
    job.go_on(11)
    job.wait()
    job.check(14)


def nothing_was_refused(machines: Iterable[Machine]) -> None:
    """No log says that a daemon has not understood another one."""
    for each in machines:
        for log in Path(each.dir / "log").iterdir():
            text = log.read_text(errors="replace") if log.is_file() else ""
            assert "another release" not in text, log
            assert "different releases" not in text, log


def test_no_daemon_has_refused_what_another_said(pool: Upgraded) -> None:
    nothing_was_refused(attrs.astuple(pool, recurse=False))


def test_a_partner_is_one_release_ahead() -> None:
    """Its gateway, its machines and its central manager; jobs of both kinds go there."""
    with fresh_folder() as packages, a_federation(physics_packages=str(make_next_release(packages))) as pools:
        math = pools.math
        until(lambda: "has dialled" in math.run("condor_flock", "status"), "the gateways to meet")
        until(lambda: NEXT_VERSION in runs(pools.physics), "the other pool to have the next release")
        cluster = math.submit(VANILLA.format(where="physics"))
        math.wait("physics.log")
        assert (math.work / "physics.out").read_text() == "hello\n"
        assert math.history(f"{cluster}.0")[0]["LastRemoteHost"].endswith("%physics")
        job = Job(math, "far", "8 3")
        job.until_lines(4)
        job.checkpoint()
        job.go_on(3)
        job.wait()
        job.check(8)
        nothing_was_refused(pools.machines())
