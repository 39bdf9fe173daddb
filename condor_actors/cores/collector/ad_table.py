"""The collector's tables: current ads of every kind, by key, each until it expires.

Theory: an ad is kept as the bytes it came in, beside its parsed form; a heartbeat whose bytes are those kept changes
nothing but the time, and no subscriber hears of it.  What only negotiators may see (``private``) lies apart: it is in
no answer to a query and no constraint can probe it.

A query walks a table in the order in which the ads came.  Each record has a number that only grows, and a page's
cursor is the last number looked at, so pages neither repeat nor skip an ad that stays.  A page ends at
``PAGE_BYTES`` or after :data:`ADS_PER_PAGE` ads looked at, whichever comes first; so no question, however wide, stops
the collector for long.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import attrs

from condor_actors.classads import ClassAd, Expr, is_true
from condor_actors.classads.evaluation.budget import Meter
from condor_actors.messages.advertise import AdChange, AdKind, AdsPage
from condor_actors.messages.codec import PAGE_BYTES

__all__ = ["PRIVATE_ATTRIBUTES", "AdRecord", "AdTable", "TooManyAds", "ad_key"]

ADS_PER_PAGE = 4000
PRIVATE_ATTRIBUTES = frozenset({"capability", "claimid", "claimids", "childclaimids", "pairedclaimid", "transferkey"})
"""Never kept in the public part of an ad, no matter who put them there."""


class TooManyAds(ValueError):
    """The collector holds as many ads as it may (COLLECTOR_MAX_ADS)."""


@attrs.define(eq=False)
class AdRecord:
    """One ad of one table.

    Attributes:
        key: within the table; name: its ``Name``; my_address: the daemon it belongs to.
        number: grows with each new record, never changes.
        data, ad: the public part as text and parsed; private: the rest.
        heard_s, expires_s: wall clock.
        host: of the machine that sent it, by its certificate; empty: this one.
    """

    ad_kind: AdKind
    key: str
    name: str
    my_address: str
    number: int
    data: bytes
    ad: ClassAd
    private: bytes
    heard_s: float
    expires_s: float
    host: str = ""

    def text(self) -> bytes:
        """The public ad with when it was last heard of."""
        return b"%sLastHeardFrom = %d\n" % (self.data, int(self.heard_s))

    def change(self) -> AdChange:
        """The record as a subscriber gets it."""
        return AdChange(ad_kind=self.ad_kind, name=self.key, ad=self.data, private=self.private)


def ad_key(ad_kind: AdKind, name: str, schedd_name: str = "") -> str:
    """The key of an ad within its table: the name, for submitters with that of the schedd."""
    return f"{name}\n{schedd_name}" if ad_kind is AdKind.SUBMITTER and name else name


class AdTable:
    """Keeps the pool's current ads of every kind, each until it expires.

    Args:
        limit: the most ads that are kept.
    """

    def __init__(self, limit: int = 1_000_000) -> None:
        self.limit = limit
        self.tables: dict[AdKind, dict[str, AdRecord]] = {kind: {} for kind in AdKind}
        self.updates = 0
        self._next = 1

    def __len__(self) -> int:
        return sum(len(table) for table in self.tables.values())

    # ---- changes

    def update(self, ad_kind: AdKind, data: bytes, private: bytes, *, now_s: float, lifetime_s: float,
               parsed: ClassAd | None = None, host: str = "") -> tuple[AdRecord, bool]:
        """Take a new or renewed ad.

        Args:
            ad_kind: its table.
            data, private: its parts.
            now_s: the current time, seconds since the epoch.
            lifetime_s: how long it is good for.
            parsed: the public part when the caller has it already.
            host: of the machine that sent it, by its certificate; empty: this machine.

        Returns:
            The record, and whether a subscriber should hear of it.

        Raises:
            ClassAdSyntaxError: the text is no ad.
            ValueError: it has no name.
            TooManyAds: there is no room.
        """
        self.updates += 1
        ad = parsed if parsed is not None else ClassAd.from_bytes(data)
        key = ad_key(ad_kind, ad.get_str("Name"), ad.get_str("ScheddName"))
        if not key:
            raise ValueError(f"an ad of kind {ad_kind.value} without a Name")
        if any(name in ad.own for name in PRIVATE_ATTRIBUTES):
            for name in PRIVATE_ATTRIBUTES & ad.own.keys():
                del ad[name]
            data = ad.to_bytes()
        record = self.tables[ad_kind].get(key)
        if record is not None and record.data == data and record.private == private:
            record.heard_s, record.expires_s = now_s, now_s + lifetime_s
            record.ad["LastHeardFrom"] = int(now_s)
            return record, False
        ad["LastHeardFrom"] = int(now_s)
        if record is None:
            if len(self) >= self.limit:
                raise TooManyAds(f"{self.limit} ads are the most the collector keeps (COLLECTOR_MAX_ADS)")
            record = AdRecord(ad_kind, key, ad.get_str("Name"), ad.get_str("MyAddress"), self._next, data, ad, private,
                              now_s, now_s + lifetime_s, host)
            self._next += 1
            self.tables[ad_kind][key] = record
        else:
            record.data, record.ad, record.private = data, ad, private
            record.my_address = ad.get_str("MyAddress")
            record.heard_s, record.expires_s, record.host = now_s, now_s + lifetime_s, host
        return record, True

    def invalidate(self, ad_kind: AdKind, names: Sequence[str], my_address: str,
                   may: Callable[[AdRecord], bool] = lambda _: True) -> list[AdRecord]:
        """Drop ads by name, by daemon, or by both, as far as ``may`` allows; returns what was dropped."""
        table = self.tables[ad_kind]
        wanted = set(names)
        gone = [
            record for record in table.values()
            if (not wanted or record.name in wanted) and (not my_address or record.my_address == my_address)
            and may(record)
        ] if wanted or my_address else []
        for record in gone:
            del table[record.key]
        return gone

    def drop_hosts(self, hosts: Collection[str]) -> list[AdRecord]:
        """Drop what machines with these host names sent; returns it."""
        gone = [record for table in self.tables.values() for record in table.values() if record.host in hosts]
        for record in gone:
            del self.tables[record.ad_kind][record.key]
        return gone

    def expire(self, now_s: float) -> list[AdRecord]:
        """Drop what was not renewed in time; returns it."""
        gone = [record for table in self.tables.values() for record in table.values() if record.expires_s <= now_s]
        for record in gone:
            del self.tables[record.ad_kind][record.key]
        return gone

    # ---- questions

    def page(self, ad_kind: AdKind, constraint: Expr | None, projection: Sequence[str], limit: int,
             cursor: str) -> AdsPage:
        """The next ads of a kind that satisfy a constraint.

        Args:
            ad_kind: the table.
            constraint: must be true of an ad; None: all.
            projection: the attributes wanted; empty: all.
            limit: the most ads in this page; 0: no limit.
            cursor: where the page before ended; empty: from the beginning.

        Raises:
            ValueError: the cursor is not one of ours.
            TooCostly: the constraint takes more than it may, whatever the ad.
        """
        after = int(cursor) if cursor else 0
        found: list[bytes] = []
        size = 0
        meter = Meter("the constraint", constraint)
        for looked_at, record in enumerate(self._from(ad_kind, after), start=1):
            if constraint is None or is_true(constraint.evaluate(record.ad)):
                text = record.ad.project(projection).to_bytes() if projection else record.text()
                found.append(text)
                size += len(text)
                if limit and len(found) >= limit:
                    return AdsPage(ads=tuple(found))
            if size >= PAGE_BYTES or looked_at >= ADS_PER_PAGE or meter.is_spent():
                return AdsPage(ads=tuple(found), cursor=str(record.number))
        return AdsPage(ads=tuple(found))

    def _from(self, ad_kind: AdKind, after: int) -> Iterator[AdRecord]:
        """A table's records whose number is greater than ``after``."""
        if not after:
            return iter(tuple(self.tables[ad_kind].values()))
        return (record for record in self.tables[ad_kind].values() if record.number > after)

    def changes(self, kinds: Iterable[AdKind]) -> Iterator[AdChange]:
        """Every ad of these kinds, as a subscriber gets it."""
        for kind in kinds:
            for record in self.tables[kind].values():
                yield record.change()
