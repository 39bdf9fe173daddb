"""The shadow of a standard-universe job: what ends a run, what is known of it, and that nothing is run twice."""

from __future__ import annotations

from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.shadow.shadow_events import InputsReady, Log, Report, ShadowState
from condor_actors.cores.shadow.shadow_run import NOTICE_S
from condor_actors.cores.shadow.standard_run import (
    Checkpointed,
    CheckpointFacts,
    CloseHome,
    HomeEnded,
    HomeFailed,
    HomeOpen,
    HomeProblem,
    HomeStatistics,
    NotTaken,
    OpenHome,
    ProgramExited,
    StandardRun,
)
from condor_actors.effects import Answer, Ask, Send, SetTimer
from condor_actors.messages.codes import JobEventType
from condor_actors.messages.envelope import AskFailed, PeerDown, TimerFired
from condor_actors.messages.run import (
    Activated,
    CheckpointRun,
    InputsSent,
    Reattached,
    RunBegan,
    RunExited,
    StopRun,
    Usage,
)
from condor_actors.messages.shadow_host import RunEnded, StartRun

JOB = ClassAd({"ClusterId": 7, "ProcId": 0, "JobUniverse": 1, "Cmd": "/bin/x", "Iwd": "/", "NumCkpts": 2,
               "CumulativeRemoteUserCpu": 90.0, "CumulativeLocalSysCpu": 0.5})
FACTS = CheckpointFacts(digest="ab", generation="1.1", size_bytes=1 << 20, stored_bytes=1 << 19, sent_bytes=1 << 18,
                        cpu_level=3, threads=2, took_s=0.5)


class Shadow:
    """A core with its effects, the time standing still."""

    def __init__(self, reattach: bool = False, exited: int | None = None) -> None:
        order = StartRun(run_id="7.0#1", job_ad=JOB.to_bytes(), claim_id="c", secret="s", starter_node="<127.0.0.1:1>",
                         slot_name="slot1@h", slot_ad=b"", lease_s=2400.0, reattach=reattach)
        self.core = StandardRun(order, JOB.copy(), "key", exited)
        self.done: list[Any] = list(self.core.start(100.0))

    def tell(self, *events: Any) -> list[Any]:
        out: list[Any] = []
        for event in events:
            out += self.core.handle(event, 100.0)
        self.done += out
        return out

    def running(self) -> Shadow:
        self.tell(InputsReady((), transfers=False), Answer("activate", Activated(run_id="7.0#1")), HomeOpen(False),
                  RunBegan(run_id="7.0#1", when_s=100.0, pid=9, scratch_dir="/d"))
        assert self.core.state is ShadowState.RUNNING
        return self

    def ended(self) -> RunEnded:
        found = [each.message for each in self.done if isinstance(each, Report) and isinstance(each.message, RunEnded)]
        assert len(found) == 1
        return found[0]

    def sent(self, kind: type) -> list[Any]:
        return [each.message for each in self.done if isinstance(each, (Send, Ask)) and isinstance(each.message, kind)]


def exited(cause: str, **values: Any) -> RunExited:
    return RunExited(run_id="7.0#1", cause=cause, usage=Usage(user_cpu_s=9.5, system_cpu_s=0.5, wall_s=10.0),
                     when_s=100.0, **values)


def test_home_is_open_before_the_starter_begins() -> None:
    shadow = Shadow()
    assert OpenHome() in shadow.tell(InputsReady((), transfers=False), Answer("activate", Activated(run_id="7.0#1")))
    assert not shadow.sent(InputsSent)
    shadow.tell(HomeOpen(False))
    assert len(shadow.sent(InputsSent)) == 1


def test_an_exit_is_told_when_home_has_said_its_last_words() -> None:
    shadow = Shadow().running()
    shadow.tell(ProgramExited(7), exited("exited", exit_code=7))
    assert CloseHome() in shadow.done
    shadow.tell(HomeStatistics(calls=5, local_cpu_s=0.5), HomeEnded("over"))
    ended = shadow.ended()
    ad = ClassAd.from_bytes(ended.attributes)
    assert (ended.outcome, ad["ExitCode"], ad["NumRemoteSysCalls"]) == ("exited", 7, 5)
    assert ad["Leverage"] == 100.0  # (90 + 10) / (0.5 + 0.5)


def test_a_program_that_could_not_be_started_is_held_with_the_reason() -> None:
    shadow = Shadow().running()
    shadow.tell(ProgramExited(115, 13, "Permission denied"), exited("exited", exit_code=115), HomeEnded(""))
    assert shadow.ended().outcome == "hold"
    assert "Permission denied" in shadow.ended().reason


def test_a_checkpoint_is_in_the_ad_and_in_the_log() -> None:
    shadow = Shadow().running()
    shadow.tell(Checkpointed(FACTS))
    assert any(isinstance(each, Log) and each.event == 3 for each in shadow.done)
    ad = shadow.core.attributes
    assert (ad["NumCkpts"], ad["CkptCpuLevel"], ad["LastCkptTime"]) == (3, 3, 100)
    shadow.tell(Checkpointed(FACTS, last=True), exited("evicted", reason="owner"), HomeEnded(""))
    assert shadow.ended().outcome == "evicted"
    assert ClassAd.from_bytes(shadow.ended().attributes)["VacatedWithCheckpoint"] is True


def test_a_checkpoint_that_helpers_prevent_is_asked_for_again() -> None:
    shadow = Shadow().running()
    shadow.tell(CheckpointRun(run_id="7.0#1"), NotTaken(11, "helpers"), TimerFired(key="checkpoint"))
    assert len(shadow.sent(CheckpointRun)) == 2
    shadow.tell(NotTaken(28, "no space"), TimerFired(key="checkpoint"))
    assert len(shadow.sent(CheckpointRun)) == 2


def test_a_write_that_was_lost_is_in_the_log() -> None:
    shadow = Shadow().running()
    shadow.tell(HomeProblem("/home/ann/out: a write failed: No space left on device"))
    (log,) = [each for each in shadow.done if isinstance(each, Log) and each.event == JobEventType.GENERIC]
    assert log.facts["Info"] == "/home/ann/out: a write failed: No space left on device"


def test_a_stream_that_breaks_ends_the_run_without_a_lease() -> None:
    shadow = Shadow().running()
    shadow.tell(PeerDown(node="<127.0.0.1:1>", reason="reset"), HomeEnded("the stream ended"))
    assert shadow.ended().outcome == "lost"
    shadow = Shadow().running()
    shadow.tell(HomeEnded("the stream ended"), PeerDown(node="<127.0.0.1:1>", reason="reset"))
    assert shadow.ended().outcome == "lost"


@pytest.mark.parametrize(("lasts", "lease_s"), [(False, 60.0), (True, 2400.0 + NOTICE_S)])
def test_a_run_out_of_reach_waits_longer_where_its_stream_outlives_connections(lasts: bool, lease_s: float) -> None:
    shadow = Shadow()
    shadow.tell(InputsReady((), transfers=False), Answer("activate", Activated(run_id="7.0#1")),
                HomeOpen(False, lasts), RunBegan(run_id="7.0#1", when_s=100.0, pid=9, scratch_dir="/d"))
    out = shadow.tell(PeerDown(node="<127.0.0.1:1>", reason="reset"))
    assert [each.delay_s for each in out if isinstance(each, SetTimer) and each.key == "lease"][-1] == lease_s


def test_a_stream_that_breaks_while_the_link_lives_waits_for_the_starters_word() -> None:
    shadow = Shadow().running()
    shadow.tell(HomeEnded("cut"), exited("killed", reason="the stream home ended"))
    assert shadow.ended().outcome == "evicted"
    shadow = Shadow().running()
    shadow.tell(HomeEnded("cut"), TimerFired(key="word"))
    assert shadow.ended().outcome == "lost"


def test_an_exit_that_only_home_knows_is_an_exit() -> None:
    shadow = Shadow().running()
    shadow.tell(ProgramExited(3), PeerDown(node="<127.0.0.1:1>", reason="reset"), HomeEnded("cut"))
    assert shadow.ended().outcome == "exited"
    assert ClassAd.from_bytes(shadow.ended().attributes)["ExitCode"] == 3
    shadow = Shadow().running()
    shadow.tell(ProgramExited(3), exited("killed"), HomeEnded("cut"))
    assert shadow.ended().outcome == "exited"


def test_an_exit_that_a_dead_shadow_host_has_noted_is_never_run_again() -> None:
    shadow = Shadow(reattach=True, exited=5)
    assert shadow.ended().outcome == "exited"
    assert ClassAd.from_bytes(shadow.ended().attributes)["ExitCode"] == 5


def test_a_new_shadow_host_ends_the_run_of_the_dead_one() -> None:
    shadow = Shadow(reattach=True)
    shadow.tell(Answer("reattach", Reattached(run_id="7.0#1", pid=9)))
    assert [each.how for each in shadow.sent(StopRun)] == ["fast"]
    shadow.tell(exited("killed"))
    assert shadow.ended().outcome == "evicted"


def test_what_the_starter_says_of_an_exit_counts_though_home_is_new() -> None:
    shadow = Shadow(reattach=True)
    shadow.tell(Answer("reattach", Reattached(run_id="7.0#1", pid=9, ended=True)), exited("exited", exit_code=4))
    assert shadow.ended().outcome == "exited"
    assert ClassAd.from_bytes(shadow.ended().attributes)["ExitCode"] == 4


def test_a_home_that_cannot_be_opened_is_tried_elsewhere_or_held() -> None:
    for event, outcome in ((HomeFailed("no route"), "failed"), (HomeFailed("/x: permission", 7, 13), "hold")):
        shadow = Shadow()
        shadow.tell(InputsReady((), transfers=False), Answer("activate", Activated(run_id="7.0#1")), event)
        assert shadow.ended().outcome == outcome
        assert shadow.sent(StopRun)


def test_an_activation_that_fails_is_a_failed_run() -> None:
    shadow = Shadow()
    shadow.tell(InputsReady((), transfers=False), Answer("activate", AskFailed(reason="unreachable")))
    assert shadow.ended().outcome == "failed"
