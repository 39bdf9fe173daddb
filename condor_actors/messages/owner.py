"""Owner: the person at a machine sees what the pool does there, and can stop it for a time."""

from __future__ import annotations

from typing import ClassVar

from condor_actors import records
from condor_actors.messages.codec import message


@message
@records.frozen(kw_only=True)
class QueryOwner:
    """What do the sensors say, what runs here, is the pool paused?  Answer: :class:`OwnerView`."""

    KIND: ClassVar[str] = "condor.owner.QueryOwner"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"


@message
@records.frozen(kw_only=True)
class OwnerView:
    """Answer to :class:`QueryOwner`: one ad with ``Sensors`` and ``Slots`` as lists of records.

    ``may_pause`` says whether the caller could pause the machine.
    """

    KIND: ClassVar[str] = "condor.owner.OwnerView"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    ad: bytes
    may_pause: bool = False


@message
@records.frozen(kw_only=True)
class PauseMachine:
    """condor_owner pause: nothing of the pool runs here for ``duration_s`` seconds.  Answer: Done or Refused.

    ``how``: ``suspend`` (jobs stay, frozen), ``vacate`` (they go, and may save their work), ``kill`` (they go at once),
    or empty: frozen for a short pause, vacated for a long one.
    """

    KIND: ClassVar[str] = "condor.owner.PauseMachine"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    duration_s: float
    how: str = ""


@message
@records.frozen(kw_only=True)
class ResumeMachine:
    """condor_owner resume: the pause is over.  Answer: Done or Refused."""

    KIND: ClassVar[str] = "condor.owner.ResumeMachine"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"
