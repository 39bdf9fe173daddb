"""The ads of slots whose machines sleep: what is in them, and what of them is stored.

Theory: an ad with ``Offline = True`` was its machine's last word before it went to sleep.  It is kept for
OFFLINE_EXPIRE_ADS_AFTER, and beyond restarts of the collector, until the machine sends another one.  Each time when
jobs would have been matched to such a slot its ad is dated (``MachineLastMatchTime``): the rooster wakes by that.

Source: HTCondor's manual, "Power Management", and the parameter UNHIBERNATE for the attributes.
"""

from __future__ import annotations

import attrs

from condor_actors.classads import ClassAd

__all__ = ["LAST_MATCH", "DropAd", "KeepAd", "is_offline", "take_over_matches"]

LAST_MATCH = "MachineLastMatchTime"


@attrs.frozen(kw_only=True)
class KeepAd:
    """Store the ad of a slot whose machine sleeps.

    Attributes:
        key: its name; data: its text.
        host: of the machine that sent it, by its certificate; empty: the collector's own.
        expires_s: until when it is kept, seconds since the epoch.
    """

    key: str
    data: bytes
    host: str
    expires_s: float


@attrs.frozen
class DropAd:
    """Forget a stored ad."""

    key: str


def is_offline(ad: ClassAd) -> bool:
    """Whether the machine of a slot's ad sleeps."""
    return ad.get_bool("Offline")


def take_over_matches(old: ClassAd, new: ClassAd) -> bool:
    """Give an ad that its machine repeats the dates of matches that the one before had; whether there were any."""
    found = {name: value for name, value in old.own.items()
             if name.endswith(LAST_MATCH.lower()) and name not in new.own}
    for name, value in found.items():
        new[old.spelling(name)] = value
    return bool(found)
