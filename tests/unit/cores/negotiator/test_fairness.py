"""A small pool for some days: a heavy user who could fill it forever, and light users who now and then want a little.

The negotiator's own cycle decides; machines and queues are as simple as can be.  A job that is displaced goes on later
from where it was, as in 1988.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from condor_actors.classads import ClassAd, parse_expression
from condor_actors.cores.negotiator.cycle_settings import CycleSettings
from condor_actors.cores.negotiator.fair_share import FairShare, FairShareSettings
from condor_actors.cores.negotiator.match_settings import MatchSettings
from condor_actors.cores.negotiator.negotiation_cycle import NegotiationCycle
from condor_actors.cores.negotiator.pool_view import PoolView
from condor_actors.cores.negotiator.up_down import UpDown, UpDownSettings
from condor_actors.cores.negotiator.update_prio import UpdatePrio, UpdatePrioSettings
from condor_actors.cores.negotiator.user_priority import PriorityPolicy
from condor_actors.effects import Answer, Ask, Send
from condor_actors.messages.advertise import AdChange, AdKind
from condor_actors.messages.negotiate import MatchesMade, NegotiateRequests, ResourceRequest, ResourceRequests

PASS_S = 120.0
HOUR_S = 3600.0
MACHINES = 10
HEAVY, LIGHT = "heavy@dom", [f"light{number}@dom" for number in range(4)]
JOB = ClassAd({"Requirements": True, "RequestCpus": 1, "RequestMemory": 1, "RequestDisk": 1, "Rank": 0.0}).to_bytes()


@attrs.define(eq=False)
class Job:
    """Someone's hours of work."""

    user: str
    left_s: float
    arrived_s: float
    served_s: float = 0.0


class FirstComeFirstServed(PriorityPolicy):
    """Who came first goes first, and nobody makes room."""

    NAME = "FIFO"
    step = 0.0

    def effective(self, name: str, now_s: float) -> float:
        """The heavy user was there before all others."""
        return 0.0 if name == HEAVY else 1.0

    def beats(self, wanting: float, holding: float) -> bool:
        """Nobody."""
        return False


class Month:
    """The pool under one policy."""

    def __init__(self, policy: PriorityPolicy) -> None:
        self.view = PoolView()
        self.policy = policy
        rules = MatchSettings(preemption_requirements=parse_expression("true"),
                              preemption_rank=parse_expression("RemoteUserPrio"))
        self.cycle = NegotiationCycle(CycleSettings(), rules, self.view, policy)
        self.running: dict[str, Job] = {}
        self.waiting: dict[str, list[Job]] = {user: [] for user in (HEAVY, *LIGHT)}
        self.finished: list[tuple[Job, float]] = []
        self.displaced = 0
        self.serial = dict.fromkeys((f"m{number}" for number in range(MACHINES)), 0)
        self.now_s = 0.0

    def run(self, days: int) -> None:
        """Let the days pass, two minutes at a time."""
        self.waiting[HEAVY] = [Job(HEAVY, 6 * HOUR_S, 0.0) for _ in range(1000)]
        for step in range(int(days * 24 * HOUR_S / PASS_S)):
            self.now_s = step * PASS_S
            for number, user in enumerate(LIGHT):
                if step % 360 == 90 * number + 30:
                    self.waiting[user] += [Job(user, HOUR_S, self.now_s) for _ in range(3)]
            self._work()
            self._show()
            self._negotiate()

    def _work(self) -> None:
        for machine, job in tuple(self.running.items()):
            job.left_s -= PASS_S
            job.served_s += PASS_S
            if job.left_s <= 0.0:
                self.finished.append((job, self.now_s))
                del self.running[machine]
                self.serial[machine] += 1

    def _show(self) -> None:
        changes = []
        for machine, serial in self.serial.items():
            job = self.running.get(machine)
            ad = ClassAd({"Name": machine, "MyAddress": "<m:1>", "Cpus": 1, "Memory": 100, "Disk": 100, "SlotID": 1,
                          "State": "Claimed" if job else "Unclaimed", "Requirements": True, "Rank": 0.0,
                          "CurrentRank": 0.0, "MachineResources": "Cpus Memory Disk", "Serial": serial})
            if job is not None:
                ad["RemoteUser"] = job.user
            private = ClassAd({"Capability": f"{machine} {serial}"}).to_bytes()
            changes.append(AdChange(ad_kind=AdKind.SLOT, name=machine, ad=ad.to_bytes(), private=private))
        for user, jobs in self.waiting.items():
            ad = ClassAd({"Name": user, "ScheddName": "s", "MyAddress": "<s:1>", "IdleJobs": len(jobs)})
            changes.append(AdChange(ad_kind=AdKind.SUBMITTER, name=user, ad=ad.to_bytes()))
        self.view.apply(changes)
        self.policy.holds({**dict.fromkeys(self.policy.users, (0.0, 0)), **self.view.held}, self.now_s)
        self.policy.has_enough([user for user in self.policy.users if not self.waiting.get(user)], self.now_s)

    def _negotiate(self) -> None:
        effects = self.cycle.begin(self.now_s)
        for ask in [each for each in effects if isinstance(each, Ask)]:
            question = ask.message
            assert isinstance(question, NegotiateRequests)
            count = len(self.waiting[question.submitter])
            request = ResourceRequest(autocluster=1, job_id="1.0", count=count, job_ad=JOB)
            answer = ResourceRequests(submitter=question.submitter, requests=(request,))
            effects = self.cycle.answered(Answer(ask.tag, answer), self.now_s)
        for sent in [each for each in effects if isinstance(each, Send) and isinstance(each.message, MatchesMade)]:
            for match in sent.message.matches:
                self._start(match.slot_name, self.waiting[sent.message.submitter].pop(0))

    def _start(self, machine: str, job: Job) -> None:
        displaced = self.running.pop(machine, None)
        if displaced is not None:
            self.displaced += 1
            self.waiting[displaced.user].insert(0, displaced)
        self.running[machine] = job
        self.serial[machine] += 1

    def wait_ratio(self, users: list[str]) -> float:
        """Time spent waiting per time of service, over all jobs of these users, those that wait still included."""
        done = [(job, end_s) for job, end_s in self.finished if job.user in users]
        open_ones = [(job, self.now_s) for user in users for job in self.waiting[user]]
        waited = sum(end_s - job.arrived_s - job.served_s for job, end_s in done + open_ones)
        return waited / (sum(job.served_s for job, _ in done) or 1.0)


def month(policy: PriorityPolicy, days: int = 3) -> Month:
    made = Month(policy)
    made.run(days)
    return made


@pytest.mark.parametrize("policy", [lambda: UpDown(UpDownSettings()), lambda: FairShare(FairShareSettings())],
                         ids=["UP_DOWN", "FAIR_SHARE"])
def test_light_users_hardly_wait_while_a_heavy_one_saturates_the_pool(policy: Callable[[], PriorityPolicy]) -> None:
    made = month(policy())
    assert made.wait_ratio(LIGHT) < 0.2
    heavy = sum(job.served_s for job, _ in made.finished if job.user == HEAVY)
    assert heavy > 0.7 * MACHINES * made.now_s, "the heavy user still gets what is left over"


@pytest.mark.parametrize("policy", [lambda: UpDown(UpDownSettings()), lambda: UpdatePrio(UpdatePrioSettings())],
                         ids=["UP_DOWN", "UPDATE_PRIO"])
def test_two_heavy_users_share_the_pool_and_do_not_exchange_their_slots(policy: Callable[[], PriorityPolicy]) -> None:
    made = Month(policy())
    other = LIGHT[0]
    made.waiting[other] = [Job(other, 6 * HOUR_S, 0.0) for _ in range(1000)]
    made.run(2)
    parts = [sum(job.served_s for job, _ in made.finished if job.user == user) for user in (HEAVY, other)]
    assert min(parts) > 0.4 * sum(parts)
    assert sum(parts) > 0.75 * MACHINES * made.now_s
    assert made.displaced < 3 * len(made.finished)


def test_first_come_first_served_drowns_them() -> None:
    assert month(FirstComeFirstServed(), days=1).wait_ratio(LIGHT) > 5.0
