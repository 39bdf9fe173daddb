"""On which terms this pool lends a partner machines and sends it jobs, as text that everybody can keep and pass on."""

from __future__ import annotations

from condor_actors import records

__all__ = ["ALIKE", "BELOW", "FlockTerms"]

BELOW, ALIKE = "below", "alike"


@records.frozen(kw_only=True)
class FlockTerms:
    """What ``condor_flock limit`` sets for one partner; empty: no limit of that kind.

    Attributes:
        machines: expression over a slot's ad: which are lent.
        times: when they are lent (:class:`~condor_actors.cores.flock_terms.TimeWindows`).
        quota: how many cores (weight of slots) it has at most at once; negative: no limit.
        rank: ``below`` local jobs, which are served first and take machines back, or ``alike``, by priority alone.
        jobs: expression over a job's ad: which of its jobs are taken.
        users, refuse: patterns of its users that are admitted (none: all), and that are not.
        send_jobs: expression over a job's ad: which of our jobs go there.
        send_users, send_refuse: patterns of our submitters whose jobs go there (none: all), and whose do not.
    """

    machines: str = ""
    times: str = ""
    quota: float = -1.0
    rank: str = BELOW
    jobs: str = ""
    users: tuple[str, ...] = ()
    refuse: tuple[str, ...] = ()
    send_jobs: str = ""
    send_users: tuple[str, ...] = ()
    send_refuse: tuple[str, ...] = ()
