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
from tests.pool_fixture import PersonalPool, fresh_folder, until

needs_namespaces = pytest.mark.parametrize((), [pytest.param(marks=NEED_NAMESPACES)])

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


@needs_namespaces
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
    told = " ".join(manager.tool("condor_q", "-better-analyze").stdout.split())
    assert "1 slot whose machine sleeps would suit it. sleeper.trio is being woken for waiting jobs" in told
    assert "1 match, and their machines sleep 0 are able to run your job" in told
    log = manager.dir / "log"
    assert any("sleeper.trio is woken" in path.read_text() for path in log.glob("Rooster*"))


# ---- a machine that goes to sleep by itself

PUT_TO_SLEEP = """#!/bin/sh
# Asleep: until a packet comes, here a file.
if [ "$1" = ad ]; then echo 'HibernationSupportedStates = "S3"'; echo 'HibernationMethod = "test"'; exit 0; fi
echo "$@" >> {place}/orders
while [ ! -e {place}/packet ]; do sleep 0.1; done
rm {place}/packet
"""
WAKE = """#!/bin/sh
grep -q '^HibernationState = "S3"' && touch {place}/packet
"""
SLEEPY = """
DAEMON_LIST = $(DAEMON_LIST) ROOSTER
ROOSTER_INTERVAL = 1
ROOSTER_WAKEUP_CMD = {place}/wake
HIBERNATION_PLUGIN = {place}/put_to_sleep
HIBERNATION_OVERRIDE_WOL = true
HIBERNATE_CHECK_INTERVAL = 1
HIBERNATE = ifThenElse(State == "Unclaimed", "RAM", "NONE")
"""


@pytest.fixture(scope="module")
def sleepy() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        place = folder / "site"
        place.mkdir()
        place.chmod(0o777)
        for name, text in (("put_to_sleep", PUT_TO_SLEEP), ("wake", WAKE)):
            (place / name).write_text(text.format(place=place))
            (place / name).chmod(0o755)
        made = PersonalPool(folder, slots=2, config=SLEEPY.format(place=place))
        yield made
        made.stop()


def power_of(pool: PersonalPool) -> set[str]:
    done = pool.tool("condor_status", "-af:,", "HibernationState", "Offline")
    return set(done.stdout.splitlines()) if done.returncode == 0 else set()


def test_a_pool_whose_only_machine_sleeps_runs_a_job(sleepy: PersonalPool) -> None:
    place = sleepy.folder / "site"
    until((place / "orders").exists, "the machine to be put to sleep")
    assert (place / "orders").read_text() == "set S3\n"
    assert power_of(sleepy) == {"S3, true"}
    sleepy.submit("executable = /bin/echo\narguments = awake\noutput = out\ntransfer_executable = false\n"
                  "should_transfer_files = yes\nlog = job.log\nqueue\n")
    sleepy.wait()
    assert (sleepy.work / "out").read_text() == "awake\n"
    until(lambda: power_of(sleepy) == {"NONE, undefined"}, lambda: f"it is awake: {power_of(sleepy)}")
    assert (place / "orders").read_text() == "set S3\n", "a machine that was woken stays awake for an hour"
    log = (sleepy.dir / "log" / "StartdLog").read_text()
    assert "every slot wants S3" in log
    assert "the machine is awake again" in log
