"""Parsers at the two ends of a run: images of Apptainer, plugins, logins, jobs, records, and the page's questions."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import tempfile
import urllib.parse
import zlib
from datetime import UTC
from pathlib import Path
from typing import Any

from cryptography import x509

from condor_actors.classads import ClassAd, ClassAdSyntaxError
from condor_actors.cores.cron_schedule import CRON_FIELDS, BadCron, cron_line, next_time_s
from condor_actors.cores.fetched_work.fetched_job import BadFetchedJob, read_fetched, run_of
from condor_actors.cores.registry_logins import BadLogins, login_for
from condor_actors.cores.starter.run_spec import BadJob, read_spec
from condor_actors.cores.transfer_plugins import BadPlugin, Plugin, failure_of, job_plugins, plugin_facts
from condor_actors.cores.web.dag_picture import dag_picture
from condor_actors.daemons.web.bodies import BODIES, read_body
from condor_actors.daemons.web.json_api import PARAMETERS, BadQuestion, read_parameters
from condor_actors.machine.containers.image_tree import BadImage
from condor_actors.machine.containers.unpack import unpack
from condor_actors.machine.run.tree_removal import remove_tree
from condor_actors.messages.references.image_reference import ImageReference
from condor_actors.store.record_file import AdRecord, RecordReader
from condor_actors.wire.certificates.trust import BadCertificate, proxy_extension, proxy_identity
from tests.harness.sif import sif

__all__ = ["OF_RUNS"]

ROOM = 1 << 20
PLAIN_SQUASHFS = zlib.decompress(base64.b85decode(
    b"c-rllJ5Iwu5Qb-VgE5aHl0$(+L7j#ZAf@LL1YzNb7?wB%M2h4F$r2@3px_YPC2bnu2xfOZ*o%9*|C3g;GoziymVZ_}6fp@yA|`hZ>4KRC_P&"
    b"wS>rrE0#MZ)B()iz_#;$w$M*si-0000000000z`s-E)A@YAE)~7;uiU5UFOk>&KHIzs><Km6VEEqYgO{T9IloH0hRBsB4(o8xZ%oG&_v-9Wr"
    b"x|v$booeXXsX-TuEY-PxtiUbnZ^ChVw#6-<Dl(1O=!>BRoP!&*){y<aIo#EudeAjP0hqcl$}93=wPYLTjd6*Y#CQ7&CT-Z-L4eb=VoTo4}W7"
    b"SvSGPR+J$_#TM<hKeyV5jegOFRY#R"))
"""One with nothing compressed, so that what is changed in it is read."""
SQUASHFS = zlib.decompress(base64.b85decode(
    b"c-qS-E-dC?fC2#q21W)D=3#IEk}N>>eW+9$BZRJl(*L1gB2=CcDqeslUvca0K}KGnz@Y`V`t$kOMS#o?c_En%SrxZduaIC}oFKwu!oXnUz5G"
    b"IPZemUjR~|#ft>mPLLnjzm&+x2h;O&r<ym#p7%n2Ei8)Q0qFPvvO!s+lwp2Oh}Um_curh;xq8lUo{+9;k$JTe*2HaKO@uoT#?@Z{!#Gy~&5?"
    b"cE!lkM3x+&@}enzd*x&uZE%c%_u&V>|9A135!M(2B!c~nP`xG2@MQs8fT9jI215v_KeAgIm8nZ0vM9q7EGFQ<q8w~0uEtjX=lg4x~jk=Js)|"
    b"GO12qkNgk)pyk?MMHqtWPzF<iaE3<Y0v$3;dn&T@ugYJn7EtnY|Yw*tyXy}H94;v(C8RDSf!_ojEE1*08E8KQw"))



def text_of(data: bytes) -> str:
    """As files and ads of others are read."""
    return data.decode("utf-8", "surrogateescape")


def sif_image(data: bytes) -> None:
    """Nothing of it is outside the folder, and it takes no more room than it may."""
    with tempfile.TemporaryDirectory(prefix="condor-fuzz-") as top:
        folder = os.path.join(top, "root")
        os.mkdir(folder)
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            facts = unpack(io.BytesIO(data), opened, ROOM)
            assert sum(path.lstat().st_size for path in Path(folder).rglob("*") if path.is_file()) <= facts.size_bytes
        finally:
            os.close(opened)
            assert os.listdir(top) == ["root"]
            remove_tree(folder)
            os.mkdir(folder)


FILES = (("box://a/b?secret=hidden", "/scratch/b"), ("box://c", "/scratch/c"))


def plugin_said(data: bytes) -> None:
    """A transfer plugin of a job or a site: what it can do, and what came of it, in a line without a URL's secrets."""
    text = text_of(data)
    with contextlib.suppress(BadPlugin):
        assert "file" not in plugin_facts("/p", text).methods
    with contextlib.suppress(BadPlugin):
        assert all("/" not in name.rpartition("/")[2] for name in job_plugins(text).values())
    for several in (False, True):
        plugin = Plugin(path="/p", methods=("box",), several=several)
        for status in (0, 1):
            why = failure_of(plugin, FILES, status, text, text)
            if status:
                assert why
            assert "\n" not in why
            assert len(why) < 3_000


def registry_login(data: bytes) -> None:
    """A file with logins: what is found for one registry is that registry's."""
    for name in ("docker://registry.example/a/b", "docker://a"):
        login = login_for(data, ImageReference.read(name))
        assert login is None or (login.basic.isascii() and login.basic.isprintable())


def job_to_run(data: bytes) -> None:
    """A job's ad on the machine where it is to run, and when its cron fields have it begin."""
    ad = ClassAd.from_bytes(data)
    with contextlib.suppress(BadJob):
        spec = read_spec(ad)
        assert "/" not in spec.manifest
        assert all(folder.startswith("/") for folder in spec.own_folders)
    with contextlib.suppress(BadCron):
        line = cron_line(ad)
        if line is not None:
            assert next_time_s(line, 1.7e9, UTC) > 1.7e9


def run_record(data: bytes) -> None:
    """Records of runs with ads of others: each comes back as one, and as its owner's."""
    written = [AdRecord(kind="EPOCH", cluster=number, owner=owner, when_s=1.7e9, ad=data).to_bytes()
               for number, owner in ((1, "alice@here"), (2, text_of(data[:30])), (3, "bob@here"))]
    with tempfile.TemporaryDirectory(prefix="condor-fuzz-") as folder:
        path = os.path.join(folder, "records")
        Path(path).write_bytes(b"".join(written))
        found = list(RecordReader(path, ("EPOCH",)).rows((), "", 0))
        assert [row.cluster for row in found] == [3, 2, 1]
        assert [row.owner for row in found[::2]] == ["bob@here", "alice@here"]
        Path(path).write_bytes(data + b"".join(written))  # one of an earlier version, damaged
        list(RecordReader(path, ("EPOCH", "INPUT")).rows((), "alice", 0))


def page_question(data: bytes) -> None:
    """What a browser asks of the page, and the body that it sends."""
    for path in PARAMETERS:
        for uri in (data, b"/x?" + data, b"/x?" + urllib.parse.quote(data).encode()):
            with contextlib.suppress(BadQuestion):
                read_parameters(path, uri)
    for path, fields in BODIES.items():
        with contextlib.suppress(BadQuestion):
            assert set(read_body(path, data)) == set(fields)


def workflow(data: bytes) -> None:
    """What a job tells of its workflow: the picture has nodes and lines between them, and can be sent."""
    first, _, second = text_of(data).replace("\0", "").partition("\n")
    picture = dag_picture(ClassAd({"DAGMan_Graph": first, "DAGMan_NodeStates": second, "DAGMan_NodeJobs": second,
                                   "DAGMan_Levels": first}))
    json.dumps(dag_picture(ClassAd({"DAGMan_Levels": first})))
    if picture is not None:
        json.dumps(picture)
        for ends in picture["edges"]:
            assert all(0 <= each < picture["total"] for each in ends)


class _Certificate:
    """One whose proxy extension has these bytes."""

    def __init__(self, data: bytes) -> None:
        self.extensions, self._data = self, data

    def get_extension_for_oid(self, oid: x509.ObjectIdentifier) -> Any:
        return x509.Extension(oid, False, x509.UnrecognizedExtension(oid, self._data))


def proxy_policy(data: bytes) -> None:
    """The extension with which a machine of the pool says who someone is."""
    certificate: Any = _Certificate(data)
    proxy_identity(certificate)


PLUGIN = (b'SupportedMethods = "box, ftp"\nPluginType = "FileTransfer"\nMultipleFileSupport = true\n'
          b'TransferSuccess = false\nTransferError = "box://u:secret@h/x is not there"\nTransferUrl = "box://c"\n')
JOB = (b'Cmd = "/bin/sh"\nArguments = "a \'b c\'"\nEnvironment = "A=1 B=\'x y\'"\nIwd = "/home/alice"\nOut = "out"\n'
       b'TransferOutput = "a,b"\nTransferOutputRemaps = "a=/x/a;b=box://h/b"\nKillSig = "SIGTERM"\n'
       b'ContainerImage = "docker://a"\nContainerServiceNames = "web"\nweb_ContainerPort = 80\n'
       b'DockerNetworkType = "none"\nTransferPlugins = "box=p.py"\n'
       b'ManifestDir = "m"\nManifestDesired = true\nDeferralTime = 1.8e9\n'
       b'CoreSize = 100\nStackSize = 1\nJobMaxVacateTime = 3.5\nSuccessCheckpointExitCode = 85\n'
       b'TransferCheckpoint = "c"\n')
BARE_JOB = (b'Cmd = "x"\nArgs = "a b"\nEnv = "A=1;B=2"\nJobMountUnderScratch = "/var/x, /opt"\n'
            b'ShouldTransferFiles = "NO"\n')
LOGINS = json.dumps({"auths": {"registry.example": {"auth": "YTpi"}, "https://index.docker.io/v1/": {
    "identitytoken": "abc", "username": "u"}}, "credHelpers": {"x.example": "pass"}, "credsStore": "y"}).encode()

def fetched_job(data: bytes) -> None:
    """A job that a program of the site has fetched: it chooses no account and no keyword, and can be run or not."""
    job = read_fetched(data, "SITE", 7)
    if job is None:
        return
    assert job["HookKeyword"] == "SITE"
    assert job["RunAsOwner"] is False
    assert "Owner" not in job
    assert "User" not in job
    assert run_of(job).endswith("#7@fetched-work")
    again = ClassAd.from_bytes(job.to_bytes())
    assert run_of(again) == run_of(job)
    with contextlib.suppress(BadJob):
        read_spec(again)


OF_RUNS: dict[str, tuple[Any, ...]] = {
    "fetched_job": (lambda: [b'Cmd = "/bin/true"\nOwner = "root"\nClusterId = 3\n', b'Cmd = "x"\nIwd = "/srv"\n',
                             b'Cmd = "/x"\nTransferInput = "a"\nRequirements = Memory > 3 && (Cpus == 1)\n', b"\n"],
                    fetched_job, (BadFetchedJob,)),
    "sif_image": (lambda: [sif(b"a definition", PLAIN_SQUASHFS), PLAIN_SQUASHFS, SQUASHFS], sif_image,
                  (BadImage, OSError)),
    "plugin_said": (lambda: [PLUGIN, b'[ TransferUrl = "box://c"; TransferSuccess = true ]\n[ TransferError = "x" ]\n',
                             b"box, ftp = a.py; d=/x/b.py", b"TransferError = 1\n"], plugin_said),
    "registry_login": (lambda: [LOGINS, b'{"auths": {"a": {"username": "u", "password": "p"}}}', b"[" * 5_000],
                       registry_login, (BadLogins,)),
    "job_to_run": (lambda: [JOB, BARE_JOB, b"".join(name.encode() + b' = "*/7,1-5"\n' for name in CRON_FIELDS)],
                   job_to_run, (ClassAdSyntaxError,)),
    "run_record": (lambda: [b'A = 1\nB = "x"\n', b"'*** EPOCH ClusterId=9' = 1\n",
                            b"[ A = 1; B = {1, [ c = \"\\n\" ]} ]",
                            b'*** EPOCH ClusterId=9 ProcId=0 RunInstanceId=0 Owner="eve" CurrentTime=17\n'],
                   run_record, (ClassAdSyntaxError,)),
    "page_question": (lambda: [b"/api/jobs?owner=a&limit=5&offset=0&sort=owner", b"cluster=7&proc=0&schedd=x%20y",
                               b'{"jobs": ["1.0"], "action": "hold", "reason": "x", "schedd": ""}',
                               b'{"jobs": ["1"], "priority": 5}', b'{"token": "a.b"}', b"{}", b"[" * 5_000],
                      page_question),
    "workflow": (lambda: [b'[["a", []], ["b", [0]], ["c", [0, 1]]]\nwdx', b'[{"w": 3, "d": 1}, {"x": 2}]\n',
                          b"[" * 5_000 + b"\n[7, 8]"], workflow),
    "proxy_policy": (lambda: [proxy_extension("shadow:alice@submit").value, b"\x30\x80\x30\x80\0\0\0\0",
                              b"\x30\x82\xff\xff" * 50], proxy_policy, (BadCertificate,)),
}
"""By name: seeds, the call, and what it may raise."""
