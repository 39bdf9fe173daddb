"""A job of the standard universe on machines that share nothing but a wire: its files are where it was submitted."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from condor_actors.machine.native_programs import runtime_is_there
from tests.integration.test_standard_universe import LONG, PYTHON, expected
from tests.integration.test_three_machines import Wire, wire
from tests.pool_fixture import until

__all__ = ["wire"]

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None,
                       reason="needs root and iproute2 for network namespaces"),
    pytest.mark.skipif(not runtime_is_there() or not Path(PYTHON).exists(), reason="the runtime is not built"),
]


def test_a_job_moves_from_machine_to_machine(wire: Wire) -> None:  # noqa: F811
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
    home = submit.folder / "home"
    home.mkdir()
    home.chmod(0o777)
    (home / "program.py").write_text(LONG)
    (home / "in").write_text("hello\n")
    submit.run("condor_submit", stdin=f"""
        universe = standard
        executable = {PYTHON}
        arguments = program.py 12 3 8
        initialdir = {home}
        rank = Machine == "execute.trio"
        requirements = Machine == "execute.trio"
        input = in
        output = out
        error = err
        log = job.log
        queue
    """)
    log = home / "job.log"

    def lines(count: int) -> None:
        until(lambda: (home / "out").exists() and len((home / "out").read_text().splitlines()) >= count,
              f"{count} lines of output")

    lines(4)
    other = submit.run("condor_q", "-all", "-af:r", "Requirements").strip().replace("execute.trio", "manager.trio")
    submit.run("condor_qedit", "1.0", "Requirements", other)
    submit.run("condor_vacate_job", "1.0")
    until(lambda: "(1) Job was checkpointed." in log.read_text(), "it has left with a checkpoint")
    (home / "go-on-3").touch()
    lines(9)
    assert submit.run("condor_q", "-all", "-af", "RemoteHost").strip().endswith("@manager.trio")
    (home / "go-on-8").touch()
    submit.run("condor_wait", "-wait", "90", str(log))
    assert (home / "err").read_text() == ""
    assert (home / "out").read_text() == expected(12)
    assert (home / "log").read_text() == "".join(f"{step}\n" for step in range(12))
    assert int(submit.run("condor_history", "-af", "CkptBytesSent")) > 1_000_000
