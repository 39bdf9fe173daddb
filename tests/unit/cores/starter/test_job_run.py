"""A run as its starter decides it: every ending, in its order."""

from __future__ import annotations

import signal
from typing import Any

import attrs
import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.starter import job_run as jr
from condor_actors.cores.starter.run_events import CloseRun
from condor_actors.cores.starter.run_spec import BadJob, RunSettings, environment_of, read_spec
from condor_actors.effects import SetTimer
from condor_actors.messages.envelope import TimerFired
from condor_actors.messages.run import (
    CheckpointKept,
    ContinueRun,
    InputsSent,
    OutputsReceived,
    ReattachRun,
    RunBegan,
    RunExited,
    StopRun,
    SuspendRun,
    Usage,
)

JOB = 'Cmd = "/bin/x"\nOwner = "alice"\nUser = "alice@dom"\nClusterId = 1\nProcId = 0\nShouldTransferFiles = "YES"\n'
RUN = "1.0#1"


class Bench:
    """A run and the clock beside it."""

    def __init__(self, extra: str = "", missing: bool = False) -> None:
        self.run = jr.JobRun(RUN, read_spec(ClassAd.from_text(JOB + extra)), lease_s=2400.0)
        self.now_s = 100.0
        self.out: list[Any] = list(self.run.start(self.now_s, missing=missing))

    def tell(self, event: Any) -> list[Any]:
        self.now_s += 1.0
        self.out = list(self.run.handle(event, self.now_s))
        return self.out

    def running(self) -> Bench:
        self.tell(jr.Prepared())
        self.tell(jr.Began(77, "/scratch"))
        assert self.run.state is jr.StarterState.RUNNING
        return self

    def said(self) -> list[Any]:
        return [effect.message for effect in self.out if isinstance(effect, jr.Tell)]

    def ended(self, code: int = 0, number: int = -1) -> RunExited:
        self.tell(jr.ProgramEnded(code, number, False))
        assert any(isinstance(effect, jr.KillTree) for effect in self.out)
        self.tell(jr.TreeGone(Usage(user_cpu_s=1.0)))
        if any(isinstance(effect, jr.Gather) for effect in self.out):
            self.tell(jr.Gathered())
        return next(message for message in self.said() if isinstance(message, RunExited))


def test_what_its_images_name_meant_is_told_when_it_begins_and_again() -> None:
    bench, digest = Bench(), "sha256:" + "0" * 64
    bench.tell(jr.Prepared(digest))
    bench.tell(jr.Began(77, "/scratch"))
    assert [message.image_digest for message in bench.said()] == [digest]
    bench.tell(ReattachRun(claim_id="c", secret="s", run_id=RUN))  # the word that it began may not have been heard
    assert [message.image_digest for message in bench.said()] == [digest]


def test_the_ports_of_its_services_are_told_when_it_begins_and_again() -> None:
    bench, ports = Bench(), (("web", 40001),)
    bench.tell(jr.Prepared())
    bench.tell(jr.Began(77, "/scratch", ports))
    assert [message.ports for message in bench.said()] == [ports]
    bench.tell(ReattachRun(claim_id="c", secret="s", run_id=RUN))
    assert [message.ports for message in bench.said()] == [ports]
    bench.tell(jr.Measured(Usage()))
    assert [message.ports for message in bench.said()] == [ports]


def test_another_shadow_hears_what_one_before_it_may_not_have_written() -> None:
    bench = Bench().running()
    bench.tell(SuspendRun(run_id=RUN))
    since_s = bench.now_s
    assert [(message.state, message.since_s) for message in bench.said()] == [("suspended", since_s)]
    bench.tell(ContinueRun(run_id=RUN))
    bench.tell(ReattachRun(claim_id="c", secret="s", run_id=RUN))
    (found,) = [effect.message for effect in bench.out if isinstance(effect, jr.ReturnTo)]
    assert (found.began_s, found.scratch_dir, found.ended) == (102.0, "/scratch", False)
    assert found.pauses == ((since_s, True, 1), (since_s + 1.0, False, 1))
    exited = bench.ended()
    assert exited.began_s == 102.0


def test_the_plain_way() -> None:
    bench = Bench()
    assert [type(effect).__name__ for effect in bench.out] == ["Activity", "Prepare"]
    assert [type(effect).__name__ for effect in bench.tell(jr.Prepared())] == ["Start"]
    bench.tell(jr.Began(77, "/scratch"))
    assert bench.said() == [RunBegan(run_id=RUN, when_s=102.0, pid=77, scratch_dir="/scratch")]
    exited = bench.ended(3)
    assert (exited.cause, exited.exit_code, exited.exit_signal, exited.usage.user_cpu_s) == ("exited", 3, -1, 1.0)
    assert jr.Activity("idle") in bench.out
    bench.tell(OutputsReceived(run_id=RUN))
    assert jr.Forget() in bench.out
    assert bench.run.state is jr.StarterState.GONE


def test_it_waits_for_missing_blobs() -> None:
    bench = Bench(missing=True)
    assert bench.out == [jr.Activity("busy")]
    assert jr.Prepare() in bench.tell(InputsSent(run_id=RUN))


def test_a_program_that_cannot_be_executed_is_held() -> None:
    bench = Bench()
    bench.tell(jr.Prepared())
    bench.tell(jr.StartFailed("no such program"))
    exited = bench.said()[0]
    assert (exited.cause, exited.hold_code, exited.reason) == ("start-failed", 6, "no such program")


def test_a_standard_file_that_cannot_be_opened_has_its_own_codes() -> None:
    bench = Bench()
    bench.tell(jr.Prepared())
    bench.tell(jr.StartFailed("no such folder", 7, 2))
    exited = bench.said()[0]
    assert (exited.cause, exited.hold_code, exited.hold_subcode) == ("start-failed", 7, 2)


def test_vacate_is_gentle_then_hard() -> None:
    bench = Bench('KillSig = "SIGINT"\nKillSigTimeout = 20\n').running()
    out = bench.tell(StopRun(run_id=RUN, how="vacate"))
    assert jr.Signal(signal.SIGINT) in out
    bench.tell(TimerFired(key="grace"))
    assert jr.KillTree() in bench.out
    exited = bench.ended(-1, 9)
    assert (exited.cause, exited.exit_code, exited.exit_signal) == ("evicted", -1, -1)


def test_fast_kills_at_once_and_remove_uses_its_signal() -> None:
    bench = Bench().running()
    assert jr.KillTree() in bench.tell(StopRun(run_id=RUN, how="fast"))
    bench = Bench('RemoveKillSig = "SIGUSR1"\n').running()
    assert jr.Signal(signal.SIGUSR1) in bench.tell(StopRun(run_id=RUN, how="remove"))
    assert bench.ended().cause == "killed"


@pytest.mark.parametrize(("wanted", "how", "waits_s"), [
    ("true", "remove", 600.0), ("false", "remove", 30.0), ("undefined", "remove", 30.0), ("true", "hold", 30.0)])
def test_a_graceful_removal_takes_as_long_as_an_eviction(wanted: str, how: str, waits_s: float) -> None:
    bench = Bench(f"JobMaxVacateTime = 600\nWantGracefulRemoval = {wanted}\n").running()
    bench.tell(StopRun(run_id=RUN, how=how))
    assert [effect.delay_s for effect in bench.out if isinstance(effect, SetTimer) and effect.key == "grace"] == [
        waits_s]


@pytest.mark.parametrize(("job_s", "owner_s", "waits_s"), [(20, 600.0, 20.0), (600, 20.0, 20.0), (600, 0.0, None)])
def test_neither_the_job_nor_the_machine_is_waited_for_longer_than_the_other_allows(
        job_s: int, owner_s: float, waits_s: float | None) -> None:
    bench = Bench(f"JobMaxVacateTime = {job_s}\n").running()
    bench.tell(CloseRun(grace_s=owner_s, reason="the owner is back"))
    graces = [effect.delay_s for effect in bench.out if isinstance(effect, SetTimer) and effect.key == "grace"]
    if waits_s is None:
        assert jr.KillTree() in bench.out
    else:
        assert graces == [waits_s]
        assert jr.KillTree() not in bench.out


def test_the_end_of_a_tree_is_heard_once() -> None:
    bench = Bench().running()
    bench.ended(3)
    bench.tell(jr.TreeGone(Usage(user_cpu_s=99.0)))
    assert bench.said() == []
    assert bench.run.usage.user_cpu_s == 1.0


def test_a_suspended_job_is_thawed_before_it_goes() -> None:
    bench = Bench().running()
    assert jr.Freeze() in bench.tell(SuspendRun(run_id=RUN))
    assert jr.Activity("suspended") in bench.out
    assert jr.Thaw() in bench.tell(ContinueRun(run_id=RUN))
    bench.tell(SuspendRun(run_id=RUN))
    out = bench.tell(StopRun(run_id=RUN, how="vacate"))
    assert out.index(jr.Signal(signal.SIGTERM)) < out.index(jr.Thaw())


def test_what_is_suspended_before_it_runs_stands_still_from_the_beginning() -> None:
    bench = Bench()
    assert jr.Freeze() not in bench.tell(SuspendRun(run_id=RUN))
    bench.tell(jr.Prepared())
    assert jr.Freeze() in bench.tell(jr.Began(77, "/scratch"))
    assert [type(message).__name__ for message in bench.said()] == ["RunBegan", "RunProgress"]


@pytest.mark.parametrize("after", [ContinueRun(run_id=RUN), StopRun(run_id=RUN, how="vacate")])
def test_unless_its_user_thinks_otherwise_before_it_runs(after: Any) -> None:
    bench = Bench()
    bench.tell(jr.Prepared())
    bench.tell(SuspendRun(run_id=RUN))
    bench.tell(after)
    assert jr.Freeze() not in bench.tell(jr.Began(77, "/scratch"))


def test_the_startd_hears_of_a_user_who_suspends_what_the_owner_froze() -> None:
    bench = Bench().running()
    assert jr.Freeze() in bench.tell(jr.OwnerSuspends())
    assert not bench.run.by_user
    assert bench.tell(SuspendRun(run_id=RUN)) == [jr.Activity("suspended")]
    assert bench.run.by_user
    assert bench.tell(SuspendRun(run_id=RUN)) == []
    assert bench.tell(jr.OwnerContinues()) == [], "its user still wants it to stand still"
    assert jr.Thaw() in bench.tell(ContinueRun(run_id=RUN))
    assert jr.Activity("busy") in bench.out


def test_a_run_that_takes_its_time_to_go_stands_still_for_the_owner() -> None:
    bench = Bench().running()
    bench.tell(StopRun(run_id=RUN, how="vacate"))
    assert jr.Freeze() in bench.tell(jr.OwnerSuspends())
    assert jr.Thaw() not in bench.tell(StopRun(run_id=RUN, how="vacate")), "its user asks again"
    assert jr.Thaw() in bench.tell(jr.OwnerContinues())
    bench.tell(jr.OwnerSuspends())
    assert jr.Thaw() in bench.tell(jr.CloseRun(reason="the owner is back", grace_s=60.0)), "the policy's time"
    assert jr.Freeze() not in bench.tell(jr.OwnerSuspends())


def test_what_the_owner_froze_is_not_thawed_for_its_user() -> None:
    bench = Bench().running()
    bench.tell(jr.OwnerSuspends())
    out = bench.tell(StopRun(run_id=RUN, how="vacate"))
    assert jr.Signal(signal.SIGTERM) in out
    assert jr.Thaw() not in out
    assert jr.Thaw() in bench.tell(jr.OwnerContinues()), "it may go now"
    bench = Bench().running()
    bench.tell(jr.OwnerSuspends())
    bench.tell(StopRun(run_id=RUN, how="remove"))
    assert jr.KillTree() in bench.tell(TimerFired(key="grace")), "its time is over"
    bench = Bench().running()
    bench.tell(jr.OwnerSuspends())
    assert jr.KillTree() in bench.tell(StopRun(run_id=RUN, how="fast"))


def test_what_is_to_go_before_it_began_does_not_compute_beside_the_owner() -> None:
    bench = Bench()
    bench.tell(jr.Prepared())
    bench.tell(jr.OwnerSuspends())
    bench.tell(StopRun(run_id=RUN, how="vacate"))
    assert jr.Freeze() in bench.tell(jr.Began(77, "/scratch"))


def test_its_time_is_over_while_it_stands_still() -> None:
    bench = Bench().running()
    bench.tell(StopRun(run_id=RUN, how="vacate"))
    bench.tell(jr.OwnerSuspends())
    assert jr.KillTree() in bench.tell(TimerFired(key="grace"))


def test_a_program_that_ends_to_begin_again_while_it_stands_still() -> None:
    bench = Bench("CheckpointExitCode = 85\nSuccessCheckpointExitCode = 85\n").running()
    assert jr.Freeze() in bench.tell(jr.OwnerSuspends())
    out = bench.tell(jr.ProgramEnded(85, -1, False))
    assert out.index(jr.Thaw()) < out.index(jr.KillTree())
    bench.tell(jr.TreeGone(Usage()))
    bench.tell(jr.Gathered())
    assert jr.Start() in bench.tell(CheckpointKept(run_id=RUN, number=1))
    assert jr.Freeze() in bench.tell(jr.Began(78, "/scratch")), "the owner is still there"


def test_the_startd_closes_with_a_hold() -> None:
    bench = Bench().running()
    bench.tell(jr.CloseRun(grace_s=5.0, reason="too loud", hold=True, hold_code=21, hold_subcode=3))
    exited = bench.ended()
    assert (exited.cause, exited.hold_code, exited.hold_subcode, exited.claim_open) == ("hold", 21, 3, False)


def test_outputs_of_an_evicted_job_travel_only_when_asked_for() -> None:
    bench = Bench('WhenToTransferOutput = "ON_EXIT_OR_EVICT"\n').running()
    bench.tell(StopRun(run_id=RUN, how="vacate"))
    bench.tell(jr.ProgramEnded(-1, 15, False))
    assert bench.tell(jr.TreeGone(Usage()))[-1] == jr.Gather(complete=False, everything=True)
    bench = Bench().running()
    bench.tell(StopRun(run_id=RUN, how="vacate"))
    bench.tell(jr.ProgramEnded(-1, 15, False))
    bench.tell(jr.TreeGone(Usage()))
    assert bench.said()[0].cause == "evicted"


def test_without_its_shadow_it_lives_as_long_as_its_lease() -> None:
    bench = Bench().running()
    bench.tell(jr.LinkLost())
    assert bench.run.state is jr.StarterState.RUNNING
    bench.tell(ReattachRun(claim_id="c", secret="s", run_id=RUN))
    assert bench.run.connected
    bench.tell(jr.LinkLost())
    assert jr.KillTree() in bench.tell(TimerFired(key="lease"))


def test_what_is_left_when_the_lease_is_over_is_not_kept_for_ever() -> None:
    bench = Bench().running()
    bench.tell(jr.LinkLost())
    bench.tell(TimerFired(key="lease"))
    bench.tell(jr.ProgramEnded(-1, 9, False))
    bench.tell(jr.TreeGone(Usage()))
    assert [each.key for each in bench.out if isinstance(each, SetTimer)] == ["keep"]
    assert jr.Forget() in bench.tell(TimerFired(key="keep"))


def test_a_run_whose_inputs_were_cut_short_fails_when_a_shadow_looks_for_it() -> None:
    bench = Bench(missing=True)
    bench.tell(jr.LinkLost())
    bench.tell(ReattachRun(claim_id="c", secret="s", run_id=RUN))
    assert [(each.cause, each.hold_code) for each in bench.said()] == [("transfer-failed", 0)]
    bench = Bench(missing=True)
    bench.tell(InputsSent(run_id=RUN))
    bench.tell(ReattachRun(claim_id="c", secret="s", run_id=RUN))
    assert not bench.said()


def test_an_end_without_a_shadow_is_told_again() -> None:
    bench = Bench().running()
    bench.tell(jr.LinkLost())
    exited = bench.ended(5)
    bench.tell(ReattachRun(claim_id="c", secret="s", run_id=RUN))
    assert bench.said() == [exited]
    assert next(e for e in bench.out if isinstance(e, jr.ReturnTo)).message.ended


def test_a_run_whose_end_is_committed_does_not_go_on() -> None:
    bench = Bench().running()
    assert jr.KillTree() in bench.tell(OutputsReceived(run_id=RUN))
    assert bench.ended(-1, 9).cause == "killed"


def test_what_is_on_its_way_home_is_kept_while_it_moves() -> None:
    bench = Bench().running()
    bench.tell(jr.CloseRun(grace_s=0.0, reason="the owner is back"))
    bench.ended(-1, 9)
    assert [each.key for each in bench.tell(jr.StillFetched())] == ["keep"]
    assert jr.Forget() in bench.tell(TimerFired(key="keep"))


@pytest.mark.parametrize("event", [
    InputsSent(run_id=RUN), jr.Prepared(), jr.PrepareFailed("x"), jr.Began(1, "/"), jr.StartFailed("x"),
    jr.ProgramEnded(0, -1, False), jr.TreeGone(Usage()), jr.Gathered(), jr.Measured(Usage()),
    StopRun(run_id=RUN, how="fast"), jr.CloseRun(grace_s=0.0, reason="x"), SuspendRun(run_id=RUN),
    jr.OwnerSuspends(), jr.OwnerContinues(), ContinueRun(run_id=RUN), OutputsReceived(run_id=RUN), jr.LinkLost(),
    jr.Abandon(), jr.StillFetched(), TimerFired(key="grace"), TimerFired(key="again"),
    TimerFired(key="lease"), TimerFired(key="keep"),
])
@pytest.mark.parametrize("state", list(jr.StarterState))
def test_every_event_is_taken_in_every_state(state: jr.StarterState, event: Any) -> None:
    bench = Bench()
    bench.run.state = state
    bench.tell(event)
    assert bench.run.state in jr.StarterState


def test_arguments_and_environment_in_both_syntaxes() -> None:
    new = read_spec(ClassAd.from_text(JOB + "Arguments = \"a 'b c' d''e\"\nEnvironment = \"A=1 'B=x y'\"\n"))
    assert (new.arguments, dict(new.environment)) == (("a", "b c", "d''e"[:1] + "e"), {"A": "1", "B": "x y"})
    old = read_spec(ClassAd.from_text(JOB + 'Args = "a b"\nEnv = "A=1;B=x y"\n'))
    assert (old.arguments, dict(old.environment)) == (("a", "b"), {"A": "1", "B": "x y"})
    with pytest.raises(BadJob, match="Arguments"):
        read_spec(ClassAd.from_text(JOB + "Arguments = \"a 'b\"\n"))
    with pytest.raises(BadJob, match="no Cmd"):
        read_spec(ClassAd.from_text("ClusterId = 1\n"))


def test_the_environment_of_a_job() -> None:
    spec = read_spec(ClassAd.from_text(JOB + "Environment = \"OMP_NUM_THREADS=7\"\n"))
    wanted = {"gpus": ("CUDA_VISIBLE_DEVICES=/CUDA//", "ALL", "ODD=/(/x/", "FEW=x"), "widget": ("W=:^:w-:",)}
    found = environment_of(
        spec, RunSettings(device_variables=wanted), scratch="/s", slot_name="slot1_2@h",
        cpus=2, assigned=(("GPUs", "CUDA0,CUDA1"), ("Widget", "a")), user="nobody", home="/")
    assert found["_CONDOR_SCRATCH_DIR"] == "/s"
    assert found["_CONDOR_SLOT"] == "slot1_2"
    assert found["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert found["_CONDOR_AssignedGPUs"] == found["ALL"] == found["ODD"] == found["FEW"] == "CUDA0,CUDA1"
    assert found["W"] == "w-a"
    assert (found["OMP_NUM_THREADS"], found["MKL_NUM_THREADS"]) == ("7", "2")


def test_shared_files_are_used_in_place() -> None:
    spec = read_spec(ClassAd.from_text(
        'Cmd = "x"\nIwd = "/home/a"\nOut = "o"\nIn = "i"\nShouldTransferFiles = "NO"\nTransferExecutable = false\n'))
    assert (spec.program, spec.stdin, spec.stdout, spec.transfers) == ("/home/a/x", "i", "o", False)
    assert attrs.evolve(spec, nice=3).nice == 3


# ---- a time of its own


def deferred(begins_s: float, window_s: float = 0.0) -> Bench:
    """A run whose time is that of the bench's clock, which begins at 100."""
    return Bench(f"DeferralTime = {begins_s:.0f}\nDeferralWindow = {window_s:.0f}\n")


def timers(bench: Bench) -> dict[Any, float]:
    return {effect.key: effect.delay_s for effect in bench.out if isinstance(effect, SetTimer)}


def test_a_run_with_a_time_waits_for_it_when_its_files_are_there() -> None:
    bench = deferred(130)
    bench.tell(jr.Prepared())
    assert bench.run.state is jr.StarterState.DEFERRED
    assert timers(bench) == {"deferral": 29.0}
    bench.now_s = 129.5
    bench.tell(TimerFired(key="deferral"))
    assert jr.Start() in bench.out


def test_it_looks_at_the_wall_clock_every_minute() -> None:
    bench = deferred(1000)
    bench.tell(jr.Prepared())
    assert timers(bench) == {"deferral": 60.0}
    bench.now_s = 160.0
    bench.tell(TimerFired(key="deferral"))
    assert timers(bench) == {"deferral": 60.0}
    bench.now_s = 1030.0  # someone has set the clock
    bench.tell(TimerFired(key="deferral"))
    assert jr.Start() in bench.out


@pytest.mark.parametrize(("window_s", "starts"), [(0, False), (4, False), (5, True), (100, True)])
def test_a_run_that_is_late_begins_within_its_window_only(window_s: float, starts: bool) -> None:
    bench = deferred(96, window_s)
    bench.tell(jr.Prepared())
    assert (jr.Start() in bench.out) is starts
    if not starts:
        (exited,) = bench.said()
        assert (exited.cause, exited.hold_code) == ("hold", 20)
        assert "5 seconds after its time" in exited.reason


def test_a_clock_set_far_ahead_makes_a_waiting_run_late() -> None:
    bench = deferred(1000, 10)
    bench.tell(jr.Prepared())
    bench.now_s = 5000.0
    bench.tell(TimerFired(key="deferral"))
    (exited,) = bench.said()
    assert (exited.cause, exited.hold_code) == ("hold", 20)


def test_a_waiting_run_goes_at_once_when_it_has_to() -> None:
    bench = deferred(1000)
    bench.tell(jr.Prepared())
    bench.tell(StopRun(run_id=RUN, how="vacate", reason="the owner"))
    (exited,) = bench.said()
    assert (exited.cause, bench.run.state) == ("evicted", jr.StarterState.ENDED)
    bench.tell(TimerFired(key="deferral"))
    assert bench.out == []


def test_a_waiting_run_that_is_suspended_stands_still_from_its_first_moment() -> None:
    bench = deferred(110)
    bench.tell(jr.Prepared())
    bench.tell(SuspendRun(run_id=RUN))
    assert jr.Freeze() not in bench.out
    bench.now_s = 110.0
    bench.tell(TimerFired(key="deferral"))
    bench.tell(jr.Began(7, "/scratch"))
    assert jr.Freeze() in bench.out


@pytest.mark.parametrize("value", ["true", "-1", '"noon"', "error", "1e300"])
def test_a_time_that_is_none_is_the_jobs_fault(value: str) -> None:
    with pytest.raises(BadJob, match="DeferralTime"):
        read_spec(ClassAd.from_text(f"{JOB}DeferralTime = {value}\n"))
