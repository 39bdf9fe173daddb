"""Machines that sleep are woken by demand: a real pool, a real packet on a real wire."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from condor_actors.messages.advertise import AdKind, UpdateAd
from condor_actors.messages.envelope import Done
from condor_actors.wire.blocking import connect
from tests.harness.namespaces import NEED_NAMESPACES, Machine, Wire, a_wire
from tests.harness.proc_files import proc_file
from tests.integration.test_power import heard_by, mac_of, packets
from tests.pool_fixture import until

pytestmark = NEED_NAMESPACES

CONFIG = """
DAEMON_LIST = $(DAEMON_LIST) ROOSTER
ROOSTER_INTERVAL = 1
"""
SLEEPS = """MyType = "Machine"
TargetType = "Job"
Name = "slot1@sleeper.trio"
Machine = "sleeper.trio"
MyAddress = "<{address}:9616>"
Arch = "X86_64"
OpSys = "LINUX"
HasFileTransfer = true
State = "Unclaimed"
Activity = "Idle"
Cpus = 1
Memory = 1000
Disk = 1000000
MachineResources = "Cpus Memory Disk"
Requirements = TARGET.JobUniverse == 5
Offline = true
Unhibernate = MachineLastMatchTime =!= undefined
HardwareAddress = "{mac}"
SubnetMask = "255.255.255.0"
IsWakeAble = true
"""


@pytest.fixture(scope="module")
def there() -> Iterator[tuple[Wire, Machine, Machine]]:
    with a_wire() as wire:
        yield wire, wire.manager(config=CONFIG), wire.machine("sleeper")


def asleep(manager: Machine, *wanted: str) -> list[str]:
    """Attributes of the slots that sleep, as soon as the collector answers."""
    done = manager.tool("condor_status", "-constraint", "Offline", "-af", *wanted)
    return done.stdout.split() if done.returncode == 0 else []


def test_a_job_wakes_a_machine_that_sleeps(there: tuple[Wire, Machine, Machine], tmp_path: Path) -> None:
    _, manager, sleeper = there
    mac = mac_of(sleeper)
    with connect(f"unix:{manager.dir}/run/collector.sock") as client:
        ad = SLEEPS.format(address=sleeper.address, mac=mac).encode()
        assert client.ask("collector", UpdateAd(ad_kind=AdKind.SLOT, ad=ad)) == Done()
    (pid,) = [pid for pid in manager.pids() if b"services\0collector" in proc_file(pid, "cmdline")]
    os.kill(pid, signal.SIGKILL)
    until(lambda: asleep(manager, "Name", "MachineLastMatchTime") == ["slot1@sleeper.trio", "undefined"],
          "the collector that was started again to know of the machine")
    with heard_by(sleeper, tmp_path / "heard") as heard:
        manager.submit("executable = /bin/true\ntransfer_executable = false\nrequest_memory = 1\nrequest_disk = 1\n"
                       'requirements = Machine == "sleeper.trio"\nqueue\n')
        until(lambda: packets(heard)[:1] == ["ff" * 6 + mac.replace(":", "") * 16], "the packet that wakes it")
    assert asleep(manager, "MachineLastMatchTime")[0].isdecimal()
    log = manager.dir / "log"
    assert any("sleeper.trio is woken" in path.read_text() for path in log.glob("Rooster*"))
