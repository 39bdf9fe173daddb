"""`Negotiator`: who has which priority and usage, and what administrators set of it."""

from __future__ import annotations

from condor_actors.api.errors import as_condor_errors
from condor_actors.api.settings import config
from condor_actors.classads import ClassAd, quote
from condor_actors.messages.advertise import AdKind
from condor_actors.messages.negotiate import QueryPriorities, SetPriority
from condor_actors.tools.lib import contact

SETTINGS = ("priority", "factor", "usage", "begin", "last", "ceiling", "floor")
"""What an administrator sets of a submitter; usage in seconds, begin and last in seconds since 1970."""


class Negotiator:
    """The negotiator of this machine's pool, or another one's.

    Args:
        name: its name, or its host's.
        pool: the central manager to ask for it.
    """

    def __init__(self, name: str = "", *, pool: str = "") -> None:
        self._config = config()
        self.name = name
        self.pool = pool

    def __repr__(self) -> str:
        return f"Negotiator({self.name!r}, pool={self.pool!r})"

    def priorities(self) -> list[ClassAd]:
        """An ad for each submitter and group: Name, Priority, PriorityFactor, ResourcesUsed,
        WeightedAccumulatedUsage …

        Raises:
            CondorError: the negotiator cannot be asked.
        """
        ads: list[ClassAd] = []
        cursor = ""
        with as_condor_errors(), contact.negotiator(self._config, name=self.name, pool=self.pool) as client:
            while True:
                page = client.ask(contact.NEGOTIATOR, QueryPriorities(cursor=cursor))
                ads += [ClassAd.from_bytes(text) for text in page.ads]
                cursor = page.cursor
                if not cursor:
                    return ads

    def resources(self, submitter: str) -> list[ClassAd]:
        """The slots that a submitter has now: Name and EnteredCurrentState of each."""
        with as_condor_errors():
            return contact.query(
                self._config, AdKind.SLOT,
                f'State == "Claimed" && (AccountingGroup ?: RemoteUser) == {quote(submitter)}',
                ("Name", "EnteredCurrentState", "StartdIpAddr", "MyAddress"), pool=self.pool)  # fmt: skip

    def set(self, submitter: str, what: str, value: float) -> None:
        """Set something of a submitter.

        Args:
            submitter: ``user@domain``, or a group.
            what: one of `SETTINGS`.
            value: in the unit of that setting.

        Raises:
            ValueError: no such setting.
            Refused: this user is no administrator.
        """
        if what not in SETTINGS:
            raise ValueError(f"{what!r} is none of {', '.join(SETTINGS)}")
        self._tell(submitter, what, value)

    def reset(self, submitter: str) -> None:
        """Forget the usage of a submitter."""
        self._tell(submitter, "reset", 0.0)

    def reset_all(self) -> None:
        """Forget everybody's usage."""
        self._tell("", "reset-all", 0.0)

    def delete(self, submitter: str) -> None:
        """Forget a submitter."""
        self._tell(submitter, "delete", 0.0)

    def _tell(self, submitter: str, what: str, value: float) -> None:
        with as_condor_errors(), contact.negotiator(self._config, name=self.name, pool=self.pool) as client:
            client.ask(contact.NEGOTIATOR, SetPriority(submitter=submitter, what=what, value=float(value)))
