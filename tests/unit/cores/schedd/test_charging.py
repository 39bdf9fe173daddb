"""Whom jobs may be charged to, at submissions and in edits; numbers of clusters that are reserved and not used."""

from __future__ import annotations

from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.config import ConfigError, load_config
from condor_actors.cores.schedd.charging import Charging, charge_rule
from condor_actors.cores.schedd.schedd_settings import schedd_settings
from condor_actors.messages.envelope import Refused
from condor_actors.messages.queue import ActionResults, ActOnJobs, EditJobs, JobAction
from condor_actors.messages.submission import ReserveCluster, SubmitPage
from tests.unit.cores.schedd.test_job_attributes import ANN, BOB, ROOT, Queue

RULES = Charging(uid_domain="dom", users=(charge_rule("dean=bob"), charge_rule("ops=service-*")),
                 groups=(charge_rule("ann=physics"), charge_rule("*=common")))
USERS = {"ann", "bob", "dean", "x.ann", "a.b"}


def objection(rules: Charging, user: str, **names: Any) -> str:
    return rules.objection(user, ClassAd(names), USERS.__contains__)


@pytest.mark.parametrize(("user", "name", "allowed"), [
    ("ann", "ann", True), ("ann", "ann@dom", True), ("ann", "ann@other", False), ("ann", "bob", False),
    ("ann", "bob@dom", False), ("ann", "physics.ann", True), ("ann", "physics.theory.ann", True),
    ("ann", "physics.bob", False), ("ann", "physics", False), ("ann", "physicists.ann", False),
    ("ann", "common.ann", True), ("ann", "x.ann", False), ("ann", "common.x.ann", False), ("a.b", "common.a.b", True),
    ("b", "a.b", False), ("b", "common.a.b", False), ("dean", "bob", True), ("dean", "ann", False),
    ("ops", "service-7", True), ("ops", "service", False), ("ann", "", False), ("ann", "ann\nx", False),
    ("ann", "ANN", False), ("ann", ".ann", False), ("ann", "nice-user.bob", False)])
def test_rules(user: str, name: str, allowed: bool) -> None:
    assert (objection(RULES, user, AccountingGroup=name) == "") == allowed
    if "physics" not in name and "common" not in name:
        assert (objection(RULES, user, AcctGroupUser=name) == "") == allowed


def test_without_rules_groups_are_open_and_users_are_not() -> None:
    rules = Charging(uid_domain="dom")
    names = {"AccountingGroup": "whatever.sub.ann", "AcctGroup": "whatever.sub", "AcctGroupUser": "ann"}
    assert objection(rules, "ann", **names) == ""
    assert "CHARGE_ALLOW_USERS" in objection(rules, "ann", AccountingGroup="whatever.bob")
    assert "CHARGE_ALLOW_GROUPS" in objection(RULES, "ann", AcctGroup="chemistry")


def test_an_expression_is_no_name() -> None:
    """It might be one name now and another later."""
    ad = ClassAd.from_text('AccountingGroup = ifThenElse(time() % 2 == 0, "ann", "bob")\n')
    assert "must be a name" in RULES.objection("ann", ad, USERS.__contains__)


def test_rules_are_read_and_judged() -> None:
    settings = schedd_settings(load_config(files=[], environ={}, overrides={
        "CHARGE_ALLOW_USERS": "dean=bob, ops=service-*", "UID_DOMAIN": "dom"}), machine="h")
    assert settings.charging.users == RULES.users
    assert settings.charging.groups is None
    with pytest.raises(ConfigError, match="CHARGE_ALLOW_GROUPS"):
        schedd_settings(load_config(files=[], environ={}, overrides={"CHARGE_ALLOW_GROUPS": "physics"}), machine="h")


def test_the_schedd_asks_at_submissions() -> None:
    queue = Queue(charging=RULES)
    for where in ("ad", "proc"):
        for name in ("bob", "chemistry.ann"):
            ad = f'AccountingGroup = "{name}"\n'
            answer = queue.submit(**{"ad": "", where: ad})
            assert isinstance(answer, Refused), answer
            assert "may not charge" in answer.text
    assert type(queue.submit('AccountingGroup = "physics.ann"\n')).__name__ == "Submitted"
    assert type(queue.submit('AccountingGroup = "bob"\n', identity=ROOT)).__name__ == "Submitted"


def test_the_schedd_asks_in_edits_and_charges_anew() -> None:
    queue = Queue(charging=RULES)
    core = queue.core

    def edit(name: str, identity: Any = ANN, proc: int = -1) -> Any:
        return queue.send(EditJobs(attributes=f'AccountingGroup = "{name}"\n'.encode(), ids=((1, proc),)), identity)

    assert edit("bob").code == "denied"
    assert isinstance(edit("physics.ann"), ActionResults)
    core.validate()
    assert queue.job.cluster.submitter == "physics.ann@dom"
    assert core.context.queue.by_submitter["physics.ann@dom"][1] == 1
    assert "ann@dom" not in core.context.queue.by_submitter
    assert [job for _, job in core.context.autoclusters.of_submitter("physics.ann@dom")] == [queue.job]
    assert isinstance(edit("bob", ROOT), ActionResults)
    assert edit("bob", BOB).results[0][2].name == "PERMISSION_DENIED"
    core.validate()


def of_three() -> tuple[Queue, int]:
    """A queue with a cluster of three idle jobs, its second one charged to a group from the start."""
    queue = Queue(charging=RULES)
    number = queue.send(ReserveCluster()).cluster_id
    queue.send(SubmitPage(cluster_id=number, page=0, cluster_ad=b'Cmd = "x"\nRequirements = true\n',
                          procs=(b"", b'AccountingGroup = "physics.ann"\n', b""), first_proc=0, last=True))
    return queue, number


def offered(queue: Queue, submitter: str) -> list[int]:
    """The jobs of the cluster of three by autoclusters of that submitter: the first of each, and how many wait."""
    found = queue.core.context.autoclusters.of_submitter(submitter)
    return [job.proc for each, job in found if job.cluster.total == 3 for _ in range(each.waiting)]


def test_one_job_of_a_cluster_is_charged_apart() -> None:
    """From its submission or by an edit, by its number or by a constraint; its place in the queue is there at once."""
    queue, number = of_three()
    core, counts = queue.core, queue.core.context.queue.by_submitter
    core.validate()
    assert counts["physics.ann@dom"][1] == 1
    assert offered(queue, "physics.ann@dom") == [1]

    def edit(name: str, **which: Any) -> Any:
        answer = queue.send(EditJobs(attributes=f'AccountingGroup = "{name}"\n'.encode(), **which), ANN)
        core.validate()
        return answer

    assert edit("bob", ids=((number, 0),)).code == "denied"
    assert edit("chemistry.ann", constraint="ProcId == 0").code == "denied"
    assert counts["physics.ann@dom"][1] == 1
    assert edit("physics.ann", ids=((number, 0),)).count == 1
    assert (counts["physics.ann@dom"][1], offered(queue, "physics.ann@dom")) == (2, [0, 0])
    assert edit("ann", constraint="ProcId == 1").count == 1
    assert offered(queue, "physics.ann@dom") == [0]
    assert edit("physics.sub.ann", ids=((number, -1),)).count == 3
    assert counts["physics.sub.ann@dom"][1] == 3
    assert "physics.ann@dom" not in counts
    assert offered(queue, "physics.sub.ann@dom") == [0, 0, 0]


def test_what_names_nobody_is_refused_by_everybody() -> None:
    """An expression would name one today and another tomorrow; a group alone charges nobody."""
    queue, number = of_three()
    for identity in (ANN, ROOT):
        for value in ('strcat("a", "b")', "7", "undefined"):
            wish = f"AccountingGroup = {value}\n".encode()
            answer = queue.send(EditJobs(attributes=wish, ids=((number, 0),)), identity)
            assert "must be a name" in answer.text
        for name in ("AcctGroup", "AcctGroupUser"):
            answer = queue.send(EditJobs(attributes=f'{name} = "ann"\n'.encode(), ids=((number, 0),)), identity)
            assert answer.code == "invalid" if identity is ROOT else answer.code in ("invalid", "denied")
    queue.core.validate()


def test_jobs_charged_apart_leave_and_come_back() -> None:
    queue, number = of_three()
    core = queue.core
    queue.send(ActOnJobs(action=JobAction.HOLD, ids=((number, 1),)), ANN)
    core.validate()
    assert core.context.queue.by_submitter["physics.ann@dom"][5] == 1
    queue.send(ActOnJobs(action=JobAction.REMOVE, ids=((number, -1),)), ANN)
    core.validate()
    assert "physics.ann@dom" not in core.context.queue.by_submitter


# ---- numbers


def test_numbers_that_are_not_used_come_back() -> None:
    queue = Queue(max_reserved=3)
    core = queue.core
    numbers = [queue.send(ReserveCluster()).cluster_id for _ in range(3)]
    assert queue.send(ReserveCluster()).code == "busy"
    assert queue.send(ReserveCluster(), BOB).cluster_id == numbers[-1] + 1
    core.submissions.link_lost("in:9")
    assert [queue.send(ReserveCluster()).cluster_id for _ in range(3)] == numbers
    core.context.now_s += 1000.0
    core.submissions._expire()
    assert queue.send(ReserveCluster(), BOB).cluster_id == numbers[0]


def test_a_number_that_was_given_back_is_another_ones() -> None:
    queue = Queue()
    number = queue.send(ReserveCluster()).cluster_id
    queue.core.submissions.link_lost("in:9")
    assert queue.send(ReserveCluster(), BOB).cluster_id == number
    late = queue.send(SubmitPage(cluster_id=number, page=0, cluster_ad=b"", procs=(b"",), first_proc=0, last=True))
    assert isinstance(late, Refused)


def test_limits_are_looked_at_before_the_work() -> None:
    """Neither are pages kept beyond them, nor numbers given."""
    queue = Queue(max_jobs_per_submission=5, max_jobs_per_owner=3)
    number = queue.send(ReserveCluster()).cluster_id
    answer = queue.send(SubmitPage(cluster_id=number, page=0, cluster_ad=b"", procs=(b"",) * 6, first_proc=0,
                                   last=False))
    assert "MAX_JOBS_PER_SUBMISSION" in answer.text
    assert not queue.core.submissions._pending
    number = queue.send(ReserveCluster()).cluster_id
    queue.send(SubmitPage(cluster_id=number, page=0, cluster_ad=b"Requirements = true\n", procs=(b"",) * 2,
                          first_proc=0, last=True))
    assert "MAX_JOBS_PER_OWNER" in queue.send(ReserveCluster()).text
