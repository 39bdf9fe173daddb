"""Which other pools the jobs of a schedd may go to: the administrator's lists, and what a job says itself.

Theory: FLOCK_TO is what the administrator permits: no job goes to a pool that it does not name.  FLOCK_COLLECTOR_HOSTS
are those of them that jobs are offered to by default, all of FLOCK_TO unless it is set.  A job adds others of FLOCK_TO
to these by the attribute ``FlockTo``, a list of pools.  With FLOCK_BY_DEFAULT = false a job goes only where it says,
and the word ``default`` in its list stands for the default pools.

``FlockTo`` is written by the owner, so it is a literal text of bounded length or counts for nothing: an expression
would be evaluated for every job of every negotiation.

**Source**: HTCondor's manual, "FLOCK_COLLECTOR_HOSTS" and "MIN_FLOCK_LEVEL"; its schedd, for ``FlockTo``.
"""

from __future__ import annotations

from functools import lru_cache

from condor_actors import records
from condor_actors.config.settings import record_setting
from condor_actors.patterns import late

__all__ = ["DEFAULT", "FlockLists", "list_problem", "named_pools"]

DEFAULT = "default"
"""In a job's list: the pools that jobs are offered to by default."""
MOST_CHARACTERS, MOST_POOLS = 2_000, 32
"""The most that a job's list may have."""
_BETWEEN = late(r"[\s,]+")


@records.frozen
class FlockLists:
    """What is configured.

    Attributes:
        permitted: FLOCK_TO: names of partners, or hosts of their central managers, in the order of asking.
        default: FLOCK_COLLECTOR_HOSTS, likewise; those of them that FLOCK_TO does not name count for nothing.
        is_default: FLOCK_BY_DEFAULT: whether jobs that say nothing go to the default pools.
        least: MIN_FLOCK_LEVEL: so many of the default pools are offered jobs from the beginning.
        step: FLOCK_INCREMENT: so many pools more at a time.
    """

    permitted: tuple[str, ...] = ()
    default: tuple[str, ...] = records.field(default=records.Factory(lambda self: self.permitted, takes_self=True))
    is_default: bool = record_setting("FLOCK_BY_DEFAULT")
    least: int = record_setting("MIN_FLOCK_LEVEL")
    step: int = record_setting("FLOCK_INCREMENT")


def named_pools(value: object) -> frozenset[str]:
    """The words of a job's ``FlockTo``, in small letters; none where it is no list that counts."""
    return _words(value) if isinstance(value, str) else frozenset()


@lru_cache(maxsize=1_000)
def _words(text: str) -> frozenset[str]:
    words = _split(text)
    return frozenset() if _too_long(text, words) else frozenset(words)


def _split(text: str) -> list[str]:
    if len(text) > MOST_CHARACTERS:
        return []
    return [word for word in _BETWEEN.split(text.lower()) if word]


def _too_long(text: str, words: list[str]) -> bool:
    return len(text) > MOST_CHARACTERS or len(words) > MOST_POOLS


def list_problem(value: object) -> str:
    """Why a value of ``FlockTo`` counts for nothing, a clause; empty: it is a list of pools."""
    if not isinstance(value, str):
        return "it is not a text: a list of pools is written in quotes, and no expression"
    if _too_long(value, _split(value)):
        return f"a list has at most {MOST_POOLS} pools and {MOST_CHARACTERS} characters"
    return ""
