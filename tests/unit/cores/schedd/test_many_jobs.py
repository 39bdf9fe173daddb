"""What concerns thousands of jobs is done a piece at a time, each job once, and answered when all of it is done."""

from __future__ import annotations

from typing import Any

import pytest

from condor_actors.classads import ClassAd, parse_expression
from condor_actors.cores.schedd import job_actions, job_policy, job_query, job_transitions, queued_job
from condor_actors.cores.schedd.job_actions import ActionRest
from condor_actors.cores.schedd.queued_job import Cluster
from condor_actors.cores.schedd.schedd_settings import SubmitRequirement
from condor_actors.effects import GoOn, Persist, Reply, SetTimer
from condor_actors.messages.codes import JobStatus
from condor_actors.messages.envelope import Address, Delivery, Identity, Refused, TimerFired
from condor_actors.messages.negotiate import NegotiateRequests, ResourceRequests
from condor_actors.messages.queue import ActionResult, ActionResults, ActOnJobs, EditJobs, JobAction, QueryJobs
from condor_actors.messages.submission import ReserveCluster, SubmitPage, Submitted
from tests.unit.cores.schedd.test_job_attributes import ANN, BOB, Queue

MANY = 1_200
CENTRAL = Identity(name="condor@pool", roles=frozenset({"negotiator"}), method="tls")


class Many(Queue):
    """A schedd's core with 1.0, and 1,200 jobs of ann's in cluster 2."""

    def __init__(self, ad: str = "", **settings: Any) -> None:
        super().__init__(**settings)
        self.most_changed = 0
        number = self.send(ReserveCluster()).cluster_id
        self.send(SubmitPage(cluster_id=number, page=0, cluster_ad=f'Cmd = "x"\nRequirements = true\n{ad}'.encode(),
                             procs=(b"",) * MANY, first_proc=0, last=True))

    def turn(self, message: Any, identity: Identity = ANN) -> tuple[Any, ...]:
        """The effects of one."""
        effects = self.core.handle(
            Delivery(message=message, sender=Address("in:9", "x"), identity=identity, message_id="q"), 2.0)
        self.most_changed = max(self.most_changed, sum(isinstance(each, Persist) for each in effects))
        return effects

    def whole(self, message: Any, between: Any = None) -> tuple[Any, int]:
        """The answer to a message, and in how many turns it came."""
        turns = 1
        effects = self.turn(message)
        while goes_on := [each.event for each in effects if isinstance(each, GoOn)]:
            assert not [each for each in effects if isinstance(each, Reply)]
            if between is not None:
                between()
            (rest,) = goes_on
            assert isinstance(rest, ActionRest)
            effects = self.turn(rest)
            turns += 1
        (answer,) = [each for each in effects if isinstance(each, Reply)]
        assert answer.to is None or answer.to.message == message
        return answer.message, turns

    @property
    def cluster(self) -> Cluster:
        return self.core.context.queue.clusters[2]

    def held(self) -> int:
        return self.core.context.queue.everybody[JobStatus.HELD]


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> Many:
    monkeypatch.setattr(job_actions, "SLICE", 2_000)
    return Many()


def test_an_action_on_all_jobs_takes_many_turns(many: Many) -> None:
    answer, turns = many.whole(ActOnJobs(action=JobAction.HOLD, constraint="true"))
    assert (answer.count, len(answer.results), many.held()) == (MANY + 1, MANY + 1, MANY + 1)
    assert turns == pytest.approx(MANY * job_actions.ACT / job_actions.SLICE, abs=1.5)
    assert many.most_changed <= job_actions.SLICE / job_actions.ACT + 1
    many.core.validate()
    answer, _ = many.whole(ActOnJobs(action=JobAction.REMOVE, ids=((2, -1), (1, 0), (7, 0))))
    assert answer == ActionResults(
        results=((2, -1, ActionResult.SUCCESS), (1, 0, ActionResult.SUCCESS), (7, 0, ActionResult.NOT_FOUND)),
        count=MANY + 1)
    assert not many.core.context.queue.clusters
    many.core.validate()


def test_jobs_that_come_and_go_meanwhile(many: Many) -> None:
    def between() -> None:
        many.core.validate()
        if MANY - 1 in many.cluster.jobs:
            many.turn(ActOnJobs(action=JobAction.REMOVE, ids=((2, MANY - 1),)))
            many.submit("")

    answer, _ = many.whole(ActOnJobs(action=JobAction.HOLD, constraint="true"), between)
    assert (answer.count, many.held()) == (MANY, MANY)
    (new,) = many.core.context.queue.clusters[3].jobs.values()
    assert new.status is JobStatus.IDLE


def test_others_jobs_and_those_that_do_not_fit_are_looked_at_alone(many: Many) -> None:
    many.submit("", identity=BOB)
    answer, turns = many.whole(ActOnJobs(action=JobAction.HOLD, constraint="ProcId == 5 || ClusterId == 3"))
    assert (answer.count, answer.results, turns) == (1, ((2, 5, ActionResult.SUCCESS),), 1)


def test_a_constraint_that_is_none_changes_nothing(many: Many) -> None:
    for message in (ActOnJobs(action=JobAction.HOLD, ids=((1, 0),), constraint="a >"),
                    EditJobs(attributes=b"X = 1\n", ids=((1, -1),), constraint="a >")):
        answer, _ = many.whole(message)
        assert isinstance(answer, Refused)
    assert many.held() == 0
    assert many.job.ad.find("x") is None


def test_a_cluster_is_edited_with_what_its_jobs_have_of_their_own(many: Many) -> None:
    for proc in (3, MANY - 1):
        many.turn(EditJobs(attributes=b"RequestMemory = 5\n", ids=((2, proc),)))
    doubted: list[bool] = []

    def between() -> None:
        doubted.append(2 in many.core.context.autoclusters.unsettled)

    answer, turns = many.whole(EditJobs(attributes=b"RequestMemory = 77\n", ids=((2, -1),)), between)
    assert (answer.count, answer.results) == (MANY, ((2, -1, ActionResult.SUCCESS),))
    assert turns > 1
    assert doubted == [True] * (turns - 1)
    assert not many.core.context.autoclusters.unsettled
    assert {job.ad.get_int("RequestMemory") for job in many.cluster.jobs.values()} == {77}
    assert len({job.autocluster for job in many.cluster.jobs.values()}) == 1
    many.core.validate()


def test_a_claim_is_not_known_to_fit_a_job_whose_cluster_is_being_edited(many: Many) -> None:
    autoclusters = many.core.context.autoclusters
    first = many.job
    assert next(autoclusters.candidates("ann@dom", first.autocluster, 0.0))[1]
    autoclusters.unsettled.add(1)
    assert [fits for _, fits in autoclusters.candidates("ann@dom", first.autocluster, 0.0)] == [False]


def test_every_edit_by_a_constraint(many: Many) -> None:
    answer, turns = many.whole(EditJobs(attributes=b"JobPrio = 3\n", constraint="ProcId > 9"))
    assert (answer.count, turns > 1) == (MANY - 10, True)
    assert [job.ad.get_int("JobPrio") for job in many.cluster.jobs.values()] == [0] * 10 + [3] * (MANY - 10)


BAD_GANG = 'JobUniverse = 11\nMinHosts = "three"\nCmd = "x"\nRequirements = true\n'
VANILLA = b"JobUniverse = 5\n"


@pytest.mark.parametrize("procs", [(b"", VANILLA), (VANILLA, b""), (VANILLA, b"", VANILLA), (b"", b"")])
def test_what_jobs_have_of_their_cluster_is_checked_wherever_they_stand(procs: tuple[bytes, ...]) -> None:
    queue = Queue()
    number = queue.send(ReserveCluster()).cluster_id
    answer = queue.send(SubmitPage(cluster_id=number, page=0, cluster_ad=BAD_GANG.encode(), procs=procs, first_proc=0,
                                   last=True))
    assert isinstance(answer, Refused)
    assert "machine_count" in answer.text
    assert number not in queue.core.context.queue.clusters


def test_a_rule_about_numbers_is_asked_about_each_job() -> None:
    rule = SubmitRequirement(name="FEW", expression=parse_expression("TARGET.ProcId < 3"),
                             reason=parse_expression('"three at most"'))
    queue = Queue(submit_requirements=(rule,))
    answers = []
    for count in (3, 4):
        number = queue.send(ReserveCluster()).cluster_id
        answers.append(queue.send(SubmitPage(cluster_id=number, page=0, cluster_ad=b'Cmd = "x"\n',
                                             procs=(b"",) * count, first_proc=0, last=True)))
    assert isinstance(answers[0], Submitted)
    assert answers[1] == Refused(code="invalid", text="three at most")


def test_pages_of_a_large_cluster_with_gaps(many: Many, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_query, "PAGE_JOBS", 100)
    gone = [proc for proc in range(MANY) if proc % 7 == 0]
    many.whole(ActOnJobs(action=JobAction.REMOVE, ids=tuple((2, proc) for proc in gone)))
    for few in (queued_job.FEW_JOBS, 10 * MANY):
        monkeypatch.setattr(queued_job, "FEW_JOBS", few)
        found, cursor = [], ""
        while True:
            page = many.send(QueryJobs(projection=("ProcId",), ids=((2, -1),), cursor=cursor))
            found += [ClassAd.from_bytes(text).get_int("ProcId") for text in page.ads]
            cursor = page.cursor
            if not cursor:
                break
        assert found == [proc for proc in range(MANY) if proc % 7]


def test_the_policies_of_many_jobs_take_many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_policy, "SLICE", 2_000)
    many = Many("PeriodicHold = ProcId >= 0\n")
    effects = many.turn(TimerFired(key=("policy",)))
    turns = 1
    while again := [each for each in effects if isinstance(each, SetTimer) and each.key == ("policy-slice",)]:
        assert again[0].delay_s > 0.0
        many.core.validate()
        effects = many.turn(TimerFired(key=("policy-slice",)))
        turns += 1
    assert (many.held(), turns) == (MANY, 7)


def test_new_significant_attributes_give_many_jobs_new_places(many: Many, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_transitions, "OFFERS", 500)
    many.turn(EditJobs(attributes=b"Flavour = 2\n", ids=((2, 1_100),)))
    question = NegotiateRequests(cycle=1, submitter="ann@dom", limit=50, significant_attributes=("Flavour",))
    effects = many.turn(question, CENTRAL)
    assert [each.delay_s > 0.0 for each in effects if isinstance(each, SetTimer) and each.key == ("offer-anew",)]
    many.turn(ActOnJobs(action=JobAction.HOLD, ids=((2, 1_150),)))
    many.turn(TimerFired(key=("advertise",)))
    for _ in range(5):
        many.turn(question, CENTRAL)
    turns = 0
    while any(isinstance(each, SetTimer) and each.key == ("offer-anew",) for each in effects):
        many.core.validate()
        effects = many.turn(TimerFired(key=("offer-anew",)))
        turns += 1
    assert turns == 2
    assert any(isinstance(each, SetTimer) and each.key == ("advertise",) for each in effects), "a cycle is wished for"
    (answer,) = [each.message for each in many.turn(question, CENTRAL) if isinstance(each, Reply)]
    assert isinstance(answer, ResourceRequests)
    assert sorted(request.count for request in answer.requests) == [1, MANY - 1]
    many.core.validate()
