"""What condor_watch asks the pool, round after round, beside the thread that shows it.

Theory: a round asks the collector for the slots heard from since the last one (for all of them every
:data:`WHOLE_S`), and each schedd for what has changed in its queue.  A thread asks, since a daemon may take its time;
what it has learned it leaves in `PoolNews`, which the other thread reads between two rounds only, under its lock.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs

from condor_actors.classads import ClassAd
from condor_actors.config import Config
from condor_actors.cores.web import picture, rows
from condor_actors.cores.web.picture import PoolPicture
from condor_actors.cores.web.rows import QueueRows
from condor_actors.cores.web.story import job_story
from condor_actors.messages.advertise import AdKind, QueryAds
from condor_actors.messages.codes import JobStatus
from condor_actors.messages.queue import QueryJobs
from condor_actors.messages.watch import Changes, QueryChanges, QueryStory, Story
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.contact import COLLECTOR, QUEUE, collector, dial, full_name, local_node, refused
from condor_actors.wire.blocking import Client, WireError, connect

__all__ = ["MOVING", "PoolNews", "PoolQuestions"]

WHOLE_S = 60.0
SCHEDDS_S = 60.0
PATIENCE_S = 20.0
MOST_SCHEDDS = 200
MOVING = ("ClusterId", "ProcId", "Owner", "JobStatus", "RemoteHost", "JobCurrentStartDate",
          "JobCurrentStartExecutingDate", "JobCurrentFinishTransferOutputDate", "EnteredCurrentStatus", "BytesSent",
          "BytesRecvd", "TransferInputSizeMB", "LastCkptTime", "NumCkpts", "CkptSize", "JobUniverse")
"""Of jobs that run: what their transfers and checkpoints are."""
MOST_MOVING = 500
RUNNING = " || ".join(f"JobStatus == {int(status)}" for status in (
    JobStatus.RUNNING, JobStatus.TRANSFERRING_OUTPUT, JobStatus.SUSPENDED))


@attrs.define
class _Schedd:
    """A schedd that is watched."""

    name: str
    address: str
    client: Client | None = None
    token: str = ""


@attrs.define(eq=False)
class PoolNews:
    """What is known.

    Attributes:
        lock: held to read or change it.
        slots, queue: machines and jobs.
        running: ads of jobs that run, with :data:`MOVING`.
        problems: what could not be asked, by whom.
        at_s: when the last round ended, seconds since 1970; 0: none has.
        story: of the job that was asked for last; None: it has not come.
    """

    lock: threading.Lock = attrs.Factory(threading.Lock)
    slots: PoolPicture = attrs.Factory(PoolPicture)
    queue: QueueRows = attrs.Factory(lambda: QueueRows(time.monotonic))
    running: list[ClassAd] = attrs.Factory(list)
    problems: dict[str, str] = attrs.Factory(dict)
    at_s: float = 0.0
    story: dict[str, Any] | None = None


class PoolQuestions:
    """Asks; a context manager, whose thread ends with it.

    Args:
        config: of this tool.
        pool: whose collector; empty: this pool's.
        schedd: only this one; empty: all.
        interval_s: between two rounds.

    Attributes:
        news: what is known.
        descriptor: readable after a round.
    """

    def __init__(self, config: Config, *, pool: str = "", schedd: str = "", interval_s: float = 2.0) -> None:
        self.news = PoolNews()
        self._config = config
        self._pool = pool
        self._only = schedd.lower()
        self._interval_s = interval_s
        self._collector: Client | None = None
        self._schedds: dict[str, _Schedd] = {}
        self._whole_s = self._listed_s = -1e9
        self._wanted: tuple[str, int, int] | None = None
        self._stop = threading.Event()
        self._hurry = threading.Event()
        self.descriptor, self._tells = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._run, daemon=True, name="questions")

    def __enter__(self) -> PoolQuestions:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._hurry.set()

    def forget(self) -> None:
        """Take what the descriptor told."""
        try:
            os.read(self.descriptor, 4096)
        except BlockingIOError:
            pass

    def now(self) -> None:
        """A round at once."""
        self._hurry.set()

    def ask_story(self, schedd: str, cluster: int, proc: int) -> None:
        """Ask what became of a job; ``news.story`` has it after the next round."""
        with self.news.lock:
            self.news.story = None
        self._wanted = (schedd, cluster, proc)
        self._hurry.set()

    # ---- the other thread

    def _run(self) -> None:
        while not self._stop.is_set():
            self._hurry.clear()
            self._try("collector", self._ask_slots)
            for schedd in list(self._schedds.values()):
                if not self._stop.is_set():
                    self._try(schedd.name, partial(self._ask_schedd, schedd))
            with self.news.lock:
                self.news.at_s = time.time()
            try:
                os.write(self._tells, b".")
            except OSError:
                pass
            self._hurry.wait(self._interval_s)

    def _try(self, who: str, ask: Callable[[], None]) -> None:
        try:
            ask()
            problem = ""
        except ToolError as error:
            problem = error.text.split("\n", 1)[0].removeprefix("Error: ")
        except WireError as error:
            problem = refused(error).removeprefix("Error: ")
        except OSError as error:
            problem = error.strerror or str(error)
        if problem:
            self._hang_up(who)
        with self.news.lock:
            if problem:
                self.news.problems[who] = problem
            else:
                self.news.problems.pop(who, None)

    def _hang_up(self, who: str) -> None:
        known = self._schedds.get(who)
        if known is not None and known.client is not None:
            known.client.close()
            known.client = None
        elif who == "collector" and self._collector is not None:
            self._collector.close()
            self._collector = None

    def _ask_slots(self) -> None:
        if self._collector is None:
            self._collector = collector(self._config, pool=self._pool)
            self._whole_s = -1e9
        now_s = time.monotonic()
        is_whole = now_s >= self._whole_s + WHOLE_S
        constraint = "" if is_whole else f"LastHeardFrom >= {self.news.slots.newest_s}"
        found, cursor = [], ""
        while True:
            page = self._collector.ask(COLLECTOR, QueryAds(ad_kind=AdKind.SLOT, constraint=constraint,
                                                           projection=picture.ATTRIBUTES, cursor=cursor), PATIENCE_S)
            found += page.ads
            cursor = page.cursor
            if not cursor:
                break
        with self.news.lock:
            self.news.slots.heard(found)
            if is_whole:
                self.news.slots.keep_only({ClassAd.from_bytes(ad).get_str("Name")[:rows.LONGEST] for ad in found})
                self._whole_s = now_s
        if now_s >= self._listed_s + SCHEDDS_S or not self._schedds:
            page = self._collector.ask(COLLECTOR, QueryAds(ad_kind=AdKind.SCHEDD, projection=("Name", "MyAddress"),
                                                           limit=MOST_SCHEDDS), PATIENCE_S)
            self._take_schedds([ClassAd.from_bytes(ad) for ad in page.ads])
            self._listed_s = now_s

    def _take_schedds(self, ads: list[ClassAd]) -> None:
        found = {ad.get_str("Name"): ad.get_str("MyAddress") for ad in ads}
        wanted = {name: address for name, address in found.items()
                  if not self._only or self._only in (name.lower(), name.partition("@")[2].lower(),
                                                      name.partition(".")[0].lower())}
        if self._only and not wanted:
            raise ToolError(f"Error: there is no schedd {self._only}; the collector knows {', '.join(found) or 'none'}")
        for name in self._schedds.keys() - wanted.keys():
            self._hang_up(name)
            del self._schedds[name]
            with self.news.lock:
                self.news.queue.forget(name)
        for name, address in wanted.items():
            known = self._schedds.get(name)
            if known is None or known.address != address:
                self._hang_up(name)
                self._schedds[name] = _Schedd(name, address)

    def _ask_schedd(self, schedd: _Schedd) -> None:
        client = schedd.client
        if client is None:
            is_here = not self._pool and schedd.name == full_name(self._config, "schedd")
            client = schedd.client = connect(local_node(self._config, "schedd")) if is_here else dial(
                self._config, schedd.address, f"schedd {schedd.name}", as_user=True)
        while True:
            changes = client.ask(QUEUE, QueryChanges(since=schedd.token, projection=rows.ATTRIBUTES), PATIENCE_S)
            assert isinstance(changes, Changes)
            with self.news.lock:
                if changes.begins:
                    self.news.queue.forget(schedd.name)
                self.news.queue.put(schedd.name, changes.ads)
                self.news.queue.take_out(schedd.name, changes.gone)
            if not changes.more or changes.token == schedd.token:
                break
            schedd.token = changes.token
        schedd.token = changes.token
        page = client.ask(QUEUE, QueryJobs(constraint=RUNNING, projection=MOVING, limit=MOST_MOVING), PATIENCE_S)
        running = [ClassAd.from_bytes(ad) for ad in page.ads]
        with self.news.lock:
            self.news.running = [*(ad for ad in self.news.running if ad.get_str("Schedd") != schedd.name), *running]
        for ad in running:
            ad["Schedd"] = schedd.name
        self._ask_wanted(schedd, client)

    def _ask_wanted(self, schedd: _Schedd, client: Client) -> None:
        wanted = self._wanted
        if wanted is None or wanted[0] != schedd.name:
            return
        self._wanted = None
        story = client.ask(QUEUE, QueryStory(cluster=wanted[1], proc=wanted[2]), PATIENCE_S)
        assert isinstance(story, Story)
        told = job_story(schedd.name, ClassAd.from_bytes(story.ad), story.lines, story.has_left)
        with self.news.lock:
            self.news.story = told
