"""Programs of the site around a run: which a job has, and what their answers mean."""

from __future__ import annotations

from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.starter.hooks import (
    HookAnswer,
    Hooks,
    HookSettings,
    ad_at_end,
    ad_while_running,
    exit_word,
    prepared,
)
from condor_actors.cores.starter.job_run import JobRun
from condor_actors.cores.starter.run_events import Began, CloseRun, StarterState, StartFailed
from condor_actors.cores.starter.run_spec import BadJob, read_spec
from condor_actors.messages.run import RunBegan, StopRun, Usage

JOB = {"ClusterId": 1, "ProcId": 0, "Cmd": "/bin/true", "Arguments": "old", "Environment": "A=1", "Owner": "alice"}


def outcome(printed: str = "", job: dict[str, Any] | None = None, **answer: Any) -> Any:
    ad = ClassAd(JOB if job is None else job)
    return prepared(HookAnswer(printed=printed.encode(), **answer), ad, read_spec(ad), "ATLAS_HOOK_PREPARE_JOB")


def test_which_hooks_a_job_has() -> None:
    one, two = Hooks(keyword="ONE", prepare="/one"), Hooks(keyword="TWO", exit="/two")
    hooks = {"ONE": one, "TWO": two}
    named, none, wrong = ClassAd({"HookKeyword": "one"}), ClassAd(), ClassAd({"HookKeyword": "other"})
    settings = HookSettings(hooks=hooks)
    assert [settings.of_job(ad) for ad in (named, none, wrong)] == [one, None, None]
    settings = HookSettings(hooks=hooks, default="two")
    assert [settings.of_job(ad) for ad in (named, none, wrong)] == [one, two, two]
    settings = HookSettings(hooks=hooks, forced="Two")
    assert [settings.of_job(ad) for ad in (named, none, wrong)] == [two, two, two]
    assert HookSettings(forced="one").of_job(named) is None


def test_what_it_prints_changes_how_the_program_is_started() -> None:
    found = outcome('# chosen\nCmd = "/usr/bin/java"\nArgs = "a b"\nEnv = "B=2;C=3"\nMachine = "x"\n')
    assert (found.spec.program, found.spec.arguments, found.spec.environment) == (
        "/usr/bin/java", ("a", "b"), {"B": "2", "C": "3"})
    assert (found.problem, found.ignored) == ("", ("Machine",))
    found = outcome("Arguments = \"'one two' three\"\n")
    assert (found.spec.program, found.spec.arguments) == ("condor_exec.exe", ("one two", "three"))
    assert outcome("").spec is None
    assert outcome("Owner = \"root\"\n").ignored == ("Owner",)


@pytest.mark.parametrize(("answer", "problem", "holds"), [
    ({"status": 3, "said": b"no mount\n"}, "failed with status 3: no mount", True),
    ({"status": 1, "printed": 'HookStatusMessage = "disk"\n'}, "failed with status 1: disk", True),
    ({"printed": "HookStatusCode = 300\n"}, "failed with status 300", False),
    ({"printed": "HookStatusCode = 299\n"}, "failed with status 299", True),
    ({"status": -9, "printed": "HookStatusCode = 0\n"}, "failed with signal 9", True),
    ({"problem": "/x: cannot be executed"}, "cannot be run: /x: cannot be executed", True),
    ({"late": True, "most_s": 60.0, "status": -9}, "did not end within 60 s", True),
    ({"is_cut": True}, "printed more than 64 KiB", True),
    ({"printed": "hello\n"}, "a line that is no attribute: 'hello'", True),
    ({"printed": "A = (1\n"}, "a line that is no attribute: 'A = (1'", True),
])  # fmt: skip
def test_what_keeps_the_job_from_beginning(answer: dict[str, Any], problem: str, holds: bool) -> None:
    found = outcome(**answer)
    assert found.problem.startswith("the hook ATLAS_HOOK_PREPARE_JOB ")
    assert problem in found.problem
    assert found.holds is holds


def test_its_own_status_counts_for_less_than_what_it_says() -> None:
    assert outcome("HookStatusCode = 0\n", status=5).problem == ""
    assert "status 5" in outcome("HookStatusCode = -1\n", status=5).problem


def test_what_makes_no_job_of_it_is_refused() -> None:
    with pytest.raises(BadJob, match="Arguments"):
        outcome("Arguments = \"'\"\n")


def run_of(**ad: Any) -> JobRun:
    run = JobRun("1.0#1", read_spec(ClassAd({**JOB, **ad})), lease_s=100.0)
    run.start(0.0, missing=False)
    return run


def test_what_the_hook_at_the_end_is_told() -> None:
    run = run_of()
    run.began = RunBegan(run_id="1.0#1", when_s=50.0, pid=7, scratch_dir="/s")
    run.pid, run.status = 7, (3, -1, False)
    usage = Usage(user_cpu_s=1.5, system_cpu_s=0.5, wall_s=9.0, memory_kib=10, peak_memory_kib=20, processes=2)
    ad = ad_while_running(ClassAd(JOB), run, usage)
    assert [ad[name] for name in ("JobState", "JobPid", "NumPids", "JobStartDate", "ImageSize")] == [
        "Running", 7, 2, 50, 20]
    ad = ad_at_end(ClassAd(JOB), run, usage)
    assert [ad[name] for name in ("ExitBySignal", "ExitCode", "JobDuration", "ExitReason", "Cmd")] == [
        False, 3, 9.0, "exited normally", "/bin/true"]
    run.status = (-1, 11, False)
    ad = ad_at_end(ClassAd(JOB), run, usage)
    assert (ad["ExitBySignal"], ad["ExitSignal"], "ExitCode" in ad) == (True, 11, False)


@pytest.mark.parametrize(("cause", "how", "word"), [
    ("exited", "", "exit"), ("killed", "remove", "remove"), ("killed", "hold", "hold"), ("hold", "", "hold"),
    ("evicted", "vacate", "evict"), ("evicted", "", "evict"), ("killed", "", "evict"),
])  # fmt: skip
def test_the_word_for_an_end(cause: str, how: str, word: str) -> None:
    run = run_of()
    run.cause = cause
    run.stopping = StopRun(run_id="1.0#1", how=how, reason="") if how else None
    assert exit_word(run) == word


def test_a_start_that_was_given_up_for_one_who_wanted_it_to_go_is_no_failure() -> None:
    for event, cause in ((StopRun(run_id="1.0#1", how="remove", reason="condor_rm"), "killed"),
                         (CloseRun(grace_s=0.0, reason="the owner"), "evicted")):
        run = run_of()
        run.state = StarterState.STARTING
        run.handle(event, 1.0)
        assert run.state is StarterState.STARTING
        run.handle(StartFailed("it was to go before it began", 0), 2.0)
        assert run.exited is not None
        assert (run.exited.cause, run.exited.reason, run.exited.hold_code) == (cause, event.reason, 0)
    run = run_of()
    run.state = StarterState.STARTING
    run.handle(StartFailed("tried elsewhere", 0), 2.0)
    assert run.exited is not None
    assert run.exited.cause == "start-failed"
    assert Began(1, "/s").pid == 1
