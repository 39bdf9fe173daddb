"""The simulated and the real pool agree: the same configuration, submissions and owner give the same waits (5 %).

The pool of 1988 in scaled time (a second is a minute), four slots, two of which have an owner.  The real one has
processes, sockets, disks and a console device that someone types at; the simulated one has the cores that decide,
which read the real pool's own configuration.  Both get the owner's visits and the jobs of :data:`VISITS` and
:data:`JOBS`; a job prefers the slots without owner, so both choose alike.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

from condor_actors.simulation.cores.pool import CorePool
from condor_actors.simulation.cores.whatif import settings_of
from condor_actors.simulation.report.recorder import Recorder
from tests.pool_fixture import PersonalPool, fresh_folder

pytestmark = pytest.mark.quiet

SLOTS, OWNED = 4, 2
POLL_S = 0.5
CONFIG = """
CHARGE_ALLOW_USERS = *=*
POLLING_INTERVAL = {poll}
NEGOTIATOR_INTERVAL = 2
NEGOTIATOR_MIN_INTERVAL = 2
UP_DOWN_INTERVAL = 2
PRIORITY_POLICY = UP_DOWN
PREEMPTION_REQUIREMENTS = false
JOB_START_COUNT = 1
JOB_START_DELAY = 2
CLAIM_WORKLIFE = 20
CONSOLE_DEVICES = ..{device}
SLOTS_CONNECTED_TO_CONSOLE = {owned}
SLOTS_CONNECTED_TO_KEYBOARD = 0
START = ConsoleIdle =?= undefined || ConsoleIdle > 2
IS_OWNER = ConsoleIdle =!= undefined && ConsoleIdle < 2
WANT_SUSPEND = True
SUSPEND = ConsoleIdle < 1
CONTINUE = ConsoleIdle > 2
PREEMPT = Activity == "Suspended" && (time() - EnteredCurrentActivity) >= 10
WANT_VACATE = True
KILL = False
MACHINEMAXVACATETIME = 5
"""
PROGRAM = """#!/bin/sh
# works for $1 hundredths of a second; the time in which it is stopped does not count
stamp() { read -r up rest < /proc/uptime; now=${up%.*}${up#*.}; }
worked=0; stamp; last=$now
while [ $worked -lt $1 ]; do
    sleep 0.1; stamp; passed=$((now - last)); last=$now
    [ $passed -lt 100 ] && worked=$((worked + passed))
done
date +%s.%N
"""


@attrs.frozen
class Work:
    """Jobs submitted together: when, whose, and the seconds of work of each."""

    when_s: float
    user: str
    demands_s: tuple[float, ...]


# Where two slots come free within a second, jobs may change places; so sums are compared, not single waits.
JOBS = (Work(0.0, "heavy", (15.0, 26.0, 25.0, 12.0, 19.0, 27.0, 23.0)), Work(20.0, "light", (28.0, 34.0)),
        Work(63.0, "light", (10.0,)), Work(83.0, "heavy", (8.0, 29.0)), Work(107.0, "light", (16.0,)))
VISITS = ((15.0, 17.0), (36.0, 38.0), (57.0, 81.0), (96.0, 115.0), (135.0, 153.0))
LIGHT_TOLERANCE_S = 3.5
"""Two seconds from one cycle to the next, which three submissions meet at any moment: two times the root of three."""
PLACEMENT_S = 0.15
Waits = dict[tuple[str, float], float]


def simulated(config: Path, submitted: Mapping[tuple[str, float], float]) -> Waits:
    """By user and demand; submissions come when they came to the real pool, seconds since the first."""
    recorder = Recorder(SLOTS, ["condor"])
    settings = attrs.evolve(settings_of(config), poll_s=POLL_S, settled_s=None, slow_poll_s=0.0, saves=False,
                            placement_s=PLACEMENT_S, checkpoint_s=0.1)
    begin_s = 60.0
    visits = [tuple((begin_s + came_s, begin_s + left_s) for came_s, left_s in VISITS) if slot < OWNED else ()
              for slot in range(SLOTS)]
    pool = CorePool(settings, visits, ["condor"], recorder, facts=[{"Place": slot + 1} for slot in range(SLOTS)])
    for work in JOBS:
        pool.submit_at(begin_s + submitted[work.user, work.demands_s[0]], "condor", work.demands_s, ad=(
            f'Rank = TARGET.Place\nAcctGroupUser = "{work.user}"\nAccountingGroup = "{work.user}"\n'))
    pool.run_until(begin_s + max(submitted.values()))
    while any(job.completed_s is None for job in recorder.jobs.values()):
        pool.run_until(pool.clock.now_s + 5.0)
    jobs = recorder.finish(pool.clock.now_s).completed
    users = {demand_s: work.user for work in JOBS for demand_s in work.demands_s}
    return {(users[job.demand_s], job.demand_s): job.wait_s for job in jobs}


class Owner(threading.Thread):
    """Types at the console while a visit lasts."""

    def __init__(self, device: Path, begin_s: float) -> None:
        super().__init__(daemon=True)
        self._device = device
        self._begin_s = begin_s
        self.over = threading.Event()

    def run(self) -> None:
        for came_s, left_s in VISITS:
            if self.over.wait(max(0.0, self._begin_s + came_s - time.time())):
                return
            while time.time() < self._begin_s + left_s and not self.over.wait(0.05):
                os.utime(self._device)


def real(pool: PersonalPool, console: Path) -> tuple[Waits, Waits]:
    """The waits in a pool of processes, and when each job was submitted, seconds since the first."""
    program = pool.work / "work.sh"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    owner: Owner | None = None
    begin_s = 0.0
    submitted: dict[tuple[str, float], float] = {}
    for work in JOBS:
        if owner is not None:
            time.sleep(max(0.0, begin_s + work.when_s - time.time()))  # the scenario's clock
        demands = "\n".join(f"{100 * demand_s:.0f}" for demand_s in work.demands_s)
        pool.submit(f"executable = work.sh\narguments = $(work)\noutput = out.$(work)\nlog = job.log\n"
                    f"accounting_group_user = {work.user}\nrank = TARGET.SlotID\nshould_transfer_files = yes\n"
                    f"queue work from (\n{demands}\n)\n")
        now_s = time.time()
        if owner is None:
            begin_s = now_s
            owner = Owner(console, begin_s)
            owner.start()
        submitted.update({(work.user, demand_s): now_s for demand_s in work.demands_s})
    pool.wait("job.log", 600.0)
    assert owner is not None
    owner.over.set()
    owner.join()
    ended = {(user, demand_s): float((pool.work / f"out.{100 * demand_s:.0f}").read_text())
             for user, demand_s in submitted}
    return ({job: ended[job] - submitted[job] - job[1] for job in submitted},
            {job: when_s - begin_s for job, when_s in submitted.items()})


@pytest.mark.soak
def test_waits_agree() -> None:
    with fresh_folder() as folder:
        console = folder / "console"
        console.touch()
        os.utime(console, (1, 1))
        pool = PersonalPool(folder, slots=SLOTS, config=CONFIG.format(device=console, owned=OWNED, poll=POLL_S))
        try:
            seen, submitted = real(pool, console)
            told = simulated(Path(pool.environment["CONDOR_CONFIG"]), submitted)
        finally:
            pool.stop()
    assert told.keys() == seen.keys()
    lines = [f"{user:6} {demand_s:5.0f} {told[user, demand_s]:8.2f} {seen[user, demand_s]:8.2f}"
             for user, demand_s in seen]
    print("\nuser  demand simulated real\n" + "\n".join(lines))
    for users in (("heavy", "light"), ("heavy",), ("light",)):
        mine, theirs = (sum(wait_s for (user, _), wait_s in waits.items() if user in users) for waits in (told, seen))
        assert mine == pytest.approx(theirs, rel=0.05, abs=LIGHT_TOLERANCE_S if users == ("light",) else 0.0), users
