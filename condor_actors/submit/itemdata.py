"""The live names of one queue statement: what each of its jobs sees in ``$(Process)``, ``$(Item)``, ``$(Step)`` …"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from condor_actors.submit.macros import Scope
from condor_actors.submit.queue_statement import split_row

_PER_JOB = ("process", "procid", "jobid")


class Itemdata:
    """Sets live names in a scope, job after job.

    Args:
        scope: where the names live.
        cluster_id: the cluster the jobs go into.
        variables: loop variables.
        items: (index in the whole list, item) after slicing; one nameless item when there is no list.
        count: jobs per item.
    """

    def __init__(
        self,
        scope: Scope,
        cluster_id: int,
        variables: Sequence[str],
        items: Sequence[tuple[int, str]],
        count: int,
    ) -> None:
        self._scope = scope
        self._cluster = str(cluster_id)
        self._names = [name.lower() for name in variables]
        self._items = items
        self._count = count
        self._optional = {name for name in ("jobid", "step", "row", "itemindex") if name not in scope.assigned}

    @property
    def varying(self) -> frozenset[str]:
        """The live names whose value changes within the statement."""
        names = set(_PER_JOB)
        if self._count > 1:
            names.add("step")
        if len(self._items) > 1:
            names.update(self._names, ("row", "itemindex"))
        return frozenset(names)

    @property
    def jobs_of_one_item(self) -> int:
        """How many jobs there are, when they have one item in common; else 0."""
        return self._count if len(self._items) == 1 else 0

    def place(self, proc: int, step: int) -> None:
        """Set the numbers of a job."""
        live = self._scope.live
        live["process"] = live["procid"] = text = str(proc)
        self._set("jobid", f"{self._cluster}.{text}")
        self._set("step", str(step))

    def each(self, first_proc: int) -> Iterator[int]:
        """Set the names for each job in turn; yields its ProcId."""
        live = self._scope.live
        live["cluster"] = live["clusterid"] = self._cluster
        if "joblistid" not in self._scope.assigned:
            live["joblistid"] = self._cluster
        proc = first_proc
        for index, item in self._items:
            for name, value in zip(self._names, split_row(item, len(self._names)), strict=False):
                live[name] = value
            self._set("row", str(index))
            self._set("itemindex", str(index))
            for step in range(self._count):
                self.place(proc, step)
                yield proc
                proc += 1
        for name in self._names:
            live.pop(name, None)

    def _set(self, name: str, value: str) -> None:
        if name in self._optional:
            self._scope.live[name] = value
