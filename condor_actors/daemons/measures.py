"""What a daemon counts for those who watch over a pool, beside what all daemons have in common.

A daemon that has something to tell has ``measures()``; names and units are Prometheus's.  Users are a label only as far
as their number is bounded: those with the most jobs have their own, all others are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest

import attrs

__all__ = ["OTHERS", "Measure", "counted", "jobs_by_owner"]

OTHERS = "(others)"
"""The label of all users that have none of their own; no user is called that."""
MOST_USERS = 100


@attrs.frozen
class Measure:
    """A family of numbers.

    Attributes:
        name: as Prometheus has it, without ``_total``.
        doc: what it is.
        labels: names of labels.
        samples: their values, and the number.
        is_counter: whether it only grows.
    """

    name: str
    doc: str
    labels: tuple[str, ...]
    samples: tuple[tuple[tuple[str, ...], float], ...]
    is_counter: bool = False


def jobs_by_owner(counts: Mapping[str, Sequence[int]], states: Mapping[int, str]) -> Measure:
    """Jobs by owner and state; of the :data:`MOST_USERS` owners with the most jobs, and of all others.

    Args:
        counts: of each owner, jobs by status.
        states: the words for statuses.
    """
    named = set(nlargest(MOST_USERS, counts, key=lambda owner: (sum(counts[owner]), owner)))
    sums: dict[tuple[str, str], float] = {}
    for owner, row in counts.items():
        label = owner if owner in named else OTHERS
        for status, word in states.items():
            if row[status]:
                sums[label, word] = sums.get((label, word), 0.0) + row[status]
    return Measure("condor_jobs", "Jobs in the queue", ("owner", "state"), tuple(sorted(sums.items())))


def counted(name: str, doc: str, label: str, words: Iterable[str]) -> Measure:
    """How many there are of each word."""
    sums: dict[str, int] = {}
    for word in words:
        sums[word] = sums.get(word, 0) + 1
    return Measure(name, doc, (label,), tuple(((word,), float(count)) for word, count in sorted(sums.items())))
