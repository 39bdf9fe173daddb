"""Another schedd, spoken to as its user does with the tools: each call waits, so it is made on a worker.

Theory: the lines are those of the tools, with the user's own certificate or token.  A line is for one call at a time
and is kept for the next.  Every call may be made twice: what was done already is found and left alone.  So one that
breaks on a line that had been kept is made again on a new one.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from condor_actors.actors.workers import open_plain, touching
from condor_actors.classads import ClassAd
from condor_actors.config import Config
from condor_actors.cores.shadow.condor_jobs import PROJECTION, RemoteJob, question_for, read_job

# The owner may not be able to read where Python lies: what a line needs is imported while this process is the pool's.
from condor_actors.messages import pool as _pool  # noqa: F401
from condor_actors.messages.advertise import AdKind
from condor_actors.messages.queue import ActOnJobs, JobAction, QueryJobs
from condor_actors.messages.spool import FinishSpooling, ListSpool, ReadSpool
from condor_actors.messages.submission import ReserveCluster, SubmitPage
from condor_actors.transfer.spool_files import chunks_of
from condor_actors.wire.blocking import Client, LinkLost, NotTrusted, RequestRefused, WireError, connect
from condor_actors.wire.certificates import tool_credentials as _credentials  # noqa: F401
from condor_actors.wire.idtokens import bearer as _bearer  # noqa: F401
from condor_actors.wire.idtokens import private_files as _private  # noqa: F401
from condor_actors.wire.idtokens import token_files as _tokens  # noqa: F401
from condor_actors.wire.nodes import BadNode
from condor_actors.wire.partners import partner_store as _partners  # noqa: F401
from condor_actors.wire.partners.pool_contact import (
    BadContact,
    ads_of,
    collector_node,
    connect_as_user,
    credentials,
    schedd_constraint,
)

__all__ = ["Line", "RemoteSchedd", "ScheddFailed"]

QUEUE = "schedd"
FRESH_S = 30.0
"""A kept line that was silent for longer may have been cut."""
MOST_PAGES = 1000
MOST_FILES = 100_000
MOST_JOBS = 1_000_000
T = TypeVar("T")


class ScheddFailed(Exception):
    """The other schedd did not do what it was asked, or nobody knows; its text says why.

    Attributes:
        transient: whether it may be tried again.
    """

    def __init__(self, text: str, *, transient: bool) -> None:
        super().__init__(text)
        self.transient = transient


class Line:
    """The requests over one connection.

    Args:
        client: the connection.
        timeout_s: of each question.
        place: of the schedd, for the workers' watch.
    """

    def __init__(self, client: Client, timeout_s: float, place: str) -> None:
        self.client = client
        self.used_s = time.monotonic()
        self._timeout_s = timeout_s
        self._place = place

    def ask(self, message: Any, kind: str) -> Any:
        """The answer, which has to be of a kind."""
        touching(self._place)
        answer = self.client.ask(QUEUE, message, self._timeout_s)
        self.used_s = time.monotonic()
        if type(answer).__name__ != kind:
            raise ScheddFailed(f"the other schedd answered {type(message).__name__} with {type(answer).__name__}",
                               transient=True)
        return answer

    def jobs(self, run: str, numbers: Sequence[int], source: str = "queue") -> list[RemoteJob]:
        """The jobs of a run among some clusters, those in the queue or in the history."""
        if not numbers:
            return []
        asked = QueryJobs(source=source, ids=tuple((number, -1) for number in numbers), projection=PROJECTION,
                          limit=len(numbers))
        found = [read_job(text) for text in self.ask(asked, "JobsPage").ads]
        return [job for job in found if job is not None and job.run == run and job.cluster in numbers]

    def all_jobs(self, home: str) -> dict[str, tuple[RemoteJob, ...]]:
        """The jobs in its queue that were handed on from here, by their runs."""
        found: dict[str, list[RemoteJob]] = {}
        cursor, left = "", MOST_JOBS
        for _ in range(MOST_PAGES):
            page = self.ask(QueryJobs(constraint=question_for(home), projection=PROJECTION, cursor=cursor), "JobsPage")
            for job in map(read_job, page.ads):
                if job is not None:
                    found.setdefault(job.run, []).append(job)
            cursor, left = page.cursor, left - len(page.ads)
            if not cursor:
                return {run: tuple(jobs) for run, jobs in found.items()}
            if left < 0:
                break
        raise ScheddFailed("the other schedd does not come to the end of its queue", transient=True)

    def reserve(self) -> int:
        """A number for a new cluster."""
        number = self.ask(ReserveCluster(), "ClusterReserved").cluster_id
        if not 0 < number < 1 << 31:
            raise ScheddFailed(f"the other schedd gave {number} as the number of a cluster", transient=True)
        return int(number)

    def submit(self, number: int, ad: ClassAd) -> None:
        """Queue a job that waits for its input."""
        self.ask(SubmitPage(cluster_id=number, page=0, cluster_ad=ad.to_bytes(), procs=(b"",), first_proc=0, last=True,
                            spool=True), "Submitted")

    def spool(self, number: int, source: str, name: str) -> None:
        """Send an input file.

        Raises:
            OSError: it cannot be read.
        """
        with os.fdopen(open_plain(source), "rb") as stream:
            for chunk in chunks_of(stream, number, 0, name):
                self.ask(chunk, "Done")

    def let_go(self, number: int) -> None:
        """All input is there."""
        self.ask(FinishSpooling(cluster_id=number), "Done")

    def remove(self, numbers: Sequence[int], reason: str) -> None:
        """Have jobs out of the queue; one that has completed leaves as it is."""
        if numbers:
            self.ask(ActOnJobs(action=JobAction.REMOVE, ids=tuple((number, 0) for number in numbers), reason=reason),
                     "ActionResults")

    def files(self, number: int) -> tuple[tuple[str, int, int], ...]:
        """(name, size, mode) of what is in the job's spool."""
        found = self.ask(ListSpool(cluster_id=number, proc_id=0), "SpoolListing").files
        if len(found) > MOST_FILES:
            raise ScheddFailed(f"the other schedd names {len(found)} files of one job", transient=False)
        return found  # type: ignore[no-any-return]

    def fetch(self, number: int, name: str, size: int, write: Callable[[bytes], object]) -> None:
        """The bytes of a file of the job's spool, no more than ``size``."""
        done = 0
        while done < size:
            data = self.ask(ReadSpool(cluster_id=number, proc_id=0, path=name, offset=done), "SpoolBytes").data
            if not data or len(data) > size - done:
                raise ScheddFailed(f"{name} changed its size while it was fetched", transient=True)
            write(data)
            done += len(data)


class RemoteSchedd:
    """A schedd by its name and its pool.

    Args:
        config: says how pools are found, and what the user shows.
        name: of the schedd; pool: its central manager, or the name of a partner.
        timeout_s: of each question.
    """

    def __init__(self, config: Config, name: str, pool: str, timeout_s: float) -> None:
        self._config = config
        self._name = name
        self._pool = pool
        self._timeout_s = timeout_s
        self._place = f"/schedd of {pool.replace('/', ' ')} {name.replace('/', ' ')}/it"
        self._lock = threading.Lock()
        self._kept: list[Line] = []

    def call(self, work: Callable[[Line], T]) -> T:
        """Do something over a line.

        Raises:
            ScheddFailed: the schedd cannot be reached, refuses or does not keep to what was agreed.
            OSError: of ``work`` itself.
        """
        try:
            line = self._take_kept()
            if line is not None:
                try:
                    return self._use(line, work)
                except LinkLost:
                    self._drop_kept()
            return self._use(self._dial(), work)
        except RequestRefused as error:
            raise ScheddFailed(str(error), transient=error.code in ("busy", "unavailable", "internal")) from None
        except NotTrusted as error:
            raise ScheddFailed(str(error), transient=False) from None
        except WireError as error:
            raise ScheddFailed(str(error), transient=True) from None
        except (BadContact, BadNode) as error:
            raise ScheddFailed(str(error), transient=False) from None

    def _use(self, line: Line, work: Callable[[Line], T]) -> T:
        try:
            result = work(line)
        except (RequestRefused, OSError):
            self._keep(line)
            raise
        except BaseException:
            line.client.close()
            raise
        self._keep(line)
        return result

    def _take_kept(self) -> Line | None:
        with self._lock:
            while self._kept:
                line = self._kept.pop()
                if time.monotonic() - line.used_s < FRESH_S:
                    return line
                line.client.close()
        return None

    def _keep(self, line: Line) -> None:
        with self._lock:
            self._kept.append(line)

    def _drop_kept(self) -> None:
        """One was cut, so the others are."""
        with self._lock:
            kept, self._kept = self._kept, []
        for line in kept:
            line.client.close()

    def _dial(self) -> Line:
        touching(self._place)
        config = self._config
        node = collector_node(config, self._pool, may_be_partner=True)
        with connect(node, credentials(config, as_user=True)) as client:
            found = ads_of(client, AdKind.SCHEDD, schedd_constraint(self._name), ("Name", "MyAddress"))
        address = found[0].find("myaddress") if found else None
        if not isinstance(address, str):
            raise ScheddFailed(f"the pool {self._pool} knows no schedd {self._name}", transient=True)
        touching(self._place)
        return Line(connect_as_user(config, address), self._timeout_s, self._place)


