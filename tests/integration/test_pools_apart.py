"""Two pools whose clocks are minutes apart lend each other machines; then one of them gets another name."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import attrs
import pytest

from tests.harness.federation import Federation, a_federation, introduce
from tests.harness.jumping_clock import JumpingClock
from tests.harness.namespaces import NEED_NAMESPACES, Machine
from tests.harness.standard_jobs import NEED_RUNTIME, Job
from tests.pool_fixture import fresh_folder, until

pytestmark = [*NEED_NAMESPACES, *NEED_RUNTIME]

AHEAD_S, BEHIND_S = 7 * 60, -11 * 60
VANILLA = """executable = /bin/sh
arguments = "-c 'while [ ! -e stop ]; do sleep 0.2; done; echo done'"
transfer_executable = false
should_transfer_files = yes
when_to_transfer_output = on_exit
transfer_input_files = word
output = {name}.out
log = {name}.log
queue
"""


@attrs.frozen
class Apart:
    """Two pools, and the clock of one of them."""

    pools: Federation
    clock: JumpingClock


@pytest.fixture(scope="module")
def apart() -> Iterator[Apart]:
    """Physics is ahead of math when they meet."""
    with fresh_folder() as folder:
        clock = JumpingClock(folder)
        clock.jump(AHEAD_S)
        with a_federation(physics_environment=clock.environment) as pools:
            until(lambda: "has dialled" in pools.math.run("condor_flock", "status"), "the gateways to meet")
            yield Apart(pools, clock)


def vanilla(math: Machine, name: str) -> str:
    """A job that runs until it is told to end, and does."""
    job = f"{math.submit(VANILLA.format(name=name))}.0"
    math.until_status(job, 2)
    return job


def end(math: Machine, job: str, name: str) -> None:
    """Have it end, and see that it ended once."""
    math.touch_beside(job, "stop")
    math.wait(f"{name}.log")
    assert (math.work / f"{name}.out").read_text() == "done\n"
    assert (math.work / f"{name}.log").read_text().count("005 (") == 1
    assert math.history(job)[0]["ExitCode"] == 0


def finish(job: Job) -> None:
    """Have a job of the standard universe end, and see that it did everything once."""
    (job.folder / "enough").touch()
    job.wait()
    job.check(len(job.text("out").splitlines()) - 1)


def test_jobs_end_once_where_clocks_are_minutes_apart(apart: Apart) -> None:
    """They are when the jobs begin, and the other way round when they end."""
    math, clock = apart.pools.math, apart.clock
    plain, caller = vanilla(math, "plain"), Job(math, "caller", "1000000")
    caller.until_lines(4)
    assert math.run("condor_q", "-run").count("%physics") == 2
    clock.jump(BEHIND_S)
    caller.checkpoint()
    caller.until_lines(len(caller.text("out").splitlines()) + 4)
    end(math, plain, "plain")
    finish(caller)
    for job in (plain, caller.id):
        ad = math.history(job)[0]
        assert ad["NumShadowStarts"] == 1
        assert 0 <= ad["RemoteWallClockTime"] < -BEHIND_S, ad["RemoteWallClockTime"]
    lent = math.run("condor_flock", "report").splitlines()[1]
    assert float(lent.split()[5]) < 0.1, lent


def made_anew(machine: Machine) -> None:
    """Take a machine, which is stopped, out of its pool."""
    shutil.rmtree(machine.dir / "etc" / "pool")


def test_a_pool_gets_another_name_while_it_runs_jobs_of_a_partner(apart: Apart) -> None:
    pools = apart.pools
    math, physics, gateway = pools.math, pools.physics, pools.physics_gateway
    plain, caller = vanilla(math, "moved"), Job(math, "mover", "1000000")
    caller.until_lines(4)
    physics.stop()
    caller.until_logged("(1) Job was checkpointed.")
    until(lambda: "004 (" in (math.work / "moved.log").read_text(), "the other job to have left, too")
    gateway.stop()
    for machine in (physics, gateway):
        made_anew(machine)
    physics.run("condor_pool", "create", "--name", "astro", "--interface", physics.address)
    physics.start()
    until((physics.dir / "run" / "collector.address").exists, "the collector to listen")
    gateway.run("condor_pool", "join", physics.run("condor_pool", "token", "--roles", "master,gateway").strip(),
                "--host", gateway.outside)
    gateway.start()
    introduce(physics, math, "--gateway", f"{pools.math_gateway.outside},{pools.standby.outside}")
    until(lambda: "calls itself a machine of the pool astro" in math.run("condor_flock", "status"),
          "math to be told of the stranger")
    assert math.status_of(plain) == 1
    introduce(math, physics, "--gateway", "none")
    math.run("condor_flock", "revoke", "physics")
    for machine in (math, pools.math_gateway, pools.standby):
        config = machine.dir / "config.d" / "zz.config"
        config.write_text(config.read_text().replace("FLOCK_TO = physics", "FLOCK_TO = astro"))
    math.run("condor_reconfig", "-all")
    math.until_status(plain, 2)
    until(lambda: math.run("condor_q", "-run").count("%astro") == 2, "both jobs to run in the pool of the new name")
    end(math, plain, "moved")
    finish(caller)
    assert "Job was checkpointed" in caller.text("job.log")
    assert "physics" not in math.run("condor_flock", "list")
