"""Six real sites in trouble: their jobs, owners, broken cables and dead gateways, and what must be so at the end.

Users of all sites submit jobs of both universes, unevenly.  Owners come and go, cables between sites break and are
mended, in one direction or both, gateways are killed or lose their machines for a while; all as a seed says.  At the
end every job has ended once, in the history and in its log, with the right bytes; each ran where a line of the map
leads; no machine but gateways has sent a packet to another site, and nobody has tried to; nothing is left, and no log
has a traceback.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from condor_actors.simulation.faults.sites import WAYS
from tests.harness.aftermath import left_over, tracebacks, wrong_history
from tests.harness.mixed_jobs import INPUT, KINDS, MOVED, RESULT, Batch, Kind, submitted
from tests.harness.namespaces import Machine
from tests.harness.pool_in_trouble import keep_folders, say
from tests.harness.six_sites import Place, SixSites, six_sites
from tests.harness.trouble import daemons_of
from tests.pool_fixture import until

__all__ = ["sites_in_trouble"]

SCALE = 0.05
ENDS_WITHIN_S = 2400.0
SPAN_S = 3600.0
"""The trouble is over after so long at most."""
LARGE_BYTES = 3_000_000
WORKS = "sleep $(( 3 + $1 % 11 ))"
SITE_KINDS = {
    "standard": KINDS["standard"],
    "stream": Kind(30, f"{WORKS}; {RESULT}"),
    "files": Kind(20, f"cat in >copy; {WORKS}; {RESULT} >>copy", MOVED, "copy.{}",
                  lambda number: f"{INPUT}result {number}\n"),
    "large": Kind(10, f"head -c {LARGE_BYTES} /dev/zero | tr '\\0' x >copy; {RESULT} >>copy", MOVED, "copy.{}",
                  lambda number: "x" * LARGE_BYTES + f"result {number}\n"),
}
SHARES = {"standard": 40, "stream": 30, "files": 20, "large": 10}
"""Of a site's jobs, in hundredths."""
WORK = {"madison": 10, "delft": 15, "amsterdam": 15, "geneva": 20, "warsaw": 20, "dubna": 20}
"""Of all jobs, in hundredths: more than the small sites can do."""
GAP_S = (2.0, 6.0)
HOW = ("cut", "cut", "gateway", "gateway", "owner", "owner", "owner", "machine")
SHORT_S, LONG_S, LONG_ONES = (2.0, 15.0), (95.0, 130.0), 0.08
"""How long cuts, visits and dead machines last; a link that is silent for a minute and a half counts as lost."""


class SiteTrouble(threading.Thread):
    """An owner comes, a cable breaks or a gateway dies, every two to six seconds until :meth:`end`."""

    def __init__(self, sites: SixSites, seed: int) -> None:
        super().__init__(name="trouble", daemon=True)
        self.faults: Counter[str] = Counter()
        self._sites = sites
        self._random = random.Random(seed)
        self._over = threading.Event()
        self._undo: list[tuple[float, Callable[[], object]]] = []
        self._away: set[str] = set()
        self._visits: dict[str, float] = {}

    def run(self) -> None:
        """Until the end; then everything is mended."""
        next_s = time.monotonic()
        while not self._over.wait(0.5):
            now_s = time.monotonic()
            self._undo_due(now_s)
            for name, end_s in self._visits.items():
                if now_s < end_s:
                    self._sites.places[name].owner_types()
            if now_s >= next_s:
                next_s = now_s + self._random.uniform(*GAP_S)
                self._fault(now_s)
        self._undo_due(float("inf"))

    def end(self) -> None:
        """No more of it."""
        self._over.set()
        self.join()

    def _undo_due(self, now_s: float) -> None:
        due = [undo for when_s, undo in self._undo if when_s <= now_s]
        self._undo = [each for each in self._undo if each[0] > now_s]
        for undo in due:
            undo()

    def _fault(self, now_s: float) -> None:
        how = self._random.choice(HOW)
        place = self._random.choice(list(self._sites.places.values()))
        span_s = self._random.uniform(*(LONG_S if self._random.random() < LONG_ONES else SHORT_S))
        if how == "owner":
            self._visits[place.name] = max(now_s + span_s, self._visits.get(place.name, 0.0))
            self._note("owner", f"{place.name}, {span_s:.1f} s")
        elif how == "cut":
            self._cut(now_s + span_s, span_s)
        else:
            gateway = self._random.choice(place.gateways)
            if gateway.name not in self._away:
                self._kill(gateway, how == "machine", now_s + span_s)

    def _cut(self, until_s: float, span_s: float) -> None:
        one, other = self._random.choice(WAYS)
        both = self._random.random() < 0.7
        self._sites.internet.cut(one, other, both=both)
        self._undo.append((until_s, lambda: self._sites.internet.mend(one, other)))
        self._note("cut" if both else "cut one way", f"{one} {'-' if both else '>'} {other}, {span_s:.1f} s")

    def _kill(self, gateway: Machine, machine: bool, until_s: float) -> None:
        """Kill the daemon, which its master starts again; or all daemons, which come back with their machine."""
        for name, pid in daemons_of(gateway):
            if machine or name == "gateway":
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if machine:
            self._away.add(gateway.name)
            self._undo.append((until_s, lambda: self._back(gateway)))
        self._note("gateway's machine" if machine else "gateway", gateway.name)

    def _back(self, gateway: Machine) -> None:
        assert gateway.master is not None
        gateway.master.wait(60)
        gateway.start()
        self._away.discard(gateway.name)

    def _note(self, fault: str, details: str) -> None:
        self.faults[fault] += 1
        say(f"{time.strftime('%H:%M:%S')} {fault}: {details}")


def _submitted(place: Place, jobs: int) -> list[Batch]:
    """A site's jobs, of all kinds."""
    return [submitted(place.manager, f"{place.name}-{kind}", kind, max(1, round(jobs * share / 100)), SITE_KINDS)
            for kind, share in SHARES.items()]


def _queued(place: Place) -> list[str]:
    """``cluster.proc status reason`` of the jobs that have not ended; one word where the schedd does not say."""
    done = place.manager.tool("condor_q", "-all", "-af", "ClusterId", "ProcId", "JobStatus", "RemoteHost", "HoldReason")
    return done.stdout.splitlines() if done.returncode == 0 else ["unknown"]


def _wait(sites: SixSites, deadline_s: float) -> bool:
    """Until no site has a job; whether that was so in time."""
    end_s, busy = time.monotonic() + deadline_s, list(sites.places.values())
    while busy and time.monotonic() < end_s:
        time.sleep(1.0)
        busy = [place for place in busy if _queued(place)]
    return not busy


def _strange_hosts(place: Place) -> tuple[int, list[str]]:
    """How many of a site's jobs ended in another pool, and those that were where no line of the map leads."""
    lines = place.manager.run("condor_history", "-af", "ClusterId", "ProcId", "LastRemoteHost").splitlines()
    abroad = [line for line in lines if "%" in line]
    return len(abroad), [f"{place.name}: job {line}: no line leads there" for line in abroad
                         if (place.name, line.rpartition("%")[2]) not in WAYS]


def _wrong_packets(sites: SixSites) -> list[str]:
    """What has crossed the border of a site, or has tried to, and should not have."""
    internet = sites.internet
    wrong = [f"{source} sent {count} packets to {to}" for (source, to), count in internet.strays.items()]
    wrong += [f"{source} tried to dial {to}, which hides" for source, to in internet.dials]
    names = {gate.address: place.name for place in sites.places.values() for gate in place.gateways}
    partners = {frozenset(way) for way in WAYS}
    wrong += [f"{names[one]} and {names[other]} are no partners, and exchanged {count} packets"
              for (one, other), count in internet.pairs.items() if {names[one], names[other]} not in partners]
    return wrong


def _looks_outside(sites: SixSites) -> None:
    """That the record would show it: a machine that is no gateway tries to reach one that is none, and is noted."""
    here, there = sites.places["dubna"].manager, sites.places["madison"].manager
    here.tool("/usr/bin/python3", "-c", "import socket, sys; s = socket.socket(); s.settimeout(0.5); "
              "s.connect((sys.argv[1], 9))", there.address)
    until(lambda: (here.address, there.address) in sites.internet.strays, "the record to show it")
    assert sites.internet.pairs[here.address, there.address] == 0
    sites.internet.strays.clear()


def sites_in_trouble(jobs: int, seed: int, keep: Path | None = None) -> list[str]:
    """Run it; what is wrong afterwards.

    Args:
        jobs: how many in all; seed: of all chances.
        keep: where the machines' folders are copied to if anything is wrong; None: nowhere.
    """
    began_s = time.monotonic()
    with six_sites(seed, SCALE) as sites:
        say(f"{len(sites.machines())} machines of six sites after {time.monotonic() - began_s:.0f} s; clocks ahead by "
            f"{ {place.name: place.apart_s for place in sites.places.values()} } s")
        _looks_outside(sites)
        began_s = time.monotonic()
        trouble = SiteTrouble(sites, seed)
        trouble.start()
        try:
            batches = {name: _submitted(place, max(4, jobs * WORK[name] // 100))
                       for name, place in sites.places.items()}
            _wait(sites, SPAN_S)
        finally:
            trouble.end()
        say(f"{time.strftime('%H:%M:%S')} calm; {sum(trouble.faults.values())} faults: {dict(trouble.faults)}")
        wrong = []
        if not _wait(sites, ENDS_WITHIN_S):
            wrong = [f"{place.name}: not ended: {line}" for place in sites.places.values() for line in _queued(place)]
        wrong += _all_wrong(sites, batches)
        _tell(sites, batches, time.monotonic() - began_s)
        if wrong and keep is not None:
            keep_folders(sites.machines(), keep)
    return wrong


def _all_wrong(sites: SixSites, batches: dict[str, list[Batch]]) -> list[str]:
    """Everything that is not as it should be when all jobs have ended."""
    wrong = _wrong_packets(sites)
    for name, place in sites.places.items():
        wrong += [text for batch in batches[name] for text in batch.wrong()]
        wrong += wrong_history(place.manager, batches[name])
        wrong += _strange_hosts(place)[1]
        wrong += left_over(place.wire)
    return [*wrong, *tracebacks(sites.machines())]


def _tell(sites: SixSites, batches: dict[str, list[Batch]], took_s: float) -> None:
    """What happened, in figures."""
    kinds = Counter({kind: sum(batch.jobs for each in batches.values() for batch in each if batch.kind == kind)
                     for kind in SHARES})
    abroad = {place.name: _strange_hosts(place)[0] for place in sites.places.values()}
    say(f"{kinds.total()} jobs have ended after {took_s:.0f} s: {dict(kinds)}; in another pool ended "
        f"{sum(abroad.values())}: {abroad}; {sites.internet.pairs.total()} packets between {len(sites.internet.pairs)} "
        "pairs of gateways")
    for place in sites.places.values():
        say(place.manager.tool("condor_flock", "report").stdout.rstrip())
