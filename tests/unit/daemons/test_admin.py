"""What every daemon says to its master."""

from __future__ import annotations

from typing import Any

from condor_actors.daemons.admin import AdminActor, AdminEdges
from condor_actors.messages.admin import DaemonStarted
from condor_actors.messages.envelope import Delivery, Done
from tests.harness.local_post import LocalNetwork

MASTER = "unix:/run/master.sock"


class Named:
    """A daemon of that name."""

    name = "schedd"


def _admin(net: LocalNetwork) -> None:
    edges: Any = AdminEdges(
        daemon=Named(), config=lambda: None, reload_config=lambda: None,  # type: ignore[arg-type, return-value]
        store_setting=lambda *_: None, explain=lambda *_: None, shut_down=lambda _: None, started_s=0.0,
        master_socket="/run/master.sock", public_node=lambda: "<m:1>", pid=7)
    net.system("<m:1>").spawn("admin", lambda: AdminActor(edges))


def test_a_master_that_is_away_hears_of_the_start_when_it_is_back() -> None:
    net = LocalNetwork()
    _admin(net)
    net.run(300.0)
    system = net.system(MASTER)
    master = net.probe(system, "master")

    def heard(delivery: Delivery) -> None:
        master.context.reply(delivery, Done())

    master.on_message = heard
    net.run(120.0)
    assert master.messages == [DaemonStarted(daemon="schedd", pid=7, address="<m:1>")]
    net.run(600.0)
    assert len(master.messages) == 1
    net.stop()
