"""What a partner's misfortunes cost the pool whose jobs run there: its central manager hangs, a machine vanishes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import attrs
import pytest

from tests.harness.federation import GATEWAY, Federation, a_federation
from tests.harness.namespaces import NEED_NAMESPACES, Machine
from tests.harness.standard_jobs import NEED_RUNTIME, Job
from tests.pool_fixture import until

pytestmark = [*NEED_NAMESPACES, *NEED_RUNTIME]

LEASE_S = 2400
VANISHED_S = 5
VACATE_S = 10
"""A run whose home has given it up cannot save its work; its machine, once it is back, gives it this long."""
PATIENCE_S = 240
"""A gateway notices within a minute that nothing is acknowledged; a dial without an answer takes a part of another."""


@attrs.frozen
class Lent:
    """Two pools, and a machine of physics that runs jobs beside its central manager."""

    pools: Federation
    desk: Machine


@pytest.fixture(scope="module")
def lent() -> Iterator[Lent]:
    """Math does not wait long for a machine that its pool's gateway does not reach."""
    with a_federation(f"VANISHED_MACHINE_TIMEOUT = {VANISHED_S}\n") as pools:
        math, physics = pools.math, pools.physics
        desk = physics.wire.member(
            physics, "desk", "master,startd",
            f"{GATEWAY}FLOCK_FROM = math\nMachineMaxVacateTime = {VACATE_S}\n")
        until(lambda: "has dialled" in math.run("condor_flock", "status"), "the gateways to meet")
        until(lambda: "desk.trio" in math.tool("condor_status", "-pool", "physics", "-af", "Machine").stdout,
              "the desk to be in its pool")
        yield Lent(pools, desk)


@contextmanager
def hung(machine: Machine, *daemons: str) -> Iterator[None]:
    """Daemons that live and do nothing."""
    pids = [int((machine.dir / "run" / f"{name}.address").read_text().split()[1]) for name in daemons]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def runs_on(job: Job, machine: Machine) -> bool:
    """Whether a job runs there."""
    return any(f"@{machine.name}.trio%physics" in str(ad.get("RemoteHost", "")) for ad in job.pool.jobs(job.id))


def test_a_central_manager_that_hangs_costs_new_matches_and_nothing_else(lent: Lent) -> None:
    math, physics = lent.pools.math, lent.pools.physics
    job = Job(math, "calm", "1000000", requirements='Machine == "desk.trio"')
    job.until_lines(4)
    with hung(physics, "collector", "negotiator"):
        late = math.submit('executable = /bin/true\ntransfer_executable = false\nshould_transfer_files = yes\n'
                           'requirements = Machine == "physics.trio"\nlog = late.log\nqueue\n')
        job.until_lines(len(job.text("out").splitlines()) + 4)
        job.checkpoint()
        (job.folder / "enough").touch()
        job.wait()
        job.check(len(job.text("out").splitlines()) - 1)
        assert math.status_of(f"{late}.0") == 1
    assert math.history(job.id)[0]["NumShadowStarts"] == 1
    math.wait("late.log")
    assert math.history(f"{late}.0")[0]["ExitCode"] == 0


@pytest.mark.timeout(900)
def test_a_job_whose_machine_vanishes_goes_on_elsewhere_long_before_its_lease_is_over(lent: Lent) -> None:
    """From its checkpoint; the machine, which is back later, gives its run up."""
    math, physics, desk = lent.pools.math, lent.pools.physics, lent.desk
    job = Job(math, "orphan", "12 3 6", requirements='Machine == "desk.trio"', job_lease_duration=str(LEASE_S))
    job.until_lines(4)
    assert runs_on(job, desk)
    job.checkpoint()
    job.go_on(3)
    job.until_lines(7)
    math.run("condor_qedit", job.id, "Requirements", 'Machine == "physics.trio"')
    desk.cut()
    until(lambda: runs_on(job, physics), "it to run on another machine", PATIENCE_S)
    job.go_on(6)
    job.wait()
    desk.cut(hears=True, speaks=True)
    job.check(12)
    assert job.text("job.log").count("001 (") == 2
    (ad,) = math.history(job.id)
    assert ad["LastRemoteHost"].endswith("@physics.trio%physics")
    until(lambda: not desk.scratch(), "the desk, which is back, to give up the run", PATIENCE_S)
    until(lambda: "Claimed" not in physics.run("condor_status", "-af", "State"), "it to be free again")
