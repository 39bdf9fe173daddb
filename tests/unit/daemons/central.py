"""A central manager on the in-memory network, with scripted schedds and machines around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from condor_actors.classads import ClassAd
from condor_actors.config import Config, load_config
from condor_actors.daemons import collector, negotiator
from condor_actors.messages.advertise import AdKind, InvalidateAd, UpdateAd
from condor_actors.messages.envelope import Address, Delivery
from condor_actors.messages.negotiate import (
    Match,
    MatchesMade,
    MatchNotice,
    NegotiateRequests,
    RequestsRejected,
    ResourceRequest,
    ResourceRequests,
)
from tests.harness.local_post import LocalNetwork, Probe

CM = "<cm:9618>"
NEGOTIATOR = "<cm:9619>"
COLLECTOR = Address(CM, "collector")
ALICE, BOB = "alice@dom", "bob@dom"


def start_collector(net: LocalNetwork) -> None:
    """A collector at :data:`CM`."""
    daemon = collector.make_daemon(load_config(files=[], environ={}), net.world(CM))
    net.adopt(CM, daemon.system)
    daemon.start()


def central_network() -> Iterator[LocalNetwork]:
    """A network with a collector, for fixtures; nothing is left of it afterwards."""
    network = LocalNetwork()
    start_collector(network)
    yield network
    network.stop()
    network.run(60.0)
    assert not network.clock.getDelayedCalls()


def start_negotiator(net: LocalNetwork, folder: Path, settings: Mapping[str, str] | None = None) -> Any:
    """A negotiator at :data:`NEGOTIATOR` whose records lie in ``folder``."""
    daemon = negotiator.make_daemon(configuration(folder, settings), net.world(NEGOTIATOR))
    net.adopt(NEGOTIATOR, daemon.system)
    daemon.start()
    net.run(1.0)
    return daemon


def ask(net: LocalNetwork, probe: Any, message: Any) -> Any:
    """The negotiator's answer to a question."""
    probe.answers.clear()
    probe.ask(Address(NEGOTIATOR, "negotiator"), message)
    net.run(0.2)
    return probe.answers[-1]


def configuration(folder: Path, settings: Mapping[str, str] | None = None) -> Config:
    """The negotiator's configuration."""
    overrides = {"COLLECTOR_HOST": "cm:9618", "SPOOL": str(folder), **(settings or {})}
    return load_config(subsystem="NEGOTIATOR", files=[], environ={}, overrides=overrides)


class Machine:
    """A startd that only advertises; ``notices`` are the matches it was told of."""

    def __init__(self, net: LocalNetwork, node: str = "<m:1>") -> None:
        self.net, self.node = net, node
        self.probe: Probe = net.probe(net.system(node), "startd")

    @property
    def notices(self) -> list[MatchNotice]:
        return [message for message in self.probe.messages if isinstance(message, MatchNotice)]

    def show(self, name: str, capability: str = "", **values: Any) -> None:
        """Advertise a slot."""
        ad = ClassAd({"MyType": "Machine", "Name": name, "Machine": "m", "MyAddress": self.node, "SlotType": "Static",
                      "State": "Unclaimed", "Activity": "Idle", "Cpus": 1, "Memory": 1000, "Disk": 100_000,
                      "SlotID": 1, "Rank": 0.0, "CurrentRank": 0.0, "Start": True,
                      "MachineResources": "Cpus Memory Disk Swap"})
        ad.insert_text("Requirements", "Start && (TARGET.RequestCpus ?: 1) <= MY.Cpus")
        ad.insert_text("SlotWeight", "Cpus")
        for key, value in values.items():
            if isinstance(value, str) and value.startswith("="):
                ad.insert_text(key, value[1:])
            else:
                ad[key] = value
        private = ClassAd({"Capability": capability or f"right to {name}"})
        self.probe.tell(COLLECTOR, UpdateAd(ad_kind=AdKind.SLOT, ad=ad.to_bytes(), private=private.to_bytes()))

    def hide(self, *names: str) -> None:
        """The slots are no more."""
        self.probe.tell(COLLECTOR, InvalidateAd(ad_kind=AdKind.SLOT, names=names))


class Schedd:
    """A schedd that wants what ``wants`` says: (count, job attributes) by submitter, in order."""

    def __init__(self, net: LocalNetwork, node: str = "<s:1>", name: str = "s") -> None:
        self.net, self.node, self.name = net, node, name
        self.probe: Probe = net.probe(net.system(node), "schedd")
        self.probe.on_message = self._heard
        self.wants: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        self.matches: list[tuple[str, Match]] = []
        self.rejections: list[tuple[str, str]] = []
        self.asked: list[NegotiateRequests] = []
        self.silent = False

    def want(self, submitter: str, *wants: tuple[int, dict[str, Any]]) -> None:
        """Want this from now on, and say so."""
        self.wants[submitter] = [list(each) for each in wants]  # type: ignore[misc]  # counts go down
        self.advertise(submitter)

    def advertise(self, submitter: str) -> None:
        """Say how many jobs are idle."""
        idle = sum(count for count, _ in self.wants[submitter])
        ad = ClassAd({"MyType": "Submitter", "Name": submitter, "ScheddName": self.name, "MyAddress": self.node,
                      "IdleJobs": idle, "RunningJobs": 0})
        self.probe.tell(COLLECTOR, UpdateAd(ad_kind=AdKind.SUBMITTER, ad=ad.to_bytes()))

    def _heard(self, delivery: Delivery) -> None:
        message = delivery.message
        if isinstance(message, NegotiateRequests):
            self.asked.append(message)
            if not self.silent:
                self.probe.context.reply(delivery, self._requests(message))
        elif isinstance(message, MatchesMade):
            for match in message.matches:
                self.matches.append((message.submitter, match))
                self.wants[message.submitter][match.autocluster - 1][0] -= 1  # type: ignore[index]
        elif isinstance(message, RequestsRejected):
            self.rejections += [(message.submitter, each.reason) for each in message.rejections]

    def _requests(self, message: NegotiateRequests) -> ResourceRequests:
        start = int(message.cursor or 0)
        every = [
            ResourceRequest(autocluster=index, job_id=f"{index}.0", count=count, job_ad=job_ad(values).to_bytes())
            for index, (count, values) in enumerate(self.wants[message.submitter], start=1) if count > 0
        ]
        page = tuple(every[start:start + message.limit])
        more = start + len(page)
        return ResourceRequests(submitter=message.submitter, requests=page,
                                cursor=str(more) if more < len(every) else "")

    @property
    def slots(self) -> list[str]:
        """Names of the slots matched, in order."""
        return [match.slot_name for _, match in self.matches]


def job_ad(values: Mapping[str, Any]) -> ClassAd:
    """A job; texts that begin with ``=`` are expressions."""
    ad = ClassAd({"MyType": "Job", "RequestCpus": 1, "RequestMemory": 100, "RequestDisk": 1, "JobUniverse": 5,
                  "Requirements": True, "Rank": 0.0})
    for key, value in values.items():
        if isinstance(value, str) and value.startswith("="):
            ad.insert_text(key, value[1:])
        else:
            ad[key] = value
    return ad
