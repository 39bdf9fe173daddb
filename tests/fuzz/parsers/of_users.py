"""Parsers of what users and administrators write, and of what members of a gang and strangers say at a door."""

from __future__ import annotations

import contextlib
import io
import json
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.logger import Logger

from condor_actors.classads import ClassAd, ClassAdSyntaxError
from condor_actors.classads.builtins.user_maps import UserMapError, read_user_map
from condor_actors.config import Config, ConfigError, load_config
from condor_actors.cores.schedd.factories import factory
from condor_actors.cores.schedd.queue_operations import SaveItems
from condor_actors.cores.shadow.gang_hub import GangHub
from condor_actors.daemons.starter.run_gang import RunGang
from condor_actors.messages import codec
from condor_actors.messages.codec import MalformedMessage
from condor_actors.messages.envelope import Identity
from condor_actors.messages.run import GANG_KEPT, GANG_KEPT_BYTES, GangCall, GangResult
from condor_actors.submit import SubmitError
from condor_actors.submit.queue_statement import split_row
from condor_actors.tools.jobs.qsub import _directives
from condor_actors.tools.jobs.qsub_description import QsubJob, description_of
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.nouns.job_set_file import JobSetFile, _Reader
from condor_actors.wire.identity_map import BadMapping, IdentityMap, _rules_of
from condor_actors.wire.idtokens.exchange import TokenExchange
from condor_actors.wire.idtokens.revoked_tokens import RevokedTokens
from condor_actors.wire.idtokens.signed_token import BadToken
from condor_actors.wire.idtokens.signing_keys import SigningKeys
from condor_actors.wire.idtokens.token_issuer import TokenIssuer, TokenRequestDoor
from condor_actors.wire.idtokens.verifier import TokenVerifier
from condor_actors.wire.relays.hop import Asked
from condor_actors.wire.relays.lines import partner_of
from tests.fuzz.folders import fuzz_folder
from tests.unit.submit.worlds import World, described

__all__ = ["OF_USERS"]

NOWHERE = Path(fuzz_folder()) / "a" / "b" / "c"
MEMBERS = 4
TICK, LEAVE = 0x70, 0x71


def text_of(data: bytes) -> str:
    """As files of others are read."""
    return data.decode("utf-8", "surrogateescape")


# ---- gangs

def _calls(data: bytes) -> list[tuple[int, bytes]]:
    """What members say: each is a byte (who), the length in two, and a message."""
    found = []
    while len(data) >= 3:
        size = int.from_bytes(data[1:3], "big")
        found.append((data[0], data[3:3 + size]))
        data = data[3 + size:]
    return found


def _packed(*said: tuple[int, Any]) -> bytes:
    bodies = [(who, codec.encode(each) if each is not None else b"") for who, each in said]
    return b"".join(bytes([who]) + len(body).to_bytes(2, "big") + body for who, body in bodies)


def gang_hub(data: bytes) -> None:
    """Members say what they like: the hub's counts hold, and each question has one answer at most."""
    answered: list[int] = []
    hub = GangHub(MEMBERS, 0.0, lambda ticket, result: answered.append(ticket))
    now_s = 0.0
    for ticket, (who, body) in enumerate(_calls(data)[:2_000]):
        now_s += 1.0
        if who == TICK:
            hub.tick(now_s)
        elif who == LEAVE:
            hub.leave(len(body) % MEMBERS)
        else:
            try:
                call = codec.decode(GangCall.KIND, GangCall.VERSION, body)
            except MalformedMessage:
                continue
            assert isinstance(call, GangCall)
            hub.handle(who - 256 if who > 127 else who, call, ticket, now_s)
        hub.validate()
    assert len(answered) == len(set(answered))


def _gang_talk() -> list[bytes]:
    def call(verb: str, number: int, *names: str, data: bytes = b"", **more: Any) -> GangCall:
        return GangCall(run_id="1.0#1@s", verb=verb, number=number, names=names, data=data, **more)

    joins = [(node, call("join", 0)) for node in range(MEMBERS)]
    return [_packed(*joins, (0, call("put", 1, "a", data=b"7")), (1, call("wait", 1, "a")), (2, call("get", 1, "b"))),
            _packed(*joins, (0, call("send", 1, "c", data=b"x")), (1, call("recv", 1, "c", "d")),
                    (1, call("took", 1)), (TICK, None), (LEAVE, None)),
            _packed((0, call("join", 0, kept=(("a", b"7"),), taken=((1, 3), (2, 1)))), (0, call("cancel", 1)),
                    (1, call("join", 0)), (1, call("send", 3, "c")), (0, call("recv", 2, "c")), (0, call("cancel", 2)))]


def gang_member(data: bytes) -> None:
    """A hub answers what it likes: what is kept for it has its limits."""
    asked: list[tuple[GangCall, Any]] = []
    context = SimpleNamespace(
        ask=lambda _, call, timeout_s, then: asked.append((call, then)), set_timer=lambda *_: None)
    starter: Any = SimpleNamespace(run_id="1.0#1@s", shadow=None, core=SimpleNamespace(connected=True), context=context)
    member = RunGang(starter)
    member.join()
    verbs = (("put", ("a",), b"x" * 4000), ("recv", ("c", "d"), b""), ("wait", ("a",), b""), ("send", ("c",), b"y"))
    for number, (who, body) in enumerate(_calls(data)[:2_000]):
        verb, names, value = verbs[number % len(verbs)]
        number = member.ask(verb, names, value, lambda result: None)
        try:
            answer = codec.decode(GangResult.KIND, GangResult.VERSION, body)
        except MalformedMessage:
            continue
        if asked:
            asked.pop(who % len(asked))[1](SimpleNamespace(message=answer))
        if who & 1:
            member.shadow_is_back()
        assert len(member._kept) <= GANG_KEPT  # noqa: SLF001 - what it holds
        assert member._kept_bytes <= GANG_KEPT_BYTES  # noqa: SLF001


def _hub_talk() -> list[bytes]:
    good = [(0, GangResult(value=value, name="c", member=1, number=number, data=b"m"))
            for number, value in enumerate((0, 0, 0, -9, -1, 0, 0, 0))]
    return [_packed(*good), _packed(*good[:3], *((1, each) for _, each in good))]


# ---- what is submitted

class _Set(_Reader):
    """One whose files are all the same text."""

    def _file(self, path: str) -> str:
        return "\n".join(self._lines)


def job_set(data: bytes) -> None:
    """A set file that is its own table and the description of its own jobs."""
    read: JobSetFile = _Set("x.set", text_of(data)).read()
    for job in read.jobs[:5]:
        try:
            described(read.description(job)[:100_000])
        except SubmitError:
            pass


def qsub(data: bytes) -> None:
    """A script for qsub; what becomes of it is read as any description, and queues once."""
    text = text_of(data)
    with contextlib.redirect_stderr(io.StringIO()):  # words without effect are told
        options = _directives("x.sh", text)
    job = QsubJob(script="/home/alice/x.sh", arguments=["a b", "'"], options=options,
                  variables={"PATH": "/bin", "A": text[:50]}, folder="/home/alice")
    made = description_of(job, 1.7e9)
    assert [line.split()[0] for line in made.splitlines() if line.startswith("queue")] == ["queue"]
    described(made)


def itemdata(data: bytes) -> None:
    """Rows of a queue statement, from a file, with slices; jobs that a schedd is to make."""
    text = text_of(data)
    for columns in (1, 2, 5):
        assert len(split_row(text[:2_000], columns)) == columns
    for head in ("", "max_idle = 3\n"):
        texts = {"/home/alice/rows": text, "rows": text}
        described(f"executable = /bin/true\n{head}arguments = $(a) $(b) $(Row)\nqueue 2 a,b from [1:9:2] rows\n",
                  World(texts=texts))


def factory_items(data: bytes) -> None:
    """What jobs that a schedd makes are made of: as it is stored, and damaged."""
    parts: Sequence[bytes] = data.split(b"\0")
    for row in factory.pack(7, 0, parts):
        made = list(factory.texts(row, 0, len(parts)))
        assert made == list(parts[row.first:row.first + row.count])
    for is_template in (True, False):
        for kept in (data, zlib.compress(data)):
            try:
                found = list(factory.texts(SaveItems(7, 0, 5, is_template, kept), 2, 2))
            except ValueError:
                continue
            assert len(found) == 2
    ad = ClassAd.from_bytes(parts[0])
    most, most_idle = factory.limits(ad)
    assert most >= 0
    assert most_idle >= 0


def ad_forms(data: bytes) -> None:
    """Ads as JSON and as XML."""
    text = text_of(data)
    for read in (ClassAd.from_json, ClassAd.from_xml):
        try:
            ad = read(text)
        except ClassAdSyntaxError:
            continue
        for name in list(ad)[:20]:
            ad.evaluate(name)


# ---- names

@cache
def _settings() -> Config:
    return load_config(files=[], environ={})


def identity_map(data: bytes) -> None:
    """A CERTIFICATE_MAPFILE that includes what is not there."""
    for literal in (False, True):
        known = IdentityMap(tuple(_rules_of(NOWHERE / "map", text_of(data), literal, [], _settings())), "here")
        for name in ("alice@laptop.physics", "root@x", "a"):
            for method in ("tls", "token", "local"):
                try:
                    found = known.name_here(Identity(name=name, method=method, roles=frozenset({"user"})))
                except BadMapping:
                    continue
                assert "\n" not in found


def user_map(data: bytes) -> None:
    """A map of users to groups."""
    for prefix in (False, True):
        known = read_user_map(text_of(data), prefix)
        for user in ("alice", "", "*", "/x/"):
            known.find(user)


# ---- doors

def _verifier() -> TokenVerifier:
    return TokenVerifier("physics", SigningKeys(NOWHERE / "POOL", NOWHERE, "POOL"), NOWHERE / "revoked")


def token_doors(data: bytes) -> None:
    """A stranger shows a token, or asks for one: each has one answer, which has no token."""
    said: list[bytes] = []
    done: list[object] = []
    exchange = TokenExchange(_verifier(), b"certificate", said.append, done.append)
    exchange.begin()
    issuer, transport, clock = TokenIssuer(_verifier(), allowed_keys=("POOL",)), StringTransport(), Clock()
    door = TokenRequestDoor(issuer, clock, Logger("fuzz"))
    door.makeConnection(transport)
    for start in range(0, len(data), 1_000):
        if not done:
            exchange.received(data[start:start + 1_000])
        if not transport.disconnecting:
            door.dataReceived(data[start:start + 1_000])
    assert all(isinstance(each, BadToken) for each in done)
    assert not issuer.pending
    clock.advance(10_000.0)
    assert transport.disconnecting
    assert b'"token"' not in transport.value()


def revoked(data: bytes) -> None:
    """A list of revoked tokens."""
    RevokedTokens.read(data).reason({"sub": "alice@here", "jti": "a", "iat": 1})


def circuit_door(data: bytes) -> None:
    """A peer that comes to a gateway, or through one: one question at most, and an end."""
    transport, clock = StringTransport(), Clock()
    asked: list[str] = []

    def answer(door: Asked, text: str) -> None:
        asked.append(text)
        try:
            partner_of(text)
        except ValueError as error:
            door.refuse(str(error))

    door = Asked(clock, Identity(name="condor@other", method="tls"), answer)
    door.makeConnection(transport)
    transport.abortConnection = transport.loseConnection  # type: ignore[method-assign]  # it has no other end
    for start in range(0, len(data), 300):
        if not transport.disconnecting:
            door.dataReceived(data[start:start + 300])
    clock.advance(1_000.0)
    assert len(asked) <= 1
    assert transport.disconnecting or asked
    assert transport.value().count(b"\n") <= 1


SCRIPT = (b"#!/bin/sh\n#PBS -N name -l walltime=1:00:00,mem=2gb,nodes=1:ppn=4\n#$ -cwd\n#PBS -t 1-10:2 -v A=1,B\n"
          b"#PBS -o out -e err -j oe -M a@b -m abe\n#PBS -a 202601011200 -W stagein=a@h:b,depend=x -p 5\necho\n")
SET = (b"name = a set\niterator = table x,y {\n1, 2\n3, 4 # c\n}\njob a=x {\nexecutable = /bin/true\narguments = $(a)\n"
       b"queue 3\n}\njob j.sub\n")
MAP = (b'SSL "^alice@(.*)$" \\1@physics\nIDTOKENS /x/i y@here\n* "a b" c\n@include more\n# c\nFS root nobody\n')
OF_USERS: dict[str, tuple[Any, ...]] = {
    "gang_hub": (_gang_talk, gang_hub),
    "gang_member": (_hub_talk, gang_member),
    "job_set": (lambda: [SET, b"name=a\niterator=table x f\njob f\n"], job_set, (ToolError,)),
    "qsub": (lambda: [SCRIPT, b"#PBS -q\n", b"#$ -l h_rt=100,h_vmem=4G\n#$ -pe smp 4\n"],
             qsub, (ToolError, SubmitError)),
    "itemdata": (lambda: [b"1 2\n3, 4\n# c\n)\n", b"a\x1fb\x1fc\n\n", b"'a b' c"], itemdata, (SubmitError,)),
    "factory_items": (lambda: [b"Args = \"1\"\nJobMaterializeLimit = 3\n\0Args = \"2\"\n", b"a=\0P\nb=\0S\n",
                               zlib.compress(b"a=1\n\0b=2\n\0\0\0")], factory_items, (ClassAdSyntaxError,)),
    "ad_forms": (lambda: [b'{"A": 1, "B": "x", "C": [1, {"d": "\\/Expr(a + 1)\\/"}]}',
                          b'<c><a n="A"><i>1</i></a><a n="B"><s>x</s></a><a n="C"><l><e>a + 1</e></l></a></c>',
                          b'{"a": ' + b"[" * 5_000 + b"]" * 5_000 + b"}"], ad_forms),
    "identity_map": (lambda: [MAP, b'SSL "" x\n'], identity_map, (ConfigError, UserMapError)),
    "user_map": (lambda: [b"* alice a,b\n* /^(.)ob$/i g\\1\n", b'* "" x\n', b'"" x y\n'], user_map, (UserMapError,)),
    "token_doors": (lambda: [json.dumps({"token": "a.b", "proof": "A" * 44, "nonce": "B" * 44}).encode() + b"\n",
                             json.dumps({"identity": "a@b", "levels": ["READ"], "lifetime_s": 3}).encode() + b"\n",
                             b"[" * 20_000 + b"\n"], token_doors),
    "revoked": (lambda: [b'{"ids": ["a"], "expressions": ["sub == \\"x\\""]}', b"[" * 50_000, b'{"ids": "abc"}'],
                revoked, (BadToken,)),
    "circuit_door": (lambda: [b"<host%other:9618>\n", b"<host:9618>\n", b"7\n", b"x" * 700], circuit_door),
}
"""By name: seeds, the call, and what it may raise."""
