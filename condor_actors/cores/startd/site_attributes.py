"""What programs of the site say of the machine, in the ads of its slots.

Theory: an ad of a program's is for all slots or for some, and what is said of one slot counts more than what is said of
all.  What the startd itself writes (state, claim, resources, policy, facts of the machine) is never overwritten: those
names are refused.  An attribute of STARTD_ATTRS may be: it is then the default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from condor_actors.classads import ClassAd, Expr, is_true
from condor_actors.cores.site_programs.programs import SiteAd
from condor_actors.cores.startd.slot_ad import CLAIM_KEYS

__all__ = ["is_for", "merged", "write_site"]

OWN = frozenset({
    *CLAIM_KEYS, "name", "mytype", "targettype", "machine", "myaddress", "startdipaddr", "capability", "claimid",
    "claimids", "state", "activity", "enteredcurrentstate", "enteredcurrentactivity", "mycurrenttime", "draining",
    "slotid", "slottype", "slottypeid", "dslotid", "parentslotname", "childname", "dynamicslot", "partitionableslot",
    "requirements", "withinresourcelimits", "slotweight", "loadavg", "condorloadavg", "totalloadavg",
    "totalcondorloadavg", "keyboardidle", "consoleidle", "claimworklife", "lastbenchmark", "start", "rank",
    "authenticatedidentity", "lastheardfrom", "machineresources", "availablesince", "availabilitymean",
    "offline", "unhibernate", "canhibernate", "hibernationlevel", "hibernationstate", "hibernationmethod",
    "hibernationsupportedstates", "machinelastmatchtime",
    "expectedavailability", "screenlocked", "clockmin", "clockday", "diskfree",
})
"""Names that the startd or the collector writes, some only now and then."""
PREFIXES = ("totaltime", "ownerpause")


def _refused(name: str, ad: ClassAd, written: Iterable[str], defaults: Mapping[str, Expr]) -> bool:
    """Whether no program may say this of a slot.

    Args:
        name: of the attribute.
        ad: of the slot.
        written: lower-case names that programs wrote into it before.
        defaults: what the configuration says of every slot (STARTD_ATTRS).
    """
    key = name.lower()
    if key in OWN or key.startswith(PREFIXES):
        return True
    if key in written or any(key == default.lower() for default in defaults):
        return False
    return name in ad


def write_site(sites: Iterable[SiteAd], ad: ClassAd, written: set[str], defaults: Mapping[str, Expr]) -> set[str]:
    """Bring a slot's ad up to date with what programs say.

    Args:
        sites: all that they say now.
        ad: of the slot.
        written: lower-case names that they wrote into it; changed.
        defaults: what the configuration says of every slot (STARTD_ATTRS).

    Returns:
        The names that they may not say.
    """
    found = merged(sites, ad)
    for key in written - found.keys():
        written.discard(key)
        default = next((name for name in defaults if name.lower() == key), None)
        if default is not None:
            ad[default] = defaults[default]
        elif key in ad.own:
            del ad[key]
    wrong = set()
    for key, (name, value) in found.items():
        if _refused(name, ad, written, defaults):
            wrong.add(name)
        else:
            ad[name] = value
            written.add(key)
    return wrong


def is_for(site: SiteAd, ad: ClassAd) -> bool:
    """Whether an ad is for the slot with this one."""
    if site.slots and ad.get_int("SlotID") not in site.slots:
        return False
    if site.constraint is not None:
        return is_true(site.constraint.evaluate(ClassAd(site.attributes), ad))
    if site.slot_name:
        return ad.get_str("Name").startswith(site.slot_name)
    if site.slot_type is not None:
        return ad.get_int("SlotTypeID") == site.slot_type
    if site.slot_id is not None:
        return ad.get_int("SlotID") == site.slot_id
    return True


def merged(sites: Iterable[SiteAd], ad: ClassAd) -> dict[str, tuple[str, Expr]]:
    """What all ads together say of the slot with this one: name and value by lower-case name.

    What is for all slots comes first; then by SlotId, SlotTypeId, SlotName and SlotMergeConstraint, each over the one
    before, and in the order of the programs.
    """
    found: dict[str, tuple[str, Expr]] = {}
    for site in sorted((site for site in sites if is_for(site, ad)), key=_closeness):
        for name, value in site.attributes.items():
            found[name.lower()] = (name, value)
    return found


def _closeness(site: SiteAd) -> int:
    if site.constraint is not None:
        return 4
    return 3 if site.slot_name else 2 if site.slot_type is not None else 1 if site.slot_id is not None else 0
