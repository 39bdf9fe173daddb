"""A pool that was accepted as a partner, in both directions, and lies: it has an authority of its own, and so a
certificate with any names it likes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.namespaces import NEED_NAMESPACES, a_wire
from tests.pool_fixture import until
from tests.security.conftest import AttackedPool
from tests.security.intruder import intrude

pytestmark = NEED_NAMESPACES

AUTHORITY = """
from condor_actors.wire.certificates.authority import create_pool
from condor_actors.wire.partners.invitation import invitation_text
from condor_actors.wire.partners.partner_store import Partner

files = PoolFiles.below("evil-pool")
create_pool(files, "evil", hosts)
result = invitation_text(Partner(name="evil", central=f"<{address}:9618>", ca=files.ca.read_bytes()))
write_whole(files.ca, ca.encode())  # what it expects of others
"""
PARTNER = 'own = Intruder(PoolFiles.below("evil-pool"))\n'


@pytest.fixture(scope="module")
def attacked() -> Iterator[AttackedPool]:
    """A pool that has accepted another, whose certificates bear the names of this one's machines."""
    flock = "FLOCK_FROM = evil\nFLOCK_TO = evil\nALLOW_READ = *\nALLOW_WRITE = *\n"
    with a_wire() as wire:
        manager = wire.manager(config=flock)
        submit = wire.member(manager, "submit", "master,schedd", flock)
        evil = wire.machine("evil")
        until((submit.dir / "run" / "schedd.address").exists, "the schedd to listen")
        pool = AttackedPool(wire, manager, submit, evil)
        hosts = ["manager.trio", "submit.trio", "localhost", manager.address, submit.address, evil.address]
        invitation = intrude(evil, AUTHORITY, hosts=hosts, address=evil.address,
                             ca=(manager.dir / "etc" / "pool" / "ca.crt").read_text())
        fingerprint = manager.tool("condor_flock", "accept", "-", stdin=invitation).stdout.split("\n")[1].strip()
        manager.run("condor_flock", "accept", "-", "--fingerprint", fingerprint, stdin=invitation)
        for node in (pool.collector, pool.node(submit, "schedd"), pool.node(manager, "startd")):
            until(lambda at=node: not entered(pool, at).startswith(("LinkLost", "Unreachable")), f"{node} to know it")
        yield pool


def entered(attacked: AttackedPool, node: str) -> str:
    """What comes of a link to a daemon."""
    return str(intrude(attacked.evil, PARTNER + "result = tried(lambda: own.client(node).close())", node=node))


@pytest.mark.parametrize("kind", ["SLOT", "SCHEDD", "MASTER", "NEGOTIATOR", "STARTD", "COLLECTOR", "GENERIC",
                                  "ACCOUNTING"])
def test_it_advertises_more_than_submitters(attacked: AttackedPool, kind: str) -> None:
    said = intrude(attacked.evil, PARTNER + """
result = own.advertise(node, AdKind[kind], Name="slot1@submit.trio", Machine="submit.trio", MyAddress="<10.88.7.2:1>",
                       MyType="Machine")
""", node=attacked.collector, kind=kind)
    assert said.startswith("denied"), said


def test_it_advertises_submitters_of_others(attacked: AttackedPool) -> None:
    said = intrude(attacked.evil, PARTNER + """
result = own.advertise(node, AdKind.SUBMITTER, Name="group_x.alice@trio", Machine="submit.trio", IdleJobs=5,
                       ScheddName="submit.trio", MyAddress="<10.88.7.2:1>", MyType="Submitter", RunningJobs=0)
""", node=attacked.collector)
    assert said == "Done"
    names = attacked.manager.run("condor_status", "-submitters", "-af", "Name", "MyAddress").split()
    assert "group_x.alice@trio%evil" in names
    assert "group_x.alice@trio" not in names
    assert "<10.88.7.2%evil:1>" in names


@pytest.mark.parametrize("name", ["bob@trio%trio", "bob@trio%", "bob@trio%calm", "%", "bob@TRIO", "bob@tri\u043e",
                                  "group_x.bob@trio%evil%trio", "bob@trio\u2024evil"])
def test_no_spelling_of_a_submitter_is_one_of_this_pool_or_a_third(attacked: AttackedPool, name: str) -> None:
    """Names with marks of other pools, with other letters, with letters that look the same."""
    before = {"bob@trio", "bob@trio%calm", "bob@trio%trio"}
    said = intrude(attacked.evil, PARTNER + """
result = own.advertise(node, AdKind.SUBMITTER, Name=name, Machine="submit.trio", IdleJobs=5,
                       ScheddName="submit.trio", MyAddress="<10.88.7.2:1>", MyType="Submitter", RunningJobs=0)
""", node=attacked.collector, name=name)
    assert said == "Done"
    shown = attacked.manager.run("condor_status", "-submitters", "-af:,", "Name", "ScheddName", "MyAddress")
    mine = [line.split(", ") for line in shown.splitlines()]
    assert not before & {each for words in mine for each in words}
    assert all(words[0].endswith("%evil") and words[1].endswith("%evil") for words in mine), mine
    assert all("%evil:" in words[2] for words in mine), mine


@pytest.mark.parametrize("address", ["<10.88.7.2%trio:1>", "<10.88.7.2%:1>", "10.88.7.2:1", "unix:/run/x.sock", ""])
def test_its_submitters_are_at_no_address_that_is_not_its_own(attacked: AttackedPool, address: str) -> None:
    said = intrude(attacked.evil, PARTNER + """
result = own.advertise(node, AdKind.SUBMITTER, Name="eve@trio", Machine="submit.trio", IdleJobs=5,
                       ScheddName="submit.trio", MyAddress=address, MyType="Submitter", RunningJobs=0)
""", node=attacked.collector, address=address)
    assert said.startswith("denied"), said
    assert "eve" not in attacked.manager.run("condor_status", "-submitters", "-af", "Name")


def test_it_withdraws_ads_of_others(attacked: AttackedPool) -> None:
    for kind, name in (("SCHEDD", "submit.trio"), ("SLOT", "slot1@manager.trio")):
        intrude(attacked.evil, PARTNER + "result = own.withdraw(node, AdKind[kind], name)", node=attacked.collector,
                kind=kind, name=name)
    assert "submit.trio" in attacked.manager.run("condor_status", "-schedd", "-af", "Name")
    assert "slot1@manager.trio" in attacked.manager.run("condor_status", "-af", "Name")


def test_it_asks_for_what_only_negotiators_see(attacked: AttackedPool) -> None:
    said = intrude(attacked.evil, PARTNER + """
from condor_actors.messages.advertise import SubscribeAds
with own.client(node) as client:
    result = said(client, "collector", SubscribeAds(ad_kinds=(AdKind.SLOT,), subscriber="tool"))
""", node=attacked.collector)
    assert said.startswith("denied"), said


def test_it_is_told_of_certificates_alone(attacked: AttackedPool) -> None:
    said = intrude(attacked.evil, PARTNER + """
from condor_actors.messages.pool import QueryRevocations
with own.client(node) as client:
    lists = client.ask("enrolment", QueryRevocations(), timeout_s=20.0) if asks else None
result = lists and [len(lists.tokens), len(lists.partners)]
""", node=attacked.collector, asks=bool(attacked.manager.tool("condor_pool", "revoke", "nobody.trio")))
    assert said == [0, 0]


@pytest.mark.parametrize("identity", ["user:root@submit.trio", "user:condor@submit.trio", "user:alice@localhost"])
def test_it_acts_on_jobs(attacked: AttackedPool, identity: str) -> None:
    cluster = attacked.submit.submit("executable = /bin/true\nrequirements = false\nqueue\n")
    said = intrude(attacked.evil, PARTNER + """
from condor_actors.messages.queue import ActOnJobs, JobAction
with own.client_as(node, identity) as client:
    result = said(client, "schedd", ActOnJobs(action=JobAction.REMOVE, ids=((cluster, -1),), reason="x"))
""", node=attacked.node(attacked.submit, "schedd"), identity=identity,
                   cluster=cluster)
    assert said.startswith("denied"), said
    assert attacked.submit.status_of(f"{cluster}.0") == 1


def test_it_matches_jobs_that_are_not_offered_to_it(attacked: AttackedPool) -> None:
    cluster = attacked.submit.submit("executable = /bin/true\nhold = true\nqueue\n")
    said = intrude(attacked.evil, PARTNER + """
from condor_actors.messages.negotiate import NegotiateRequests
with own.client(node) as client:
    answer = client.ask("schedd", NegotiateRequests(cycle=1, submitter="bob@trio%trio"), timeout_s=20.0)
result = len(answer.requests)
""", node=attacked.node(attacked.submit, "schedd"))
    assert said == 0
    attacked.submit.run("condor_rm", str(cluster))


def test_it_claims_without_a_match(attacked: AttackedPool) -> None:
    said = intrude(attacked.evil, PARTNER + """
from condor_actors.messages.claim import RequestClaim
job = ClassAd({"Owner": "root", "User": "root@trio", "Cmd": "/bin/true"}).to_bytes()
with own.client(startd) as client:
    answer = client.ask("startd", RequestClaim(slot_name="slot1@manager.trio", capability="", job_ad=job,
                        owner="root@trio", submitter="root@trio", schedd_name="submit.trio"), timeout_s=20.0)
result = [type(answer).__name__]
""", startd=attacked.node(attacked.manager, "startd"))
    assert said == ["ClaimRefused"]


def test_it_changes_what_the_pool_does(attacked: AttackedPool) -> None:
    for daemon, machine in (("startd", attacked.manager), ("collector", attacked.manager), ("schedd", attacked.submit)):
        said = intrude(attacked.evil, PARTNER + """
from condor_actors.messages.admin import Reconfigure
with own.client(node) as client:
    result = said(client, "admin", Reconfigure())
""", node=attacked.node(machine, daemon))
        assert said.startswith("denied"), (daemon, said)


def test_it_signs_for_people_with_tokens(attacked: AttackedPool) -> None:
    said = intrude(attacked.evil, PARTNER + """
from condor_actors.messages.tokens import FetchToken
with own.client_as(node, "user:alice@submit.trio") as client:
    result = said(client, "tokens", FetchToken())
""", node=attacked.collector)
    assert said != "TokenIssued", said
