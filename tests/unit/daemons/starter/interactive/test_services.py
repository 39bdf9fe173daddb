"""Ports of the machine for the services of a run."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.starter.container_spec import ContainerSpec
from condor_actors.daemons.starter.interactive.services import Services

SERVICES = (("web", 80), ("db", 5432))


def starter_of(low: int = 0, high: int = 0) -> Any:
    spec = SimpleNamespace(container=ContainerSpec(image="x", name="x", services=SERVICES))
    edges = SimpleNamespace(service_ports=lambda: ("127.0.0.1", low, high))
    return SimpleNamespace(spec=spec, edges=edges, context=SimpleNamespace(random=random.Random(1)))


@pytest.fixture
def services() -> Iterator[Services]:
    made = Services(starter_of())
    made.open()
    yield made
    made.close()


def test_each_service_keeps_its_port_until_the_run_is_over(services: Services) -> None:
    first = services.ports
    assert [name for name, _ in first] == ["web", "db"]
    services.open()  # it goes on after a checkpoint
    assert services.ports == first
    ad = ClassAd.from_bytes(services.ad_with_ports(b'Owner = "alice"\n'))
    assert (ad.evaluate("Owner"), ad.evaluate("web_HostPort"), ad.evaluate("db_HostPort")) == (
        "alice", first[0][1], first[1][1])
    assert services.leads_to(5432) == ("127.0.0.1", first[1][1])
    assert services.leads_to(81) is None
    services.close()
    assert services.ports == ()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", first[0][1]))


def test_ports_are_within_those_that_the_administrator_opens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        made = Services(starter_of(port, port))
        with pytest.raises(OSError, match=r"no port of this machine for the job's service web \(LOWPORT, HIGHPORT\)"):
            made.open()
        made.close()


def test_a_job_without_services_takes_none() -> None:
    starter = starter_of()
    starter.spec.container = None
    made = Services(starter)
    made.open()
    assert (made.ports, made.ad_with_ports(b"x"), made.leads_to(80)) == ((), b"x", None)
