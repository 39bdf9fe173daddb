"""`Collector`: what the pool knows of its machines, daemons and submitters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from condor_actors.api.daemons import met
from condor_actors.api.errors import CondorError, as_condor_errors
from condor_actors.api.job_names import constraint_text
from condor_actors.api.settings import config
from condor_actors.classads import ClassAd, Expr, quote
from condor_actors.messages.advertise import AdKind, UpdateAd
from condor_actors.tools.lib import contact

LOCATION = ("Name", "Machine", "MyAddress", "MyType", "CondorVersion", "CondorPlatform")


class Collector:
    """The collector of this machine's pool, or another pool's.

    Args:
        pool: the host of a central manager, perhaps with a port; empty: COLLECTOR_HOST.
    """

    def __init__(self, pool: str = "") -> None:
        self._config = config()
        self.pool = pool

    def __repr__(self) -> str:
        return f"Collector({self.pool!r})"

    def query(self, kind: AdKind | str = AdKind.SLOT, constraint: str | Expr | None = None,
              projection: Sequence[str] = ()) -> list[ClassAd]:
        """Ads of one kind.

        Args:
            kind: ``Machine`` (slots), ``Scheduler``, ``Submitter``, ``DaemonMaster``, ``Negotiator``, ``Collector``,
                ``StartDaemon``, ``Accounting`` or ``Generic``.
            constraint: over these ads; None: all.
            projection: the attributes wanted; empty: all.

        Raises:
            ClassAdSyntaxError: the constraint is none.
            CondorError: the collector cannot be asked.
        """
        with as_condor_errors():
            found = contact.query(self._config, AdKind(kind), constraint_text(constraint), tuple(projection),
                                  pool=self.pool)  # fmt: skip
        for ad in found:
            if "MyAddress" in ad:
                met(ad.get_str("MyAddress"), self._config)
        return found

    def locate(self, kind: AdKind | str, name: str = "") -> ClassAd:
        """Where a daemon is: an ad with Name, Machine, MyAddress and CondorVersion.

        Args:
            kind: as for `query`.
            name: its name, or its host's; empty: that of this machine, else the pool's first.

        Raises:
            CondorError: there is none.
        """
        kind = AdKind(kind)
        host = quote(name or self._config.full_hostname)
        found = self.query(kind, f"Name =?= {host} || Machine =?= {host} || "
                                 f'regexp(strcat("^", {host}, "\\\\."), Name)', LOCATION)
        if not found and not name:
            found = self.query(kind, None, LOCATION)
        if not found:
            raise CondorError(f"the pool has no {kind.value} {name}".rstrip())
        return found[0]

    def advertise(self, ads: Iterable[ClassAd], kind: AdKind | str = AdKind.GENERIC, *, lifetime_s: int = 900) -> None:
        """Put ads into the collector; only daemons' and administrators' identities may.

        Args:
            ads: each with a ``Name`` of its own.
            kind: among which ads.
            lifetime_s: when they expire, unless told again.

        Raises:
            Refused: this user may not.
        """
        from condor_actors.messages.admin import Ping

        with as_condor_errors(), contact.collector(self._config, pool=self.pool) as client:
            for ad in ads:
                client.tell(contact.COLLECTOR, UpdateAd(ad_kind=AdKind(kind), ad=ad.to_bytes(), lifetime_s=lifetime_s))
            client.ask(contact.ADMIN, Ping())  # it has read what came before
