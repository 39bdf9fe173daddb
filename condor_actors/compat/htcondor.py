"""``htcondor``: :mod:`.htcondor2` and what only the older module of that name had, for programs that still use it.

Theory: the older module made jobs inside a transaction of the schedd's queue, and said the cluster's number before its
end.  Here a submission is whole when its number is known: jobs that are queued in a block are submitted at once, and
a block that fails removes what it has submitted.  There is one kind of exception, under each name that had one of its
own, so that whatever a program catches it catches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any

from condor_actors.compat import htcondor2
from condor_actors.compat.classad2 import ClassAd
from condor_actors.compat.htcondor2 import *  # noqa: F403 - every name, by design
from condor_actors.compat.htcondor2 import HTCondorException, JobAction, QueryOpt, SubmitResult, TransactionFlag, ping
from condor_actors.compat.htcondor2 import __all__ as _names
from condor_actors.compat.htcondor2.schedd import Constraint

__version__ = htcondor2.version().split()[1]
HTCondorEnumError = HTCondorInternalError = HTCondorIOError = HTCondorLocateError = HTCondorException
HTCondorReplyError = HTCondorTypeError = HTCondorValueError = HTCondorException

__all__ = list(_names)
__all__ += [
    "HTCondorEnumError", "HTCondorIOError", "HTCondorInternalError", "HTCondorLocateError",
    "HTCondorReplyError", "HTCondorTypeError", "HTCondorValueError", "SecMan", "Transaction",
]  # fmt: skip


class Transaction:
    """What ``with schedd.transaction() as txn`` gives: where jobs are queued."""

    def __init__(self, schedd: Schedd) -> None:
        self._schedd = schedd
        self._clusters: list[int] = []

    def __enter__(self) -> Transaction:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if kind is not None and self._clusters:
            self._schedd.act(JobAction.Remove, [str(cluster) for cluster in self._clusters],
                             "the block that submitted it has failed")

    def submit(self, submit: Submit, count: int, itemdata: Iterable[Any] | None, spool: bool) -> SubmitResult:
        """Queue the jobs of a description."""
        done = self._schedd.submit(submit, count, spool, itemdata)
        self._clusters.append(done.cluster())
        return done


class Schedd(htcondor2.Schedd):  # type: ignore[no-redef]
    """A client of a schedd."""

    def transaction(self, flags: TransactionFlag = TransactionFlag.Default, continue_txn: bool = False) -> Transaction:
        """A block in which jobs are queued, by :meth:`Submit.queue`."""
        return Transaction(self)

    def xquery(self, constraint: Constraint = "True", projection: list[str] = [], limit: int = -1,  # noqa: B006
               opts: QueryOpt = QueryOpt.Default, name: str | None = None) -> Iterator[ClassAd]:
        """The ads of jobs in the queue, one after another."""
        return iter(self.query(constraint, projection, limit=limit, opts=opts))


class Submit(htcondor2.Submit):  # type: ignore[no-redef]
    """A submit description."""

    def queue(self, txn: Transaction, count: int = 0, ad_results: list[Any] | None = None) -> int:
        """Queue its jobs.

        Args:
            txn: of the schedd.
            count: how many; 0: as its queue statement says.
            ad_results: gets the ads of the jobs.

        Returns:
            the number of the cluster.
        """
        done = _checked(txn).submit(self, count, None, spool=False)
        if ad_results is not None:
            ad_results.extend(self.jobs(count, clusterid=done.cluster(), procid=done.first_proc()))
        return done.cluster()

    def queue_with_itemdata(self, txn: Transaction, count: int = 1, itemdata: Iterable[Any] | None = None,
                            spool: bool = False) -> SubmitResult:
        """Queue ``count`` jobs for each item."""
        return _checked(txn).submit(self, count, itemdata, spool)

    @staticmethod
    def from_dag(filename: str, options: dict[str, int | bool | str] = {}) -> Submit:  # noqa: B006
        """See :meth:`.htcondor2.Submit.from_dag`."""
        return Submit(str(htcondor2.Submit.from_dag(filename, options)))


def _checked(txn: Any) -> Transaction:
    if not isinstance(txn, Transaction):
        raise TypeError("txn must be what Schedd.transaction() gives")
    return txn


class SecMan:
    """Asks daemons who the caller is to them."""

    def ping(self, ad: ClassAd | str, command: str = "DC_NOP") -> ClassAd:
        """See :func:`.htcondor2.ping`."""
        return ping(ad, command)
