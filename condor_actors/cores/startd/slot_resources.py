"""What a machine has, how it is divided into slots, and what a request takes out of a partitionable slot.

Theory: a :class:`Share` is a bundle of countable resources (cpus, memory, disk, swap, and whatever the administrator
declared, GPUs among them, with the identifiers of the devices).  Shares are added and subtracted; a slot type is a
recipe that turns the whole machine into one share; a request is a share that a job wants.  Nothing here knows states
or claims.

Source: HTCondor's manual, "Configuring the startd for slots" (SLOT_TYPE_<N>, NUM_SLOTS_TYPE_<N>, NUM_SLOTS,
MACHINE_RESOURCE_<name>).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

import attrs

from condor_actors.classads import ClassAd

__all__ = [
    "Custom", "Request", "Share", "SlotPlan", "SlotTypeError", "carve", "parse_machine_resource", "plan_slots",
    "read_request",
]

_NAMES = {
    "c": "cpus", "cpu": "cpus", "cpus": "cpus",
    "r": "memory", "ram": "memory", "m": "memory", "mem": "memory", "memory": "memory",
    "d": "disk", "disk": "disk",
    "s": "swap", "swap": "swap", "v": "swap", "virtualmemory": "swap", "virt": "swap",
}
_PERCENT = re.compile(r"^(\d+(?:\.\d+)?)\s*%$")
_FRACTION = re.compile(r"^(\d+)\s*/\s*(\d+)$")
_NUMBER = re.compile(r"^(\d+(?:\.\d+)?)\s*([KMGT]B?)?$", re.IGNORECASE)
_IN_MIB = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024.0}


class SlotTypeError(ValueError):
    """A slot type that cannot be carried out; says which, what is wrong and what would be right."""


@attrs.frozen
class Custom:
    """An amount of a declared resource: ``ids`` name the devices; without ids it is only a number."""

    amount: int
    ids: tuple[str, ...] = ()

    def first(self, amount: int) -> Custom:
        """The first ``amount`` of it."""
        return Custom(amount, self.ids[:amount])

    def without(self, other: Custom) -> Custom:
        """What is left when ``other`` is taken; a name may be there several times (condor_gpu_discovery -repeat)."""
        taken, left = Counter(other.ids), []
        for each in self.ids:
            if taken[each]:
                taken[each] -= 1
            else:
                left.append(each)
        return Custom(self.amount - other.amount, tuple(left))

    def plus(self, other: Custom) -> Custom:
        """Both together."""
        return Custom(self.amount + other.amount, tuple(sorted((*self.ids, *other.ids))))

    def but(self, names: frozenset[str]) -> Custom:
        """Without the devices of those names."""
        left = tuple(each for each in self.ids if each not in names)
        return self if len(left) == len(self.ids) else Custom(len(left), left)

    def taken(self, amount: int, allowed: frozenset[str] | None) -> Custom | None:
        """So many different devices, of those allowed (None: all); None: there are not so many.

        Those that most others can have besides come first.
        """
        if not self.ids:
            return self.first(amount)
        times = Counter(each for each in self.ids if allowed is None or each in allowed)
        if len(times) < amount:
            return None
        return Custom(amount, tuple(sorted(times, key=lambda each: -times[each])[:amount]))


@attrs.frozen(kw_only=True)
class Share:
    """A bundle of resources; ``custom`` by the name as declared."""

    cpus: int = 0
    memory_mib: int = 0
    disk_kib: int = 0
    swap_mib: int = 0
    custom: Mapping[str, Custom] = attrs.field(factory=dict)

    def minus(self, other: Share) -> Share:
        """What is left when ``other`` is taken out."""
        custom = {name: have.without(other.custom.get(name, Custom(0))) for name, have in self.custom.items()}
        return Share(
            cpus=self.cpus - other.cpus, memory_mib=self.memory_mib - other.memory_mib,
            disk_kib=self.disk_kib - other.disk_kib, swap_mib=self.swap_mib - other.swap_mib, custom=custom,
        )

    def plus(self, other: Share) -> Share:
        """Both together."""
        names = {**self.custom, **other.custom}
        custom = {name: self.custom.get(name, Custom(0)).plus(other.custom.get(name, Custom(0))) for name in names}
        return Share(
            cpus=self.cpus + other.cpus, memory_mib=self.memory_mib + other.memory_mib,
            disk_kib=self.disk_kib + other.disk_kib, swap_mib=self.swap_mib + other.swap_mib, custom=custom,
        )

    def but(self, devices: Mapping[str, frozenset[str]]) -> Share:
        """Without those devices, by resource."""
        if not any(devices.get(name) for name in self.custom):
            return self
        return attrs.evolve(self, custom={
            name: have.but(devices.get(name, frozenset())) for name, have in self.custom.items()})


@attrs.frozen(kw_only=True)
class SlotPlan:
    """One slot to be made at start: ``number`` counts from 1, ``type_id`` is N of SLOT_TYPE_<N> (0: no type)."""

    number: int
    type_id: int
    partitionable: bool
    share: Share


@attrs.frozen(kw_only=True)
class Request:
    """What a job asks of a slot, rounded as the configuration says.

    Attributes:
        allowed: of a resource, the devices that are as the job requires; without an entry it takes any.
    """

    cpus: int = 1
    memory_mib: int = 1
    disk_kib: int = 1
    swap_mib: int = 0
    custom: Mapping[str, int] = attrs.field(factory=dict)
    allowed: Mapping[str, frozenset[str]] = attrs.field(factory=dict)


def parse_machine_resource(name: str, text: str) -> Custom:
    """The value of MACHINE_RESOURCE_<name>: a number, or the devices' identifiers with commas or blanks between.

    Raises:
        SlotTypeError: a negative number.
    """
    words = [word for word in re.split(r"[,\s]+", text.strip()) if word]
    if len(words) == 1 and re.fullmatch(r"-?\d+", words[0]):
        amount = int(words[0])
        if amount < 0:
            raise SlotTypeError(f"MACHINE_RESOURCE_{name} = {text}: a resource cannot be negative")
        return Custom(amount)
    return Custom(len(words), tuple(words))


# ---- slot types


@attrs.frozen
class _Part:
    """One recipe: a fixed amount, a fraction of the whole, or an equal part of what the others leave (auto)."""

    amount: float | None = None
    fraction: float | None = None

    @property
    def auto(self) -> bool:
        return self.amount is None and self.fraction is None

    def of(self, total: int, left: int, slots: int) -> int:
        if self.fraction is not None:
            return math.floor(total * self.fraction + 1e-9)
        if self.amount is not None:
            return int(self.amount)
        return left // slots if slots else 0


_AUTO = _Part()


def _part(type_id: int, name: str, text: str) -> _Part:
    text = text.strip()
    if text.lower() == "auto":
        return _AUTO
    if found := _PERCENT.match(text):
        return _Part(fraction=_at_most_one(type_id, name, text, float(found[1]) / 100.0))
    if found := _FRACTION.match(text):
        if int(found[2]) == 0:
            raise SlotTypeError(f"SLOT_TYPE_{type_id}: {name} = {text} divides by zero")
        return _Part(fraction=_at_most_one(type_id, name, text, int(found[1]) / int(found[2])))
    if found := _NUMBER.match(text):
        amount = float(found[1])
        if found[2]:
            factor = _IN_MIB[found[2][0].upper()]
            amount *= factor * 1024.0 if name == "disk" else factor
        return _Part(amount=amount)
    raise SlotTypeError(
        f"SLOT_TYPE_{type_id}: {name} = {text} is not a share; write a number, 25%, 1/4 or auto"
    )


def _at_most_one(type_id: int, name: str, text: str, fraction: float) -> float:
    if fraction > 1.0:
        raise SlotTypeError(f"SLOT_TYPE_{type_id}: {name} = {text} is more than the whole machine")
    return fraction


def _recipe(type_id: int, text: str, custom: Mapping[str, Custom]) -> dict[str, _Part]:
    """Resource name to its part; what is not named is ``auto``."""
    spelling = {name.lower(): name for name in custom}
    every = dict.fromkeys(("cpus", "memory", "disk", "swap", *custom), _AUTO)
    words = [word.strip() for word in re.split(r"[,\n]|(?<!\s)\s+(?=[A-Za-z_]\w*\s*=)", text) if word.strip()]
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            if len(words) > 1:
                raise SlotTypeError(f"SLOT_TYPE_{type_id} = {text}: {word!r} has no name; write cpus={word}")
            return {each: _part(type_id, each, word) for each in every}
        key = name.strip().lower()
        resource = _NAMES.get(key) or spelling.get(key)
        if resource is None:
            known = ", ".join(["cpus", "memory", "disk", "swap", *custom])
            raise SlotTypeError(f"SLOT_TYPE_{type_id}: unknown resource {name.strip()!r}; known are {known}")
        every[resource] = _part(type_id, resource, value)
    return every


def plan_slots(total: Share, *, types: Mapping[int, str], counts: Mapping[int, int],
               partitionable: Mapping[int, bool], num_slots: int | None = None) -> tuple[SlotPlan, ...]:
    """Divide a machine into slots.

    Args:
        total: the machine.
        types: N to the text of SLOT_TYPE_<N>.
        counts: N to NUM_SLOTS_TYPE_<N>.
        partitionable: N to SLOT_TYPE_<N>_PARTITIONABLE.
        num_slots: NUM_SLOTS, static slots of equal size, when there are no types.

    Returns:
        The slots in their order; without any setting one partitionable slot with everything.

    Raises:
        SlotTypeError: a type is not understood, or the slots together are more than the machine.
    """
    wanted: list[tuple[int, bool, dict[str, _Part]]] = []
    for type_id in sorted({*types, *counts}):
        count = counts.get(type_id, 1 if type_id == 1 and not counts else 0)
        recipe = _recipe(type_id, types.get(type_id, "auto"), total.custom)
        wanted += [(type_id, partitionable.get(type_id, False), recipe)] * count
    if not wanted and num_slots is not None:
        wanted = [(0, False, _recipe(0, "auto", total.custom))] * num_slots
    elif not wanted and not counts:
        wanted = [(1, partitionable.get(1, True), _recipe(1, types.get(1, "100%"), total.custom))]
    return _lay_out(total, wanted)


def _lay_out(total: Share, wanted: Sequence[tuple[int, bool, dict[str, _Part]]]) -> tuple[SlotPlan, ...]:
    whole = {"cpus": total.cpus, "memory": total.memory_mib, "disk": total.disk_kib, "swap": total.swap_mib,
             **{name: have.amount for name, have in total.custom.items()}}
    amounts: list[dict[str, int]] = [{} for _ in wanted]
    for name, size in whole.items():
        autos = [index for index, (_, _, recipe) in enumerate(wanted) if recipe[name].auto]
        used = 0
        for index, (_, _, recipe) in enumerate(wanted):
            if not recipe[name].auto:
                amounts[index][name] = part = recipe[name].of(size, 0, 0)
                used += part
        if used > size:
            raise SlotTypeError(f"the slot types want {used} of {name}, but the machine has {size}")
        left = size - used
        for slot_state, index in enumerate(autos):
            extra = 1 if name in total.custom and slot_state < left % len(autos) else 0
            amounts[index][name] = left // len(autos) + extra
    plans = []
    pools = dict(total.custom)
    for number, ((type_id, is_partitionable, _), amount) in enumerate(zip(wanted, amounts, strict=True), start=1):
        if amount["cpus"] < 1:
            raise SlotTypeError(f"slot {number} would have no cpu: {len(wanted)} slots on {total.cpus} cpus; "
                                "define fewer slots or raise NUM_CPUS")
        custom = {}
        for name in total.custom:
            custom[name] = pools[name].first(amount[name])
            pools[name] = pools[name].without(custom[name])
        plans.append(SlotPlan(number=number, type_id=type_id, partitionable=is_partitionable, share=Share(
            cpus=amount["cpus"], memory_mib=amount["memory"], disk_kib=amount["disk"], swap_mib=amount["swap"],
            custom=custom)))
    return tuple(plans)


# ---- requests


def read_request(job: ClassAd, slot: ClassAd, custom: Sequence[str], *, memory_step_mib: int = 128,
                 disk_step_kib: int = 1024) -> Request:
    """What ``job`` asks for, evaluated beside ``slot`` and rounded up to steps."""
    swap = job.evaluate("RequestVirtualMemory", slot)
    return Request(
        cpus=max(1, _whole(job.evaluate("RequestCpus", slot), 1)),
        memory_mib=_step(max(1, _whole(job.evaluate("RequestMemory", slot), 1)), memory_step_mib),
        disk_kib=_step(max(1, _whole(job.evaluate("RequestDisk", slot), 1)), disk_step_kib),
        swap_mib=_whole(swap, 0),
        custom={name: _whole(job.evaluate(f"Request{name}", slot), 0) for name in custom},
    )


def _whole(value: object, default: int) -> int:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return max(0, math.ceil(value))
    return default


def _step(amount: int, step: int) -> int:
    return -(-amount // step) * step if step > 1 else amount


def carve(have: Share, request: Request) -> Share | str:
    """The share a request takes out of ``have``, or a sentence that says what is not enough."""
    if request.cpus > have.cpus:
        return f"it wants {request.cpus} cpus, {have.cpus} are left"
    custom: dict[str, Custom] = {name: mine.first(0) for name, mine in have.custom.items()}
    for name, amount in request.custom.items():
        left = have.custom.get(name, Custom(0))
        if amount > left.amount:
            return f"it wants {amount} {name}, {left.amount} are left"
        chosen = left.taken(amount, request.allowed.get(name))
        if chosen is None:
            fit = "different" if name not in request.allowed else "as it requires"
            return f"it wants {amount} {name}, and so many of the {left.amount} that are left are not {fit}"
        custom[name] = chosen
    if request.memory_mib > have.memory_mib:
        return f"it wants {request.memory_mib} MiB of memory, {have.memory_mib} are left"
    if request.disk_kib > have.disk_kib:
        return f"it wants {request.disk_kib} KiB of disk, {have.disk_kib} are left"
    return Share(
        cpus=request.cpus, memory_mib=request.memory_mib, disk_kib=request.disk_kib,
        swap_mib=min(request.swap_mib, have.swap_mib),
        custom=custom,
    )
