"""Watch: a client follows a queue, or reads the story of one job.

These answers hold only what a stranger may see, for every client: they are made to be shown to others.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from condor_actors.messages.codec import message


@message
@attrs.frozen(kw_only=True)
class QueryChanges:
    """What has changed in the queue since I last asked?  Answer: :class:`Changes`.

    Attributes:
        since: ``token`` of the answer before; empty: begin with all jobs.
        projection: attributes wanted, at least one.
    """

    KIND: ClassVar[str] = "condor.watch.QueryChanges"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "READ"

    since: str = ""
    projection: tuple[str, ...] = attrs.field(validator=attrs.validators.min_len(1))


@message
@attrs.frozen(kw_only=True)
class Changes:
    """Jobs that are new or have changed, and those that have left.

    Attributes:
        token: what to ask with next time.
        ads: of the jobs, with the attributes asked for, and ClusterId and ProcId.
        gone: (cluster, proc), proc -1 for a whole cluster.
        begins: forget what you had; all jobs follow, page by page.
        more: ask again at once, this was only a page.
    """

    KIND: ClassVar[str] = "condor.watch.Changes"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    token: str
    ads: tuple[bytes, ...] = ()
    gone: tuple[tuple[int, int], ...] = ()
    begins: bool = False
    more: bool = False


@message
@attrs.frozen(kw_only=True)
class QueryStory:
    """What became of a job?  Answer: :class:`Story`, or Refused (``not-found``)."""

    KIND: ClassVar[str] = "condor.watch.QueryStory"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "READ"

    cluster: int
    proc: int


@message
@attrs.frozen(kw_only=True)
class Story:
    """What became of a job, as far as its ad and the schedd's memory tell.

    Attributes:
        ad: without what a stranger may not see.
        lines: (seconds since 1970, what), oldest first.
        has_left: the job is in the history.
    """

    KIND: ClassVar[str] = "condor.watch.Story"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    ad: bytes
    lines: tuple[tuple[float, str], ...]
    has_left: bool = False
