"""The accountant's records on disk: one row per user."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from condor_actors.cores.negotiator.accountant import ForgetUsers, SaveUsers
from condor_actors.cores.negotiator.limit_leases import leases_from_plain, leases_to_plain
from condor_actors.cores.negotiator.reservations import DropReservation, Reservation, SaveReservation
from condor_actors.cores.negotiator.user_priority import Lease, UserRecord
from condor_actors.store.database import Store

__all__ = ["AccountantStore"]

COLUMNS = ("name", "priority", "factor", "weighted_usage_s", "usage_s", "begin_s", "last_s", "ceiling", "floor",
           "policy", "updated_s", "leases")
_SAVE = f"INSERT OR REPLACE INTO users ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"


def _leases(text: str) -> dict[str, Lease]:
    return leases_from_plain(json.loads(text)) if text else {}


class AccountantStore(Store):
    """The file ``ACCOUNTANT_DATABASE``; see :class:`Store`."""

    schema = "accountant"

    def load(self) -> dict[str, UserRecord]:
        """Every user's record; none while the file is not open."""
        if self.problem:
            return {}
        rows = self.database.connection.execute(f"SELECT {', '.join(COLUMNS)} FROM users")
        records = [UserRecord(**{**dict(zip(COLUMNS, row, strict=True)), "leases": _leases(row[-1])}) for row in rows]
        for record in records:
            record.charged_s = record.updated_s
        return {record.name: record for record in records}

    def reservations(self) -> tuple[Reservation, ...]:
        """Every reservation; none while the file is not open."""
        if self.problem:
            return ()
        rows = self.database.connection.execute("SELECT plain FROM reservations")
        return tuple(Reservation(**json.loads(plain)) for (plain,) in rows)

    def commit(self, operations: Sequence[Any]) -> None:
        """Make operations durable, all or none.

        Raises:
            StoreUnavailable: nothing of it was written (a full disk, say).
        """
        self.open()
        with self.database.transaction() as connection:
            for operation in operations:
                if isinstance(operation, SaveUsers):
                    rows = [(*(_bound(getattr(record, name)) for name in COLUMNS[:-1]),
                             json.dumps(leases_to_plain(record.leases)) if record.leases else "")
                            for record in operation.records]
                    connection.executemany(_SAVE, rows)
                elif isinstance(operation, ForgetUsers):
                    names = [(_bound(name),) for name in operation.names]
                    connection.executemany("DELETE FROM users WHERE name = ?", names)
                elif isinstance(operation, SaveReservation):
                    one = operation.reservation
                    connection.execute("INSERT OR REPLACE INTO reservations (name, plain) VALUES (?, ?)",
                                       (one.name, json.dumps(one.to_plain())))
                elif isinstance(operation, DropReservation):
                    connection.execute("DELETE FROM reservations WHERE name = ?", (operation.name,))
                else:
                    raise TypeError(f"the accountant does not store {type(operation).__name__}")


def _bound(value: Any) -> Any:
    """A value as a database takes it: a name of an ad of others may have what is no text, for which ``?`` stands."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
