"""What a job wants to have written with each event of its log (``job_ad_information_attrs``), and with the first
(``submit_event_notes_attrs``)."""

from __future__ import annotations

from condor_actors.classads import ClassAd

__all__ = ["information_of", "structured_notes"]

MOST_ATTRIBUTES = 100
MOST_LETTERS = 8191


def information_of(ad: ClassAd) -> dict[str, bool | int | float | str]:
    """The attributes that a job names in ``JobAdInformationAttrs`` and that are numbers, texts or truth values now.

    Args:
        ad: the job's, or the facts of an event, which have these values in place of the expressions.
    """
    return _named(ad, ad.find("jobadinformationattrs"))


def structured_notes(ad: ClassAd) -> ClassAd | None:
    """What the submit event of a job says as an ad: what ``SubmitEventNotesAttrs`` names, node and batch; None: the job
    names nothing."""
    wanted = ad.evaluate("SubmitEventNotesAttrs")
    if not isinstance(wanted, str) or not wanted.strip(" ,"):
        return None
    return ClassAd(_named(ad, f"{wanted} DAGNodeName JobBatchName"))


def _named(ad: ClassAd, wanted: object) -> dict[str, bool | int | float | str]:
    if not isinstance(wanted, str):
        return {}
    names = wanted.replace(",", " ").split()
    found = {name: ad.evaluate(name) for name in names[:MOST_ATTRIBUTES] if name.isidentifier() and name.isascii()}
    return {name: value[:MOST_LETTERS] if isinstance(value, str) else value for name, value in found.items()
            if isinstance(value, (bool, int, float, str))}
