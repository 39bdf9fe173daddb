"""The submitting side of a pool of cores: the production's schedd, and what its shadow hosts are told."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Any

import attrs

from condor_actors.cores.schedd.queue_operations import QueueSnapshot
from condor_actors.cores.schedd.schedd_core import HostHello, ScheddCore
from condor_actors.cores.schedd.shadow_host_table import HostStarted, StartHost
from condor_actors.effects import Effect, Reply
from condor_actors.messages.envelope import Address, Delivery, Identity
from condor_actors.messages.run import StopRun
from condor_actors.messages.shadow_host import HostOrders, NoticesWritten, ShadowHostHello
from condor_actors.messages.submission import ReserveCluster, SubmitPage
from condor_actors.simulation.cores.nodes import COLLECTOR, Node
from condor_actors.simulation.cores.runs import SimulatedRun, Work
from condor_actors.simulation.report import events

if TYPE_CHECKING:
    from condor_actors.simulation.cores.pool import CorePool

__all__ = ["Home"]

VERSION = "$CondorVersion: simulated $"


class Home(Node):
    """One schedd with its users' jobs, and their shadow hosts.

    Args:
        pool: where it belongs; user: whose station it is.
    """

    actor = "schedd"

    def __init__(self, pool: CorePool, user: str) -> None:
        super().__init__(pool.mesh, f"<{user}:1>", wrapped=True)
        self.pool = pool
        self.user = user
        self.identity = Identity(name=f"{user}@pool")
        self.work: dict[tuple[str, str], Work] = {}
        self.runs: dict[str, SimulatedRun] = {}
        self._hosts = 0
        settings = attrs.evolve(pool.settings.schedd, name=f"schedd@{user}", machine=user, uid_domain="pool",
                                collectors=(COLLECTOR,))
        self.core = ScheddCore(settings, QueueSnapshot(), Random(f"schedd {user}"), self.clock.wall(), VERSION)
        self.perform(self.core.start(self.clock.wall(), self.name), None)

    def submit(self, demands_s: Sequence[float], calls: Sequence[int] = (), ad: str = "",
               saves: bool | None = None) -> None:
        """Queue jobs of one cluster.

        Args:
            demands_s: the work of each; calls: their remote system calls.
            ad: attributes of the cluster beside those of every job.
            saves: whether they keep their work when they are evicted; None: as the settings say.

        Raises:
            ValueError: the schedd refuses them.
        """
        cluster = self._tell(ReserveCluster()).cluster_id
        page = SubmitPage(cluster_id=cluster, page=0, cluster_ad=(self.pool.settings.job + ad).encode(),
                          procs=(b"",) * len(demands_s), first_proc=0, last=True)
        for proc, demand_s in enumerate(demands_s):
            job = (self.user, f"{cluster}.{proc}")
            self.work[job] = Work(demand_s, self.pool.settings.saves if saves is None else saves)
            self.pool.observe(events.Submitted(self.clock.now_s, job, self.user, demand_s,
                                               calls[proc] if calls else 0))
        answer = self._tell(page)
        if not hasattr(answer, "first_proc"):
            raise ValueError(f"the schedd of {self.user} refuses: {answer.text}")

    def _tell(self, message: Any) -> Any:
        """A tool's question, answered in the same turn."""
        delivery = Delivery(message=message, sender=Address("tool", "tool"), identity=self.identity, message_id="")
        answers = []
        effects = self.core.handle(delivery, self.clock.wall())
        others = []
        for effect in effects:
            if isinstance(effect, Reply):
                answers.append(effect.message)
            else:
                others.append(effect)
        self.perform(tuple(others), None)
        return answers[0]

    # ---- shadow hosts

    def perform_own(self, effect: Effect, delivery: Delivery | None) -> None:
        """A process is wanted: it is there a moment later."""
        if isinstance(effect, StartHost):
            self._hosts += 1
            node = f"host:{self.user}:{self._hosts}"
            self.mesh.nodes[node] = _Host(self, node)
            self.mesh.carry(self.name, Delivery(message=HostStarted(effect.host_id, self._hosts, "born"),
                                                sender=Address("", ""), message_id="", answerable=False))
            hello = ShadowHostHello(host_id=effect.host_id, owner=effect.owner, pid=self._hosts)
            self.mesh.carry(self.name, Delivery(message=HostHello(hello, "born"), sender=Address(node, "shadow-host"),
                                                identity=self.identity, message_id="", answerable=False))

    def host_says(self, host: str, message: Any) -> None:
        """A shadow host tells the schedd."""
        self.mesh.carry(self.name, Delivery(message=message, sender=Address(host, "shadow-host"),
                                            identity=self.identity, message_id="", answerable=False))


class _Host:
    """A shadow host's process: its orders become runs."""

    def __init__(self, home: Home, name: str) -> None:
        self._home = home
        self._name = name

    def take(self, delivery: Delivery) -> None:
        """An order of the schedd."""
        message, home = delivery.message, self._home
        if isinstance(message, HostOrders):
            written = (*(run_id for run_id, _ in message.verdicts), *(each.notice_id for each in message.notices))
            if written:
                home.host_says(self._name, NoticesWritten(notice_ids=written))
            for start in message.starts:
                SimulatedRun(home.pool, home, start, self._name)
        elif isinstance(message, StopRun):
            run = home.runs.get(message.run_id)
            if run is not None:
                run.leave(0.0 if message.how in ("fast", "remove", "lost") else 600.0, message.reason)
