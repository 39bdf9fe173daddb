"""Advertise: daemons tell the collector what they are; others ask it.

Ads travel as their text form.  ``private`` carries what only negotiators may see (the capability of a slot).
"""

from __future__ import annotations

import enum

from condor_actors import records
from condor_actors.messages.codec import message

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import ClassVar


class AdKind(str, enum.Enum):
    """The collector's tables."""

    SLOT = "Machine"
    SCHEDD = "Scheduler"
    SUBMITTER = "Submitter"
    MASTER = "DaemonMaster"
    NEGOTIATOR = "Negotiator"
    COLLECTOR = "Collector"
    STARTD = "StartDaemon"
    ACCOUNTING = "Accounting"
    GENERIC = "Generic"


@message
@records.frozen(kw_only=True)
class UpdateAd:
    """An ad is new or has changed; it expires after ``lifetime_s`` unless updated.

    The collector checks that the sender's roles allow ``ad_kind`` (ADVERTISE_STARTD, _SCHEDD, _MASTER, else DAEMON).
    The key within a table is the ad's ``Name`` (submitters: ``Name`` and ``ScheddName``).
    """

    KIND: ClassVar[str] = "condor.advertise.UpdateAd"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    ad_kind: AdKind
    ad: bytes
    private: bytes = b""
    lifetime_s: int = 900


@message
@records.frozen(kw_only=True)
class InvalidateAd:
    """Ads that exist no longer: by exact names, all of a daemon (``my_address``), or of a daemon by names (both).

    It takes what :class:`UpdateAd` takes.
    """

    KIND: ClassVar[str] = "condor.advertise.InvalidateAd"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    ad_kind: AdKind
    names: tuple[str, ...] = ()
    my_address: str = ""


@message
@records.frozen(kw_only=True)
class QueryAds:
    """Which ads of a kind satisfy ``constraint`` (ClassAd text; empty: all)?  Answer: :class:`AdsPage`.

    ``projection`` limits the attributes; ``limit`` 0 is none; ``cursor`` continues where a page ended.
    """

    KIND: ClassVar[str] = "condor.advertise.QueryAds"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "READ"

    ad_kind: AdKind
    constraint: str = ""
    projection: tuple[str, ...] = ()
    limit: int = 0
    cursor: str = ""


@message
@records.frozen(kw_only=True)
class AdsPage:
    """Answer to :class:`QueryAds`; ``cursor`` is empty on the last page."""

    KIND: ClassVar[str] = "condor.advertise.AdsPage"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    ads: tuple[bytes, ...]
    cursor: str = ""


@message
@records.frozen(kw_only=True)
class OfflineMatched:
    """Jobs would have these slots if their machines did not sleep: their ads get ``MachineLastMatchTime``."""

    KIND: ClassVar[str] = "condor.advertise.OfflineMatched"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "NEGOTIATOR"

    names: tuple[str, ...]


@message
@records.frozen(kw_only=True)
class SubscribeAds:
    """A negotiator wants all ads of these kinds, private parts included, now and as they change.

    ``subscriber`` is its actor's name at the sender; the collector sends :class:`AdsChanged` there until the link dies.
    """

    KIND: ClassVar[str] = "condor.advertise.SubscribeAds"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "NEGOTIATOR"

    ad_kinds: tuple[AdKind, ...]
    subscriber: str


@records.frozen(kw_only=True)
class AdChange:
    """One ad that changed (``ad`` empty: it is gone)."""

    ad_kind: AdKind
    name: str
    ad: bytes = b""
    private: bytes = b""


@message
@records.frozen(kw_only=True)
class AdsChanged:
    """Changes since the last ``sequence``; ``snapshot`` True: forget what you had first (pages follow in sequence).

    ``more`` True: the next page belongs to the same moment; wait for it before deciding anything.
    """

    KIND: ClassVar[str] = "condor.advertise.AdsChanged"
    VERSION: ClassVar[int] = 1

    sequence: int
    changes: tuple[AdChange, ...]
    snapshot: bool = False
    more: bool = False
