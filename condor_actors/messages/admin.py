"""Admin: what every daemon answers, and what the master does for administrators."""

from __future__ import annotations

from typing import ClassVar, Final

from condor_actors import records
from condor_actors.messages.codec import message


@message
@records.frozen(kw_only=True)
class Ping:
    """Are you there, who are you, and who am I to you?  Answer: :class:`Pong`.  Sent to the actor ``admin``."""

    KIND: ClassVar[str] = "condor.admin.Ping"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"


@records.frozen(kw_only=True)
class LevelDecision:
    """Whether the caller has a level, by which rule, and what would change a no (empty: nothing to change)."""

    level: str
    allowed: bool
    rule: str
    remedy: str = ""


@message
@records.frozen(kw_only=True)
class Pong:
    """Answer to :class:`Ping`: the daemon, its ad, and the caller's identity and levels as the daemon sees them."""

    KIND: ClassVar[str] = "condor.admin.Pong"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    daemon: str
    version: str
    pid: int
    started_s: float
    identity: str
    method: str
    levels: tuple[str, ...]
    ad: bytes = b""
    decisions: tuple[LevelDecision, ...] = ()


@message
@records.frozen(kw_only=True)
class QueryStatistics:
    """What does this daemon do all day?  Answer: :class:`DaemonStatistics`.

    ``metrics`` True: as Prometheus reads it, instead of as an ad.
    """

    KIND: ClassVar[str] = "condor.admin.QueryStatistics"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "READ"

    metrics: bool = False


@message
@records.frozen(kw_only=True)
class DaemonStatistics:
    """Answer to :class:`QueryStatistics`: the daemon's ad with what its turns took, or a text for Prometheus."""

    KIND: ClassVar[str] = "condor.admin.DaemonStatistics"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    ad: bytes = b""
    metrics: str = ""


@message
@records.frozen(kw_only=True)
class Reconfigure:
    """Read the configuration again (condor_reconfig).  Answer: Done, or Refused(invalid) and nothing changed."""

    KIND: ClassVar[str] = "condor.admin.Reconfigure"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "ADMINISTRATOR"


@message
@records.frozen(kw_only=True)
class Shutdown:
    """Stop this daemon; ``how``: ``graceful`` (jobs may vacate), ``peaceful`` (jobs may finish) or ``fast``."""

    KIND: ClassVar[str] = "condor.admin.Shutdown"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "ADMINISTRATOR"

    how: str = "graceful"


@message
@records.frozen(kw_only=True)
class DaemonCommand:
    """To the master: ``command`` is ``on off restart reconfig``; ``daemons`` empty: all of the machine (off: but the
    master)."""

    KIND: ClassVar[str] = "condor.admin.DaemonCommand"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "ADMINISTRATOR"

    command: str
    daemons: tuple[str, ...] = ()
    how: str = "graceful"


EVERYTHING_SET: Final = "*"


@message
@records.frozen(kw_only=True)
class QueryConfig:
    """condor_config_val to a daemon: values of names.  Answer: :class:`ConfigValues`.

    The name ``*`` (`EVERYTHING_SET`) stands for every name that the daemon's files or environment set.
    """

    KIND: ClassVar[str] = "condor.admin.QueryConfig"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "READ"

    names: tuple[str, ...]


@records.frozen(kw_only=True)
class ConfigValue:
    """One parameter as a daemon has it; ``where`` is ``file, line N``; ``defined`` False: nobody set it."""

    name: str
    value: str
    raw: str = ""
    where: str = ""
    defined: bool = True


@message
@records.frozen(kw_only=True)
class ConfigValues:
    """Answer to :class:`QueryConfig`; sensitive values are not among them."""

    KIND: ClassVar[str] = "condor.admin.ConfigValues"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    values: tuple[ConfigValue, ...]


@message
@records.frozen(kw_only=True)
class SetConfig:
    """condor_config_val -set / -rset: persistent or until restart; applied by the next Reconfigure."""

    KIND: ClassVar[str] = "condor.admin.SetConfig"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CONFIG"

    name: str
    value: str | None
    persistent: bool = True


@message
@records.frozen(kw_only=True)
class VacateSlots:
    """condor_vacate: startd, vacate the claims of these slots (empty: all).

    ``fast``: kill what runs; ``finish``: let it finish, but have the claims take nothing new; ``reason``: for people.
    """

    KIND: ClassVar[str] = "condor.admin.VacateSlots"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "OWNER"

    slots: tuple[str, ...] = ()
    fast: bool = False
    finish: bool = False
    reason: str = ""


@message
@records.frozen(kw_only=True)
class Drain:
    """condor_drain: startd, take no new claims and let what runs go.  Answer: Done(text=request id) or Refused.

    Attributes:
        how: ``graceful`` (retire), ``quick`` (vacate), ``fast`` (kill).
        on_completion: ``nothing resume exit restart``.
        check_expr, start_expr, reason: as in condor_drain.
    """

    KIND: ClassVar[str] = "condor.admin.Drain"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "ADMINISTRATOR"

    how: str = "graceful"
    on_completion: str = "nothing"
    check_expr: str = ""
    start_expr: str = ""
    reason: str = ""


@message
@records.frozen(kw_only=True)
class CancelDrain:
    """condor_drain -cancel [-request-id]."""

    KIND: ClassVar[str] = "condor.admin.CancelDrain"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "ADMINISTRATOR"

    request_id: str = ""


@message
@records.frozen(kw_only=True)
class DaemonStarted:
    """A daemon to its master (UNIX socket): I am up and listening here."""

    KIND: ClassVar[str] = "condor.admin.DaemonStarted"
    VERSION: ClassVar[int] = 1

    daemon: str
    pid: int
    address: str


@message
@records.frozen(kw_only=True)
class IdleReading:
    """kbdd to startd: seconds since the last input at a console or X display; ``source`` names it.

    ``known`` False: the sensor cannot read, and ``text`` says why.
    """

    KIND: ClassVar[str] = "condor.admin.IdleReading"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    source: str
    idle_s: float
    known: bool = True
    text: str = ""
