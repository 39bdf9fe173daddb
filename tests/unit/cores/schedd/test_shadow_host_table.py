"""One shadow host: what its table decides where it is easily decided otherwise."""

from __future__ import annotations

from condor_actors.cores.schedd.shadow_host_table import (
    AssignHost,
    EndHost,
    Host,
    HostIntroduced,
    HostLinkLost,
    HostState,
    IdleCheck,
    OwnerWants,
)
from condor_actors.effects import Send
from condor_actors.messages.envelope import Address, TimerFired
from condor_actors.messages.shadow_host import DismissHost

LINK = Address("in:1", "shadow-host")


def ready(hello_s: float = 0.0) -> Host:
    host = Host("h", "ann", pid=7, birth="b")
    host.handle(HostIntroduced(LINK, ""), hello_s)
    assert host.state is HostState.READY
    return host


def test_a_link_that_breaks_soon_after_the_hello_is_not_a_slow_start() -> None:
    host = ready()
    host.handle(HostLinkLost(), 29.0)
    assert host.handle(TimerFired(key="host-start"), 30.0) == ()
    assert host.state is HostState.LOST, "it has its whole time to come back"
    assert EndHost("h", 7, "b") in host.handle(TimerFired(key="host-return"), 49.0)
    assert host.state is HostState.GONE


def test_a_host_that_starts_for_an_owner_stays_that_owners() -> None:
    host = Host("h", "")
    host.handle(OwnerWants("ann"), 0.0)
    host.handle(OwnerWants("bob"), 0.0)
    assert AssignHost("h", "ann", LINK) in host.handle(HostIntroduced(LINK, ""), 1.0)


def test_only_a_host_without_work_is_dismissed() -> None:
    host = ready()
    host.handle(IdleCheck(busy=True), 1000.0)
    assert host.handle(IdleCheck(busy=False), 2000.0) == (), "its owner had work not long ago"
    assert host.handle(IdleCheck(busy=False), 2201.0)[0] == Send(LINK, DismissHost())
    assert host.state is HostState.GONE


def test_a_spare_whose_link_breaks_is_ended() -> None:
    """It may be frozen: then it never hears that it is nobody's any more."""
    host = Host("h", "", pid=7, birth="b")
    host.handle(HostIntroduced(LINK, ""), 1.0)
    assert host.handle(HostLinkLost(), 2.0) == (EndHost("h", 7, "b"),)
    assert host.state is HostState.GONE
