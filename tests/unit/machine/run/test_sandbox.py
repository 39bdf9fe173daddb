"""Scratch directories: filled, listed, read and removed, also when the job laid traps in them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from condor_actors.machine.run.sandbox import Sandbox
from condor_actors.machine.run.sandbox_root import SandboxRoot
from condor_actors.machine.run.users import Account, named_account
from condor_actors.messages.manifest import FileEntry
from condor_actors.transfer.blob_store import BlobStore
from condor_actors.transfer.layout import lay_out
from condor_actors.transfer.manifest import digest_bytes


def entry(path: str, data: bytes, mode: int = 0o644) -> FileEntry:
    return FileEntry(path=path, mode=mode, size_bytes=len(data), digest=digest_bytes(data), inline=data)


@pytest.fixture
def account() -> Account | None:
    return named_account("nobody") if os.geteuid() == 0 else None


@pytest.fixture
def sandbox(account: Account | None) -> Iterator[Sandbox]:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        made = SandboxRoot(folder, account).create(account)
        made.fill([entry("in", b"in"), entry("same", b"same"), entry("condor_exec.exe", b"#!", 0o755)], None,
                  b"A = 1\n", b"B = 2\n")
        made.remember()
        yield made
        made.remove()


def names(sandbox: Sandbox, named: list[str] | None = None, **more: bool) -> list[str]:
    return [each.path for each in sandbox.gather(named, **more).entries]


def test_it_is_the_jobs_own(sandbox: Sandbox, account: Account | None) -> None:
    facts = os.stat(sandbox.path)
    assert facts.st_mode & 0o777 == 0o700
    assert facts.st_uid == (account.uid if account is not None else os.geteuid())
    assert Path(sandbox.path, ".job.ad").read_bytes() == b"A = 1\n"
    assert os.access(f"{sandbox.path}/condor_exec.exe", os.X_OK)


def test_new_and_changed_files_go_home(sandbox: Sandbox) -> None:
    assert names(sandbox) == []
    Path(sandbox.path, "made").write_text("x")
    Path(sandbox.path, "in").write_text("changed")
    Path(sandbox.path, "_condor_stdout").write_text("said")
    os.mkdir(f"{sandbox.path}/folder")
    assert names(sandbox) == ["_condor_stdout", "in", "made"]


def test_named_files_and_folders_go_home(sandbox: Sandbox) -> None:
    os.mkdir(f"{sandbox.path}/folder", 0o755)
    Path(sandbox.path, "folder", "x").write_text("x")
    assert names(sandbox, ["folder"]) == ["folder", "folder/x"]
    assert names(sandbox, ["folder/"]) == ["x"]
    found = sandbox.gather(["folder", "never"])
    assert ([each.path for each in found.entries], found.missing) == (["folder", "folder/x"], ("never",))
    assert sandbox.gather(["never"], complete=False).missing == ()
    assert names(sandbox, ["never"], complete=False) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root could be tricked")
def test_links_do_not_lead_to_what_the_job_may_not_read(sandbox: Sandbox) -> None:
    os.symlink("/etc/shadow", f"{sandbox.path}/mine")
    with pytest.raises(OSError, match="not in the job's scratch directory"):
        names(sandbox, ["mine"])
    with pytest.raises(ValueError, match="not in the job's scratch directory"):
        sandbox.read("mine", -1, 100)
    with pytest.raises(ValueError, match="not in the job's scratch directory"):
        sandbox.read("../../etc/passwd", -1, 100)


def test_files_are_read_from_an_offset_or_the_end(sandbox: Sandbox) -> None:
    Path(sandbox.path, "out").write_bytes(b"0123456789")
    assert sandbox.read("out", -1, 4) == (6, b"6789", 10)
    assert sandbox.read("out", 2, 3) == (2, b"234", 10)


def test_closed_folders_and_links_are_removed(sandbox: Sandbox) -> None:
    os.makedirs(f"{sandbox.path}/a/b/c")
    Path(sandbox.path, "a/b/file").write_text("x")
    os.symlink("/", f"{sandbox.path}/a/root")
    os.symlink("/etc", f"{sandbox.path}/etc")
    for folder in ("a/b/c", "a/b", "a"):
        os.chmod(f"{sandbox.path}/{folder}", 0o000)
    assert sandbox.remove()
    assert not os.path.lexists(sandbox.path)
    assert os.path.exists("/etc/passwd")


def test_a_pipe_is_opened_without_its_other_end(sandbox: Sandbox) -> None:
    pipe = f"{sandbox.path}/pipe"
    os.mkfifo(pipe)
    os.chmod(pipe, 0o666)
    descriptor = sandbox.open_input("pipe")
    assert os.get_blocking(descriptor)
    os.close(sandbox.open_output("pipe", go_on=True))
    os.close(descriptor)
    with pytest.raises(OSError, match="No such device"):
        sandbox.open_output("pipe")


@pytest.mark.skipif(os.geteuid() != 0, reason="root fills for another account")
def test_nobody_gets_in_while_root_fills_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o755)
    nobody = named_account("nobody")
    store = BlobStore(tmp_path / "blobs", 1 << 20)
    digest = store.put_bytes(b"large")
    large = FileEntry(path="folder/large", mode=0o644, size_bytes=5, digest=digest)
    root = SandboxRoot(str(tmp_path / "execute"), nobody)
    made, seen = root.create(nobody), []

    def lay(*arguments: Any) -> None:
        facts = os.stat(made.path)
        seen.append((facts.st_uid, facts.st_mode & 0o777))
        lay_out(*arguments)

    monkeypatch.setattr("condor_actors.machine.run.sandbox.lay_out", lay)
    made.fill([large], store, b"", b"")
    assert seen == [(0, 0o700)]
    assert os.stat(made.path).st_uid == os.stat(f"{made.path}/folder/large").st_uid == nobody.uid
    made.remove()
    taken = root.create(nobody)
    os.symlink("/etc", f"{taken.path}/folder")
    with pytest.raises(OSError, match="another user's files"):
        taken.fill([large], store, b"", b"")
    taken.remove()


def test_leftovers_are_found_but_those_in_use(sandbox: Sandbox, account: Account | None) -> None:
    root = SandboxRoot(os.path.dirname(sandbox.path))
    assert root.leftovers() == (sandbox.path,)
    assert root.leftovers({sandbox.path}) == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="root chooses the account")
def test_a_folder_the_account_cannot_reach_is_replaced(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    root = SandboxRoot(str(closed / "execute"), named_account("nobody"))
    assert "no search permission" in root.notice
    assert root.path.startswith(tempfile.gettempdir())
    root.leave()
    assert not os.path.exists(root.path)


def test_a_folder_in_place_of_the_machines_is_never_one_that_came_with_the_inputs(sandbox: Sandbox,
                                                                                 tmp_path: Path) -> None:
    """A link of that name would have another folder opened to all, and bound over the machine's."""
    machines, victim = tmp_path / "tmp", tmp_path / "victim"
    for folder in (machines, victim):
        folder.mkdir(mode=0o700)
    os.symlink(victim, f"{sandbox.path}/.condor_private_{str(machines).strip('/').replace('/', '_')}")
    with pytest.raises(FileExistsError):
        sandbox.private([str(machines)], [])
    assert victim.stat().st_mode & 0o777 == 0o700


def test_a_folder_in_place_of_the_machines_is_made_once(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    made = sandbox.private([str(tmp_path / "tmp"), str(tmp_path / "none")], [])
    assert [target for _, target in made] == [str(tmp_path / "tmp")]
    assert Path(made[0][0]).parent == Path(sandbox.path)
    assert Path(made[0][0]).stat().st_mode & 0o7777 == 0o1777
    assert sandbox.private([str(tmp_path / "tmp")], []) == made
