"""Two pools and their gateways with a job of one at work in the other, looked into by its owner: what the machines of
both write, show and pass on has no secret; and when the trust ends, so does all of it.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

from condor_actors.wire.idtokens.signed_token import read_claims
from tests.harness.federation import Federation, a_federation
from tests.harness.namespaces import NEED_NAMESPACES, Machine
from tests.harness.proc_files import command_lines, proc_file
from tests.harness.what_is_secret import HOLD_SECRETS, leaks, secrets_below
from tests.pool_fixture import until

pytestmark = NEED_NAMESPACES

LOUD = "ALL_DEBUG = D_FULLDEBUG\nMAX_DEFAULT_LOG = 100 Mb\nNUM_CPUS = 3\n"
ENVIRONMENT = "planted-in-the-environment-of-a-job"
URL = {"password in a URL": b"planted-password-of-a-url", "query of a URL": b"planted-in-the-query-of-a-url"}
COMMON = f"""transfer_executable = false
should_transfer_files = yes
environment = "TOKEN={ENVIRONMENT}"
"""
LONG = f"""executable = /bin/sh
arguments = "-c 'echo at it; while [ ! -e stop ]; do sleep 0.2; done'"
output = out
log = job.log
{COMMON}queue
"""
SERVER = """import socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
connection, _ = server.accept()
with connection:
    while data := connection.recv(100):
        connection.sendall(data)
print("left alone", flush=True)
while True:
    server.accept()
"""
"""A job that talks with one client."""
SERVED = f"""executable = /usr/bin/python3
arguments = server.py
transfer_input_files = server.py
output = out
{COMMON}queue
"""
CLIENT = """import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    connection.sendall(b"answered")
    while data := connection.recv(100):
        print(data.decode(), flush=True)
print("cut", flush=True)
"""
MISSING = f"""executable = /bin/true
transfer_input_files = http://u:planted-password-of-a-url@127.0.0.1:9/x?sig=planted-in-the-query-of-a-url
log = missing.log
{COMMON}queue
"""


@attrs.define(eq=False)
class Session:
    """A command that is kept open, and what it has said."""

    process: subprocess.Popen[bytes]
    said: Path

    def text(self) -> str:
        return self.said.read_text(errors="replace")

    def type(self, text: str) -> None:
        """What its user types."""
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def has_ended(self) -> bool:
        return self.process.poll() is not None


@contextmanager
def session(machine: Machine, name: str, *command: str) -> Iterator[Session]:
    """A command on a machine whose input stays open."""
    said = machine.work / name
    with said.open("wb") as output:
        process = subprocess.Popen(machine.command(*command), env=machine.environment, cwd=machine.work,
                                   stdin=subprocess.PIPE, stdout=output, stderr=output)
    try:
        yield Session(process, said)
    finally:
        process.kill()
        process.communicate()


@attrs.frozen
class Busy:
    """The pools, the job of math's that runs at physics, the shell in it, and a user's laptop with a token."""

    pools: Federation
    job: str
    shell: Session
    laptop: Machine
    token: str


@pytest.fixture(scope="module")
def busy() -> Iterator[Busy]:
    """Two pools that have done some work together and do more."""
    with a_federation(LOUD) as pools:
        math = pools.math
        token = math.run("condor_token_create", "-identity", "games@trio").strip()
        laptop = pools.inside.machine("laptop", f"COLLECTOR_HOST = {math.address}:9618\n"
                                                "SEC_TOKEN_DIRECTORY = $(LOCAL_DIR)/tokens.d\n")
        for path, text in ((laptop.dir / "etc/pool/ca.crt", (math.dir / "etc/pool/ca.crt").read_text()),
                           (laptop.dir / "tokens.d/mine", token)):
            path.parent.mkdir(parents=True)
            path.touch(0o600)
            path.write_text(text)
        until(lambda: "games@trio" in laptop.tool("condor_ping", "-type", "collector", "-table", "READ").stdout,
              "the token to count")
        until(lambda: "has dialled" in math.run("condor_flock", "status"), "the gateways to meet")
        held = f"{math.submit(MISSING)}.0"
        math.until_status(held, 5)
        job = f"{math.submit(LONG)}.0"
        until(lambda: "at it" in math.tool("condor_tail", job).stdout, "the job to be at it")
        with session(math, "shell.said", "condor_ssh_to_job", job, "echo in; cat") as shell:
            until(lambda: "in" in shell.text().split(), shell.text)
            yield Busy(pools, job, shell, laptop, token)


def processes_of(machine: Machine) -> dict[int, bytes]:
    """The command lines of a machine's daemons, shadow hosts and starter hosts."""
    found = {}
    for pid in machine.pids():
        line = proc_file(pid, "cmdline")
        if b"condor_actors.services" in line:
            found[pid] = line
    return found


def test_both_pools_are_at_work(busy: Busy) -> None:
    """What the other tests here look at."""
    pools = busy.pools
    assert str(pools.math.jobs(busy.job)[0]["RemoteHost"]).endswith("@physics.trio%physics")
    assert circuits(pools) > 0
    for machine in pools.machines():
        assert len(processes_of(machine)) >= 2, machine.processes()


def test_nothing_that_either_pool_or_gateway_wrote_or_shows_has_a_secret(busy: Busy) -> None:
    pools = busy.pools
    secrets = {"token": busy.token.encode(), "signature of the token": busy.token.rpartition(".")[2].encode(), **URL}
    places: dict[str, bytes] = {}
    for machine in pools.machines():
        secrets |= secrets_below(machine.dir)
        for path in machine.dir.rglob("*"):
            if path.is_file() and not HOLD_SECRETS.search(str(path)) and not path.name.endswith(".job.ad"):
                places[str(path)] = path.read_bytes()
    assert any(name.startswith("claim") and str(pools.math.dir) in name for name in secrets), secrets.keys()
    for manager in (pools.math, pools.physics):
        secrets[f"join token of {manager.name}"] = manager.run("condor_pool", "token").strip().encode()
    assert sum(name.endswith("host.key") for name in secrets) == len(pools.machines())
    for machine in (pools.math, pools.physics):
        for command in (("condor_status", "-l"), ("condor_status", "-any", "-l"), ("condor_config_val", "-dump"),
                        ("condor_userprio", "-all"), ("condor_flock", "status"), ("condor_flock", "report"),
                        ("condor_q", "-all", "-hold"), ("condor_who",)):
            done = machine.tool(*command)
            places[f"{machine.name}: {' '.join(command)}"] = (done.stdout + done.stderr).encode()
    asked = pools.math.tool("condor_status", "-pool", "physics", "-any", "-l")
    assert "physics.trio" in asked.stdout
    places["math of physics: condor_status"] = (asked.stdout + asked.stderr).encode()
    places |= {f"command line of {pid}": line for pid, line in command_lines()}
    for machine in pools.machines():
        for pid in processes_of(machine):
            places[f"environment of {pid}"] = proc_file(pid, "environ")
    assert len(places) > 100
    assert leaks(secrets, places) == set()


def test_the_jobs_environment_is_its_own(busy: Busy) -> None:
    """It is in its ad for its owner, in its process, and nowhere that others look."""
    pools, word = busy.pools, {"environment": ENVIRONMENT.encode()}
    places: dict[str, bytes] = {}
    for machine in pools.machines():
        logs = [path for path in (machine.dir / "log").rglob("*") if path.is_file()]
        assert logs
        places |= {str(path): path.read_bytes() for path in logs}
        for pid, line in processes_of(machine).items():
            places[f"command line of {pid}"] = line
            places[f"environment of {pid}"] = proc_file(pid, "environ")
    places |= {f"command line of {pid}": line for pid, line in command_lines()}
    for machine in (pools.math, pools.physics):
        places[f"ads at {machine.name}"] = machine.run("condor_status", "-any", "-l").encode()
    assert leaks(word, places) == set()


def test_no_daemon_of_either_pool_leaves_a_core_or_is_looked_into(busy: Busy) -> None:
    for machine in busy.pools.machines():
        for pid in processes_of(machine):
            assert os.stat(f"/proc/{pid}/environ").st_uid == 0, machine.name
            soft = next(line for line in Path(f"/proc/{pid}/limits").read_text().splitlines() if "core file" in line)
            assert soft.split()[4] == "0", (machine.name, soft)
        assert not [path for path in machine.dir.rglob("core*") if path.is_file() and path.suffix != ".log"]


def at_work(physics: Machine, word: str) -> list[str]:
    """The command lines with a word on the machine where jobs of math's run."""
    return [line for line in physics.processes() if word in line]


def circuits(pools: Federation) -> int:
    """How many connections the gateway of physics carries."""
    return sum(int(count) for count in
               re.findall(r"(\d+) connections now", pools.physics.run("condor_flock", "status")))


def stand_still(physics: Machine, word: str) -> list[int]:
    """The processes with a word on the command line that are stopped."""
    return [pid for pid in physics.pids() if word.encode() in proc_file(pid, "cmdline").replace(b"\0", b" ")
            and b"\nState:\tT" in proc_file(pid, "status")]


def test_a_revoked_token_ends_all_that_its_bearer_has_open(busy: Busy) -> None:
    """A shell, an interactive job's session and a forwarded port: at the laptop, on the way, and in the other pool."""
    pools, laptop, physics = busy.pools, busy.laptop, busy.pools.physics
    schedd = ("-name", "math.trio", "-pool", f"{pools.math.address}:9618")
    (laptop.work / "server.py").write_text(SERVER)
    (laptop.work / "interactive.sub").write_text(COMMON)
    laptop.run("condor_submit", "-spool", "-remote", *schedd[1:], stdin=SERVED)
    (ad,) = [ad for ad in pools.math.jobs() if ad["Owner"] == "games"]
    job = f"{ad['ClusterId']}.{ad['ProcId']}"
    port = until(lambda: laptop.tool("condor_tail", *schedd, job).stdout.partition("\n")[0], "the job's port")
    with session(laptop, "bearer.said", "condor_ssh_to_job", *schedd, job, "echo bearer; cat") as shell, \
            session(laptop, "port.said", "condor_ssh_to_job", *schedd, "-L", f"8125:{port}", job) as forwarder, \
            session(laptop, "interactive.said", "condor_submit", "-interactive", "-spool", *schedd,
                    "interactive.sub") as within:
        until(lambda: "bearer" in shell.text(), shell.text)
        until(lambda: "8125" in forwarder.text(), forwarder.text)
        with session(laptop, "client.said", "/usr/bin/python3", "-c", CLIENT, "8125") as client:
            until(lambda: "answered" in client.text(), client.text)
            until(lambda: "Waiting for job" in within.text() or within.has_ended(), within.text)
            within.type("echo inter''active; sleep 100001; echo $((1 + 1))\n")
            until(lambda: "interactive" in within.text() or within.has_ended(), within.text)
            for word in ("echo bearer", "sleep 100001"):
                assert at_work(physics, word), word
            assert stand_still(physics, "sleep 180")
            pools.math.run("condor_token_revoke", read_claims(busy.token.rpartition(".")[0]).token_id)
            for each in (shell, forwarder, within, client):
                until(each.has_ended, each.text, 120.0)
            assert "cut" in client.text()
        until(lambda: not at_work(physics, "echo bearer") and not at_work(physics, "sleep 100001"),
              "what ran for the bearer to end")
        until(lambda: "left alone" in pools.math.tool("condor_tail", job).stdout, "the port's connection to end")
        until(lambda: not stand_still(physics, "sleep 180"), "the interactive job to go on, to its end")
    assert "condor_rm" in within.text()  # with the token, the right to remove the job is gone
    assert "revoked" in laptop.tool("condor_ssh_to_job", *schedd, job, "echo again").stderr
    assert at_work(physics, "server.py")
    assert at_work(physics, "echo in")
    assert not busy.shell.has_ended()
    pools.math.run("condor_rm", "games")
    until(lambda: not at_work(physics, "server.py"), "the job to go")


def test_the_end_of_trust_ends_jobs_circuits_and_shells(busy: Busy) -> None:
    """On the side that ends it, whatever the other one does."""
    pools = busy.pools
    physics = pools.physics
    assert at_work(physics, "at it")
    assert at_work(physics, "echo in")
    assert circuits(pools) > 0
    physics.run("condor_flock", "revoke", "math")
    until(lambda: not at_work(physics, "at it") and not at_work(physics, "echo in"),
          lambda: f"the job and the shell in it to leave: {physics.processes()}", 120.0)
    until(busy.shell.has_ended, lambda: f"the shell's user at home to hear of it: {busy.shell.text()}", 120.0)
    until(lambda: "Claimed" not in physics.run("condor_status", "-af", "State"), "the machine to be free")
    until(lambda: circuits(pools) == 0, lambda: physics.run("condor_flock", "status"), 120.0)
    refused = pools.math.tool("condor_status", "-pool", "physics")
    assert refused.returncode != 0
    assert "physics.trio" not in refused.stdout
    # At home its run is out of touch, and would be waited for as long as its lease: also by a host without its schedd.
    for how in ((), ("-forcex",)):
        pools.math.tool("condor_rm", *how, busy.job)
    until(lambda: not pools.math.jobs(busy.job), "the job to leave the queue")
