"""Sending the jobs of a description to a schedd: numbers, pages, and what became of them when a line broke.

The numbers of clusters are asked for while the description is read, more and more at once.  The pages of all clusters
then go out together, some on their way while the first are answered; each cluster is one transaction of the schedd.  A
schedd that goes away in between is asked, when it is back, which clusters it has.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from condor_actors.cores.credd.token_attributes import may_want_tokens
from condor_actors.submit import Cluster, Environment
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.pool.version import platform_line, version_line
from condor_actors.wire.blocking import AT_ONCE, LinkLost, RequestRefused, TimedOut, WireError

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any

    from condor_actors.config import Config
    from condor_actors.messages.submission import SubmitItems, SubmitPage
    from condor_actors.tools.lib.contact import Schedd

PAGE_BYTES = 384 * 1024
MOST_NUMBERS = 1000
"""Cluster numbers that a schedd gives away at once."""
MOST_LOGS = 1000
"""Event logs that are made before the first event is written."""
MOST_TOKENS_ASKED = 16
"""About as many one question to the credential daemon may be."""
RETURN_S = 60.0
"""How long a schedd that went away during a submission is given to come back and say what became of it."""


class Submission:
    """Sends clusters to a schedd.

    Args:
        there: a line to it.
        again: a new line to it, when that one broke.
        spool: whether the jobs wait for their input files.
    """

    def __init__(self, there: Schedd, again: Callable[[], Schedd], *, spool: bool) -> None:
        self.there = there
        self._again = again
        self._spool = spool
        self._numbers: deque[int] = deque()
        self._next_count = 1

    def reserve(self) -> int:
        """The number of a new cluster; a description that goes on to want more gets more and more at once."""
        from condor_actors.messages.submission import ClusterReserved, ReserveCluster

        if not self._numbers:
            answer: ClusterReserved = self._asked(ReserveCluster(count=self._next_count))
            self._numbers = deque(range(answer.cluster_id, answer.cluster_id + self._next_count))
            self._next_count = min(2 * self._next_count, MOST_NUMBERS)
        return self._numbers.popleft()

    def send(self, clusters: Sequence[Cluster], before: Sequence[Cluster] = ()) -> None:
        """Send the pages of clusters, some on their way together.

        Raises:
            ToolError: one is refused, or the schedd went away; says which were queued.
        """
        _check_tokens(clusters, is_local=not self.there.machine)
        queued = [cluster.cluster_id for cluster in before]
        problem = ""
        sent = [(cluster, page) for cluster in clusters for page in pages_to_send(cluster, spool=self._spool)]
        done = 0
        try:
            for (cluster, page), answer in zip(sent, self.there.ask_all(page for _, page in sent), strict=True):
                done += 1
                if isinstance(answer, RequestRefused):
                    problem = problem or f"Failed to queue the jobs.\nERROR: {answer}"
                elif page.last:
                    queued.append(cluster.cluster_id)
        except (LinkLost, TimedOut) as error:
            queued += [cluster.cluster_id for cluster, page in sent[done:done + AT_ONCE]
                       if page.last and self._was_queued(cluster.cluster_id)]
            if len(queued) == len(before) + len(clusters):
                return
            problem = problem or f"Failed to queue the jobs: {error}" + ("" if queued else "; nothing was queued")
        except WireError as error:
            problem = f"Failed to queue the jobs: the schedd does not answer ({error})"
        if problem:
            raise ToolError(f"{problem}\n(queued: cluster {ranges(queued)})" if queued else problem)

    def _asked(self, message: Any) -> Any:
        try:
            return self.there.ask(message)
        except RequestRefused as error:
            raise ToolError(f"Failed to queue the jobs.\nERROR: {error}") from None
        except (LinkLost, TimedOut):
            raise
        except WireError as error:
            raise ToolError(f"Failed to queue the jobs: the schedd does not answer ({error})") from None

    def _was_queued(self, cluster_id: int) -> bool:
        """Whether a submission was committed though its answer got lost: ask the schedd when it is back.

        Raises:
            ToolError: it does not come back; the jobs may be queued or not.
        """
        from condor_actors.messages.queue import QueryJobs

        deadline_s = time.monotonic() + RETURN_S
        while time.monotonic() < deadline_s:
            try:
                self.there.client.close()
                self.there = self._again()
                return any(
                    self.there.ask(QueryJobs(source=source, ids=((cluster_id, -1),), limit=1)).ads
                    for source in ("queue", "history")
                )
            except (ToolError, WireError):
                time.sleep(1.0)
        raise ToolError(
            f"The schedd went away while cluster {cluster_id} was submitted; "
            f"see with 'condor_q {cluster_id}' whether it is queued before you submit again"
        )


def _check_tokens(clusters: Sequence[Cluster], *, is_local: bool) -> None:
    """Ask the credential daemon, before anything is queued, whether the jobs can have the tokens that they want.

    Jobs for a schedd of another machine are checked where CREDD_HOST says whom to ask.

    Raises:
        ToolError: one cannot be had, with the remedy; or nobody can say.
    """
    texts = {cluster.ad for cluster in clusters if may_want_tokens(cluster.ad)}
    texts.update(cluster.ad + proc for cluster in clusters if not cluster.is_factory
                 for proc in cluster.procs if may_want_tokens(proc))
    if not texts:
        return
    from condor_actors.classads import ClassAd
    from condor_actors.cores.job_tokens import BadTokenRequest, wanted_tokens
    from condor_actors.messages.credentials import CheckServices
    from condor_actors.tools.lib.contact import CREDD, credd, load

    try:
        wanted = dict.fromkeys(each for text in sorted(texts) for each in wanted_tokens(ClassAd.from_bytes(text)))
    except BadTokenRequest as error:
        raise ToolError(f"Failed to queue the jobs.\nERROR: {error}") from None
    config, asked = load("SUBMIT"), tuple(wanted)
    if not asked or not (is_local or config.text("CREDD_HOST")):
        return
    with credd(config) as client:
        try:
            for start in range(0, len(asked), MOST_TOKENS_ASKED):
                client.ask(CREDD, CheckServices(wanted=asked[start : start + MOST_TOKENS_ASKED]))
        except WireError as error:
            raise ToolError(f"Failed to queue the jobs: they could not have their tokens.\nERROR: {error}") from None


def ranges(numbers: Sequence[int]) -> str:
    """``1-3, 7`` for 1, 2, 3 and 7."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def _item_pages(cluster: Cluster) -> Iterator[SubmitItems]:
    """The messages that bring a cluster whose jobs are made as they are needed."""
    from condor_actors.messages.submission import SubmitItems
    from condor_actors.submit.factory import Repeated

    if isinstance(cluster.procs, Repeated):
        _fits(len(cluster.ad))
        yield SubmitItems(cluster_id=cluster.cluster_id, page=0, cluster_ad=cluster.ad, items=(cluster.procs.text,),
                          last=True, repeat=len(cluster.procs))
        return
    pages = list(pages_of(cluster))
    for number, items in enumerate(pages):
        yield SubmitItems(cluster_id=cluster.cluster_id, page=number, cluster_ad=b"" if number else cluster.ad,
                          items=items, last=number == len(pages) - 1)


def pages_to_send(cluster: Cluster, *, spool: bool = False) -> Iterator[SubmitPage | SubmitItems]:
    """The messages that bring a cluster to a schedd."""
    from condor_actors.messages.submission import SubmitPage

    if cluster.is_factory:
        yield from _item_pages(cluster)
        return
    pages = list(pages_of(cluster))
    first = 0
    for number, procs in enumerate(pages):
        yield SubmitPage(cluster_id=cluster.cluster_id, page=number, cluster_ad=cluster.ad if number == 0 else b"",
                         procs=procs, first_proc=first, last=number == len(pages) - 1, spool=spool)
        first += len(procs)


def _fits(size: int) -> None:
    from condor_actors.messages.pages import LARGE_AD, MOST_AD_BYTES

    if size > MOST_AD_BYTES:
        raise ToolError(f"Failed to queue the jobs.\nERROR: {LARGE_AD}")


def pages_of(cluster: Cluster) -> Iterator[tuple[bytes, ...]]:
    """The procs of a cluster in pages that fit a message.

    Raises:
        ToolError: a job's ad is too large for the schedd, and perhaps for any message.
    """
    _fits(len(cluster.ad))
    page: list[bytes] = []
    room = PAGE_BYTES - len(cluster.ad)
    for text in cluster.procs:
        _fits(len(cluster.ad) + len(text))
        if page and (room < len(text) + 5 or len(page) >= 50_000):
            yield tuple(page)
            page, room = [], PAGE_BYTES
        page.append(text)
        room -= len(text) + 5
    yield tuple(page)


def environment(config: Config, *, submit_method: int = 0) -> Environment:
    """The caller's world."""
    from condor_actors import accounts
    from condor_actors.tools.lib.submit_files import LocalFiles

    return Environment(
        cwd=os.getcwd(),
        environ=os.environ,
        user=accounts.own_name(),
        now_s=int(time.time()),
        arch=config.needed_text("ARCH"),
        opsys=config.needed_text("OPSYS"),
        files=LocalFiles(),
        setting=config.text,
        version=version_line(),
        platform=platform_line(),
        automatic={
            name: config.text(name) or ""
            for name in ("OPSYSANDVER", "OPSYSVER", "OPSYSMAJORVER", "SPOOL", "FULL_HOSTNAME")
        },
        submit_method=submit_method,
    )


def make_logs(clusters: Sequence[Cluster]) -> None:
    """Make the event logs of jobs that were just queued on this machine, empty, where there are none.

    The first event is written by a shadow host, which may have to start; a script that looks for the log at once
    (``condor_submit job.sub && condor_wait job.log``) finds it all the same.
    """
    from condor_actors.classads import ClassAd
    from condor_actors.userlog.paths import LOG_ATTRIBUTES, log_paths

    differing = tuple(name.encode() for name in (*LOG_ATTRIBUTES, "Iwd"))
    made: set[str] = set()
    for cluster in clusters:
        common = ClassAd.from_bytes(cluster.ad)
        ads = [common]
        for text in cluster.procs[:MOST_LOGS] if cluster.is_factory else cluster.procs:
            if any(name in text for name in differing):
                ads.append(ClassAd.from_bytes(text))
                ads[-1].parent = common
            if len(ads) > MOST_LOGS:
                break
        for path in (path for ad in ads for path in log_paths(ad)):
            if len(made) >= MOST_LOGS:
                return
            if path not in made:
                made.add(path)
                try:
                    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
                except (OSError, ValueError):  # the shadow host says what is wrong with it
                    continue
