"""Policies of jobs, limits of the schedd, and what becomes of failures, on the in-memory network."""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.actors.supervision import StoreUnavailable
from condor_actors.classads import ClassAd, parse_expression
from condor_actors.config import load_config
from condor_actors.cores.schedd.schedd_settings import SystemPolicy, schedd_settings
from condor_actors.messages.claim import RenewClaims
from condor_actors.messages.envelope import Done, Refused
from condor_actors.messages.queue import ActionResult, ActOnJobs, EditJobs, JobAction
from condor_actors.messages.spool import FinishSpooling, ListSpool, ReadSpool, SpoolChunk
from condor_actors.messages.submission import ReserveCluster
from tests.harness.submit_side import USER, SubmitPool


@pytest.fixture
def pool(tmp_path: Path) -> SubmitPool:
    return SubmitPool(tmp_path)


def run_once(pool: SubmitPool, run_id: str, **end: object) -> None:
    pool.match()
    assert list(pool.execute.runs) == [run_id]
    pool.execute.begin(run_id)
    pool.execute.finish(run_id, **end)  # type: ignore[arg-type]
    pool.run()


def test_on_exit_hold_with_its_reason_and_subcode(pool: SubmitPool) -> None:
    cluster = pool.submit(b'OnExitHold = ExitCode == 7\nOnExitHoldReason = "seven"\nOnExitHoldSubCode = 42\n')
    run_once(pool, f"{cluster}.0#1", exit_code=7)
    (job,) = pool.jobs()
    assert (job.get_int("JobStatus"), job.get_str("HoldReason")) == (5, "seven")
    assert (job.get_int("HoldReasonCode"), job.get_int("HoldReasonSubCode")) == (3, 42)


def test_on_exit_remove_runs_the_job_until_it_is_satisfied(pool: SubmitPool) -> None:
    cluster = pool.submit(b'OnExitRemove = NumJobCompletions > 2 || ExitCode =?= 0\nUserLog = "log"\n')
    for number in (1, 2, 3):
        run_once(pool, f"{cluster}.0#{number}", exit_code=1)
    (job,) = pool.history()
    assert (job.get_int("NumJobCompletions"), job.get_int("NumJobStarts"), job.get_int("JobStatus")) == (3, 3, 4)
    assert (pool.home / "log").read_text().count("Job terminated and was requeued") == 2


def test_periodic_hold_and_release(pool: SubmitPool) -> None:
    cluster = pool.submit(b"PeriodicHold = NumHolds =?= undefined && time() - QDate > 100\n"
                          b"PeriodicRelease = time() - EnteredCurrentStatus > 100\n")
    pool.run(90.0)
    assert pool.status(cluster) == 1
    pool.run(100.0)
    assert pool.status(cluster) == 5
    (job,) = pool.jobs()
    assert "PeriodicHold expression" in job.get_str("HoldReason")
    pool.run(240.0)
    assert pool.status(cluster) == 1


def test_periodic_remove_of_a_running_job(pool: SubmitPool) -> None:
    cluster = pool.submit(b"PeriodicRemove = JobStatus == 2 && time() - EnteredCurrentStatus > 60\n")
    pool.match()
    pool.execute.begin(f"{cluster}.0#1")
    pool.run(200.0)
    (job,) = pool.history()
    assert job.get_int("JobStatus") == 3
    assert pool.execute.runs == {}


def test_a_user_hold_is_not_released_by_policy(pool: SubmitPool) -> None:
    cluster = pool.submit(b"PeriodicRelease = true\n")
    pool.act("hold", cluster)
    pool.run(200.0)
    assert pool.status(cluster) == 5


def test_the_system_policy_holds(tmp_path: Path) -> None:
    policy = SystemPolicy(name="SYSTEM_PERIODIC_HOLD",
                          expression=parse_expression("JobStatus == 1 && time() - QDate > 10"),
                          reason=parse_expression('strcat("too old: ", ProcId)'), subcode=parse_expression("9"))
    pool = SubmitPool(tmp_path, hold_policies=(policy,))
    pool.submit()
    pool.run(100.0)
    (job,) = pool.jobs()
    assert (job.get_str("HoldReason"), job.get_int("HoldReasonCode"), job.get_int("HoldReasonSubCode")) == (
        "too old: 0", 26, 9)


@pytest.mark.parametrize(("ad", "status", "code", "subcode", "words"), [
    (b'PeriodicHold = 1\nPeriodicHoldReason = strcat("job ", ProcId)\nPeriodicHoldSubCode = ProcId + 3\n', 5, 3, 3,
     "job 0"),
    (b"PeriodicHold = JobStatus == 2 && RemoteWallClockTime > 100\n", 5, 3, 0, "PeriodicHold expression"),
    (b"PeriodicHold = (CurrentTime - EnteredCurrentStatus) > 100\nPeriodicHoldSubCode = 7\n", 5, 3, 7,
     "evaluated to TRUE"),
    (b"PeriodicHold = Nonsense > 3\n", 2, 0, 0, ""),
    (b"PeriodicHold = 0.5\n", 2, 0, 0, ""),
    (b"PeriodicRemove = RemoteWallClockTime > 100\n", 0, 0, 0, ""),
    (b"TimerRemove = QDate + 100\n", 0, 0, 0, ""),
])
def test_periodic_expressions_of_a_running_job(pool: SubmitPool, ad: bytes, status: int, code: int, subcode: int,
                                               words: str) -> None:
    cluster = pool.submit(ad)
    pool.match()
    pool.execute.begin(f"{cluster}.0#1")
    pool.run(180.0)
    assert pool.status(cluster) == status
    if status:
        (job,) = pool.jobs()
        assert (job.get_int("HoldReasonCode"), job.get_int("HoldReasonSubCode")) == (code, subcode)
        assert words in job.get_str("HoldReason")
        assert job.get_float("RemoteWallClockTime") <= 180.0


def test_periodic_vacate_runs_the_job_anew(pool: SubmitPool) -> None:
    cluster = pool.submit(b"PeriodicVacate = NumJobStarts == 1 && time() - JobCurrentStartDate > 60\n")
    pool.match()
    pool.execute.begin(f"{cluster}.0#1")
    pool.run(200.0)
    assert list(pool.execute.runs) == [f"{cluster}.0#2"]


def test_a_job_that_was_submitted_on_hold_is_released_by_its_policy(pool: SubmitPool) -> None:
    cluster = pool.submit(b"JobStatus = 5\nPeriodicRelease = time() - QDate > 100\n")
    pool.run(200.0)
    assert pool.status(cluster) == 1


def test_a_done_job_that_stays_is_removed_by_its_policy(pool: SubmitPool) -> None:
    cluster = pool.submit(b"LeaveJobInQueue = true\nPeriodicRemove = JobStatus == 4 && time() - CompletionDate > 100\n")
    run_once(pool, f"{cluster}.0#1")
    assert pool.status(cluster) == 4
    pool.run(200.0)
    assert pool.status(cluster) == 0


def test_named_system_policies_and_the_limit_of_releases(tmp_path: Path) -> None:
    config = load_config(files=[], environ={}, overrides={
        "SYSTEM_PERIODIC_HOLD_NAMES": "old big", "SYSTEM_PERIODIC_HOLD_old": "time() - EnteredCurrentStatus > 100",
        "SYSTEM_PERIODIC_HOLD_old_SUBCODE": "1", "SYSTEM_PERIODIC_HOLD_big": "RequestMemory > 1000",
        "SYSTEM_PERIODIC_HOLD_big_REASON": '"too big"', "SYSTEM_PERIODIC_HOLD_big_SUBCODE": "2",
        "SYSTEM_PERIODIC_RELEASE": "HoldReasonSubCode == 1 && time() - EnteredCurrentStatus > 100",
        "SYSTEM_MAX_RELEASES": "2"})
    read = schedd_settings(config, machine="test")
    pool = SubmitPool(tmp_path, hold_policies=read.hold_policies, release_policies=read.release_policies,
                      max_releases=read.max_releases)
    cluster = pool.submit(procs=2, proc_ads=(b"", b"RequestMemory = 2000\n"))
    pool.run(80.0)
    small, big = sorted(pool.jobs(), key=lambda job: job.get_int("ProcId"))
    assert small.get_int("JobStatus") == 1
    assert (big.get_str("HoldReason"), big.get_int("HoldReasonSubCode")) == ("too big", 2)
    pool.run(2000.0)
    (job,) = pool.jobs(ids=((cluster, 0),))
    assert (job.get_int("JobStatus"), job.get_int("NumHolds")) == (5, 2)
    assert "SYSTEM_PERIODIC_HOLD_old expression" in job.get_str("HoldReason")


@pytest.mark.parametrize(("ad", "status", "code", "subcode", "words"), [
    (b'OnExitHold = ExitCode =!= 0\nOnExitHoldReason = strcat("code ", ExitCode)\nOnExitHoldSubCode = ExitCode\n',
     5, 3, 3, "code 3"),
    (b"OnExitHold = 1\n", 5, 3, 0, "OnExitHold expression '1' evaluated to TRUE"),
    (b"OnExitHold = Nonsense\n", 0, 0, 0, ""),
    (b"OnExitRemove = 0\n", 2, 0, 0, ""),
    (b"OnExitRemove = ExitBySignal\n", 2, 0, 0, ""),
    (b"OnExitRemove = Nonsense\n", 0, 0, 0, ""),
    (b"PeriodicHold = ExitCode =?= 3\nOnExitHold = true\nOnExitHoldSubCode = 9\n", 5, 3, 0, "PeriodicHold expression"),
    (b"PeriodicRemove = ExitCode =?= 3\nOnExitHold = true\n", 0, 0, 0, ""),
])
def test_what_is_asked_when_a_job_exits(pool: SubmitPool, ad: bytes, status: int, code: int, subcode: int,
                                        words: str) -> None:
    cluster = pool.submit(ad)
    run_once(pool, f"{cluster}.0#1", exit_code=3)
    assert pool.status(cluster) == status
    if status == 5:
        (job,) = pool.jobs()
        assert (job.get_int("HoldReasonCode"), job.get_int("HoldReasonSubCode")) == (code, subcode)
        assert words in job.get_str("HoldReason")


def test_allowed_execute_duration(pool: SubmitPool) -> None:
    cluster = pool.submit(b"AllowedExecuteDuration = 30\n")
    pool.match()
    pool.execute.begin(f"{cluster}.0#1")
    pool.run(150.0)
    (job,) = pool.jobs()
    assert (job.get_int("JobStatus"), job.get_int("HoldReasonCode")) == (5, 47)


def test_leave_in_queue(pool: SubmitPool) -> None:
    cluster = pool.submit(b"LeaveJobInQueue = JobStatus == 4 && time() - CompletionDate < 300\n")
    run_once(pool, f"{cluster}.0#1")
    assert pool.status(cluster) == 4
    pool.run(400.0)
    assert pool.status(cluster) == 0
    assert len(pool.history()) == 1


def test_a_spooled_job_stays_ten_days_with_its_results(pool: SubmitPool) -> None:
    from tests.unit.submit.worlds import jobs_of

    (made,) = jobs_of("executable=/bin/true\nqueue", spool=True)
    stays = f"LeaveJobInQueue = {made.expression('LeaveJobInQueue')}\n".encode()
    cluster = pool.submit(stays, spool=True)
    pool.ask(FinishSpooling(cluster_id=cluster))
    folder = pool.folder / "spool" / str(cluster) / "0"
    (folder / "result").write_text("42")
    run_once(pool, f"{cluster}.0#1")
    pool.run(9.9 * 86_400)
    assert pool.status(cluster) == 4
    # Fetching the results does not end that time.
    listing = pool.ask(ListSpool(cluster_id=cluster, proc_id=0))
    assert [name for name, _, _ in listing.files] == ["result"]
    pool.run(0.2 * 86_400)
    assert pool.status(cluster) == 0
    assert len(pool.history()) == 1
    assert not folder.exists()


def test_a_job_submitted_on_hold_has_its_reason(pool: SubmitPool) -> None:
    cluster = pool.submit(b"JobStatus = 5\n")
    (job,) = pool.jobs()
    assert (job.get_int("HoldReasonCode"), job.get_str("HoldReason")) == (15, "submitted on hold at user's request")
    pool.act("release", cluster)
    assert pool.status(cluster) == 1


def test_max_jobs_running(tmp_path: Path) -> None:
    pool = SubmitPool(tmp_path, max_jobs_running=2)
    pool.submit(procs=5)
    assert pool.match() == 2
    assert len(pool.execute.runs) == 2
    assert pool.match() == 0


def test_starts_are_paced(tmp_path: Path) -> None:
    pool = SubmitPool(tmp_path, job_start_count=2, job_start_delay_s=10.0)
    pool.submit(procs=5)
    pool.match()
    assert len(pool.execute.runs) == 2
    pool.run(10.0)
    assert len(pool.execute.runs) == 4
    pool.run(10.0)
    assert len(pool.execute.runs) == 5


def test_claims_that_wait_for_a_start_are_given_back_when_no_job_is_left(tmp_path: Path) -> None:
    pool = SubmitPool(tmp_path, job_start_count=1, job_start_delay_s=10.0)
    cluster = pool.submit(procs=5)
    assert pool.match() == 5
    assert len(pool.execute.runs) == 1
    for proc in range(1, 5):
        pool.act("remove", cluster, proc)
    pool.run(10.0)
    assert len(pool.execute.released) == 4


def test_jobs_run_by_priority(pool: SubmitPool) -> None:
    cluster = pool.submit(proc_ads=(b"", b"JobPrio = 5\n", b"JobPrio = -3\n"))
    pool.match(1)
    order = []
    for _ in range(3):
        (run_id,) = pool.execute.runs
        order.append(run_id)
        pool.execute.begin(run_id)
        pool.execute.finish(run_id)
        pool.run()
    assert order == [f"{cluster}.{proc}#1" for proc in (1, 0, 2)]


def test_a_claim_goes_to_another_autocluster_that_fits(pool: SubmitPool) -> None:
    first = pool.submit()
    other = pool.submit(b"RequestMemory = 20\n")
    never = pool.submit(b"RequestMemory = 30\nRequirements = TARGET.Memory > 5000\n")
    pool.match(1)
    for cluster in (first, other):
        run_id = f"{cluster}.0#1"
        assert list(pool.execute.runs) == [run_id]
        pool.execute.begin(run_id)
        pool.execute.finish(run_id)
        pool.run()
    assert pool.execute.released == pool.execute.granted
    assert len(pool.execute.granted) == 1
    assert pool.status(never) == 1


def test_a_missing_input_holds_the_job(pool: SubmitPool) -> None:
    pool.submit(b'TransferInput = "nowhere.dat"\nUserLog = "log"\n')
    pool.match()
    (job,) = pool.jobs()
    assert (job.get_int("JobStatus"), job.get_int("HoldReasonCode"), job.get_int("HoldReasonSubCode")) == (5, 13, 2)
    assert "nowhere.dat" in job.get_str("HoldReason")
    assert "nowhere.dat" in (pool.home / "log").read_text()


@pytest.mark.parametrize("universe", [5, 12])
def test_a_log_that_cannot_be_opened_holds_the_job(pool: SubmitPool, universe: int) -> None:
    cluster = pool.submit(f'UserLog = "nosuch/log"\nJobUniverse = {universe}\n'.encode())
    if universe == 5:
        pool.match()
    pool.run(20.0)
    assert pool.status(cluster) == 5
    (job,) = pool.jobs()
    assert job.get_int("HoldReasonCode") == 22
    assert "nosuch/log: No such file or directory" in job.get_str("HoldReason")
    assert pool.execute.activations == []
    (pool.home / "nosuch").mkdir()
    pool.act("release", cluster)
    pool.run(1.0)
    assert "Job submitted from host" in (pool.home / "nosuch" / "log").read_text()


def test_an_output_folder_that_is_gone_holds_the_job(pool: SubmitPool) -> None:
    cluster = pool.submit(b'Out = "nosuch/out"\n')
    from tests.unit.daemons.schedd.test_submit_side import entry

    run_once(pool, f"{cluster}.0#1", outputs=(entry("_condor_stdout", b"x"),))
    (job,) = pool.jobs()
    assert (job.get_int("JobStatus"), job.get_int("HoldReasonCode")) == (5, 12)
    assert "nosuch" in job.get_str("HoldReason")


def test_a_slot_reference_that_has_no_answer_holds_the_job(pool: SubmitPool) -> None:
    pool.submit(b'Args = "$$(Nonsense)"\n')
    pool.match()
    (job,) = pool.jobs()
    assert job.get_int("JobStatus") == 5
    assert "$$(Nonsense)" in job.get_str("HoldReason")


def test_slot_references_are_filled_in(pool: SubmitPool) -> None:
    pool.submit(b'Args = "$$(Arch) $$(None:else) $$([Cpus + 1])"\n')
    pool.match()
    assert ClassAd.from_bytes(pool.execute.activations[0].job_ad)["Args"] == "X86_64 else 2"


def test_edits_change_jobs_and_clusters(pool: SubmitPool) -> None:
    cluster = pool.submit(procs=2)
    pool.ask(EditJobs(attributes=b"JobPrio = 7\n", ids=((cluster, 1),)))
    pool.ask(EditJobs(attributes=b'Mark = "x"\n', ids=((cluster, -1),)))
    assert [(job.get_int("JobPrio"), job["Mark"]) for job in pool.jobs()] == [(0, "x"), (7, "x")]
    refusal = pool.ask(EditJobs(attributes=b"ClusterId = 7\n", ids=((cluster, 1),)))
    assert isinstance(refusal, Refused)


def test_results_of_actions(pool: SubmitPool) -> None:
    cluster = pool.submit(procs=2)
    assert pool.act("suspend", cluster).results == ((cluster, -1, ActionResult.BAD_STATUS),)
    assert pool.act("hold", cluster, 0).results == ((cluster, 0, ActionResult.SUCCESS),)
    assert pool.act("hold", cluster, 0).results == ((cluster, 0, ActionResult.ALREADY_DONE),)
    assert pool.act("hold", 999).results == ((999, -1, ActionResult.NOT_FOUND),)
    assert pool.act("remove", cluster).count == 2


def test_mails_as_the_owner_wishes(pool: SubmitPool) -> None:
    always = pool.submit(b"JobNotification = 2\n")
    run_once(pool, f"{always}.0#1", exit_code=0)
    on_error = pool.submit(b'JobNotification = 3\nNotifyUser = "ann@else.where"\n')
    run_once(pool, f"{on_error}.0#1", exit_code=2)
    silent = pool.submit(b"JobNotification = 3\n")
    run_once(pool, f"{silent}.0#1", exit_code=0)
    assert [(to, subject) for to, subject, _ in pool.mails.sent] == [
        (f"{USER}@test", f"[Condor] Job {always}.0 exited with status 0"),
        ("ann@else.where", f"[Condor] Job {on_error}.0 exited with status 2"),
    ]


def test_spooled_jobs_live_in_the_spool(pool: SubmitPool) -> None:
    cluster = pool.submit(b'TransferInput = "/else/where/data"\nOut = "out"\nLeaveJobInQueue = JobStatus == 4\n',
                          spool=True)
    assert pool.jobs()[0].get_int("HoldReasonCode") == 16
    assert isinstance(pool.ask(SpoolChunk(cluster_id=cluster, proc_id=0, path="data", offset=0, data=b"123")), Done)
    bad = pool.ask(SpoolChunk(cluster_id=cluster, proc_id=0, path="../../x", offset=0, data=b"123"))
    assert isinstance(bad, Refused)
    pool.ask(FinishSpooling(cluster_id=cluster))
    assert pool.status(cluster) == 1
    pool.match()
    assert [(each.path, each.inline) for each in pool.execute.activations[0].inputs] == [("data", b"123")]
    from tests.unit.daemons.schedd.test_submit_side import entry

    pool.execute.begin(f"{cluster}.0#1")
    pool.execute.finish(f"{cluster}.0#1", outputs=(entry("_condor_stdout", b"hello"),))
    pool.run()
    listing = pool.ask(ListSpool(cluster_id=cluster, proc_id=0))
    assert listing.iwd == str(pool.home)
    assert [name for name, _, _ in listing.files] == ["data", "out"]
    assert pool.ask(ReadSpool(cluster_id=cluster, proc_id=0, path="out", offset=1)).data == b"ello"
    pool.act("remove", cluster)
    pool.run()
    assert not (pool.folder / "spool" / str(cluster)).exists()


def test_a_full_disk_refuses_and_loses_nothing(pool: SubmitPool, monkeypatch: pytest.MonkeyPatch) -> None:
    before = pool.submit(procs=2)
    pool.match(1)
    run_id = f"{before}.0#1"
    pool.execute.begin(run_id)
    pool.run()
    spares = len(pool.processes.alive)
    started = pool.processes.start
    starts: list[str] = []
    monkeypatch.setattr(pool.processes, "start",
                        lambda host_id, owner: starts.append(host_id) or started(host_id, owner))

    def full(operations: object) -> None:
        raise StoreUnavailable("database or disk is full")

    with monkeypatch.context() as full_disk:
        full_disk.setattr(pool.store, "commit", full)
        for _ in range(20):  # far more than an actor may crash
            refusal = pool.ask(ReserveCluster())
            assert isinstance(refusal, Refused)
            assert "disk is full" in refusal.text
            refused = pool.ask(ActOnJobs(action=JobAction.HOLD, ids=((before, -1),)))
            assert isinstance(refused, Refused)
            assert [job.get_int("JobStatus") for job in pool.jobs()] == [2, 1]
            pool.run(30.0)
        pool.execute.finish(run_id)
        pool.run(3600.0)
        assert starts == []
        assert pool.status(before) == 2
        assert any(isinstance(message, RenewClaims) for message in pool.execute.log)
    pool.run(60.0)
    assert [job.get_int("ExitCode", -1) for job in pool.history()] == [0]
    assert pool.execute.activations[0].run_id == f"{run_id}@schedd@test"
    assert len(pool.processes.alive) == spares
    after = pool.submit()
    assert after > before


def test_the_wall_clock_jumps(pool: SubmitPool) -> None:
    cluster = pool.submit()
    pool.match()
    pool.execute.begin(f"{cluster}.0#1")
    pool.net.clock.epoch_s -= 86_400.0
    pool.run()
    pool.execute.finish(f"{cluster}.0#1")
    pool.run()
    (job,) = pool.history()
    assert job.get_float("RemoteWallClockTime") >= 0.0
    pool.net.clock.epoch_s += 10 * 86_400.0
    again = pool.submit()
    pool.match()
    pool.execute.begin(f"{again}.0#1")
    pool.execute.finish(f"{again}.0#1")
    pool.run()
    assert len(pool.history()) == 2


def test_a_user_whom_nobody_can_become_is_refused(pool: SubmitPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool.processes, "find_user", lambda name: None)
    refusal = pool.ask(ReserveCluster())
    assert isinstance(refusal, Refused)
    assert "no user" in refusal.text


def test_a_host_that_cannot_become_its_owner_runs_nothing(tmp_path: Path) -> None:
    def never(name: str, uid: int, gid: int) -> None:
        raise PermissionError(1, "not permitted")

    pool = SubmitPool(tmp_path, become=never)
    pool.submit(b'UserLog = "log"\n')
    pool.run(20.0)
    pool.match()
    (job,) = pool.jobs()
    assert (job.get_int("JobStatus"), job.get_int("HoldReasonCode")) == (5, 6)
    assert "cannot become" in job.get_str("HoldReason")
    assert pool.execute.activations == []
    assert not (pool.home / "log").exists()


def test_holds_are_counted_by_reason(pool: SubmitPool) -> None:
    cluster = pool.submit(b"OnExitHold = true\n")
    for _ in range(2):
        pool.act("hold", cluster)
        pool.act("release", cluster)
    run_once(pool, f"{cluster}.0#1")
    (job,) = pool.jobs()
    counts = job["NumHoldsByReason"]
    assert {name: counts[name] for name in counts} == {"JobPolicy": 1, "UserRequest": 2}
    assert (job.get_int("NumHolds"), job.get_int("NumSystemHolds")) == (3, 1)
