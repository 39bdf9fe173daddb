"""A startd's core on its own: no network, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from condor_actors.classads import ClassAd
from condor_actors.cores.startd import owner_policy as op
from condor_actors.cores.startd.draining import Draining
from condor_actors.cores.startd.slot_resources import Custom, Share, plan_slots
from condor_actors.cores.startd.slots import Slots, SlotSettings, parse_policy
from condor_actors.cores.startd.startd_core import StartdCore
from condor_actors.cores.startd.startd_events import Observed, StartdSettings
from condor_actors.effects import Answer, Ask, Reply, Send
from condor_actors.messages.claim import (
    ClaimActivity,
    ClaimGranted,
    OpenClaim,
    RequestClaim,
    StarterHostHello,
)
from condor_actors.messages.envelope import Address, Delivery, Done

SCHEDD = Address("in:7", "schedd")
STARTER = Address("in:1", "starter-host")
NODE = "<h:1>"
POLICY = {"START": "true", "RANK": "0", "IS_OWNER": "START =?= false", "SUSPEND": "false", "CONTINUE": "true",
          "PREEMPT": "false", "KILL": "false", "WANT_SUSPEND": "false", "WANT_VACATE": "true",
          "MAXJOBRETIREMENTTIME": "0", "MACHINEMAXVACATETIME": "60"}
MACHINE = Share(cpus=4, memory_mib=4096, disk_kib=1_000_000, custom={"GPUs": Custom(2, ("G0", "G1"))})
JOB = ('RequestCpus = 1\nRequestMemory = 128\nRequestDisk = 1024\nRequirements = TARGET.Cpus >= 1\nJobUniverse = 5\n'
       'Owner = "alice"\n')


class Startd:
    """A core, its clock, what it said last, and what it said first (``begun``)."""

    out: list[Any]

    def __init__(self, policy: Mapping[str, str] | None = None, *, records: tuple[Any, ...] = (), hello: bool = True,
                 draining: Draining | None = None, **plan: Any) -> None:
        self.now_s = 1000.0
        self.secrets = iter(f"secret{number}" for number in range(1000))
        settings = SlotSettings(host="h", policy=parse_policy({**POLICY, **(policy or {})}))
        slots = Slots(settings, ClassAd({"Machine": "h", "Arch": "X86_64"}), lambda: next(self.secrets))
        slots.create(plan_slots(MACHINE, **{"types": {}, "counts": {}, "partitionable": {}, **plan}), self.now_s)
        self.core = StartdCore(slots, StartdSettings(address="<s:9>"), birth_s=1000.0,
                               new_secret=lambda: next(self.secrets), draining=draining)
        self.begun = self.out = list(self.core.start(records, self.now_s))
        self.tell(Observed(total_load=0.0, own_load=0.0))
        if hello:
            self.hear(StarterHostHello(node=NODE, pid=42), STARTER)

    def tell(self, event: Any, later_s: float = 1.0) -> list[Any]:
        self.now_s += later_s
        self.out = list(self.core.handle(event, self.now_s))
        self.core.validate()
        return self.out

    def hear(self, message: Any, sender: Address = SCHEDD) -> list[Any]:
        return self.tell(Delivery(message=message, sender=sender, message_id="m"))

    def slot(self, name: str = "slot1") -> Any:
        return self.core.slots.get(name)

    def place(self, name: str = "slot1") -> op.SlotState:
        return self.slot(name).machine.slot_state  # type: ignore[no-any-return]

    def replies(self) -> list[Any]:
        return [effect.message for effect in self.out if isinstance(effect, Reply)]

    def sent(self, to: Address) -> list[Any]:
        return [effect.message for effect in self.out if isinstance(effect, Send) and effect.to == to]

    def request(self, slot: str = "slot1", job: str = JOB, capability: str | None = None,
                submitter: str = "alice@x") -> list[Any]:
        found = self.slot(slot)
        return self.hear(RequestClaim(
            slot_name=f"{slot}@h", capability=found.capability if capability is None else capability,
            job_ad=job.encode(), owner=submitter, submitter=submitter, schedd_name="sub@x", schedd_node=SCHEDD.node))

    def opened(self, message: Any = None) -> list[Any]:
        ask = next(effect for effect in self.out if isinstance(effect, Ask))
        assert isinstance(ask.message, OpenClaim)
        return self.tell(Answer(ask.tag, message or Done()))

    def claim(self, slot: str = "slot1", job: str = JOB, submitter: str = "alice@x") -> ClaimGranted:
        self.request(slot, job, submitter=submitter)
        self.opened()
        granted = self.replies()[0]
        assert isinstance(granted, ClaimGranted), granted
        return granted

    def busy(self, claim: ClaimGranted, job_id: str = "1.0", before: tuple[str, ...] = ()) -> None:
        """A run of a job has begun, and runs of others BEFORE it have begun and ended."""
        self.hear(ClaimActivity(claim_id=claim.claim_id, activity="busy", job_id=job_id, job_ad=JOB.encode(),
                                begun=(*before, job_id)), STARTER)

    def closed(self, claim: ClaimGranted) -> None:
        self.hear(ClaimActivity(claim_id=claim.claim_id, activity="closed"), STARTER)
