"""A user reads what others have spooled, and puts links into his own spool folder for root to follow."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pool_fixture import until
from tests.security.local_users import NEED_USERS, Person, SharedPool, a_shared_pool

pytestmark = NEED_USERS

JOB = """executable = /bin/cat
arguments = input.txt
transfer_input_files = input.txt
should_transfer_files = YES
requirements = {requirements}
log = spooled.log
output = out.txt
queue
"""


@pytest.fixture(scope="module", params=[False, True], ids=["root", "without-root"])
def pool(request: pytest.FixtureRequest) -> Iterator[SharedPool]:
    """One for all tests of this module, which writes histories as text as well."""
    config = "HISTORY = $(SPOOL)/history\nPER_JOB_HISTORY_DIR = $(SPOOL)/per-job\n"
    with a_shared_pool(config, drops_root=request.param) as shared:
        (shared.dir / "spool" / "per-job").mkdir()
        shutil.chown(shared.dir / "spool" / "per-job", (shared.dir / "spool").stat().st_uid)
        yield shared


def spooled(pool: SharedPool, person: Person, requirements: str = "false") -> tuple[int, Path]:
    """A cluster whose input was spooled, and its folder."""
    source = person.home / "input.txt"
    source.write_text(f"of {person.name}")
    os.chown(source, person.uid, person.gid)
    source.chmod(0o600)
    cluster = pool.submit_as(person, JOB.format(requirements=requirements), "-spool")
    folder = pool.dir / "spool" / str(cluster) / "0"
    until((folder / "input.txt").exists, "the input is spooled")
    return cluster, folder


def tried(person: Person, *words: str) -> str:
    """What a command of a user's brings to light."""
    done = subprocess.run(person.command(*words), capture_output=True, text=True, check=False)
    return done.stdout


def test_he_reads_what_she_has_spooled(pool: SharedPool) -> None:
    """By its name, by the folder, and through the schedd."""
    cluster, folder = spooled(pool, pool.alice)
    assert tried(pool.alice, "cat", str(folder / "input.txt")) == f"of {pool.alice.name}"
    assert tried(pool.mallory, "cat", str(folder / "input.txt")) == ""
    assert tried(pool.mallory, "ls", str(folder)) == ""
    answers = pool.attack(pool.mallory, """
        from condor_actors.messages.spool import *
        with unix_client(schedd) as client:
            result = [said(client, "schedd", message) for message in (
                ListSpool(cluster_id=cluster, proc_id=0),
                ReadSpool(cluster_id=cluster, proc_id=0, path="input.txt", offset=0, max_bytes=100),
                SpoolChunk(cluster_id=cluster, proc_id=0, path="input.txt", offset=0, data=b"evil", mode=0o644))]
    """, schedd=pool.socket("schedd"), cluster=cluster)
    assert all(answer.startswith("denied: ") for answer in answers), answers
    assert (folder / "input.txt").read_text() == f"of {pool.alice.name}"


def test_he_puts_links_where_root_writes(pool: SharedPool) -> None:
    """Links and hard links to a file of root's and to one of hers: nobody writes, reads or gives them away for him.

    The hard links are made for him: a kernel may let users make them to files that are not theirs.
    """
    mallory, alice = pool.mallory, pool.alice
    cluster, folder = spooled(pool, mallory)
    targets = {}
    for name, uid in (("of-root", 0), ("of-alice", alice.uid)):
        target = targets[name] = pool.folder / name
        target.write_text("secret")
        target.chmod(0o600)
        os.chown(target, uid, 0)
        os.link(target, folder / f"hard-{name}")
        os.symlink(target, folder / f"soft-{name}")
    (pool.folder / "closed").mkdir(0o700)
    os.symlink(pool.folder / "closed", folder / "way")
    names = [path.name for path in folder.iterdir() if "-of-" in path.name] + ["way/in", "../../../secret"]
    assert len(names) == 6
    answers = pool.attack(mallory, """
        from condor_actors.messages.spool import *
        result = {}
        with unix_client(schedd) as client:
            for name in names:
                result[name] = [said(client, "schedd", message) for message in (
                    SpoolChunk(cluster_id=cluster, proc_id=0, path=name, offset=0, data=b"evil", mode=0o666),
                    ReadSpool(cluster_id=cluster, proc_id=0, path=name, offset=0, max_bytes=100))]
            listing = client.ask("schedd", ListSpool(cluster_id=cluster, proc_id=0))
        result["listing"] = [path for path, _, _ in listing.files]
    """, schedd=pool.socket("schedd"), cluster=cluster, names=names)
    assert "input.txt" in answers.pop("listing")
    assert {name: said for name, said in answers.items() if "Done" in said or "SpoolBytes" in said} == {}
    for name, target in targets.items():
        facts = target.stat()
        assert target.read_text() == "secret", name
        assert stat.S_IMODE(facts.st_mode) == 0o600
        assert facts.st_uid in (0, alice.uid)
    assert list((pool.folder / "closed").iterdir()) == []


def test_histories_are_not_for_everybody(pool: SharedPool) -> None:
    """They have whole ads."""
    cluster, _ = spooled(pool, pool.alice, "true")
    per_job = pool.dir / "spool" / "per-job" / f"history.{cluster}.0"
    pool.until_status(f"{cluster}.0", 0, 4)
    pool.run_as(pool.alice, "condor_rm", str(cluster))
    until(per_job.exists, "it is in the histories")
    for path in (per_job, pool.dir / "spool" / "history", pool.dir / "spool" / "job_queue.sqlite"):
        assert tried(pool.mallory, "cat", str(path)) == "", path
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_nothing_in_spool_is_open_to_others(pool: SharedPool) -> None:
    """What a user finds below SPOOL that he can read is none of what others have there."""
    spooled(pool, pool.alice)
    pool.submit_as(pool.alice, "executable = /bin/true\ntransfer_executable = false\nlog = a.log\nqueue\n")
    pool.run_as(pool.alice, "condor_wait", "-wait", "60", "a.log")
    found = tried(pool.mallory, "find", str(pool.dir / "spool"), "-type", "f", "-readable",
                  "!", "-user", pool.mallory.name)
    assert found.split() == []
