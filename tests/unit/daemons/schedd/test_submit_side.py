"""The submit side on the in-memory network: jobs from submission to history, with processes that die on the way."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import fail
from twisted.internet.error import ConnectionLost

from condor_actors.classads import ClassAd
from condor_actors.cores.shadow.shadow_events import ShadowState
from condor_actors.cores.shadow.shadow_run import ShadowRun
from condor_actors.effects import Answer
from condor_actors.messages.claim import ClaimRevoked, ClaimsKept, ClaimsRenewed
from condor_actors.messages.envelope import Address, AskFailed, Done, Refused, TimerFired
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.negotiate import NegotiateRequests, RequestCycle
from condor_actors.messages.queue import ActionResult
from condor_actors.messages.run import RunProgress, Usage
from condor_actors.messages.shadow_host import StartRun
from condor_actors.transfer.manifest import digest_bytes
from tests.harness.submit_side import EXECUTE, SCHEDD, SLOT_AD, USER, NoBulk, SubmitPool


@pytest.fixture
def pool(tmp_path: Path) -> SubmitPool:
    return SubmitPool(tmp_path)


def entry(path: str, data: bytes) -> FileEntry:
    return FileEntry(path=path, size_bytes=len(data), digest=digest_bytes(data), inline=data)


def test_a_job_runs_and_leaves_for_the_history(pool: SubmitPool) -> None:
    cluster = pool.submit(b'UserLog = "job.log"\nOut = "out"\nErr = "err"\n')
    assert "Job submitted from host" in (pool.home / "job.log").read_text()
    assert pool.status(cluster) == 1
    pool.match()
    assert pool.status(cluster) == 2
    run_id = f"{cluster}.0#1"
    pool.execute.begin(run_id)
    pool.run()
    pool.execute.finish(run_id, exit_code=3, outputs=(entry("_condor_stdout", b"hello\n"), entry("_condor_stderr", b""),
                                                      entry("result", b"42")))
    pool.run()
    assert pool.status(cluster) == 0
    (job,) = pool.history()
    assert (job.get_int("ExitCode"), job.get_int("JobStatus"), job.get_int("NumJobStarts")) == (3, 4, 1)
    assert (pool.home / "out").read_bytes() == b"hello\n"
    assert (pool.home / "err").read_bytes() == b""
    assert (pool.home / "result").read_bytes() == b"42"
    log = (pool.home / "job.log").read_text()
    assert [line[:3] for line in log.splitlines() if line[:3].isdigit() and "(" in line[:6]] == [
        "000", "001", "006", "040", "040", "005"]
    assert "return value 3" in log
    assert pool.execute.runs == {}
    assert len(pool.execute.released) == 1


def test_a_kept_checkpoint_stays_until_the_outputs_are_home(pool: SubmitPool, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = pool.submit()
    kept = pool.folder / "spool" / "owners" / USER / "evicted" / f"{cluster}.0" / "state"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"a week of work")
    big = FileEntry(path="big", size_bytes=1 << 20, digest="0" * 64)
    monkeypatch.setattr(NoBulk, "fetch_file", lambda self, *args: fail(ConnectionLost()))
    pool.match()
    pool.execute.begin(f"{cluster}.0#1")
    pool.execute.finish(f"{cluster}.0#1", outputs=(big,))
    pool.run(10.0)
    assert pool.status(cluster) == 1
    assert kept.read_bytes() == b"a week of work"
    monkeypatch.undo()
    pool.match()
    pool.execute.begin(f"{cluster}.0#2")
    pool.execute.finish(f"{cluster}.0#2", outputs=(big,))
    pool.run()
    assert pool.status(cluster) == 0
    assert not kept.exists()


def test_a_claim_takes_the_next_job_at_once(pool: SubmitPool) -> None:
    cluster = pool.submit(procs=3)
    pool.match(1)
    for proc in range(3):
        run_id = f"{cluster}.{proc}#1"
        assert list(pool.execute.runs) == [run_id]
        pool.execute.begin(run_id)
        pool.execute.finish(run_id)
        pool.run()
    assert len(pool.execute.granted) == 1
    assert [job.get_int("ProcId") for job in pool.history()] == [2, 1, 0]


def test_a_claim_takes_no_job_once_its_worklife_is_over(pool: SubmitPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.harness.submit_side.SLOT_AD", SLOT_AD + b"ClaimWorklife = 100\n")
    cluster = pool.submit(procs=3)
    pool.match(1)
    for proc in range(2):
        pool.execute.begin(f"{cluster}.{proc}#1")
        pool.run(70.0)
        pool.execute.finish(f"{cluster}.{proc}#1")
        pool.run()
    assert [job.get_int("ProcId") for job in pool.history()] == [1, 0]
    assert pool.status(cluster, 2) == 1
    assert pool.execute.released == pool.execute.granted


def test_hold_release_remove_of_a_running_job(pool: SubmitPool) -> None:
    cluster = pool.submit(b'UserLog = "log"\n')
    pool.match()
    pool.execute.begin(f"{cluster}.0#1")
    assert pool.act("hold", cluster).results[0][2] is ActionResult.SUCCESS
    pool.run()
    assert pool.status(cluster) == 5
    assert pool.execute.runs == {}
    pool.act("release", cluster)
    assert pool.status(cluster) == 1
    pool.match()
    assert pool.status(cluster) == 2
    pool.act("remove", cluster)
    pool.run()
    assert pool.status(cluster) == 0
    (job,) = pool.history()
    assert job.get_int("JobStatus") == 3
    text = (pool.home / "log").read_text()
    for words in ("Job was held", "Job was released", "Job was aborted"):
        assert words in text
    assert text.count("Job was evicted.") == 2, "the run that the hold has ended, and that which the removal has"
    assert text.index("Job was evicted.") < text.index("Job was held")
    assert text.index("Job was released") < text.rindex("Job was evicted.") < text.index("Job was aborted")
    assert f"\tReason: {job.get_str('RemoveReason')}\n" in text


def test_the_schedd_dies_and_takes_its_runs_up_again(pool: SubmitPool) -> None:
    cluster = pool.submit()
    pool.match()
    pool.execute.begin(f"{cluster}.0#1")
    pool.run()
    pool.kill_schedd()
    pool.run(3.0)
    pool.start_schedd()
    pool.run(10.0)
    assert pool.status(cluster) == 2
    pool.execute.finish(f"{cluster}.0#1", exit_code=0)
    pool.run()
    assert [job.get_int("NumShadowStarts") for job in pool.history()] == [1]


def test_a_run_that_ends_without_a_schedd_is_recorded_once(pool: SubmitPool) -> None:
    cluster = pool.submit()
    pool.match()
    pool.execute.begin(f"{cluster}.0#1")
    pool.run()
    pool.kill_schedd()
    pool.execute.finish(f"{cluster}.0#1", exit_code=5)
    pool.run(3.0)
    pool.start_schedd()
    pool.run(10.0)
    assert [job.get_int("ExitCode") for job in pool.history()] == [5]
    assert pool.execute.runs == {}


def test_a_story_outlives_the_schedd(pool: SubmitPool) -> None:
    cluster = pool.submit()
    pool.run(5.0)
    pool.match()
    pool.execute.begin(f"{cluster}.0#1")
    pool.run(5.0)
    pool.kill_schedd()
    pool.start_schedd()
    pool.run(5.0)
    pool.execute.finish(f"{cluster}.0#1", exit_code=3)
    pool.run()
    assert pool.schedd.actor is not None
    story = [line.split(" ", 1)[1] for line in pool.schedd.actor.story(f"{cluster}.0")]
    assert story[0].startswith("submitted by")
    assert story[-1] == "completed"
    assert "run 1 ended: the program has exited with status 3" in story
    pool.kill_schedd()
    pool.start_schedd()
    assert pool.schedd.actor is not None
    story = [line.split(" ", 1)[1] for line in pool.schedd.actor.story(f"{cluster}.0")]
    assert "completed, exit code 3" in story
    assert pool.schedd.actor.story("nonsense") == ()


def test_the_shadow_host_dies_and_another_takes_the_run_up(pool: SubmitPool) -> None:
    cluster = pool.submit(b'UserLog = "log"\n')
    pool.match()
    pool.execute.begin(f"{cluster}.0#1")
    pool.run()
    pool.kill_host(pool.owner_host_pid())
    pool.run(5.0)
    assert pool.status(cluster) == 2
    pool.execute.finish(f"{cluster}.0#1", exit_code=7)
    pool.run()
    assert [job.get_int("ExitCode") for job in pool.history()] == [7]
    assert len(pool.execute.activations) == 1


def test_both_die_while_the_run_ends(pool: SubmitPool) -> None:
    cluster = pool.submit(b'UserLog = "log"\n')
    pool.match()
    pool.execute.begin(f"{cluster}.0#1")
    pool.run()
    pid = pool.owner_host_pid()
    pool.kill_schedd()
    pool.kill_host(pid)
    pool.execute.finish(f"{cluster}.0#1", exit_code=9)
    pool.run(3.0)
    pool.start_schedd()
    pool.run(30.0)
    assert [job.get_int("ExitCode") for job in pool.history()] == [9]
    assert (pool.home / "log").read_text().count("Job terminated.\n") == 1


def test_the_link_to_the_starter_breaks(pool: SubmitPool) -> None:
    cluster = pool.submit(b'UserLog = "log"\n')
    pool.match()
    pool.execute.begin(f"{cluster}.0#1")
    pool.run()
    host = f"<host:{pool.owner_host_pid()}>"
    pool.net.cut(host, "<execute:1>")
    pool.run(5.0)
    pool.net.heal(host, "<execute:1>")
    pool.run(20.0)
    text = (pool.home / "log").read_text()
    assert "Job disconnected" in text
    assert "Job reconnected" in text
    pool.execute.finish(f"{cluster}.0#1")
    pool.run()
    assert len(pool.history()) == 1


def test_a_starter_that_is_gone_means_another_run(pool: SubmitPool) -> None:
    cluster = pool.submit(b'UserLog = "log"\n')
    pool.match()
    pool.execute.begin(f"{cluster}.0#1")
    pool.run()
    host = f"<host:{pool.owner_host_pid()}>"
    pool.net.cut(host, "<execute:1>")
    pool.execute.runs.clear()
    pool.run(5.0)
    pool.net.heal(host, "<execute:1>")
    pool.run(30.0)
    assert pool.status(cluster) == 1
    assert "reconnection failed" in (pool.home / "log").read_text()
    pool.match()
    assert list(pool.execute.runs) == [f"{cluster}.0#2"]


def test_a_startd_that_moved_is_found_again_and_forgets_what_is_not_held(pool: SubmitPool) -> None:
    pool.submit()
    pool.match()
    claim_id = pool.execute.granted[0]
    answers: list[object] = []
    question = ClaimsKept(claims=((claim_id, "s" + claim_id), ("c", "x"), (claim_id, "wrong")), startd="<execute:2>")
    pool.execute.context.ask(Address("<schedd:1>", "schedd"), question, timeout_s=5.0,
                             then=lambda answer: answers.append(answer.message))
    pool.run()
    assert answers == [ClaimsRenewed(gone=("c", claim_id))]
    assert [row.startd for row in pool.store.load().claims] == ["<execute:2>"]


def test_a_claim_is_given_back_though_its_startd_was_not_there(pool: SubmitPool) -> None:
    cluster = pool.submit()
    pool.match()
    pool.execute.begin(f"{cluster}.0#1")
    pool.run()
    pool.net.cut("<schedd:1>", "<execute:1>")
    pool.execute.finish(f"{cluster}.0#1")
    pool.run(40.0)
    assert pool.execute.released == []
    pool.net.heal("<schedd:1>", "<execute:1>")
    pool.run(40.0)
    assert pool.execute.released == pool.execute.granted


def avoided(pool: SubmitPool) -> tuple[str, ...]:
    """The startds that the schedd wants no matches with."""
    found: tuple[str, ...] = pool.ask(NegotiateRequests(cycle=9, submitter=f"{USER}@test"), pool.central).avoided
    return found


def cycles_wished(pool: SubmitPool) -> int:
    return sum(isinstance(each, RequestCycle) for each in pool.central.messages)


def test_a_startd_that_does_not_answer_is_avoided_until_it_does(pool: SubmitPool) -> None:
    cluster = pool.submit()
    pool.net.silence(SCHEDD, EXECUTE)
    pool.match()
    pool.run(28.0)
    assert avoided(pool) == ()
    before = cycles_wished(pool)
    pool.run(3.0)
    assert avoided(pool) == (EXECUTE,)
    assert cycles_wished(pool) == before + 1, "there may be other slots for the job"
    assert pool.status(cluster) == 1
    pool.net.heal(SCHEDD, EXECUTE)
    pool.run(31.0)
    assert avoided(pool) == ()
    assert cycles_wished(pool) == before + 2, "its slots are good again"
    pool.match()
    assert len(pool.execute.runs) == 1


def test_a_match_with_a_startd_in_doubt_is_given_up_soon(pool: SubmitPool) -> None:
    pool.submit(procs=2)
    pool.net.silence(SCHEDD, EXECUTE)
    pool.match(1)
    pool.run(31.0)
    pool.match()
    before = cycles_wished(pool)
    pool.run(5.0)
    assert cycles_wished(pool) == before + 1


def test_a_run_that_is_lost_puts_its_startd_in_doubt_until_it_answers(pool: SubmitPool) -> None:
    cluster = pool.submit(b"JobLeaseDuration = 20\n")
    pool.match()
    pool.execute.begin(f"{cluster}.0#1")
    pool.run()
    host = f"<host:{pool.owner_host_pid()}>"
    pool.net.silence(SCHEDD, EXECUTE)
    pool.net.cut(host, EXECUTE)
    pool.run(171.0)
    assert pool.status(cluster) == 1
    assert avoided(pool) == (EXECUTE,), "nobody has to find out first that its claim is not granted"
    pool.net.heal(host, EXECUTE)
    pool.net.heal(SCHEDD, EXECUTE)
    pool.run(31.0)
    assert avoided(pool) == ()
    pool.match()
    assert list(pool.execute.runs)[-1] == f"{cluster}.0#2"


def test_doubts_end_with_the_ads_of_the_machine(pool: SubmitPool) -> None:
    pool.submit()
    pool.net.silence(SCHEDD, EXECUTE)
    pool.match()
    pool.run(31.0)
    assert avoided(pool) == (EXECUTE,)
    pool.run(30 * 40.0)
    assert avoided(pool) == ()
    assert not pool.schedd.system.actor("schedd").core.claims.unreachable.named()  # type: ignore[union-attr]


def test_a_claim_that_is_over_ends_a_run_nobody_can_reach(pool: SubmitPool) -> None:
    cluster = pool.submit(b'UserLog = "log"\n')
    pool.match()
    pool.execute.begin(f"{cluster}.0#1")
    pool.run()
    host = f"<host:{pool.owner_host_pid()}>"
    pool.net.cut(host, "<execute:1>")
    pool.run()
    revoked = ClaimRevoked(claim_id=pool.execute.granted[0], reason="the starter host died", final=True)
    pool.execute.context.tell(Address("<schedd:1>", "schedd"), revoked)
    pool.run()
    assert pool.status(cluster) == 1
    assert "the starter host died" in (pool.home / "log").read_text()


def test_a_run_is_freed_though_the_host_dies_before_it_hears_the_verdict(pool: SubmitPool) -> None:
    cluster = pool.submit()
    pool.match()
    pool.execute.begin(f"{cluster}.0#1")
    pool.run()
    pid = pool.owner_host_pid()
    pool.net.latency_s = 0.01
    pool.net.clock.callLater(0.0, pool.execute.finish, f"{cluster}.0#1")
    until_recorded(pool)
    pool.kill_host(pid)
    assert pool.execute.runs
    pool.run(10.0)
    assert pool.execute.runs == {}


def until_recorded(pool: SubmitPool) -> None:
    """Step by step, to the moment when the end is committed and nobody has heard of it."""
    net = pool.net
    for _ in range(1000):
        if pool.store.load().jobs == ():
            return
        due = min(call.getTime() for call in net.clock.getDelayedCalls())
        net.clock.advance(max(0.0, due - net.clock.seconds()))
    raise AssertionError("the job never ended")


def test_a_host_without_work_is_dismissed_and_another_comes_when_needed(pool: SubmitPool) -> None:
    cluster = pool.submit()
    pool.match()
    pool.execute.begin(f"{cluster}.0#1")
    pool.execute.finish(f"{cluster}.0#1")
    pool.run()
    pid = pool.owner_host_pid()
    pool.run(3000.0)
    assert pid not in pool.processes.alive
    again = pool.submit()
    pool.match()
    pool.execute.begin(f"{again}.0#1")
    pool.execute.finish(f"{again}.0#1")
    pool.run()
    assert len(pool.history()) == 2


def test_a_schedd_that_stops_leaves_its_runs_to_the_next(pool: SubmitPool) -> None:
    cluster = pool.submit()
    pool.match()
    pool.execute.begin(f"{cluster}.0#1")
    pool.run()
    pool.schedd.stop(True)
    pool.net.crash("<schedd:1>")
    pool.run(5.0)
    assert list(pool.execute.runs) == [f"{cluster}.0#1"]
    pool.start_schedd()
    pool.run(10.0)
    pool.execute.finish(f"{cluster}.0#1")
    pool.run()
    assert [job.get_int("NumShadowStarts") for job in pool.history()] == [1]


def test_a_machine_that_answers_without_its_starter_host_has_lost_the_run() -> None:
    order = StartRun(run_id="1.0#1", job_ad=b"", claim_id="c", secret="s", starter_node="<e:1>", slot_name="slot1",
                     slot_ad=b"", lease_s=2400.0, reattach=True)
    run = ShadowRun(order, ClassAd(), "key")
    run.start(0.0)
    refused = AskFailed(reason="unreachable", text="nobody answers at <e:1>: Connection was refused by other side")
    silent = AskFailed(reason="unreachable", text="nobody answers at <e:1>: timed out")
    for number, answer in enumerate([refused, refused, refused, silent, refused, refused, refused]):
        run.handle(Answer("reattach", answer), float(number))
        assert run.state is ShadowState.APART
        run.handle(TimerFired(key="reattach"), number + 0.5)
    run.handle(Answer("reattach", refused), 10.0)
    assert run.ended is not None
    assert run.ended.outcome == "lost"


def test_a_gateway_that_refuses_connections_says_nothing_about_the_starter_host() -> None:
    order = StartRun(run_id="1.0#1", job_ad=b"", claim_id="c", secret="s", starter_node="<e%physics:1>",
                     slot_name="slot1", slot_ad=b"", lease_s=2400.0, reattach=True)
    run = ShadowRun(order, ClassAd(), "key")
    run.start(0.0)
    refused = AskFailed(reason="unreachable", text="nobody answers at <e%physics:1>: through the gateway "
                        "<10.0.0.9:9619>: Connection was refused by other side: 111: Connection refused.")
    for number in range(20):
        run.handle(Answer("reattach", refused), float(number))
        assert run.state is ShadowState.APART
        run.handle(TimerFired(key="reattach"), number + 0.5)


def test_a_piece_of_a_stream_that_finds_no_room_is_wanted_again(
        pool: SubmitPool, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = pool.submit(b'Out = "out"\nStreamOut = true\n')
    pool.match()
    pool.execute.begin(f"{cluster}.0#1")
    order, shadow = pool.execute.runs[f"{cluster}.0#1"]
    answers: list[Any] = []

    def send() -> None:
        piece = RunProgress(run_id=order.run_id, usage=Usage(), streams=(("out", 0, b"text"),))
        pool.execute.context.ask(shadow, piece, timeout_s=60.0, then=lambda answer: answers.append(answer.message))
        pool.run()

    def full(place: str, offset: int, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), place)

    with monkeypatch.context() as patch:
        patch.setattr("condor_actors.daemons.shadow.output_files._write_piece", full)
        send()
    send()
    assert isinstance(answers[0], Refused)
    assert answers[0].code == "busy"
    assert isinstance(answers[1], Done)
    assert (pool.home / "out").read_bytes() == b"text"
