"""The table of job attributes, walked both ways: what it allows is done, and what it does not is not."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.schedd.job_attributes import (
    ATTRIBUTES,
    PRIVATE,
    Attribute,
    Hand,
    attribute,
    may_be_set_by_run,
)
from condor_actors.cores.schedd.queue_operations import QueueSnapshot
from condor_actors.cores.schedd.queued_job import Job
from condor_actors.cores.schedd.runs.run import Run
from condor_actors.cores.schedd.schedd_core import ScheddCore
from condor_actors.cores.schedd.schedd_settings import ScheddSettings
from condor_actors.effects import Reply
from condor_actors.messages.envelope import Address, Delivery, Identity, Refused
from condor_actors.messages.pages import LARGE_AD
from condor_actors.messages.queue import (
    ActionResults,
    ActOnJobs,
    EditJobs,
    JobAction,
    JobsPage,
    QueryJobs,
    QueryTotals,
    Totals,
)
from condor_actors.messages.shadow_host import RunEnded, RunUpdated
from condor_actors.messages.submission import ReserveCluster, SubmitPage

ANN = Identity(name="ann@dom", method="local", uid=1000)
BOB = Identity(name="bob@dom", method="local", uid=1001)
ROOT = Identity(name="root@dom", method="local", uid=0)
ELSEWHERE = Identity(name="ann@other", method="tls", roles=frozenset({"user"}), host="other")
SECRET = 'Environment = "TOKEN=hush"\nArguments = "--password hush"\n'
ROWS = [row for row in ATTRIBUTES.values() if "*" not in row.name]
ROWS += [Attribute(row.name.replace("*", "Cpus3"), row.set_by, row.edited_by, row.is_reported, row.seen_by)
         for row in ATTRIBUTES.values() if "*" in row.name]
CUSTOM = Attribute("Something")
IDS = [row.name for row in ROWS]


class Queue:
    """A schedd's core with a job of ann's, 1.0."""

    def __init__(self, ad: str = "", **settings: Any) -> None:
        self.core = ScheddCore(ScheddSettings(name="s", uid_domain="dom", **settings), QueueSnapshot(), Random(1), 1.0,
                               "v")
        self.core.start(1.0, "<s:1>")
        self.submitted = self.submit(ad)

    def send(self, message: Any, identity: Identity = ANN) -> Any:
        out = self.core.handle(Delivery(message=message, sender=Address("in:9", "x"), identity=identity), 2.0)
        return next((each.message for each in out if isinstance(each, Reply)), None)

    def submit(self, ad: str, proc: str = "", identity: Identity = ANN) -> Any:
        number = self.send(ReserveCluster(), identity).cluster_id
        text = f'Cmd = "/bin/true"\nRequirements = true\n{ad}'
        return self.send(SubmitPage(cluster_id=number, page=0, cluster_ad=text.encode(), procs=(proc.encode(),),
                                    first_proc=0, last=True), identity)

    @property
    def job(self) -> Job:
        job = self.core.context.queue.job(1, 0)
        assert job is not None
        return job

    def run(self) -> Run:
        """A run of the job, as far as reports go."""
        run = Run("1.0#1@s", self.job, "ann", None, 1.0)
        self.core.runs.runs[run.run_id] = run
        return run


def value_of(row: Attribute) -> str:
    """Something that the attribute would not be otherwise."""
    return '"ann"' if row.set_by is Hand.CHARGE or row.name == "JobSetName" else "4711"


@pytest.mark.parametrize("row", [*ROWS, CUSTOM], ids=[*IDS, "custom"])
def test_at_submission(row: Attribute) -> None:
    """By a client that sends what it likes, in the cluster's ad and in a job's own."""
    if row.name in ("Owner", "User", "JobStatus"):
        return  # refused as a whole; see below
    said = f"{row.name} = {value_of(row)}\n"
    for where in ({"ad": said}, {"ad": "", "proc": said})[: 1 if row.name == "JobSetName" else 2]:  # one of a cluster
        queue = Queue("")
        answer = queue.submit(**where)
        assert type(answer).__name__ == "Submitted", answer
        job = queue.core.context.queue.job(answer.cluster_id, 0)
        assert job is not None
        is_set = str(job.ad.evaluate(row.name)) == value_of(row).strip('"')
        assert is_set == (row.set_by is not Hand.SCHEDD)


@pytest.mark.parametrize("ad", ['Owner = "bob"\n', 'User = "bob@dom"\n', 'User = "ann@other"\n', "JobStatus = 2\n",
                                'Owner = strcat("b", "ob")\n', "JobStatus = 4\n"])
def test_nobody_submits_in_anothers_name(ad: str) -> None:
    queue = Queue("")
    for where in ({"ad": ad}, {"ad": "", "proc": ad}):
        answer = queue.submit(**where)
        assert isinstance(answer, Refused), answer


@pytest.mark.parametrize("row", [*ROWS, CUSTOM], ids=[*IDS, "custom"])
def test_in_an_edit(row: Attribute) -> None:
    """By the owner, by a super user, by someone else; of the job and of its whole cluster."""
    wish = f"{row.name} = {value_of(row)}\n".encode()
    if row.edited_by is Hand.CHARGE and row.name != "AccountingGroup":  # alone it has no effect, and is refused
        wish += b'AccountingGroup = "ann"\n'
    may = {ANN: row.edited_by in (Hand.OWNER, Hand.CHARGE), ROOT: row.edited_by is not Hand.NOBODY, BOB: False,
           ELSEWHERE: False}
    for identity, allowed in may.items():
        for proc in (0, -1):
            queue = Queue("")
            before = queue.job.ad.evaluate(row.name)
            answer = queue.send(EditJobs(attributes=wish, ids=((1, proc),)), identity)
            assert isinstance(answer, (Refused, ActionResults))
            if allowed:
                assert str(queue.job.ad.evaluate(row.name)) == value_of(row).strip('"')
            else:
                assert queue.job.ad.evaluate(row.name) == before


@pytest.mark.parametrize("row", [*ROWS, CUSTOM], ids=[*IDS, "custom"])
def test_in_a_shadows_report(row: Attribute) -> None:
    """A shadow tells what runs tell, and nothing else of its job."""
    value = '"4.711"' if row.name == "LastCkptGeneration" else "4711"
    wish = f"RemoteUserCpu = 3.5\n{row.name} = {value}\n".encode()
    queue = Queue("")
    run = queue.run()
    before = queue.job.ad.evaluate(row.name)
    queue.core.runs.updated(RunUpdated(run_id=run.run_id, attributes=wish), "ann")
    changed = queue.job.ad.evaluate(row.name) != before
    assert changed == row.is_reported
    assert queue.job.ad.evaluate("RemoteUserCpu") == (4711 if row.name == "RemoteUserCpu" else 3.5)


def test_a_shadow_takes_no_generation_back() -> None:
    """The oldest checkpoint that a run may go on from is the one before the newest that was ever told."""
    queue = Queue("")
    run = queue.run()
    for told, last, previous in (("1.1", "1.1", ""), ("1.2", "1.2", "1.1"), ("1.1", "1.2", "1.1"), ("", "1.2", "1.1"),
                                 ("x", "1.2", "1.1"), ("1.2", "1.2", "1.1"), ("1.10", "1.10", "1.2")):
        report = f'LastCkptGeneration = "{told}"\n'.encode()
        queue.core.runs.updated(RunUpdated(run_id=run.run_id, attributes=report), "ann")
        assert queue.job.ad.get_str("LastCkptGeneration") == last
        assert queue.job.ad.get_str("PreviousCkptGeneration") == previous


def test_a_report_is_bounded_and_an_ad() -> None:
    queue = Queue("")
    run = queue.run()
    for text in (b"ExitCode = ((", b"\xff\xfe", b'RemoteSysCalls = "' + b"x" * 100_000 + b'"\n'):
        queue.core.runs.updated(RunUpdated(run_id=run.run_id, attributes=text), "ann")
        queue.core.runs.updated(RunUpdated(run_id=run.run_id, attributes=text), "bob")
    assert queue.job.ad.find("remotesyscalls") is None
    assert queue.job.ad.find("exitcode") is None


def test_a_last_report_is_filtered_too() -> None:
    queue = Queue("")
    run = queue.run()
    queue.core.runs.facts.account(run, RunEnded(run_id=run.run_id, outcome="exited",
                                           attributes=b'Owner = "root"\nCmd = "/bin/sh"\nExitCode = 3\n'))
    assert [queue.job.ad.get_str(name) for name in ("Owner", "Cmd")] == ["ann", "/bin/true"]
    assert queue.job.ad.get_int("ExitCode") == 3


# ---- who sees what


def seen(queue: Queue, identity: Identity, **question: Any) -> list[ClassAd]:
    page = queue.send(QueryJobs(**question), identity)
    assert isinstance(page, JobsPage), page
    return [ClassAd.from_bytes(text) for text in page.ads]


@pytest.mark.parametrize("in_job", [False, True])
def test_what_is_private_is_seen_by_its_owner_and_super_users(in_job: bool) -> None:
    queue = Queue("" if in_job else SECRET)
    if in_job:
        queue.send(EditJobs(attributes=SECRET.encode(), ids=((1, 0),)))
    for identity, near in ((ANN, True), (ROOT, True), (BOB, False), (ELSEWHERE, False)):
        for question in ({}, {"projection": ("ClusterId", "environment", "ARGUMENTS", "Cmd")}, {"ids": ((1, 0),)}):
            (ad,) = seen(queue, identity, **question)
            assert ad.get_str("Cmd") == "/bin/true"
            assert [("hush" in str(ad.evaluate(name))) for name in ("Environment", "Arguments")] == [near, near]
            assert (b"hush" in ad.to_bytes()) == near


@pytest.mark.parametrize("constraint", [
    'regexp("hush", Environment)', 'regexp("hush", MY.environment)', "Environment isnt undefined",
    'Arguments == "--password hush"', 'eval(strcat("Environ", "ment")) isnt undefined',
    "TARGET.Arguments isnt undefined", 'size(Environment) > 2', "Copy isnt undefined"])
def test_constraints_do_not_tell_it_either(constraint: str) -> None:
    """What a stranger asks with is evaluated where there is nothing to find; so is what an attribute is made of."""
    queue = Queue(SECRET + "Copy = Environment\n")
    stranger = {ClassAd: len(seen(queue, BOB, constraint=constraint))}
    assert stranger == {ClassAd: 0}
    totals = queue.send(QueryTotals(constraint=constraint), BOB)
    assert isinstance(totals, Totals)
    assert not any(count for _, count in totals.everybody)
    if "TARGET" not in constraint:
        assert len(seen(queue, ANN, constraint=constraint)) == 1


def test_autoclusters_do_not_tell_it() -> None:
    queue = Queue(SECRET + 'Requirements = Environment != ""\n')
    for identity, near in ((ANN, True), (BOB, False)):
        ads = seen(queue, identity, source="autoclusters")
        assert len(ads) == 1
        assert (b"hush" in ads[0].to_bytes()) == near


def test_constraints_of_actions_are_asked_of_ones_own_jobs_alone() -> None:
    queue = Queue(SECRET)
    answer = queue.send(ActOnJobs(action=JobAction.HOLD, constraint="true"), BOB)
    assert answer.count == 0
    assert queue.job.status == 1


def test_the_administrator_may_show_everything() -> None:
    queue = Queue(SECRET, private=frozenset())
    (ad,) = seen(queue, BOB)
    assert "hush" in ad.get_str("Environment")


def test_the_table_says_who_hides_what() -> None:
    assert frozenset({"environment", "env", "arguments", "args"}) == PRIVATE
    assert ScheddSettings().private == PRIVATE
    for name in ("_condor_privSecret", "CLAIMID", "machineattrMips0"):
        assert attribute(name).set_by is Hand.SCHEDD


@pytest.mark.parametrize("name", ["EC2AccessKeyId", "EC2SecretAccessKey", "EC2SessionToken", "AWSRegion",
                                  "OutputDestination", "OutputDirectory", "TransferOutputRemaps"])
def test_a_run_does_not_say_which_files_its_shadow_reads_as_keys(name: str) -> None:
    assert not may_be_set_by_run(name)


@pytest.mark.parametrize("where", [{"ad": "x"}, {"ad": "", "proc": "x"}], ids=["the cluster's ad", "a job's own"])
def test_an_ad_that_fits_no_message_is_refused(where: dict[str, str]) -> None:
    """By a client that does not look at it before, as condor_submit does."""
    answer = Queue("").submit(**{name: f'A = "{value * 400_000}"\n' if value else "" for name, value in where.items()})
    assert isinstance(answer, Refused), answer
    assert answer.text == LARGE_AD
