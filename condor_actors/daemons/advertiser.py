"""The actor by which every daemon tells the collectors what it is.

Theory: the advertiser keeps the latest form of each ad of its process.  A change is told at once, further changes of
the same ad within :data:`COALESCE_S` seconds together; what has not been told for ``interval_s`` seconds is told again
(so that it does not expire; an ad that its daemon makes anew that often is not told twice), and everything whenever a
collector's link comes up (so that a collector that was restarted knows everything again within moments); and everything
is withdrawn when the daemon stops, but for what a machine that goes to sleep leaves behind.  Who asks the daemon itself
(``QueryAds`` to its advertiser) is told the same.

Use, from any actor of the process::

    system.spawn(ADVERTISER, lambda: Advertiser(collector_nodes(config), interval_s))
    self.context.tell(Address("", ADVERTISER), Advertise(AdKind.SLOT, ad, private))
    self.context.tell(Address("", ADVERTISER), Withdraw(AdKind.SLOT, "slot1@host"))

A core sends the same with ``Send(Address("", ADVERTISER), Advertise(...))``.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from condor_actors.actors import Actor
from condor_actors.classads import ClassAd, ClassAdSyntaxError, parse_expression
from condor_actors.cores.collector.ad_table import AdTable, ad_key
from condor_actors.messages.advertise import AdKind, AdsPage, InvalidateAd, QueryAds, UpdateAd
from condor_actors.messages.envelope import Address, Delivery, PeerUp, Refused, TimerFired

__all__ = ["ADVERTISER", "COLLECTOR", "Advertise", "Advertiser", "Withdraw"]

ADVERTISER = "advertiser"
COLLECTOR = "collector"
COALESCE_S = 0.02
LIFETIMES = 3
"""An ad outlives this many intervals without news."""

LOOSE = 0.1
"""By this part of the interval an unchanged ad may be late."""


@attrs.frozen
class Advertise:
    """Local message: the newest form of an ad.

    Attributes:
        ad_kind: its table.
        ad: the ad (read at once, the caller may change it later) or its wire form.
        private: what only negotiators may see.
        name, my_address: of an ad in its wire form, where the teller knows them; else they are read there.
        lasting: it stays at the collector when the daemon stops: its machine sleeps.
    """

    ad_kind: AdKind
    ad: ClassAd | bytes
    private: ClassAd | bytes = b""
    name: str = ""
    my_address: str = ""
    lasting: bool = False


@attrs.frozen
class Withdraw:
    """Local message: an ad exists no longer; ``schedd_name`` is needed for submitters only."""

    ad_kind: AdKind
    name: str
    schedd_name: str = ""


Key = tuple[AdKind, str]


@attrs.define(eq=False)
class _Told:
    """The latest form of one ad, and when it was last sent."""

    name: str
    my_address: str
    ad: bytes
    private: bytes
    sent_s: float = -1.0
    lasting: bool = False


class Advertiser(Actor):
    """Sends the ads of a daemon to every collector: on change, and at each interval.

    Args:
        collectors: their nodes.
        interval_s: between two tellings of an unchanged ad (UPDATE_INTERVAL).
    """

    def __init__(self, collectors: Sequence[str], interval_s: float) -> None:
        self.collectors = tuple(collectors)
        self.interval_s = interval_s
        self.ads: dict[Key, _Told] = {}
        self._waiting: set[Key] = set()

    def started(self) -> None:
        """Keep a link to each collector."""
        for node in self.collectors:
            self.context.watch(node)
        self.context.set_timer("heartbeat", self.interval_s)

    def receive(self, delivery: Delivery) -> None:
        """A new form of an ad, a withdrawal, a collector that came up, or the time to speak."""
        message = delivery.message
        if isinstance(message, Advertise):
            self._advertise(message)
        elif isinstance(message, Withdraw):
            self._withdraw(message)
        elif isinstance(message, QueryAds):
            self.context.reply(delivery, self._page(message))
        elif isinstance(message, PeerUp):
            for told in self.ads.items():
                self._send(message.node, told)
        elif isinstance(message, TimerFired) and message.key == "heartbeat":
            self._repeat()
        elif isinstance(message, TimerFired):
            self._flush()

    def stopped(self) -> None:
        """Withdraw everything."""
        by_kind: dict[tuple[AdKind, str], list[str]] = {}
        for (kind, _), told in self.ads.items():
            if not told.lasting:
                by_kind.setdefault((kind, told.my_address), []).append(told.name)
        for (kind, my_address), names in by_kind.items():
            self._invalidate(kind, tuple(names), my_address)

    def _page(self, message: QueryAds) -> AdsPage | Refused:
        """What the daemon itself says of its ads (condor_status -direct)."""
        now_s = self.context.now_s()
        table = AdTable()
        try:
            for (kind, _), told in sorted(self.ads.items()):
                if kind is message.ad_kind:
                    table.update(kind, told.ad, b"", now_s=now_s, lifetime_s=self.interval_s)
            constraint = parse_expression(message.constraint) if message.constraint.strip() else None
            return table.page(message.ad_kind, constraint, message.projection, message.limit, message.cursor)
        except (ClassAdSyntaxError, ValueError) as error:
            return Refused(code="invalid", text=str(error))

    # ---- what is told

    def _advertise(self, message: Advertise) -> None:
        data = message.ad if isinstance(message.ad, bytes) else message.ad.to_bytes()
        private = message.private if isinstance(message.private, bytes) else message.private.to_bytes()
        name, schedd_name, my_address = message.name, "", message.my_address
        if not name:
            ad = message.ad if isinstance(message.ad, ClassAd) else ClassAd.from_bytes(message.ad)
            name, schedd_name, my_address = ad.get_str("Name"), ad.get_str("ScheddName"), ad.get_str("MyAddress")
        key = (message.ad_kind, ad_key(message.ad_kind, name, schedd_name))
        told = self.ads.get(key)
        if told is None:
            self.ads[key] = told = _Told(name, my_address, data, private, lasting=message.lasting)
        elif told.ad == data and told.private == private:
            return
        else:
            told.ad, told.private, told.my_address, told.lasting = data, private, my_address, message.lasting
        self._waiting.add(key)
        wait_s = told.sent_s + COALESCE_S - self._clock_s()
        if not self.context.has_timer("flush"):
            self.context.set_timer("flush", max(0.0, wait_s) if told.sent_s >= 0.0 else 0.0)
        elif wait_s <= 0.0 or told.sent_s < 0.0:
            self.context.set_timer("flush", 0.0)

    def _withdraw(self, message: Withdraw) -> None:
        key = (message.ad_kind, ad_key(message.ad_kind, message.name, message.schedd_name))
        told = self.ads.pop(key, None)
        self._waiting.discard(key)
        if told is not None:
            self._invalidate(message.ad_kind, (message.name,), told.my_address)

    def _repeat(self) -> None:
        """Tell again what was not told for so long, and look again a little after the next ad has come to that."""
        late_s = self._clock_s() - self.interval_s
        self._waiting |= {key for key, told in self.ads.items() if told.sent_s <= late_s}
        self._flush()
        oldest_s = min([told.sent_s for told in self.ads.values()], default=0.0)
        rest_s = max(0.0, oldest_s - late_s) + LOOSE * self.interval_s * (0.5 + 0.5 * self.context.random.random())
        self.context.set_timer("heartbeat", rest_s)

    def _flush(self) -> None:
        """Send what waits and may go; keep the timer for the rest."""
        now_s = self._clock_s()
        next_s = None
        for key in sorted(self._waiting):
            told = self.ads[key]
            due_s = told.sent_s + COALESCE_S
            if told.sent_s >= 0.0 and due_s > now_s + 0.0005:
                next_s = due_s if next_s is None else min(next_s, due_s)
                continue
            self._waiting.discard(key)
            told.sent_s = now_s
            for node in self.collectors:
                self._send(node, (key, told))
        if next_s is not None:
            self.context.set_timer("flush", next_s - now_s)

    def _send(self, node: str, item: tuple[Key, _Told]) -> None:
        (kind, _), told = item
        lifetime_s = max(60, int(self.interval_s * LIFETIMES))
        update = UpdateAd(ad_kind=kind, ad=told.ad, private=told.private, lifetime_s=lifetime_s)
        self.context.tell(Address(node, COLLECTOR), update)

    def _invalidate(self, kind: AdKind, names: tuple[str, ...], my_address: str) -> None:
        for node in self.collectors:
            self.context.tell(Address(node, COLLECTOR), InvalidateAd(ad_kind=kind, names=names, my_address=my_address))

    def _clock_s(self) -> float:
        return self.context.system.clock.seconds()
