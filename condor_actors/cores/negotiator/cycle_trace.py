"""What the last cycles decided about each request, kept so that "why is my job idle" has an answer.

Theory: one entry per submitter and autocluster, that of the last cycle that looked at it; entries older than the
number of cycles that are kept go.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from condor_actors.classads import ClassAd

__all__ = ["CycleTrace", "TraceEntry"]


@attrs.frozen(kw_only=True)
class TraceEntry:
    """What one cycle said to one request.

    Attributes:
        cycle, when_s: which cycle.
        submitter, schedd_name: whose request.
        autocluster, job_id: which; the job is the first of the autocluster.
        matched, unmatched: jobs that got a slot and that did not.
        reason: why the rest got none; causes: slots by cause.
    """

    cycle: int
    when_s: float
    submitter: str
    schedd_name: str
    autocluster: int
    job_id: str
    matched: int
    unmatched: int
    reason: str = ""
    causes: tuple[tuple[str, int], ...] = ()

    def ad(self) -> ClassAd:
        """The entry as the answer to ``QueryTrace``."""
        ad = ClassAd({
            "MyType": "NegotiationTrace", "Cycle": self.cycle, "CycleTime": int(self.when_s),
            "Submitter": self.submitter, "ScheddName": self.schedd_name, "AutoClusterId": self.autocluster,
            "JobId": self.job_id, "Matched": self.matched, "Unmatched": self.unmatched, "Reason": self.reason,
        })
        ad["Causes"] = [cause for cause, _ in self.causes]
        ad["CauseSlots"] = [count for _, count in self.causes]
        return ad


class CycleTrace:
    """Remembers why the last cycles matched or rejected each request.

    Args:
        kept: for how many cycles an entry is kept after the last that looked at its request.
    """

    def __init__(self, kept: int = 20) -> None:
        self.kept = kept
        self._entries: dict[tuple[str, str, int], TraceEntry] = {}

    def note(self, entry: TraceEntry) -> bool:
        """Keep what a cycle decided; whether that is news: a match, or another reason than in the cycle before."""
        key = (entry.submitter, entry.schedd_name, entry.autocluster)
        before = self._entries.pop(key, None)
        self._entries[key] = entry
        return entry.matched > 0 or before is None or (before.job_id, before.reason) != (entry.job_id, entry.reason)

    def forget_before(self, cycle: int) -> None:
        """Drop what is too old."""
        for key, entry in tuple(self._entries.items()):
            if entry.cycle > cycle - self.kept:
                break
            del self._entries[key]

    def find(self, submitter: str = "", job_id: str = "") -> Iterator[TraceEntry]:
        """The entries of a submitter (empty: all) and, when one has exactly that job, of it alone."""
        entries = [each for each in self._entries.values() if submitter in ("", each.submitter)]
        exact = [each for each in entries if each.job_id == job_id] if job_id else []
        return iter(exact or entries)
