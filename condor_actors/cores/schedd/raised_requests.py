"""A job that was ended because it used more than it had asked for may ask for more the next time, and need not be held.

======================================  ==================================================================
attributes of the job                   what it asks for next
======================================  ==================================================================
``RetryRequestMemory = { 2048, 8192 }``  the first of them that is more than what it asks for now
``NextRequestMemory``                   what the expression comes to, at most ``MaxRequestMemory``
======================================  ==================================================================

``RequestDisk`` likewise.  When there is no more to ask for, the job is held as any other.

**Source**: the manual, ``retry_request_memory``, ``retry_request_memory_increase``, ``retry_request_memory_max``.
"""

from __future__ import annotations

import math

from condor_actors.classads import ClassAd
from condor_actors.messages.codes import HoldCode, HoldSubCode

__all__ = ["larger_request"]

RESOURCES: dict[int, tuple[str, str, str, str]] = {
    HoldSubCode.MEMORY_EXCEEDED: ("RequestMemory", "RetryRequestMemory", "NextRequestMemory", "MaxRequestMemory"),
    HoldSubCode.DISK_EXCEEDED: ("RequestDisk", "RetryRequestDisk", "NextRequestDisk", "MaxRequestDisk"),
}
"""The request, the list, the rule and its bound."""
MOST = 1 << 62


def larger_request(job: ClassAd, code: int, subcode: int) -> tuple[str, int] | None:
    """What a job asks for after it was over a limit.

    Args:
        job: its ad.
        code, subcode: why it would be held.

    Returns:
        The attribute and its next value (MiB of memory, KiB of disk); None: the job is to be held.
    """
    names = RESOURCES.get(subcode)
    if code != HoldCode.JOB_OUT_OF_RESOURCES or names is None:
        return None
    attribute, retried, rule, bound = names
    now = _amount(job.evaluate(attribute))
    if now is None:
        return None
    listed = job.evaluate(retried)
    amounts = [_amount(each) for each in listed] if isinstance(listed, (list, tuple)) else [_amount(listed)]
    for amount in amounts:
        if amount is not None and amount > now:
            return attribute, amount
    following = _amount(job.evaluate(rule))
    if following is None:
        return None
    most = _amount(job.evaluate(bound))
    following = following if most is None else min(following, most)
    return (attribute, following) if following > now else None


def _amount(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return int(value) if 0 <= value < MOST else None
