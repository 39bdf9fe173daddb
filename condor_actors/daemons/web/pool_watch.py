"""What the web page knows of the pool, and the actor that asks for it.

Theory: one round after another asks the collector for the slots heard from since the last round (for all of them
every :data:`WHOLE_S`, which shows those that are gone), then each schedd for its totals and, while a page is open,
for what has changed in its queue.  Nothing is asked twice at a time, a page costs the pool the same as fifty, and
without an open page there is a round for each point of the figures only.  All of it may be lost at any moment: the
next round brings it back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from condor_actors.actors import Actor
from condor_actors.classads import ClassAd, ClassAdSyntaxError
from condor_actors.config import Config, setting
from condor_actors.cores.web import picture, rows
from condor_actors.cores.web.picture import PoolPicture
from condor_actors.cores.web.rows import QueueRows
from condor_actors.daemons.advertiser import COLLECTOR
from condor_actors.messages.advertise import AdKind, AdsPage, QueryAds
from condor_actors.messages.envelope import Address, AskFailed, Delivery, Refused, TimerFired
from condor_actors.messages.queue import QueryTotals, Totals
from condor_actors.messages.watch import Changes, QueryChanges, QueryStory

__all__ = ["PoolKnowledge", "PoolWatch", "WebSettings"]

ACTOR = "web"
ASK_S = 20.0
WHOLE_S = 60.0
"""Between two questions for all slots."""
SCHEDDS_S = 20.0
"""Between two questions for the schedds."""
WANTED_S = 30.0
"""How long a question about the queue keeps it being followed."""
FORGET_S = 600.0
"""How long the rows of a queue that nobody looks at are kept."""
STALE = 3.0
"""Intervals after which what is known is asked for again before it is shown."""
MOST_SCHEDDS = 200

Publish = Callable[[str, dict[str, Any]], None]


@attrs.frozen(kw_only=True)
class WebSettings:
    """The parameters WEB_… that may change while the daemon runs."""

    update_s: float = setting("WEB_UPDATE_INTERVAL")
    figures_s: float = setting("WEB_FIGURES_INTERVAL")
    most_watchers: int = setting("WEB_MAX_WATCHERS")
    most_of_one: int = setting("WEB_MAX_CONNECTIONS_OF_ADDRESS")
    has_login: bool = setting("WEB_LOGIN")
    session_s: float = setting("WEB_SESSION_LIFETIME")
    most_sessions: int = setting("WEB_MAX_SESSIONS")
    host_names: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: Config) -> WebSettings:
        """Those of a configuration.

        Raises:
            ConfigError: a value is not of its kind.
        """
        return config.settings(cls, host_names=tuple(config.list_of("WEB_HOST_NAMES")))


@attrs.define
class KnownSchedd:
    """A schedd, and how far its queue is known.

    Attributes:
        name, address: of its ad.
        token: of its last answer.
        totals: its jobs by state.
        is_whole: its rows are all here.
        problem: why it was not asked successfully; empty: it was.
    """

    name: str
    address: str
    token: str = ""
    totals: dict[str, int] = attrs.Factory(dict)
    is_whole: bool = False
    problem: str = ""


class PoolKnowledge:
    """What is known; it outlives the actor that asks.

    Args:
        clock: seconds that only grow.

    Attributes:
        slots: the pool's machines.
        rows: the queues.
        schedds: by name.
        problem: why the collector was not asked successfully; empty: it was.
        known_s: when the last round ended, by ``clock``; None: there was none yet.
        at_s: the same as a date.
        ask_story: asks a schedd about a job, then calls back with a Story, Refused or AskFailed.
        hurry: begins a round soon.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.slots = PoolPicture()
        self.rows = QueueRows(clock)
        self.schedds: dict[str, KnownSchedd] = {}
        self.problem = "the pool has not been asked yet"
        self.known_s: float | None = None
        self.at_s = 0.0
        self.wanted_s = -1e9
        self.followed = False
        self.waiting: list[Callable[[], None]] = []
        self.ask_story: Callable[[str, int, int, Callable[[Any], None]], None] | None = None
        self.hurry: Callable[[], None] | None = None

    def totals(self) -> dict[str, int]:
        """Jobs by state, of all schedds."""
        found: dict[str, int] = {}
        for schedd in self.schedds.values():
            for state, count in schedd.totals.items():
                found[state] = found.get(state, 0) + count
        return found

    def is_whole(self) -> bool:
        """Whether all rows of all queues are here."""
        return all(schedd.is_whole for schedd in self.schedds.values())

    def problems(self) -> list[str]:
        """What stands in the way of knowing everything, in words."""
        found = [self.problem] if self.problem else []
        return found + [f"{each.name}: {each.problem}" for each in self.schedds.values() if each.problem]

    def when_fresh(self, update_s: float, then: Callable[[], None]) -> None:
        """Call ``then`` when what is known is of now: at once, or after the next round."""
        now_s = self.clock()
        was_followed = now_s < self.wanted_s + WANTED_S and self.followed
        self.wanted_s = now_s
        if was_followed and self.known_s is not None and now_s < self.known_s + STALE * max(update_s, 1.0):
            then()
            return
        self.waiting.append(then)
        if self.hurry is not None:
            self.hurry()

    def summary(self) -> dict[str, Any]:
        """The line at the top of the page."""
        return {"at": self.at_s, "slots": self.slots.counts(), "cpus": self.slots.cpus(), "jobs": self.totals(),
                "version": self.rows.version, "whole": self.is_whole(), "problems": self.problems(),
                "schedds": sorted(self.schedds)}


class PoolWatch(Actor):
    """Asks, round after round; see the module.

    Args:
        known: what is known, and who waits for it.
        settings: in force now.
        collectors: the nodes to ask, the first that answers counts.
        publish: tells the open pages.
        watched: whether there are any.
        sample: takes a point of the figures.
    """

    def __init__(self, known: PoolKnowledge, settings: Callable[[], WebSettings],
                 collectors: Callable[[], tuple[str, ...]], publish: Publish, watched: Callable[[], bool],
                 sample: Callable[[PoolWatch], None]) -> None:
        self.known = known
        self._settings = settings
        self._collectors = collectors
        self._publish = publish
        self._watched = watched
        self._sample = sample
        self._asking = False
        self._again = False
        self._collector = 0
        self._seen: set[str] | None = None
        self._changed: list[dict[str, Any]] = []
        self._whole_s = self._schedds_s = self._figures_s = -1e9
        self._due: list[KnownSchedd] = []

    def started(self) -> None:
        """The first round, at once."""
        self.known.hurry = self.context.as_turn(self._hurry)
        self.known.ask_story = self.context.as_turn(self._ask_story)
        self.known.slots.newest_s = 0
        self.context.set_timer("look", 0.0)

    def receive(self, delivery: Delivery) -> None:
        """Time for a round."""
        if isinstance(delivery.message, TimerFired):
            self._begin()

    def _hurry(self) -> None:
        if self._asking:
            self._again = True
        else:
            self.context.set_timer("look", 0.0)

    def _is_wanted(self) -> bool:
        return self._watched() or self.known.clock() < self.known.wanted_s + WANTED_S

    # ---- slots

    def _begin(self) -> None:
        if self._asking:
            return
        self._asking, self._again = True, False
        now_s = self.known.clock()
        self._seen, self._changed = None, []
        if now_s >= self._whole_s + WHOLE_S or self.known.problem:
            self._seen = set()
        self._ask_slots("")

    def _ask_collector(self, question: QueryAds, then: Callable[[Delivery], None]) -> None:
        nodes = self._collectors()
        if not nodes:
            self.known.problem = "COLLECTOR_HOST names no collector"
            self._end()
            return
        to = Address(nodes[self._collector % len(nodes)], COLLECTOR)
        self.context.ask(to, question, timeout_s=ASK_S, then=then)

    def _ask_slots(self, cursor: str) -> None:
        newest_s = self.known.slots.newest_s
        constraint = "" if self._seen is not None else f"LastHeardFrom >= {newest_s}"
        self._ask_collector(QueryAds(ad_kind=AdKind.SLOT, constraint=constraint, projection=picture.ATTRIBUTES,
                                     cursor=cursor), self._slots_came)

    def _slots_came(self, answer: Delivery) -> None:
        page = answer.message
        if not isinstance(page, AdsPage):
            self._collector += 1
            self.known.problem = f"the collector does not answer: {_why(page)}"
            self._end()
            return
        self._changed += self.known.slots.heard(page.ads)
        if self._seen is not None:
            self._seen |= set(_names(page.ads))
        if page.cursor:
            self._ask_slots(page.cursor)
            return
        self.known.problem = ""
        gone: list[str] = []
        if self._seen is not None:
            gone = self.known.slots.keep_only({name[:rows.LONGEST] for name in self._seen})
            self._whole_s = self.known.clock()
        if self._changed or gone:
            self._publish("slots", {"changed": self._changed, "gone": gone})
        if self.known.clock() >= self._schedds_s + SCHEDDS_S or not self.known.schedds:
            self._schedds_s = self.known.clock()
            self._ask_collector(QueryAds(ad_kind=AdKind.SCHEDD, projection=("Name", "MyAddress"), limit=MOST_SCHEDDS),
                                self._schedds_came)
        else:
            self._ask_schedds()

    # ---- schedds

    def _schedds_came(self, answer: Delivery) -> None:
        page = answer.message
        if isinstance(page, AdsPage):
            found: dict[str, KnownSchedd] = {}
            for text in page.ads:
                ad = _ad(text)
                name, address = ad.get_str("Name")[:rows.LONGEST], ad.get_str("MyAddress")
                if name and address:
                    known = self.known.schedds.get(name)
                    found[name] = known if known is not None and known.address == address else (
                        KnownSchedd(name, address))
            for name in self.known.rows.schedds() - found.keys():
                self.known.rows.forget(name)
            self.known.schedds = found
        self._ask_schedds()

    def _ask_schedds(self) -> None:
        self._due = list(self.known.schedds.values())
        if not self._is_wanted() and self.known.clock() > self.known.wanted_s + FORGET_S and len(self.known.rows):
            for schedd in self._due:
                self.known.rows.forget(schedd.name)
                schedd.token, schedd.is_whole = "", False
        self.known.followed = self._is_wanted()
        self._next_schedd()

    def _next_schedd(self) -> None:
        if not self._due:
            self._end()
            return
        schedd = self._due.pop()
        self.context.ask(Address(schedd.address, "schedd"), QueryTotals(), timeout_s=ASK_S,
                         then=lambda answer: self._totals_came(schedd, answer))

    def _totals_came(self, schedd: KnownSchedd, answer: Delivery) -> None:
        totals = answer.message
        if not isinstance(totals, Totals):
            schedd.problem = _why(totals)
            self._next_schedd()
            return
        schedd.problem = ""
        schedd.totals = {rows.STATES[number]: count for number, count in totals.everybody
                         if 0 < count <= rows.GREATEST and number in rows.STATES}
        if self.known.followed:
            self._ask_changes(schedd)
        else:
            self._next_schedd()

    def _ask_changes(self, schedd: KnownSchedd) -> None:
        self.context.ask(Address(schedd.address, "schedd"),
                         QueryChanges(since=schedd.token, projection=rows.ATTRIBUTES), timeout_s=ASK_S,
                         then=lambda answer: self._changes_came(schedd, answer))

    def _changes_came(self, schedd: KnownSchedd, answer: Delivery) -> None:
        changes = answer.message
        if not isinstance(changes, Changes):
            schedd.problem = _why(changes)
            self._next_schedd()
            return
        if changes.begins:
            schedd.is_whole = False
            self.known.rows.forget(schedd.name)
        if changes.ads:
            self.known.rows.put(schedd.name, changes.ads)
        if changes.gone:
            self.known.rows.take_out(schedd.name, changes.gone)
        is_old = changes.token == schedd.token
        schedd.token = changes.token
        if changes.more and not is_old:
            self._ask_changes(schedd)
            return
        schedd.is_whole = True
        self._next_schedd()

    # ---- the end of a round

    def _end(self) -> None:
        known = self.known
        self._asking = False
        known.known_s, known.at_s = known.clock(), round(self.context.now_s(), 1)
        if known.known_s >= self._figures_s + self._settings().figures_s and known.slots.slots and not known.problem:
            self._figures_s = known.known_s
            self._sample(self)
        self._publish("summary", known.summary())
        if known.followed or known.problem:
            waiting, known.waiting = known.waiting, []
            for then in waiting:
                then()
        elif known.waiting:
            self._again = True
        until_s = self._settings().update_s if self._is_wanted() else self._settings().figures_s
        self.context.set_timer("look", 0.0 if self._again and not known.problem else until_s)

    # ---- one job

    def _ask_story(self, schedd: str, cluster: int, proc: int, then: Callable[[Any], None]) -> None:
        known = self.known.schedds.get(schedd)
        if known is None:
            then(Refused(code="not-found", text=f"there is no schedd {schedd[:rows.LONGEST]}"))
            return
        self.context.ask(Address(known.address, "schedd"), QueryStory(cluster=cluster, proc=proc), timeout_s=ASK_S,
                         then=lambda answer: then(answer.message))


def _why(answer: Any) -> str:
    """Why a question has no answer, in words."""
    if isinstance(answer, (Refused, AskFailed)):
        return answer.text or answer.__class__.__name__
    return f"it answers {type(answer).__name__}"


def _ad(text: bytes) -> ClassAd:
    try:
        return ClassAd.from_bytes(text)
    except ClassAdSyntaxError:
        return ClassAd()


def _names(ads: tuple[bytes, ...]) -> list[str]:
    return [_ad(text).get_str("Name") for text in ads]


