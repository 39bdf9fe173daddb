"""Each message at each door for each identity, both ways: who has its level gets in, who has it not is refused.

The doors are those of real daemons over real links.  A message whose body is nonsense is refused as ``denied`` before
anybody looks at the body, or as ``malformed`` behind the door: which of the two tells whether its sender got in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from condor_actors.messages.codec import kinds, message_class
from condor_actors.messages.envelope import Level
from condor_actors.wire.authorization import IMPLIED_BY
from tests.harness.namespaces import NEED_NAMESPACES, Machine, a_wire
from tests.pool_fixture import until
from tests.security.conftest import AttackedPool
from tests.security.intruder import intrude

pytestmark = NEED_NAMESPACES

MEMBER = {"CLIENT", "READ", "WRITE", "DAEMON"}
HAS = {
    "startd": MEMBER | {"ADVERTISE_STARTD"},
    "schedd": MEMBER | {"ADVERTISE_SCHEDD"},
    "master": MEMBER | {"ADVERTISE_MASTER"},
    "negotiator": MEMBER | {"NEGOTIATOR"},
    "collector": MEMBER | {"ADMINISTRATOR", "OWNER"},
    "gateway": MEMBER,
    "user": {"CLIENT", "READ", "WRITE"},
    "shadow": {"CLIENT"},
    "token": {"CLIENT", "READ", "WRITE"},
    "token for READ": {"CLIENT", "READ"},
    "token for DAEMON": {"CLIENT", "READ", "WRITE"},
    "local user": {"CLIENT", "READ", "WRITE"},
    "root": {level.value for level in Level},
}
"""What an identity has without any list, by hand: not as the code has it."""

IMPLIES = {
    "READ": set(), "WRITE": {"READ"}, "NEGOTIATOR": {"READ"}, "OWNER": {"READ"}, "CONFIG": {"READ"},
    "ADMINISTRATOR": {"READ", "WRITE", "OWNER"}, "ADVERTISE_STARTD": set(), "ADVERTISE_SCHEDD": set(),
    "ADVERTISE_MASTER": set(),
    "DAEMON": {"READ", "WRITE", "ADVERTISE_STARTD", "ADVERTISE_SCHEDD", "ADVERTISE_MASTER"},
}
"""What a level gives to a person who was given it by a list."""

OWN_RIGHT = {
    "answer to a question of ours, over the link on which it went out": {
        "ActionResults", "Activated", "AdsPage", "CertificateLent", "CheckpointKept", "ConfigValues", "ClusterReserved",
        "Changes", "ChirpResult", "CredentialsPage", "DaemonStatistics", "Done", "GangResult", "GatewayState",
        "ImageLogin",
        "JobsPage", "MachineEnrolled", "OwnerView", "Pong",
        "Reattached", "Refused", "Revocations", "RunFileBytes", "RunTokens", "SpoolBytes", "SpoolListing", "Story",
        "Submitted",
        "TokenIssued", "TokenRequests", "TokenVerified", "TokensFetched", "Totals", "PrioritiesPage", "TracePage",
        "Reservations", "UploadsSigned",
    },
    "the claim and its secret, or the very link of the shadow or starter of a run": {
        "ActivateClaim", "CheckpointRun", "ChirpCall", "ContinueRun", "FetchImageLogin", "FetchRunTokens", "GangCall",
        "InputsSent",
        "OpenPort", "OpenShell",
        "OutputsReceived",
        "ReadRunFile", "SignUploads",
        "ReattachRun", "RunBegan", "RunCheckpointed", "RunEnded", "RunExited", "RunProgress", "RunUpdated",
        "NoticesWritten", "PortData", "SetJobAttributes", "ShadowHostHello", "ShellData", "StopRun", "SuspendRun",
    },
    "the person at the machine, by uid and session": {"IdleReading", "PauseMachine", "QueryOwner", "ResumeMachine"},
    "a join token": {"EnrolMachine"},
    "the certificate of a partner's gateway": {"AnnounceGateway", "OpenCircuit"},
    "the level for the kind of the ad, which the collector asks for": {"UpdateAd", "InvalidateAd"},
    "anybody may know": {"Ping", "QueryRevocations"},
}
"""Why a message that everybody with an identity may send is safe: what its right follows from."""

KNOCK = """
from condor_actors.messages.codec import kinds, message_class
from condor_actors.messages.envelope import Envelope
from condor_actors.wire import frames

def knock(client):
    answers = {}
    for number, (kind, version) in enumerate(sorted(kinds())):
        client._sequence += 1
        message_id = f"{client._prefix}{client._sequence:x}"
        envelope = Envelope(kind=kind, version=version, body=b"nonsense", message_id=message_id, to="admin",
                            reply_to="tool", deadline_s=30.0)
        client._told = client._taken
        client._write(client._call(frames.pack_batch(client._taken, [envelope])))
        import time
        while not any(each.in_reply_to == message_id for each in client._envelopes):
            client._take(time.monotonic() + 30.0)
        answer = client._decode(next(each for each in client._envelopes if each.in_reply_to == message_id))
        client._envelopes.clear()
        answers[message_class(kind, version).__name__] = answer.code
    return answers
"""


def levels() -> dict[str, str]:
    """Each message's class and level, as declared."""
    found: dict[str, str] = {}
    for kind, version in kinds():
        if not kind.startswith("condor."):
            continue  # of another test
        cls: Any = message_class(kind, version)
        found[cls.__name__] = Level(cls.LEVEL).value
    return found


def wrong(answers: dict[str, str], has: set[str]) -> list[str]:
    """The messages that got in and should not have, or the other way round."""
    expected = {name: "malformed" if level in has else "denied" for name, level in levels().items()}
    return [f"{name} ({levels()[name]}): {answers.get(name)}, not {code}" for name, code in expected.items()
            if answers.get(name) != code]


LISTED = {level: f"uid{60000 + number}" for number, level in enumerate(IMPLIES)}
"""For each level a user who has it by a list at the startd."""


@pytest.fixture(scope="module")
def doors() -> Iterator[AttackedPool]:
    """A pool whose startd gives each level to one user by a list."""
    lists = "".join(f"ALLOW_{level}_STARTD = {user}@trio\n" for level, user in LISTED.items())
    with a_wire() as wire:
        manager = wire.manager(config=f"{lists}DAEMON_LIST = $(DAEMON_LIST) GATEWAY\nGATEWAY_HOST = 10.88.7.1\n")
        submit = wire.member(manager, "submit", "master,schedd")
        for machine, daemon in ((submit, "schedd"), (manager, "schedd"), (manager, "startd"), (manager, "negotiator"),
                                (manager, "gateway")):
            until((machine.dir / "run" / f"{daemon}.address").exists, f"the {daemon} to listen")
        yield AttackedPool(wire, manager, submit, wire.machine("evil"))


def nodes(pool: AttackedPool, *, local: bool = False) -> dict[str, str]:
    """The doors of the manager's daemons, but for the startd with its lists."""
    names = ("collector", "schedd", "master", "negotiator", "gateway")
    if local:
        return {name: f"unix:{pool.manager.dir}/run/{name}.sock" for name in names}
    return {name: pool.node(pool.manager, name) for name in names}


@pytest.mark.parametrize("role", ["startd", "schedd", "master", "negotiator", "collector", "gateway"])
def test_a_machine(doors: AttackedPool, role: str) -> None:
    answers = intrude(doors.evil, KNOCK + """
evil = Intruder.enrolled(token, f"{role}.trio")
result = {}
for name, node in nodes.items():
    with evil.client(node) as client:
        result[name] = knock(client)
""", token=doors.token(role), role=role, nodes=nodes(doors))
    assert not [fault for each in answers.values() for fault in wrong(each, HAS[role])]


@pytest.mark.parametrize("role", ["user", "shadow"])
def test_a_proxy(doors: AttackedPool, role: str) -> None:
    answers = intrude(doors.evil, KNOCK + """
evil = Intruder.enrolled(token, f"of-{role}.trio")
result = {}
for name, node in nodes.items():
    with evil.client_as(node, f"{role}:alice@of-{role}.trio") as client:
        result[name] = knock(client)
""", token=doors.token("schedd"), role=role, nodes=nodes(doors))
    assert not [fault for each in answers.values() for fault in wrong(each, HAS[role])]


@pytest.mark.parametrize("scope", ["", "READ", "DAEMON"])
def test_a_token(doors: AttackedPool, scope: str) -> None:
    made = doors.manager.run("condor_token_create", "-identity", "alice@trio", *(("-authz", scope) if scope else ()))
    answers = intrude(doors.evil, KNOCK + """
from condor_actors.wire.idtokens.bearer import TokenCredentials
Path("ca.crt").write_text(ca)
shown = TokenCredentials(ca="ca.crt", tokens={"given": made.strip()})
result = [tried(lambda: connect(nodes.pop("gateway"), shown).close()), {}]
for name, node in nodes.items():
    with connect(node, shown) as client:
        result[1][name] = knock(client)
""", made=made, nodes=nodes(doors), ca=(doors.manager.dir / "etc/pool/ca.crt").read_text())
    at_gateway, answers = answers
    assert at_gateway.startswith("LinkLost"), at_gateway  # it takes certificates alone
    has = HAS[f"token for {scope}" if scope else "token"]
    assert not [fault for each in answers.values() for fault in wrong(each, has)]


def knock_locally(machine: Machine, uid: int, doors: dict[str, str]) -> dict[str, dict[str, str]]:
    answers: dict[str, dict[str, str]] = intrude(machine, """
import os
if uid:
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
""" + KNOCK + """
result = {}
for name, node in doors.items():
    with connect(node) as client:
        result[name] = knock(client)
""", uid=uid, doors=doors)
    return answers


@pytest.mark.parametrize(("who", "uid"), [("local user", 54321), ("root", 0)])
def test_a_local_user(doors: AttackedPool, who: str, uid: int) -> None:
    answers = knock_locally(doors.manager, uid, nodes(doors, local=True))
    assert not [fault for each in answers.values() for fault in wrong(each, HAS[who])]


@pytest.mark.parametrize("level", list(IMPLIES))
def test_a_user_with_a_level_by_a_list(doors: AttackedPool, level: str) -> None:
    """And with nothing but that level: the lists have replaced every default."""
    uid = int(LISTED[level].removeprefix("uid"))
    answers = knock_locally(doors.manager, uid, {"startd": f"unix:{doors.manager.dir}/run/startd.sock"})
    assert wrong(answers["startd"], {"CLIENT", level, *IMPLIES[level]}) == []


def test_every_level_is_tried() -> None:
    assert set(IMPLIES) == {level.value for level in IMPLIED_BY}
    assert {level.value for level in Level} == set(IMPLIES) | {"CLIENT"}


def test_what_everybody_may_say_has_a_right_of_its_own() -> None:
    """A new message of level CLIENT belongs into the table, with what its right follows from."""
    declared = [name for names in OWN_RIGHT.values() for name in names]
    assert len(declared) == len(set(declared))
    free = {name for name, level in levels().items() if level == "CLIENT"}
    assert free - set(declared) == set()
