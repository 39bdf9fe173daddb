"""A job names its inputs by URLs that are to bring it what it has no right to."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from condor_actors.classads import ClassAd
from condor_actors.daemons.shadow.file_trouble import FileTrouble
from condor_actors.daemons.shadow.input_files import FileCache, input_manifest
from condor_actors.machine.run import url_fetch
from condor_actors.machine.run.url_fetch import FetchOrder
from condor_actors.machine.run.users import Account
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.references.urls import shown_url, travels_as_url
from condor_actors.transfer.manifest import BadManifest, check_manifest
from tests.harness.proc_files import open_files, proc_file, process_ids
from tests.pool_fixture import PersonalPool, fresh_folder

STRANGER = Account("stranger", 54321, 54321, "/", (54321,))
SPELLINGS = ("FILE:///{}", "File:///{}", "file:///{}", "fILE://localhost/{}", "file://LOCALHOST/{}")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become other users")


@attrs.define
class Seen:
    """What a server has seen of who asked it."""

    uids: list[int] = attrs.field(factory=list)
    words: list[bytes] = attrs.field(factory=list)
    environments: list[bytes] = attrs.field(factory=list)


def clients(port: int) -> tuple[int, list[int]]:
    """The user, and the processes, that have a connection from this local port."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[1].endswith(f":{port:04X}"):
            inode = words[9]
            return int(words[7]), [pid for pid in process_ids() if f"socket:[{inode}]" in open_files(pid)]
    return -1, []


@pytest.fixture
def server() -> Iterator[tuple[str, Seen]]:
    """A web server whose paths say where they lead."""
    seen = Seen()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            uid, holders = clients(self.client_address[1])
            seen.uids.append(uid)
            for pid in holders:
                seen.words.append(proc_file(pid, "cmdline"))
                seen.environments.append(proc_file(pid, "environ"))
            if self.path.startswith("/to/"):
                self.send_response(302)
                self.send_header("Location", self.path.removeprefix("/to/").partition("?")[0])
                self.end_headers()
                return
            data = b"x" * (1 << 20) if self.path.startswith("/much") else b"from the web\n"
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Nothing."""

    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{made.server_port}", seen
    made.shutdown()
    made.server_close()
    thread.join()


def fetched(url: str, target: Path, account: Account | None = None, most_bytes: int = 1 << 20,
            **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run the program that fetches."""
    order = FetchOrder(url=url, account=account, most_bytes=most_bytes, most_s=20.0)
    with target.open("wb") as stream:
        return subprocess.run([sys.executable, "-I", "-m", url_fetch.__name__], input=order.encode(), stdout=stream,
                              stderr=subprocess.PIPE, env=environment, timeout=60, check=False)


# ---- what the execute machine takes


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_of_file_reaches_the_execute_side(spelling: str, tmp_path: Path) -> None:
    url = spelling.format("etc/shadow")
    with pytest.raises(BadManifest, match="never here"):
        check_manifest([FileEntry(path="stolen", url=url)])
    target = tmp_path / "stolen"
    done = fetched(url, target)
    assert done.returncode == 1
    assert b"http, https only" in done.stderr
    assert target.read_bytes() == b""
    assert not travels_as_url(url)


@pytest.mark.parametrize("url", [
    " file:///etc/shadow", "fi\tle:///etc/shadow", "\x01FILE:///etc/shadow", "http://a b/", "/etc/shadow",
    "//etc/shadow", "http:/etc", "http://h/\n", "http://h/" + "x" * 9000])
def test_a_url_that_parsers_read_differently_is_none(url: str) -> None:
    with pytest.raises(BadManifest):
        check_manifest([FileEntry(path="stolen", url=url)])


@pytest.mark.parametrize("kind", ["directory", "link"])
def test_only_files_have_urls(kind: str) -> None:
    with pytest.raises(BadManifest, match="only files"):
        check_manifest([FileEntry(path="stolen", kind=kind, target="x", url="FILE:///etc/shadow")])


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/x", "data://text/plain,x", "s3://bucket/key", "gopher://h/x"])
def test_schemes_that_the_library_knows_are_not_ours(url: str, tmp_path: Path) -> None:
    done = fetched(url, tmp_path / "x")
    assert (done.returncode, (tmp_path / "x").read_bytes()) == (1, b"")
    assert b"http, https only" in done.stderr


# ---- what a server can make of it


@pytest.mark.parametrize("place", ["file:///etc/passwd", "FILE:///etc/passwd", "ftp://127.0.0.1/etc/passwd",
                                   "data:text/plain,x", "//etc/passwd\tx"])
def test_a_server_leads_nowhere_else(server: tuple[str, Seen], place: str, tmp_path: Path) -> None:
    done = fetched(f"{server[0]}/to/{place}", tmp_path / "x")
    assert (done.returncode, (tmp_path / "x").read_bytes()) == (1, b"")


def test_a_redirect_to_the_web_is_followed_and_an_endless_one_ends(server: tuple[str, Seen], tmp_path: Path) -> None:
    assert fetched(f"{server[0]}/to/{server[0]}/x", tmp_path / "x").returncode == 0
    assert (tmp_path / "x").read_text() == "from the web\n"
    seen = server[1]
    seen.uids.clear()
    loop = "/to/" * 300 + "x"
    done = fetched(server[0] + loop, tmp_path / "y")
    assert done.returncode == 1
    assert len(seen.uids) <= url_fetch.MOST_REDIRECTS + 1


def test_a_server_does_not_fill_the_disk(server: tuple[str, Seen], tmp_path: Path) -> None:
    done = fetched(f"{server[0]}/much", tmp_path / "x", most_bytes=300_000)
    assert done.returncode == 1
    assert b"300000 bytes" in done.stderr
    assert (tmp_path / "x").stat().st_size <= 300_000


@needs_root
def test_a_fetch_is_the_accounts_and_has_nothing_of_roots(server: tuple[str, Seen], tmp_path: Path) -> None:
    """Not root asks, no proxy of root's is used or seen, and the URL with its password is in no list of processes."""
    address, seen = server
    url = address.replace("://", "://user:pass-word@") + "/x?signature=tell-nobody"
    done = fetched(url, tmp_path / "x", STRANGER, http_proxy="http://127.0.0.1:1/")
    assert done.returncode == 1  # a proxy of the environment would be asked: nobody gives one
    assert b"pass-word" not in done.stderr
    assert b"tell-nobody" not in done.stderr
    assert fetched(address + "/x?signature=tell-nobody", tmp_path / "x", STRANGER).returncode == 0
    assert set(seen.uids) == {STRANGER.uid}
    assert seen.words
    assert not any(b"tell-nobody" in words for words in seen.words)
    assert shown_url("https://a:b@host/p/q?secret#more") == "https://host/p/q"


# ---- through a pool


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=1)
        yield made
        made.stop()


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_jobs_file_url_is_read_by_its_shadow(pool: PersonalPool, spelling: str) -> None:
    """The file says who read it: the owner's own process at home, and never one of the execute machine's."""
    name = f"who{SPELLINGS.index(spelling)}"
    pool.submit("executable = /bin/cat\ntransfer_executable = false\narguments = cmdline\nshould_transfer_files = YES\n"
                f"output = {name}.out\nlog = {name}.log\n"
                f"transfer_input_files = {spelling.format('proc/self/cmdline')}\nqueue\n")
    pool.wait(f"{name}.log")
    reader = (pool.work / f"{name}.out").read_bytes()
    assert b"shadow-host" in reader
    assert b"starter-host" not in reader


@needs_root
def test_a_pool_fetches_as_the_job(pool: PersonalPool, server: tuple[str, Seen]) -> None:
    address, seen = server
    pool.submit("executable = /bin/cat\ntransfer_executable = false\narguments = x\noutput = web.out\nlog = web.log\n"
                f"should_transfer_files = YES\ntransfer_input_files = {address}/x?key=tell-nobody\nqueue\n")
    pool.wait("web.log")
    assert (pool.work / "web.out").read_text() == "from the web\n"
    assert 0 not in seen.uids
    assert seen.words
    assert not any(b"tell-nobody" in words for words in seen.words)
    for environment in seen.environments:
        names = [part.partition(b"=")[0] for part in environment.split(b"\0") if part]
        assert names == [b"_CONDOR_RUN_MARK"], environment


def test_a_file_url_is_read_at_home(tmp_path: Path) -> None:
    """What it names is the submit machine's, read with the rights of the job's owner."""
    (tmp_path / "book").write_text("text")
    ad = ClassAd.from_bytes(f'Cmd = "/bin/cat"\nTransferExecutable = false\nTransferInput = "FILE://{tmp_path}/book"\n'
                            .encode())
    (entry,) = input_manifest(ad, FileCache()).entries
    assert (entry.path, entry.inline, entry.url) == ("book", b"text", "")
    missing = ClassAd.from_bytes(b'Cmd = "x"\nTransferExecutable = false\nTransferInput = "File:///not/there"\n')
    with pytest.raises(FileTrouble, match="/not/there"):
        input_manifest(missing, FileCache())
