"""The shadow hosts of a schedd's core: what becomes of a run's order and its end when hosts die."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from condor_actors.cores.schedd.schedd_core import HostHello, ScheddCore
from condor_actors.cores.schedd.schedd_settings import ScheddSettings
from condor_actors.cores.schedd.shadow_host_table import AssignHost, CheckHost, HostChecked, HostStarted, StartHost
from condor_actors.effects import Answer, Ask, Persist, Send
from condor_actors.messages.claim import ClaimGranted
from condor_actors.messages.codes import JobEventType
from condor_actors.messages.envelope import Address, Delivery, Identity, PeerDown, TimerFired
from condor_actors.messages.negotiate import Match, MatchesMade, NegotiateRequests
from condor_actors.messages.queue import ActOnJobs, JobAction
from condor_actors.messages.run import StopRun
from condor_actors.messages.shadow_host import HostOrders, NoticesWritten, ShadowHostHello, StartRun
from condor_actors.messages.submission import ReserveCluster, SubmitPage
from condor_actors.store.queue_store import QueueStore

ANN = Identity(name="ann@dom", method="local", uid=1000)
SLOT = b'Name = "slot1@e"\nRequirements = true\nCpus = 1\nMemory = 1000\n'
AD = b'Cmd = "/bin/true"\nRequirements = true\nUserLog = "/log"\n'


class Schedd:
    """A schedd's core, whose spare host is there; ``heard``: what each host was told, by its link."""

    def __init__(self, store: QueueStore) -> None:
        self.now_s = 1_000_000.0
        self.heard: dict[str, list[Any]] = {}
        self.asked: list[Ask] = []
        self.started: list[str] = []
        self.begun: list[str] = []
        self.core = ScheddCore(ScheddSettings(name="ann", uid_domain="dom"), store.load(), Random(1), self.now_s, "v")
        self._perform(self.core.start(self.now_s, "<s:1>"))

    def _perform(self, effects: tuple[Any, ...]) -> list[Any]:
        answers = []
        for each in effects:
            if isinstance(each, Send):
                self.heard.setdefault(each.to.node, []).append(each.message)
            elif isinstance(each, AssignHost):
                self.heard.setdefault(each.address.node, []).append(each)
            elif isinstance(each, Ask):
                self.asked.append(each)
            elif isinstance(each, StartHost):
                self.started.append(each.host_id)
                self.begun.append(each.host_id)
            elif isinstance(each, CheckHost):
                self._gone = each.host_id
            elif hasattr(each, "message"):
                answers.append(each.message)
        return answers

    def send(self, message: Any, node: str = "in:99") -> list[Any]:
        self.now_s += 0.1
        return self._perform(self.core.handle(
            Delivery(message=message, sender=Address(node, "probe"), identity=ANN), self.now_s))

    def arrives(self, node: str, host_id: str = "", **facts: Any) -> None:
        """A host says hello; by default the one that was started first and is still expected."""
        for begun in self.begun:
            self.send(HostStarted(begun, 7, "b"))
        self.begun.clear()
        hello = ShadowHostHello(host_id=host_id or self.started.pop(0), pid=7, **{"owner": "", "runs": (), **facts})
        self.send(HostHello(hello, "b"), node)

    def link_breaks(self, node: str) -> None:
        self.send(PeerDown(node=node, reason="reset"))

    def is_dead(self) -> None:
        """The host whose link broke last."""
        self.send(HostChecked(self._gone, alive=False))

    def time_for_the_next(self) -> None:
        self.send(TimerFired(key=("host-again", "ann")))

    def submit(self) -> None:
        (reserved,) = self.send(ReserveCluster())
        self.send(SubmitPage(cluster_id=reserved.cluster_id, page=0, cluster_ad=AD, procs=(b"",), first_proc=0,
                             last=True))

    def match(self) -> None:
        (answer,) = self.send(NegotiateRequests(cycle=1, submitter="ann@dom", significant_attributes=()))
        self.send(MatchesMade(cycle=1, submitter="ann@dom", matches=tuple(
            Match(autocluster=each.autocluster, job_id=each.job_id, slot_name="slot1@e", startd_address="<e:1>",
                  slot_ad=SLOT, capability="c") for each in answer.requests)))
        for question in [each for each in self.asked if each.tag[0] == "claim"]:
            self.asked.remove(question)
            self.send(Answer(question.tag, ClaimGranted(claim_id="c#1", secret="s", slot_name="slot1@e",
                                                        slot_ad=SLOT, starter_node="<e:2>", lease_s=600.0)))

    def orders(self, node: str) -> list[StartRun | StopRun | AssignHost]:
        """What a host was told that matters to runs, in order."""
        found: list[StartRun | StopRun | AssignHost] = []
        for message in self.heard.get(node, []):
            if isinstance(message, HostOrders):
                found += message.starts
            elif isinstance(message, (StopRun, AssignHost)):
                found.append(message)
        return found


def kinds(orders: list[Any]) -> list[str]:
    """In a word each."""
    words = {AssignHost: "become", StopRun: "stop"}
    return [("take up" if each.reattach else "start") if isinstance(each, StartRun) else words[type(each)]
            for each in orders]


@pytest.fixture
def schedd(tmp_path: Any) -> Iterator[Schedd]:
    store = QueueStore(tmp_path)
    yield Schedd(store)
    store.close()


def test_a_run_is_ordered_once_from_a_host_that_was_starting(schedd: Schedd) -> None:
    schedd.submit()
    schedd.match()
    assert schedd.orders("in:1") == []
    schedd.arrives("in:1")
    assert kinds(schedd.orders("in:1")) == ["become", "start"]


def test_a_run_is_ordered_once_from_a_spare(schedd: Schedd) -> None:
    schedd.arrives("in:1")
    schedd.submit()
    schedd.match()
    assert kinds(schedd.orders("in:1")) == ["become", "start"]


def test_a_run_whose_order_waited_for_a_spare_is_taken_up_when_that_dies(schedd: Schedd) -> None:
    """What a spare that stood ready is told when it becomes the owner's counts as told."""
    schedd.submit()
    schedd.arrives("in:1")
    schedd.arrives("in:2")  # the next spare
    schedd.link_breaks("in:1")
    schedd.match()
    assert kinds(schedd.orders("in:1")) == ["become"]
    schedd.is_dead()
    schedd.time_for_the_next()
    assert kinds(schedd.orders("in:2")) == ["become", "start"]
    schedd.link_breaks("in:2")
    schedd.is_dead()
    schedd.time_for_the_next()
    schedd.arrives("in:3")
    assert kinds(schedd.orders("in:3")) == ["become", "take up"]


def test_a_run_is_taken_up_once_by_a_host_that_was_starting(schedd: Schedd) -> None:
    schedd.arrives("in:1")
    schedd.submit()
    schedd.match()
    schedd.link_breaks("in:1")
    schedd.is_dead()
    schedd.time_for_the_next()
    schedd.arrives("in:2")
    assert kinds(schedd.orders("in:2")) == ["become", "take up"]


def test_a_host_whose_link_broke_keeps_its_runs(schedd: Schedd) -> None:
    schedd.arrives("in:1")
    schedd.submit()
    schedd.match()
    schedd.link_breaks("in:1")
    schedd.arrives("in:2", host_id=schedd.core.hosts.by_owner["ann"].host_id, owner="ann", runs=("1.0#1@ann",))
    assert kinds(schedd.orders("in:2")) == []


@pytest.mark.parametrize("action", [JobAction.REMOVE, JobAction.HOLD, JobAction.VACATE])
@pytest.mark.parametrize("moment", ["before the link breaks", "while it is lost", "while the next one starts"])
def test_a_run_that_is_told_to_stop_while_its_host_dies_is_stopped_by_the_next(
        schedd: Schedd, action: JobAction, moment: str) -> None:
    schedd.arrives("in:1")
    schedd.submit()
    schedd.match()

    def act(when: str) -> None:
        if when == moment:
            schedd.send(ActOnJobs(action=action, ids=((1, 0),)))

    act("before the link breaks")
    schedd.link_breaks("in:1")
    act("while it is lost")
    schedd.is_dead()
    schedd.time_for_the_next()
    act("while the next one starts")
    schedd.arrives("in:2")
    told = kinds(schedd.orders("in:2"))
    assert told[:3] == ["become", "take up", "stop"]
    assert set(told[3:]) <= {"stop"}, "a host that has stopped a run does not hear of its start again"


def test_what_a_dead_host_had_to_write_is_told_before_what_happens_afterwards(schedd: Schedd) -> None:
    """A spare stands ready when the owner's host dies, and the job is released before that takes its place."""
    schedd.arrives("in:1")
    schedd.submit()
    schedd.arrives("in:2")  # the next spare
    schedd.send(ActOnJobs(action=JobAction.HOLD, ids=((1, 0),)))
    schedd.link_breaks("in:1")
    schedd.is_dead()
    schedd.send(ActOnJobs(action=JobAction.RELEASE, ids=((1, 0),)))
    schedd.time_for_the_next()
    notices = [notice for message in schedd.heard["in:2"] if isinstance(message, HostOrders)
               for notice in message.notices]
    assert [(notice.event, notice.maybe_written) for notice in notices] == [
        (JobEventType.SUBMIT, True), (JobEventType.JOB_HELD, True), (JobEventType.JOB_RELEASED, True)]


@pytest.mark.parametrize("dies", [True, False])
def test_a_notice_that_waits_for_a_host_is_told_once(schedd: Schedd, dies: bool) -> None:
    schedd.arrives("in:1")
    schedd.submit()
    schedd.link_breaks("in:1")
    schedd.send(ActOnJobs(action=JobAction.HOLD, ids=((1, 0),)))
    if dies:
        schedd.is_dead()
        schedd.time_for_the_next()
        schedd.arrives("in:2")
    else:
        schedd.arrives("in:2", host_id=schedd.core.hosts.by_owner["ann"].host_id, owner="ann")
    notices = [notice.event for message in schedd.heard["in:2"] if isinstance(message, HostOrders)
               for notice in message.notices]
    assert notices == [JobEventType.SUBMIT, JobEventType.JOB_HELD]


@pytest.mark.parametrize("company", [True, False])
def test_that_a_notice_is_confirmed_is_stored_with_something_else_or_soon(schedd: Schedd, company: bool) -> None:
    schedd.arrives("in:1")
    schedd.submit()
    (notice,) = [notice for message in schedd.heard["in:1"] if isinstance(message, HostOrders)
                 for notice in message.notices]

    def stored(message: Any) -> list[str]:
        schedd.now_s += 0.1
        delivery = Delivery(message=message, sender=Address("in:1", "host"), identity=ANN)
        effects = schedd.core.handle(delivery, schedd.now_s)
        return [type(each.operation).__name__ for each in effects if isinstance(each, Persist)]

    assert stored(NoticesWritten(notice_ids=(notice.notice_id, "another's"))) == []
    assert schedd.core.notices.owners() == set()
    if company:
        assert "DropNotices" in stored(ActOnJobs(action=JobAction.HOLD, ids=((1, 0),)))
    else:
        assert stored(TimerFired(key=("confirmed",))) == ["DropNotices"]
    assert stored(TimerFired(key=("confirmed",))) == []


def test_what_is_settled_is_said_in_the_order_in_which_the_host_asks(schedd: Schedd) -> None:
    schedd.submit()
    host = schedd.started[0]
    schedd.arrives("in:1")
    ends = tuple(f"1.{number}#1@ann" for number in range(9, -1, -1))
    schedd.arrives("in:1", host, owner="ann", unsettled=ends)
    verdicts = [name for each in schedd.heard["in:1"] if isinstance(each, HostOrders) for name, _ in each.verdicts]
    assert tuple(verdicts) == ends
