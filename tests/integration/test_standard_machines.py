"""A job of the standard universe on machines that share nothing but a wire: its files are where it was submitted."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from condor_actors.machine.native_programs import runtime_is_there
from tests.integration.test_standard_universe import LONG, PYTHON, expected
from tests.integration.test_three_machines import Machine, Wire, ip, wire
from tests.pool_fixture import until

__all__ = ["wire"]

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None,
                       reason="needs root and iproute2 for network namespaces"),
    pytest.mark.skipif(not runtime_is_there() or not Path(PYTHON).exists(), reason="the runtime is not built"),
]


def trio(wire: Wire) -> tuple[Machine, Machine, Machine]:
    """A pool of a manager, a machine to submit from, and one more to execute on."""
    manager, submit, execute = wire.machine("manager"), wire.machine("submit"), wire.machine("execute")
    manager.run("condor_pool", "create", "--name", "trio", "--interface", manager.address)
    manager.start()
    until((manager.folder / "run" / "collector.address").exists, "the collector to listen")
    for machine, roles in ((submit, "master,schedd"), (execute, "master,startd")):
        token = manager.run("condor_pool", "token", "--roles", roles).strip()
        machine.run("condor_pool", "join", token)
        machine.start()
    until(lambda: {"manager.trio", "execute.trio"} <= set(manager.run("condor_status", "-af", "Machine").split()),
          "both execute machines in the collector")
    until((submit.folder / "run" / "schedd.address").exists, "the schedd to listen")
    return manager, submit, execute


class Home:
    """The folder of one job of two pauses, on the machine it is submitted from."""

    def __init__(self, submit: Machine, requirements: str) -> None:
        self.path = submit.folder / "home"
        self.path.mkdir()
        self.path.chmod(0o777)
        (self.path / "program.py").write_text(LONG)
        (self.path / "in").write_text("hello\n")
        self._submit = submit
        submit.run("condor_submit", stdin=f"""
            universe = standard
            executable = {PYTHON}
            arguments = program.py 12 3 8
            initialdir = {self.path}
            rank = Machine == "execute.trio"
            requirements = {requirements}
            input = in
            output = out
            error = err
            log = job.log
            queue
        """)

    def log(self) -> str:
        """The job's event log."""
        return (self.path / "job.log").read_text() if (self.path / "job.log").exists() else ""

    def until_lines(self, count: int) -> None:
        """Until it has printed so much."""
        out = self.path / "out"
        until(lambda: out.exists() and len(out.read_text().splitlines()) >= count, f"{count} lines of output")

    def go_on(self, step: int) -> None:
        """Let it do the steps after this one."""
        (self.path / f"go-on-{step}").touch()

    def where(self) -> str:
        """The slot that it runs on."""
        return self._submit.run("condor_q", "-all", "-af", "RemoteHost").strip()

    def finish(self) -> None:
        """Wait for its end: everything is as if nothing had happened."""
        self._submit.run("condor_wait", "-wait", "90", str(self.path / "job.log"))
        assert (self.path / "err").read_text() == ""
        assert (self.path / "out").read_text() == expected(12)
        assert (self.path / "log").read_text() == "".join(f"{step}\n" for step in range(12))
        assert self.log().count("005 (") == 1


def test_a_job_moves_from_machine_to_machine(wire: Wire) -> None:  # noqa: F811
    _, submit, _ = trio(wire)
    home = Home(submit, 'Machine == "execute.trio"')
    home.until_lines(4)
    other = submit.run("condor_q", "-all", "-af:r", "Requirements").strip().replace("execute.trio", "manager.trio")
    submit.run("condor_qedit", "1.0", "Requirements", other)
    submit.run("condor_vacate_job", "1.0")
    until(lambda: "(1) Job was checkpointed." in home.log(), "it has left with a checkpoint")
    home.go_on(3)
    home.until_lines(9)
    assert home.where().endswith("@manager.trio")
    home.go_on(8)
    home.finish()
    assert int(submit.run("condor_history", "-af", "CkptBytesSent")) > 1_000_000


def kill_everything(machine: Machine) -> None:
    """Kill all that runs on the machine, at once."""
    for pid in subprocess.run(["ip", "netns", "pids", machine.namespace], capture_output=True, text=True,
                              check=True).stdout.split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    assert machine.master is not None
    machine.master.wait()
    machine.master = None


def dies_meanwhile(wire: Wire, silently: bool) -> None:  # noqa: F811
    """A job that has done more than its checkpoint knows goes on elsewhere when its machine is gone."""
    _, submit, execute = trio(wire)
    home = Home(submit, "true")
    home.until_lines(4)
    assert home.where().endswith("@execute.trio")
    submit.run("condor_checkpoint", "job", "1.0")
    until(lambda: "003 (" in home.log(), "a checkpoint at home")
    home.go_on(3)
    home.until_lines(9)
    if silently:  # it says no other word
        ip("-n", wire.hub, "link", "set", f"{wire.tag}o{execute.address.rpartition('.')[2]}", "down")
    kill_everything(execute)
    until(lambda: home.log().count("001 (") == 2, "it runs elsewhere", 800.0 if silently else 120.0)
    assert home.where().endswith("@manager.trio")
    home.go_on(8)
    home.finish()


def test_a_machine_that_is_gone_at_once(wire: Wire) -> None:  # noqa: F811
    dies_meanwhile(wire, silently=False)


@pytest.mark.soak
def test_a_machine_that_loses_its_power(wire: Wire) -> None:  # noqa: F811
    dies_meanwhile(wire, silently=True)
