"""Questions to a startd about the jobs that ran on its machine, answered by a worker thread."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from condor_actors.config import Config
from condor_actors.cores.rights import is_central_manager, is_user
from condor_actors.cores.schedd.job_attributes import JobSight
from condor_actors.daemons.schedd.history import history_page
from condor_actors.daemons.starter.run_history import JOB
from condor_actors.messages.envelope import Identity
from condor_actors.messages.queue import JobsPage, QueryJobs
from condor_actors.store.record_file import RecordReader

__all__ = ["RunQuestions", "sight_of"]

WHOLE = JobSight(frozenset(), lambda owner: True)
"""Who sees a record sees all of it: a job's environment is not recorded."""


class RunQuestions:
    """Answers them.

    Args:
        config: of the startd; may be changed at any time.
    """

    def __init__(self, config: Config) -> None:
        self.config = config

    def answer(self, question: QueryJobs, sees: Callable[[str], bool]) -> Deferred[JobsPage]:
        """Fires with the next page, the newest first, or fails with a ``ValueError`` that says what is wrong with the
        question.

        Args:
            sees: whether the asker sees the records of an owner.
        """
        path, most = self.config.text("STARTD_HISTORY") or "", self.config.integer("HISTORY_HELPER_MAX_HISTORY")
        limit = question.limit if 0 < question.limit <= most else most
        return deferToThread(_page, path, attrs.evolve(question, limit=limit), sees)


def sight_of(identity: Identity, *, sees_all: bool) -> Callable[[str], bool]:
    """Whether an asker sees the records of an owner (``alice@dom``): a user of this pool her own, and no others; the
    central manager all."""
    everything = sees_all or is_central_manager(identity)

    def sees(owner: str) -> bool:
        user, _, domain = owner.rpartition("@")
        return everything or is_user(identity, user, domain)

    return sees


def _page(path: str, question: QueryJobs, sees: Callable[[str], bool]) -> JobsPage:
    if not path:
        raise ValueError("this machine keeps no records of jobs: its STARTD_HISTORY names no file")
    return history_page(RecordReader(path, (JOB,), sees), question, WHOLE)
