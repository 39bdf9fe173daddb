"""What an admin lets into the queue, lets change there, and lets run on the submit machine."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from condor_actors.config import load_config
from condor_actors.cores.schedd.schedd_settings import ScheddSettings, schedd_settings
from condor_actors.messages.envelope import Identity, Refused
from condor_actors.messages.queue import ActionResults, EditJobs
from condor_actors.messages.submission import ReserveCluster, SubmitPage
from tests.harness.local_post import Probe
from tests.harness.submit_side import USER, SubmitPool
from tests.unit.daemons.schedd.test_submit_side import entry

FIELDS = ("submit_requirements", "transforms", "secure", "ignores_secure", "immutable", "protected",
          "trusts_everybody", "start_local", "start_scheduler",
          "max_local_jobs", "max_scheduler_jobs_per_owner", "more_significant", "less_significant",
          "only_significant", "max_input_mb", "max_output_mb")
BOB = Identity(name="bob@test", method="local", uid=4242)


def pool_of(folder: Path, **parameters: str) -> SubmitPool:
    read: ScheddSettings = schedd_settings(load_config(files=[], environ={}, overrides=parameters), machine="test")
    return SubmitPool(folder, **{name: getattr(read, name) for name in FIELDS})


def submit(pool: SubmitPool, ad: bytes) -> object:
    cluster = pool.ask(ReserveCluster()).cluster_id
    return pool.ask(SubmitPage(cluster_id=cluster, page=0, cluster_ad=b"Requirements = true\n" + ad, procs=(b"",),
                               first_proc=0, last=True))


def test_what_a_job_has_to_satisfy(tmp_path: Path) -> None:
    pool = pool_of(
        tmp_path, SUBMIT_REQUIREMENT_NAMES="Small, Named, Polite",
        SUBMIT_REQUIREMENT_Small="TARGET.RequestMemory <= 1000",
        SUBMIT_REQUIREMENT_Small_REASON='strcat("ask for less than ", TARGET.RequestMemory, " MB at ", MY.Name)',
        SUBMIT_REQUIREMENT_Named="JobBatchName isnt undefined",
        SUBMIT_REQUIREMENT_Polite="Please", SUBMIT_REQUIREMENT_Polite_IS_WARNING="true")
    refused = submit(pool, b'RequestMemory = 2000\nJobBatchName = "x"\n')
    assert isinstance(refused, Refused)
    assert refused.text == "ask for less than 2000 MB at schedd@test"
    refused = submit(pool, b"RequestMemory = 10\n")
    assert isinstance(refused, Refused)
    assert refused.text == "Submit requirement Named not met."
    assert pool.jobs() == []
    assert type(submit(pool, b'RequestMemory = 10\nJobBatchName = "x"\n')).__name__ == "Submitted"


def test_jobs_are_transformed_before_they_are_judged_and_counted(tmp_path: Path) -> None:
    pool = pool_of(
        tmp_path, JOB_TRANSFORM_NAMES="Group Wait", JOB_TRANSFORM_Group="SET AccountingGroup \"physics\"",
        JOB_TRANSFORM_Wait="REQUIREMENTS Args == \"later\"\nSET JobStatus 5\nSET TotalSubmitProcs 99",
        SUBMIT_REQUIREMENT_NAMES="Grouped", SUBMIT_REQUIREMENT_Grouped="AccountingGroup == \"physics\"")  # fmt: skip
    cluster = pool.submit(procs=2, proc_ads=(b"", b'Args = "later"\n'))
    first, second = pool.jobs(ids=((cluster, -1),))
    assert [ad.get_str("AccountingGroup") for ad in (first, second)] == ["physics"] * 2
    assert [ad.get_int("JobStatus") for ad in (first, second)] == [1, 5]
    assert second.get_str("HoldReason") == "submitted on hold at user's request"
    assert first.get_int("TotalSubmitProcs") == 2
    assert "physics@test" in pool.schedd.actor.core.context.queue.by_submitter  # type: ignore[union-attr]
    # What it made of them outlives the schedd.
    pool.kill_schedd()
    pool.start_schedd()
    assert [ad.get_int("JobStatus") for ad in pool.jobs(ids=((cluster, -1),))] == [1, 5]


def test_a_transform_that_fails_refuses_the_submission(tmp_path: Path) -> None:
    pool = pool_of(tmp_path, JOB_TRANSFORM_NAMES="Odd", JOB_TRANSFORM_Odd="SET A $(MY.Args) +")
    refused = submit(pool, b'Args = "1"\n')
    assert isinstance(refused, Refused)
    assert refused.text.startswith("JOB_TRANSFORM_Odd: '1 +' is no expression")
    assert pool.jobs() == []


@pytest.mark.parametrize("ignored", ["True", "False"])
def test_what_only_the_schedd_says_of_a_job(tmp_path: Path, ignored: str) -> None:
    pool = pool_of(tmp_path, SECURE_JOB_ATTRS="Badge", IGNORE_ATTEMPTS_TO_SET_SECURE_JOB_ATTRS=ignored,
                   JOB_TRANSFORM_NAMES="Badge", JOB_TRANSFORM_Badge="SET Badge \"given\"")  # fmt: skip
    answer = submit(pool, b'Badge = "mine"\nx509userproxysubject = "/CN=me"\n')
    if ignored == "False":
        assert isinstance(answer, Refused)
        assert answer.text == "attempt to set the secure attribute Badge: only the schedd may"
        cluster = pool.submit()
    else:
        (ad,) = pool.jobs()
        assert (ad.get_str("Badge"), "x509userproxysubject" in ad) == ("given", False)
        cluster = ad.get_int("ClusterId")
    answer = edit(pool, cluster, b'Badge = "mine"\nFree = 1\n')
    assert isinstance(answer, Refused if ignored == "False" else ActionResults)
    (ad,) = pool.jobs()
    assert (ad.get_str("Badge"), ad.get_int("Free")) == ("given", 0 if ignored == "False" else 1)


def edit(pool: SubmitPool, cluster: int, text: bytes, who: Probe | None = None) -> object:
    return pool.ask(EditJobs(ids=((cluster, -1),), attributes=text), who)


def someone(pool: SubmitPool, identity: Identity) -> Probe:
    return pool.net.probe(pool.net.system(f"<{identity.user}:1>", identity=identity))


def test_what_nobody_and_what_only_a_super_user_edits(tmp_path: Path) -> None:
    pool = pool_of(tmp_path, IMMUTABLE_JOB_ATTRS="Project", PROTECTED_JOB_ATTRS="Funding")
    cluster = pool.submit(b'Project = "p"\nFunding = 1\nFree = 1\n')
    for name in ("Project", "ClusterId", "Owner", "QDate"):
        assert isinstance(edit(pool, cluster, f"{name} = 3\n".encode()), Refused)
    owner = someone(pool, Identity(name=f"{USER}@test", method="local", uid=4243))
    assert isinstance(edit(pool, cluster, b"Free = 2\n", owner), ActionResults)
    pool.settings = pool.schedd.actor.core.context.settings = attrs.evolve(pool.settings, super_users=frozenset())
    assert isinstance(edit(pool, cluster, b"Funding = 2\n", owner), Refused), "also where the tests' user is root"


@pytest.mark.parametrize(("trusted", "free"), [("True", 2), ("False", 1)])
def test_everybody_may_be_trusted(tmp_path: Path, trusted: str, free: int) -> None:
    pool = pool_of(tmp_path, QUEUE_ALL_USERS_TRUSTED=trusted)
    cluster = pool.submit(b"Free = 1\n")
    edit(pool, cluster, b"Free = 2\n", someone(pool, BOB))
    assert pool.jobs()[0].get_int("Free") == free


class Waiting:
    """A launched program that never ends."""

    pid = 1 << 22

    def __call__(self, plan: object, began: object, failed: object, ended: object) -> Waiting:
        return self


@pytest.mark.parametrize(("parameters", "universe", "started"), [
    ({}, 12, 4), ({"START_LOCAL_UNIVERSE": "TotalLocalJobsRunning < 2"}, 12, 2),
    ({"START_LOCAL_UNIVERSE": "TARGET.Wanted =?= true"}, 12, 0), ({"START_LOCAL_UNIVERSE_MAX": "3"}, 12, 3),
    ({"START_SCHEDULER_UNIVERSE": "false"}, 7, 0), ({"MAX_RUNNING_SCHEDULER_JOBS_PER_OWNER": "1"}, 7, 1),
])
def test_how_many_jobs_run_on_the_submit_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                 parameters: dict[str, str], universe: int, started: int) -> None:
    monkeypatch.setattr("tests.harness.submit_side.NoLauncher.launch", Waiting())
    pool = pool_of(tmp_path, **parameters)
    cluster = pool.submit(f"JobUniverse = {universe}\n".encode(), procs=4)
    pool.run(5.0)
    assert sum(job.get_int("JobStatus") == 2 for job in pool.jobs()) == started
    pool.act("remove", cluster)


def test_significant_attributes_are_the_admins(tmp_path: Path) -> None:
    pool = pool_of(tmp_path, ADD_SIGNIFICANT_ATTRIBUTES="Colour", REMOVE_SIGNIFICANT_ATTRIBUTES="RequestDisk")
    pool.submit(procs=3, proc_ads=(b'Colour = "red"\n', b'Colour = "blue"\nRequestDisk = 7\n', b'Colour = "blue"\n'))
    pool.match(0)
    assert pool.schedd.actor is not None
    assert sorted(each.waiting for each in pool.schedd.actor.core.context.autoclusters.by_number.values()) == [1, 2]


@pytest.mark.parametrize(("line", "code"), [("MAX_TRANSFER_INPUT_MB", 32), ("MAX_TRANSFER_OUTPUT_MB", 33)])
def test_more_than_may_travel_holds_the_job(tmp_path: Path, line: str, code: int) -> None:
    pool = pool_of(tmp_path, **{line: "0"})
    (pool.home / "in").write_text("x")
    cluster = pool.submit(b'TransferInput = "in"\n')
    pool.match()
    run_id = f"{cluster}.0#1"
    if code == 33:
        pool.execute.begin(run_id)
        pool.execute.finish(run_id, outputs=(entry("result", b"42"),))
        pool.run()
    (job,) = pool.jobs()
    assert (job.get_int("JobStatus"), job.get_int("HoldReasonCode")) == (5, code)
    assert line.split("_")[2].capitalize() in job.get_str("HoldReason")
    assert not (pool.home / "result").exists()

