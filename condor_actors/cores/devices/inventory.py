"""What an inventory program says of a resource: its units, and what each of them is.

Theory: the program writes a ClassAd.  ``Detected<NAME>`` is a number, or a string with the units' names;
``Offline<NAME>`` names some that are not to be used.  What the units are is in records: ``Common = [ … ]`` for all,
``<name> = [ id = "name"; … ]`` for one.  Any other attribute is one of the machine.  Names may come several times: so
many jobs can have the unit at once.

**Source**: HTCondor's manual, MACHINE_RESOURCE_INVENTORY_<NAME> and condor_gpu_discovery.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

from condor_actors.classads import ClassAd, ClassAdSyntaxError

__all__ = ["BadInventory", "Inventory", "attribute_of", "read_inventory", "units_in"]

MOST_UNITS = 4096
_NAME = re.compile(r"[A-Za-z0-9_./:+-]{1,200}")


class BadInventory(ValueError):
    """What an inventory program wrote is no inventory; says what is wrong."""


@attrs.frozen(kw_only=True)
class Inventory:
    """What a machine has of a resource.

    Attributes:
        amount, ids: as of :class:`~condor_actors.cores.startd.slot_resources.Custom`.
        offline: names of units that are not to be used.
        properties: by the unit's name, what it is.
        attributes: of the machine.
    """

    amount: int
    ids: tuple[str, ...] = ()
    offline: frozenset[str] = frozenset()
    properties: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    attributes: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def files(self) -> tuple[str, ...]:
        """What programs open to use any of the units."""
        return tuple(dict.fromkeys(path for each in self.properties.values() for path in _files(each)))


def _files(properties: Mapping[str, Any]) -> list[str]:
    said = properties.get("DeviceFiles")
    return said.split() if isinstance(said, str) else []


def units_in(text: str) -> tuple[str, ...]:
    """The names in a list with commas or blanks between.

    Raises:
        BadInventory: one cannot be a name, or there are too many.
    """
    words = tuple(word for word in re.split(r"[,\s]+", text.strip()) if word)
    for word in words:
        if _NAME.fullmatch(word) is None:
            raise BadInventory(f"{word!r} cannot be the name of a unit: letters, digits and _ . / : + - make one")
    if len(words) > MOST_UNITS:
        raise BadInventory(f"it names {len(words)} units; at most {MOST_UNITS} are possible")
    return words


def attribute_of(resource: str, unit: str) -> str:
    """The attribute of a slot's ad that says what a unit is: ``GPUs_GPU_5d5ba0d6``."""
    return re.sub(r"[^A-Za-z0-9_]", "_", f"{resource}_{unit}")


def read_inventory(resource: str, text: str) -> Inventory:
    """Read what a program wrote.

    Raises:
        BadInventory: it is none; says why.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("#", "//"))]
    try:
        ad = ClassAd.from_text("\n".join(lines))
    except ClassAdSyntaxError as error:
        raise BadInventory(f"it is no ClassAd: {error}") from None
    detected = ad.evaluate(f"Detected{resource}")
    no_names: tuple[str, ...] = ()
    ids, amount = no_names, 0
    if isinstance(detected, str):
        named = units_in(detected)
        counted = len(named) == 1 and named[0].isdecimal()
        ids, amount = (no_names, int(named[0])) if counted else (named, len(named))
    elif isinstance(detected, int) and not isinstance(detected, bool) and 0 <= detected <= MOST_UNITS:
        ids, amount = no_names, detected
    else:
        raise BadInventory(f"it does not say Detected{resource} = NUMBER or \"NAME, NAME …\"")
    offline = ad.evaluate(f"Offline{resource}")
    known = {f"detected{resource}".lower(), f"offline{resource}".lower(), "common"}
    common = _plain(ad.evaluate("Common"))
    properties: dict[str, Mapping[str, Any]] = {}
    attributes: dict[str, Any] = {}
    own = _nested(ad, known, attributes)
    for unit in dict.fromkeys(ids):
        found = own.get(unit)
        if found is not None or common:
            properties[unit] = {**common, **(found or {})}
    return Inventory(amount=amount, ids=ids, properties=properties, attributes=attributes,
                     offline=frozenset(units_in(offline)) if isinstance(offline, str) else frozenset())


def _nested(ad: ClassAd, known: set[str], attributes: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The records of units by their ``id``; what is no record goes into ``attributes``."""
    found: dict[str, dict[str, Any]] = {}
    for name in ad:
        if name.lower() in known:
            continue
        value = ad.evaluate(name)
        if isinstance(value, ClassAd):
            said = {key: each for key, each in _plain(value).items() if key.lower() != "id"}
            unit = value.evaluate("id")
            found[unit if isinstance(unit, str) else name] = said
        elif isinstance(value, (str, int, float)):
            attributes[name] = value
    return found


def _plain(record: Any) -> dict[str, Any]:
    """The values of a record that are text, numbers or truth."""
    if not isinstance(record, ClassAd):
        return {}
    values = {name: record.evaluate(name) for name in record}
    return {name: value for name, value in values.items() if isinstance(value, (str, int, float))}
