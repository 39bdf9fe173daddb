"""A machine that is revoked while a standard program of somebody's runs there: it gets no further system call done."""

from __future__ import annotations

from pathlib import Path

from tests.harness.namespaces import NEED_NAMESPACES, Machine, Wire
from tests.harness.standard_jobs import NEED_RUNTIME, Job
from tests.pool_fixture import until

pytestmark = [*NEED_NAMESPACES, *NEED_RUNTIME]
ESTABLISHED = "01"


def connections(machine: Machine, peer: str) -> int:
    """How many TCP connections a machine has with another one's address."""
    (pid, *_) = machine.pids()
    wanted = "".join(f"{int(part):02X}" for part in reversed(peer.split(".")))
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return sum(row[3] == ESTABLISHED and row[2].startswith(wanted) for row in rows)


def test_the_program_goes_on_elsewhere_from_its_checkpoint(wire: Wire) -> None:
    """All connections with the machine end: links, the stream of the run, its channel."""
    manager, submit, execute = wire.trio()
    job = Job(submit, "home", "12 3 8", rank='Machine == "execute.trio"')
    job.until_lines(4)
    assert str(submit.jobs(job.id)[0]["RemoteHost"]).endswith("@execute.trio")
    job.checkpoint()
    job.go_on(3)
    job.until_lines(9)
    assert connections(submit, execute.address) >= 3
    manager.run("condor_pool", "revoke", "execute.trio")
    until(lambda: job.text("job.log").count("001 (") == 2, "it runs elsewhere", 180.0)
    assert str(submit.jobs(job.id)[0]["RemoteHost"]).endswith("@manager.trio")
    until(lambda: connections(submit, execute.address) == 0, "no connection with the machine is left")
    job.go_on(8)
    job.wait()
    job.check(12)
