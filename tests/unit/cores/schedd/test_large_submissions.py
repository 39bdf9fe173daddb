"""A submission of many jobs takes many turns; it is in the queue as a whole, or not at all, whenever a schedd ends."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import pytest

from condor_actors.classads import ClassAd, parse_expression
from condor_actors.classads.evaluation.budget import Meter
from condor_actors.config.transforms import read_transform
from condor_actors.cores.schedd import change_journal, job_notices, job_transitions, submission
from condor_actors.cores.schedd.entering import entry
from condor_actors.cores.schedd.entering.backlog import Backlog
from condor_actors.cores.schedd.entering.entry import EntryRest
from condor_actors.cores.schedd.job_notices import RecordEvent
from condor_actors.cores.schedd.job_transforms import JobTransforms
from condor_actors.cores.schedd.queue_operations import InsertJobs, QueueSnapshot, SaveNotice
from condor_actors.cores.schedd.schedd_core import ScheddCore
from condor_actors.cores.schedd.schedd_settings import ScheddSettings, SubmitRequirement
from condor_actors.effects import GoOn, Persist, Reply, SetTimer
from condor_actors.messages.codes import HoldCode, JobStatus
from condor_actors.messages.envelope import Address, Delivery, Done, Identity, Refused, TimerFired
from condor_actors.messages.queue import ActOnJobs, JobAction, QueryJobs
from condor_actors.messages.shadow_host import Notice
from condor_actors.messages.spool import FinishSpooling
from condor_actors.messages.submission import ReserveCluster, SubmitPage, Submitted
from condor_actors.store.queue_store import QueueStore
from tests.unit.cores.schedd.test_job_attributes import ANN, BOB

MANY = 1_200
LOG = 'UserLog = "/l"\n'


class Schedd:
    """A schedd's core; what its turns store, a turn at a time."""

    def __init__(self, **settings: Any) -> None:
        self.core = ScheddCore(ScheddSettings(name="s", uid_domain="dom", **settings), QueueSnapshot(), Random(1), 1.0,
                               "v")
        self.core.start(1.0, "<s:1>")
        self.commits: list[list[Any]] = []
        self.effects: tuple[Any, ...] = ()
        self.rests: list[EntryRest] = []

    def turn(self, message: Any, identity: Identity = ANN) -> Any:
        """One turn; its answer, None: it gave none."""
        self.effects = self.core.handle(
            Delivery(message=message, sender=Address("in:9", "x"), identity=identity, message_id="q"), 2.0)
        self.commits.append([each.operation for each in self.effects if isinstance(each, Persist)])
        self.rests += [each.event for each in self.effects if isinstance(each, GoOn)]
        return next((each.message for each in self.effects if isinstance(each, Reply)), None)

    def begin(self, procs: tuple[bytes, ...] = (b"",) * MANY, ad: str = "", *, spool: bool = False) -> Any:
        """The first turn of a submission."""
        number = self.turn(ReserveCluster()).cluster_id
        self.commits.clear()
        text = f'Cmd = "x"\nRequirements = true\n{ad}'.encode()
        return self.turn(SubmitPage(cluster_id=number, page=0, cluster_ad=text, procs=procs, first_proc=0, last=True,
                                    spool=spool))

    def go_on(self) -> Iterator[Any]:
        """What each further turn answers."""
        while self.rests:
            yield self.turn(self.rests.pop(0))

    def whole(self, *arguments: Any, **named: Any) -> tuple[Any, int]:
        """The answer to a submission, and in how many turns it came."""
        answers = [self.begin(*arguments, **named), *self.go_on()]
        assert answers[:-1] == [None] * (len(answers) - 1)
        return answers[-1], len(answers)

    def seen(self) -> int:
        """Jobs that a query sees."""
        return len(self.core.context.queue.clusters) and len(list(self.core.context.queue.jobs()))


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission, "SLICE", 1_600)
    monkeypatch.setattr(entry, "STORED_AT_ONCE", 50)
    monkeypatch.setattr(entry, "STAGED", 100)
    monkeypatch.setattr(job_transitions, "OFFERS", 300)


def test_many_jobs_enter_in_many_turns_and_as_one() -> None:
    schedd = Schedd()
    answers = [schedd.begin()]
    for answer in schedd.go_on():
        is_over = isinstance(answer, Submitted)
        assert schedd.seen() == (MANY if is_over else 0)
        assert len(schedd.turn(QueryJobs(limit=1)).ads) == is_over
        schedd.core.validate()
        answers.append(answer)
    assert answers[-1] == Submitted(cluster_id=1, first_proc=0, last_proc=MANY - 1)
    assert len(answers) > 8
    most = max(sum(len(each.rows) for each in commit if isinstance(each, InsertJobs)) for commit in schedd.commits)
    assert 0 < most <= submission.SLICE // entry.STORE + 50


def test_a_few_jobs_enter_in_one_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission, "SLICE", 25_000)
    schedd = Schedd()
    answer, turns = schedd.whole((b"",) * 100)
    assert (type(answer), turns, len(schedd.commits)) == (Submitted, 1, 1)


def test_whenever_the_schedd_ends_all_are_there_or_none(tmp_path: Path) -> None:
    schedd = Schedd()
    answer, turns = schedd.whole(tuple(f"Args = \"{proc}\"\n".encode() for proc in range(MANY)), LOG)
    assert answer is None, "the submit events are not in the log yet"
    assert turns == len(schedd.commits)
    for count in range(turns + 1):
        store = QueueStore(tmp_path / str(count))
        for operations in schedd.commits[:count]:
            store.commit(operations)
        is_whole = count == turns
        for found in (store.load(), store.load()):
            assert (len(found.jobs), len(found.clusters)) == ((MANY, 1) if is_whole else (0, 0))
            assert len(found.notices) == (MANY if is_whole else 0)
            assert not any(name.startswith("entering") for name in found.counters)
        again = ScheddCore(ScheddSettings(name="s", uid_domain="dom"), found, Random(1), 1.0, "v")
        again.start(3.0, "<s:1>")
        again.validate()
        assert sum(again.context.queue.everybody) == (MANY if is_whole else 0)
        left = [store.database.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in ("jobs", "notices")]
        assert left == ([MANY, MANY] if is_whole else [0, 0]), "what is not whole takes no room"
        store.close()


def test_what_cannot_be_queued_leaves_no_trace() -> None:
    schedd = Schedd()
    answer, turns = schedd.whole((b"",) * MANY + (b"JobStatus = 2\n",))
    assert isinstance(answer, Refused)
    assert "idle" in answer.text
    assert turns > 2
    assert not [each for commit in schedd.commits for each in commit]
    assert schedd.seen() == 0
    assert schedd.turn(ReserveCluster()).cluster_id == 1, "the number is free again"


def test_a_line_that_breaks_meanwhile_changes_nothing() -> None:
    schedd = Schedd()
    schedd.begin()
    schedd.core.submissions.link_lost("in:9")
    assert schedd.turn(ReserveCluster(), BOB).cluster_id == 2
    late = schedd.turn(SubmitPage(cluster_id=1, page=1, cluster_ad=b"", procs=(b"",), first_proc=0, last=True))
    assert isinstance(late, Refused)
    *_, answer = schedd.go_on()
    assert isinstance(answer, Submitted)
    assert schedd.seen() == MANY


def test_jobs_on_their_way_count_for_the_limits() -> None:
    schedd = Schedd(max_jobs_per_owner=MANY + 10, max_jobs_submitted=MANY + 20)
    schedd.begin()
    rest = schedd.rests.pop()
    assert "MAX_JOBS_PER_OWNER" in schedd.begin((b"",) * 11).text
    assert isinstance(schedd.begin((b"",) * 10), Submitted)
    schedd.rests.append(rest)
    list(schedd.go_on())
    assert schedd.seen() == MANY + 10
    assert "MAX_JOBS_PER_OWNER" in schedd.turn(ReserveCluster()).text


def test_places_are_found_afterwards_for_those_that_are_still_there() -> None:
    schedd = Schedd()
    schedd.whole()
    (heads,) = schedd.core.context.autoclusters.by_number.values()
    assert heads.waiting == job_transitions.OFFERS
    schedd.turn(ActOnJobs(action=JobAction.HOLD, ids=((1, 5), (1, MANY - 1))))
    schedd.turn(ActOnJobs(action=JobAction.REMOVE, ids=((1, MANY - 2),)))
    for _ in range(MANY // job_transitions.OFFERS):
        schedd.turn(TimerFired(key=("offer-anew",)))
        schedd.core.validate()
    assert heads.waiting == MANY - 3
    schedd.turn(ActOnJobs(action=JobAction.RELEASE, ids=((1, MANY - 1),)))
    assert heads.waiting == MANY - 2


def test_events_leave_a_piece_at_a_time_and_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_notices, "MOST_DUE", 100)
    schedd = Schedd(records_events=True)
    told: list[Notice] = []

    def give_orders(notices: dict[str, list[Notice]]) -> None:
        for some in notices.values():
            assert len(some) <= 100
            told.extend(some)

    monkeypatch.setattr(schedd.core.runs, "give_orders", give_orders)
    answer, _ = schedd.whole(tuple(f"Args = \"{proc}\"\n".encode() for proc in range(MANY)), LOG)
    assert answer is None
    written = [each for each in schedd.effects if isinstance(each, RecordEvent)]
    assert len(told) == len(written) == 100
    schedd.turn(ActOnJobs(action=JobAction.HOLD, ids=((1, MANY - 1),)))
    written += [each for each in schedd.effects if isinstance(each, RecordEvent)]
    while any(isinstance(each, SetTimer) and each.key == ("notices",) for each in schedd.effects):
        schedd.turn(TimerFired(key=("notices",)))
        written += [each for each in schedd.effects if isinstance(each, RecordEvent)]
    assert [each.proc for each in told] == [each.proc for each in written] == [*range(MANY), MANY - 1]
    assert [each.notice_id for each in told[:-1]] == [
        each.notice_id for commit in schedd.commits for each in commit if isinstance(each, SaveNotice)][:MANY]


def most_calls(jobs: int) -> tuple[int, int]:
    """How many functions the turns of a submission call: the busiest, and the one with which it is in the queue."""
    schedd = Schedd(max_jobs_per_owner=100_000)
    calls = [0]

    def count(frame: FrameType, event: str, argument: object) -> None:
        calls[-1] += event in ("call", "c_call")

    def turns() -> Iterator[None]:
        schedd.begin(tuple(f'Args = "{proc}"\n'.encode() for proc in range(jobs)), LOG)
        yield
        for _ in schedd.go_on():
            yield
        for _ in range(2 * jobs // job_notices.MOST_DUE):
            schedd.turn(TimerFired(key=("offer-anew",)))
            yield
            schedd.turn(TimerFired(key=("notices",)))
            yield

    entered = 0
    sys.setprofile(count)
    try:
        for _ in turns():
            entered = entered or (len(calls) if schedd.core.context.queue.clusters else 0)
            calls.append(0)
    finally:
        sys.setprofile(None)
    return max(calls[1:]), calls[entered - 1]  # the first takes a message, which is as long as it is


def test_no_turn_does_more_when_there_are_more_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_notices, "MOST_DUE", 100)
    monkeypatch.setattr(change_journal.ChangeJournal, "note_jobs", lambda journal, jobs: None)  # it keeps so many only
    few, many = most_calls(2_500), most_calls(6_000)
    assert many[0] < 1.2 * few[0]
    assert many[1] < 1.2 * few[1]


def notices_of(schedd: Schedd) -> list[Notice]:
    """What one turn tells."""
    return [each for some in schedd.core.notices.take_due().values() for each in some]


def test_a_host_that_begins_anew_is_told_all_again_a_piece_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_notices, "MOST_DUE", 100)
    schedd = Schedd()
    monkeypatch.setattr(schedd.core.runs, "give_orders", lambda notices: None)
    schedd.whole(tuple(f"Args = \"{proc}\"\n".encode() for proc in range(MANY)), LOG)
    notices = schedd.core.notices
    assert [each.proc for each in notices_of(schedd)] == [*range(100, 200)], "a hundred went with the last turn"
    notices.send_again("ann")
    schedd.turn(ActOnJobs(action=JobAction.HOLD, ids=((1, 0),)))  # takes a hundred too
    job = schedd.core.context.queue.job(1, MANY - 1)
    assert job is not None
    assert [each.proc for each in notices.take_of("ann", {job})] == [MANY - 1], "what begins now has no time"
    assert not notices.take_of("bob", {job})
    told = []
    while some := notices_of(schedd):
        assert len(some) <= 100
        told += some
    assert [each.proc for each in told] == [*range(100, MANY - 1), 0]
    assert [each.maybe_written for each in told] == [True] * (MANY - 101) + [False]
    assert len(notices.stored) == MANY + 1
    assert len(notices.written([each.notice_id for each in told], "ann")) == MANY - 100
    assert notices.owners() == {"ann"}


def test_what_is_not_in_the_queue_yet_is_not_told_again() -> None:
    schedd = Schedd()
    schedd.begin(tuple(f"Args = \"{proc}\"\n".encode() for proc in range(MANY)), LOG)
    while not schedd.core.notices.stored:
        schedd.turn(schedd.rests.pop())
    schedd.core.notices.send_again("ann")
    assert notices_of(schedd) == []
    list(schedd.go_on())
    schedd.core.notices.send_again("ann")
    assert len({each.notice_id for each in notices_of(schedd)}) == MANY


def test_events_come_from_the_store_in_their_order(tmp_path: Path) -> None:
    schedd = Schedd()
    schedd.whole(tuple(f"Args = \"{proc}\"\n".encode() for proc in range(MANY)), LOG)
    store = QueueStore(tmp_path)
    for operations in schedd.commits:
        store.commit(operations)
    again = ScheddCore(ScheddSettings(name="s", uid_domain="dom"), store.load(), Random(1), 1.0, "v")
    store.close()
    again.notices.send_again("ann")
    assert [each.proc for each in again.notices.take_due()["ann"]] == list(range(MANY))


def test_a_job_shares_its_event_and_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_notices, "MOST_DUE", 0)
    schedd = Schedd()
    schedd.whole(ad=LOG)
    job = schedd.core.context.queue.job(1, 7)
    assert job is not None
    assert [(each.proc, each.last_proc) for each in schedd.core.notices.take_of("ann", {job})] == [(0, MANY - 1)]


def test_a_backlog_keeps_its_order() -> None:
    backlog: Backlog[int] = Backlog()
    backlog.add(1)
    backlog.join(deque([2, 3]))
    backlog.join(deque())
    backlog.add(4)
    backlog.join(deque([5, 6]))
    assert list(backlog) == [1, 2, 3, 4, 5, 6]
    assert backlog.take_those(lambda each: each in (3, 5, 6)) == [3, 5, 6]
    assert (backlog.take(2), bool(backlog), backlog.take(2), bool(backlog)) == ([1, 2], True, [4], False)


def test_jobs_alike_share_one_event() -> None:
    schedd = Schedd()
    schedd.whole(ad=LOG)
    (notice,) = [each for commit in schedd.commits for each in commit if isinstance(each, SaveNotice)]
    assert (notice.proc, notice.last_proc) == (0, MANY - 1)


def test_rules_are_asked_about_each_and_may_take_so_much_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = SubmitRequirement(name="FEW", expression=parse_expression(f"TARGET.ProcId < {MANY - 1}"),
                             reason=parse_expression('"too many"'))
    answer, turns = Schedd(submit_requirements=(rule,)).whole()
    assert (answer, turns > 2) == (Refused(code="invalid", text="too many"), True)
    monkeypatch.setattr(entry, "SUBMISSION_STEPS", 1_000)
    monkeypatch.setattr(entry, "JOB_STEPS", 1)
    schedd = Schedd(submit_requirements=(rule,))
    schedd.begin()
    while schedd.rests:
        for _ in range(100):  # what others evaluate meanwhile is not this one's
            parse_expression("1 + 2 * 3").evaluate()
        answer = schedd.turn(schedd.rests.pop())
    assert "in all" in answer.text


def test_a_meter_that_rests_counts_nothing() -> None:
    meter = Meter("it", None, 50)
    meter.pause()
    for _ in range(100):
        parse_expression("1 + 2 * 3").evaluate()
    meter.resume()
    assert not meter.is_spent()
    for _ in range(100):
        parse_expression("1 + 2 * 3").evaluate()
    assert meter.is_spent()


def test_transforms_are_carried_out_a_job_at_a_time() -> None:
    text = "REQUIREMENTS RequestMemory > 5\nSET Large true\nSET NumShadowStarts 7"
    transforms = JobTransforms(transforms=(read_transform("T", text),))
    schedd = Schedd(transforms=transforms)
    answer, turns = schedd.whole(tuple(f"RequestMemory = {proc}\n".encode() for proc in range(MANY)))
    assert (type(answer), turns > 8) == (Submitted, True)
    ads = [job.ad for job in schedd.core.context.queue.jobs()]
    assert [ad.get_bool("Large") for ad in ads] == [proc > 5 for proc in range(MANY)]
    assert {ad.get_int("NumShadowStarts") for ad in ads} == {0}


def test_input_of_many_jobs_has_come() -> None:
    schedd = Schedd()
    answer, _ = schedd.whole(ad=LOG, spool=True)
    assert isinstance(answer, Submitted)
    assert schedd.core.context.queue.everybody[JobStatus.HELD] == MANY
    answers = [schedd.turn(FinishSpooling(cluster_id=1))]
    schedd.turn(ActOnJobs(action=JobAction.REMOVE, ids=((1, MANY - 1),)))
    schedd.turn(ActOnJobs(action=JobAction.HOLD, ids=((1, 0),)))
    answers += schedd.go_on()
    assert answers[-1] == Done()
    assert len(answers) > 5
    schedd.core.validate()
    assert schedd.core.context.queue.everybody[JobStatus.IDLE] == MANY - 2
    held = schedd.core.context.queue.job(1, 0)
    assert held is not None
    assert held.ad.get_int("HoldReasonCode") == HoldCode.USER_REQUEST
    assert isinstance(held.ad, ClassAd)
