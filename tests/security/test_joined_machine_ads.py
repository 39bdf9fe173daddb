"""A machine that joined with an ordinary token speaks for others: their ads, their claims, their daemons."""

from __future__ import annotations

import uuid

import pytest

from tests.harness.namespaces import NEED_NAMESPACES
from tests.pool_fixture import until
from tests.security.conftest import AttackedPool
from tests.security.intruder import intrude

pytestmark = NEED_NAMESPACES

ADVERTISE = """
from condor_actors.classads import parse_expression
result = []
for token, name, kind, attributes in cases:
    evil = Intruder.enrolled(token, f"{name}.trio")
    own = dict(Name=f"{name}.trio", Machine=f"{name}.trio", MyAddress=f"<{name}.trio:1>")
    said = {each: parse_expression(text[1:].replace("SELF", f'"{name}.trio"')) if text.startswith("=") else text
            for each, text in attributes.items()}
    result.append(evil.advertise(collector, AdKind[kind], **{**own, **said}))
"""
OF_OTHERS = [
    ("SCHEDD", {"Name": "submit.trio", "Machine": "submit.trio"}),
    ("SCHEDD", {"Name": "SUBMIT.trio"}),
    ("SCHEDD", {"MyAddress": "<10.88.7.2:9>"}),
    ("SCHEDD", {"MyAddress": ""}),
    ("SCHEDD", {"Machine": "submit.trio"}),
    ("MASTER", {"Name": "submit.trio"}),
    ("MASTER", {"Name": "x@submit.trio"}),
    ("MASTER", {"Name": "submit.trio", "MyAddress": "<10.88.7.3:9>"}),
    ("SLOT", {"Name": "slot1@manager.trio"}),
    ("SLOT", {"Name": "slot1@localhost", "Machine": "localhost", "MyAddress": "<127.0.0.1:9618>"}),
    ("SUBMITTER", {"Name": "root@trio", "ScheddName": "submit.trio"}),
    ("SUBMITTER", {"Name": "root@trio", "ScheddName": "x@submit.trio"}),
    ("NEGOTIATOR", {}),
    ("ACCOUNTING", {}),
    # another name where a job's requirements are compared with it, or a moment later
    ("SLOT", {"Machine": "=ifThenElse(TARGET.Cmd is undefined, SELF, \"submit.trio\")"}),
    ("SLOT", {"Name": "=strcat(ifThenElse(TARGET.Cmd is undefined, \"slot1@\", \"slot1@submit.trio,\"), SELF)"}),
    ("SLOT", {"MyAddress": "=strcat(\"<\", ifThenElse(time() % 2 < 2, SELF, \"submit.trio\"), \":1>\")"}),
    ("SCHEDD", {"Machine": "=ifThenElse(TARGET.Cmd is undefined, SELF, \"submit.trio\")"}),
    ("SUBMITTER", {"Name": "root@trio", "ScheddName": "=ifThenElse(TARGET.Cmd is undefined, SELF, \"submit.trio\")"}),
]
BY_ROLES = [
    ("startd", "SCHEDD", False), ("startd", "SUBMITTER", False), ("startd", "MASTER", False),
    ("startd", "COLLECTOR", False), ("schedd", "COLLECTOR", False), ("startd", "NEGOTIATOR", False),
    ("gateway", "NEGOTIATOR", False),
    ("schedd", "SLOT", False), ("schedd", "STARTD", False), ("startd", "STARTD", True), ("schedd", "SCHEDD", True),
]


def advertised(attacked: AttackedPool, cases: list[tuple[str, str, str, dict[str, str]]]) -> list[str]:
    """What the collector says to machines that advertise: their roles, their names, kinds and attributes of the ads."""
    answers: list[str] = intrude(attacked.evil, ADVERTISE, collector=attacked.collector,
                                 cases=[(attacked.token(roles), *case) for roles, *case in cases])
    return answers


@pytest.fixture(scope="module")
def of_others(attacked: AttackedPool) -> list[str]:
    """What it hears of each ad of another."""
    return advertised(attacked, [("master,schedd,startd", f"ad-{uuid.uuid4().hex}", *case) for case in OF_OTHERS])


@pytest.fixture(scope="module")
def by_roles(attacked: AttackedPool) -> list[str]:
    """What it hears of ads of each kind, by its roles."""
    names = [f"{roles}-{kind.lower()}" for roles, kind, _ in BY_ROLES]
    return advertised(attacked, [(roles, name, kind, {"ScheddName": f"{name}.trio"})
                                 for name, (roles, kind, _) in zip(names, BY_ROLES, strict=True)])


@pytest.mark.parametrize("number", range(len(OF_OTHERS)), ids=lambda number: str(OF_OTHERS[number]))
def test_it_advertises_for_another(of_others: list[str], number: int) -> None:
    assert of_others[number].startswith("denied"), of_others[number]


@pytest.mark.parametrize("number", range(len(BY_ROLES)), ids=lambda number: "-".join(map(str, BY_ROLES[number])))
def test_it_advertises_a_daemon_that_it_was_not_admitted_with(by_roles: list[str], number: int) -> None:
    assert by_roles[number].startswith("Done" if BY_ROLES[number][2] else "denied"), by_roles[number]


def test_it_withdraws_the_ads_of_others(attacked: AttackedPool) -> None:
    seen = until(lambda: "submit.trio" in (out := attacked.manager.run("condor_status", "-schedd", "-af", "Name"))
                 and out, "the schedd's ad")
    answers = intrude(attacked.evil, """
        evil = Intruder.enrolled(token, "taker.trio")
        result = [evil.withdraw(collector, AdKind[kind], name) for kind, name in
                  (("SCHEDD", "submit.trio"), ("MASTER", "submit.trio"), ("SLOT", "slot1@manager.trio"))]
        """, token=attacked.token(), collector=attacked.collector)
    assert attacked.manager.run("condor_status", "-schedd", "-af", "Name") == seen, answers
    masters = attacked.manager.run("condor_status", "-master", "-af", "Name")
    assert "submit.trio" in masters


def test_it_takes_over_an_ad_that_is_bound_to_no_host(attacked: AttackedPool) -> None:
    """A generic ad belongs to the machine that sent it for as long as it lives."""
    answers = intrude(attacked.evil, """
        first, second = (Intruder.enrolled(token, f"gen{n}.trio") for n, token in enumerate(tokens))
        ad = dict(Name="licences", MyType="Generic")
        result = [each.advertise(collector, AdKind.GENERIC, MyAddress=f"<gen{n}.trio:1>", **ad)
                  for n, each in ((0, first), (1, second), (0, first))]
        """, tokens=[attacked.token(), attacked.token()], collector=attacked.collector)
    assert answers[0] == answers[2] == "Done"
    assert answers[1].startswith("denied")


def test_it_says_that_a_daemon_of_another_machine_has_started(attacked: AttackedPool) -> None:
    """The master believes its own children only: else it would tell others where their schedd is."""
    before = attacked.submit.run("condor_status", "-master", "-af", "Name", "MasterSequenceNum")
    intrude(attacked.evil, """
        from condor_actors.messages.admin import DaemonStarted, Ping
        evil = Intruder.enrolled(token, "starter-of-daemons.trio")
        with evil.client(master) as client:
            for pid in pids:
                client.tell("master", DaemonStarted(daemon="schedd", pid=pid, address="<10.88.7.3:1>"))
            result = said(client, "admin", Ping())
        """, token=attacked.token(), master=attacked.node(attacked.submit, "master"), pids=attacked.submit.pids())
    log = (attacked.submit.dir / "log" / "MasterLog").read_text()
    assert "has started: ignored" in log, before


def test_it_uses_up_the_message_ids_of_another_machine(attacked: AttackedPool) -> None:
    """Who remembers ids per user name takes the other's message for a repeat and drops it."""
    answers = intrude(attacked.evil, """
        from condor_actors.messages.admin import Ping
        first, second = (Intruder.enrolled(token, f"ids{n}.trio") for n, token in enumerate(tokens))
        one, two = first.client(collector), second.client(collector)
        two._prefix = one._prefix  # what the other's hello told
        result = [said(one, "admin", Ping()), said(two, "admin", Ping())]
        """, tokens=[attacked.token(), attacked.token()], collector=attacked.collector)
    assert answers == ["Pong", "Pong"]


FLOOD = """
evil = Intruder.enrolled(token, f"{name}.trio")
own = dict(Machine=f"{name}.trio", MyAddress=f"<{name}.trio:1>", Fill="x" * 290_000, Offline=True)
with evil.client(collector) as client:
    answers = [said(client, "collector", UpdateAd(ad_kind=AdKind.SLOT, ad=ClassAd(
        {**own, "Name": f"slot{number}@{name}.trio"}).to_bytes())) for number in range(260)]
result = [answers.count("Done"), answers[-1]]
"""


def test_it_fills_the_collectors_memory_and_disk_and_takes_the_room_of_others(attacked: AttackedPool) -> None:
    """With ads of machines that sleep, which are kept on the disk, too."""
    name = f"flood-{uuid.uuid4().hex}"
    taken, last = intrude(attacked.evil, FLOOD, collector=attacked.collector, token=attacked.token("startd"), name=name)
    assert 200 < taken < 240
    assert last.startswith(f"invalid: {name}.trio has {taken} ads here of ")
    kept = attacked.manager.dir / "spool"
    assert sum(path.stat().st_size for path in kept.rglob("*") if path.is_file() and "ffline" in path.name) < 80 << 20
    other = f"other-{uuid.uuid4().hex}"
    assert advertised(attacked, [("startd", other, "SLOT", {"Name": f"slot1@{other}.trio"})]) == ["Done"]
