"""A machine that is revoked while a standard program of someone's runs there: it gets no further system call done."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.harness.namespaces import NEED_NAMESPACES, Machine, Wire
from tests.harness.standard_jobs import NEED_RUNTIME, Job
from tests.pool_fixture import until

pytestmark = [*NEED_NAMESPACES, *NEED_RUNTIME]
ESTABLISHED = "01"
CUT_S = 60.0
"""What is promised: so long after a revocation nothing is open that was opened with the certificate."""


def connections(machine: Machine, peer: str) -> set[tuple[str, str]]:
    """Both ends of a machine's TCP connections with another one's address."""
    (pid, *_) = machine.pids()
    wanted = "".join(f"{int(part):02X}" for part in reversed(peer.split(".")))
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return {(row[1], row[2]) for row in rows if row[3] == ESTABLISHED and row[2].startswith(wanted)}


@contextmanager
def standing_still(machine: Machine) -> Iterator[None]:
    """Meanwhile no process of a machine does anything: its kernel keeps the connections up, and nobody ends one."""
    stopped = machine.pids()
    try:
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def test_the_program_goes_on_elsewhere_from_its_checkpoint(wire: Wire) -> None:
    """All connections with the machine are ended at home: links, the stream of the run, its channel."""
    manager, submit, execute = wire.trio()
    job = Job(submit, "home", "12 3 8", rank='Machine == "execute.trio"')
    job.until_lines(4)
    assert str(submit.jobs(job.id)[0]["RemoteHost"]).endswith("@execute.trio")
    job.checkpoint()
    job.go_on(3)
    job.until_lines(9)
    with standing_still(execute):
        before = connections(submit, execute.address)
        assert len(before) >= 3
        manager.run("condor_pool", "revoke", "execute.trio")

        def host_log() -> str:
            return "".join(path.read_text() for path in (submit.dir / "log").glob("ShadowHostLog*"))

        # Its link alone would take the stream along, a little later: the stream was cut for what it is.
        until(lambda: any("a connection to" in line and "is cut: certificate" in line
                          for line in host_log().splitlines()), "the shadow host to cut the stream", CUT_S)
        until(lambda: not before & connections(submit, execute.address), "no connection of before is left", CUT_S)
        until(lambda: job.text("job.log").count("001 (") == 2, "it runs elsewhere", 180.0)
    assert str(submit.jobs(job.id)[0]["RemoteHost"]).endswith("@manager.trio")
    job.go_on(8)
    job.wait()
    job.check(12)
