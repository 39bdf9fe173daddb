"""Races that the simulation has found, made small: each failed before the production code was mended.

In parentheses the seed that found it.  What a seed means changes with the faults that there are: schedules are kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from condor_actors.cores.startd.claims.claim import SaveFact
from condor_actors.daemons.shadow.output_files import OutputPlaces
from condor_actors.daemons.startd_actor import StartdActor
from condor_actors.daemons.starter.starter import Starter
from condor_actors.messages.admin import Drain
from condor_actors.messages.envelope import Address
from condor_actors.simulation.faults.chance import DESKTOP, QUICK
from condor_actors.simulation.world.disk import ClaimsOnDisk
from condor_actors.simulation.world.jobs import JobProcess
from condor_actors.simulation.world.machine import SimulatedMachine
from condor_actors.simulation.world.pool import Pool
from condor_actors.simulation.world.scenario import MachineSpec, Scenario, Submission, Wish, run

HOME = MachineSpec("m0", central=True, submits=True, executes=False)
DESK = MachineSpec("m1", kbdd=True, config=DESKTOP)
PLAIN = MachineSpec("m2")
SHORT = {**QUICK, "JOB_DEFAULT_LEASE_DURATION": "60"}


def alice(**facts: object) -> Submission:
    """Jobs of hers at m0, from second 30 on."""
    return Submission(when_s=30.0, owner="alice", machine="m0", **facts)  # type: ignore[arg-type]


def hang(machine: SimulatedMachine) -> None:
    """Its starter host stops, and nobody will let it go on."""
    process = machine.find("starter-host")
    assert process is not None
    process.freeze()


KEPT = {
    "what a user continues stands still while the machine's owner is there": Scenario(
        machines=(HOME, DESK), submissions=(alice(cpu_s=300.0),), release_s=10.0, config=QUICK,
        faults="at 100s owner m1 for 100s"),
    "a program that begins while the owner is there stands still": Scenario(
        machines=(HOME, DESK), submissions=(alice(cpu_s=300.0, program={"start_s": 60.0}),), config=QUICK,
        faults="at 40s owner m1 for 170s"),
    "a suspension that the schedd did not commit is told again to the next one": Scenario(
        machines=(HOME, PLAIN), submissions=(alice(cpu_s=300.0),), release_s=97.0, config=QUICK,
        wishes=(Wish(when_s=60.0, owner="alice", machine="m0", action="suspend"),),
        faults="at 60s ambush m0/schedd on shadow_host.RunUpdated kill"),
    "processor time of a run that never began is not counted twice": Scenario(
        machines=(HOME, PLAIN, MachineSpec("m3")), submissions=(alice(cpu_s=250.0, count=2),), config=QUICK,
        wishes=(Wish(when_s=100.0, owner="alice", machine="m0", action="vacate", constraint="ProcId == 0"),),
        faults="at 99s ambush m0/shadow-host on shadow_host.HostOrders kill"),
    "a run whose order waited for a spare host is taken up when that dies (3000037)": Scenario(
        machines=(HOME, PLAIN), submissions=(alice(cpu_s=250.0),), config=QUICK, span_s=4000.0,
        faults="at 20s ambush m0/schedd on shadow_host.NoticesWritten reset\nat 100s crash m0/shadow-host"),
    "a run that is vacated while its next shadow looks for it has ended before the job is idle (4000204)": Scenario(
        machines=(HOME, PLAIN, MachineSpec("m3")), config=SHORT, delay_s=0.05,
        submissions=(alice(cpu_s=250.0, program={"stubborn": 1.0}),),
        wishes=(Wish(when_s=100.0, owner="alice", machine="m0", action="vacate-fast"),),
        faults="at 40s ambush m0/shadow-host on run.StopRun kill"),
    "so has one that is held and released (4000222)": Scenario(
        machines=(HOME, PLAIN, MachineSpec("m3")), config=SHORT, delay_s=0.2, release_s=0.25,
        submissions=(alice(cpu_s=250.0, program={"stubborn": 1.0}),),
        wishes=(Wish(when_s=100.0, owner="alice", machine="m0", action="hold"),),
        faults="at 40s ambush m0/shadow-host on run.StopRun kill"),
    "a run that takes its time to go stands still for the owner who comes meanwhile (443, 504)": Scenario(
        machines=(HOME, DESK), config=QUICK, submissions=(alice(cpu_s=400.0, program={"stubborn": 1.0}),),
        wishes=(Wish(when_s=100.0, owner="alice", machine="m0", action="vacate"),),
        faults="at 250s owner m1 for 100s"),
    "what the owner froze is not thawed because its user wants it to go": Scenario(
        machines=(HOME, DESK), submissions=(alice(cpu_s=400.0, program={"stubborn": 1.0}),), config=QUICK,
        wishes=(Wish(when_s=120.0, owner="alice", machine="m0", action="vacate"),),
        faults="at 100s owner m1 for 100s"),
    "what a startd that hung wanted frozen is frozen when its starter host is back (677)": Scenario(
        machines=(HOME, DESK), config=QUICK, submissions=(alice(cpu_s=400.0),),
        faults="at 100s freeze m1/startd for 87s\nat 124s owner m1 for 400s"),
    "what a startd had asked to go before it died has no more time than the owner's policy gives (1078)": Scenario(
        machines=(HOME, DESK), submissions=(alice(cpu_s=900.0, program={"stubborn": 1.0}),), config=QUICK,
        faults="at 100s owner m1 for 400s\nat 250s crash m1/startd"),
    "a claim that could not be opened again because the link broke is still there (1953)": Scenario(
        machines=(HOME, PLAIN), config=QUICK,
        submissions=(Submission(when_s=60.0, owner="alice", machine="m0", cpu_s=250.0),
                     Submission(when_s=72.0, owner="bob", machine="m0", cpu_s=250.0)),
        faults="at 50s freeze m0/shadow-host for 40s\nat 69s ambush m2/startd on claim.StarterHostHello reset\n"
               "at 70s crash m2/startd"),
    "a shadow does not give up a run before its starter has noticed and ended it (4000194)": Scenario(
        machines=(HOME, PLAIN, MachineSpec("m3")), submissions=(alice(cpu_s=480.0),), config=SHORT,
        delay_s=0.005, faults="at 100s cut m2 m0 for 384s\nat 110s crash m0/shadow-host"),
    "a job that is removed while its run is being activated does not run to its end": Scenario(
        machines=(HOME, PLAIN), submissions=(alice(cpu_s=9000.0),), config=QUICK, delay_s=0.2,
        wishes=(Wish(when_s=31.4, owner="alice", machine="m0", action="remove"),)),
    "the starter's lease begins anew when only its answer to the shadow is lost, and so does the shadow's": Scenario(
        machines=(HOME, PLAIN, MachineSpec("m3")), submissions=(alice(cpu_s=2000.0),), delay_s=0.2, span_s=6000.0,
        config={**QUICK, "JOB_DEFAULT_LEASE_DURATION": "300"},
        faults="at 60s reset m0 m2\nat 60s cut m0 m2 for 265s\nat 336.2s cut m2 > m0 for 900s"),
    "a run whose output is streamed can fail before it has a scratch directory": Scenario(
        machines=(HOME, PLAIN), config=QUICK, delay_s=0.2,
        submissions=(alice(ad={"StreamOut": "true", "Out": '"out"', "ShouldTransferFiles": '"YES"'}),),
        wishes=(Wish(when_s=200.0, owner="alice", machine="m0", action="remove"),),
        faults="at 31.7s disk-full m2 for 20s"),
    "a starter host that hangs is killed, and its jobs begin again": Scenario(
        machines=(HOME, PLAIN), submissions=(alice(cpu_s=250.0),), config=QUICK, span_s=4000.0,
        prepare=lambda pool: pool.clock.callLater(100.0, hang, pool.machines["m2"])),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_was_found_stays_mended(name: str) -> None:
    result = run(KEPT[name])
    assert not result.violations, result.violations[0]


@pytest.mark.parametrize(("span_s", "starts"), [(400.0, 1), (900.0, 2)])
def test_a_starter_host_that_lacks_the_processor_is_waited_for_but_not_for_ever(span_s: float, starts: int) -> None:
    def starve(pool: Pool) -> None:
        machine = pool.machines["m2"]
        process = machine.find("starter-host")
        assert process is not None
        process.starved = True
        process.freeze()
        pool.clock.callLater(span_s, lambda: process.thaw() if process.alive else None)

    result = run(Scenario(machines=(HOME, PLAIN), submissions=(alice(cpu_s=2000.0),), config=QUICK, span_s=8000.0,
                          prepare=lambda pool: pool.clock.callLater(100.0, starve, pool)))
    assert not result.violations, result.violations[0]
    (job,) = result.jobs.values()
    assert (job.starts, job.completed_s is not None) == (starts, True)


def test_a_starter_frees_what_it_has_when_the_lease_is_over() -> None:
    pools: list[Pool] = []
    result = run(Scenario(machines=(HOME, PLAIN, MachineSpec("m3")), submissions=(alice(cpu_s=900.0),), config=SHORT,
                          faults="at 60s cut m0 m2 for 700s", span_s=2000.0, drain=False, prepare=pools.append))
    assert not result.violations, result.violations[0]
    assert [machine.name for machine in pools[0].machines.values() if machine.scratch] == []


def test_a_run_whose_starter_fails_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[str] = []

    def fail_once(starter: Starter, disk_kib: object) -> None:
        if not failed:
            failed.append(starter.run_id)
            raise RuntimeError("a fault of the starter's")
        measured(starter, disk_kib)

    measured = Starter._measured
    monkeypatch.setattr(Starter, "_measured", fail_once)
    result = run(Scenario(machines=(HOME, PLAIN), submissions=(alice(cpu_s=300.0),), config=QUICK,
                          checks=False))
    assert len(failed) == 1
    (job,) = result.jobs.values()
    assert (job.starts, job.completed_s is not None) == (2, True)


def test_a_slot_is_given_to_the_next_when_nothing_of_the_last_run_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A startd that has lost its claim file has what runs killed; a program that waits for its disk takes its time."""
    def lose(pool: Pool) -> None:
        machine = pool.machines["m2"]
        process = machine.find("startd")
        assert process is not None
        for file in machine.disk.files.values():
            if isinstance(file, ClaimsOnDisk):
                file.seen.clear()
                file.platter.clear()
        machine.kill(process)

    monkeypatch.setattr("condor_actors.simulation.world.jobs.DIES_IN_S", 2.0)
    result = run(Scenario(machines=(HOME, PLAIN), config=QUICK, submissions=(alice(cpu_s=400.0, count=2),),
                          prepare=lambda pool: pool.clock.callLater(100.0, lose, pool)))
    assert not result.violations, result.violations[0]
    assert sorted(job.starts for job in result.jobs.values()) == [1, 2]
    assert all(job.completed_s is not None for job in result.jobs.values())


def test_a_startd_whose_disk_was_full_for_a_moment_knows_what_runs_and_uses_no_number_twice() -> None:
    context = MachineSpec("m1", cpus=2, kbdd=True, config=DESKTOP)
    result = run(Scenario(
        machines=(HOME, context), config=QUICK,
        submissions=(alice(cpu_s=500.0), Submission(when_s=105.0, owner="alice", machine="m0", cpu_s=100.0)),
        faults="at 100s disk-full m1 for 20s\nat 125s owner m1 for 8s"))
    assert not result.violations, result.violations[0]
    assert [job.starts for job in result.jobs.values()] == [1, 1]


@pytest.mark.parametrize("when_s", [31.2, 31.4, 31.6, 31.8, 32.0])
def test_a_job_that_is_suspended_while_it_begins_stands_still(when_s: float) -> None:
    result = run(Scenario(
        machines=(HOME, PLAIN), submissions=(alice(cpu_s=100.0),), config=QUICK, delay_s=0.2, span_s=600.0,
        drain=False, wishes=(Wish(when_s=when_s, owner="alice", machine="m0", action="suspend"),)))
    assert not result.violations, result.violations[0]
    (job,) = result.jobs.values()
    assert job.completed_s is None


def test_a_drain_outlives_the_actor_of_its_startd(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made anew when something cannot be stored."""
    actors: list[StartdActor] = []

    def poll(actor: StartdActor) -> None:
        if actor.core.draining.request is not None and actor not in actors:
            actors.append(actor)
            actor.context.persist(SaveFact("anything", 0))
        polled(actor)

    def drain(pool: Pool) -> None:
        process = pool.machines["m2"].find("startd")
        assert process is not None
        process.daemon.system.tell(Address("", "startd"), Drain())

    polled = StartdActor._poll
    monkeypatch.setattr(StartdActor, "_poll", poll)
    result = run(Scenario(machines=(HOME, PLAIN), config=QUICK, span_s=400.0, drain=False,
                          submissions=(Submission(when_s=100.0, owner="alice", machine="m0", cpu_s=50.0),),
                          faults="at 61s disk-full m2 for 1s",
                          prepare=lambda pool: pool.clock.callLater(60.0, drain, pool)))
    assert not result.violations, result.violations[0]
    assert len(actors) > 1
    assert [job.starts for job in result.jobs.values()] == [0]


def test_what_is_streamed_comes_home_whole_and_a_piece_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The link breaks twice: while the program writes, and while the last of it comes home."""
    under_way: list[int] = []
    written: dict[int, bytes] = {}

    def write(self: JobProcess) -> None:
        if self.alive:
            self.machine.write(self.folder, "_condor_stdout", b"x" * int(1000 * self.cpu_s))
            self.machine.pool.clock.callLater(5.0, write, self)

    def begin(self: JobProcess) -> None:
        begun(self)
        write(self)

    def take(places: OutputPlaces, pieces: Sequence[tuple[str, int, bytes]]) -> list[tuple[str, Exception]]:
        under_way.append(sum(len(data) for _, _, data in pieces))
        written.update({offset: data for _, offset, data in pieces})
        return []

    def end(self: JobProcess, exit_code: int, exit_signal: int) -> None:
        monkeypatch.setattr(self.machine, "write", lambda *args: None)
        ended(self, exit_code, exit_signal)

    begun, ended = JobProcess.begin, JobProcess.end
    monkeypatch.setattr(JobProcess, "begin", begin)
    monkeypatch.setattr(JobProcess, "end", end)
    monkeypatch.setattr("condor_actors.daemons.shadow.stream_writer.write_pieces", take)
    monkeypatch.setattr("condor_actors.daemons.starter.output_streams.PIECE_BYTES", 2000)
    result = run(Scenario(
        machines=(HOME, PLAIN), config=QUICK, delay_s=0.2,
        submissions=(alice(cpu_s=100.0, ad={"StreamOut": "true", "Out": '"out"', "ShouldTransferFiles": '"YES"'}),),
        faults="at 60s cut m2 m0 for 20s\nat 131.5s cut m2 m0 for 150s"))
    assert not result.violations, result.violations[0]
    assert max(under_way) <= 2000
    at = 0
    while at in written:
        at += len(written[at])
    assert at >= 95_000
    (job,) = result.jobs.values()
    assert (job.starts, job.completed_s is not None) == (1, True)


@pytest.mark.parametrize("crash_s", [100.1, 100.6])
def test_a_schedd_that_died_remembers_what_was_to_end(crash_s: float) -> None:
    """A job is held and released; its shadow hosts and the schedd die before the starter has heard of it."""
    result = run(Scenario(
        machines=(HOME, PLAIN, MachineSpec("m3")), config=SHORT, delay_s=0.2,
        submissions=(alice(cpu_s=250.0, program={"stubborn": 1.0}),),
        wishes=(Wish(when_s=100.0, owner="alice", machine="m0", action="hold"),
                Wish(when_s=100.05, owner="alice", machine="m0", action="release")),
        faults=f"at 40s ambush m0/shadow-host on run.StopRun kill\nat {crash_s}s crash m0/schedd\n"
               f"at {crash_s + 0.05}s crash m0/shadow-host"))
    assert not result.violations, result.violations[0]
    (job,) = result.jobs.values()
    assert job.completed_s is not None
    assert job.completed_s < 400.0


@pytest.mark.parametrize("turn", range(1, 9))
def test_ends_that_come_together_outlive_the_turn_that_takes_one_of_them(turn: int) -> None:
    """Two shadows say at once that their runs are over, and the host's turn that takes the first word raises."""
    result = run(Scenario(
        machines=(HOME, PLAIN, MachineSpec("m3")), config=SHORT, delay_s=0.2,
        submissions=(alice(cpu_s=250.0), alice(cpu_s=250.0)), faults=f"at 240s raise m0/shadow-host before {turn}"))
    assert not result.violations, result.violations[0]
    assert all(job.completed_s is not None and job.starts == 1 for job in result.jobs.values())
