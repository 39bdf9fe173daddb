"""What the web page costs: in a browser, and in its daemon with ten watchers.

Usage: python benchmarks/page.py [--slots N] [--jobs N] [--seconds S]

The daemon is the real one, on its real port; collector and schedd are a table and a queue in the same process, whose
own time is measured and taken off.  Each second a hundred jobs and fifty slots change.  One watcher is a Chromium, the
others read the stream and ask for the first page of the queue every two seconds, as a browser does.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import threading
import time
import urllib.request
from collections import deque
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import psutil
from twisted.internet import reactor as default_reactor
from twisted.internet.threads import deferToThread

from condor_actors.actors import Actor
from condor_actors.classads import ClassAd
from condor_actors.config import load_config
from condor_actors.cores.collector.ad_table import AdTable
from condor_actors.cores.schedd import job_query
from condor_actors.cores.schedd.job_attributes import PRIVATE, JobSight
from condor_actors.cores.schedd.job_queue import JobQueue
from condor_actors.cores.schedd.queued_job import Cluster
from condor_actors.daemons.web.web import WebDaemon
from condor_actors.messages.advertise import AdKind, QueryAds
from condor_actors.messages.codes import JobStatus
from condor_actors.messages.envelope import Delivery, Refused
from condor_actors.messages.queue import JobsPage, QueryTotals
from condor_actors.messages.watch import QueryChanges
from examples.page_pictures import browser_program
from tests.harness.local_post import LocalNetwork

reactor: Any = default_reactor
COLLECTOR, SCHEDD = "<127.0.0.1:9618>", "<127.0.0.1:9619>"
WATCHERS = 10
CHANGED_JOBS, CHANGED_SLOTS = 100, 50
STATES = (("Owner", "Idle"), ("Unclaimed", "Idle"), ("Claimed", "Busy"), ("Claimed", "Suspended"))


class RealClock:
    """The reactor, with a wall clock."""

    def __init__(self) -> None:
        self.wall = time.time

    def __getattr__(self, name: str) -> Any:
        return getattr(reactor, name)


class FakePool:
    """What collector and schedd know: real tables, no other work.

    Attributes:
        spent_s: processor time of its answers and changes.
    """

    def __init__(self, slots: int, jobs: int) -> None:
        self.random = Random(1)
        self.table, self.queue = AdTable(), JobQueue()
        self.names = [f"slot{1 + number % 8}@machine{number // 8:04}.example" for number in range(slots)]
        self.spent_s = 0.0
        for name in self.names:
            self.change_slot(name)
        self.table.update(AdKind.SCHEDD, ClassAd({"Name": "submit.example", "MyAddress": SCHEDD}).to_bytes(), b"",
                          now_s=time.time(), lifetime_s=9e9)
        for number in range(1, jobs // 100 + 1):
            ad = ClassAd({"ClusterId": number, "Owner": f"user{number % 40}", "User": "u@example", "QDate": number,
                          "Cmd": f"/home/user/programs/simulate{number}", "JobBatchName": f"run {number}"})
            cluster = self.queue.clusters[number] = Cluster(number, "user", ad, 100)
            for proc in range(100):
                own = ClassAd({"ProcId": proc, "JobStatus": 1, "EnteredCurrentStatus": number})
                own.parent = ad
                self.queue.enter(cluster, proc, own)

    def change_slot(self, name: str) -> None:
        state, activity = self.random.choice(STATES)
        ad = ClassAd({"Name": name, "Machine": name.partition("@")[2], "State": state, "Activity": activity, "Cpus": 1,
                      "Memory": 4096, "LoadAvg": 0.5, "KeyboardIdle": 1000, "OpSys": "LINUX", "Arch": "X86_64",
                      "EnteredCurrentActivity": int(time.time())})
        self.table.update(AdKind.SLOT, ad.to_bytes(), b"", now_s=time.time(), lifetime_s=9e9)

    def churn(self) -> None:
        """A second's changes."""
        began = time.thread_time()
        for name in self.random.sample(self.names, CHANGED_SLOTS):
            self.change_slot(name)
        for _ in range(CHANGED_JOBS):
            job = self.queue.job(self.random.randrange(1, len(self.queue.clusters) + 1), self.random.randrange(100))
            if job is not None:
                status = JobStatus.RUNNING if job.status is JobStatus.IDLE else JobStatus.IDLE
                self.queue.set_status(job, status, time.time())
        self.queue.take_dirty()
        self.spent_s += time.thread_time() - began
        reactor.callLater(1.0, self.churn)

    def answer(self, context: Any, delivery: Delivery) -> None:
        """Answer a question."""
        began = time.thread_time()
        message = delivery.message
        answer: Any = Refused(code="invalid", text="not here")
        if isinstance(message, QueryAds):
            constraint = job_query.parse_expression(message.constraint) if message.constraint else None
            answer = self.table.page(message.ad_kind, constraint, message.projection, 4000, message.cursor)
        elif isinstance(message, QueryTotals):
            answer = job_query.totals(self.queue, message, JobSight(PRIVATE, lambda owner: False), time.time())
        elif isinstance(message, QueryChanges):
            answer = job_query.changes(self.queue, message, JobSight(PRIVATE, lambda owner: False), time.time())
        elif hasattr(message, "source"):
            answer = JobsPage(ads=())
        context.reply(delivery, answer)
        self.spent_s += time.thread_time() - began


class Desk(Actor):
    """Where it is asked."""

    def __init__(self, pool: FakePool) -> None:
        self.pool = pool

    def receive(self, delivery: Delivery) -> None:
        """Answer."""
        self.pool.answer(self.context, delivery)


def watcher(url: str, until: threading.Event) -> None:
    """Read the stream, and the queue's first page every two seconds."""
    def read() -> None:
        with suppress(OSError, HTTPException), urllib.request.urlopen(url + "api/events", timeout=60) as stream:
            while not until.is_set():
                stream.read(4096)

    threading.Thread(target=read, daemon=True).start()
    while not until.wait(2.0):
        first = url + "api/jobs?sort=entered&order=down"
        with suppress(OSError, HTTPException), urllib.request.urlopen(first, timeout=60) as answer:
            answer.read()


def browse(url: str, seconds: float) -> dict[str, float]:
    """What a Chromium says after a while on the map and on the queue."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=browser_program(), args=["--no-sandbox"])
        window = browser.new_page(viewport={"width": 1280, "height": 800})
        session = window.context.new_cdp_session(window)
        session.send("Performance.enable")
        window.goto(url)
        window.wait_for_selector("#map button", timeout=120_000)
        window.wait_for_timeout(seconds * 500)
        window.evaluate("() => { location.hash = 'queue'; }")
        window.wait_for_selector("#jobs tbody a", timeout=120_000)
        window.wait_for_timeout(seconds * 500)
        spent = window.evaluate("() => performance.getEntriesByType('measure').map((each) => each.duration)")
        metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
        renderers = [each for each in psutil.process_iter(["cmdline"])
                     if "--type=renderer" in (each.info["cmdline"] or [])]
        memory = max((each.memory_full_info().pss for each in renderers), default=0)
        browser.close()
    return {"updates": len(spent), "longest_ms": max(spent), "heap_mb": metrics["JSHeapUsedSize"] / 1e6,
            "task_ms": metrics["TaskDuration"] * 1e3 / max(1, len(spent)), "renderer_mb": memory / 1e6}


def main() -> None:
    """Run it; prints a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slots", type=int, default=1_000)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=40.0)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="condor-page-"))
    for name in ("spool", "run"):
        (folder / name).mkdir()
    (folder / "condor_config").write_text(
        f"LOCAL_DIR = {folder}\nSPOOL = {folder}/spool\nRUN = {folder}/run\nCOLLECTOR_HOST = 127.0.0.1:9618\n"
        "WEB_HTTP_PORT = 0\n")
    network: Any = LocalNetwork()
    network.clock, network.carried = RealClock(), deque(maxlen=1)
    pool = FakePool(options.slots, options.jobs)
    network.world(COLLECTOR).make_system().spawn("collector", lambda: Desk(pool))
    network.world(SCHEDD).make_system().spawn("schedd", lambda: Desk(pool))
    pool_rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    daemon = WebDaemon(load_config(files=[folder / "condor_config"], environ={}), network.world("<127.0.0.1:9680>"))
    until = threading.Event()
    found: dict[str, float] = {}

    def begin() -> None:
        daemon.start()
        pool.churn()
        for _ in range(WATCHERS - 1):
            threading.Thread(target=watcher, args=(daemon.url, until), daemon=True).start()
        reactor.callLater(15.0, measure)

    def measure() -> None:
        own, fake, began = time.thread_time(), pool.spent_s, time.monotonic()

        def end(result: dict[str, float]) -> None:
            passed = time.monotonic() - began
            found.update(result, core=((time.thread_time() - own) - (pool.spent_s - fake)) / passed,
                         jobs=len(daemon.known.rows),
                         daemon_mb=(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - pool_rss) / 1e3)
            until.set()
            reactor.stop()

        def failed(failure: Any) -> None:
            failure.printTraceback()
            until.set()
            reactor.stop()

        deferToThread(browse, daemon.url, options.seconds).addCallbacks(end, failed)

    reactor.callWhenRunning(begin)
    reactor.run()
    print(json.dumps({name: round(value, 3) for name, value in found.items()}))


if __name__ == "__main__":
    main()
