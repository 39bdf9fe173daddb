"""Simulated disks: what the daemons keep, what of it is synced, and what a machine without power loses.

Theory: the stores here have the production stores' interface and meaning: a commit is all or nothing and durable when
it returns.  Each keeps its content twice: as processes see it, and as it is on the platter.  A write changes the first;
a sync copies it to the second.  A process that dies loses nothing that it wrote; a machine that loses its power loses
whatever was not synced.  A disk can be full or sick, and a process can be made to die right before or right after a
sync, which are the moments that matter.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import attrs

from condor_actors.cores.collector.offline_ads import DropAd, KeepAd
from condor_actors.cores.negotiator.accountant import ForgetUsers, SaveUsers
from condor_actors.cores.negotiator.reservations import DropReservation, Reservation, SaveReservation
from condor_actors.cores.negotiator.user_priority import UserRecord
from condor_actors.cores.startd.claims.claim import ClaimRecord, DropClaim, SaveClaim, SaveFact
from condor_actors.simulation.world.process import Killed
from condor_actors.userlog.writer import LogFiles

if TYPE_CHECKING:
    from condor_actors.simulation.world.machine import SimulatedMachine
    from condor_actors.simulation.world.process import Process

__all__ = ["ClaimsOnDisk", "Committer", "Disk", "DiskTrouble", "Kept", "LogOnDisk", "SimulatedAccountant",
           "SimulatedClaims", "SimulatedLogs", "UsersOnDisk"]


class DiskTrouble(OSError):
    """An injected failure of a disk."""


class Disk:
    """One machine's disk.

    Attributes:
        full, sick: writes fail with ENOSPC, EIO.
        deadly: a process (its kind) dies at its next commit: ``before`` or ``after`` it is durable.
        files: every file and store, by path.
    """

    def __init__(self) -> None:
        self.full = False
        self.sick = False
        self.deadly: dict[str, str] = {}
        self.files: dict[str, Any] = {}
        self.failures = 0
        self.commits = 0

    def check(self, writing: bool = True) -> None:
        """Fail when the disk does.

        Raises:
            DiskTrouble: ENOSPC (when writing) or EIO.
        """
        if self.sick or (self.full and writing):
            self.failures += 1
            number = errno.EIO if self.sick else errno.ENOSPC
            raise DiskTrouble(number, os.strerror(number))

    def lose_power(self) -> None:
        """What was not synced is gone."""
        for file in self.files.values():
            file.revert()

    def file(self, path: str, make: Callable[[], Any]) -> Any:
        """The file at a path, made when it is not there."""
        found = self.files.get(path)
        if found is None:
            found = self.files[path] = make()
        return found


class Kept:
    """Something on a disk that is written in operations and synced; see the module."""

    def __init__(self) -> None:
        self.unsynced: list[Any] = []

    def write(self, operations: Sequence[Any]) -> None:
        """Change what processes see."""
        for operation in operations:
            self.apply(operation)
        self.unsynced += operations

    def sync(self) -> None:
        """What was written is on the platter."""
        if self.unsynced:
            for operation in self.unsynced:
                self.settle(operation)
            self.unsynced = []

    def apply(self, operation: Any) -> None:
        """Change what processes see."""
        raise NotImplementedError

    def settle(self, operation: Any) -> None:
        """Change what is on the platter."""
        raise NotImplementedError

    def revert(self) -> None:
        """Back to what is on the platter."""
        raise NotImplementedError


class ClaimsOnDisk(Kept):
    """A startd's claims on a disk; ``stored`` hears of each that is on the platter."""

    def __init__(self, stored: Callable[[ClaimRecord], None]) -> None:
        super().__init__()
        self._stored = stored
        self.seen: dict[str, ClaimRecord] = {}
        self.platter: dict[str, ClaimRecord] = {}
        self.facts: dict[str, Any] = {}

    def apply(self, operation: Any) -> None:
        """A claim, as processes see it."""
        if isinstance(operation, SaveFact):
            self.facts[operation.name] = operation.value
        else:
            _keep_claim(self.seen, operation)

    def settle(self, operation: Any) -> None:
        """A claim, on the platter."""
        if not isinstance(operation, SaveFact):
            _keep_claim(self.platter, operation)
        if isinstance(operation, SaveClaim):
            self._stored(operation.record)

    def revert(self) -> None:
        """Back to the platter."""
        if self.unsynced:
            self.unsynced = []
            self.seen = dict(self.platter)


def _keep_claim(claims: dict[str, ClaimRecord], operation: Any) -> None:
    if isinstance(operation, SaveClaim):
        claims[operation.record.claim_id] = operation.record
    elif isinstance(operation, DropClaim):
        claims.pop(operation.claim_id, None)
    else:
        raise TypeError(f"a claim file cannot keep {operation!r}")


class AdsOnDisk(Kept):
    """The ads of machines that sleep, on a collector's disk."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, KeepAd] = {}
        self.platter: dict[str, KeepAd] = {}

    def apply(self, operation: Any) -> None:
        """An ad, as processes see it."""
        _keep_ad(self.seen, operation)

    def settle(self, operation: Any) -> None:
        """An ad, on the platter."""
        _keep_ad(self.platter, operation)

    def revert(self) -> None:
        """Back to the platter."""
        if self.unsynced:
            self.unsynced = []
            self.seen = dict(self.platter)


def _keep_ad(ads: dict[str, KeepAd], operation: KeepAd | DropAd) -> None:
    if isinstance(operation, KeepAd):
        ads[operation.key] = operation
    else:
        ads.pop(operation.key, None)


class UsersOnDisk(Kept):
    """An accountant's records on a disk."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, UserRecord] = {}
        self.platter: dict[str, UserRecord] = {}
        self.reservations: dict[str, Reservation] = {}

    def write(self, operations: Sequence[Any]) -> None:
        """Records change later: keep copies."""
        super().write([SaveUsers(tuple(attrs.evolve(each) for each in operation.records))
                       if isinstance(operation, SaveUsers) else operation for operation in operations])

    def apply(self, operation: Any) -> None:
        """A record, as processes see it."""
        if isinstance(operation, SaveReservation):
            self.reservations[operation.reservation.name] = operation.reservation
        elif isinstance(operation, DropReservation):
            self.reservations.pop(operation.name, None)
        else:
            _keep_users(self.seen, operation)

    def settle(self, operation: Any) -> None:
        """A record, on the platter."""
        if not isinstance(operation, (SaveReservation, DropReservation)):
            _keep_users(self.platter, operation)

    def revert(self) -> None:
        """Back to the platter."""
        if self.unsynced:
            self.unsynced = []
            self.seen = dict(self.platter)


def _keep_users(users: dict[str, UserRecord], operation: Any) -> None:
    if isinstance(operation, SaveUsers):
        users.update((each.name, each) for each in operation.records)
    elif isinstance(operation, ForgetUsers):
        for name in operation.names:
            users.pop(name, None)
    else:
        raise TypeError(f"the accountant does not store {type(operation).__name__}")


class LogOnDisk(Kept):
    """A user log on a disk; ``logged`` hears of all lines that are on the platter."""

    def __init__(self, logged: Callable[[bytes], None]) -> None:
        super().__init__()
        self._logged = logged
        self.seen = bytearray()
        self.platter = bytearray()

    def empty(self) -> None:
        """Its user begins it anew."""
        self.unsynced, self.seen, self.platter = [], bytearray(), bytearray()

    def apply(self, operation: bytes) -> None:
        """Some lines, as processes see them."""
        self.seen += operation

    def settle(self, operation: bytes) -> None:
        """Some lines, on the platter."""
        self.platter += operation
        self._logged(operation)

    def revert(self) -> None:
        """Back to the platter."""
        if self.unsynced:
            self.unsynced = []
            self.seen = bytearray(self.platter)


class SimulatedLogs(LogFiles):
    """User logs of one machine."""

    def __init__(self, machine: SimulatedMachine) -> None:
        self._machine = machine
        self._disk = machine.disk

    def append(self, path: str, data: bytes, *, lock: bool, sync: bool) -> None:
        """Add to a log's end."""
        self._disk.check()
        machine = self._machine
        log = self._disk.file(path, lambda: LogOnDisk(partial(machine.pool.logged, machine, path)))
        log.write([data])
        if sync:
            log.sync()

    def open(self, path: str) -> BinaryIO:
        """Read a log."""
        if path not in self._disk.files:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return io.BytesIO(bytes(self._disk.files[path].seen))


class Committer:
    """One process's hold on something kept on a disk."""

    def __init__(self, disk: Disk, process: Process, kept: Any) -> None:
        self._disk = disk
        self._process = process
        self._kept = kept

    def commit(self, operations: Sequence[Any]) -> None:
        """All or nothing, and durable when it returns.

        Raises:
            DiskTrouble: nothing of it was written.
        """
        moment = self._disk.deadly.pop(self._process.kind, "") if self._disk.deadly else ""
        if moment == "before":
            raise Killed
        self._disk.check()
        self._disk.commits += 1
        self._kept.write(operations)
        self.sync()
        if moment == "after":
            raise Killed

    def sync(self) -> None:
        """Wait for the platter."""
        self._kept.sync()

    def close(self) -> None:
        """Nothing is held open."""


class SimulatedClaims(Committer):
    """As :class:`~condor_actors.machine.supervisor.claim_file.ClaimFile`."""

    _kept: ClaimsOnDisk

    @property
    def facts(self) -> dict[str, Any]:
        """What else is remembered."""
        return self._kept.facts

    @property
    def records(self) -> tuple[ClaimRecord, ...]:
        """The claims kept."""
        return tuple(self._kept.seen.values())


class SimulatedOfflineAds(Committer):
    """As :class:`~condor_actors.store.offline_ads.OfflineAdsFile`."""

    _kept: AdsOnDisk

    @property
    def kept(self) -> Mapping[str, KeepAd]:
        """The ads, by key."""
        return self._kept.seen


class SimulatedAccountant(Committer):
    """As :class:`~condor_actors.store.accountant.AccountantStore`."""

    problem = ""
    _kept: UsersOnDisk

    def open(self) -> None:
        """It is."""

    def reservations(self) -> tuple[Reservation, ...]:
        """Every reservation."""
        return tuple(self._kept.reservations.values())

    def load(self) -> dict[str, UserRecord]:
        """Every user's record."""
        found = {name: attrs.evolve(record, holding=0.0, slots=0, wanting=False)
                 for name, record in self._kept.seen.items()}
        for record in found.values():
            record.charged_s = record.updated_s
        return found
