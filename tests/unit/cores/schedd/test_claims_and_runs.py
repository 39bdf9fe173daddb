"""What the schedd makes of claims and runs: one run on a claim, leases, limits, ends; core against plain values."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.flock_lists import FlockLists
from condor_actors.cores.schedd.job_notices import RecordEpoch
from condor_actors.cores.schedd.queue_operations import DropClaim, DropRun, QueueSnapshot, SaveClaim, SaveRun
from condor_actors.cores.schedd.schedd_core import HostHello, ScheddCore
from condor_actors.cores.schedd.schedd_settings import ScheddSettings
from condor_actors.cores.schedd.shadow_hosts import HostStarted, StartHost
from condor_actors.effects import Answer, Ask, Effect, Persist, Reply, Send, SetTimer
from condor_actors.messages.claim import (
    ClaimGranted,
    ClaimRefused,
    DeclineMatch,
    ReleaseClaim,
    RenewClaims,
    RequestClaim,
)
from condor_actors.messages.envelope import Address, AskFailed, Delivery, Done, Identity, TimerFired
from condor_actors.messages.negotiate import Match, MatchesMade, NegotiateRequests, RequestsRejected, ResourceRequest
from condor_actors.messages.pool import KnownPartner, PartnersKnown
from condor_actors.messages.queue import ActOnJobs, EditJobs, JobAction
from condor_actors.messages.shadow_host import HostOrders, RunEnded, ShadowHostHello, StartRun, Transfer
from condor_actors.messages.submission import ReserveCluster, SubmitPage

ANN = Identity(name="ann@dom", method="local", uid=1000)
SLOT = b'Name = "slot1@e"\nRequirements = true\nCpus = 1\nMemory = 1000\n'
AD = b'Cmd = "/bin/true"\nRequirements = true\n'
LEASE_S = 600.0


class Schedd:
    """A schedd's core with a shadow host of ann's at ``in:1``; ``out``: what the last turn decided."""

    def __init__(self, **settings: Any) -> None:
        self.now_s = 1_000_000.0
        self.out: list[Effect] = []
        self.runs: list[StartRun] = []
        self.count = 0
        self.core = ScheddCore(ScheddSettings(name="s", uid_domain="dom", **settings), QueueSnapshot(), Random(1),
                               self.now_s, "v")
        begun = self.core.start(self.now_s, "<s:1>")
        (spare,) = [each.host_id for each in begun if isinstance(each, StartHost)]
        self.send(HostStarted(spare, 7, "b"))
        self.send(HostHello(ShadowHostHello(host_id=spare, pid=7, owner="", runs=()), "b"), node="in:1")

    def send(self, message: Any, node: str = "in:99", identity: Identity = ANN, later_s: float = 0.1) -> list[Any]:
        """One turn; what was replied."""
        self.now_s += later_s
        self.out = list(self.core.handle(
            Delivery(message=message, sender=Address(node, "probe"), identity=identity), self.now_s))
        self.runs += [start for orders in self.sent(HostOrders) for start in orders.starts]
        return [each.message for each in self.out if isinstance(each, Reply)]

    def sent(self, kind: type) -> list[Any]:
        return [each.message for each in self.out if isinstance(each, (Ask, Send)) and isinstance(each.message, kind)]

    def stored(self, kind: type) -> list[Any]:
        return [each.operation for each in self.out if isinstance(each, Persist) and isinstance(each.operation, kind)]

    def timers(self) -> dict[Any, float]:
        return {each.key: each.delay_s for each in self.out if isinstance(each, SetTimer)}

    def submit(self, procs: int = 1, ad: bytes = b"") -> int:
        (reserved,) = self.send(ReserveCluster())
        self.send(SubmitPage(cluster_id=reserved.cluster_id, page=0, cluster_ad=AD + ad, procs=(b"",) * procs,
                             first_proc=0, last=True))
        return int(reserved.cluster_id)

    def requests(self) -> tuple[ResourceRequest, ...]:
        (answer,) = self.send(NegotiateRequests(cycle=1, submitter="ann@dom", significant_attributes=()))
        return tuple(answer.requests)

    def matched(self) -> list[Any]:
        """A slot for each job that may have one; the tags of the questions to its startd."""
        matches = tuple(
            Match(autocluster=each.autocluster, job_id=each.job_id, slot_name="slot1@e", startd_address="<e:1>",
                  slot_ad=SLOT, capability="c") for each in self.requests() for _ in range(each.count))
        self.send(MatchesMade(cycle=1, submitter="ann@dom", matches=matches))
        return [each.tag for each in self.out if isinstance(each, Ask) and each.tag[0] == "claim"]

    def granted(self, tag: Any) -> str:
        self.count += 1
        claim_id = f"c#{self.count}"
        self.send(Answer(tag, ClaimGranted(claim_id=claim_id, secret="s", slot_name="slot1@e", slot_ad=SLOT,
                                           starter_node="<e:2>", lease_s=LEASE_S)))
        return claim_id

    def ended(self, run_id: str, outcome: str = "exited", identity: Identity = ANN, **facts: Any) -> None:
        exited = ClassAd({"ExitCode": 0, "ExitBySignal": False}).to_bytes()
        self.send(RunEnded(run_id=run_id, outcome=outcome, attributes=exited, **facts), "in:1", identity)

    def status(self, cluster: int, proc: int = 0) -> str:
        job = self.core.context.queue.job(cluster, proc)
        return job.status.name if job is not None else "gone"


def running(schedd: Schedd, procs: int = 1) -> str:
    """A cluster whose first job runs on the only claim there is."""
    schedd.submit(procs)
    tag, *others = schedd.matched()
    for other in others:
        schedd.send(Answer(other, ClaimRefused(slot_name="slot1@e", reason="taken")))
    return schedd.granted(tag)


def test_a_claim_is_stored_then_used() -> None:
    schedd = Schedd()
    claim_id = running(schedd)
    assert [each.claim_id for each in schedd.stored(SaveClaim)] == [claim_id]
    assert [(run.run_id, run.claim_id) for run in schedd.runs] == [("1.0#1@s", claim_id)]
    assert [each.run_id for each in schedd.stored(SaveRun)] == ["1.0#1@s"]


@pytest.mark.parametrize(("level", "begins"), [(1, True), (9, False)])
def test_a_claim_counts_for_the_limits_of_its_job_and_not_for_those_of_the_next(level: int, *, begins: bool) -> None:
    """The same expression is another limit for another job."""
    schedd = Schedd()
    limits = b'ConcurrencyLimits = strcat("licence:", Level)\nRequestMemory = Level\n'
    schedd.submit(1, limits + b"Level = 1\n")
    (tag,) = schedd.matched()
    schedd.granted(tag)
    schedd.submit(1, limits + b"Level = %d\n" % level)
    schedd.ended("1.0#1@s")
    assert ("2.0#1@s" in [run.run_id for run in schedd.runs]) is begins
    schedd.core.validate()


def test_thousands_of_claims_may_take_longer_to_be_granted_than_one() -> None:
    schedd = Schedd()
    schedd.submit(3000)
    schedd.matched()
    patience_s = [each.timeout_s for each in schedd.out if isinstance(each, Ask) and each.tag[0] == "claim"]
    assert patience_s == sorted(patience_s)
    assert patience_s[0] < 31.0
    assert patience_s[-1] > 60.0


def test_a_startd_cannot_grant_the_claim_of_another() -> None:
    schedd = Schedd()
    cluster = schedd.submit(2)
    first, second = schedd.matched()
    claim_id = schedd.granted(first)
    held = schedd.core.claims.held[claim_id]
    schedd.send(Answer(second, ClaimGranted(claim_id=claim_id, secret="forged", slot_name="slot1@f", slot_ad=SLOT,
                                            starter_node="<f:2>", lease_s=LEASE_S)))
    assert schedd.core.claims.held[claim_id] is held
    assert held.row.secret == "s"
    assert schedd.stored(SaveClaim) == []
    assert [schedd.status(cluster, proc) for proc in (0, 1)] == ["RUNNING", "IDLE"]
    schedd.core.validate()


def test_the_negotiator_of_another_pool_cannot_have_all_jobs_looked_at_for_ever() -> None:
    schedd = Schedd()
    schedd.submit(2)
    flock, learned = schedd.core.demand.flock, 0
    flock.configure(FlockLists(("far",)))
    flock.learn((KnownPartner(name="far", central="<cm%far:9618>"),))
    flock.unserved("ann@dom")
    for number in range(600):
        before = schedd.core.context.autoclusters.significant
        schedd.core.requests.page(NegotiateRequests(cycle=number, submitter="ann@dom%far",
                                                    significant_attributes=(f"x{number}",)), "far")
        learned += schedd.core.context.autoclusters.significant is not before
    assert learned == 200


def test_jobs_that_are_turned_away_at_home_are_offered_to_the_next_pool_at_once() -> None:
    schedd = Schedd()
    schedd.core.demand.flock.configure(FlockLists(("far",)))
    schedd.send(PartnersKnown(partners=(KnownPartner(name="far", central="<cm%far:9618>"),)))
    schedd.submit(1)
    schedd.send(TimerFired(key=("advertise",)))
    schedd.send(RequestsRejected(cycle=0, submitter="ann@dom", rejections=()))
    assert schedd.timers()["advertise",] <= 0.05
    schedd.send(TimerFired(key=("advertise",)))
    (tag,) = [each.tag for each in schedd.out if isinstance(each, Ask) and each.to.node == "<cm%far:9618>"]
    assert tag == ("flocked", "ann@dom", "far")
    numbers = []
    for _ in range(2):  # a job more, and one in the place of one that was removed before anybody heard of that
        schedd.send(ActOnJobs(action=JobAction.REMOVE, ids=((1, 0),)))
        schedd.submit(1)
        schedd.send(TimerFired(key=("advertise",)))
        (said,) = [each.message for each in schedd.out if isinstance(each, Ask) and each.to.node == "<cm%far:9618>"]
        numbers.append(ClassAd.from_bytes(said.ad).get_int("DemandNumber"))
    assert numbers[0] < numbers[1]


def test_another_pool_is_told_of_the_jobs_that_name_it_and_matches_no_others() -> None:
    schedd = Schedd(flock=FlockLists(("far",), is_default=False))
    schedd.send(PartnersKnown(partners=(KnownPartner(name="far", central="<cm%far:9618>"),)))
    schedd.submit()
    schedd.send(RequestsRejected(cycle=0, submitter="ann@dom", rejections=()))
    assert not schedd.core.demand.flock.reaches("ann@dom", "far")
    wanting = schedd.submit(ad=b'FlockTo = "FAR"\n')
    schedd.send(RequestsRejected(cycle=0, submitter="ann@dom", rejections=()))
    assert schedd.core.demand.flock.reaches("ann@dom", "far")
    pages = [schedd.core.requests.page(NegotiateRequests(cycle=1, submitter=f"ann@dom{mark}",
                                                         significant_attributes=()), realm).requests
             for realm, mark in (("far", "%far"), ("", ""))]
    assert [request.job_id for request in pages[0]] == [f"{wanting}.0"]
    assert len(pages[1]) == 2
    far = Identity(name="condor@cm%far", roles=frozenset({"negotiator"}), method="tls", realm="far")
    for request in reversed(pages[1]):  # the pool also gives a machine to the job of which it was not told
        schedd.send(MatchesMade(cycle=1, submitter="ann@dom%far", matches=(Match(
            slot_name="slot1@x", startd_address="<x:1>", capability=f"c{request.job_id}", job_id=request.job_id,
            autocluster=request.autocluster, slot_ad=SLOT),)), identity=far)
        asked = [each.to.node for each in schedd.out if isinstance(each, Ask) and each.to.actor == "startd"]
        assert len(asked) == (1 if request.job_id == f"{wanting}.0" else 0), request.job_id


def test_a_list_of_pools_that_is_none_is_refused() -> None:
    schedd = Schedd()
    (reserved,) = schedd.send(ReserveCluster())
    (refused,) = schedd.send(SubmitPage(cluster_id=reserved.cluster_id, page=0, cluster_ad=AD + b"FlockTo = 1 + 1\n",
                                        procs=(b"",), first_proc=0, last=True))
    assert "FlockTo = 1 + 1 would have no effect" in refused.text
    cluster = schedd.submit(ad=b'FlockTo = "a"\n')
    (refused,) = schedd.send(EditJobs(ids=((cluster, 0),), attributes=b"FlockTo = Owner\n"))
    assert "FlockTo = Owner would have no effect" in refused.text


def test_one_run_at_a_time_on_a_claim() -> None:
    schedd = Schedd()
    claim_id = running(schedd, procs=3)
    claim = schedd.core.claims.held[claim_id]
    schedd.core.claims.use(claim)
    assert [run.run_id for run in schedd.core.runs.runs.values()] == ["1.0#1@s"]
    schedd.ended("1.0#1@s")
    assert [run.claim_id for run in schedd.runs] == [claim_id] * 2, "the next job, when the first has ended"


def test_claims_are_renewed_again_and_again() -> None:
    schedd = Schedd(alive_interval_s=100.0)
    claim_id = running(schedd)
    for _ in range(3):
        schedd.send(TimerFired(key=("renew",)), later_s=100.0)
        (renewal,) = schedd.sent(RenewClaims)
        assert renewal.claims == ((claim_id, "s"),)
        assert 0.0 < schedd.timers()["renew",] <= LEASE_S / 2


@pytest.mark.parametrize("answer", [ClaimRefused(slot_name="slot1@e", reason="taken"),
                                    AskFailed(reason="timeout", text="no answer in time")])
def test_a_job_whose_claim_was_refused_wants_another(answer: Any) -> None:
    schedd = Schedd()
    schedd.submit()
    (tag,) = schedd.matched()
    assert schedd.requests() == (), "it has what it wanted, until someone says otherwise"
    schedd.send(Answer(tag, answer))
    assert [(each.job_id, each.count) for each in schedd.requests()] == [("1.0", 1)]


def test_no_more_runs_than_max_jobs_running() -> None:
    schedd = Schedd(max_jobs_running=1)
    schedd.submit(procs=3)
    assert [each.count for each in schedd.requests()] == [1]
    (tag,) = schedd.matched()
    schedd.granted(tag)
    assert schedd.requests() == ()


def test_a_match_whose_job_was_removed_is_declined_at_once() -> None:
    """Its slot would wait for MATCH_TIMEOUT."""
    schedd = Schedd()
    schedd.submit()
    (request,) = schedd.requests()
    schedd.send(ActOnJobs(action=JobAction.REMOVE, ids=((1, 0),)))
    schedd.send(MatchesMade(cycle=1, submitter="ann@dom", matches=(
        Match(autocluster=request.autocluster, job_id=request.job_id, slot_name="slot1@e", startd_address="<e:1>",
              slot_ad=SLOT, capability="c"),)))
    assert schedd.sent(DeclineMatch) == [DeclineMatch(slot_name="slot1@e", capability="c", submitter="ann@dom")]
    assert schedd.sent(RequestClaim) == []


def test_a_claim_that_is_given_back_twice_is_given_back_once() -> None:
    """Both answers come; the second is about nothing any more."""
    schedd = Schedd()
    running(schedd)
    schedd.ended("1.0#1@s")
    (tag,) = [each.tag for each in schedd.out if isinstance(each, Ask) and isinstance(each.message, ReleaseClaim)]
    for _ in range(2):
        schedd.send(Answer(tag, Done()))
    schedd.send(TimerFired(key=("release-again", tag[1])))
    assert not schedd.core.claims.released._releases


def test_a_claim_beyond_max_jobs_running_is_given_back() -> None:
    """The limit may have been lowered while the claim was asked for."""
    schedd = Schedd(max_jobs_running=2)
    schedd.submit(procs=2)
    first, second = schedd.matched()
    schedd.core.context.settings = ScheddSettings(name="s", uid_domain="dom", max_jobs_running=1)
    schedd.granted(first)
    given_back = schedd.granted(second)
    assert [each.claim_id for each in schedd.sent(ReleaseClaim)] == [given_back]
    assert len(schedd.runs) == 1


def test_a_claim_is_given_back_when_no_job_wants_it() -> None:
    schedd = Schedd()
    claim_id = running(schedd)
    schedd.ended("1.0#1@s")
    assert [each.claim_id for each in schedd.sent(ReleaseClaim)] == [claim_id]
    assert [each.claim_id for each in schedd.stored(DropClaim)] == [claim_id]
    (tag,) = [each.tag for each in schedd.out if isinstance(each, Ask) and isinstance(each.message, ReleaseClaim)]
    schedd.send(Answer(tag, AskFailed(reason="unreachable", text="nobody answers")))
    (again,) = [key for key in schedd.timers() if key[0] == "release-again"]
    schedd.send(TimerFired(key=again), later_s=30.0)
    assert [each.claim_id for each in schedd.sent(ReleaseClaim)] == [claim_id], "as long as it may be kept there"
    schedd.send(Answer(tag, Done()))
    assert schedd.timers() == {}


def test_the_end_of_a_run_is_stored_with_its_verdict() -> None:
    schedd = Schedd()
    running(schedd)
    schedd.ended("1.0#1@s")
    assert schedd.status(1) == "gone"
    assert [each.run_id for each in schedd.stored(DropRun)] == ["1.0#1@s"]
    assert [orders.verdicts for orders in schedd.sent(HostOrders)] == [(("1.0#1@s", "completed"),)]


def test_nobody_ends_the_runs_of_others() -> None:
    schedd = Schedd()
    running(schedd)
    schedd.core.runs.ended(RunEnded(run_id="1.0#1@s", outcome="exited", attributes=b""), "eve")
    assert schedd.status(1) == "RUNNING"
    assert list(schedd.core.runs.runs) == ["1.0#1@s"]


@pytest.mark.parametrize("outcome", ["exited", "lost", "failed", "evicted"])
def test_a_job_on_hold_stays_there_when_its_run_ends(outcome: str) -> None:
    schedd = Schedd()
    running(schedd)
    schedd.send(ActOnJobs(action=JobAction.HOLD, ids=((1, 0),), reason="wait"))
    assert schedd.status(1) == "HELD"
    schedd.ended("1.0#1@s", outcome)
    assert schedd.status(1) == "HELD"
    assert schedd.requests() == ()
    job = schedd.core.context.queue.job(1, 0)
    assert job is not None
    assert job.run_id == ""


def test_a_job_whose_runs_are_lost_again_and_again_is_held() -> None:
    """As that of a job that kills its own starter host; an orderly end begins the count anew."""
    schedd = Schedd(max_lost_runs=3)
    running(schedd)
    for number, outcome in enumerate(("lost", "lost", "evicted", "lost", "lost", "lost"), 1):
        assert schedd.status(1) == "RUNNING"
        schedd.ended(f"1.0#{number}@s", outcome, reason="the starter host died", claim_usable=False)
        if number < 6:
            (tag,) = schedd.matched()
            schedd.granted(tag)
    assert schedd.status(1) == "HELD"
    job = schedd.core.context.queue.job(1, 0)
    assert job is not None
    assert job.ad.get_str("HoldReason") == "its last 3 runs were lost (MAX_LOST_RUNS): the starter host died"
    assert job.ad.get_int("HoldReasonCode") == 26
    schedd.send(ActOnJobs(action=JobAction.RELEASE, ids=((1, 0),), reason="again"))
    assert schedd.status(1) == "IDLE"


def test_what_a_shadow_says_of_files_is_recorded_within_bounds() -> None:
    schedd = Schedd(records_epochs=True, transfer_attributes=("Cmd", "Missing"))
    running(schedd)
    run_id = next(iter(schedd.core.runs.runs))
    with pytest.raises(ValueError, match="kind"):
        Transfer(kind="EPOCH", began_s=0.0, ended_s=0.0)
    schedd.ended(run_id, transfers=(
        Transfer(kind="INPUT", began_s=float("nan"), ended_s=float("inf"), files=-1, size_bytes=1 << 62, problem="x"),
        Transfer(kind="OUTPUT", began_s=5.0, ended_s=7.0, files=2, size_bytes=9)))
    records = [each for each in schedd.out if isinstance(each, RecordEpoch)]
    assert [each.kind for each in records] == ["INPUT", "OUTPUT", "EPOCH"]
    first, second = (ClassAd.from_bytes(each.ad) for each in records[:2])
    assert (first["TransferFileCount"], first["TransferTotalBytes"], first["TransferError"]) == (0, 1 << 53, "x")
    assert (second["TransferStartTime"], second["TransferEndTime"], second["TransferSuccess"]) == (5, 7, True)
    assert (second["Cmd"], second["RemoteHost"], second["Owner"]) == ("/bin/true", "slot1@e", "ann")
    assert "Missing" not in second
