"""Rows of ``turns.py`` for the negotiator, the collector and the startd: their cores alone, as large as is asked."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from benchmarks.negotiation import negotiator, slot_change
from condor_actors.classads import ClassAd
from condor_actors.cores.collector.ad_table import AdTable
from condor_actors.cores.startd.slot_resources import Share, plan_slots
from condor_actors.cores.startd.slots import Slots, SlotSettings, parse_policy
from condor_actors.cores.startd.startd_core import StartdCore
from condor_actors.cores.startd.startd_events import StartdSettings
from condor_actors.effects import Answer, Ask, Reply
from condor_actors.messages.advertise import AdChange, AdKind, AdsChanged
from condor_actors.messages.claim import (
    ClaimActivity,
    ClaimGranted,
    ReleaseClaim,
    RenewClaims,
    RequestClaim,
    StarterHostHello,
)
from condor_actors.messages.envelope import Address, Delivery, Done, TimerFired

__all__ = ["POOL_ROWS"]

Turn = Callable[[], object]
NOW_S = 1.8e9
SCHEDD, STARTER = Address("in:7", "schedd"), Address("in:1", "starter-host")
JOB = b"RequestCpus = 1\nRequestMemory = 1\nRequestDisk = 1\nRequirements = true\nJobUniverse = 5\nOwner = \"alice\"\n"
POLICY = {"START": "true", "RANK": "0", "IS_OWNER": "START =?= false", "SUSPEND": "false", "CONTINUE": "true",
          "PREEMPT": "false", "KILL": "false", "WANT_SUSPEND": "false", "WANT_VACATE": "true",
          "MAXJOBRETIREMENTTIME": "0", "MACHINEMAXVACATETIME": "60"}


# ---- negotiator

def submitter(number: int, idle: int) -> AdChange:
    """The ad of a user at a schedd."""
    ad = ClassAd({"MyType": "Submitter", "Name": f"user{number}@dom", "ScheddName": "s", "MyAddress": "<10.1.0.1:1>",
                  "IdleJobs": idle, "RunningJobs": 1})
    return AdChange(ad_kind=AdKind.SUBMITTER, name=f"user{number}@dom\ns", ad=ad.to_bytes())


def claimed(number: int, user: int) -> AdChange:
    """The ad of a slot that a user has."""
    change = slot_change(number)
    ad = ClassAd.from_bytes(change.ad)
    ad.update({"State": "Claimed", "Activity": "Busy", "RemoteUser": f"user{user}@dom"})
    return AdChange(ad_kind=AdKind.SLOT, name=change.name, ad=ad.to_bytes(), private=change.private)


def slot_taken(slots: int) -> Turn:
    """One slot changes hands between two users, among so many slots."""
    core = negotiator([slot_change(number) for number in range(slots)], 1)
    sequence = count(2)

    def turn() -> None:
        number = next(sequence)
        core.handle(AdsChanged(sequence=number, changes=(claimed(7, number % 2),)), NOW_S + number)

    return turn


def user_wants(users: int) -> Turn:
    """One user's demand changes, among so many who hold a slot and want more."""
    core = negotiator([], 1)
    for first in range(0, users, 1000):
        those = range(first, min(users, first + 1000))
        changes = (*(submitter(number, 1) for number in those), *(claimed(number, number) for number in those))
        core.handle(AdsChanged(sequence=2, changes=changes), NOW_S + 1.0)
    sequence = count(3)

    def turn() -> None:
        number = next(sequence)
        core.handle(AdsChanged(sequence=number, changes=(submitter(7, number % 3),)), NOW_S + number)

    return turn


# ---- collector

def table_of(ads: int) -> AdTable:
    """So many slots, each of a machine of its own."""
    table = AdTable()
    for number in range(ads):
        change = slot_change(number)
        table.update(AdKind.SLOT, change.ad, change.private, now_s=NOW_S, lifetime_s=900.0)
    return table


def ad_comes(ads: int) -> Turn:
    """One ad changes."""
    table, texts = table_of(ads), [claimed(7, user) for user in range(2)]
    turns = count()
    return lambda: table.update(AdKind.SLOT, texts[next(turns) % 2].ad, b"", now_s=NOW_S, lifetime_s=900.0)


def ad_goes(ads: int) -> Turn:
    """One ad is withdrawn, and comes again."""
    table, change = table_of(ads), slot_change(7)

    def turn() -> None:
        table.invalidate(AdKind.SLOT, (change.name,), "")
        table.update(AdKind.SLOT, change.ad, change.private, now_s=NOW_S, lifetime_s=900.0)

    return turn


def nothing_expires(ads: int) -> Turn:
    """The sweep, when nothing has expired."""
    table = table_of(ads)
    return lambda: table.expire(NOW_S + 1.0)


def next_page(ads: int) -> Turn:
    """The last page of a question; it has at most fifty ads."""
    table = table_of(ads)
    cursor = str(max(ads - 50, 1))
    return lambda: table.page(AdKind.SLOT, None, ("Name",), 0, cursor)


def totals(ads: int) -> Turn:
    """The totals of the pool for the collector's own ad."""
    table = table_of(ads)
    return table.totals.attributes


# ---- startd

class Startd:
    """The core of a startd with one slot that is divided into so many claimed ones."""

    def __init__(self, claims: int) -> None:
        self.now_s = NOW_S
        secrets = (f"secret{number}" for number in count())
        settings = SlotSettings(host="h", policy=parse_policy(POLICY), rounding={})
        slots = Slots(settings, ClassAd({"Machine": "h", "Arch": "X86_64"}), lambda: next(secrets))
        machine = Share(cpus=claims + 10, memory_mib=1000 * claims + 10_000, disk_kib=10_000_000 + 2000 * claims)
        slots.create(plan_slots(machine, types={}, counts={}, partitionable={1: True}), self.now_s)
        self.core = StartdCore(slots, StartdSettings(address="<s:9>"), birth_s=1000.0, new_secret=lambda: next(secrets))
        self.core.start((), self.now_s)
        self.hear(StarterHostHello(node="<h:1>", pid=42), STARTER)
        self.granted = [self.claim() for _ in range(claims)]

    def hear(self, message: object, sender: Address = SCHEDD) -> tuple[object, ...]:
        """A turn."""
        return self.core.handle(Delivery(message=message, sender=sender, message_id="m"), self.now_s)

    def claim(self) -> ClaimGranted:
        """A schedd asks for a slot and gets it."""
        (whole,) = (slot for slot in (self.core.slots.get("slot1"),) if slot is not None)
        asked = self.hear(RequestClaim(
            slot_name="slot1@h", capability=whole.capability, job_ad=JOB, owner="alice@x", submitter="alice@x",
            schedd_name="sub@x", schedd_node=SCHEDD.node))
        ask = next(effect for effect in asked if isinstance(effect, Ask))
        opened = self.core.handle(Answer(ask.tag, Done()), self.now_s)
        granted = next(effect.message for effect in opened if isinstance(effect, Reply))
        assert isinstance(granted, ClaimGranted), granted
        return granted

    def give_back(self, granted: ClaimGranted) -> None:
        """The schedd needs it no longer."""
        self.hear(ReleaseClaim(claim_id=granted.claim_id, secret=granted.secret, reason="done"))
        self.hear(ClaimActivity(claim_id=granted.claim_id, activity="closed"), STARTER)


def claim_comes_and_goes(claims: int) -> Turn:
    """A claim is asked for, opened, given back and closed, beside so many."""
    startd = Startd(claims)
    return lambda: startd.give_back(startd.claim())


def claim_works(claims: int) -> Turn:
    """A run begins and ends on one claim, beside so many."""
    startd = Startd(claims)
    mine = startd.granted[7].claim_id

    def turn() -> None:
        startd.hear(ClaimActivity(claim_id=mine, activity="busy", job_id="1.0", job_ad=JOB), STARTER)
        startd.hear(ClaimActivity(claim_id=mine, activity="idle"), STARTER)

    return turn


def claim_is_renewed(claims: int) -> Turn:
    """A schedd renews one claim, beside so many."""
    startd = Startd(claims)
    mine = startd.granted[7]
    return lambda: startd.hear(RenewClaims(claims=((mine.claim_id, mine.secret),), schedd_node=SCHEDD.node))


def ads_are_sent(claims: int) -> Turn:
    """The ad of one slot that has changed is sent, beside so many."""
    startd = Startd(claims)
    startd.core.handle(TimerFired(key="publish"), startd.now_s)
    mine = startd.granted[7].claim_id

    def turn() -> None:
        startd.hear(ClaimActivity(claim_id=mine, activity="busy", job_id="1.0", job_ad=JOB), STARTER)
        startd.hear(ClaimActivity(claim_id=mine, activity="idle"), STARTER)
        startd.core.handle(TimerFired(key="publish"), startd.now_s)

    return turn


POOL_ROWS: dict[str, tuple[str, Callable[[int], Turn]]] = {
    "slot": ("negotiator: a slot changes hands, by slots", slot_taken),
    "demand": ("negotiator: a user wants more or less, by users", user_wants),
    "ad": ("collector: an ad changes, by ads", ad_comes),
    "withdrawn": ("collector: an ad goes and comes, by ads", ad_goes),
    "sweep": ("collector: a sweep that finds nothing, by ads", nothing_expires),
    "page": ("collector: the last page of a question, by ads", next_page),
    "totals": ("collector: its own ad, by ads", totals),
    "claimed": ("startd: a claim comes and goes, by claims", claim_comes_and_goes),
    "runs": ("startd: a run begins and ends, by claims", claim_works),
    "renewed": ("startd: a claim is renewed, by claims", claim_is_renewed),
    "published": ("startd: a run, and its slot's ad is sent, by claims", ads_are_sent),
}
