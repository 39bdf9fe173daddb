"""Inputs from URLs and outputs to them: web servers that the administrator vouches for, and object stores."""

from __future__ import annotations

import hashlib
import http.server
import threading
import time
from collections.abc import Iterator

import attrs
import pytest

from condor_actors.cores.object_store import AccessKeys, signed_url
from tests.harness.object_store import Store, object_store
from tests.pool_fixture import PersonalPool, fresh_folder, until

SECRET = "tell-nobody-this-secret"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with object_store(tmp_path_factory.mktemp("store")) as made:
        assert made.ask("PUT", "data") is not None
        yield made


@pytest.fixture(scope="module")
def pool(store: Store) -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        trusted = folder / "authorities.pem"
        trusted.write_bytes(store.authorities.read_bytes())
        made = PersonalPool(folder, slots=2, config=f"AUTH_SSL_CLIENT_CAFILE = {trusted}\n")
        for name, text in (("id", "AKEXAMPLE\n"), ("secret", f"{SECRET}\n")):
            (made.work / name).write_text(text)
        yield made
        made.stop()


KEYS = "s3_access_key_id_file = id\ns3_secret_access_key_file = secret\n"


def script(pool: PersonalPool, name: str, text: str) -> str:
    program = pool.work / name
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return f"executable = {program}\nlog = {name}.log\n"


def test_inputs_and_outputs_of_an_object_store(pool: PersonalPool, store: Store) -> None:
    """Small and large, there and back, a folder too; the keys are nowhere but at home."""
    large = bytes(range(256)) * 8192
    assert store.ask("PUT", "data/in/large", large) is not None
    pool.submit(script(pool, "objects", "sha256sum < large; mkdir folder; cp large folder/copy; echo small > small; "
                                        "echo kept > kept")
                + KEYS + f"transfer_input_files = s3://{store.where}/data/in/large\noutput = objects.out\n"
                "transfer_output_files = folder, small, kept\n"
                f'transfer_output_remaps = "folder = s3://{store.where}/data/out; '
                f'small = S3://{store.where}/data/other/name"\nqueue\n')
    pool.wait("objects.log")
    assert (pool.work / "objects.out").read_text() == f"{hashlib.sha256(large).hexdigest()}  -\n"
    assert store.ask("GET", "data/out/copy") == large
    assert store.ask("GET", "data/other/name") == b"small\n"
    assert (pool.work / "kept").read_text() == "kept\n"
    assert not (pool.work / "small").exists()
    assert not (pool.work / "folder").exists()
    for log in (pool.dir / "log").iterdir():
        if log.is_file():
            assert SECRET not in log.read_text(errors="replace"), log
            assert "X-Amz-Signature" not in log.read_text(errors="replace"), log


def test_all_output_to_one_place(pool: PersonalPool, store: Store) -> None:
    pool.submit(script(pool, "all", "echo one > one; echo two > two; echo said")
                + KEYS + f"output = all.out\noutput_destination = s3://{store.where}/data/all\nqueue\n")
    pool.wait("all.log")
    assert store.ask("GET", "data/all/one") == b"one\n"
    assert store.ask("GET", "data/all/two") == b"two\n"
    assert (pool.work / "all.out").read_text() == "said\n"
    assert not (pool.work / "one").exists()


def test_what_a_store_does_not_have_holds_the_job(pool: PersonalPool, store: Store) -> None:
    cluster = pool.submit(script(pool, "missing", "true") + KEYS
                          + f"transfer_input_files = s3://{store.where}/data/missing\nqueue\n")
    pool.until_status(f"{cluster}.0", 5)
    (job,) = pool.jobs(str(cluster))
    assert job["HoldReasonCode"] == 13
    assert f"https://{store.where}/data/missing: the server says 404" in job["HoldReason"]
    assert "Signature" not in job["HoldReason"]
    pool.run("condor_rm", str(cluster))


def test_keys_that_cannot_be_read_hold_the_job(pool: PersonalPool, store: Store) -> None:
    (pool.work / "gone").write_text("AK")
    cluster = pool.submit(script(pool, "unread", "true") + "hold = true\n" + KEYS.replace("= id", "= gone")
                          + f"transfer_input_files = s3://{store.where}/data/x\nqueue\n")
    (pool.work / "gone").unlink()
    pool.run("condor_release", str(cluster))
    pool.until_status(f"{cluster}.0", 5)
    until(lambda: pool.jobs(str(cluster))[0]["HoldReasonCode"] == 13, "the reason of the second hold")
    (job,) = pool.jobs(str(cluster))
    assert f"cannot read s3_access_key_id_file {pool.work}/gone: (errno 2)" in job["HoldReason"]
    pool.run("condor_rm", str(cluster))


# ---- web servers


@attrs.define
class Web:
    """A web server that takes files, and what it answers to each request; then 201."""

    address: str = ""
    answers: list[tuple[int, str]] = attrs.field(factory=list)
    got: dict[str, bytes] = attrs.field(factory=dict)
    users: list[str | None] = attrs.field(factory=list)
    begun: threading.Event = attrs.field(factory=threading.Event)
    go_on: threading.Event = attrs.field(factory=threading.Event)


@pytest.fixture
def web() -> Iterator[Web]:
    made = Web()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_PUT(self) -> None:  # noqa: N802 - its name there
            data = self.rfile.read(int(self.headers["Content-Length"]))
            made.users.append(self.headers["Authorization"])
            if self.path == "/slow":
                made.begun.set()
                made.go_on.wait(60)
            status, where = made.answers.pop(0) if made.answers else (201, "")
            if status < 300:
                made.got[self.path] = data
            self.send_response(status)
            if where:
                self.send_header("Location", where)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.go_on.set()
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_web_server_that_the_administrator_vouches_for_is_believed(pool: PersonalPool, store: Store) -> None:
    """https with an authority of one's own: AUTH_SSL_CLIENT_CAFILE names it."""
    assert store.ask("PUT", "data/book", b"from the library\n") is not None
    url = signed_url(f"s3://{store.where}/data/book", "GET", AccessKeys(key_id="A", secret="b"), time.time(), 600)
    pool.submit("executable = /bin/cat\ntransfer_executable = false\narguments = book\nlog = book.log\n"
                "output = book.out\n"
                f"should_transfer_files = YES\ntransfer_input_files = {url}\nqueue\n")
    pool.wait("book.log")
    assert (pool.work / "book.out").read_text() == "from the library\n"


def test_output_and_error_go_to_a_web_server(pool: PersonalPool, web: Web) -> None:
    web.answers = [(307, "/else?where"), (503, "")]
    address = web.address.replace("//", "//anna:pass%20word@")
    pool.submit(script(pool, "web", "echo said; echo wrong >&2; echo left > left")
                + f"output = {address}/out\nerror = {web.address}/err\nqueue\n")
    pool.wait("web.log")
    assert web.got == {"/out": b"said\n", "/err": b"wrong\n"}  # sent on, refused there, and once more from the start
    assert "Basic YW5uYTpwYXNzIHdvcmQ=" in web.users
    assert (pool.work / "left").read_text() == "left\n"
    assert "pass%20word" not in (pool.work / "web.log").read_text()


def test_a_server_that_refuses_holds_the_job(pool: PersonalPool, web: Web) -> None:
    web.answers = [(403, "")]
    cluster = pool.submit(script(pool, "refused", "echo x > x")
                          + f'transfer_output_remaps = "x = {web.address}/x?token=hidden"\nqueue\n')
    pool.until_status(f"{cluster}.0", 5)
    (job,) = pool.jobs(str(cluster))
    assert job["HoldReasonCode"] == 12
    assert f"x cannot be sent to {web.address}/x: the server says 403 Forbidden" in job["HoldReason"]
    assert "hidden" not in job["HoldReason"]
    pool.run("condor_rm", str(cluster))


def test_a_job_that_is_removed_sends_no_more(pool: PersonalPool, web: Web) -> None:
    cluster = pool.submit(script(pool, "slow", "echo x > x")
                          + f'transfer_output_remaps = "x = {web.address}/slow"\nqueue\n')
    assert web.begun.wait(60)
    pool.run("condor_rm", str(cluster))
    until(lambda: not pool.jobs(str(cluster)), "the job is gone")
    until(lambda: not [path for path in (pool.dir / "execute").iterdir() if path.name.startswith("dir_")],
          "its scratch directory is gone")


def test_what_a_job_of_another_universe_cannot_have_is_refused(pool: PersonalPool) -> None:
    done = pool.tool("condor_submit", stdin="universe = scheduler\nexecutable = /bin/true\n"
                    "output = http://127.0.0.1:1/x\nqueue\n")
    assert "jobs of this universe are not run by a starter that sends it" in done.stderr
