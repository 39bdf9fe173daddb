"""The parsers: honest inputs of each, how it is called, and what it may raise."""

from __future__ import annotations

import base64
import json
import pickle
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import attrs
import msgpack
import zstandard

from condor_actors.addresses import BadAddress, joined_address, split_address
from condor_actors.classads import ClassAd, ClassAdSyntaxError, parse_expression
from condor_actors.machine.native.image import ImageDamaged, is_image, read_image, verify_image
from condor_actors.master_worker import plain_data, worker
from condor_actors.master_worker.dispatch import Dispatch, Task
from condor_actors.master_worker.master import NONSENSE, Master, WorkerLink
from condor_actors.messages import codec
from condor_actors.messages.codec import MalformedMessage, decode_parts, encode_parts
from condor_actors.messages.envelope import Envelope
from condor_actors.messages.manifest import FileEntry
from condor_actors.submit import SubmitError
from condor_actors.transfer import standard_frames, streams
from condor_actors.transfer.image_pieces import list_image
from condor_actors.transfer.manifest import BadManifest, check_manifest, digest_bytes
from condor_actors.userlog.jobs_of_log import UnreadableLog, jobs_of_log
from condor_actors.userlog.reader import EventReader
from condor_actors.wire import banana, frames
from condor_actors.wire.certificates.authority import AuthorityError
from condor_actors.wire.errors import NotTrusted, RequestRefused
from condor_actors.wire.nodes import BadNode, parse_node
from condor_actors.wire.tokens import BadToken, Token
from tests.fuzz.config.language import one_input as read_config
from tests.fuzz.folders import fuzz_folder
from tests.fuzz.parsers.enrolling import (
    ask_at_the_door,
    join_answers,
    join_requests,
    read_join_answer,
    sign_a_request,
    signing_requests,
)
from tests.fuzz.parsers.foreign import FOREIGN
from tests.fuzz.parsers.of_daemons import OF_DAEMONS
from tests.fuzz.parsers.of_runs import OF_RUNS
from tests.fuzz.parsers.of_users import OF_USERS
from tests.unit.submit.worlds import described

__all__ = ["TARGETS", "Target"]

WORDS = (standard_frames.KEY, standard_frames.CHANNEL, standard_frames.SPARE, standard_frames.NO, standard_frames.KEPT)
FOLDER = Path(fuzz_folder())


PLAIN_VALUES: tuple[object, ...] = (
    [1, 2.5, "x", b"y", None, True], {"a": (1, 2, {3}), "b": frozenset((4,))}, list(range(300)), 1 << 90, "ä" * 300)


@attrs.frozen
class Target:
    """One parser: its honest inputs, its call, and the errors that it declares."""

    seeds: Callable[[], list[bytes]]
    call: Callable[[bytes], object]
    declared: tuple[type[Exception], ...] = ()


def _file(data: bytes) -> str:
    path = FOLDER / "input"
    path.write_bytes(data)
    return str(path)


# ---- the wire

ENVELOPE = Envelope(kind="condor.Done", version=1, body=b"\x80", message_id="1.1", to="schedd", reply_to="tool",
                    deadline_s=20.0)
HELLO = frames.Hello(boot_id="0" * 16, process="tool", public_node="<127.0.0.1:9618>", kinds=frozenset({("a", 1)}))


def _frames() -> list[bytes]:
    return [frames.pack_hello(HELLO), frames.pack_batch(7, [ENVELOPE] * 3), frames.pack_ack(3),
            frames.pack_bye("closed", "bye")]


def _banana(data: bytes) -> None:
    decoder = banana.Decoder()
    for start in range(0, len(data), 777):
        for _ in decoder.feed(data[start:start + 777]):
            pass


@cache
def _kinds() -> list[tuple[str, int]]:
    import condor_actors.daemons.credd.credd
    import condor_actors.daemons.schedd.schedd
    import condor_actors.daemons.starter.starter
    import condor_actors.wire.enrolment  # noqa: F401

    return sorted(codec.kinds())


def _sample(random: Random) -> object:
    """Something that may stand for a field."""
    found: list[object] = [0, 1, -1, 1.5, "", "text", b"", b"x = 1\n", True, None, [], [1], ["a"], [["a", 1]], {},
                           {"a": 1}]
    return random.choice(found)


def _bodies() -> list[bytes]:
    """Each kind with the names of its fields, filled at random: first byte pair says which kind."""
    random, found = Random(1), []
    for number, (kind, version) in enumerate(_kinds()):
        cls = codec.message_class(kind, version)
        assert cls is not None
        fields = {field.name: _sample(random) for field in attrs.fields(cls)}
        found.append(number.to_bytes(2, "big") + msgpack.packb(fields))
        found.append(number.to_bytes(2, "big") + msgpack.packb({}))
    return found


def _message(data: bytes) -> None:
    kinds = _kinds()
    kind, version = kinds[int.from_bytes(data[:2], "big") % len(kinds)]
    codec.decode(kind, version, data[2:])


# ---- languages

ADS = [b'MyType = "Job"\nO = "alice"\nRequirements = TARGET.Memory > 5 && regexp("a+", Name)\nA = {1, [b = 2]}[0]\n',
       b'[ a = strcat("x", string(1)); b = ifThenElse(a =?= undefined, 1, 2.5e3); c = {1,2} ]',
       b"join(\",\", split(\"a b\"))"]


def _classad(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    for read in (ClassAd.from_new, lambda each: ClassAd.from_bytes(each.encode("utf-8", "surrogateescape"))):
        try:
            ad = read(text)
        except ClassAdSyntaxError:
            continue
        for name in list(ad)[:20]:
            ad.evaluate(name)
    parse_expression(text).evaluate(ClassAd())


SUBMITS = [b"executable = /bin/sleep\narguments = $(Process) $INT(x,%03d)\nx = 3\nif defined x\nlog = a.log\nelse\n"
           b"log = b\nendif\nrequirements = Memory > 5\nqueue 3\n",
           b"executable=/bin/true\nqueue a,b in (1 2, 3 4)\n",
           b"executable=/bin/true\nMY.T @=end\nx\n@end\n+A = 1\nqueue\n"]


# ---- files

LOG = (b"000 (007.000.000) 2026-01-02 03:04:05 Job submitted from host: <127.0.0.1:9618>\n...\n"
       b"001 (007.000.000) 2026-01-02 03:04:06 Job executing on host: <127.0.0.1:9619>\n\tSlotName: slot1@a\n...\n"
       b"005 (007.000.000) 2026-01-02 03:04:07 Job terminated.\n\t(1) Normal termination (return value 0)\n"
       b"\t\tUsr 0 00:00:01, Sys 0 00:00:00  -  Run Remote Usage\n...\n")
XML_LOG = (b'<?xml version="1.0"?>\n<c>\n <a n="MyType"><s>SubmitEvent</s></a>\n <a n="EventTypeNumber"><i>0</i></a>\n'
           b' <a n="Cluster"><i>7</i></a>\n <a n="Proc"><i>0</i></a>\n'
           b' <a n="EventTime"><s>2026-01-02T03:04:05</s></a>\n</c>\n')


def _event_log(data: bytes) -> None:
    reader = EventReader()
    for start in range(0, len(data), 1000):
        for _ in reader.feed(data[start:start + 1000]):
            pass
    _ = reader.has_rest, reader.stranger
    jobs_of_log(_file(data))


def _manifest(data: bytes) -> None:
    check_manifest(decode_parts(FileEntry, data))


def _manifests() -> list[bytes]:
    text = b"hello"
    entries = [FileEntry(path="d", kind="directory", mode=0o755), FileEntry(path="d/l", kind="link", target="../f"),
               FileEntry(path="f", mode=0o644, size_bytes=len(text), digest=digest_bytes(text), inline=text)]
    return [encode_parts(entries), encode_parts(entries[:1]), encode_parts([])]


def _image() -> list[bytes]:
    """The shape of a checkpoint: headers, a note, a region; damaged at places that are read first."""
    header = (b"\x7fELF\x02\x01\x01" + bytes(9) + (2).to_bytes(2, "little") + (62).to_bytes(2, "little")
              + (1).to_bytes(4, "little") + (0x400000).to_bytes(8, "little") + (64).to_bytes(8, "little") + bytes(12)
              + (64).to_bytes(2, "little") + (56).to_bytes(2, "little") + (2).to_bytes(2, "little") + bytes(6))
    note = b"program=/bin/x\npid=1\nbytes=77824\nthreads=1\n"

    def segment(kind: int, flags: int, offset: int, address: int, size: int) -> bytes:
        words = (offset, address, address, size, size, 4096)
        return kind.to_bytes(4, "little") + flags.to_bytes(4, "little") + b"".join(
            word.to_bytes(8, "little") for word in words)

    body = header + segment(4, 4, 0x11000, 0, len(note) + 20) + segment(1, 5, 0x12000, 0x400000, 4096)
    body = body.ljust(0x11000, b"\0") + (7).to_bytes(4, "little") + len(note).to_bytes(4, "little") + bytes(4)
    body += b"CONDOR\0\0" + note
    return [body.ljust(0x13000, b"\0"), b"\x7fELF", header]


def _read_image(data: bytes) -> None:
    path = _file(data)
    is_image(path)
    for read in (read_image, verify_image, list_image):
        try:
            read(path)
        except (ImageDamaged, OSError, ValueError):
            pass


# ---- bulk

def _bulk(data: bytes) -> None:
    decompressor = zstandard.ZstdDecompressor()
    for letter, payload in streams.FrameReader().feed(data):
        if letter in (streams.DATA, streams.ZDATA):
            streams.unpack_block(letter, payload, decompressor)
        else:
            streams.fields_of(letter, payload)


def _standard(data: bytes) -> None:
    for letter, _, payload in standard_frames.StreamReader().feed(data):
        if letter in WORDS:
            standard_frames.fields_of(letter, payload)


def _bulk_seeds() -> list[bytes]:
    digest = digest_bytes(b"x")
    block = zstandard.ZstdCompressor().compress(b"x" * 10_000)
    return [streams.frame(streams.GET, "key", digest, 0), streams.frame(streams.PUT, "key", digest, 10),
            streams.frame(streams.NO, "denied", "no"),
            streams.HEADER.pack(len(block), streams.ZDATA) + block]


# ---- joining

def _tokens() -> list[bytes]:
    """What is below the armour, since no mutation of that comes through it."""
    token = Token(address="<127.0.0.1:9618>", ca_fingerprint=bytes(32), token_id="a" * 16, secret="x" * 22)
    fields = [token.address, token.ca_fingerprint.hex(), token.token_id, token.secret]
    return [json.dumps(fields).encode(), b'["", "00", 1, 2]', b"[[], {}, [], null]", b"{}", b"[1, 2, 3, 4]",
            json.dumps([*fields[:2], 7, fields[3]]).encode(), json.dumps([*fields[:3], []]).encode()]


def _token(data: bytes) -> None:
    for text in (data.decode("utf-8", "surrogateescape"), "condor1." + base64.urlsafe_b64encode(data).decode()):
        try:
            Token.parse(text)
        except BadToken:
            pass


def _node(data: bytes) -> None:
    parse_node(data.decode("utf-8", "surrogateescape"))


def _address(data: bytes) -> None:
    host, port = split_address(data.decode("utf-8", "surrogateescape"))
    assert split_address(joined_address(host, port or 0)) == (host, port or 0)


def _worker_frames() -> list[bytes]:
    hello = {"version": worker.VERSION, "python": list(sys.version_info[:2]), "cloudpickle": "3", "name": "ab",
             "job": "1.0", "host": "h", "pid": 7, "has": [1, 2]}
    greeting = worker.frame(worker.HELLO, json.dumps(hello).encode())
    results = b"".join(worker.RESULT.pack(number, worker.DONE, 4) + b"abcd" for number in (1, 2))
    return [greeting, *(greeting + worker.frame(kind, body) for kind, body in (
        (worker.RESULTS, worker.RESULTS_HEAD.pack(1, 0.5) + results), (worker.BEAT, b""), (worker.LEAVING, b""),
        (worker.RETURNED, worker.NUMBER.pack(1) + worker.NUMBER.pack(2)),
        (worker.RESULTS, worker.RESULTS_HEAD.pack(2, 0.0))))]


def _master_hears(data: bytes) -> None:
    """What a worker's bytes do to a master; the tasks of another worker stay its own."""
    heard: list[int] = []
    jobs = {(1, 0), (1, 1)}
    crew: Any = SimpleNamespace(jobs=jobs, seen=set(), came=lambda job: None)
    dispatch = Dispatch(2, lambda number: True)
    terms: Any = None
    master = Master(terms, terms, crew, dispatch, lambda number, outcome, body: heard.append(number), lambda why: None)
    master.loop.close()
    master.functions.append(b"f")
    honest, hostile = WorkerLink(master), WorkerLink(master)
    dispatch.add(Task(99, 0, False, b""))
    honest.greeted("honest", (1, 1))
    master._of["honest"], master._job_of["honest"] = honest, (1, 1)
    dispatch.joined("honest", (), 0.0)
    assert [task.number for task in dispatch.take("honest")] == [99]
    for number in range(1, 20):
        dispatch.add(Task(number, 0, False, b"args"))
    try:
        for kind, body in hostile._frames.feed(data):
            master.heard(hostile, kind, body)
    finally:
        assert 99 in dispatch.workers["honest"].given, "a task of another worker's"
        assert 99 not in heard, "a result of another worker's task"
        master._pump(honest)


TARGETS: dict[str, Target] = {
    "workers": Target(_worker_frames, _master_hears, NONSENSE),
    "plain-data": Target(lambda: [pickle.dumps(value, 5) for value in PLAIN_VALUES], plain_data.read,
                         (pickle.UnpicklingError, MemoryError)),
    "broker": Target(lambda: [banana.encode_call(1, frame) for frame in _frames()], _banana, (banana.BadBanana,)),
    "frames": Target(_frames, frames.unpack, (frames.BadFrame,)),
    "messages": Target(_bodies, _message, (MalformedMessage,)),
    "classads": Target(lambda: ADS, _classad, (ClassAdSyntaxError,)),
    "config": Target(lambda: [b"A = $(B)\nB = 1 $(A:2)\nif $(B) == 1\nC = $INT(B)\nendif\nuse ROLE : Personal\n"],
                     read_config),
    "submit": Target(lambda: SUBMITS, lambda data: described(data.decode("utf-8", "surrogateescape")), (SubmitError,)),
    "enrolment": Target(join_requests, ask_at_the_door),
    "join_answer": Target(join_answers, read_join_answer, (NotTrusted, RequestRefused)),
    "signing_request": Target(signing_requests, sign_a_request, (AuthorityError,)),
    "event_log": Target(lambda: [LOG, XML_LOG], _event_log, (UnreadableLog,)),
    "bulk": Target(_bulk_seeds, _bulk, (streams.BadStream,)),
    "standard_stream": Target(lambda: [standard_frames.message_frame(standard_frames.KEY, "run", "key"),
                                       standard_frames.message_frame(standard_frames.KEPT, 1, "a"),
                                       standard_frames.frame(standard_frames.IMAGE, b"x" * 100)],
                              _standard, (streams.BadStream,)),
    "manifest": Target(_manifests, _manifest, (MalformedMessage, BadManifest)),
    "image": Target(_image, _read_image),
    "token": Target(_tokens, _token, (BadToken,)),
    "node": Target(lambda: [b"<127.0.0.1:9618>", b"unix:/run/schedd.sock", b"<[::1]:1>"], _node, (BadNode,)),
    "address": Target(lambda: [b"host.example.org", b"10.0.0.1:9618", b"::1", b"[::1]", b"[fe80::1%eth0]:9618",
                               b"<[::1]:9618?addrs=10.0.0.1-9618&alias=x>"], _address, (BadAddress,)),
    **{name: Target(*target) for name, target in {**FOREIGN, **OF_USERS, **OF_DAEMONS, **OF_RUNS}.items()},
}
