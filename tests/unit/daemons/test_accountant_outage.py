"""A negotiator whose records find no room on the disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from condor_actors.actors.supervision import StoreUnavailable
from condor_actors.classads import ClassAd
from condor_actors.daemons import negotiator
from condor_actors.messages.envelope import Done, Refused
from condor_actors.messages.negotiate import QueryPriorities, SetPriority
from condor_actors.store import database as database_module
from condor_actors.store.accountant import AccountantStore
from condor_actors.store.database import StoreError
from tests.harness.local_post import LocalNetwork
from tests.unit.daemons.central import (
    ALICE,
    BOB,
    NEGOTIATOR,
    Machine,
    Schedd,
    ask,
    central_network,
    start_negotiator,
)

net = pytest.fixture(central_network, name="net")


class FullDisk:
    """The disk of the accountant; ``is_full`` may be set and unset."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.is_full = False
        commit, database = AccountantStore.commit, database_module.Database

        def has_room(folder: Path) -> None:
            if self.is_full:
                raise OSError(28, "No space left on device")

        def committing(store: AccountantStore, operations: Any) -> None:
            if self.is_full:
                raise StoreUnavailable("database or disk is full")
            commit(store, operations)

        def opening(path: Path, schema: str) -> Any:
            if self.is_full:
                raise StoreError(f"{path}: no room", is_passing=True)
            return database(path, schema)

        patch.setattr(negotiator, "has_room", has_room)
        patch.setattr(AccountantStore, "commit", committing)
        patch.setattr(database_module, "Database", opening)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FullDisk:
    return FullDisk(monkeypatch)


def holding(net: LocalNetwork, probe: Any) -> dict[str, float]:
    """Accumulated usage by user."""
    ads = [ClassAd.from_bytes(ad) for ad in ask(net, probe, QueryPriorities()).ads]
    return {ad.get_str("Name"): ad.get_float("AccumulatedUsage") for ad in ads if not ad.get_bool("IsAccountingGroup")}


def test_matches_and_usage_need_no_disk(net: LocalNetwork, tmp_path: Path, disk: FullDisk) -> None:
    daemon = start_negotiator(net, tmp_path)
    actor = daemon.system.actor("negotiator")
    machine, schedd = Machine(net), Schedd(net)
    machine.show("slot1@m")
    disk.is_full = True
    schedd.want(ALICE, (1, {}))
    net.run(0.1)
    assert len(schedd.matches) == 1
    machine.show("slot1@m", State="Claimed", RemoteUser=ALICE, AccountingGroup=ALICE)
    net.run(200.0)
    refused = ask(net, schedd.probe, SetPriority(submitter=ALICE, what="factor", value=7.0))
    assert isinstance(refused, Refused)
    assert "No space left on device; nothing was changed" in refused.text
    assert daemon.system.actor("negotiator") is actor, "nothing was lost by being built anew"
    used_s = holding(net, schedd.probe)[ALICE]
    assert used_s >= 199.0
    disk.is_full = False
    machine.show("slot1@m")
    net.run(61.0)
    net.crash(NEGOTIATOR)
    start_negotiator(net, tmp_path)
    assert holding(net, schedd.probe)[ALICE] >= used_s, "what could not be saved then was saved later"
    assert isinstance(ask(net, schedd.probe, SetPriority(submitter=ALICE, what="factor", value=7.0)), Done)


def test_a_negotiator_that_cannot_open_its_records_waits_for_them(net: LocalNetwork, tmp_path: Path,
                                                                  disk: FullDisk) -> None:
    start_negotiator(net, tmp_path)
    machine, schedd = Machine(net), Schedd(net)
    assert isinstance(ask(net, schedd.probe, SetPriority(submitter=BOB, what="factor", value=7.0)), Done)
    net.crash(NEGOTIATOR)
    disk.is_full = True
    start_negotiator(net, tmp_path)
    machine.show("slot1@m")
    schedd.want(ALICE, (1, {}))
    net.run(100.0)
    assert schedd.matches == [], "nobody knows who may have it"
    refused = ask(net, schedd.probe, QueryPriorities())
    assert isinstance(refused, Refused)
    assert "no room; nobody is matched: make room there" in refused.text
    disk.is_full = False
    net.run(31.0)
    assert BOB in holding(net, schedd.probe)
    assert len(schedd.matches) == 1
