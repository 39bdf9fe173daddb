"""Files on their way: streams, inputs from a web server, and deaths while large outputs come home."""

from __future__ import annotations

import hashlib
import http.server
import os
import signal
import ssl
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.pool_fixture import PersonalPool, open_to_jobs, until

LARGE_BYTES = 192 << 20


def test_output_and_error_come_while_the_job_runs(pool: PersonalPool) -> None:
    pipe = pool.work / "stream.pipe"
    os.mkfifo(pipe)
    open_to_jobs(pipe)
    program = pool.work / "stream.sh"
    program.write_text(f"#!/bin/sh\necho first\necho trouble >&2\nread line < {pipe}\necho $line\n")
    program.chmod(0o755)
    cluster = pool.submit(f"executable = {program}\nshould_transfer_files = YES\nstream_output = true\n"
                          "stream_error = true\noutput = stream.out\nerror = stream.err\nlog = stream.log\nqueue\n")
    out, err = pool.work / "stream.out", pool.work / "stream.err"
    until(lambda: out.exists() and out.read_text() == "first\n", "the first line at home")
    until(lambda: err.exists() and err.read_text() == "trouble\n", "the error at home")
    assert pool.status_of(f"{cluster}.0") == 2
    pipe.write_text("second\n")
    pool.wait("stream.log")
    assert out.read_text() == "first\nsecond\n"
    assert err.read_text() == "trouble\n"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, and says nothing."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Nothing."""


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder and the address at which it is served."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield tmp_path, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_inputs_come_from_a_web_server(pool: PersonalPool, web: tuple[Path, str]) -> None:
    folder, address = web
    (folder / "small").write_text("from the web\n")
    (folder / "large").write_bytes(os.urandom(3 << 20))
    digest = hashlib.sha256((folder / "large").read_bytes()).hexdigest()
    program = pool.work / "web.sh"
    program.write_text("#!/bin/sh\ncat small\nsha256sum < large\n")
    program.chmod(0o755)
    pool.submit(f"executable = {program}\nshould_transfer_files = YES\noutput = web.out\nlog = web.log\n"
                f"transfer_input_files = {address}/small, {address}/large\nqueue\n")
    pool.wait("web.log")
    assert (pool.work / "web.out").read_text() == f"from the web\n{digest}  -\n"


@pytest.mark.parametrize(("path", "why"), [("/nothing", "404"), (":1/x", "")])
def test_what_the_web_does_not_have_holds_the_job(pool: PersonalPool, web: tuple[Path, str], path: str,
                                                  why: str) -> None:
    address = f"http://127.0.0.1{path}" if path.startswith(":") else f"{web[1]}{path}"
    cluster = pool.submit("executable = /bin/true\nshould_transfer_files = YES\n"
                          f"transfer_input_files = {address}\nqueue\n")
    pool.until_status(f"{cluster}.0", 5)
    (job,) = pool.jobs(str(cluster))
    assert job["HoldReasonCode"] == 13
    assert address in job["HoldReason"]
    assert why in job["HoldReason"]
    pool.run("condor_rm", str(cluster))


def test_a_web_server_that_nobody_vouches_for_is_not_believed(pool: PersonalPool) -> None:
    """https goes with the machine's certificates: one that signed itself is refused, and the reason says so."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    host = pool.dir / "etc" / "pool"
    found = [path for path in (host, pool.dir / "pool") if (path / "host.crt").exists()]
    if not found:
        found = [path.parent for path in pool.dir.rglob("host.crt")]
    context.load_cert_chain(str(found[0] / "host.crt"), str(found[0] / "host.key"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        address = f"https://127.0.0.1:{server.server_port}/x"
        cluster = pool.submit("executable = /bin/true\nshould_transfer_files = YES\n"
                              f"transfer_input_files = {address}\nqueue\n")
        pool.until_status(f"{cluster}.0", 5)
        (job,) = pool.jobs(str(cluster))
        assert "certificate" in job["HoldReason"].lower()
        pool.run("condor_rm", str(cluster))
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("victim", ["starter-host", "schedd", "shadow-host"])
def test_a_death_while_the_output_comes_home(own_pool: PersonalPool, victim: str) -> None:
    pool = own_pool
    program = pool.work / "large.sh"
    program.write_text("#!/bin/sh\n"
                       f"head -c {LARGE_BYTES} /dev/zero | tr '\\0' 'x' > large\necho done\n")
    program.chmod(0o755)
    cluster = pool.submit(f"executable = {program}\nshould_transfer_files = YES\noutput = out\nlog = job.log\n"
                          "request_disk = 1GB\nqueue\n")
    log = pool.work / "job.log"
    until(lambda: log.exists() and "Started transferring output files" in log.read_text(), "the output on its way")
    if victim == "shadow-host":
        hosts = [pid for pid, command in pool.processes().items() if "condor_actors.services shadow-host" in command]
        for pid in hosts:
            os.kill(pid, signal.SIGKILL)
    else:
        pool.kill(victim)
    pool.wait("job.log")
    until(lambda: len(pool.history(str(cluster))) == 1, "the job in the history")
    (job,) = pool.history(str(cluster))
    assert (job["JobStatus"], job["ExitCode"]) == (4, 0)
    assert (pool.work / "out").read_text() == "done\n"
    assert (pool.work / "large").stat().st_size == LARGE_BYTES
    with (pool.work / "large").open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == hashlib.sha256(b"x" * LARGE_BYTES).hexdigest()
    assert log.read_text().count("\n005 (") == 1
    assert not [path.name for path in pool.work.iterdir() if path.name.startswith(".")], "nothing half-written stays"
    until(lambda: not pool.scratch() or None, "scratch directories freed")


def test_jobs_that_bring_an_equal_file_to_one_place_do_not_meet(pool: PersonalPool) -> None:
    """Each writes beside the place under a name of its own; the last one's file is there, whole."""
    program = pool.work / "equal.sh"
    program.write_text("#!/bin/sh\nhead -c 300000 /dev/zero > equal.bin\nhead -c 2000 /dev/zero > small.bin\n")
    program.chmod(0o755)
    cluster = pool.submit(f"executable = {program}\nshould_transfer_files = YES\nlog = equal.log\n"
                          "transfer_output_files = equal.bin, small.bin\nqueue 40\n")
    pool.wait("equal.log")
    assert pool.jobs(str(cluster)) == []
    assert (pool.work / "equal.bin").read_bytes() == bytes(300000)
    assert [path.name for path in pool.work.iterdir() if path.name.endswith(".part")] == []
