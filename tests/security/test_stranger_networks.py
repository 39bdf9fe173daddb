"""ALLOW_ and DENY_ lists of networks against machines that say they are elsewhere; and decisions that are explained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.harness.namespaces import NEED_NAMESPACES, Machine
from tests.security.conftest import AttackedPool
from tests.security.intruder import intrude

pytestmark = NEED_NAMESPACES

READS = """
from condor_actors.messages.advertise import QueryAds
evil = Intruder.enrolled(token, *hosts)
with evil.client(collector) as client:
    result = said(client, "collector", QueryAds(ad_kind=AdKind.SCHEDD))
"""


@contextmanager
def configured(machine: Machine, **lists: str) -> Iterator[None]:
    """A machine with other lists for a while."""
    path = machine.dir / "config.d" / "zzz.config"
    path.write_text("".join(f"{name} = {value}\n" for name, value in lists.items()))
    machine.run("condor_reconfig")
    try:
        yield
    finally:
        path.unlink()
        machine.run("condor_reconfig")


def test_a_network_is_where_the_link_comes_from(attacked: AttackedPool) -> None:
    """A certificate with an address of the network that is let in is of no use from elsewhere."""
    def reads(name: str, *more: str) -> str:
        return str(intrude(attacked.evil, READS, token=attacked.token(), hosts=[f"{name}.trio", *more],
                           collector=attacked.collector))

    assert reads("net0") == "AdsPage"
    with configured(attacked.manager, DENY_READ=f"{attacked.evil.address}/32"):
        assert reads("net1", "10.88.8.1").startswith("denied")
    trusted = "10.88.9.0/24, 127.0.0.1, 10.88.7.2"
    with configured(attacked.manager, ALLOW_READ=trusted, ALLOW_WRITE=trusted, ALLOW_DAEMON=trusted):
        assert reads("net2", "10.88.9.1").startswith("denied")
        submit = attacked.submit.run("condor_status", "-schedd", "-af", "Name")
        assert "submit.trio" in submit
    assert reads("net3") == "AdsPage"


def test_a_list_of_networks_makes_no_user_a_machine(attacked: AttackedPool) -> None:
    """By a proxy of a machine there, and on the collector's own machine over its local socket."""
    advertise = """
ad = ClassAd(dict(Name=f"slot1@{host}", Machine=host, MyAddress=f"<{host}:1>", MyType="Machine"))
with client as opened:
    result = said(opened, "collector", UpdateAd(ad_kind=AdKind.SLOT, ad=ad.to_bytes()))
"""
    with configured(attacked.manager, ALLOW_ADVERTISE_STARTD="*", ALLOW_DAEMON="*, 10.88.7.0/24", ALLOW_NEGOTIATOR="*"):
        for role in ("user", "shadow"):
            answer = intrude(attacked.evil, f"""
evil = Intruder.enrolled(token, host)
client = evil.client_as(collector, f"{role}:alice@{{host}}")
""" + advertise, token=attacked.token(), host=f"net-{role}.trio", collector=attacked.collector)
            assert answer.startswith("denied"), (role, answer)
        answer = intrude(attacked.manager, """
import os
os.setgroups([])
os.setgid(54321)
os.setuid(54321)
client = connect(collector)
""" + advertise, host="manager.trio", collector=f"unix:{attacked.manager.dir}/run/collector.sock")
        assert answer.startswith("denied"), answer
        answer = intrude(attacked.evil, """
evil = Intruder.enrolled(token, host)
client = evil.client(collector)
""" + advertise, token=attacked.token("startd"), host="net-machine.trio", collector=attacked.collector)
        assert answer == "Done"


def test_a_bad_network_stops_no_daemon_and_changes_nothing(attacked: AttackedPool) -> None:
    path = attacked.manager.dir / "config.d" / "zzz.config"
    path.write_text("DENY_READ = 10.0.0.0/33\n")
    try:
        done = attacked.manager.tool("condor_reconfig", "-daemon", "collector")
        said = done.stdout + done.stderr + (attacked.manager.dir / "log" / "CollectorLog").read_text()
        assert "10.0.0.0/33 is no network" in said
        assert "zzz.config" in said
    finally:
        path.unlink()
    assert attacked.manager.run("condor_status", "-schedd", "-af", "Name")


def test_condor_ping_explains(attacked: AttackedPool) -> None:
    manager, submit = attacked.manager, attacked.submit
    stranger = ("setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups")
    ping = [*stranger, *Machine.__mro__[1].command(manager, "condor_ping"), "-type", "collector"]
    done = manager.tool(*ping, "READ", "ADMINISTRATOR")
    assert done.returncode == 1
    assert "READ command using (none, FS) succeeded as uid54321@trio" in done.stdout
    assert "Why not: without ALLOW_ADMINISTRATOR it belongs to machines with the role collector." in done.stdout
    assert "ALLOW_ADMINISTRATOR = uid54321@trio" in done.stdout
    with configured(manager, DENY_WRITE="uid54321@trio"):
        done = manager.tool(*ping, "-verbose", "WRITE")
        assert "DENY_WRITE (" in done.stdout
        assert "zzz.config, line 1) has 'uid54321@trio'" in done.stdout
    table = submit.tool("condor_ping", "-name", "submit.trio", "-type", "schedd", "-table", "ALL").stdout
    assert len(table.splitlines()) == 12
    assert submit.tool("condor_ping", "-type", "schedd", "-quiet", "ADMINISTRATOR").returncode == 0
