"""The master's actor that gathers the metrics of a machine's daemons, and finds the masters of the pool.

Theory: each daemon writes its metrics itself when it is asked (`QueryStatistics`); the actor asks all that run, waits
for the slowest for :data:`PATIENCE_S` at most, and puts the families of one name together. One that does not answer is
missing from the answer, and ``condor_daemon_up`` says so. Where METRICS_DISCOVERY_FILE names a file, the actor writes
the masters of the pool into it, as Prometheus's ``file_sd_configs`` reads them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import attrs

from condor_actors.actors import Actor
from condor_actors.classads import ClassAd, ClassAdSyntaxError
from condor_actors.daemons.collector_query import query_ads
from condor_actors.durable import write_whole
from condor_actors.messages.admin import DaemonStatistics, QueryStatistics
from condor_actors.messages.advertise import AdKind, QueryAds
from condor_actors.messages.envelope import Address, Delivery, TimerFired

__all__ = ["ACTOR", "MetricsActor", "MetricsEdges", "merged", "targets"]

ACTOR = "metrics"
PATIENCE_S = 5.0
ASK_S = 10.0
DISCOVERY_S = 60.0
NOTHING = "[]\n"
SOON_S = 5.0
"""Between two looks before anything was found."""


@attrs.frozen(kw_only=True)
class MetricsEdges:
    """What the actor needs of its process.

    Attributes:
        sockets: of the daemons that run, by name.
        own: the master's own metrics.
        collectors: where to ask for masters.
        file: METRICS_DISCOVERY_FILE; None: there is none.
    """

    sockets: Callable[[], Mapping[str, str]]
    own: Callable[[], str]
    collectors: Callable[[], tuple[str, ...]]
    file: Path | None = None


class MetricsActor(Actor):
    """Gathers; see the module.

    Attributes:
        gather: calls back with the text of all daemons; set once the actor runs.
    """

    def __init__(self, edges: MetricsEdges, offer: Callable[[Callable[..., None]], None]) -> None:
        self._edges = edges
        self._offer = offer
        self._written = ""

    def started(self) -> None:
        """Offer what others call."""
        self._offer(self.context.as_turn(self._gather))
        if self._edges.file is not None:
            self.context.set_timer("discover", 0.0)

    def receive(self, delivery: Delivery) -> None:
        """Time to look for masters."""
        if isinstance(delivery.message, TimerFired):
            question = QueryAds(ad_kind=AdKind.MASTER, projection=("Name", "Machine", "MetricsAddress"))
            query_ads(self.context, self._edges.collectors(), question, timeout_s=ASK_S, then=self._found,
                      failed=lambda why: self.context.log.info("no masters from the collector: {why}", why=why))
            self.context.set_timer("discover", DISCOVERY_S if self._written else SOON_S)

    def _found(self, ads: list[bytes]) -> None:
        text, file = targets(ads), self._edges.file
        if file is None or text in (self._written, NOTHING):
            return
        try:
            write_whole(file, text.encode())
            self._written = text
        except OSError as error:
            self.context.log.error("METRICS_DISCOVERY_FILE: {error}", error=error)

    def _gather(self, then: Callable[[str], None]) -> None:
        sockets = self._edges.sockets()
        texts: dict[str, str] = {}
        waiting = set(sockets)

        def answered(name: str, answer: Delivery) -> None:
            waiting.discard(name)
            if isinstance(answer.message, DaemonStatistics):
                texts[name] = answer.message.metrics
            if not waiting:
                finish()

        def finish() -> None:
            up = ["# HELP condor_daemon_up Whether a daemon of this machine answered",
                  "# TYPE condor_daemon_up gauge"]
            up += [f'condor_daemon_up{{daemon="{name.lower()}"}} {int(name in texts)}' for name in sorted(sockets)]
            try:
                own = self._edges.own()
            except OSError as error:  # no descriptor is left, say
                self.context.log.warn("metrics of this process: {error}", error=error)
                own = ""
            then(merged([own, *texts.values(), "\n".join(up) + "\n"]))

        if not sockets:
            finish()
        for name, socket in sockets.items():
            self.context.ask(Address(f"unix:{socket}", "admin"), QueryStatistics(metrics=True), timeout_s=PATIENCE_S,
                             then=partial(answered, name))


def merged(texts: Iterable[str]) -> str:
    """Texts in Prometheus's format as one: each family once, with the samples of all."""
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for text in texts:
        family = ""
        for line in text.split("\n"):
            if line.startswith("# "):
                family = line.split(" ", 3)[2]
                known = heads.setdefault(family, [])
                if len(known) < 2 and line not in known:
                    known.append(line)
            elif line:
                samples.setdefault(family, []).append(line)
    parts = [line for family, lines in samples.items() for line in (*heads.get(family, ()), *lines)]
    return "\n".join([*parts, ""])


def targets(ads: Iterable[bytes]) -> str:
    """The masters that show metrics, as ``file_sd_configs`` has them."""
    found = []
    for text in ads:
        try:
            ad = ClassAd.from_bytes(text)
        except ClassAdSyntaxError:
            continue
        address = ad.get_str("MetricsAddress")
        if address:
            found.append({"targets": [address], "labels": {"machine": ad.get_str("Machine")}})
    return json.dumps(sorted(found, key=lambda each: str(each["targets"])), indent=1) + "\n"
