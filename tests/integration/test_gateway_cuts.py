"""The line between two gateways is cut in the middle of something, without a word to either end.

The gateways of one pool are killed meanwhile, so that what the other pool's hold is dead when the line is back.
"""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness.federation import Federation, a_federation
from tests.harness.namespaces import NEED_NAMESPACES, Machine
from tests.harness.standard_jobs import NEED_RUNTIME, Job
from tests.pool_fixture import until

pytestmark = NEED_NAMESPACES

SIZE_MB = 24
RATE = "16mbit"
"""At this one the input takes twelve seconds, and so long there is a middle to be hit."""


@pytest.fixture(scope="module")
def pools() -> Iterator[Federation]:
    """Two pools whose gateways have met."""
    with a_federation() as made:
        until(lambda: "has dialled" in made.math.run("condor_flock", "status"), "the gateways to meet")
        until(lambda: "physics.trio" in made.math.tool("condor_status", "-pool", "physics", "-af", "Machine").stdout,
              "a machine of the other pool")
        yield made


def gateway_pid(machine: Machine) -> int:
    """The process of a machine's gateway; 0: there is none."""
    address = machine.dir / "run" / "gateway.address"
    pid = int(address.read_text().split()[1]) if address.exists() else 0
    return pid if pid in machine.pids() else 0


@contextmanager
def cut_off(pools: Federation) -> Iterator[None]:
    """Nothing passes between the pools, and the ends of their connections in math are gone."""
    with pools.outside.cut(pools.physics_gateway):
        for machine in (pools.math_gateway, pools.standby):
            before = gateway_pid(machine)
            os.kill(before, signal.SIGKILL)
            until(lambda at=machine, old=before: gateway_pid(at) not in (0, old), "a new gateway")
        until(lambda: pools.math.run("condor_flock", "status").count("NOT REACHED") == 2,
              "the other pool to be out of reach")
        yield


def arrived(machine: Machine) -> int:
    """Bytes of all files of jobs on a machine."""
    found = 0
    for folder, _, names in os.walk(machine.dir / "execute"):
        for name in names:
            try:
                found += os.lstat(Path(folder) / name).st_size
            except FileNotFoundError:
                continue
    return found


def test_in_the_middle_of_a_file(pools: Federation) -> None:
    math = pools.math
    content = os.urandom(SIZE_MB << 20)
    (math.work / "large").write_bytes(content)
    with pools.outside.slow(pools.physics_gateway, RATE):
        cluster = math.submit("executable = /usr/bin/sha256sum\narguments = large\ntransfer_executable = false\n"
                              "transfer_input_files = large\nshould_transfer_files = yes\noutput = sum\nerror = err\n"
                              "log = large.log\nqueue\n")
        until(lambda: arrived(pools.physics) > 1 << 20, "the first part of the file")
        with cut_off(pools):
            pass
    math.wait("large.log")
    assert (math.work / "sum").read_text().split() == [hashlib.sha256(content).hexdigest(), "large"]
    assert (math.work / "large.log").read_text().count("005 (") == 1
    assert math.history(f"{cluster}.0")[0]["ExitCode"] == 0


@NEED_RUNTIME[0]
@NEED_RUNTIME[1]
def test_in_the_middle_of_a_system_call(pools: Federation) -> None:
    """The program does nothing but such calls, so there is one on its way at any time; it waits, and goes on."""
    job = Job(pools.math, "caller", "1000000")
    job.until_lines(5)
    with cut_off(pools):
        done = len(job.text("out").splitlines())
    job.until_lines(done + 5)
    (job.folder / "enough").touch()
    job.wait()
    job.check(len(job.text("out").splitlines()) - 1)
    assert job.text("job.log").count("001 (") == 1
    assert pools.math.history(job.id)[0]["NumShadowStarts"] == 1
