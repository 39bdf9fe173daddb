"""The accountant's records on disk: one row per user."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from condor_actors.actors.supervision import StoreUnavailable
from condor_actors.cores.accountant import ForgetUsers, SaveUsers
from condor_actors.cores.reservations import DropReservation, Reservation, SaveReservation
from condor_actors.cores.user_priority import UserRecord
from condor_actors.store.database import Database, StoreError

__all__ = ["AccountantStore"]

COLUMNS = ("name", "priority", "factor", "weighted_usage_s", "usage_s", "begin_s", "last_s", "ceiling", "floor",
           "policy", "updated_s")
_SAVE = f"INSERT OR REPLACE INTO users ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"


class AccountantStore:
    """The file ``ACCOUNTANT_DATABASE``.

    Args:
        path: of the file; made when it does not exist.
        patient: on a disk that takes nothing the file is opened later.

    Attributes:
        problem: why the file is not open (see ``patient``); empty: it is.

    Raises:
        StoreError: it cannot be opened.
    """

    problem = ""

    def __init__(self, path: Path, *, patient: bool = False) -> None:
        self._path = path
        try:
            self._database = Database(path, "accountant")
        except StoreError as error:
            if not (patient and error.is_passing):
                raise
            self.problem = str(error)

    def open(self) -> None:
        """Open what could not be opened at first; nothing otherwise.

        Raises:
            StoreUnavailable: it still cannot.
        """
        if not self.problem:
            return
        try:
            self._database = Database(self._path, "accountant")
        except StoreError as error:
            self.problem = str(error)
            raise StoreUnavailable(self.problem) from error
        self.problem = ""

    def load(self) -> dict[str, UserRecord]:
        """Every user's record; none while the file is not open."""
        if self.problem:
            return {}
        rows = self._database.connection.execute(f"SELECT {', '.join(COLUMNS)} FROM users")
        records = [UserRecord(**dict(zip(COLUMNS, row, strict=True))) for row in rows]
        for record in records:
            record.charged_s = record.updated_s
        return {record.name: record for record in records}

    def reservations(self) -> tuple[Reservation, ...]:
        """Every reservation; none while the file is not open."""
        if self.problem:
            return ()
        rows = self._database.connection.execute("SELECT plain FROM reservations")
        return tuple(Reservation(**json.loads(plain)) for (plain,) in rows)

    def commit(self, operations: Sequence[Any]) -> None:
        """Make operations durable, all or none.

        Raises:
            StoreUnavailable: nothing of it was written (a full disk, say).
        """
        self.open()
        with self._database.transaction() as connection:
            for operation in operations:
                if isinstance(operation, SaveUsers):
                    rows = [tuple(getattr(record, name) for name in COLUMNS) for record in operation.records]
                    connection.executemany(_SAVE, rows)
                elif isinstance(operation, ForgetUsers):
                    connection.executemany("DELETE FROM users WHERE name = ?", [(name,) for name in operation.names])
                elif isinstance(operation, SaveReservation):
                    one = operation.reservation
                    connection.execute("INSERT OR REPLACE INTO reservations (name, plain) VALUES (?, ?)",
                                       (one.name, json.dumps(one.to_plain())))
                elif isinstance(operation, DropReservation):
                    connection.execute("DELETE FROM reservations WHERE name = ?", (operation.name,))
                else:
                    raise TypeError(f"the accountant does not store {type(operation).__name__}")

    def close(self) -> None:
        """Give the file back."""
        if not self.problem:
            self._database.close()
