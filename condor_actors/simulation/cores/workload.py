"""Who wants what: users, their batches of jobs, and how much work each job is.

Theory: the month of 1988 had one heavy user, who "often tried to execute as many remote jobs as there were
workstations" and kept more than thirty jobs in the system for long periods, and four light ones, who asked for little
now and then.  Jobs arrive in batches.

===== ===== ======== ======= ======== ===============================================================================
user  jobs  % jobs   hours   demand   (hours per job)
===== ===== ======== ======= ======== ===============================================================================
A     690   75       4278    6.2      heavy: campaigns of some days, a batch every few hours of them
B     138   15       345     2.5      light: a batch on a working day
C     39    4        101     2.6      light
D     40    4        28      0.7      light
E     11    1        19      1.7      light
all   918   100      4771    5.2
===== ===== ======== ======= ======== ===============================================================================

A job's demand is log-normal: its mean is the user's, ``sigma`` is 1.2 for the heavy user (median 0.49 of the mean) and
0.8 for the light ones (0.73).  Of all jobs together that gives a mean of 5.2 h and a median of 2.5 h, which is what the
paper says of its Figure 2 ("about 5 hours", "less than 3 hours").  Demands are at least :data:`LEAST_DEMAND_S`.  The
number of jobs per batch is geometric; batches begin at working hours; a heavy user's are gathered in campaigns.

The sizes of batches and the light users' sigma were chosen on months of the first few seeds, so that queues and waits
look as the paper describes them (they began as 5, 3, 4, 2 jobs and 1.2).

Source: "Condor - A Hunter of Idle Workstations" (1988), section 3, Table 1 and Figures 2, 3 and 7.  The digits of
Table 1 are illegible in our scan; the rows above are not read from it but as remembered from the printed paper.  They
add up to the 4771 hours and "nearly 1000 jobs" of its text, with which all it says about single users agrees.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

import attrs

__all__ = ["DAY_S", "HOUR_S", "MONTH_S", "PAPER_USERS", "Batch", "User", "batches_of", "demand_of", "month_of_work"]

HOUR_S = 3600.0
DAY_S = 86400.0
MONTH_S = 30 * DAY_S
WEEK_S = 7 * DAY_S
LEAST_DEMAND_S = 300.0
"""Nobody sends away what takes less."""
WORK_BEGINS_H, WORK_ENDS_H = 9.0, 20.0
CALLS_PER_JOB = 150.0
CAMPAIGN_S = 2.0 * DAY_S


@attrs.frozen(kw_only=True)
class User:
    """What one user does in a month.

    Attributes:
        name: as in the reports; heavy: whether the user counts as heavy.
        jobs: expected number per month of 30 days.
        demand_s: mean work per job; sigma: of the logarithm of it.
        batch: mean jobs per batch.
        campaigns: into how many spells of :data:`CAMPAIGN_S` the batches are gathered; 0: any working day.
    """

    name: str
    jobs: float
    demand_s: float
    batch: float
    heavy: bool = False
    sigma: float = 1.2
    campaigns: int = 0

    def times(self, factor: float) -> User:
        """The same user with so many times the jobs."""
        return attrs.evolve(self, jobs=self.jobs * factor, campaigns=round(self.campaigns * min(factor, 3.0)))


PAPER_USERS = (
    User(name="A", jobs=690, demand_s=6.2 * HOUR_S, batch=23.0, heavy=True, campaigns=5),
    User(name="B", jobs=138, demand_s=2.5 * HOUR_S, batch=3.0, sigma=0.8),
    User(name="C", jobs=39, demand_s=2.6 * HOUR_S, batch=2.0, sigma=0.8),
    User(name="D", jobs=40, demand_s=0.7 * HOUR_S, batch=2.0, sigma=0.8),
    User(name="E", jobs=11, demand_s=1.7 * HOUR_S, batch=1.5, sigma=0.8),
)


@attrs.frozen(kw_only=True)
class Batch:
    """Jobs that are submitted together.

    Attributes:
        when_s: since the beginning of the month; user: whose.
        demands_s: the work of each; calls: its remote system calls.
    """

    when_s: float
    user: str
    demands_s: tuple[float, ...]
    calls: tuple[int, ...]


def demand_of(user: User, random: Random) -> float:
    """The work of one job in seconds: log-normal with the user's mean."""
    mu = math.log(user.demand_s) - user.sigma * user.sigma / 2.0
    return max(LEAST_DEMAND_S, random.lognormvariate(mu, user.sigma))


def _size(mean: float, random: Random) -> int:
    """Geometric, at least one."""
    if mean <= 1.0:
        return 1
    return 1 + int(math.log(1.0 - random.random()) / math.log(1.0 - 1.0 / mean))


def _working_hour(day: int, random: Random) -> float:
    """A moment of a day's working hours, early ones more often."""
    hours = random.triangular(WORK_BEGINS_H, WORK_ENDS_H, 11.0)
    return day * DAY_S + hours * HOUR_S


def _is_working_day(day: int) -> bool:
    return day % 7 < 5


def _moments(user: User, count: int, length_s: float, random: Random) -> list[float]:
    """When the batches come."""
    days = [day for day in range(max(1, int(length_s / DAY_S))) if _is_working_day(day)] or [0]
    if not user.campaigns:
        return sorted(min(length_s - 1.0, _working_hour(random.choice(days), random)) for _ in range(count))
    spans = max(1, round(user.campaigns * length_s / MONTH_S))
    begins = [length_s * (number + 0.6 * random.random()) / spans for number in range(spans)]
    moments = []
    for number in range(count):
        begin_s = begins[number % spans]
        moment_s = begin_s + CAMPAIGN_S * (number // spans + random.random()) / max(1, count // spans)
        day = min(int(moment_s / DAY_S), int(length_s / DAY_S) - 1)
        moments.append(min(length_s - 1.0, _working_hour(max(0, day), random)))
    return sorted(moments)


def batches_of(user: User, length_s: float, random: Random) -> list[Batch]:
    """A user's batches in ``length_s`` seconds, the first of which is the Monday's midnight, in order of time.

    The number of jobs is the user's expected one for that long; what is random is how they are spread and how much
    work each is.
    """
    left = round(user.jobs * length_s / MONTH_S)
    sizes = []
    while left > 0:
        sizes.append(min(left, _size(user.batch, random)))
        left -= sizes[-1]
    batches = []
    for when_s, size in zip(_moments(user, len(sizes), length_s, random), sizes, strict=True):
        demands = tuple(demand_of(user, random) for _ in range(size))
        calls = tuple(int(random.expovariate(1.0 / CALLS_PER_JOB)) for _ in range(size))
        batches.append(Batch(when_s=when_s, user=user.name, demands_s=demands, calls=calls))
    return batches


def month_of_work(users: Sequence[User], seed: int, length_s: float = MONTH_S) -> list[Batch]:
    """Everybody's batches in order of time; the same for equal arguments.

    One user's batches do not depend on who else there is.
    """
    found: list[Batch] = []
    for user in users:
        found += batches_of(user, length_s, Random(f"work {seed} {user.name}"))
    return sorted(found, key=lambda batch: (batch.when_s, batch.user))
