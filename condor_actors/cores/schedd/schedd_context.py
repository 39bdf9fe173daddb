"""What the parts of the schedd's core share: the queue, the effects of the turn, the time.

Theory: the core is several small ones around one queue.  Each adds to ``out`` while a turn runs; the whole core
(:mod:`condor_actors.cores.schedd.schedd_core`) returns ``out`` when the turn is over, the rows of changed jobs before
all that is sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

from condor_actors.classads import ClassAd
from condor_actors.cores.rights import is_person, is_super_user, is_user
from condor_actors.cores.schedd.autoclusters import Autoclusters, Rank, default_rank
from condor_actors.cores.schedd.job_attributes import JobSight
from condor_actors.cores.schedd.job_queue import JobQueue
from condor_actors.cores.schedd.queue_operations import QueueOperation
from condor_actors.cores.schedd.queued_job import Job
from condor_actors.cores.schedd.schedd_settings import ScheddSettings
from condor_actors.effects import Ask, Effect, Note, Persist, Reply, Send, SetTimer, job_note
from condor_actors.messages.envelope import Address, Delivery, Identity

__all__ = ["ScheddContext"]

STORY_LINES = 20_000


class ScheddContext:
    """What the parts of the schedd's core share: the queue, the settings, the time, and the effects of the turn.

    Attributes:
        settings: the configuration.
        random: the only source of chance.
        my_address: our public node, for ads; empty until we listen.
        queue, autoclusters: the jobs.
        delivery: what the turn handles.
        now_s: when the turn began.
        has_user: whether this machine has a user of that name; the daemon says.
        checkpoint_key: see :mod:`condor_actors.cores.checkpoint_seals`.
    """

    def __init__(self, settings: ScheddSettings, random: Random | None = None) -> None:
        self.settings = settings
        self.random = random or Random(1)
        self.my_address = ""
        self.queue = JobQueue()
        self.autoclusters = Autoclusters(self._rank())
        self.now_s = 0.0
        self.delivery: Delivery | None = None
        self.out: list[Effect] = []
        self.has_user: Callable[[str], bool] = lambda name: False
        self.checkpoint_key = b""
        self._stories: deque[tuple[float, str, str]] = deque(maxlen=STORY_LINES)

    def _rank(self) -> Callable[[Job], Rank]:
        expression = self.settings.priority
        if expression is None:
            return default_rank

        def by_expression(job: Job) -> Rank:
            value = expression.evaluate(job.ad, ClassAd({"UserPrio": job.ad.get_float("JobPrio", 0.0)}), self.now_s)
            return (-float(value),) if isinstance(value, (int, float)) else (0.0,)

        return by_expression

    @property
    def submit_host(self) -> str:
        """Where the jobs come from, as events have it."""
        return self.my_address or f"<{self.settings.machine}>"

    # ---- stories

    def remember(self, job: Job, kind: str, text: str, level: str = "info") -> None:
        """Something worth telling happened to a job: it is part of its story, and a line of the log.

        Args:
            job: to which.
            kind: what, as of :func:`~condor_actors.effects.job_note`.
            text: the same with its particulars.
            level: of the line.
        """
        self._stories.append((self.now_s, job.name, text))
        self.out.append(job_note(job.name, kind, text, level))

    def story(self, name: str) -> tuple[str, ...]:
        """What happened to a job lately, oldest first."""
        return tuple(f"{when_s:.3f} {text}" for when_s, job, text in self._stories if job == name)

    # ---- effects

    def tell(self, to: Address, message: Any) -> None:
        """Send one way."""
        self.out.append(Send(to, message))

    def ask(self, to: Address, message: Any, timeout_s: float, tag: Any) -> None:
        """Ask; the answer comes back as an event with the tag."""
        self.out.append(Ask(to, message, timeout_s, tag))

    def reply(self, message: Any, to: Delivery | None = None) -> None:
        """Answer what is being handled, or an earlier question."""
        self.out.append(Reply(message, to))

    def persist(self, operation: QueueOperation) -> None:
        """Save a row."""
        self.out.append(Persist(operation))

    def timer(self, key: Any, delay_s: float) -> None:
        """Have ``TimerFired(key)``."""
        self.out.append(SetTimer(key, delay_s))

    def note(self, text: str, level: str = "info", **fields: Any) -> None:
        """A line of the log."""
        self.out.append(Note(text, level, tuple(fields.items())))

    # ---- who may what

    def is_super(self, identity: Identity) -> bool:
        """Whether the caller may act on everybody's jobs."""
        return is_super_user(identity, self.settings.super_users)

    def may_touch(self, identity: Identity, owner: str) -> bool:
        """Whether the caller may act on a user's jobs."""
        if self.is_super(identity) or is_user(identity, owner, self.settings.uid_domain):
            return True
        return self.settings.trusts_everybody and is_person(identity)

    def charge_objection(self, identity: Identity, ad: ClassAd) -> str:
        """Why the caller may not have jobs charged as an ad's own attributes say; empty when he may."""
        if self.is_super(identity):
            return self.settings.charging.malformed(ad)
        return self.settings.charging.objection(identity.user, ad, self.has_user)

    def sight(self, identity: Identity) -> JobSight:
        """What the caller sees of jobs: all of his own."""
        return JobSight(self.settings.private, lambda owner: self.may_touch(identity, owner))

    def strangers_sight(self) -> JobSight:
        """What of jobs may be shown to anybody."""
        return JobSight(self.settings.private, lambda owner: False)
