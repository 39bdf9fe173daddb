"""``Submit`` and ``SubmitResult``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

from condor_actors.api.description import Submit as Description
from condor_actors.api.schedd import Submitted
from condor_actors.compat.classad2 import ClassAd, wrapped
from condor_actors.compat.errors import as_theirs
from condor_actors.compat.htcondor2.enums import SubmitMethod
from condor_actors.compat.htcondor2.workflows import OPTIONS, description_of_dag
from condor_actors.submit import SubmitError

RESERVED_METHODS = 100


class Submit(MutableMapping[str, str]):
    """A submit description; see `condor_actors.api.description.Submit`.

    Args:
        input: its text, or its commands.
        queue: what stands behind the word ``queue``.
        kwargs: further commands.
    """

    def __init__(self, input: dict[str, Any] | str | None = None, queue: str | None = None,  # noqa: A002
                 **kwargs: str) -> None:
        if isinstance(input, dict):
            self._description = Description()
            for key, value in input.items():
                self._take(key, value)
        elif isinstance(input, str):
            try:
                self._description = Description(input)
            except SubmitError as error:
                raise ValueError(str(error)) from error
        elif input is None:
            self._description = Description()
        else:
            raise TypeError("input must be a dictionary mapping string to strings, a string, or None")
        self._description.queue = self._description.queue  # of several statements the first counts
        self.update(kwargs)
        if queue is not None:
            if not isinstance(queue, str):
                raise TypeError("queue must be a string")
            self.setQArgs(queue)

    def _take(self, key: Any, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError("key must be a string")
        if key.casefold() == "queue":
            raise ValueError("the queue statement can not be specified in a dictionary")
        if isinstance(value, ClassAd):
            value = repr(value)
        elif not isinstance(value, (str, int, float, Path)):
            raise TypeError("value must be a string")
        self._description[key] = str(value)

    def __getitem__(self, key: str) -> str:
        if not isinstance(key, str):
            raise TypeError("key must be a string")
        return self._description[key]

    def __setitem__(self, key: str, value: str) -> None:
        if not isinstance(key, str):
            raise TypeError("key must be a string")
        if not isinstance(value, str):
            raise TypeError("value must be a string")
        self._description[key] = value

    def __delitem__(self, key: str) -> None:
        raise NotImplementedError("a command is not removed; an empty value has no effect")

    def __iter__(self) -> Iterator[str]:
        return iter(self._description)

    def __len__(self) -> int:
        return len(self._description)

    def __str__(self) -> str:
        lines = [f"{name} = {value}\n" for name, value in self.items()]
        return "".join([*lines, f"queue {self.getQArgs()}".rstrip(), "\n"])

    def __repr__(self) -> str:
        return f"Submit({self})"

    def expand(self, attr: str) -> str:
        """The value of a command, with its macros replaced."""
        if not isinstance(attr, str):
            raise TypeError("attr must be a string")
        with as_theirs():
            return self._description.expand(attr)

    def jobs(self, count: int = 0, itemdata: Any = None, clusterid: int = 1, procid: int = 0, qdate: int = 0,
             owner: str = "") -> Iterator[ClassAd]:
        """The ads that a submission would make; the original has it not implemented."""
        with as_theirs():
            for ad in self._description.jobs(count=count or None, items=itemdata):
                made = wrapped(ad)
                made["ClusterId"], made["ProcId"] = clusterid, ad.get_int("ProcId") + procid
                if qdate:
                    made["QDate"] = qdate
                if owner:
                    made["Owner"] = owner
                yield made

    procs = jobs

    def getQArgs(self) -> str:
        """What stands behind the word ``queue``."""
        return self._description.queue

    def setQArgs(self, args: str) -> None:
        """Set what stands behind the word ``queue``."""
        if not isinstance(args, str):
            raise TypeError("args must be a string")
        self._description.queue = args

    def itemdata(self, qargs: str | None = None) -> Iterator[dict[str, str]] | None:
        """The items of a queue statement; None: it has none."""
        if qargs is not None and qargs.casefold().startswith("queue "):
            qargs = qargs[len("queue "):]
        with as_theirs():
            found = self._description.itemdata(qargs)
        return None if found is None else iter(found)

    def setSubmitMethod(self, method_value: SubmitMethod | int = -1, allow_reserved_values: bool = False) -> None:
        """Set JobSubmitMethod of the jobs; numbers below 100 have meanings of their own."""
        if 0 <= int(method_value) < RESERVED_METHODS and not allow_reserved_values:
            raise ValueError(
                "Submit method value must be 100 or greater, or allowed_reserved_values must be True.")
        self._description.method = int(method_value)

    def getSubmitMethod(self) -> int:
        """JobSubmitMethod of the jobs."""
        return self._description.method

    @staticmethod
    def from_dag(filename: str, options: dict[str, int | bool | str] = {}) -> Submit:  # noqa: B006 - as the original's
        """The job that runs a workflow, as condor_submit_dag would submit it.

        Args:
            filename: of the DAG file.
            options: as :meth:`from_dag_options` prints them.
        """
        return Submit(description_of_dag(filename, options))

    @staticmethod
    def from_dag_options() -> None:
        """Print the options of :meth:`from_dag`, what each takes, and the flag of condor_submit_dag for it."""
        for name, (flag, takes) in OPTIONS.items():
            sys.stdout.write(f"{name:<21} {takes:<5} -{flag}\n")

    def issue_credentials(self) -> str | None:
        """Nothing to issue: descriptions that ask for credentials are refused when they are submitted."""
        return None


def description_of(submit: Submit) -> Description:
    """What is behind a `Submit`."""
    return submit._description


class SubmitResult:
    """What a submission made."""

    def __init__(self, clusterID: int, procID: int, num_procs: int, clusterAd: ClassAd,
                 spooled_proc_ads: Submitted | None) -> None:
        self._cluster = clusterID
        self._first_proc = procID
        self._num_procs = num_procs
        self._clusterad = clusterAd
        self.submitted = spooled_proc_ads

    def cluster(self) -> int:
        """The number of the cluster."""
        return self._cluster

    def clusterad(self) -> ClassAd:
        """What all its jobs have in common."""
        return self._clusterad

    def first_proc(self) -> int:
        """The number of the first job."""
        return self._first_proc

    def num_procs(self) -> int:
        """How many jobs."""
        return self._num_procs

    def __str__(self) -> str:
        return f"Submitted {self._num_procs} jobs into cluster {self._cluster},{self._first_proc} :\n{self._clusterad}"

    def __repr__(self) -> str:
        return (f"SubmitResult(cluster={self._cluster}, first_proc={self._first_proc}, num_procs={self._num_procs}, "
                f"clusterad={self._clusterad})")

    def __int__(self) -> int:
        return self._cluster
