"""The simulated edges take what the production's take: a method that changes there has to change here."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from condor_actors.daemons.schedd.shadow_processes import HostProcesses
from condor_actors.daemons.schedd.spool import Spool
from condor_actors.machine.run.launch import Launcher
from condor_actors.machine.run.run_host import RunHost
from condor_actors.machine.run.run_processes import RunProcesses
from condor_actors.machine.run.sandbox import Sandbox
from condor_actors.machine.run.sandbox_root import SandboxRoot
from condor_actors.machine.sensors.readings import Readings
from condor_actors.machine.supervisor.claim_file import ClaimFile
from condor_actors.machine.supervisor.master_host import Host
from condor_actors.machine.supervisor.starter_process import StarterHosts as RealStarterHosts
from condor_actors.simulation.world.disk import SimulatedAccountant, SimulatedClaims, SimulatedLogs
from condor_actors.simulation.world.hosting import SimulatedSpool
from condor_actors.simulation.world.jobs import SimulatedLauncher, SimulatedProcesses, SimulatedRunHost
from condor_actors.simulation.world.machine import MasterHost, ShadowHosts, SimulatedReadings, StarterHosts
from condor_actors.simulation.world.queue_disk import SimulatedQueueStore
from condor_actors.simulation.world.sandboxes import SimulatedSandbox, SimulatedSandboxes
from condor_actors.store.accountant import AccountantStore
from condor_actors.store.queue_store import QueueStore
from condor_actors.userlog.writer import LogFiles

PAIRS: list[tuple[type, type]] = [
    (QueueStore, SimulatedQueueStore), (AccountantStore, SimulatedAccountant), (ClaimFile, SimulatedClaims),
    (LogFiles, SimulatedLogs), (Sandbox, SimulatedSandbox), (SandboxRoot, SimulatedSandboxes),
    (RunHost, SimulatedRunHost), (RunProcesses, SimulatedProcesses), (Launcher, SimulatedLauncher), (Host, MasterHost),
    (RealStarterHosts, StarterHosts), (HostProcesses, ShadowHosts), (Readings, SimulatedReadings),
    (Spool, SimulatedSpool),
]


def methods_of(cls: type) -> dict[str, Any]:
    return {name: value for name, value in inspect.getmembers(cls, inspect.isfunction) if not name.startswith("_")}


@pytest.mark.parametrize(("real", "simulated"), PAIRS, ids=lambda cls: cls.__name__)
def test_every_method_is_there_and_takes_the_same(real: type, simulated: type) -> None:
    theirs = methods_of(simulated)
    for name, method in methods_of(real).items():
        assert name in theirs, f"{simulated.__name__} has no {name}"
        wanted = list(inspect.signature(method).parameters)
        assert list(inspect.signature(theirs[name]).parameters) == wanted, name
