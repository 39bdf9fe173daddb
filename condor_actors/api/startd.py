"""`Startd`: what administrators ask of a machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from condor_actors.api.errors import as_condor_errors
from condor_actors.api.job_names import constraint_text
from condor_actors.api.settings import config
from condor_actors.classads import ClassAd, Expr
from condor_actors.messages.admin import CancelDrain, Drain, VacateSlots
from condor_actors.messages.queue import QueryJobs
from condor_actors.tools.lib.machine_commands import STARTD, startds


class Startd:
    """The startd of this machine, or another one's.

    Args:
        name: the machine's name.
        pool: the central manager to ask for it.
        address: ``<host:port>``, where it is known.
    """

    def __init__(self, name: str = "", *, pool: str = "", address: str = "") -> None:
        self._config = config()
        self.name = name
        self.pool = pool
        self.address = address

    def __repr__(self) -> str:
        return f"Startd({self.name!r}, pool={self.pool!r}, address={self.address!r})"

    def drain(self, how: str = "graceful", *, on_completion: str = "nothing", check: str = "", start: str = "",
              reason: str = "") -> str:
        """Take no new jobs, and let those that run go.

        Args:
            how: ``graceful`` (as their policy has it), ``quick`` (they may save their work) or ``fast``.
            on_completion: ``nothing``, ``resume``, ``exit`` or ``restart``.
            check: must be true of every slot, else nothing happens.
            start: the START expression meanwhile.
            reason: for people.

        Returns:
            the request's id, for `cancel_drain`.

        Raises:
            Refused: this user is no administrator, or the machine drains already.
        """
        return str(self._ask(Drain(how=how, on_completion=on_completion, check_expr=check, start_expr=start,
                                   reason=reason)).text)  # fmt: skip

    def cancel_drain(self, request_id: str = "") -> None:
        """End a drain request; empty: all."""
        self._ask(CancelDrain(request_id=request_id))

    def vacate(self, slots: Sequence[str] = (), *, fast: bool = False) -> None:
        """Have the jobs of slots leave.

        Args:
            slots: names of slots; empty: all of the machine.
            fast: they are not given time to save their work.
        """
        self._ask(VacateSlots(slots=tuple(slots), fast=fast))

    def history(self, constraint: str | Expr | None = None, projection: Sequence[str] = (), *, limit: int = 0,
                since: str | Expr = "") -> list[ClassAd]:
        """The runs that ended on the machine, the newest first; of others' jobs only for those who may pause it.

        Args:
            constraint: over the ads; None: all.
            projection: the attributes wanted; empty: all.
            limit: at most so many; 0: no limit.
            since: stop at this job (``12.3``), or where this expression is true.

        Raises:
            ClassAdSyntaxError: the constraint is none.
            CondorError: the startd cannot be asked, or keeps no records.
        """
        found: list[ClassAd] = []
        cursor = ""
        while True:
            page = self._ask(QueryJobs(
                source="startd", constraint=constraint_text(constraint), projection=tuple(projection),
                limit=limit - len(found) if limit else 0, since=str(since), cursor=cursor))
            found += map(ClassAd.from_bytes, page.ads)
            cursor = page.cursor
            if not cursor or (limit and len(found) >= limit):
                return found

    def _ask(self, message: Any) -> Any:
        answer = None
        names = (self.name,) if self.name else ()
        with as_condor_errors():
            for _, _, client in startds(self._config, names=names, address=self.address, pool=self.pool):
                with client:
                    answer = client.ask(STARTD, message)
        return answer
