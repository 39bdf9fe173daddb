"""What pools have lent each other, as their accountants have it.

Each pool's accountant counts what other pools' users had of it, and each may be asked by the other: so what was lent is
what the own accountant says of theirs, and what was borrowed is what theirs says of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from condor_actors import records
from condor_actors.classads import ClassAd
from condor_actors.messages.realm import parted

__all__ = ["Flow", "flow_of", "report_text"]

HOUR_S = 3600.0
WIDEST = 24


@records.frozen
class Flow:
    """What the users of one pool had of another: hours by slot weight so far, slots now, and how many users had any."""

    hours: float = 0.0
    slots: float = 0.0
    users: int = 0


def flow_of(ads: Iterable[ClassAd], realm: str) -> Flow:
    """What the accountant's records say of a pool's users.

    Args:
        ads: the records.
        realm: the pool, as the accountant calls it.
    """
    found = [ad for ad in ads if parted(ad.get_str("Name"))[1] == realm]
    return Flow(sum(ad.get_float("WeightedAccumulatedUsage") for ad in found) / HOUR_S,
                sum(ad.get_float("WeightedResourcesUsed") for ad in found), len(found))


def report_text(own: str, flows: Sequence[tuple[str, Flow, Flow | str]], lending: Iterable[ClassAd] = ()) -> str:
    """The report and its picture.

    Args:
        own: what this pool is called.
        flows: for each partner its name, what it had of this pool, and what this pool had of it, or why nobody knows.
        lending: for each partner what the negotiator says of its terms and of what it has.
    """
    terms = {ad.get_str("Name"): _terms(ad) for ad in lending}
    lines = [f"{'':<{WIDEST}} {'lent to it':>22} {'borrowed from it':>22}"]
    picture = []
    for name, lent, borrowed in flows:
        theirs = _cell(borrowed) if isinstance(borrowed, Flow) else "not known"
        lines.append(f"{name:<{WIDEST}} {_cell(lent):>22} {theirs:>22}")
        if name in terms:
            lines.append(f"    {terms[name]}")
        if isinstance(borrowed, str):
            lines.append(f"    {borrowed}")
        elif borrowed.hours:
            picture.append(f"  {own} ── {borrowed.hours:.2f} h ──▶ {name}")
        if lent.hours:
            picture.append(f"  {name} ── {lent.hours:.2f} h ──▶ {own}")
    if picture:
        lines += ["", "Where jobs went to:", *picture]
    return "\n".join(lines)


def _terms(ad: ClassAd) -> str:
    """What a partner has of what it may have, and what was done about it."""
    quota = ad.get_float("Quota", -1.0)
    held = ad.get_float("WeightHeld") + ad.get_float("WeightPending")
    said = [f"has {held:g}" + (f" of {quota:g} cores" if quota >= 0.0 else " cores, no limit"),
            f"{ad.get_str('Rank')} local jobs" if ad.get_str("Rank") == "below" else "by priority, like local jobs"]
    if ad.get_str("Times"):
        said.append(f"{ad.get_str('Times')}: now {'lent' if ad.get_bool('IsOpen') else 'not lent'}")
    for attribute, text in (("Reclaimed", "taken back for local jobs"), ("Refused", "requests refused"),
                            ("Strikes", "times more than it was given")):
        if ad.get_int(attribute):
            said.append(f"{ad.get_int(attribute)} {text}")
    if ad.get_int("PenaltyUntil"):
        said.append("nothing new for a while")
    return "; ".join(said)


def _cell(flow: Flow) -> str:
    return f"{flow.hours:.2f} h, {flow.slots:g} now"
