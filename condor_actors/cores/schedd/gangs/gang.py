"""A gang that runs: one job whose run has several members, each on a claim of its own.

Theory: the members begin in one turn and in one transaction, so a gang that was begun is whole, also for a schedd that
dies and comes back.  Each has a shadow and a starter of its own.  The first end that ends the gang decides what
becomes of the job: node 0's own end (or, where the job waits for all, the last member's), or that of any member which
does not end by itself (its machine's owner is back, its starter is gone, it has to be held).  All others are stopped
then, and the job is judged once, when nothing of the gang is left: it never goes on as a part of itself.

========== =========================================================================================================
state      leaves it by
========== =========================================================================================================
going      a member breaks, or node 0 exits (with WAIT_FOR_ALL: the last one does) → ending
ending     –
========== =========================================================================================================

**Source**: H88, section 5.2; the manual's page of the parallel universe (ParallelShutdownPolicy, the node number).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from condor_actors.classads import ClassAd
from condor_actors.cores.state_table import EventKey, InvariantBroken, event_key, ignore, total_table
from condor_actors.messages.codes import Universe
from condor_actors.messages.shadow_host import RunEnded
from condor_actors.numerals import numeral

if TYPE_CHECKING:
    from condor_actors.cores.schedd.runs.run import Run

__all__ = ["MOST_MEMBERS", "ROWS", "TABLE", "Gang", "GangState", "MemberBroke", "MemberExited", "gang_of", "is_gang",
           "member_id", "member_text", "node_of", "objection", "size_of"]

MOST_MEMBERS = 1_000
MOST_GROUPS = 50
NODE_MARK = b"#pArAlLeLnOdE#"
"""What stands for a member's number in the ad of its job, as HTCondor's submit language has it."""


class GangState(enum.Enum):
    """Whether it is decided what becomes of the job."""

    GOING = "going"
    ENDING = "ending"


@attrs.frozen
class MemberExited:
    """Event: the program of a member has ended by itself."""

    node: int
    ended: RunEnded


@attrs.frozen
class MemberBroke:
    """Event: a member is over, and not by its program's own end."""

    node: int
    ended: RunEnded


@attrs.define(eq=False)
class Gang:
    """One gang.

    Attributes:
        gang_id: the run id of node 0, by which the job knows its run.
        size: how many members began.
        waits_for_all: whether the end of node 0 is not the gang's (ParallelShutdownPolicy).
        living: the members that have not ended, by node.
        outcome: what decides about the job, once that is known.
        facts: what each living member said of itself last, by node.
    """

    gang_id: str
    size: int
    waits_for_all: bool
    living: dict[int, Run] = attrs.field(factory=dict)
    state: GangState = GangState.GOING
    outcome: RunEnded | None = None
    facts: dict[int, ClassAd] = attrs.field(factory=dict)

    def handle(self, event: MemberExited | MemberBroke) -> bool:
        """A member is over; whether the others are to be stopped now."""
        self.living.pop(event.node, None)
        before = self.state
        TABLE[self.state, event_key(event)](self, event)
        return before is GangState.GOING and self.state is GangState.ENDING

    def total(self, name: str) -> float:
        """The sum of an attribute over the living members."""
        return sum(ad.get_float(name) for ad in self.facts.values())

    def most(self, name: str) -> int:
        """The largest value of an attribute among the living members."""
        return max((ad.get_int(name) for ad in self.facts.values()), default=0)

    def validate(self) -> None:
        """Check what holds between two turns.

        Raises:
            InvariantBroken: something does not hold; says what.
        """
        if not self.living:
            raise InvariantBroken(f"the gang {self.gang_id} has no member left, and was not judged")
        if (self.state is GangState.ENDING) != (self.outcome is not None):
            raise InvariantBroken(f"the gang {self.gang_id} is {self.state.value}, its outcome is {self.outcome}")
        if self.state is GangState.GOING and not self.waits_for_all and len(self.living) < self.size \
                and 0 not in self.living:
            raise InvariantBroken(f"the gang {self.gang_id} goes on without its node 0")


# ---- the steps


def _decide(gang: Gang, ended: RunEnded) -> None:
    gang.state = GangState.ENDING
    gang.outcome = attrs.evolve(ended, run_id=gang.gang_id, attributes=b"")


def _exited(gang: Gang, event: MemberExited) -> None:
    """Its part is done; the gang's too where it was the one that counts."""
    if not gang.living or (event.node == 0 and not gang.waits_for_all):
        _decide(gang, event.ended)


def _broke(gang: Gang, event: MemberBroke) -> None:
    """The gang is a whole no more."""
    _decide(gang, attrs.evolve(event.ended, reason=f"node {event.node}: {event.ended.reason}"
                               if event.ended.reason else f"node {event.node}"))


Step = Callable[[Gang, Any], None]
_decided = ignore("it is decided what becomes of the job")

ROWS: dict[EventKey, Sequence[Step | ignore]] = {
    # going, ending
    MemberExited: (_exited, _decided),
    MemberBroke: (_broke, _decided),
}

TABLE: dict[tuple[GangState, EventKey], Step | ignore] = total_table("a gang", GangState, ROWS)


# ---- what a job's ad says of gangs


def is_gang(ad: ClassAd) -> bool:
    """Whether a job needs several machines at once."""
    return bool(ad.find("jobuniverse") == Universe.PARALLEL)


def size_of(ad: ClassAd) -> int:
    """How many machines it needs."""
    return max(1, ad.get_int("MinHosts", 1))


def member_id(gang_id: str, node: int) -> str:
    """The run id of a member: node 0 has the gang's own, ``12.0#3@schedd``; node 2 ``12.0#3.2@schedd``."""
    first, _, schedd = gang_id.partition("@")
    return f"{first}.{node}@{schedd}" if node else gang_id


def node_of(run_id: str) -> int:
    """The node of a member by its run id."""
    number = run_id.partition("#")[2].partition("@")[0]
    return numeral(number.partition(".")[2]) or 0


def gang_of(run_id: str) -> str:
    """The gang of a member by its run id."""
    first, _, rest = run_id.partition("#")
    number, _, schedd = rest.partition("@")
    return f"{first}#{number.partition('.')[0]}@{schedd}"


def member_text(text: bytes, node: int, hosts: Sequence[str]) -> bytes:
    """The ad of a job as a member's shadow gets it: its number in the place of the mark, and who the others are.

    Args:
        text: the job's ad.
        node: the member.
        hosts: the machines of all, by node.
    """
    text = text.replace(NODE_MARK, str(node).encode())
    variables = {"_CONDOR_PROCNO": str(node), "_CONDOR_NPROCS": str(len(hosts)), "_CONDOR_GANG_HOSTS": ",".join(hosts)}
    ad, more = ClassAd.from_bytes(text), ClassAd({"Node": node, "Nodes": len(hosts)})
    entries = [f"{name}={value}" for name, value in variables.items()]
    given, old = ad.evaluate("Environment"), ad.evaluate("Env")
    if isinstance(old, str) and old and not isinstance(given, str):
        more["Env"] = ";".join([old, *entries])
    else:
        more["Environment"] = " ".join([*([given] if isinstance(given, str) and given else []), *entries])
    return text + more.to_bytes()


def objection(ad: ClassAd, procs: int) -> str:
    """Why a job of the parallel universe cannot be queued as it is; empty: it can.

    Args:
        ad: of a job.
        procs: how many jobs its cluster has.
    """
    if not is_gang(ad):
        return ""
    size = ad.evaluate("MinHosts")
    if not 1 <= procs <= MOST_GROUPS:
        return (f"universe = parallel: the {procs} jobs of one cluster are groups of one gang's nodes; there may be "
                f"{MOST_GROUPS} at most")
    if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= MOST_MEMBERS:
        return f"machine_count = {ad.expression('MinHosts')}: a gang has 1 to {MOST_MEMBERS} nodes"
    if ad.get_str("WhenToTransferOutput").upper() == "ON_EXIT_OR_EVICT":
        return ("when_to_transfer_output = ON_EXIT_OR_EVICT would have no effect: a gang that was evicted begins anew "
                "as a whole. Use ON_EXIT.")
    if ad.find("successcheckpointexitcode") is not None:
        return ("checkpoint_exit_code would have no effect: a gang's nodes are not checkpointed together. Have the "
                "program keep its work in files that it names itself.")
    if ad.find("deferraltime") is not None:
        return "deferral_time would have no effect: a gang begins when all its machines are there. Leave it out."
    return ""
