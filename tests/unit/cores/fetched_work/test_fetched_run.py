"""The run of a fetched job: begun once, found again, given back, and told of when it was driven out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import attrs

from condor_actors.cores.fetched_work.fetched_run import TABLE, FetchedClaim, FetchedRun, State, TellOver
from condor_actors.daemons.starter.run_resources import RunResources
from condor_actors.effects import Answer, Ask, Reply, Send
from condor_actors.messages.claim import ClaimRevoked, ClaimsRenewed, ReleaseClaim, RenewClaims
from condor_actors.messages.envelope import SELF, Address, AskFailed, Done, Identity, Refused, TimerFired
from condor_actors.messages.run import (
    ActivateClaim,
    Activated,
    ChirpCall,
    OutputsReceived,
    Reattached,
    ReattachRun,
    RunExited,
    RunProgress,
    Usage,
)

RUN = "7.0#1@fetched-work"
JOB = f'Cmd = "/bin/true"\nFetchedRun = "{RUN}"\n'.encode()
HOST, OTHER = Address("n1", "starter-host"), Address("n2", "starter-host")
LOOK = TimerFired(key="look")


class Bench:
    """A run, and a starter host that is where the test says."""

    def __init__(self, *, is_known: bool = False) -> None:
        self.host: Address | None = HOST
        self.core = FetchedRun(FetchedClaim(slot="slot1@m", claim_id="c", secret="s", job=JOB, slot_ad=b"B = 2\n",
                                            is_known=is_known), lambda: self.host)
        self.begun = self.core.start()

    def does(self, event: Any) -> tuple[Any, ...]:
        return self.core.handle(event, 0.0)

    def running(self) -> Bench:
        self.does(Answer("run", Activated(run_id=RUN)))
        return self


def asked(effects: tuple[Any, ...]) -> list[type]:
    return [type(each.message) for each in effects if isinstance(each, Ask)]


def told(effects: tuple[Any, ...]) -> list[tuple[bool, bool]]:
    return [(each.over.driven_out, each.over.is_last) for each in effects if isinstance(each, TellOver)]


def exited(cause: str = "exited") -> RunExited:
    return RunExited(run_id=RUN, cause=cause, usage=Usage(), when_s=1.0, exit_code=0)


def test_a_claim_is_activated_its_end_is_confirmed_and_it_is_given_back() -> None:
    bench = Bench()
    assert asked(bench.begun) == [RenewClaims, ActivateClaim]
    bench.running()
    assert bench.core.state is State.RUNNING
    assert bench.does(RunProgress(run_id=RUN, usage=Usage())) == (Reply(Done()),)
    effects = bench.does(exited())
    assert Send(Address("n1", f"starter/{RUN}"), OutputsReceived(run_id=RUN)) in effects
    assert (asked(effects), told(effects)) == ([ReleaseClaim], [])
    assert told(bench.does(ClaimRevoked(claim_id="c", reason="", final=False))) == []
    assert told(bench.does(ClaimRevoked(claim_id="c", reason="", final=True))) == [(False, True)]
    assert bench.core.state is State.OVER


def test_an_owner_s_return_is_told_once() -> None:
    bench = Bench().running()
    assert told(bench.does(ClaimRevoked(claim_id="c", reason="the owner is back", final=False))) == [(True, False)]
    effects = bench.does(exited("evicted"))
    assert (asked(effects), told(effects)) == ([], [])
    assert told(bench.does(ClaimRevoked(claim_id="c", reason="", final=True))) == [(False, True)]


def test_a_starter_host_that_dies_has_driven_it_out() -> None:
    bench = Bench().running()
    assert told(bench.does(ClaimRevoked(claim_id="c", reason="x", final=True, lost=True))) == [
        (True, False), (False, True)]


def test_a_run_that_another_startd_began_is_looked_for_and_not_begun_again() -> None:
    bench = Bench(is_known=True)
    assert asked(bench.begun) == [RenewClaims, ReattachRun]
    bench.does(Answer("run", Reattached(run_id=RUN, pid=1)))
    assert bench.core.state is State.RUNNING
    bench = Bench(is_known=True)
    effects = bench.does(Answer("run", Refused(code="not-found", text="run is not here")))
    assert (asked(effects), told(effects)) == ([ReleaseClaim], [(True, False)])


def test_another_starter_host_is_asked_and_one_that_does_not_answer_again() -> None:
    bench = Bench()
    assert asked(bench.does(LOOK)) == [], "it was asked"
    bench.does(Answer("run", AskFailed(reason="timeout")))
    assert asked(bench.does(LOOK)) == [ActivateClaim]
    bench.running()
    bench.host = None
    assert asked(bench.does(LOOK)) == []
    bench.host = OTHER
    assert asked(bench.does(LOOK)) == [ReattachRun]


def test_a_claim_that_the_startd_does_not_know_is_over() -> None:
    bench = Bench().running()
    assert told(bench.does(Answer("renewed", ClaimsRenewed(gone=())))) == []
    assert told(bench.does(Answer("renewed", ClaimsRenewed(gone=("c",))))) == [(True, True)]


def test_what_needs_a_home_is_refused() -> None:
    (reply,) = Bench().running().does(ChirpCall(run_id=RUN, verb="open"))
    assert (type(reply), reply.message.code) == (Reply, "denied")


def test_the_end_of_a_claim_that_is_not_told_is_waited_for_a_while() -> None:
    bench = Bench().running()
    bench.does(exited())
    assert told(bench.does(TimerFired(key="leave"))) == [(False, True)]


def test_the_table_is_total() -> None:
    assert len(TABLE) == len({key for _, key in TABLE}) * len(State)


def test_a_starter_believes_its_startd_alone_about_a_fetched_job() -> None:
    edges: Any = SimpleNamespace(startd=Address("unix:/run/startd.sock", "startd"))
    fetched = RunResources(edges=edges, run_id=RUN, claim_id="c", secret="s", owner="fetched:SITE@dom", hosts=("h",),
                           shadow=Address("", ""))
    shadow = Identity(name="shadow:fetched:SITE@h", host="h", method="tls", roles=frozenset({"shadow"}))
    root = Identity(name="root@h", host="h", method="local", uid=0)
    assert fetched.may_be_told_by(SELF, "")
    assert fetched.may_be_told_by(root, "unix:/run/startd.sock")
    assert not fetched.may_be_told_by(root, "local:7")
    assert not fetched.may_be_told_by(shadow, "<h:1>")
    others = attrs.evolve(fetched, owner="alice@dom")
    assert not others.may_be_told_by(root, "unix:/run/startd.sock"), "the startd does not speak for users' jobs"
