"""A job, or another process of its account, changes what is in its sandbox while root's processes look there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from twisted.internet.testing import StringTransport

from condor_actors.classads import ClassAd
from condor_actors.cores.starter.run_spec import read_spec
from condor_actors.daemons.starter.run_files import read_run_file
from condor_actors.machine.run.sandbox import Sandbox
from condor_actors.machine.run.sandbox_root import SandboxRoot
from condor_actors.machine.run.users import Account, named_account
from condor_actors.messages.envelope import Identity, Refused
from condor_actors.messages.interactive import ReadRunFile
from condor_actors.transfer import streams
from condor_actors.transfer.beneath import LeadsOut, open_beneath
from condor_actors.transfer.service import BulkService, Grant
from tests.harness.clock import SteppingClock
from tests.pool_fixture import fresh_folder

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be tricked into reading what a user may not")
SECRET = b"what only root may read " * 4000
KEY = "a-transfer-key"


@attrs.define
class Stage:
    """A sandbox of another account's, a secret of root's beside it, and the service that sends what was gathered."""

    sandbox: Sandbox
    account: Account
    secret: Path

    def attack(self, command: str) -> None:
        """A process of the account, in its sandbox."""
        subprocess.run(["setpriv", f"--reuid={self.account.uid}", f"--regid={self.account.gid}", "--clear-groups",
                        "/bin/sh", "-c", command], cwd=self.sandbox.path, check=True, timeout=30)

    def fetched(self, opened: dict[str, str]) -> bytes:
        """What a shadow gets that asks for all that was gathered."""
        clock, transport = SteppingClock(), StringTransport()
        service = BulkService(clock)
        service.open(KEY, Grant(sources=opened, opener=self.sandbox.open_own))
        connection = service.connection(Identity(name="shadow:a@h", method="tls"))
        connection.makeConnection(transport)
        for digest in opened:
            connection.dataReceived(streams.frame(streams.GET, KEY, digest, 0))
            clock.run(1.0)
        connection.connectionLost()
        return transport.value()


@pytest.fixture
def stage() -> Iterator[Stage]:
    with fresh_folder() as folder:
        nobody = named_account("nobody")
        secret = folder / "secret"
        secret.write_bytes(SECRET)
        secret.chmod(0o600)
        sandbox = SandboxRoot(str(folder / "execute"), nobody).create(nobody)
        sandbox.remember()
        yield Stage(sandbox, nobody, secret)
        assert sandbox.remove()
        assert secret.read_bytes() == SECRET


def test_a_file_swapped_for_a_link_after_it_was_gathered(stage: Stage) -> None:
    stage.attack("head -c 100000 /dev/zero > out")
    sources = stage.sandbox.gather(["out"]).sources
    assert len(sources) == 1
    assert stage.fetched(sources)[4] == streams.HEAD
    stage.attack(f"ln -sf {stage.secret} out")
    answer = stage.fetched(sources)
    assert SECRET[:24] not in answer
    assert answer[4] == streams.NO


def test_a_folder_swapped_for_a_link_after_it_was_gathered(stage: Stage) -> None:
    stage.attack("mkdir d && head -c 100000 /dev/zero > d/secret")
    sources = stage.sandbox.gather(["d"]).sources
    stage.attack(f"mv d e && ln -s {stage.secret.parent} d")
    assert stage.fetched(sources)[4] == streams.NO


@pytest.mark.parametrize("thing", ["mkfifo out", "ln -s /dev/zero out", "ln -s /dev/tty out", "mkdir out"])
def test_a_file_swapped_for_what_never_ends_or_waits(stage: Stage, thing: str) -> None:
    stage.attack("head -c 100000 /dev/zero > out")
    sources = stage.sandbox.gather(["out"]).sources
    stage.attack(f"rm out && {thing}")
    assert stage.fetched(sources)[4] == streams.NO


def test_a_hard_link_to_a_file_of_roots_is_not_read(stage: Stage) -> None:
    """Where the kernel lets users make one (fs.protected_hardlinks = 0), or root made it: rights are the file's."""
    stage.attack("head -c 100000 /dev/zero > out")
    sources = stage.sandbox.gather(["out"]).sources
    os.unlink(f"{stage.sandbox.path}/out")
    os.link(stage.secret, f"{stage.sandbox.path}/out")
    assert stage.fetched(sources)[4] == streams.NO
    with pytest.raises(PermissionError):
        stage.sandbox.gather(["out"])


@pytest.mark.parametrize("name", ["../../secret", "/etc/passwd", "link", "d/link", "/proc/self/environ",
                                  "deep/../../../x"])
def test_outputs_are_in_the_sandbox(stage: Stage, name: str) -> None:
    stage.attack("mkdir d deep && ln -s /etc/passwd link && ln -s ../../../secret d/link")
    with pytest.raises((LeadsOut, OSError)):
        stage.sandbox.gather([name])


def test_links_that_stay_inside_are_followed(stage: Stage) -> None:
    stage.attack("mkdir d && echo yes > d/real && ln -s d/real near && ln -s $PWD/d/real far")
    found = {entry.path: entry.inline for entry in stage.sandbox.gather(["near", "far"]).entries}
    assert found == {"near": b"yes\n", "far": b"yes\n"}


def test_what_is_taken_along_unasked_leads_nowhere(stage: Stage) -> None:
    stage.attack(f"ln -s {stage.secret} stolen; ln -s /etc/passwd users; mkfifo pipe; echo own > mine")
    assert [entry.path for entry in stage.sandbox.gather(None).entries] == ["mine"]


def test_gathering_never_waits_for_a_pipe(stage: Stage) -> None:
    stage.attack("mkfifo out _condor_stdout")
    with pytest.raises(OSError, match="not a plain file"):
        stage.sandbox.gather(["out"])


@pytest.mark.parametrize("path", ["../../secret", "stolen", "/etc/shadow", "d/secret", "/proc/self/fd/1", "pipe"])
def test_looking_into_a_job_shows_its_own_files(stage: Stage, path: str) -> None:
    """condor_tail, and the streams that go home while the job runs, by names that lead out or change on the way."""
    stage.attack(f"ln -s {stage.secret} stolen; ln -s {stage.secret.parent} d; mkfifo pipe")
    spec = read_spec(ClassAd.from_bytes(b'Cmd = "/bin/true"\nOwner = "alice"\n'))
    answer = read_run_file(ReadRunFile(run_id="r", path=path, offset=0, max_bytes=1000), spec, stage.sandbox,
                           stage.account)
    assert isinstance(answer, Refused)


@pytest.mark.parametrize("offset", [1 << 63, 1 << 62, -(1 << 62)])
def test_no_offset_breaks_the_reader(stage: Stage, offset: int) -> None:
    stage.attack("echo something > _condor_stdout")
    spec = read_spec(ClassAd.from_bytes(b'Cmd = "/bin/true"\nOwner = "alice"\n'))
    read_run_file(ReadRunFile(run_id="r", path="_condor_stdout", offset=offset, max_bytes=1000), spec, stage.sandbox,
                  stage.account)


def test_removal_leaves_what_links_name(stage: Stage) -> None:
    """Also while someone swaps folders for links: the fixture looks at the secret afterwards."""
    stage.attack("mkdir -p a/b/c d; for i in 1 2 3 4 5 6 7 8 9; do touch a/b/c/$i d/$i; done")
    swapper = subprocess.Popen(
        ["setpriv", f"--reuid={stage.account.uid}", f"--regid={stage.account.gid}", "--clear-groups", "/bin/sh", "-c",
         f"while mv a x 2>/dev/null; do ln -s {stage.secret.parent} a; rm a; mv x a; done"],
        cwd=stage.sandbox.path)
    try:
        stage.sandbox.remove()
    finally:
        swapper.kill()
        swapper.wait()


def test_the_kernel_resolves_below_a_folder(tmp_path: Path) -> None:
    """The primitive itself, with what an old kernel gets in its place."""
    from condor_actors.transfer import beneath

    (tmp_path / "in" / "d").mkdir(parents=True)
    (tmp_path / "in" / "d" / "file").write_text("x")
    (tmp_path / "out").write_text("y")
    (tmp_path / "in" / "up").symlink_to("../out")
    folder = os.open(tmp_path / "in", os.O_PATH | os.O_DIRECTORY)
    try:
        for opening in (open_beneath, beneath._step_by_step):
            os.close(opening(folder, "d/file"))
            for bad in ("../out", "up", str(tmp_path / "out"), "d/../../out"):
                with pytest.raises(LeadsOut):
                    opening(folder, bad)
    finally:
        os.close(folder)
