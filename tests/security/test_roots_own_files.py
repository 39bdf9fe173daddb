"""The pool's account, taken over, at the files that the master and the administrator's commands write as root.

The folders of logs, sockets and records are that account's; what it puts there must not lead root anywhere, and what it
writes there must not be believed.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import pytest_twisted
from twisted.internet import reactor

from condor_actors.config import load_config
from condor_actors.durable import write_whole
from condor_actors.machine.supervisor.master_host import last_lines
from condor_actors.machine.supervisor.process_marks import MARK, start_ticks
from condor_actors.machine.supervisor.surviving_processes import KeptProcesses
from condor_actors.own_files import open_own, read_own, replace_own
from condor_actors.services.settings import settings_file, store_setting
from condor_actors.services.telemetry.logs import RotatingLog
from condor_actors.services.world import write_whole as write_address
from condor_actors.wire.post_office import PostOffice
from condor_actors.wire.tokens import TokenStore
from tests.harness.root_helper import POOL

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has a folder of another account")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of root's."""
    made = tmp_path / "shadow"
    made.write_text("root's own\n")
    made.chmod(0o600)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the pool's account."""
    made = tmp_path / "run"
    made.mkdir()
    os.chown(made, POOL, POOL)
    return made


@pytest.fixture(autouse=True)
def _untouched(secret: Path) -> Iterator[None]:
    """Whatever is tried: the file of root's is as it was, and still only root's to read."""
    yield
    facts = secret.stat()
    assert secret.read_text() == "root's own\n"
    assert (facts.st_uid, stat.S_IMODE(facts.st_mode)) == (0, 0o600)


def lay(place: Path, target: Path, kind: str) -> None:
    """Put something in the place of a file, as the account would."""
    if kind == "link":
        os.symlink(target, place)
    elif kind == "name":
        os.link(target, place)
    else:
        os.mkfifo(place)
    os.chown(place, POOL, POOL, follow_symlinks=False) if kind != "name" else None


@pytest.mark.parametrize("kind", ["link", "name", "pipe"])
def test_what_lies_in_the_place_of_a_log(folder: Path, secret: Path, kind: str) -> None:
    lay(folder / "MasterLog", secret, kind)
    log = RotatingLog(folder / "MasterLog", None, 1, lambda event: "said by a stranger")
    log({})
    log.close()
    assert (folder / "MasterLog").read_text() == "said by a stranger\n"


@pytest.mark.parametrize("kind", ["link", "name", "pipe"])
def test_what_lies_in_the_place_of_a_daemons_errors(folder: Path, secret: Path, kind: str) -> None:
    """A daemon that the account has taken over would write there itself, by what root has opened for it."""
    errors = folder / "CollectorLog.stderr"
    lay(errors, secret, kind)
    kept = KeptProcesses(reactor, folder / "master.children")
    process = kept.start("X", ["/bin/sh", "-c", "echo evil"], {}, errors=errors, ended=lambda process, how: None)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert errors.read_text() == "evil\n"
    assert json.loads((folder / "master.children").read_text())["X"]["pid"] == process.pid


@pytest.mark.parametrize("kind", ["link", "name"])
def test_what_lies_where_a_file_is_made_that_takes_anothers_place(folder: Path, secret: Path, kind: str) -> None:
    own = os.getpid()
    for name in (".master.address", ".master.children", ".host.crt", ".plain"):
        lay(folder / f"{name}.{own}", secret, kind)
    write_address(folder / "master.address", "<here>\n")
    write_whole(folder / "host.crt", b"certificate", 0o666)
    replace_own(folder / "plain", b"plain")
    KeptProcesses(reactor, folder / "master.children").adopt(lambda process, how: None, is_ours=lambda *_: False)
    assert (folder / "master.address").read_text() == "<here>\n"
    assert (folder / "host.crt").read_bytes() == b"certificate"


def test_a_file_that_keeps_its_owner_does_not_take_a_links(folder: Path, secret: Path) -> None:
    """By a link to a user's file the pool's key would become hers."""
    user = folder.parent / "of a user"
    user.touch()
    os.chown(user, 4711, 4711)
    os.symlink(user, folder / "host.key")
    write_whole(folder / "host.key", b"key", 0o600)
    assert (folder / "host.key").lstat().st_uid == 0


@pytest_twisted.inlineCallbacks
def test_a_socket_whose_name_becomes_a_link(folder: Path, secret: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Between the making of a socket and the change of its mode by its name there was time for a link."""
    monkeypatch.setattr(os, "chmod", lambda *given, **named: pytest.fail(f"by its name: {given}"))
    office = PostOffice(reactor, random=Random(1), process="master", uid_domain="here")
    office.listen_unix(str(folder / "master.sock"))
    assert stat.S_IMODE((folder / "master.sock").stat().st_mode) == 0o666
    yield office.stop()


def test_a_record_that_names_a_process_which_is_none_of_the_pools(folder: Path) -> None:
    """The master would end it at the next stop."""
    victim = subprocess.Popen(["/bin/sleep", "1000"])
    record = folder / "master.children"
    marked = subprocess.Popen(["/bin/sleep", "1000"], env={MARK: f"{record}:SCHEDD"}, user=4711)
    ours = subprocess.Popen(["/bin/sleep", "1000"], env={MARK: f"{record}:NEGOTIATOR"}, user=POOL)
    try:
        named = {"COLLECTOR": victim, "SCHEDD": marked, "NEGOTIATOR": ours}
        record.write_text(json.dumps({name: {"pid": process.pid, "ticks": start_ticks(process.pid)}
                                      for name, process in named.items()}))
        os.chown(record, POOL, POOL)
        kept = KeptProcesses(reactor, record, {POOL})
        found = kept.adopt(lambda process, how: None, is_ours=lambda name, words: True)
        assert [process.pid for process in found] == [ours.pid]
        kept.signal("COLLECTOR", signal.SIGKILL)
        assert victim.poll() is None
    finally:
        for process in (victim, marked, ours):
            process.kill()
            process.wait()


def test_settings_that_the_account_has_stored_for_the_master(folder: Path, secret: Path, tmp_path: Path) -> None:
    """Neither read, nor taken along into a file of root's when the administrator stores another."""
    main = tmp_path / "condor_config"
    main.write_text(f"LOCAL_DIR = {tmp_path}\nPERSISTENT_CONFIG_DIR = {folder}\nENABLE_PERSISTENT_CONFIG = true\n")

    def config() -> object:
        return load_config(files=[main], environ={}, subsystem="MASTER").text("CONDOR_ADMIN")

    path = settings_file(load_config(files=[main], environ={}, subsystem="MASTER"), persistent=True)
    path.write_text("CONDOR_ADMIN = evil\n")
    os.chown(path, POOL, POOL)
    assert config() != "evil"
    store_setting(load_config(files=[main], environ={}, subsystem="MASTER"), "MAIL", "/bin/mail", persistent=True)
    assert config() != "evil"
    assert path.read_text() == "MAIL = /bin/mail\n"
    path.unlink()
    roots = tmp_path / "log of root's"
    roots.write_text("CONDOR_ADMIN = evil\n")
    os.symlink(roots, path)
    assert config() != "evil"
    os.symlink(secret, f"{path}.new")
    store_setting(load_config(files=[main], environ={}, subsystem="MASTER"), "MAIL", "/bin/mail", persistent=True)
    assert path.lstat().st_uid == 0


def test_a_log_that_is_mailed_and_leads_to_a_file_of_roots(folder: Path, secret: Path) -> None:
    os.symlink(secret, folder / "CollectorLog")
    os.link(secret, folder / "SchedLog")
    assert last_lines(folder / "CollectorLog", 20) == []
    assert last_lines(folder / "SchedLog", 20) == []


def test_a_token_whose_file_is_a_link(folder: Path, secret: Path) -> None:
    for number in range(2):
        os.symlink(secret, folder / f"{number}.new")
    made = TokenStore(folder).issue("<here:1>", b"f" * 32, life_s=60.0, roles=("startd",))
    (found,) = folder.glob(f"*{made.token_id}*")
    assert read_own(found)


def test_a_folder_that_has_become_a_link(folder: Path, tmp_path: Path) -> None:
    """Where the account has the folder above as well."""
    os.symlink("/etc", folder / "log")
    with pytest.raises(PermissionError, match="could be another account's"):
        open_own(folder / "log" / "MasterLog", os.O_WRONLY | os.O_CREAT)
    assert not os.path.lexists("/etc/MasterLog")


def test_a_link_of_the_administrators_is_followed(tmp_path: Path) -> None:
    """In a folder where nobody else writes."""
    (tmp_path / "disk").mkdir()
    os.symlink(tmp_path / "disk/MasterLog", tmp_path / "MasterLog")
    os.close(open_own(tmp_path / "MasterLog", os.O_WRONLY | os.O_CREAT))
    assert (tmp_path / "disk/MasterLog").exists()


