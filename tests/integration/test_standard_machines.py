"""A job of the standard universe on machines that share nothing but a wire: its files are where it was submitted."""

from __future__ import annotations

import contextlib
import os
import signal

import pytest

from tests.harness.namespaces import NEED_NAMESPACES, Machine, Wire, ip
from tests.harness.standard_jobs import NEED_RUNTIME, Job
from tests.pool_fixture import until

pytestmark = [*NEED_NAMESPACES, *NEED_RUNTIME]


def job_of_two_pauses(submit: Machine, requirements: str) -> Job:
    """One that would rather run on the machine that only executes."""
    return Job(submit, "home", "12 3 8", rank='Machine == "execute.trio"', requirements=requirements)


def where(job: Job) -> str:
    """The slot that it runs on."""
    return str(job.pool.jobs(job.id)[0]["RemoteHost"])


def test_a_job_moves_from_machine_to_machine(wire: Wire) -> None:
    _, submit, _ = wire.trio()
    job = job_of_two_pauses(submit, 'Machine == "execute.trio"')
    job.until_lines(4)
    other = submit.run("condor_q", "-all", "-af:r", "Requirements").strip().replace("execute.trio", "manager.trio")
    submit.run("condor_qedit", job.id, "Requirements", other)
    submit.run("condor_vacate_job", job.id)
    job.until_logged("(1) Job was checkpointed.")
    job.go_on(3)
    job.until_lines(9)
    assert where(job).endswith("@manager.trio")
    job.go_on(8)
    job.wait()
    job.check(12)
    assert int(submit.run("condor_history", "-af", "CkptBytesSent")) > 1_000_000


def kill_everything(machine: Machine) -> None:
    """Kill all that runs on the machine, at once."""
    for pid in machine.pids():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert machine.master is not None
    machine.master.wait()
    machine.master = None


def dies_meanwhile(wire: Wire, silently: bool) -> None:
    """A job that has done more than its checkpoint knows goes on elsewhere when its machine is gone."""
    _, submit, execute = wire.trio()
    job = job_of_two_pauses(submit, "true")
    job.until_lines(4)
    assert where(job).endswith("@execute.trio")
    job.checkpoint()
    job.go_on(3)
    job.until_lines(9)
    if silently:  # it says no other word
        ip("-n", wire.hub, "link", "set", f"{wire.tag}o{execute.address.rpartition('.')[2]}", "down")
    kill_everything(execute)
    until(lambda: job.text("job.log").count("001 (") == 2, "it runs elsewhere", 120.0)
    assert where(job).endswith("@manager.trio")
    job.go_on(8)
    job.wait()
    job.check(12)


def test_a_machine_that_is_gone_at_once(wire: Wire) -> None:
    dies_meanwhile(wire, silently=False)


@pytest.mark.soak
def test_a_machine_that_loses_its_power(wire: Wire) -> None:
    dies_meanwhile(wire, silently=True)
