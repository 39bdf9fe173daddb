"""What a simulated process finds as ``World.stores``: its databases and files on its machine's disk."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from condor_actors.simulation.world.disk import (
    AdsOnDisk,
    ClaimsOnDisk,
    Disk,
    SimulatedAccountant,
    SimulatedClaims,
    SimulatedOfflineAds,
    UsersOnDisk,
)
from condor_actors.simulation.world.queue_disk import QueueFile, SimulatedQueueStore

if TYPE_CHECKING:
    from condor_actors.simulation.world.process import Process

__all__ = ["Stores"]


class Stores:
    """``World.stores`` of one process."""

    def __init__(self, disk: Disk, process: Process) -> None:
        self._disk = disk
        self._process = process

    def open_queue(self, folder: Path) -> SimulatedQueueStore:
        """The job queue."""
        machine = self._process.machine
        kept = self._disk.file(f"{folder}/job_queue", lambda: QueueFile(partial(machine.pool.stored, machine)))
        return SimulatedQueueStore(self._disk, self._process, kept)

    def open_claims(self, path: Path) -> SimulatedClaims:
        """The startd's claims."""
        return SimulatedClaims(self._disk, self._process, self._disk.file(
            str(path), lambda: ClaimsOnDisk(self._process.machine.pool.checkers.claim_stored)))

    def open_offline_ads(self, path: Path) -> SimulatedOfflineAds:
        """The collector's ads of machines that sleep."""
        return SimulatedOfflineAds(self._disk, self._process, self._disk.file(str(path), AdsOnDisk))

    def open_accountant(self, path: Path) -> SimulatedAccountant:
        """The accountant's records."""
        return SimulatedAccountant(self._disk, self._process, self._disk.file(str(path), UsersOnDisk))
