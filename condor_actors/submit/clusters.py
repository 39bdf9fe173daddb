"""A cluster of jobs as it is sent: the text of the cluster ad and, per job, the text of what differs.

The cluster ad is the first job's ad without what belongs to one job alone; so a job that is like the first has an
empty text, and ten thousand such jobs are ten thousand references to one empty byte string.
"""

from __future__ import annotations

from collections.abc import Sequence

from condor_actors import records
from condor_actors.submit.factory import repeated
from condor_actors.submit.itemdata import Itemdata
from condor_actors.submit.maker import Attributes, Maker, same, value_text

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any

_PER_JOB = ("procid",)


@records.define
class Cluster:
    """A cluster under construction, complete when the description has been read.

    Attributes:
        cluster_id: its number.
        attributes: the cluster ad, that of the first job; ``ad``: its text.
        is_factory: whether the schedd makes the jobs as they are needed.
        procs: per job, the ad text of what differs from the cluster ad; its place is its ProcId.
    """

    cluster_id: int
    attributes: Attributes = records.Factory(dict)
    procs: Sequence[bytes] = records.Factory(list)
    is_factory: bool = False
    ad: bytes = b""

    def add_first(self, made: Attributes) -> bytes:
        """Add a job that was made whole; the very first one also becomes the cluster ad.

        Returns:
            the text of what differs.
        """
        if not self.procs:
            self.attributes = {key: pair for key, pair in made.items() if key not in _PER_JOB}
            self.attributes["clusterid"] = ("ClusterId", self.cluster_id)
            self.ad = b"".join(_line(name, value) for name, value in self.attributes.values())
        text = b"".join(self._differences(made)) + b"".join(
            _line(name, None) for key, (name, _) in self.attributes.items() if key not in made and key != "clusterid"
        )
        self._add(text)
        return text

    def _add(self, text: bytes) -> None:
        if not isinstance(self.procs, list):
            self.procs = list(self.procs)
        self.procs.append(text)

    def add_next(self, remade: Attributes, first: bytes) -> None:
        """Add a job of which only these attributes were made again.

        Args:
            first: the text of the attributes of the statement's first job that are not made again.
        """
        self._add(first + self.next_text(remade))

    def next_text(self, remade: Attributes) -> bytes:
        """What differs of a job, of the attributes that were made again."""
        return b"".join(self._differences(remade))

    def fixed_text(self, made: Attributes, remade: frozenset[str]) -> bytes:
        """The differences of a job's ad that the jobs after it share."""
        kept = {key: pair for key, pair in made.items() if key not in remade}
        lost = [
            _line(name, None)
            for key, (name, _) in self.attributes.items()
            if key not in made and key not in remade and key != "clusterid"
        ]
        return b"".join(self._differences(kept)) + b"".join(lost)

    def _differences(self, made: Attributes) -> list[bytes]:
        lines = []
        common = self.attributes
        for key, (name, value) in made.items():
            known = common.get(key)
            if known is None:
                if value is not None and key not in _PER_JOB:
                    lines.append(_line(name, value))
            elif not same(known[1], value):
                lines.append(_line(known[0], value))
        return lines


def _line(name: str, value: Any) -> bytes:
    return f"{name} = {value_text(value)}\n".encode("utf-8", "surrogateescape")


def queue_jobs(cluster: Cluster, maker: Maker, rows: Itemdata) -> None:
    """Make all jobs of one queue statement into a cluster.

    Args:
        rows: sets the live names for each job; see `Itemdata`.
    """
    first = b""
    fresh = True
    for _ in rows.each(len(cluster.procs)):
        if not fresh:
            remade = maker.next_job() if not maker.unchanging else {}
            if remade is not None:
                cluster.add_next(remade, first)
                continue
        made = maker.begin(rows.varying)
        cluster.add_first(made)
        first = cluster.fixed_text(made, maker.remade)
        fresh = False
        if cluster.is_factory and len(cluster.procs) == 1:
            found = repeated(rows, lambda: _next_text(cluster, maker, first), cluster.ad,  # noqa: B023
                             maker.context.warnings)
            if found is not None:
                cluster.procs = found
                break
            rows.place(0, 0)


def _next_text(cluster: Cluster, maker: Maker, first: bytes) -> bytes | None:
    remade = maker.next_job() if not maker.unchanging else {}
    return None if remade is None else first + cluster.next_text(remade)
