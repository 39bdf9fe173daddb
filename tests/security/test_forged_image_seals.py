"""The owner of a checkpoint, who may write its file, puts another in its place: none starts that the pool did not make.

What she does to her folder in SPOOL she does with her own rights; what a machine claims of a checkpoint that it sends
home is tried at the end.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from condor_actors.cores.checkpoint_seals import KEY_BYTES, Generation, Seal, key_of_owner, make_seal
from condor_actors.machine.standard.submit_endpoint import SubmitEndpoint
from condor_actors.messages.codes import HoldCode
from condor_actors.transfer.image_pieces import ImageList
from condor_actors.transfer.streams import BadStream
from tests.harness.standard_jobs import NEED_RUNTIME, PYTHON
from tests.pool_fixture import until
from tests.security.local_users import NEED_USERS, SharedPool, a_shared_pool

pytestmark = [*NEED_USERS, *NEED_RUNTIME]

PROGRAM = """
import os, sys, time
for step in range(3):
    print(sys.argv[1], step, flush=True)
    while not os.path.exists(f"go-on-{sys.argv[1]}-{step}"):
        time.sleep(0.05)
print("done", flush=True)
"""
FORGE = """
import os, pathlib, shutil, attrs
from condor_actors.cores.checkpoint_seals import make_seal
from condor_actors.transfer.image_pieces import ImageList, list_image
here = pathlib.Path(folder)
def put(image, pieces):
    for path in here.glob("*.list"):
        path.unlink()
    for name in ("image", "previous"):
        (here / name).unlink(missing_ok=True)
    shutil.copyfile(image, here / "image")
    (here / "image").chmod(0o700)
    (here / f"{pieces.digest}.list").write_bytes(pieces.to_bytes())
def list_of(path):
    digest = list_image(str(path)).digest
    lists = [ImageList.from_bytes(each.read_bytes()) for each in pathlib.Path(path).parent.glob("*.list")]
    return next(each for each in lists if each.digest == digest)
"""


@attrs.frozen
class Target:
    """A job of hers that is held, with its checkpoint: what she does to that is undone after each test."""

    pool: SharedPool
    id: str
    word: str

    @property
    def folder(self) -> Path:
        """Where its checkpoints are."""
        return self.pool.dir / "spool" / "owners" / self.pool.mallory.name / "checkpoints" / self.id

    @property
    def hold(self) -> tuple[int, str]:
        """Code and reason of its hold."""
        ad = self.pool.jobs(self.id)[0]
        return ad["HoldReasonCode"], ad["HoldReason"]

    def until_lines(self, count: int) -> None:
        """It has printed so much."""
        out = self.pool.mallory.home / f"out-{self.word}"
        until(lambda: out.exists() and len(out.read_text().splitlines()) >= count, f"{count} lines of {self.id}")

    def checkpoint(self) -> None:
        """Have one taken."""
        count = self.pool.jobs(self.id)[0].get("NumCkpts", 0)
        self.pool.run("condor_checkpoint", "job", self.id)
        until(lambda: self.pool.jobs(self.id)[0].get("NumCkpts", 0) > count, f"a checkpoint of {self.id}")

    def forge(self, code: str, **known: str) -> None:
        """She changes her folder, as herself."""
        self.pool.attack(self.pool.mallory, FORGE + code, folder=str(self.folder), **known)

    def refused(self) -> str:
        """She releases it; it is held again.  Why."""
        self.pool.run_as(self.pool.mallory, "condor_release", self.id)
        until(lambda: "refuses the checkpoint" in self.pool.jobs(self.id)[0].get("HoldReason", ""), "it is refused")
        code, reason = self.hold
        assert code == HoldCode.FAILED_TO_CHECKPOINT
        assert str(self.folder) in reason
        return reason


def begun(pool: SharedPool, word: str) -> Target:
    """A job that has printed its first line."""
    home = pool.mallory.home
    (home / "program.py").write_text(PROGRAM)
    cluster = pool.submit_as(pool.mallory, f"""universe = standard
        executable = {PYTHON}
        arguments = program.py {word}
        output = out-{word}
        log = log-{word}
        queue
    """)
    job = Target(pool, f"{cluster}.0", word)
    job.until_lines(1)
    return job


def held(job: Target) -> None:
    job.pool.run_as(job.pool.mallory, "condor_hold", job.id)
    until(lambda: job.pool.jobs(job.id)[0]["JobStatus"] == 5 and (job.folder / "image").exists()
          and not job.pool.scratch(), f"{job.id} is held, and its machine free")


@pytest.fixture(scope="module")
def pool() -> Iterator[SharedPool]:
    with a_shared_pool(slots=1) as shared:
        yield shared


@pytest.fixture(scope="module")
def other(pool: SharedPool) -> Target:
    """Another job of hers, held with its checkpoint."""
    job = begun(pool, "other")
    held(job)
    return job


@pytest.fixture(scope="module")
def first(pool: SharedPool, other: Target) -> Iterator[tuple[Target, Path]]:
    """A job that is held with its third checkpoint, and a copy of the folder as it was after the first."""
    job = begun(pool, "one")
    job.checkpoint()
    early = pool.dir / "early"
    shutil.copytree(job.folder, early)
    job.checkpoint()
    held(job)
    os.chmod(early, 0o755)
    for path in early.rglob("*"):
        path.chmod(0o755)
    yield job, early
    for step in range(3):
        (pool.mallory.home / f"go-on-one-{step}").touch()
    pool.run_as(pool.mallory, "condor_release", job.id)
    job.until_lines(4)
    lines = (pool.mallory.home / "out-one").read_text().splitlines()
    assert lines == ["one 0", "one 1", "one 2", "done"], "what she did to it is undone: it goes on from its own"


@pytest.fixture
def target(first: tuple[Target, Path], tmp_path: Path) -> Iterator[tuple[Target, Path]]:
    job, early = first
    shutil.copytree(job.folder, tmp_path / "kept")
    yield job, early
    until(lambda: not job.pool.scratch(), "nothing runs")
    for path in job.folder.glob("*"):
        if path.is_file():
            path.unlink()
    user = job.pool.mallory
    for path in (tmp_path / "kept").glob("*"):
        if path.is_file():
            shutil.copy2(path, job.folder / path.name)
            os.chown(job.folder / path.name, user.uid, user.gid)


def test_another_program_with_a_list_that_fits(target: tuple[Target, Path]) -> None:
    target[0].forge("put('/bin/true', list_image('/bin/true'))")
    assert "nobody has sealed it" in target[0].refused()


def test_another_program_with_the_seal_of_the_true_one(target: tuple[Target, Path]) -> None:
    target[0].forge("""
        seal = list_of(here / "image").seal
        put("/bin/true", attrs.evolve(list_image("/bin/true"), seal=seal))
    """.replace("\n        ", "\n"))
    assert "its seal is none of this job" in target[0].refused()


def test_the_true_one_with_one_byte_changed(target: tuple[Target, Path]) -> None:
    target[0].forge("""
        seal = list_of(here / "image").seal
        shutil.copyfile(here / "image", "changed")
        with open("changed", "r+b") as file:
            file.seek(0x12000 + 100)
            byte = file.read(1)
            file.seek(-1, 1)
            file.write(bytes([byte[0] ^ 1]))
        put("changed", attrs.evolve(list_image("changed"), seal=seal))
    """.replace("\n        ", "\n"))
    assert "its seal is none of this job" in target[0].refused()


def test_a_seal_with_a_key_of_her_own(target: tuple[Target, Path]) -> None:
    job = target[0]
    job.forge("""
        pieces = list_image("/bin/true")
        put("/bin/true", attrs.evolve(pieces, seal=make_seal(b"m" * 32, run, 99, pieces.digest)))
    """.replace("\n        ", "\n"), run=f"{job.id}#9@host")
    assert "its seal is none of this job" in job.refused()


def test_a_checkpoint_of_another_job_of_hers(target: tuple[Target, Path], other: Target) -> None:
    target[0].forge("put(theirs + '/image', list_of(theirs + '/image'))", theirs=str(other.folder))
    assert "its seal is none of this job" in target[0].refused()


def test_an_old_one_of_the_same_job(target: tuple[Target, Path]) -> None:
    job, early = target
    job.forge("put(old + '/image', list_of(old + '/image'))", old=str(early))
    assert "it is an old one" in job.refused()


def test_the_newest_with_the_generation_raised(target: tuple[Target, Path]) -> None:
    job, early = target
    job.forge("""
        pieces = list_of(old + "/image")
        later = attrs.evolve(pieces.seal.generation, run=9)
        put(old + "/image", attrs.evolve(pieces, seal=attrs.evolve(pieces.seal, generation=later)))
    """.replace("\n        ", "\n"), old=str(early))
    assert "its seal is none of this job" in job.refused()

SPLICE = """
def spliced(source, at):
    \"\"\"The true image with one piece of another file in the place of its own.\"\"\"
    own = list_of(here / "image")
    piece = own.pieces[at]
    with open(source, "rb") as other:
        other.seek(piece.offset)
        data = other.read(piece.length)
    shutil.copyfile(here / "image", "spliced")
    with open("spliced", "r+b") as file:
        file.seek(piece.offset)
        assert file.read(len(data)) != data
        file.seek(piece.offset)
        file.write(data)
    return own
def differing(source):
    \"\"\"A piece that is another in that file.\"\"\"
    own = list_of(here / "image")
    with open(here / "image", "rb") as one, open(source, "rb") as other:
        for at, piece in enumerate(own.pieces):
            one.seek(piece.offset), other.seek(piece.offset)
            mine, theirs = one.read(piece.length), other.read(piece.length)
            if len(theirs) == len(mine) and theirs != mine:
                return at
    raise AssertionError("they are the same")
"""


@pytest.mark.parametrize("source", ["of another job", "of an older generation"])
def test_one_piece_of_another_checkpoint_of_hers(target: tuple[Target, Path], other: Target, source: str) -> None:
    """With the list of what it is now, and the seal of what it was."""
    job, early = target
    theirs = other.folder if source == "of another job" else early
    job.forge(SPLICE + """
own = spliced(theirs, differing(theirs))
put("spliced", attrs.evolve(list_image("spliced"), seal=own.seal))
""", theirs=f"{theirs}/image")
    assert "its seal is none of this job" in job.refused()


def test_a_link_to_another_checkpoint_in_the_place_of_the_image(target: tuple[Target, Path], other: Target) -> None:
    """With the list and the seal of the one that it leads to."""
    job = target[0]
    job.forge("""
pieces = list_of(here / "image")
put("/bin/true", pieces)
(here / "image").unlink()
(here / "image").symlink_to(theirs)
for path in here.glob("*.list"):
    path.unlink()
pieces = list_of(theirs)
(here / f"{pieces.digest}.list").write_bytes(pieces.to_bytes())
""", theirs=str(other.folder / "image"))
    assert "its seal is none of this job" in job.refused()


def memory_has(pid: int, wanted: bytes) -> bool:
    """Whether a process has these bytes anywhere."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            span, rights, *_ = line.split()
            if "r" not in rights or line.rstrip().endswith(("[vvar]", "[vsyscall]", "[vvar_vclock]")):
                continue
            begin, end = (int(word, 16) for word in span.split("-"))
            try:
                memory.seek(begin)
                left = end - begin
                tail = b""
                while left > 0:
                    data = memory.read(min(left, 1 << 22))
                    if not data:
                        break
                    if wanted in tail + data:
                        return True
                    tail, left = data[-KEY_BYTES:], left - len(data)
            except (OSError, ValueError, OverflowError):
                continue
    return False


def test_no_process_of_hers_knows_the_key(pool: SharedPool, other: Target) -> None:
    """It is in the schedd's file, the schedd, the startd and the starter host; the last shows that the search finds."""
    database = pool.dir / "spool" / "job_queue.sqlite"
    facts = database.stat()
    assert facts.st_mode & 0o077 == 0
    assert facts.st_uid != pool.mallory.uid
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as queue:
        (key,) = queue.execute("SELECT key FROM keys WHERE name = 'checkpoints'").fetchone()
        owner = queue.execute("SELECT owner FROM claims").fetchone()
    job = begun(pool, "key")
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as queue:
        owner = queue.execute("SELECT owner FROM claims").fetchone()
    assert owner is not None
    hers = key_of_owner(key, owner[0])
    assert len(key) == KEY_BYTES
    theirs = pool.pids_of(pool.mallory, "shadow")
    assert theirs
    assert not [pid for pid in theirs if memory_has(pid, hers)]
    assert not [pid for pid in theirs if memory_has(pid, key)]
    starters = [pid for pid, command in pool.processes().items() if "starter-host" in command]
    assert [pid for pid in starters if memory_has(pid, hers)]
    pool.run("condor_rm", job.id)


@pytest.mark.parametrize("seal", [
    None, make_seal(b"k" * 32, "7.0#2@q", 1, ""), make_seal(b"k" * 32, "7.0#4@q", 1, ""),
    Seal(Generation(3, 0), bytes(32)), Seal(Generation(3, 1), bytes(32)),
], ids=["none", "of an earlier run", "of a later run", "number 0", "the one before"])
def test_a_machine_sends_a_checkpoint_with_a_generation_that_is_not_next(seal: Seal | None) -> None:
    """So it cannot make a later checkpoint of another machine's look old."""
    home = SubmitEndpoint(
        None, local=True, run_id="7.0#3@q", key="", ready=lambda why: None, image_kept=lambda pieces, done: None,
        old_image=lambda increment: ("", None), image=os.devnull, vacating=lambda: None, lost=lambda reason: None)
    good = ImageList(0, (), Seal(Generation(3, 1), bytes(32)))
    with pytest.raises(BadStream, match="a checkpoint that nobody began"):  # its seal is all right
        home.image_place(good)
    with pytest.raises(BadStream, match="has not sealed for this run"):
        home.image_place(attrs.evolve(good, seal=seal))
