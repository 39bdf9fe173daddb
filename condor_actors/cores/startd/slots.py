"""The slots of a machine: made from the plan, carved for claims, joined again, and shown as ads.

Theory: a :class:`Slot` is what can be claimed: a share, a policy state (:class:`owner_policy.SlotStateMachine`), a
capability and at most one claim.  A partitionable slot keeps no claim itself; each claim carves a dynamic slot out of
its share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from heapq import heappop, heappush

import attrs

from condor_actors.classads import ClassAd, Expr, parse_expression
from condor_actors.config.settings import setting
from condor_actors.cores.devices.inventory import Inventory
from condor_actors.cores.site_programs.programs import SiteAd
from condor_actors.cores.startd import owner_policy, slot_ad
from condor_actors.cores.startd.claims.claim import Claim
from condor_actors.cores.startd.policy_evaluation import OwnerPolicy
from condor_actors.cores.startd.site_attributes import write_site
from condor_actors.cores.startd.slot_resources import Request, Share, SlotPlan, carve, read_request
from condor_actors.cores.state_table import InvariantBroken
from condor_actors.messages.negotiate import MOST_LIMITS
from condor_actors.numerals import whole

__all__ = ["Slot", "SlotSettings", "Slots", "parse_policy"]

PUBLISHED_POLICY = (
    ("Start", "START"), ("Rank", "RANK"), ("MaxJobRetirementTime", "MAXJOBRETIREMENTTIME"),
    ("MachineMaxVacateTime", "MACHINEMAXVACATETIME"), ("IsOwner", "IS_OWNER"),
)

ALL_SLOTS = 1_000_000


@attrs.frozen(kw_only=True)
class SlotSettings:
    """How slots look and behave.

    Attributes:
        host: the machine's full name; the slots are ``slot1@host``.
        policy: policy expressions by upper-case name; ``policy_by_type`` overrides them for a slot type.
        requirements: text of Requirements in the ads.
        attributes: more attributes for every slot's ad (STARTD_ATTRS).
        latches: expressions whose changes are dated (STARTD_LATCH_EXPRS).
        job_attributes: attributes of the running job shown in the slot's ad (STARTD_JOB_ATTRS).
        prefixes: slot type to the beginning of its slots' names.
        match_timeout_s, killing_timeout_s: see the parameters of those names.
        keyboard_slots, console_slots: how many of the slots mind the keyboard and the console.
        idle_boost_s: how much longer idle they look to the others.
        start_instead: in place of every START, while the machine is drained with ``-start``.
        weight: text of SLOT_WEIGHT.
        rounding: what a request becomes where the slot can be divided, by the job's attribute (``RequestCpus`` …):
            expressions over the job's ad (MODIFY_REQUEST_EXPR_…).
        reserved_disk_kib: what has to stay free on the disk (RESERVED_DISK).
        tells_all: whether also jobs that begin and end on a claim, and what changes nothing, are logged.
        offline: devices that are not given out (OFFLINE_MACHINE_RESOURCE_<NAME>), by resource.
        hibernate: how deep the machine may sleep, over a slot's ad (HIBERNATE); hibernate_check_s: how often that is
            asked, 0: never; unhibernate: when it wants to be woken (UNHIBERNATE); sleeps_unwakeable: whether it sleeps
            also where no network card can wake it.
        worklife: seconds for which a claim takes new jobs, over slot and job (CLAIM_WORKLIFE); None, below 0: no limit.
    """

    host: str
    policy: Mapping[str, Expr]
    policy_by_type: Mapping[int, Mapping[str, Expr]] = attrs.field(factory=dict)
    requirements: str = "START && WithinResourceLimits"
    attributes: Mapping[str, Expr] = attrs.field(factory=dict)
    latches: Mapping[str, Expr] = attrs.field(factory=dict)
    job_attributes: tuple[str, ...] = ()
    prefixes: Mapping[int, str] = attrs.field(factory=dict)
    match_timeout_s: float = setting("MATCH_TIMEOUT")
    killing_timeout_s: float = setting("KILLING_TIMEOUT")
    keyboard_slots: int = setting("SLOTS_CONNECTED_TO_KEYBOARD")
    console_slots: int = ALL_SLOTS
    idle_boost_s: float = setting("DISCONNECTED_KEYBOARD_IDLE_BOOST")
    start_instead: Expr | None = None
    weight: str = "Cpus"
    rounding: Mapping[str, Expr] = attrs.field(factory=dict)
    worklife: Expr | None = None
    hibernate: Expr | None = None
    hibernate_check_s: float = 0.0
    unhibernate: Expr | None = None
    sleeps_unwakeable: bool = False
    reserved_disk_kib: int = 0
    tells_all: bool = False
    offline: Mapping[str, frozenset[str]] = attrs.field(factory=dict)

    def policy_of(self, type_id: int) -> dict[str, Expr]:
        """The expressions that hold for a type."""
        return {**self.policy, **self.policy_by_type.get(type_id, {})}


@attrs.define(eq=False, kw_only=True)
class Slot:
    """One slot.

    Attributes:
        name: ``slot1@host`` or, dynamic, ``slot1_2@host``.
        plan: of the slot or, dynamic, of the partitionable slot it was carved from.
        total: its whole share; free: what is not carved out (partitionable) or the same.
        machine: its policy state.
        policy: its expressions.
        ad: its ad, kept up to date by :class:`Slots`.
        capability: the right to ask for a claim on it.
        parent: the partitionable slot of a dynamic one.
        children: the dynamic slots of a partitionable one, by number.
        claim: who has it.
        number: of a dynamic slot.
        highest: up to which numbers were given to dynamic slots in order, and returned: those that came back of these.
        made: how many dynamic slots were carved out of it since the startd began.
        site: lower-case names of the attributes that programs of the site have given it.
    """

    name: str
    plan: SlotPlan
    total: Share
    free: Share
    machine: owner_policy.SlotStateMachine
    policy: OwnerPolicy
    ad: ClassAd
    capability: str
    parent: Slot | None = None
    children: dict[int, Slot] = attrs.field(factory=dict)
    claim: Claim | None = None
    job: ClassAd | None = None
    number: int = 0
    highest: int = 0
    returned: list[int] = attrs.field(factory=list)
    made: int = 0
    site: set[str] = attrs.field(factory=set)

    @property
    def partitionable(self) -> bool:
        """Whether claims are carved out of it."""
        return self.plan.partitionable and self.parent is None


class Slots:
    """All slots of the machine by name.

    Args:
        settings: how they look and behave.
        machine_ad: the facts all ads share.
        new_secret: gives a fresh capability.
        inventories: what the machine's devices are, by resource.

    Attributes:
        site_ads: what programs of the site say.
    """

    def __init__(self, settings: SlotSettings, machine_ad: ClassAd, new_secret: Callable[[], str],
                 inventories: Mapping[str, Inventory] | None = None) -> None:
        self.settings = settings
        self.machine_ad = machine_ad
        self._new_secret = new_secret
        self._inventories = inventories or {}
        self._slots: dict[str, Slot] = {}
        self.site_ads: tuple[SiteAd, ...] = ()

    def __iter__(self) -> Iterator[Slot]:
        return iter(tuple(self._slots.values()))

    def __len__(self) -> int:
        return len(self._slots)

    def get(self, name: str) -> Slot | None:
        """The slot of that name (with or without ``@host``)."""
        return self._slots.get(name) or self._slots.get(f"{name}@{self.settings.host}")

    def create(self, plans: tuple[SlotPlan, ...], now_s: float) -> None:
        """Make the slots of the plan; they begin in Owner, as the first look has not been taken."""
        for plan in plans:
            prefix = self.settings.prefixes.get(plan.type_id, "slot")
            self._make(f"{prefix}{plan.number}@{self.settings.host}", plan, plan.share, None, 0, now_s)

    def _make(self, name: str, plan: SlotPlan, share: Share, parent: Slot | None, number: int, now_s: float) -> Slot:
        settings = self.settings
        ad = ClassAd(parent=self.machine_ad)
        kind = "Dynamic" if parent is not None else "Partitionable" if plan.partitionable else "Static"
        ad["Name"] = name
        ad["SlotID"] = plan.number
        ad["SlotType"] = kind
        ad["SlotTypeID"] = -plan.type_id if parent is not None else plan.type_id
        if kind != "Static":
            ad[f"{kind}Slot"] = True
        if parent is not None:
            ad["DSlotID"] = number
            ad["ParentSlotName"] = parent.name
        policy = self._write_policy(ad, plan.type_id)
        self._write_share(ad, share, share)
        begins = owner_policy.OWNER if parent is None else owner_policy.UNCLAIMED
        machine = owner_policy.SlotStateMachine(
            slot_state=begins, match_timeout_s=settings.match_timeout_s, killing_timeout_s=settings.killing_timeout_s,
            state_since_s=now_s, activity_since_s=now_s)
        slot = Slot(name=name, plan=plan, total=share, free=share, machine=machine, ad=ad, parent=parent, number=number,
                    policy=policy, capability=self._new_secret())
        self._slots[name] = slot
        self.refresh(slot, now_s)
        self._write_site(slot)
        return slot

    def carve(self, parent: Slot, share: Share, now_s: float, number: int = 0) -> Slot:
        """Make a dynamic slot out of what ``parent`` has free."""
        if not number:
            number = _free_number(parent)
        bare, _, host = parent.name.partition("@")
        slot = self._make(f"{bare}_{number}@{host}", parent.plan, share, parent, number, now_s)
        slot.machine.evaluation = parent.machine.evaluation
        parent.children[number] = slot
        parent.made += 1
        self._set_free(parent, parent.free.minus(share))
        self.refresh(parent, now_s)
        return slot

    def join(self, slot: Slot, now_s: float) -> Slot:
        """Give a dynamic slot's share back; returns the partitionable slot."""
        parent = slot.parent
        assert parent is not None
        del self._slots[slot.name]
        del parent.children[slot.number]
        if not parent.children:
            parent.highest, parent.returned = 0, []
        elif slot.number <= parent.highest:
            heappush(parent.returned, slot.number)
        self._set_free(parent, parent.free.plus(slot.total))
        self.refresh(parent, now_s)
        return parent

    def grow_disk(self, disk_kib: Mapping[int, int], now_s: float) -> None:
        """Give slots more disk; what runs in them, or was carved out of them, keeps what it has.

        Args:
            disk_kib: what each is to have, by its number; one that has more keeps that.
            now_s: the time.
        """
        for slot in self:
            more_kib = disk_kib.get(slot.plan.number, 0) - slot.total.disk_kib
            if slot.parent is None and more_kib > 0:
                slot.total = attrs.evolve(slot.total, disk_kib=slot.total.disk_kib + more_kib)
                self._set_free(slot, attrs.evolve(slot.free, disk_kib=slot.free.disk_kib + more_kib))
                self.refresh(slot, now_s)

    def _set_free(self, slot: Slot, free: Share) -> None:
        slot.free = free
        self._write_share(slot.ad, free, slot.total)

    def _write_share(self, ad: ClassAd, free: Share, total: Share) -> None:
        settings = self.settings
        free = free.but(settings.offline)
        slot_ad.write_share(ad, free, total, requirements=settings.requirements, weight=settings.weight)
        if self._inventories or settings.offline:
            slot_ad.write_devices(ad, free, total, self._inventories, settings.offline)

    def assigned(self, slot: Slot) -> tuple[tuple[str, str], ...]:
        """The names of a slot's devices, by resource, but for those that are off."""
        return tuple((name, ",".join(have.ids)) for name, have in slot.total.but(self.settings.offline).custom.items()
                     if have.ids)

    def request(self, slot: Slot, job: ClassAd) -> Request:
        """What ``job`` asks of ``slot``; rounded up where the slot can be divided, as far as there is enough."""
        exact = read_request(job, slot.ad, tuple(slot.total.custom), memory_step_mib=1, disk_step_kib=1)
        allowed = {name: self._as_required(slot, job, name) for name in slot.total.custom if f"Require{name}" in job}
        if allowed:
            exact = attrs.evolve(exact, allowed=allowed)
        if not slot.partitionable:
            return exact
        rounding, free = self.settings.rounding, slot.free
        if not rounding:
            rounded = read_request(job, slot.ad, tuple(slot.total.custom))
            cpus, memory, disk = exact.cpus, rounded.memory_mib, rounded.disk_kib
        else:
            cpus = _rounded(rounding.get("RequestCpus"), job, slot.ad, exact.cpus)
            memory = _rounded(rounding.get("RequestMemory"), job, slot.ad, exact.memory_mib)
            disk = _rounded(rounding.get("RequestDisk"), job, slot.ad, exact.disk_kib)
        return attrs.evolve(
            exact,
            cpus=max(exact.cpus, min(cpus, free.cpus)),
            memory_mib=max(exact.memory_mib, min(memory, free.memory_mib)),
            disk_kib=max(exact.disk_kib, min(disk, free.disk_kib)),
        )

    def _as_required(self, slot: Slot, job: ClassAd, name: str) -> frozenset[str]:
        """The devices that a job's Require<NAME> holds for; none that nothing is known of."""
        found = self._inventories[name].properties if name in self._inventories else {}
        units = [unit for unit in dict.fromkeys(slot.free.but(self.settings.offline).custom[name].ids) if unit in found]
        each = parse_expression(f"evalInEachContext(MY.Require{name}, TARGET.Available{name})")
        answers = each.evaluate(job, slot.ad)
        if not isinstance(answers, list) or len(answers) != len(units):
            return frozenset()
        return frozenset(unit for unit, answer in zip(units, answers, strict=True) if answer is True)

    def write_worklife(self, slot: Slot, job: ClassAd, now_s: float) -> None:
        """Say in the slot's ad how long a claim for this job takes further ones."""
        worklife = self.settings.worklife
        value = worklife.evaluate(slot.ad, job, now_s) if worklife is not None else -1
        slot.ad["ClaimWorklife"] = whole(value, -1)

    def fit(self, slot: Slot, job: ClassAd) -> Share | str:
        """The share ``job`` would get, or why it does not fit."""
        if slot.partitionable:
            return carve(slot.free.but(self.settings.offline), self.request(slot, job))
        share = carve(slot.total.but(self.settings.offline), self.request(slot, job))
        return slot.total if isinstance(share, Share) else share

    def renew_capability(self, slot: Slot) -> None:
        """Make matches that were made before void."""
        slot.capability = self._new_secret()

    def refresh(self, slot: Slot, now_s: float) -> None:
        """Bring the ad up to date with state and claim."""
        ad = slot.ad
        slot_ad.write_state(ad, slot.machine, now_s)
        slot_ad.write_claim(ad, slot.claim, slot.machine, now_s)
        if slot.claim is not None and slot.job is not None and "ConcurrencyLimits" in slot.job:
            ad["ConcurrencyLimits"] = slot.job.get_str("ConcurrencyLimits", "", ad)[:MOST_LIMITS]
        if slot.partitionable:
            ad["NumDynamicSlots"] = len(slot.children)
            ad["DynamicSlotsMade"] = slot.made
        for name in self.settings.job_attributes:
            if slot.job is not None and slot.claim is not None and slot.claim.job_id and name in slot.job:
                ad[name] = slot.job[name]
            elif name.lower() in ad.own:
                del ad[name]

    def name_children(self, slot: Slot) -> None:
        """Write the names of the dynamic slots into the ad of the one that they are carved from, before it is sent."""
        if slot.partitionable:
            slot.ad.insert_text("ChildName", _strings(child.name for child in slot.children.values()))

    def start_instead(self, expression: Expr | None) -> None:
        """Put ``expression`` in the place of every START; None: the owner's own are in force again."""
        self.reconfigure(attrs.evolve(self.settings, start_instead=expression))

    def take_site_ads(self, ads: tuple[SiteAd, ...]) -> set[str]:
        """Have every slot's ad say what programs of the site say; returns the names that they may not say."""
        self.site_ads = ads
        return set().union(*(self._write_site(slot) for slot in self))

    def _write_site(self, slot: Slot) -> set[str]:
        if not self.site_ads and not slot.site:
            return set()
        return write_site(self.site_ads, slot.ad, slot.site, self.settings.attributes)

    def reconfigure(self, settings: SlotSettings) -> None:
        """Take another policy, other times and attributes; names and shares stay."""
        for slot in self:
            for name in self.settings.attributes:
                if name.lower() in slot.ad.own:
                    del slot.ad[name]
        self.settings = settings
        for slot in self:
            slot.machine.match_timeout_s = settings.match_timeout_s
            slot.machine.killing_timeout_s = settings.killing_timeout_s
            slot.policy = self._write_policy(slot.ad, slot.plan.type_id)
            self._write_share(slot.ad, slot.free, slot.total)
            self._write_site(slot)

    def _write_policy(self, ad: ClassAd, type_id: int) -> OwnerPolicy:
        expressions = self.settings.policy_of(type_id)
        for shown, key in PUBLISHED_POLICY:
            if key in expressions:
                ad[shown] = expressions[key]
        for attribute, expression in self.settings.attributes.items():
            ad[attribute] = expression
        instead = self.settings.start_instead
        if instead is not None:
            ad["Start"] = instead
        if self.settings.hibernate_check_s and self.settings.unhibernate is not None:
            ad["Unhibernate"] = self.settings.unhibernate
        elif "unhibernate" in ad.own:
            del ad["Unhibernate"]
        return OwnerPolicy(expressions, ad, instead)

    # ---- what always holds

    def validate(self) -> None:
        """Check what holds between two turns: shares that add up, and a claim where the state says so.

        Raises:
            InvariantBroken: something does not hold; says what.
        """
        capabilities = [slot.capability for slot in self._slots.values()]
        if len(set(capabilities)) != len(capabilities):
            raise InvariantBroken("two slots have one capability")
        astray = {name: slot.name for name, slot in self._slots.items() if slot.name != name}
        if astray:
            raise InvariantBroken(f"the slots {sorted(astray.values())} are kept as {sorted(astray)}")
        for name, slot in self._slots.items():
            _validate_share(slot)
            claimed = slot.machine.state in (owner_policy.State.CLAIMED, owner_policy.State.PREEMPTING)
            if claimed != (slot.claim is not None):
                raise InvariantBroken(f"{name} is {slot.machine.state.value}, with "
                                      f"{'a' if slot.claim is not None else 'no'} claim")
            if (slot.claim is None) != (slot.job is None):
                raise InvariantBroken(f"{name} has a claim without a job, or a job without a claim")
            if slot.partitionable and slot.claim is not None:
                raise InvariantBroken(f"{name} is partitionable, and claimed as a whole")
            if slot.parent is not None and slot.claim is None:
                raise InvariantBroken(f"{name} was carved for a claim that is over, and has not been joined again")
            if slot.parent is not None and (self._slots.get(slot.parent.name) is not slot.parent
                                            or slot.parent.children.get(slot.number) is not slot):
                raise InvariantBroken(f"{name} is no child of {slot.parent.name}")
            if any(self._slots.get(child.name) is not child for child in slot.children.values()):
                raise InvariantBroken(f"{name} has a child that is no slot any more")
            stands = slot.machine.slot_state == owner_policy.SUSPENDED
            if stands and not (slot.machine.owner_suspended or slot.machine.user_suspended):
                raise InvariantBroken(f"{name} is suspended, and nobody wants that")


def _validate_share(slot: Slot) -> None:
    """What is free, and what is carved out, are together the whole; no device is in two of them."""
    parts = [slot.free, *(child.total for child in slot.children.values())]
    for name in ("cpus", "memory_mib", "disk_kib", "swap_mib"):
        amounts = [getattr(part, name) for part in parts]
        if min(amounts) < 0 or sum(amounts) != getattr(slot.total, name):
            raise InvariantBroken(f"{slot.name} has {getattr(slot.total, name)} {name}, free and carved are {amounts}")
    for name, have in slot.total.custom.items():
        mine = [part.custom[name] for part in parts if name in part.custom]
        devices = [each for part in mine for each in part.ids]
        if sum(part.amount for part in mine) != have.amount or sorted(devices) != sorted(have.ids):
            raise InvariantBroken(f"{slot.name} has {have}, free and carved are {mine}")


def _rounded(expression: Expr | None, job: ClassAd, slot: ClassAd, exact: int) -> int:
    """What a request is rounded to; as it is where the expression gives no number."""
    value = expression.evaluate(job, slot) if expression is not None else exact
    return max(exact, math.ceil(value)) if isinstance(value, (int, float)) and math.isfinite(value) else exact


def _free_number(parent: Slot) -> int:
    """The least number that no dynamic slot has."""
    while parent.returned:
        number = heappop(parent.returned)
        if number not in parent.children:
            return number
    parent.highest += 1
    while parent.highest in parent.children:
        parent.highest += 1
    return parent.highest


def _strings(names: Iterator[str]) -> str:
    return "{" + ", ".join(f'"{name}"' for name in names) + "}"


def parse_policy(texts: Mapping[str, str]) -> dict[str, Expr]:
    """Expressions from their texts (tests, the policy checker)."""
    return {name.upper(): parse_expression(text) for name, text in texts.items()}
