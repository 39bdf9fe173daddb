"""What a job wants to have written with each event of its log (``job_ad_information_attrs``)."""

from __future__ import annotations

from condor_actors.classads import ClassAd

__all__ = ["information_of"]

MOST_ATTRIBUTES = 100
MOST_LETTERS = 8191


def information_of(ad: ClassAd) -> dict[str, bool | int | float | str]:
    """The attributes that a job names in ``JobAdInformationAttrs`` and that are numbers, texts or truth values now.

    Args:
        ad: the job's, or the facts of an event, which have these values in place of the expressions.
    """
    wanted = ad.find("jobadinformationattrs")
    names = wanted.replace(",", " ").split() if isinstance(wanted, str) else []
    found = {name: ad.evaluate(name) for name in names[:MOST_ATTRIBUTES] if name.isidentifier() and name.isascii()}
    return {name: value[:MOST_LETTERS] if isinstance(value, str) else value for name, value in found.items()
            if isinstance(value, (bool, int, float, str))}
