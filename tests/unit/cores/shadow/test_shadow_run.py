"""A run as its shadow sees it, when it is told to stop while the starter is out of reach.

A job that may be started again must not be said to be over while its program may run.
"""

from __future__ import annotations

from typing import Any

import pytest

from condor_actors.classads import UNDEFINED, ClassAd
from condor_actors.cores.shadow.shadow_checkpoint import CheckpointHome
from condor_actors.cores.shadow.shadow_events import (
    BlobsFailed,
    InputsReady,
    Log,
    Report,
    SendBlobs,
    SendLogged,
    Settled,
)
from condor_actors.cores.shadow.shadow_run import NOTICE_S, ShadowRun
from condor_actors.effects import Answer, Ask, Send, SetTimer
from condor_actors.messages.codes import JobEventType, Universe
from condor_actors.messages.envelope import AskFailed, PeerDown, Refused, TimerFired
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.run import (
    Activated,
    CheckpointKept,
    ContinueRun,
    OutputsReceived,
    Reattached,
    ReattachRun,
    RunBegan,
    RunExited,
    RunProgress,
    StopRun,
    SuspendRun,
    Usage,
)
from condor_actors.messages.shadow_host import RunEnded, RunUpdated, StartRun

LEASE_S = 300.0
SILENCE_S = 120.0
"""How long a starter may take to notice that its shadow is gone."""


class Bench:
    """A shadow's run, by default one that another began."""

    def __init__(self, *, reattach: bool = True) -> None:
        self.run = ShadowRun(StartRun(
            run_id="1.0#1", job_ad=b"ProcId = 0\n", claim_id="c", secret="s", starter_node="<e:1>", slot_name="slot1@e",
            slot_ad=b"", lease_s=LEASE_S, reattach=reattach), ClassAd.from_bytes(b"ProcId = 0\n"), "key")
        self.out = list(self.run.start(1000.0))

    def tell(self, event: Any) -> None:
        self.out += self.run.handle(event, 1001.0)

    def reattached(self, **known: Any) -> None:
        self.tell(Answer("reattach", Reattached(run_id="1.0#1", pid=7, ended=False, **known)))

    def logged(self, *events: JobEventType) -> list[tuple[int, float, bool]]:
        """Events with their times, and whether the log is looked into first."""
        return [(each.event, each.when_s, each.again) for each in self.out
                if isinstance(each, Log) and each.event in events]

    @property
    def ends(self) -> list[str]:
        return [each.message.outcome for each in self.out if isinstance(each, Report)
                and isinstance(each.message, RunEnded)]

    def sent(self, kind: type) -> list[Any]:
        return [each.message for each in self.out if isinstance(each, (Ask, Send)) and isinstance(each.message, kind)]


@pytest.mark.parametrize("how", ["fast", "hold", "vacate"])
def test_the_starter_hears_of_the_stop_when_it_is_found(how: str) -> None:
    bench = Bench()
    bench.tell(StopRun(run_id="1.0#1", how=how))
    assert not bench.ends
    bench.reattached()
    assert [message.how for message in bench.sent(StopRun)] == [how]
    assert not bench.ends


@pytest.mark.parametrize(("code", "given_up"), [("busy", False), ("internal", False), ("not-found", True)])
def test_only_an_answer_about_the_run_gives_it_up(code: str, given_up: bool) -> None:
    bench = Bench()
    bench.tell(Answer("reattach", Refused(code=code, text="no")))
    assert bool(bench.ends) == given_up


@pytest.mark.parametrize("how", ["fast", "hold", "vacate"])
def test_a_run_that_is_to_stop_is_not_over_because_its_link_breaks(how: str) -> None:
    bench = Bench()
    bench.reattached()
    bench.tell(StopRun(run_id="1.0#1", how=how))
    bench.tell(PeerDown(node="<e:1>", reason="reset"))
    assert not bench.ends
    bench.tell(TimerFired(key="reattach"))
    assert len(bench.sent(ReattachRun)) == 2
    bench.reattached()
    assert [message.how for message in bench.sent(StopRun)] == [how, how]


def test_it_is_over_when_nothing_is_left_of_it() -> None:
    bench = Bench()
    bench.tell(StopRun(run_id="1.0#1", how="hold"))
    bench.tell(Answer("reattach", Refused(code="not-found", text="no such run")))
    assert bench.ends == ["lost"]


def test_it_is_over_when_the_starter_must_have_ended_it() -> None:
    bench = Bench()
    bench.tell(StopRun(run_id="1.0#1", how="fast"))
    bench.tell(Answer("reattach", AskFailed(reason="timeout", text="no answer in time", question=None)))
    waits = {each.key: each.delay_s for each in bench.out if isinstance(each, SetTimer)}
    assert waits["lease"] == LEASE_S + NOTICE_S > LEASE_S + SILENCE_S
    bench.tell(TimerFired(key="lease"))
    assert bench.ends == ["lost"]


def test_nobody_waits_for_a_job_that_was_removed() -> None:
    bench = Bench()
    bench.tell(StopRun(run_id="1.0#1", how="remove"))
    assert bench.ends == ["evicted"]


def test_a_claim_that_is_over_need_not_be_waited_for() -> None:
    bench = Bench()
    bench.tell(StopRun(run_id="1.0#1", how="lost", reason="the starter host was started again"))
    assert bench.ends == ["lost"]


@pytest.mark.parametrize("how", ["fast", "hold", "vacate", "remove"])
@pytest.mark.parametrize("missing", [(), ("digest",)])
def test_a_stop_that_crosses_the_activation_is_told_to_who_can_hear_it(how: str, missing: tuple[str, ...]) -> None:
    bench = Bench(reattach=False)
    bench.tell(InputsReady(()))
    bench.tell(StopRun(run_id="1.0#1", how=how))
    assert not bench.sent(StopRun)
    assert not bench.ends
    bench.tell(Answer("activate", Activated(run_id="1.0#1", missing=missing)))
    assert [message.how for message in bench.sent(StopRun)] == [how]
    assert not any(isinstance(each, SendBlobs) for each in bench.out)


@pytest.mark.parametrize(("reason", "again"), [("link-lost", True), ("timeout", True), ("unreachable", False)])
def test_the_lease_begins_anew_when_the_starter_may_have_been_asked(reason: str, again: bool) -> None:
    bench = Bench()
    bench.out.clear()
    bench.tell(Answer("reattach", AskFailed(reason=reason, text="", question=None)))
    waits = {each.key: each.delay_s for each in bench.out if isinstance(each, SetTimer)}
    assert waits.get("lease") == (LEASE_S + NOTICE_S if again else None)


def test_a_wish_waits_until_there_is_a_starter() -> None:
    bench = Bench(reattach=False)
    bench.tell(SuspendRun(run_id="1.0#1"))
    bench.tell(InputsReady((), transfers=False))
    assert not bench.sent(SuspendRun)
    bench.tell(Answer("activate", Activated(run_id="1.0#1", missing=())))
    assert len(bench.sent(SuspendRun)) == 1
    bench.tell(ContinueRun(run_id="1.0#1"))
    assert len(bench.sent(ContinueRun)) == 1


def test_so_does_one_while_the_starter_is_out_of_reach() -> None:
    bench = Bench()
    bench.tell(SuspendRun(run_id="1.0#1"))
    bench.reattached()
    assert len(bench.sent(SuspendRun)) == 1


@pytest.mark.parametrize("after", [ContinueRun(run_id="1.0#1"), StopRun(run_id="1.0#1", how="vacate")])
def test_a_wish_is_forgotten_when_another_follows(after: Any) -> None:
    bench = Bench(reattach=False)
    bench.tell(InputsReady((), transfers=False))
    bench.tell(SuspendRun(run_id="1.0#1"))
    bench.tell(after)
    bench.tell(Answer("activate", Activated(run_id="1.0#1", missing=())))
    assert not bench.sent(SuspendRun)


def test_that_it_began_is_told_before_that_it_stands_still() -> None:
    bench = Bench(reattach=False)
    bench.tell(InputsReady((), transfers=False))
    bench.tell(Answer("activate", Activated(run_id="1.0#1", missing=())))
    bench.tell(RunBegan(run_id="1.0#1", when_s=1001.0, pid=7, scratch_dir="/s"))
    bench.tell(RunProgress(run_id="1.0#1", usage=Usage(), state="suspended"))
    told = [each.message.event for each in bench.out if isinstance(each, Report)
            and isinstance(each.message, RunUpdated)]
    assert told == ["executing", "suspended"]


def test_what_its_images_name_means_is_decided_once() -> None:
    first, second = ("sha256:" + digit * 64 for digit in "01")
    bench = Bench(reattach=False)
    bench.tell(InputsReady((), transfers=False))
    bench.tell(Answer("activate", Activated(run_id="1.0#1", missing=())))
    for digest in ("no digest", first, second):
        bench.tell(RunBegan(run_id="1.0#1", when_s=1001.0, pid=7, scratch_dir="/s", image_digest=digest))
        bench.tell(RunProgress(run_id="1.0#1", usage=Usage(), image_digest=digest))
    assert bench.run.attributes.evaluate("ContainerImageDigest") == first


def test_a_run_that_asks_anew_says_what_it_was_told() -> None:
    first, second = ("sha256:" + digit * 64 for digit in "01")
    bench = Bench(reattach=False)
    bench.run.job.update({"ContainerImageDigest": first, "DockerPullPolicy": "always"})
    bench.tell(InputsReady((), transfers=False))
    bench.tell(Answer("activate", Activated(run_id="1.0#1", missing=())))
    bench.tell(RunBegan(run_id="1.0#1", when_s=1001.0, pid=7, scratch_dir="/s", image_digest=second))
    assert bench.run.attributes.evaluate("ContainerImageDigest") == second


def test_of_ports_only_those_of_the_jobs_services_are_believed_and_only_while_it_runs() -> None:
    bench = Bench(reattach=False)
    bench.run.job.update({"ContainerServiceNames": "web, db", "web_ContainerPort": 80, "db_ContainerPort": 81})
    bench.tell(InputsReady((), transfers=False))
    bench.tell(Answer("activate", Activated(run_id="1.0#1", missing=())))
    bench.tell(RunBegan(run_id="1.0#1", when_s=1001.0, pid=7, scratch_dir="/s",
                        ports=(("web", 40001), ("db", 70000), ("other", 40002))))
    bench.tell(RunProgress(run_id="1.0#1", usage=Usage(), ports=(("web", 40003),)))
    found = bench.run.attributes
    assert (found.evaluate("web_HostPort"), "db_HostPort" in found, "other_HostPort" in found) == (40003, False, False)
    bench.tell(StopRun(run_id="1.0#1", how="lost", reason="the claim is over"))
    bench.run.end("evicted", "")
    assert found.evaluate("web_HostPort") is UNDEFINED


@pytest.mark.parametrize("settled_first", [True, False])
def test_a_run_that_is_found_after_it_was_given_up_is_freed(settled_first: bool) -> None:
    bench = Bench()
    bench.tell(StopRun(run_id="1.0#1", how="lost", reason="the claim is over"))
    assert bench.ends == ["lost"]
    if settled_first:
        bench.tell(Settled())
    else:
        bench.reattached()
        assert [message.how for message in bench.sent(StopRun)] == ["fast"]
        bench.tell(Settled())
    assert len(bench.sent(OutputsReceived)) == 1


def test_a_start_that_is_told_twice_is_one_start() -> None:
    bench = Bench(reattach=False)
    bench.tell(InputsReady(entries=()))
    bench.tell(Answer("activate", Activated(run_id="1.0#1")))
    for when_s in (1002.0, 1003.0):
        bench.tell(RunBegan(run_id="1.0#1", when_s=when_s, pid=7, scratch_dir="/scratch"))
    logged = [each for each in bench.out if isinstance(each, Log) and each.event == JobEventType.EXECUTE]
    assert [each.when_s for each in logged] == [1002.0]
    assert bench.run.attributes.get_int("NumJobStarts") == 1


def executed(bench: Bench) -> list[float]:
    return [each.when_s for each in bench.out if isinstance(each, Log) and each.event == JobEventType.EXECUTE]


@pytest.mark.parametrize(("code", "starts"), [(0, 1), (3, 1), (-1, 0)])
@pytest.mark.parametrize("reattach", [True, False])
def test_a_program_that_is_heard_of_only_when_it_has_ended_was_started(reattach: bool, code: int, starts: int) -> None:
    bench = Bench(reattach=reattach)
    if not reattach:
        bench.tell(InputsReady(entries=()))
        bench.tell(Answer("activate", Activated(run_id="1.0#1")))
    bench.tell(RunExited(run_id="1.0#1", cause="exited" if code >= 0 else "start-failed", usage=Usage(wall_s=5.0),
                         when_s=1000.0, exit_code=code, began_s=995.0 if code >= 0 else 0.0))
    assert bench.run.attributes.get_int("NumJobStarts") == starts
    assert bench.logged(JobEventType.EXECUTE) == ([(JobEventType.EXECUTE, 995.0, reattach)] if starts else [])
    assert len(bench.ends) == 1


def test_a_start_that_was_counted_before_the_schedd_died_is_not_counted_again() -> None:
    bench = Bench()
    bench.run.job.update({"NumJobStarts": 4, "JobCurrentStartDate": 900, "JobCurrentStartExecutingDate": 950})
    bench.tell(RunExited(run_id="1.0#1", cause="exited", usage=Usage(wall_s=5.0), when_s=1000.0, exit_code=0,
                         began_s=950.0))
    assert bench.run.attributes.get_int("NumJobStarts") == 4


def test_a_start_whose_news_was_lost_with_the_link_is_logged_when_the_run_is_found() -> None:
    bench = Bench(reattach=False)
    bench.tell(InputsReady(entries=()))
    bench.tell(Answer("activate", Activated(run_id="1.0#1")))
    bench.tell(PeerDown(node="<e:1>", reason="cut"))
    bench.tell(TimerFired(key="reattach"))
    bench.reattached(began_s=1000.5)
    assert (executed(bench), bench.run.attributes.get_int("NumJobStarts")) == ([1000.5], 1)
    bench.tell(RunBegan(run_id="1.0#1", when_s=1000.5, pid=7, scratch_dir="/scratch"))
    assert len(executed(bench)) == 1


PAUSES = ((990.0, True, 3), (995.0, False, 3))
SUSPENSIONS = (JobEventType.JOB_SUSPENDED, JobEventType.JOB_UNSUSPENDED)


def test_what_a_dead_shadow_may_not_have_written_is_looked_for_and_written() -> None:
    """Its start, the files before it, and each time that it stood still."""
    bench = Bench()
    bench.run.job["JobCurrentStartDate"] = 970
    bench.reattached(began_s=980.0, scratch_dir="/scratch", has_inputs=True, pauses=PAUSES)
    assert bench.logged(JobEventType.FILE_TRANSFER, JobEventType.EXECUTE, *SUSPENSIONS) == [
        (JobEventType.FILE_TRANSFER, 970.0, True), (JobEventType.FILE_TRANSFER, 980.0, True),
        (JobEventType.EXECUTE, 980.0, True),
        (JobEventType.JOB_SUSPENDED, 990.0, True), (JobEventType.JOB_UNSUSPENDED, 995.0, True)]


def test_what_happened_while_the_link_was_cut_is_written_once() -> None:
    bench = Bench(reattach=False)
    bench.tell(InputsReady(entries=()))
    bench.tell(Answer("activate", Activated(run_id="1.0#1")))
    bench.tell(RunBegan(run_id="1.0#1", when_s=980.0, pid=7, scratch_dir="/scratch"))
    bench.tell(RunProgress(run_id="1.0#1", usage=Usage(), state="suspended", since_s=990.0))
    bench.tell(PeerDown(node="<e:1>", reason="cut"))
    bench.tell(TimerFired(key="reattach"))
    bench.reattached(began_s=980.0, pauses=(*PAUSES, (997.0, True, 1)))
    bench.tell(RunProgress(run_id="1.0#1", usage=Usage(), state="suspended", since_s=997.0))
    assert bench.logged(JobEventType.EXECUTE, *SUSPENSIONS) == [
        (JobEventType.EXECUTE, 980.0, False), (JobEventType.JOB_SUSPENDED, 990.0, False),
        (JobEventType.JOB_UNSUSPENDED, 995.0, False), (JobEventType.JOB_SUSPENDED, 997.0, False)]
    assert bench.run.suspended


def test_a_start_that_the_queue_has_known_for_long_is_not_looked_for() -> None:
    """After a restart of the schedd nobody reads the logs of all jobs that run back to their starts."""
    bench = Bench()
    bench.run.job.update({"NumJobStarts": 1, "JobCurrentStartDate": 100, "JobCurrentStartExecutingDate": 100})
    bench.reattached(began_s=100.0)
    assert bench.run.began
    assert not executed(bench)


@pytest.mark.parametrize(("local", "outcome"), [(True, "hold"), (False, "failed")])
def test_inputs_that_cannot_be_sent(local: bool, outcome: str) -> None:
    """What is wrong at home is for the owner to mend; what is wrong on the way is tried again elsewhere."""
    bench = Bench(reattach=False)
    bench.tell(InputsReady(entries=()))
    bench.tell(Answer("activate", Activated(run_id="1.0#1", missing=("0" * 64,))))
    bench.tell(BlobsFailed(reason="no such file", local=local))
    assert bench.ends == [outcome]
    assert [message.how for message in bench.sent(StopRun)] == ["fast"]


def test_the_first_shadow_gives_the_files_on_their_way_the_date_that_the_next_one_knows() -> None:
    bench = Bench(reattach=False)
    bench.run.job["JobCurrentStartDate"] = 970
    bench.tell(InputsReady(entries=(FileEntry(path="a", kind="file", mode=0o644, inline=b""),)))
    assert bench.logged(JobEventType.FILE_TRANSFER) == [(JobEventType.FILE_TRANSFER, 970.0, False)]


def test_the_starter_forgets_a_checkpoint_when_its_event_is_written() -> None:
    """It tells of it again to another shadow until then."""
    bench = Bench(reattach=False)
    bench.tell(InputsReady(entries=()))
    bench.tell(Answer("activate", Activated(run_id="1.0#1")))
    bench.tell(RunBegan(run_id="1.0#1", when_s=980.0, pid=7, scratch_dir="/scratch"))
    bench.out.clear()
    bench.tell(CheckpointHome(number=1, when_s=990.0, size_bytes=5))
    assert [type(each) for each in bench.out if isinstance(each, (Log, Send, SendLogged))] == [Log, SendLogged]
    assert [each.message for each in bench.out if isinstance(each, SendLogged)] == [
        CheckpointKept(run_id="1.0#1", number=1)]


@pytest.mark.parametrize("reattach", [True, False])
def test_a_run_that_is_lost_is_looked_for_since_its_start(reattach: bool) -> None:
    """A shadow before this one may have said so, with its own date."""
    bench = Bench(reattach=reattach)
    bench.run.job["JobCurrentStartDate"] = 970
    if not reattach:
        bench.tell(InputsReady(entries=()))
        bench.tell(Answer("activate", Activated(run_id="1.0#1")))
        bench.tell(RunBegan(run_id="1.0#1", when_s=980.0, pid=7, scratch_dir="/scratch"))
        bench.tell(PeerDown(node="<e:1>", reason="cut"))
    bench.tell(TimerFired(key="lease"))
    assert [(each.again, each.once_since_s) for each in bench.out if isinstance(each, Log)
            and each.event == JobEventType.JOB_RECONNECT_FAILED] == [(reattach, 971)]


@pytest.mark.parametrize(("universe", "said"), [(Universe.VANILLA, 1), (Universe.PARALLEL, 0)])
def test_a_lost_member_of_a_gang_that_ends_is_no_job_that_is_started_again(universe: Universe, said: int) -> None:
    """Its machine lost power, and the gang's first node has ended: the job is done."""
    bench = Bench(reattach=True)
    bench.run.job["JobUniverse"] = int(universe)
    bench.tell(StopRun(run_id="1.0#1", how="vacate", reason="node 0 has ended"))
    bench.tell(TimerFired(key="lease"))
    assert bench.ends == ["lost"]
    assert len([each for each in bench.out if isinstance(each, Log)
                and each.event == JobEventType.JOB_RECONNECT_FAILED]) == said
