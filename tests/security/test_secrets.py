"""Secrets of a busy pool are nowhere but where they belong: whatever it wrote, shows or passes on is searched."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from condor_actors.machine.privilege.secret_memory import keep_out_of_dumps
from tests.harness.proc_files import command_lines, proc_file
from tests.harness.what_is_secret import HOLD_SECRETS, leaks, secrets_below
from tests.pool_fixture import PersonalPool, fresh_folder, until

PLANTED = {"environment": "planted-in-the-jobs-environment", "url": "planted-in-a-url", "password": "planted-password"}


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(404 if self.path.startswith("/missing") else 200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"x\n")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def busy(web: str) -> Iterator[PersonalPool]:
    """A pool that has run, held, removed and refused jobs, and runs one."""
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=2, config="ALL_DEBUG = D_FULLDEBUG\nMAX_DEFAULT_LOG = 100 Mb\n")
        common = ("transfer_executable = false\nshould_transfer_files = YES\nlog = job.log\n"
                  f"environment = \"TOKEN={PLANTED['environment']}\"\n")
        pool.submit(f"executable = /bin/true\n{common}"
                    f"transfer_input_files = http://u:{PLANTED['password']}@{web}/x?sig={PLANTED['url']}\nqueue\n")
        pool.submit(f"executable = /no/such/program\n{common}queue\n")
        held = pool.submit(f"executable = /bin/true\n{common}"
                           f"transfer_input_files = http://u:{PLANTED['password']}@{web}/missing?sig={PLANTED['url']}\n"
                           "queue\n")
        pool.submit(f"executable = /bin/true\n{common}queue 5\n")
        pool.until_status(f"{held}.0", 5)
        running = pool.submit(f"executable = /bin/sleep\narguments = 1000\n{common}queue\n")
        pool.until_status(f"{running}.0", 2)
        yield pool
        pool.stop()


def secrets_of(pool: PersonalPool) -> dict[str, bytes]:
    """What is secret now: claims', keys', tokens'."""
    found = {f"planted {name}": text.encode() for name, text in PLANTED.items() if name != "environment"}
    found |= secrets_below(pool.dir)
    token = pool.tool("condor_pool", "token").stdout.strip()
    if token:
        found["join token"] = token.encode()
    return found


def test_nothing_written_shown_or_passed_on_has_a_secret(busy: PersonalPool) -> None:
    secrets = secrets_of(busy)
    assert any(name.startswith("claim") for name in secrets), secrets.keys()
    assert any(name.endswith("host.key") for name in secrets), secrets.keys()
    places: dict[str, bytes] = {}
    for top in (busy.dir, busy.work):
        for path in top.rglob("*"):
            if path.is_file() and not HOLD_SECRETS.search(str(path)):
                places[str(path)] = path.read_bytes()
    for pid, line in command_lines():
        places[f"command line of {pid}"] = line
        if str(busy.dir).encode() in line or b"condor" in line:
            places[f"environment of {pid}"] = proc_file(pid, "environ")
    for command in (("condor_status", "-l"), ("condor_status", "-any", "-l"), ("condor_config_val", "-dump"),
                    ("condor_who",), ("condor_userprio", "-all")):
        places[" ".join(command)] = busy.tool(*command).stdout.encode()
    assert len(places) > 20
    found = leaks(secrets, places)
    assert not {(name, place) for name, place in found if not (name.startswith("planted") and _is_the_jobs_own(place))}


def _is_the_jobs_own(place: str) -> bool:
    """The job's ad in its own scratch directory says what its owner wrote."""
    return place.endswith((".job.ad", "/job.ad"))


def test_what_a_job_is_told_stays_out_of_the_logs(busy: PersonalPool) -> None:
    """Its environment is in its ad, for its owner; no log and no daemon's command line has it."""
    word = PLANTED["environment"].encode()
    logs = [path for path in (busy.dir / "log").rglob("*") if path.is_file()]
    assert logs
    assert [str(path) for path in logs if word in path.read_bytes()] == []
    assert not any(word in line for _, line in command_lines())


def test_files_that_hold_secrets_are_for_the_pool_alone(busy: PersonalPool) -> None:
    open_to_others = [str(path) for path in busy.dir.rglob("*") if path.is_file() and path.stat().st_mode & 0o077
                      and re.search(r"\.key$|/tokens/|\.db$|claims$", str(path))
                      and not any(folder.stat().st_mode & 0o011 == 0 for folder in path.parents if busy.dir in
                                  (folder, *folder.parents))]
    assert open_to_others == []


@pytest.mark.skipif(os.geteuid() != 0, reason="daemons of an ordinary user may be looked into by that user")
def test_daemons_leave_no_core(busy: PersonalPool) -> None:
    """A daemon that is killed as if it had crashed leaves no memory behind, and only root looks into a living one."""
    daemons = busy.daemons()
    assert len(daemons) >= 4
    for name, pid in daemons.items():
        assert os.stat(f"/proc/{pid}/environ").st_uid == 0, name
        soft = next(line for line in Path(f"/proc/{pid}/limits").read_text().splitlines() if "core file" in line)
        assert soft.split()[4] == "0", (name, soft)
    code = (f"from {keep_out_of_dumps.__module__} import keep_out_of_dumps; import os, resource, signal; "
            "keep_out_of_dumps(); resource.setrlimit(resource.RLIMIT_CORE, (-1, -1)); "
            "os.kill(os.getpid(), signal.SIGSEGV)")
    limit = resource.getrlimit(resource.RLIMIT_CORE)
    died = subprocess.run([sys.executable, "-c", code], check=False)
    resource.setrlimit(resource.RLIMIT_CORE, limit)
    assert died.returncode == -signal.SIGSEGV
    until(lambda: not list(Path.cwd().glob("core*.*[0-9]")) or None, "no core")
