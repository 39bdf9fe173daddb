"""What a negotiator does while its accountant's file takes nothing: a full, unwritable or broken SPOOL.

Theory: matches need no disk.  What users hold is known from the ads, and the records that should have been saved are
kept here until the file takes them; if the negotiator is killed meanwhile, the usage since then is lost.  A change that
an administrator wants must not be lost, so it is refused with the reason.  A negotiator that starts without being able
to open its file must not give everybody the same priority, and least of all save that: it waits, and tells those
who ask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import attrs
from twisted.logger import Logger

from condor_actors.actors.supervision import StoreUnavailable
from condor_actors.cores.negotiator.accountant import SaveUsers
from condor_actors.cores.negotiator.user_priority import UserRecord
from condor_actors.messages.envelope import Refused

__all__ = ["AccountantOutage"]

FIRST_LOOK_S: Final = 1.0
LONGEST_LOOK_S: Final = 30.0
REMEDY: Final = "make room there or mend it, and try again"


class Store(Protocol):
    """Keeps the accountant's records; ``problem``: why it could not be opened yet."""

    problem: str

    def open(self) -> None:
        """Open what could not be opened at first; raises ``StoreUnavailable`` when it still cannot."""

    def load(self) -> dict[str, UserRecord]:
        """Every user's record."""

    def commit(self, operations: Sequence[Any]) -> None:
        """All or none; raises ``StoreUnavailable`` or ``OSError`` when nothing can be stored."""


class AccountantOutage:
    """The accountant's file, and whether it takes anything now.

    Args:
        store: the file; path: its name, for people.
        has_room: writes and removes something beside it; raises ``OSError`` when that fails.

    Attributes:
        problem: why nothing can be stored; empty while all is well.
    """

    def __init__(self, store: Store, path: Path, has_room: Callable[[], None], log: Logger) -> None:
        self.problem = f"{path} cannot be opened: {store.problem}" if store.problem else ""
        self._store = store
        self._path = path
        self._has_room = has_room
        self._log = log
        self._unsaved: dict[str, UserRecord] = {}
        self._looks = 0

    # ---- a file that is open

    def load(self) -> dict[str, UserRecord]:
        """Every user's record as it was last, saved or not."""
        records = self._store.load()
        for record in self._unsaved.values():
            records[record.name] = attrs.evolve(record, charged_s=record.updated_s)
        return records

    def commit(self, operations: Sequence[Any]) -> None:
        """Make a batch durable, together with what could not be saved before; records that may wait do.

        Raises:
            StoreUnavailable: nothing is stored, and something of the batch may not wait.
        """
        late = [SaveUsers(tuple(self._unsaved.values()))] if self._unsaved else []
        try:
            self._store.commit([*late, *operations])
        except (OSError, StoreUnavailable) as error:
            self._cannot(error)
            if not all(isinstance(each, SaveUsers) and each.may_wait for each in operations):
                raise StoreUnavailable(self.problem) from error
            for each in operations:
                self._unsaved.update((record.name, record) for record in each.records)
            return
        self._unsaved.clear()
        if self.problem:
            self.problem = ""
            self._log.info("{path} can be written again", path=self._path)

    def save_late(self) -> None:
        """Try again what could not be saved."""
        if self._unsaved:
            self.commit(())

    def why_not(self) -> Refused | None:
        """Why a change could not be kept now; None: it could."""
        try:
            self._has_room()
        except OSError as error:
            self._cannot(error)
            return Refused(code="busy", retry_after_s=LONGEST_LOOK_S,
                           text=f"{self.problem}; nothing was changed: {REMEDY}")
        return None

    def _cannot(self, error: Exception) -> None:
        if not self.problem:
            self._log.error("{path} cannot be written: {error}; usage is kept in memory, and no priority or "
                            "reservation can be changed until that is mended", path=self._path, error=error)
        self.problem = f"{self._path} cannot be written: {error}"

    # ---- a file that cannot be opened

    @property
    def is_ignorant(self) -> bool:
        """The file could not be opened: nobody knows what is in it."""
        return bool(self._store.problem)

    def next_look_s(self) -> float:
        """How long to wait before the next attempt to open it, longer each time."""
        self._looks += 1
        return min(FIRST_LOOK_S * 2.0 ** min(self._looks - 1, 10), LONGEST_LOOK_S)

    def opened(self) -> bool:
        """Try to open the file; whether it is open."""
        try:
            self._store.open()
        except StoreUnavailable as error:
            self.problem = f"{self._path} cannot be opened: {error}"
            return False
        self.problem = ""
        self._log.info("{path} can be opened", path=self._path)
        return True

    def refusal(self) -> Refused:
        """What the daemon answers meanwhile."""
        return Refused(code="busy", retry_after_s=LONGEST_LOOK_S, text=f"{self.problem}; nobody is matched: {REMEDY}")
