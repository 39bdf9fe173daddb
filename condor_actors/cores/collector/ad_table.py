"""The collector's tables: current ads of every kind, by key, each until it expires.

Theory: an ad is kept as the bytes it came in, beside its parsed form; a heartbeat whose bytes are those kept changes
nothing but the time, and no subscriber hears of it.  What only negotiators may see (``private``) lies apart: it is in
no answer to a query and no constraint can probe it.

A query walks a table in the order in which the ads came.  Each record has a number that only grows, and a page's
cursor is the last number looked at, so pages neither repeat nor skip an ad that stays.  A page ends at
``PAGE_BYTES`` or after :data:`ADS_PER_PAGE` ads looked at, whichever comes first; so no question, however wide, stops
the collector for long.  Nothing else walks a table either: ads are found by key, by the daemon's address, by the number
where a page ended and by when they expire, and the totals of the pool are kept as ads come and go.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import count, islice

import attrs

from condor_actors.classads import ClassAd, Expr, is_true
from condor_actors.classads.evaluation.budget import Meter
from condor_actors.cores.collector.pool_totals import PoolTotals
from condor_actors.messages.advertise import AdChange, AdKind, AdsPage
from condor_actors.messages.pages import MOST_AD_BYTES, AdPage

__all__ = ["PRIVATE_ATTRIBUTES", "AdRecord", "AdTable", "TooManyAds", "ad_key"]

ADS_PER_PAGE = 4000
MOST_NAME = 1024
"""Letters of an ad's name."""
MOST_GONE = 1000
"""Records that are gone and still listed, beside as many as are there."""
MOST_OF_MACHINE, MOST_BYTES_OF_MACHINE = 50_000, 64 << 20
"""Ads of one other machine, and bytes of them: no machine takes the room of all others, or the collector's memory."""
PRIVATE_ATTRIBUTES = frozenset({"capability", "claimid", "claimids", "childclaimids", "pairedclaimid", "transferkey"})
"""Never kept in the public part of an ad, no matter who put them there."""
NOTHING = ClassAd()
"""What a record that is gone says."""


class TooManyAds(ValueError):
    """The collector holds as many ads as it may (COLLECTOR_MAX_ADS), or as many of one machine as it may."""


@attrs.define
class _Share:
    """What one machine has in all tables."""

    ads: int = 0
    size_bytes: int = 0


@attrs.define(eq=False)
class AdRecord:
    """One ad of one table.

    Attributes:
        key: within the table; name: its ``Name``; my_address: the daemon it belongs to.
        number: grows with each new record, never changes.
        data, ad: the public part as text and parsed; private: the rest.
        heard_s, expires_s: wall clock.
        host: of the machine that sent it, by its certificate; empty: this one.
        due_s: when it is looked at whether it has expired.
        gone: whether it is in no table any more; what it said is forgotten then, though lists may have it for a while.
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
    due_s: float = 0.0
    gone: bool = False

    @property
    def size_bytes(self) -> int:
        """Of what was sent."""
        return len(self.data) + len(self.private)

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
        self.totals = PoolTotals()
        self._next = 1
        self._numbered: dict[AdKind, list[AdRecord]] = {kind: [] for kind in AdKind}
        """Each table in the order of the numbers; some may be gone."""
        self._of_daemon: dict[tuple[AdKind, str], dict[str, AdRecord]] = {}
        self._shares: defaultdict[str, _Share] = defaultdict(_Share)
        """By host, but for this machine."""
        self._looks = count()
        self._expiring: list[tuple[float, int, AdRecord]] = []
        """A heap of when to look at each record; by then it may have been renewed, or be looked at earlier."""

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
        if len(key) > MOST_NAME or len(data) + len(private) > MOST_AD_BYTES:
            raise ValueError(f"an ad has at most {MOST_AD_BYTES >> 10} KiB, and its name {MOST_NAME} letters: "
                             f"that of {key[:60]!r} has {len(data) + len(private):,} bytes, its name {len(key):,}")
        if any(name in ad.own for name in PRIVATE_ATTRIBUTES):
            for name in PRIVATE_ATTRIBUTES & ad.own.keys():
                del ad[name]
            data = ad.to_bytes()
        record = self.tables[ad_kind].get(key)
        if record is not None and record.data == data and record.private == private:
            record.heard_s, record.expires_s = now_s, now_s + lifetime_s
            record.ad["LastHeardFrom"] = int(now_s)
            self._look_in_time(record)
            return record, False
        ad["LastHeardFrom"] = int(now_s)
        self._check_room(record, host, len(data) + len(private))
        if record is None:
            record = AdRecord(ad_kind, key, ad.get_str("Name"), ad.get_str("MyAddress"), self._next, data, ad, private,
                              now_s, now_s + lifetime_s, host)
            self._next += 1
            self._enter(record)
        else:
            self.totals.count(ad_kind, record.ad, -1)
            self.totals.count(ad_kind, ad, 1)
            self._share(record, -1)
            record.data, record.ad, record.private, record.host = data, ad, private, host
            self._share(record, 1)
            self._move(record, ad.get_str("MyAddress"))
            record.heard_s, record.expires_s = now_s, now_s + lifetime_s
            self._look_in_time(record)
        return record, True

    def _check_room(self, record: AdRecord | None, host: str, size_bytes: int) -> None:
        """Whether there is room for an ad, new or in the place of a record.

        Raises:
            TooManyAds: there is none.
        """
        if record is None and len(self) >= self.limit:
            raise TooManyAds(f"{self.limit} ads are the most the collector keeps (COLLECTOR_MAX_ADS)")
        share = self._shares.get(host)
        if share is None or not host:
            return
        own = record is not None and record.host == host
        ads = share.ads + (not own)
        size_bytes += share.size_bytes - (record.size_bytes if record is not None and own else 0)
        if ads > MOST_OF_MACHINE or size_bytes > MOST_BYTES_OF_MACHINE:
            raise TooManyAds(f"{host} has {share.ads:,} ads here of {share.size_bytes:,} bytes: one machine may have "
                             f"{MOST_OF_MACHINE:,}, of {MOST_BYTES_OF_MACHINE >> 20} MiB together")

    def _share(self, record: AdRecord, sign: int) -> None:
        """Count a record for its machine, or no longer."""
        share = self._shares[record.host]
        share.ads += sign
        share.size_bytes += sign * record.size_bytes
        if not share.ads:
            del self._shares[record.host]

    def _enter(self, record: AdRecord) -> None:
        """A record is new."""
        self._share(record, 1)
        self.tables[record.ad_kind][record.key] = record
        self._numbered[record.ad_kind].append(record)
        self._of_daemon.setdefault((record.ad_kind, record.my_address), {})[record.key] = record
        self._look_at(record)
        self.totals.count(record.ad_kind, record.ad, 1)

    def _look_at(self, record: AdRecord) -> None:
        record.due_s = record.expires_s
        heappush(self._expiring, (record.due_s, next(self._looks), record))

    def _look_in_time(self, record: AdRecord) -> None:
        """A record was renewed, perhaps for less than it had."""
        if record.expires_s < record.due_s:
            self._look_at(record)

    def _move(self, record: AdRecord, my_address: str) -> None:
        """A record belongs to the daemon at this address now."""
        if my_address != record.my_address:
            self._leave_daemon(record)
            record.my_address = my_address
            self._of_daemon.setdefault((record.ad_kind, my_address), {})[record.key] = record

    def _leave_daemon(self, record: AdRecord) -> None:
        mine = self._of_daemon[record.ad_kind, record.my_address]
        del mine[record.key]
        if not mine:
            del self._of_daemon[record.ad_kind, record.my_address]

    def _drop(self, record: AdRecord) -> None:
        """A record goes."""
        kind = record.ad_kind
        del self.tables[kind][record.key]
        record.gone = True
        self._leave_daemon(record)
        self.totals.count(kind, record.ad, -1)
        self._share(record, -1)
        record.data, record.ad, record.private = b"", NOTHING, b""
        numbered = self._numbered[kind]
        if len(numbered) > 2 * len(self.tables[kind]) + MOST_GONE:
            self._numbered[kind] = [each for each in numbered if not each.gone]
        if len(self._expiring) > 2 * len(self) + MOST_GONE:
            self._expiring = [each for each in self._expiring if each[0] == each[2].due_s and not each[2].gone]
            heapify(self._expiring)

    def invalidate(self, ad_kind: AdKind, names: Sequence[str], my_address: str,
                   may: Callable[[AdRecord], bool] = lambda _: True) -> list[AdRecord]:
        """Drop ads by name, by daemon, or by both, as far as ``may`` allows; returns what was dropped."""
        table = self.tables[ad_kind]
        wanted = set(names)
        if my_address:
            found: Iterable[AdRecord] = self._of_daemon.get((ad_kind, my_address), {}).values()
        elif ad_kind is AdKind.SUBMITTER:  # one of the name may be at each schedd
            found = table.values() if wanted else ()
        else:
            found = [table[name] for name in wanted if name in table]
        gone = [record for record in found if (not wanted or record.name in wanted) and may(record)]
        for record in gone:
            self._drop(record)
        return gone

    def drop_hosts(self, hosts: Collection[str]) -> list[AdRecord]:
        """Drop what machines with these host names sent; returns it."""
        gone = [record for table in self.tables.values() for record in table.values() if record.host in hosts]
        for record in gone:
            self._drop(record)
        return gone

    def expire(self, now_s: float) -> list[AdRecord]:
        """Drop what was not renewed in time; returns it."""
        gone = []
        while self._expiring and self._expiring[0][0] <= now_s:
            due_s, _, record = heappop(self._expiring)
            if record.gone or due_s != record.due_s:
                continue
            if record.expires_s <= now_s:
                gone.append(record)
                self._drop(record)
            else:
                self._look_at(record)
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
        found = AdPage()
        last = cursor
        meter = Meter("the constraint", constraint)
        for looked_at, record in enumerate(self._from(ad_kind, after), start=1):
            if constraint is None or is_true(constraint.evaluate(record.ad)):
                if not found.add(record.ad.project(projection).to_bytes() if projection else record.text()):
                    return AdsPage(ads=tuple(found.ads), cursor=last)
                if limit and len(found.ads) >= limit:
                    return AdsPage(ads=tuple(found.ads))
            last = str(record.number)
            if found.is_full or looked_at >= ADS_PER_PAGE or meter.is_spent():
                return AdsPage(ads=tuple(found.ads), cursor=last)
        return AdsPage(ads=tuple(found.ads))

    def _from(self, ad_kind: AdKind, after: int) -> Iterator[AdRecord]:
        """A table's records whose number is greater than ``after``."""
        numbered = self._numbered[ad_kind]
        first = bisect_right(numbered, after, key=lambda record: record.number)
        return (record for record in islice(numbered, first, None) if not record.gone)

    def changes(self, kinds: Iterable[AdKind]) -> Iterator[AdChange]:
        """Every ad of these kinds, as a subscriber gets it."""
        for kind in kinds:
            for record in self.tables[kind].values():
                yield record.change()
