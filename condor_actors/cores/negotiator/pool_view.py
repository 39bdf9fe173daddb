"""The pool as the negotiator knows it: slots and submitters, and which matches it has handed out.

Theory: the collector tells what changed; the view applies it and says what the change means for the next cycle:

============  ======================================================================================
:data:`HARD`  more is wanted or more is free: a cycle may place something now
:data:`SOFT`  something else about a free slot changed (its load, say); a cycle may, but need not, differ
:data:`NONE`  a slot was taken, demand fell: nothing new can come of a cycle
============  ======================================================================================

Ads lag behind: between a match and the ad that shows it, a slot looks free although it is not.  So each match is
remembered (:class:`Handout`) until its slot's ad shows it (the slot is claimed, another capability, fewer resources, a
dynamic slot more has been made) or :data:`HANDOUT_S` has passed, and until then it counts as taken.  ``Matched`` and
``Preempting`` do not show it: the slot is on its way to a user whom its ad does not name.

A free slot that takes more than before (its owner has left, its Requirements have become another text or are no longer
false by themselves) is a ``HARD`` reason.  A slot gives this one once until :meth:`PoolView.new_interval`: machines
whose owners come and go all the time do not keep the negotiator busy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from condor_actors.classads import ClassAd
from condor_actors.messages.advertise import AdChange, AdKind

__all__ = ["HANDOUT_S", "HARD", "NONE", "SOFT", "Handout", "PoolView", "Slot", "Submitter"]

NONE, SOFT, HARD = 0, 1, 2
HANDOUT_S = 15.0
FREE_STATES = frozenset({"Unclaimed", "Owner"})
MATCHED = "Matched"
COUNTED = ("cpus", "memory", "disk")
MADE = "dynamicslotsmade"
WILLINGNESS = ("requirements", "start")
CLOCKS = ("mycurrenttime", "lastheardfrom", "updatesequencenumber")
"""Attributes that tick without meaning anything to a match; with them ``TotalTime…``."""


@attrs.frozen
class Handout:
    """A match that the slot's ad does not show yet.

    Attributes:
        cost: what it takes; until_s: until when it is believed; limits: that it holds.
        submitter: whose it is; weight: what it counts for.
    """

    cost: dict[str, int]
    until_s: float
    limits: Mapping[str, float] = attrs.field(factory=dict)
    submitter: str = ""
    weight: float = 0.0


@attrs.define(eq=False)
class Slot:
    """One slot ad.

    Attributes:
        key: its Name; ad, data: parsed and as text; capability: the right to claim it (empty: it cannot be claimed).
        startd: node of its startd; user: who has it (accounting name), empty for nobody.
        partitionable: whether claims take parts of it; free: whether it can be matched without preempting.
        resources: names of what it counts, lower case (cpus, memory, disk, gpus …).
        handouts: matches not shown by the ad yet.
        weighed: whether it counts by its SlotWeight; else as one.
        sleeps: whether its machine does; then it cannot be claimed.
    """

    key: str
    ad: ClassAd
    data: bytes
    capability: str
    startd: str
    state: str
    user: str
    partitionable: bool
    resources: tuple[str, ...]
    handouts: list[Handout] = attrs.field(factory=list)
    weighed: bool = True
    sleeps: bool = False
    _weight: float | None = None

    @property
    def free(self) -> bool:
        """Whether nobody has it."""
        return self.state in FREE_STATES and (self.partitionable or not self.user)

    @property
    def holds(self) -> bool:
        """Whether its user is charged for it."""
        return bool(self.user) and not self.partitionable and self.state in ("Claimed", "Preempting")

    def weight(self) -> float:
        """What the slot counts for in shares and usage."""
        if self._weight is None:
            self._weight = self.weight_of(self.ad)
        return self._weight

    def weight_of(self, ad: ClassAd) -> float:
        """What a part of the slot that ``ad`` describes counts for."""
        if not self.weighed:
            return 1.0
        return max(0.0, ad.get_float("SlotWeight" if "slotweight" in ad.own else "Cpus", 1.0))

    def amount(self, name: str) -> int:
        """How much of a resource the ad shows."""
        return self.ad.get_int(name)

    def spare(self, name: str) -> int:
        """The same, less what was handed out."""
        return self.amount(name) - sum(each.cost.get(name, 0) for each in self.handouts)


@attrs.define(eq=False)
class Submitter:
    """One submitter ad: a user with jobs at one schedd; ``wishes`` changes whenever more is wanted."""

    key: str
    name: str
    schedd_name: str
    schedd: str
    idle: int
    running: int
    ad: ClassAd
    wishes: int = 0


class PoolView:
    """Holds the slots and submitters that the collector reports, and the matches handed out since.

    Attributes:
        slots, submitters: by key.
        sleeping: the slots of machines that sleep, by key; they are among the slots, too.
        changed: keys of slots that came, changed or went since the candidates were brought up to date.
        fresh: the same since the significant attributes were.
        held: weight and number of slots that each user holds.
        demand: idle jobs, and idle and running ones, of each user at all schedds.
        users: whose holding or demand has changed since the accountant learned of it.
        total_weight: of all slots that can be claimed or are.
        weighs: whether slots count by their weight.
    """

    def __init__(self, *, weighs: bool = True) -> None:
        self.weighs = weighs
        self.slots: dict[str, Slot] = {}
        self.submitters: dict[str, Submitter] = {}
        self.sleeping: dict[str, Slot] = {}
        self.changed: dict[str, None] = {}
        self.fresh: dict[str, None] = {}
        self.held: dict[str, tuple[float, int]] = {}
        self.demand: dict[str, tuple[int, int]] = {}
        self.users: dict[str, None] = {}
        self._wanting: dict[str, Submitter] = {}
        self.total_weight = 0.0
        self._handed: dict[str, None] = {}
        self._opened: set[str] = set()

    def new_interval(self) -> None:
        """Slots that have become willing may be a hard reason again."""
        self._opened.clear()

    def reset(self) -> dict[str, Slot]:
        """Forget everything before a snapshot; returns the slots, whose handouts the new ones take over."""
        old, self.slots, self.submitters, self.sleeping = self.slots, {}, {}, {}
        self.changed.update(dict.fromkeys(old))
        self.users.update(dict.fromkeys((*self.held, *self.demand)))
        self.held, self.demand, self._wanting, self.total_weight = {}, {}, {}, 0.0
        return old

    def apply(self, changes: Iterable[AdChange], old: Mapping[str, Slot] | None = None) -> int:
        """Take what changed.

        Args:
            changes: of slot and submitter ads.
            old: slots as they were before :meth:`reset`.

        Returns:
            :data:`HARD`, :data:`SOFT` or :data:`NONE`: the strongest of all.
        """
        meaning = NONE
        for change in changes:
            if change.ad_kind is AdKind.SLOT:
                meaning = max(meaning, self._slot_changed(change, old or self.slots))
            elif change.ad_kind is AdKind.SUBMITTER:
                meaning = max(meaning, self._submitter_changed(change))
        return meaning

    def _submitter_changed(self, change: AdChange) -> int:
        old = self.submitters.pop(change.name, None)
        self._wanting.pop(change.name, None)
        if old is not None:
            self._demand(old, -1)
        if not change.ad:
            return NONE
        ad = ClassAd.from_bytes(change.ad)
        new = Submitter(change.name, ad.get_str("Name"), ad.get_str("ScheddName"), ad.get_str("MyAddress"),
                        ad.get_int("IdleJobs"), ad.get_int("RunningJobs"), ad, ad.get_int("DemandNumber"))
        self.submitters[change.name] = new
        self._demand(new, 1)
        if new.idle > 0:
            self._wanting[change.name] = new
        if old is None or new.idle > old.idle:
            return HARD if new.idle else NONE
        return HARD if new.idle and new.wishes != old.wishes else NONE  # other jobs than were wanted then

    def _slot_changed(self, change: AdChange, before: Mapping[str, Slot]) -> int:
        self.changed[change.name] = None
        self.fresh[change.name] = None
        old = before.get(change.name)
        counted = self.slots.pop(change.name, None)
        self.sleeping.pop(change.name, None)
        if counted is not None:
            self._count(counted, -1)
        if not change.ad:
            return HARD if counted is not None and counted.holds else NONE  # its user's quota and limits are free
        new = self.slots[change.name] = slot_of(change)
        new.weighed = self.weighs
        self._count(new, 1)
        if new.sleeps:
            self.sleeping[change.name] = new
        if old is None:
            return HARD if new.free else NONE
        spare = {name: old.spare(name) for name in new.resources}
        new.handouts = _still_open(old, new)
        if new.data == old.data or (new.sleeps and old.sleeps) or _same_but_clocks(old.ad, new.ad):
            return NONE
        if not new.free:
            return HARD if old.user and (new.user != old.user or _gives_up_limits(old.ad, new.ad)) else NONE
        if not old.free or any(new.spare(name) > spare[name] for name in new.resources):
            return HARD
        if _is_opened(old, new):
            meaning = SOFT if new.key in self._opened else HARD
            self._opened.add(new.key)
            return meaning
        return NONE if any(new.amount(name) < old.amount(name) for name in new.resources) else SOFT

    def _demand(self, submitter: Submitter, sign: int) -> None:
        """Add what a submitter wants to the sums, or take it out."""
        idle, wanted = self.demand.get(submitter.name, (0, 0))
        idle, wanted = idle + sign * submitter.idle, wanted + sign * (submitter.idle + submitter.running)
        if wanted or idle:
            self.demand[submitter.name] = idle, wanted
        else:
            self.demand.pop(submitter.name, None)
        self.users[submitter.name] = None

    def _count(self, slot: Slot, sign: int) -> None:
        """Add a slot to the sums, or take it out."""
        if slot.capability or slot.user:
            self.total_weight += sign * slot.weight()
        if slot.holds:
            self.users[slot.user] = None
            weight, count = self.held.get(slot.user, (0.0, 0))
            if count + sign:
                self.held[slot.user] = (weight + sign * slot.weight(), count + sign)
            else:
                del self.held[slot.user]

    def weigh(self, weighs: bool) -> None:
        """Count slots by their weight, or each as one, from now on."""
        self.weighs = weighs
        self.users.update(dict.fromkeys(self.held))
        self.held, self.total_weight = {}, 0.0
        for slot in self.slots.values():
            slot.weighed, slot._weight = weighs, None
            self._count(slot, 1)
        self.changed.update(dict.fromkeys(self.slots))

    def handed_out(self, slot: Slot, handout: Handout) -> None:
        """Remember a match until the slot's ad shows it."""
        slot.handouts.append(handout)
        self._handed[slot.key] = None

    def expire_handouts(self, now_s: float) -> float | None:
        """Give up matches that no ad ever showed; returns when the next will be given up, None when there is none."""
        next_s = None
        for key in tuple(self._handed):
            slot = self.slots.get(key)
            if slot is None or not slot.handouts:
                self._handed.pop(key, None)
                continue
            waits = slot.state == MATCHED  # the startd keeps it for the schedd, and says when it no longer does
            left = [each for each in slot.handouts if waits or each.until_s > now_s]
            if len(left) < len(slot.handouts):
                slot.handouts = left
                self.changed[key] = None
            for each in () if waits else left:
                next_s = each.until_s if next_s is None else min(next_s, each.until_s)
        return next_s

    def promised(self) -> Iterable[tuple[str, float]]:
        """Who was given what weight that no ad shows yet."""
        for key in self._handed:
            slot = self.slots.get(key)
            for each in slot.handouts if slot is not None else ():
                yield each.submitter, each.weight

    def had(self) -> dict[str, float]:
        """The weight that each user holds, and was given without that an ad shows it yet."""
        found = {user: weight for user, (weight, _) in self.held.items()}
        for user, weight in self.promised():
            found[user] = found.get(user, 0.0) + weight
        return found

    def wanting(self) -> Iterable[Submitter]:
        """The submitters that have idle jobs."""
        return self._wanting.values()


def slot_of(change: AdChange) -> Slot:
    """Read a slot's ad with its private part."""
    ad = ClassAd.from_bytes(change.ad)
    capability, sleeps = "", ad.get_bool("Offline")
    if change.private and not sleeps:
        private = ClassAd.from_bytes(change.private)
        capability = private.get_str("Capability") or private.get_str("ClaimId")
    custom = tuple(name for name in ad.get_str("MachineResources").lower().split() if name not in (*COUNTED, "swap"))
    user = ad.get_str("AccountingGroup") or ad.get_str("RemoteUser") or ad.get_str("RemoteOwner")
    return Slot(
        key=change.name, ad=ad, data=change.ad, capability=capability, startd=ad.get_str("MyAddress"),
        state=ad.get_str("State", "Unclaimed"), user=user,
        partitionable=ad.get_bool("PartitionableSlot") or ad.get_str("SlotType") == "Partitionable",
        resources=(*COUNTED, *custom), sleeps=sleeps,
    )


def _same_but_clocks(old: ClassAd, new: ClassAd) -> bool:
    """Whether two forms of a slot's ad differ in what ticks only."""
    before, after = old.own, new.own
    if before.keys() != after.keys():
        return False
    return all(value == before[key] or key in CLOCKS or key.startswith("totaltime") for key, value in after.items())


def _gives_up_limits(old: ClassAd, new: ClassAd) -> bool:
    """Whether a claim's next job holds other concurrency limits than the one before: others may wait for these."""
    before = old.get_str("ConcurrencyLimits")
    return bool(before) and new.get_str("ConcurrencyLimits") != before


def _is_opened(old: Slot, new: Slot) -> bool:
    """Whether a free slot may take jobs that it would not have taken before."""
    if new.state == "Owner":
        return False
    if old.state == "Owner" or (new.capability and not old.capability):
        return True
    if any(old.ad.own.get(name) != new.ad.own.get(name) for name in WILLINGNESS):
        return True
    return new.ad.evaluate("Requirements") is not False and old.ad.evaluate("Requirements") is False


def _still_open(old: Slot, new: Slot) -> list[Handout]:
    """The handouts of a slot that its new ad does not show."""
    if not old.handouts:
        return []
    if not new.partitionable:
        shown = new.capability != old.capability or new.user != old.user
        came_to_nothing = old.state == MATCHED and new.state in FREE_STATES
        return [] if shown or came_to_nothing else old.handouts
    if MADE in old.ad.own and MADE in new.ad.own:  # a short job's slot may be gone before an ad shows it
        made = new.ad.get_int(MADE) - old.ad.get_int(MADE)
        return old.handouts[made:] if made >= 0 else []  # less: the startd has begun anew, with other capabilities
    taken = {name: old.amount(name) - new.amount(name) for name in new.resources}
    left = list(old.handouts)
    while left and taken.get("cpus", 0) >= left[0].cost.get("cpus", 0) > 0:
        for name, amount in left[0].cost.items():
            taken[name] = taken.get(name, 0) - amount
        del left[0]
    return left

