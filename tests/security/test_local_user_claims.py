"""A user plays shadow host: he has his own certificate, and whatever leaked of the claims of others."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.harness.proc_files import proc_file
from tests.pool_fixture import until
from tests.security.local_users import NEED_USERS, SharedPool, a_shared_pool

pytestmark = NEED_USERS

SLEEP = "executable = /bin/sleep\narguments = 600\ntransfer_executable = false\nlog = sleep.log\nqueue\n"
SHORT = "executable = /bin/true\ntransfer_executable = false\nlog = short.log\nkeep_claim_idle = 600\nqueue\n"


@pytest.fixture(scope="module")
def pool() -> Iterator[SharedPool]:
    """One for all tests of this module."""
    with a_shared_pool() as shared:
        yield shared


@pytest.fixture(scope="module")
def victim(pool: SharedPool) -> str:
    """A job of Alice's that runs."""
    cluster = pool.submit_as(pool.alice, SLEEP)
    until(lambda: pool.pids_of(pool.alice, "sleep 600"), "her job runs as she")
    return f"{cluster}.0"


ACTIVATE = """
from condor_actors.messages.run import ActivateClaim
from condor_actors.messages.interactive import *
job = (f'ClusterId = 1\\nProcId = 0\\nCmd = "/usr/bin/touch"\\nArguments = "{mark}"\\nOwner = "{owner}"\\n'
       f'User = "{user}"\\nIwd = "/"\\nTransferExecutable = false\\nShouldTransferFiles = "YES"\\nJobUniverse = 5\\n')
with tls_client(starter_node, paths) as client:
    result = said(client, "starter-host", ActivateClaim(
        claim_id=claim_id, secret=secret, run_id="77.0#1@forged", job_ad=job.encode()))
"""


def domain_of(pool: SharedPool, job: str) -> str:
    """The UID_DOMAIN."""
    return str(pool.jobs(job, "-attributes", "User")[0]["User"]).partition("@")[2]


def test_his_claim_runs_no_job_in_her_name(pool: SharedPool, victim: str) -> None:
    """He is a shadow of his own claim and knows its secret; the ad says that the job is hers."""
    mallory, alice = pool.mallory, pool.alice
    pool.submit_as(mallory, SHORT)
    pool.run_as(mallory, "condor_wait", "-wait", "60", "short.log")
    claim = attrs.asdict(pool.idle_claim(mallory))
    paths, domain = pool.certificate(mallory), domain_of(pool, victim)
    mark = str(alice.home / "was-here")
    for owner, user in ((alice.name, f"{alice.name}@{domain}"), (mallory.name, f"{alice.name}@{domain}"),
                        (alice.name, f"{mallory.name}@{domain}"), ("root", f"root@{domain}"),
                        (mallory.name, f"{mallory.name}@elsewhere")):
        answer = pool.attack(mallory, ACTIVATE, paths=paths, mark=mark, owner=owner, user=user, **claim)
        assert answer.startswith(f"bad-job: the claim is for jobs of {mallory.name}@"), answer
    assert not Path(mark).exists()


def test_her_claim_takes_no_shadow_of_his(pool: SharedPool, victim: str) -> None:
    """Someone told him the secret of her claim: as his shadow host, and as himself, he cannot use it."""
    alice, mallory = pool.alice, pool.mallory
    pool.submit_as(alice, SHORT)
    pool.run_as(alice, "condor_wait", "-wait", "60", "short.log")
    claim, domain = attrs.asdict(pool.idle_claim(alice)), domain_of(pool, victim)
    for role in ("shadow", "user"):
        answer = pool.attack(mallory, ACTIVATE, paths=pool.certificate(mallory, role), mark="/nowhere",
                             owner=alice.name, user=f"{alice.name}@{domain}", **claim)
        assert answer.startswith(f"denied: the claim is {alice.name}@{domain}'s"), answer


@pytest.mark.parametrize("role", ["shadow", "user"])
def test_he_says_things_about_her_run(pool: SharedPool, victim: str, role: str) -> None:
    """Names of runs can be guessed: a stranger neither looks into one, nor stops it, nor gets a shell in it."""
    run = pool.stolen(victim)
    answers = pool.attack(pool.mallory, """
        from condor_actors.messages.run import *
        from condor_actors.messages.interactive import *
        from condor_actors.messages.shadow_host import *
        messages = [
            ReadRunFile(run_id=run_id, path="_condor_stdout", offset=0, max_bytes=100),
            OpenShell(run_id=run_id, shell_id="x", terminal="xterm", rows=1, columns=1),
            StopRun(run_id=run_id, how="fast"), SuspendRun(run_id=run_id), ContinueRun(run_id=run_id),
            OutputsReceived(run_id=run_id), InputsSent(run_id=run_id), CheckpointRun(run_id=run_id)]
        with tls_client(starter_node, paths) as client:
            result = [said(client, f"starter/{run_id}", message) for message in messages]
            result.append(said(client, "starter-host", ReattachRun(claim_id=claim_id, run_id=run_id, secret=secret)))
    """, paths=pool.certificate(pool.mallory, role), **attrs.asdict(run))
    assert all(answer.startswith("denied: ") for answer in answers), answers
    assert len(pool.pids_of(pool.alice, "sleep 600")) == 1
    assert pool.status_of(victim) == 2


@pytest.mark.parametrize("name", ["1.0#1@vm\n11/29/26 00:00:00 ** forged", "../../etc/cron.d/x", "", "1.0#1@a b",
                                  "1.0#1@\0", "1.0#1@" + 100_000 * "x", "1.0", "-1.0#1@vm", "1.0#1.-2@vm"])
def test_he_calls_a_run_what_no_schedd_calls_one(pool: SharedPool, victim: str, name: str) -> None:
    """He has a claim and chooses the name of what he runs there."""
    mallory = pool.mallory
    pool.submit_as(mallory, SHORT)
    pool.run_as(mallory, "condor_wait", "-wait", "60", "short.log")
    unchecked = "import attrs\nattrs.validators.set_disabled(True)" + ACTIVATE.replace('"77.0#1@forged"', "name")
    answer = pool.attack(mallory, unchecked, paths=pool.certificate(mallory),
                         mark=str(mallory.home / "ran"), owner=mallory.name, name=name,
                         user=f"{mallory.name}@{domain_of(pool, victim)}", **attrs.asdict(pool.idle_claim(mallory)))
    assert answer.startswith("malformed: "), answer


@pytest.mark.parametrize("role", ["shadow", "user"])
def test_he_speaks_to_her_run_as_the_newer_messages_do(pool: SharedPool, victim: str, role: str) -> None:
    """To its starter, and to the schedd, as if he were its shadow, its starter or its shadow host."""
    run = pool.stolen(victim)
    answers = pool.attack(pool.mallory, """
        from condor_actors.messages.credentials import *
        from condor_actors.messages.interactive import *
        from condor_actors.messages.run import *
        from condor_actors.messages.shadow_host import *
        messages = [
            OpenPort(run_id=run_id, shell_id="x", port=22), ChirpCall(run_id=run_id, verb="get_job_attr", path="Cmd"),
            *(GangCall(run_id=run_id, verb=verb) for verb in GANG_CALLS), SignUploads(run_id=run_id, paths=("x",)),
            FetchRunTokens(run_id=run_id), FetchImageLogin(run_id=run_id)]
        with tls_client(starter_node, paths) as client:
            result = [said(client, f"starter/{run_id}", message) for message in messages]
        with unix_client(schedd) as client:
            for told in (SetJobAttributes(run_id=run_id, attributes=b'Mark = "his"\\n'),
                         NoticesWritten(notice_ids=(run_id,))):
                client.tell("schedd", told)
            asked = [FetchRunTokens(run_id=run_id), ChirpCall(run_id=run_id, verb="unlink", path="/etc/passwd")]
            refused = [said(client, "schedd", message) for message in asked]
        assert all(each.startswith("unknown-actor: ") for each in refused), refused
    """, paths=pool.certificate(pool.mallory, role), schedd=pool.socket("schedd"), **attrs.asdict(run))
    assert len(answers) == 13
    assert all(answer.startswith("denied: ") for answer in answers), answers
    assert "Mark" not in pool.jobs(victim)[0]


def test_he_says_hello_as_her_shadow_host(pool: SharedPool, victim: str) -> None:
    """With its real id, its pid or his own, and then hangs up: he gets no orders, and nobody is killed."""
    host = next(pid for pid in pool.pids_of(pool.alice, "shadow-host"))
    environ = dict(part.split("=", 1) for part in Path(f"/proc/{host}/environ").read_bytes().decode().split("\0")
                   if "=" in part)
    host_id = environ["_CONDOR_SHADOW_HOST_ID"]
    mine = pool.attack(pool.mallory, """
        import os
        from condor_actors.messages.run import *
        from condor_actors.messages.shadow_host import *
        from condor_actors.wire.blocking import TimedOut
        result = []
        for owner, pid in ((alice, host), (alice, os.getpid()), ("", host), ("", 1), (mallory, os.getpid())):
            with unix_client(schedd) as client:
                client.tell("schedd", ShadowHostHello(host_id=host_id, owner=owner, pid=pid, runs=(run_id,)))
                client.tell("schedd", RunEnded(run_id=run_id, outcome="removed", attributes=b""))
                client.tell("schedd", RunUpdated(run_id=run_id, attributes=b'Cmd = "/tmp/evil"\\n'))
                try:
                    result.append(type(client.receive(0.5)).__name__)
                except TimedOut:
                    result.append("nothing")
    """, schedd=pool.socket("schedd"), alice=pool.alice.name, mallory=pool.mallory.name, host=host, host_id=host_id,
        run_id=pool.stolen(victim).run_id)
    assert not set(mine) & {"HostOrders", "BecomeOwner", "StartRun"}, mine
    assert Path(f"/proc/{host}").exists(), "her shadow host lives"
    assert pool.status_of(victim) == 2
    assert pool.jobs(victim, "-attributes", "Cmd")[0]["Cmd"] == "/bin/sleep"


def test_host_ids_and_secrets_are_in_no_process_list(pool: SharedPool, victim: str) -> None:
    """What everybody can read of a process tells neither the id of a host nor the secret of a claim."""
    run = pool.stolen(victim)
    for pid, command in pool.processes().items():
        for entry in proc_file(pid, "environ").decode(errors="replace").split("\0"):
            if entry.startswith("_CONDOR_SHADOW_HOST_ID="):
                assert entry.partition("=")[2] not in command
        assert run.secret not in command


def test_he_names_the_digest_of_her_file(pool: SharedPool, victim: str) -> None:
    """He knows what it is called in the store, and is asked for its content, as if nobody had it."""
    secret = pool.alice.home / "secret.bin"
    secret.write_bytes(os.urandom(200_000))
    os.chown(secret, pool.alice.uid, pool.alice.gid)
    secret.chmod(0o600)
    pool.submit_as(pool.alice, "executable = /bin/true\ntransfer_executable = false\nlog = blob.log\n"
                               "transfer_input_files = secret.bin\nshould_transfer_files = YES\nqueue\n")
    pool.run_as(pool.alice, "condor_wait", "-wait", "60", "blob.log")
    digest = hashlib.sha256(secret.read_bytes()).hexdigest()
    assert list(pool.dir.rglob(digest)), "it is in the store"
    pool.submit_as(pool.mallory, SHORT)
    pool.run_as(pool.mallory, "condor_wait", "-wait", "60", "short.log")
    mine = pool.idle_claim(pool.mallory)
    claim = attrs.asdict(mine)
    missing = pool.attack(pool.mallory, """
        from condor_actors.messages.manifest import FileEntry
        from condor_actors.messages.run import ActivateClaim
        job = (f'ClusterId = 1\\nProcId = 0\\nCmd = "/bin/cat"\\nArguments = "secret.bin"\\nOut = "out"\\nIwd = "/"\\n'
               'TransferExecutable = false\\nShouldTransferFiles = "YES"\\nJobUniverse = 5\\n')
        entry = FileEntry(path="secret.bin", size_bytes=200000, digest=digest)
        with tls_client(starter_node, paths) as client:
            answer = client.ask("starter-host", ActivateClaim(
                claim_id=claim_id, secret=secret, run_id="78.0#1@forged", job_ad=job.encode(), inputs=(entry,)))
        result = list(answer.missing)
    """, paths=pool.certificate(pool.mallory), digest=digest, **claim)
    assert missing == [digest]
