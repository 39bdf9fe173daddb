"""Parsers of what other programs and pools say: images, batch systems, other schedds, gateways, machines, workflows."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import ssl
import tarfile
import tempfile
import urllib.parse
from functools import cache
from itertools import count
from types import SimpleNamespace
from typing import Any

import zstandard

from condor_actors.classads import ClassAd
from condor_actors.cores.devices.inventory import BadInventory, read_inventory
from condor_actors.cores.shadow.condor_jobs import read_job
from condor_actors.cores.shadow.slurm_jobs import parse_accounting, parse_queue, read_record
from condor_actors.cores.site_programs.output import OutputReader
from condor_actors.cores.site_programs.programs import SiteProgram
from condor_actors.cores.startd.site_attributes import write_site
from condor_actors.cores.starter.chirp_session import Call, ChirpRights, ChirpSession, Step
from condor_actors.cores.starter.hooks import HookAnswer, prepared
from condor_actors.cores.starter.run_spec import BadJob, read_spec
from condor_actors.dag.errors import DagError
from condor_actors.dag.reader import apply_rescue, read_dag, refuse_cycle
from condor_actors.dag.scope import Reading
from condor_actors.machine.containers import registry
from condor_actors.machine.containers.image_tree import BadImage
from condor_actors.machine.containers.unpack import Budget, facts_of, understood, unpack
from condor_actors.machine.run.tree_removal import remove_tree
from condor_actors.messages.references.image_reference import BadReference, ImageReference
from condor_actors.messages.run import ChirpResult
from condor_actors.wire.errors import WireError
from condor_actors.wire.idtokens import signed_token
from condor_actors.wire.nodes import BadNode
from condor_actors.wire.partners.invitation import BadInvitation, parse_invitation
from condor_actors.wire.partners.partner_store import BadPartners, parse_partners
from condor_actors.wire.relays.lines import answer_of, partner_of, target_here

__all__ = ["FOREIGN"]

BAD_IMAGE = (BadImage, OSError)
ROOM = 1 << 20
HOOKED = {"Cmd": "/bin/true", "Arguments": "a", "Environment": "A=1"}


def text_of(data: bytes) -> str:
    """As files and lines of others are read."""
    return data.decode("utf-8", "surrogateescape")


# ---- images

def image_tar(data: bytes) -> None:
    """Nothing of it is outside the folder, and it takes no more room than it may."""
    with tempfile.TemporaryDirectory(prefix="condor-fuzz-") as top:
        folder = os.path.join(top, "root")
        os.mkdir(folder)
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            unpack(io.BytesIO(data), opened, ROOM)
        finally:
            os.close(opened)
            assert os.listdir(top) == ["root"]
            remove_tree(folder)
            os.mkdir(folder)


def _tars() -> list[bytes]:
    found = []
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT):
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w", format=form) as archive:
            for name, kind, link in (("etc", tarfile.DIRTYPE, ""), ("etc/file", tarfile.REGTYPE, ""),
                                     ("way", tarfile.SYMTYPE, "etc"), ("hard", tarfile.LNKTYPE, "etc/file"),
                                     ("way/.wh.file", tarfile.REGTYPE, ""), ("n" * 90, tarfile.REGTYPE, "")):
                member = tarfile.TarInfo(name)
                member.type, member.linkname = kind, link
                member.size = 3 if kind == tarfile.REGTYPE else 0
                archive.addfile(member, io.BytesIO(b"abc"))
        found += [stream.getvalue(), zstandard.compress(stream.getvalue())]
    return found


def manifest_of_image(data: bytes) -> None:
    """What a registry says of an image."""
    with understood():
        said = json.loads(data)
        for each in said["layers"]:
            registry._blob(each)  # noqa: SLF001
        if "manifests" in said:
            registry._for_here(said)  # noqa: SLF001
        facts_of(said, Budget(ROOM))


@cache
def _context() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class _Repository(registry.Repository):
    """One whose server says, in turn, what it is given: ever again a challenge, a way elsewhere, a body."""

    def __init__(self, said: list[bytes]) -> None:
        super().__init__(registry.Registry(host="registry.example", prefix="", plain=False), "a/b",
                         _context(), sleep=lambda _: None)
        self._said, self.asked = said, 0

    def _open(self, url: str, headers: dict[str, str]) -> Any:
        self.asked += 1
        assert self.asked < 100
        parts = urllib.parse.urlsplit(url)
        assert parts.scheme == "https", url
        assert parts.hostname not in ("localhost", "127.0.0.1", "::1"), url
        if "Authorization" in headers:
            assert parts.netloc == "registry.example", "the token goes to another server"
        head, body = self._said[2 * self.asked % len(self._said)], self._said[(2 * self.asked + 1) % len(self._said)]
        if head.startswith(b"!"):
            raise registry._Refused(401, "no", head[1:].decode("latin-1"))  # noqa: SLF001
        names = {"Location": head[1:].decode("latin-1")} if head.startswith(b">") else {}
        response = SimpleNamespace(status=302 if names else 200, headers=names, close=lambda: None,
                                   read1=io.BytesIO(body).read)
        return registry._Answer(response, self.shown)  # noqa: SLF001


def registry_answers(data: bytes) -> None:
    """What a registry says at each step: no answer leads elsewhere, and no token goes there."""
    said = data.split(b"\0")[:200]
    repository = _Repository(said)
    with understood():
        repository.resolve("latest")
        repository.manifest(f"sha256:{hashlib.sha256(said[-1]).hexdigest()}")


def image_name(data: bytes) -> None:
    """A name in a job's ad."""
    ImageReference.read(text_of(data))


# ---- other systems

def batch_system(data: bytes) -> None:
    """What Slurm's commands print, and what a job's script has written."""
    text = text_of(data)
    for jobs in parse_queue(text).values():
        assert jobs
    parse_accounting("7", text)
    read_record(dict.fromkeys(("prepared", "batch_id", "began", "end", "death", "said"), text), text)


def another_schedd(data: bytes) -> None:
    """A job's ad from another schedd."""
    job = read_job(data)
    assert job is None or 0 < job.cluster < 1 << 31


def gateway_line(data: bytes) -> None:
    """A gateway's answer, and what a partner asks of one."""
    assert answer_of(data).isprintable()
    for read in (target_here, partner_of):
        try:
            read(text_of(data))
        except BadNode:
            pass


def invitation(data: bytes) -> None:
    """An invitation of another pool."""
    parse_invitation(text_of(data))


def partners(data: bytes) -> None:
    """The list of partners."""
    parse_partners(data, "here")


def id_token(data: bytes) -> None:
    """A token, as it is shown at the door."""
    shown, _ = signed_token.parted(text_of(data))
    signed_token.read_claims(shown)


def machine_devices(data: bytes) -> None:
    """What an inventory program prints."""
    read_inventory("GPUs", text_of(data))


def said_by_chirp(data: bytes) -> None:
    """What a job's program says on its way home: read in pieces, and every call is answered."""
    session = ChirpSession(ChirpRights(files=True, updates=True, delayed=True), count(1))
    for start in range(0, len(data), 1000):
        waiting: list[Step] = list(session.received(data[start:start + 1000]))
        for _ in range(200):
            if not any(isinstance(step, Call) for step in waiting):
                break
            waiting = list(session.answered(ChirpResult(value=7, data=b"7 bytes")))
    session.lost()


def site_program(data: bytes) -> None:
    """What a program of the site prints, in two pieces, and what becomes of it in a slot's ad; and what a hook does."""
    reader = OutputReader(SiteProgram(name="p", executable="/p", prefix="Site_"))
    ad, names = ClassAd({"Name": "slot1@host", "SlotID": 1}), set[str]()
    half = len(data) // 2
    for printed in (*reader.feed(data[:half], 1.0), *reader.feed(data[half:], 2.0), *reader.end(3.0)):
        write_site((printed.ad,), ad, names, {})
        ClassAd.from_bytes(ad.to_bytes())
    with contextlib.suppress(BadJob):
        prepared(HookAnswer(printed=data, said=data), ClassAd(HOOKED), read_spec(ClassAd(HOOKED)), "SITE_HOOK")


def dag_file(data: bytes) -> None:
    """A DAG file that includes, splices and nests itself, and is its own rescue file."""
    text = text_of(data)
    dag = read_dag(("x.dag",), Reading(read=lambda path: text))
    apply_rescue(dag, text, "x.rescue")
    refuse_cycle(dag)


FOREIGN: dict[str, tuple[Any, ...]] = {
    "image_tar": (_tars, image_tar, BAD_IMAGE),
    "image_manifest": (lambda: [
        json.dumps({"schemaVersion": 2, "layers": [{"digest": f"sha256:{'0' * 64}", "size": 3}],
                    "config": {"Env": ["A=1"], "Entrypoint": ["/x"]}, "manifests": [
                        {"digest": f"sha256:{'0' * 64}", "size": 1, "platform": {
                            "os": "linux", "architecture": "amd64"}}]}).encode()], manifest_of_image, (BadImage,)),
    "registry_answers": (lambda: [
        b'!Bearer realm="https://auth.example/token",service="s"\0x\0.\0{"token": "abc"}\0.\0{"schemaVersion": 2}',
        b">https://cdn.example/x?y\0x\0.\0{}\0>//localhost/\0y", b"!Basic realm=x\0",
        b'!Bearer realm="http://x"\0' + b"[" * 5_000], registry_answers, (BadImage, registry.Unreachable)),
    "image_name": (lambda: [b"docker://host.example:5000/a/b:tag", f"docker://a@sha256:{'0' * 64}".encode()],
                   image_name, (BadReference,)),
    "batch_system": (lambda: [b"7|RUNNING|None|n1|condor-1.0-x\n8|PENDING|Resources||condor-1.0-x\n", b"FAILED|1:0\n",
                              b"1700000000 node1", b"139 0m1.000s 0m0.500s\n"], batch_system),
    "another_schedd": (lambda: [b'ClusterId = 7\nProcId = 0\nJobStatus = 4\nExitBySignal = false\nExitCode = 3\n'
                                b'HoldReason = "x"\nRemoteHost = "h"\nRemoteUserCpu = 1.5\n'], another_schedd),
    "gateway_line": (lambda: [b"+\n", b"-no way\n", b"<10.0.0.1:9618>", b"<host%pool:9618>"], gateway_line),
    "invitation": (lambda: [b"condor-flock1.W10", b"[]"], invitation, (BadInvitation,)),
    "partners": (lambda: [b'{"a": {"central": "<10.0.0.1:9618>", "ca": "x", "gateways": [], "terms": {}}}'],
                 partners, (BadPartners, WireError)),
    "id_token": (lambda: [signed_token.sign(b"x" * 32, "POOL", "issuer", "alice@here", now_s=1.7e9).encode()],
                 id_token, (signed_token.BadToken,)),
    "devices": (lambda: [b'DetectedGPUs="GPU-a1, GPU-b2"\nCommon=[DeviceName="x";GlobalMemoryMb=7]\n'
                         b'GPU_a1=[DeviceUuid="a1";id="GPU-a1"]\n'], machine_devices, (BadInventory,)),
    "chirp": (lambda: [b"open /a rwc 420\nread 0 10\nwrite 0 3\nabcclose 0\n", b"get_job_attr x\nset_job_attr x 7\n1\n",
                       b"rename a\\ b c\nphone\n", b"pwrite 0 3 7\nabc"], said_by_chirp),
    "site_program": (lambda: [b'A = 1\n# x\n- one update:true\nB = "x"\nSlotId = 1\n-\n'
                              b'SlotMergeConstraint = Cpus > 1\nC = 1\n',
                              b'Cmd = "/x"\nArgs = "a b"\nEnv = "A=1"\nHookStatusCode = 3\nHookStatusMessage = "y"\n'],
                     site_program),
    "dag": (lambda: [b"JOB a a.sub\nJOB b b.sub DIR x NOOP\nPARENT a CHILD b\n",
                     b"JOB a a.sub\nRETRY a 3 UNLESS-EXIT 2\n",
                     b"JOB a a.sub\nVARS a x=\"1\" y=\"$(x)\"\n",
                     b"INCLUDE x.dag\n", b"SPLICE s x.dag\n", b"SUBDAG EXTERNAL s x.dag\nDONE a\n",
                     b"SUBMIT-DESCRIPTION d {\nexecutable = x\n}\nJOB a d\nFINAL f f.sub\nSERVICE s s.sub\n"],
            dag_file, (DagError,)),
}
"""By name: seeds, the call, and what it may raise."""
