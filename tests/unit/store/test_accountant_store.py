"""The accountant's records on disk, and the upgrade of old files."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from condor_actors.cores.negotiator.accountant import ForgetUsers, SaveUsers
from condor_actors.cores.negotiator.reservations import DropReservation, Reservation, SaveReservation
from condor_actors.cores.negotiator.user_priority import UserRecord
from condor_actors.store.accountant import AccountantStore
from condor_actors.store.database import Database

ALICE = UserRecord("alice@dom", priority=3.5, factor=7.0, weighted_usage_s=1e6, usage_s=5e5, begin_s=10.0, last_s=20.0,
                   ceiling=4.0, floor=1.0, policy="UP_DOWN", updated_s=30.0)


def test_what_is_saved_is_there_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "accountant.db"
    store = AccountantStore(path)
    store.commit([SaveUsers((ALICE, UserRecord("bob@dom"))), SaveUsers((attrs.evolve(ALICE, priority=4.5),)),
                  ForgetUsers(("bob@dom", "nobody"))])
    store.close()
    (record,) = AccountantStore(path).load().values()
    assert attrs.asdict(record) == attrs.asdict(attrs.evolve(ALICE, priority=4.5, charged_s=30.0))


def test_a_name_that_is_no_text_is_saved_and_forgotten_as_one_that_is(tmp_path: Path) -> None:
    """It comes from the ad of a machine that says whose claim it runs: the negotiator must not fall over it."""
    store = AccountantStore(tmp_path / "accountant.db")
    store.commit([SaveUsers((attrs.evolve(ALICE, name="a\udcff@dom"), ALICE))])
    assert store.load().keys() == {"a?@dom", "alice@dom"}
    store.commit([ForgetUsers(("a\udcff@dom",))])
    assert store.load().keys() == {"alice@dom"}


def test_a_batch_is_saved_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    store = AccountantStore(tmp_path / "accountant.db")
    with pytest.raises(TypeError):
        store.commit([SaveUsers((ALICE,)), "nonsense"])
    assert store.load() == {}


def test_a_file_of_the_first_schema_is_upgraded(tmp_path: Path) -> None:
    path = tmp_path / "accountant.db"
    old = Database(path, "accountant", up_to=1)
    old.connection.execute("INSERT INTO users VALUES ('alice@dom', 2.0, NULL, 1, 1, 1, 1, -1, -1, 5)")
    old.close()
    (record,) = AccountantStore(path).load().values()
    assert (record.name, record.priority, record.factor, record.policy) == ("alice@dom", 2.0, None, "FAIR_SHARE")


def test_a_reservation_is_kept_until_it_is_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "accountant.db"
    made = Reservation(name="r", submitter="alice@dom", machines=2, constraint="true", from_s=10.0, until_s=20.0,
                       ahead_s=5.0)
    store = AccountantStore(path)
    store.commit([SaveReservation(made), SaveReservation(attrs.evolve(made, name="other"))])
    store.commit([DropReservation("other")])
    store.close()
    assert AccountantStore(path).reservations() == (made,)
