"""Programs of the site in a simulated pool: what they say is used; none runs twice, or outlives its daemon."""

from __future__ import annotations

from typing import Any

from condor_actors.daemons.collector import CollectorDaemon
from condor_actors.messages.advertise import AdKind
from condor_actors.simulation.world.scenario import MachineSpec, Scenario, Submission, run

PROGRAMS = {
    "STARTD_CRON_JOBLIST": "fast slow noisy stubborn", "STARTD_CRON_AUTOPUBLISH": "If_Changed",
    "STARTD_CRON_FAST_EXECUTABLE": "/site/fast", "STARTD_CRON_FAST_PERIOD": "30",
    "STARTD_CRON_FAST_ARGS": "run_s=2", "STARTD_CRON_FAST_PREFIX": "Fast",
    "STARTD_CRON_SLOW_EXECUTABLE": "/site/slow", "STARTD_CRON_SLOW_MODE": "WaitForExit", "STARTD_CRON_SLOW_PERIOD": "7",
    "STARTD_CRON_SLOW_ARGS": "run_s=25 exit=1", "STARTD_CRON_SLOW_PREFIX": "Slow",
    "STARTD_CRON_NOISY_EXECUTABLE": "/site/noisy", "STARTD_CRON_NOISY_PERIOD": "11",
    "STARTD_CRON_NOISY_ARGS": "run_s=1 noise=1", "STARTD_CRON_NOISY_PREFIX": "Noisy",
    "STARTD_CRON_STUBBORN_EXECUTABLE": "/site/stubborn", "STARTD_CRON_STUBBORN_PERIOD": "20",
    "STARTD_CRON_STUBBORN_ARGS": "run_s=1000 stubborn=1", "STARTD_CRON_STUBBORN_KILL": "true",
    "BENCHMARKS_JOBLIST": "speed", "BENCHMARKS_SPEED_EXECUTABLE": "/site/speed", "BENCHMARKS_SPEED_ARGS": "run_s=9",
    "BENCHMARKS_SPEED_PREFIX": "Speed", "RUNBENCHMARKS": "time() - LastBenchmark > 100",
    "SCHEDD_CRON_JOBLIST": "queue", "SCHEDD_CRON_QUEUE_EXECUTABLE": "/site/queue", "SCHEDD_CRON_QUEUE_PERIOD": "45",
    "SCHEDD_CRON_QUEUE_PREFIX": "Site",
}
MACHINES = (MachineSpec("m0", central=True, submits=True, executes=False),
            *(MachineSpec(f"m{number}", cpus=2) for number in range(1, 4)))


class Looks:
    """Looks at the pool again and again."""

    def __init__(self) -> None:
        self.slots: list[str] = []
        self.schedds: list[str] = []

    def begin(self, pool: Any) -> None:
        pool.clock.callLater(10.0, self.look, pool)

    def look(self, pool: Any) -> None:
        for machine in pool.machines.values():
            for process in machine.processes.values():
                actor = process.system.actor("site-programs") if process.system is not None else None
                if actor is not None:
                    actor.core.validate()
                    running = {course.program.name for course in actor.core._courses.values() if course.reader}
                    living = {each.name for each in actor._programs.living.values()}
                    assert living == running, (process.title, living, running)
        self.note(pool)
        pool.clock.callLater(10.0, self.look, pool)

    def note(self, pool: Any) -> None:
        process = pool.machines["m0"].find("collector")
        if process is None or not isinstance(process.daemon, CollectorDaemon):
            return
        for kind, texts in ((AdKind.SLOT, self.slots), (AdKind.SCHEDD, self.schedds)):
            texts += [ad for ad in ads_of(process.daemon, kind) if ad not in texts]


def ads_of(collector: CollectorDaemon, kind: AdKind) -> list[str]:
    return [record.data.decode() for record in collector.memory.table.tables[kind].values()]


def test_what_they_say_reaches_ads_and_requirements_and_faults_leave_no_second_run() -> None:
    looks = Looks()
    result = run(Scenario(
        seed=11, machines=MACHINES, config=PROGRAMS, prepare=looks.begin, span_s=7200.0,
        submissions=(Submission(when_s=30.0, owner="alice", machine="m0", count=8, cpu_s=200.0,
                                ad={"Requirements": 'TARGET.FastSaid == "fast" && TARGET.SlowRun >= 1'}),),
        faults="at 120s crash m1/startd\nat 200s power m2 for 60s\nat 260s crash m0/schedd\n"
               "at 300s raise m3/startd after 5\nat 320s freeze m1/startd for 40s\nat 340s raise m0/schedd after 9\n"))
    assert not result.violations
    assert result.completed == 8
    assert any("FastSaid = \"fast\"" in text and "SlowRun = " in text for text in looks.slots)
    assert any("SpeedRun = " in text for text in looks.slots), "the benchmark of the site never ran"
    assert any("SiteSaid = \"queue\"" in text for text in looks.schedds)


def test_a_seed_gives_the_same_trace() -> None:
    scenario = Scenario(seed=3, machines=MACHINES, config=PROGRAMS, span_s=900.0, drain=False,
                        faults="at 120s crash m1/startd\nat 200s crash m0/schedd\n")
    assert run(scenario).digest == run(scenario).digest
