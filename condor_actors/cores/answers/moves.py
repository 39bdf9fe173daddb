"""What became of a job's runs: why it was moved, and why it does not get on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import attrs

from condor_actors.cores.answers.words import counted, listed, span_text

__all__ = ["RunEnd", "run_ends", "why_it_moves"]

FLAPPING = 3
"""So many runs that ended without an end of the job are told of."""
_BEGINS = re.compile(r"run (\d+) beg(?:ins|an)(?: on (.*))?\Z", re.DOTALL)
_ENDS = re.compile(r"run (\d+) ended: (.*)\Z", re.DOTALL)
_OUTCOMES = {"lost": "its machine was not heard of any more", "failed": "it could not be run there"}
"""What the schedd calls an end, where that says more than its reason."""


@attrs.frozen
class RunEnd:
    """A run that has ended.

    Attributes:
        began_s, ended_s: when; host: where; reason: why.
    """

    began_s: float
    ended_s: float
    host: str
    reason: str


def run_ends(lines: Sequence[tuple[float, str]]) -> list[RunEnd]:
    """The runs of a job's story that have ended."""
    begun: dict[str, tuple[float, str]] = {}
    found = []
    for when_s, text in lines:
        begins, ends = _BEGINS.match(text), _ENDS.match(text)
        if begins:
            begun[begins[1]] = when_s, begins[2] or ""
        elif ends and ends[1] in begun:
            began_s, host = begun.pop(ends[1])
            found.append(RunEnd(began_s, when_s, host, ends[2]))
    return found


def why_it_moves(ends: Sequence[RunEnd], now_s: float) -> str:
    """The paragraph about a job that has run several times; empty: it has not."""
    if len(ends) < FLAPPING:
        return ""
    reasons = Counter(_in_words(end.reason) for end in ends)
    since_s = now_s - ends[0].began_s
    said = listed([f"{counted(count, 'time')} \"{reason}\"" for reason, count in reasons.most_common(3)])
    ran_s = sum(end.ended_s - end.began_s for end in ends)
    longest = max(ends, key=lambda end: end.ended_s - end.began_s)
    out = (f"It has run {counted(len(ends), 'time')} in {span_text(since_s)}, {span_text(ran_s)} in all and "
           f"{span_text(longest.ended_s - longest.began_s)} at the longest ({longest.host}): {said}.")
    hosts = Counter(end.host.partition("@")[2] or end.host for end in ends)
    host, most = hosts.most_common(1)[0]
    if len(hosts) > 1 and most > len(ends) / 2:
        out += f" {most} of these runs were on {host}: a requirement that leaves it out may help."
    return out


def _in_words(reason: str) -> str:
    """Why a run ended, as the schedd has told it: ``outcome: reason``."""
    outcome, _, why = reason.partition("\n")[0].partition(": ")
    return _OUTCOMES.get(outcome) or (why or outcome).strip().rstrip(".")[:100]
