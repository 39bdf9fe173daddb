"""A stranger on the network, or a machine of the pool, with tokens: good, bad, stolen, revoked."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

from condor_actors.wire.idtokens.signed_token import read_claims
from tests.harness.namespaces import NEED_NAMESPACES, Machine
from tests.pool_fixture import until
from tests.security.conftest import AttackedPool
from tests.security.intruder import intrude

pytestmark = NEED_NAMESPACES


@pytest.fixture(scope="module")
def laptop(attacked: AttackedPool) -> Machine:
    """A machine that belongs to no pool, with the pool's CA certificate and nothing else."""
    made = attacked.wire.machine("laptop", f"COLLECTOR_HOST = {attacked.manager.address}:9618\n"
                                           "SEC_TOKEN_DIRECTORY = $(LOCAL_DIR)/tokens.d\n")
    folder = made.dir / "etc/pool"
    folder.mkdir(parents=True)
    shutil.copy(attacked.manager.dir / "etc/pool/ca.crt", folder / "ca.crt")
    return made


@contextmanager
def holding(laptop: Machine, token: str, mode: int = 0o600) -> Iterator[Path]:
    """The laptop with a token."""
    path = laptop.dir / "tokens.d" / "mine"
    path.parent.mkdir(exist_ok=True)
    path.touch(0o600)
    path.write_text(token)
    path.chmod(mode)
    try:
        yield path
    finally:
        path.unlink()


def made(attacked: AttackedPool, identity: str, *options: str) -> str:
    return attacked.manager.run("condor_token_create", "-identity", identity, *options).strip()


def whoami(laptop: Machine, attacked: AttackedPool, kind: str = "collector") -> str:
    where = ("-address", attacked.collector if kind == "collector" else attacked.node(attacked.submit, kind))
    done = laptop.tool("condor_ping", *where, "-table", "READ")
    return done.stdout + done.stderr


def test_nothing_is_let_in_without_a_token(laptop: Machine, attacked: AttackedPool) -> None:
    done = laptop.tool("condor_q", "-name", "submit.trio", "-pool", f"{attacked.manager.address}:9618")
    assert done.returncode != 0
    assert "neither a certificate of the pool nor a token" in done.stderr


def test_a_person_on_a_laptop_submits_and_looks(laptop: Machine, attacked: AttackedPool) -> None:
    """The submit machine has no signing key: it asks the collector, and never sees a signature."""
    assert not list((attacked.submit.dir / "etc").glob("passwords.d/*"))
    pool = ("-name", "submit.trio", "-pool", f"{attacked.manager.address}:9618")
    with holding(laptop, made(attacked, "games@trio")):
        assert "games@trio" in whoami(laptop, attacked)
        assert "games@trio" in whoami(laptop, attacked, "schedd")
        (laptop.work / "input").write_text("x")
        bare = laptop.tool("condor_submit", *pool, stdin="executable = /bin/true\nqueue\n")
        assert (bare.returncode, bare.stdout) == (1, "")
        assert "is on submit.trio, which lacks the files of this machine" in bare.stderr
        assert "condor_submit -spool -name submit.trio sends them along" in bare.stderr
        laptop.run("condor_submit", "-spool", "-remote", "submit.trio", pool[2], pool[3], stdin="""
            executable = /bin/cat
            transfer_executable = false
            arguments = input
            transfer_input_files = input
            requirements = false
            queue
            """)
        owners = laptop.run("condor_q", *pool, "-af", "Owner", "User").split()
    assert owners == ["games", "games@trio"]


def test_a_scope_is_a_limit(laptop: Machine, attacked: AttackedPool) -> None:
    with holding(laptop, made(attacked, "games@trio", "-authz", "READ")):
        pool = ("-name", "submit.trio", "-pool", f"{attacked.manager.address}:9618")
        laptop.run("condor_q", *pool)
        done = laptop.tool("condor_submit", "-spool", "-remote", "submit.trio", *pool[2:],
                           stdin="executable = /bin/true\nqueue\n")
        assert done.returncode != 0
        assert "WRITE" in done.stdout + done.stderr


def test_bad_tokens_are_refused_with_the_reason(laptop: Machine, attacked: AttackedPool) -> None:
    good = made(attacked, "games@trio")
    cases = {
        "signature": good[:-4] + ("AAAA" if not good.endswith("AAAA") else "BBBB"),
        "run out": made(attacked, "games@trio", "-lifetime", "1"),
        "with a key of POOL": signed_elsewhere(attacked, "games@trio", "OTHER"),
        "tokens of trio": signed_elsewhere(attacked, "games@trio", "POOL", issuer="elsewhere"),
    }
    until(lambda: "run out" in show(laptop, attacked, cases["run out"]), "the token to run out")
    for reason, token in cases.items():
        said = show(laptop, attacked, token)
        assert reason in said, (reason, said)
        assert "games@trio" not in said.replace(reason, ""), said
    log = (attacked.manager.dir / "log" / "CollectorLog").read_text()
    assert "a token from" in log
    assert "signature is wrong" in log


def signed_elsewhere(attacked: AttackedPool, identity: str, key: str, issuer: str = "trio") -> str:
    """A token signed with a key that the pool does not have, or for another pool."""
    from condor_actors.wire.idtokens.signed_token import sign

    return sign(b"guess" * 20, key, issuer, identity, now_s=1_700_000_000.0)


def show(laptop: Machine, attacked: AttackedPool, token: str) -> str:
    with holding(laptop, token):
        return whoami(laptop, attacked)


def test_a_token_that_others_can_read_is_not_used(laptop: Machine, attacked: AttackedPool) -> None:
    with holding(laptop, made(attacked, "games@trio"), 0o644):
        said = whoami(laptop, attacked)
    assert "chmod 600" in said
    assert "games@trio" not in said


def test_a_token_is_not_sent_to_somebody_elses_machine(laptop: Machine, attacked: AttackedPool) -> None:
    """Not even a proof leaves for a host whose certificate is not of the pool."""
    listener = subprocess.Popen(attacked.evil.command("python", "-c", """
import socket, ssl, subprocess, sys
subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                "k.pem", "-out", "c.pem", "-days", "1", "-subj", "/CN=evil", "-addext",
                "subjectAltName=IP:" + sys.argv[1]], check=True, capture_output=True)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("c.pem", "k.pem")
with socket.create_server((sys.argv[1], 7777)) as server:
    print("listening", flush=True)
    plain, _ = server.accept()
    try:
        print("got", context.wrap_socket(plain, server_side=True).recv(100), flush=True)
    except OSError as error:
        print("nothing", flush=True)
""", attacked.evil.address), cwd=attacked.evil.work, stdout=subprocess.PIPE, text=True, env=attacked.evil.environment)
    assert listener.stdout is not None
    assert listener.stdout.readline() == "listening\n"
    with holding(laptop, made(attacked, "games@trio")):
        done = laptop.tool("condor_ping", "-address", f"<{attacked.evil.address}:7777>")
    assert done.returncode != 0
    assert listener.communicate()[0] in ("nothing\n", "got b''\n")


def test_a_machine_of_the_pool_relays_what_it_is_shown(laptop: Machine, attacked: AttackedPool) -> None:
    """The proof of one link is worth nothing on another: the machine in the middle has another certificate."""
    answer = intrude(attacked.evil, """
        import json, ssl
        from condor_actors.wire.blocking import connect_tls
        from condor_actors.wire.idtokens.bearer import TokenCredentials, _line
        from condor_actors.wire.idtokens.exchange import show
        evil = Intruder.enrolled(token, "relay.trio")
        guest = TokenCredentials(ca=str(evil.files.ca), tokens={})
        with connect_tls(tls_node(collector), guest, 20.0) as connection:
            connection.sendall(b"condor token 1\\n")
            offer = _line(connection, collector)
            own = ssl.PEM_cert_to_DER_cert(evil.files.host.read_text().split("-----END CERTIFICATE-----")[0]
                                           + "-----END CERTIFICATE-----\\n")
            connection.sendall(show(persons, offer, own))  # what the person says to evil, who relays the offer
            result = json.loads(_line(connection, collector))
        """, token=attacked.token(), collector=attacked.collector, persons=made(attacked, "root@trio"))
    assert "signature" in answer.get("error", ""), answer


def test_a_machine_fetches_tokens_for_itself_and_others(attacked: AttackedPool) -> None:
    answers = intrude(attacked.evil, """
        from condor_actors.messages.tokens import (ApproveTokenRequest, FetchToken, QueryTokenRequests, RevokeTokens,
                                                   VerifyToken)
        evil = Intruder.enrolled(token, "fetcher.trio")
        with evil.client(collector) as client:
            result = [said(client, "tokens", FetchToken()),
                      said(client, "tokens", ApproveTokenRequest(request_id="0")),
                      said(client, "tokens", RevokeTokens(expressions=("true",))),
                      said(client, "tokens", VerifyToken(token="x.y", proof=b"", binding=b""))]
            result.append([each.identity for each in client.ask("tokens", QueryTokenRequests()).requests])
        """, token=attacked.token(), collector=attacked.collector)
    assert [answer.partition(":")[0] for answer in answers[:4]] == ["denied", "not-found", "denied", "denied"]
    assert answers[4] == []


def test_a_request_waits_for_somebody_who_may_decide(laptop: Machine, attacked: AttackedPool) -> None:
    asking = subprocess.Popen(laptop.command("condor_token_request", "-identity", "games@trio", "-authz", "READ",
                                             "-lifetime", "3600", "-token", "asked"),
                              env=laptop.environment, cwd=laptop.work, stderr=subprocess.PIPE, text=True)
    manager = attacked.manager
    listed = until(lambda: manager.run("condor_token_request_list"), "the request")
    assert 'RequestedIdentity = "games@trio"' in listed
    assert laptop.address in listed
    number = next(line.split('"')[1] for line in listed.splitlines() if line.startswith("RequestId"))
    # another user of the manager sees it not, and decides it not
    stranger = ("setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups")
    tool = [*stranger, *Machine.__mro__[1].command(manager, "condor_token_request_approve"), "-reqid", number, "-yes"]
    done = manager.tool(*tool)
    assert done.returncode != 0, done.stdout
    manager.run("condor_token_request_approve", "-reqid", number, "-yes")
    said = asking.communicate(timeout=30)[1]
    assert asking.returncode == 0, said
    assert "games@trio" in whoami(laptop, attacked)
    assert 'scope":"condor:/READ' in laptop.run("condor_token_list")
    (laptop.dir / "tokens.d" / "asked").unlink()


def test_a_request_that_cannot_be_shown_hides_no_other(laptop: Machine, attacked: AttackedPool) -> None:
    """An identity of half letters, from nobody: it could be put into no answer, and so no request could be listed."""
    manager = attacked.manager
    log = manager.dir / "log" / "CollectorLog"
    told = log.read_text(errors="replace").count("Traceback")
    asking = [subprocess.Popen(laptop.command("condor_token_request", "-identity", name, "-lifetime", "3600"),
                               env=laptop.environment, cwd=laptop.work, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True, errors="replace")
              for name in ("\udcff@trio", "games@trio")]
    try:
        until(lambda: "games@trio" in manager.tool("condor_token_request_list").stdout, "the honest one to be listed")
        said = asking[0].communicate(timeout=60)[1]
        assert "is no identity" in said, said
    finally:
        for each in asking:
            each.kill()
            each.communicate()
    assert log.read_text(errors="replace").count("Traceback") == told


def test_a_rule_approves_new_daemons_of_a_network_and_nobody_else(laptop: Machine, attacked: AttackedPool) -> None:
    manager = attacked.manager
    asked = ("-identity", "condor@trio", "-authz", "ADVERTISE_STARTD", "-lifetime", "3600")
    with holding(laptop, made(attacked, "games@trio")):  # no administrator makes no rule
        done = laptop.tool("condor_token_request_auto_approve", "-netblock", "0.0.0.0/0", "-lifetime", "60",
                           "-pool", f"{manager.address}:9618")
        assert done.returncode != 0
    said = manager.run("condor_token_request_auto_approve", "-netblock", f"{laptop.address}/32", "-lifetime", "100000")
    assert "with lifetime of 1.00 hours" in said
    assert "no un-approved requests" in said
    token = laptop.run("condor_token_request", *asked).strip().splitlines()[-1]
    claims = read_claims(token.rpartition(".")[0])
    assert (claims.subject, claims.levels) == ("condor@trio", {"ADVERTISE_STARTD"})
    with holding(laptop, token):
        assert "ADVERTISE" not in whoami(laptop, attacked)  # it may not even look
    waiting = [subprocess.Popen(machine.command("condor_token_request", *words), env=machine.environment,
                                cwd=machine.work, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
               for machine, words in ((laptop, ("-identity", "root@trio", *asked[2:])),
                                      (laptop, (*asked[:2], "-authz", "ADMINISTRATOR")),
                                      (laptop, asked[:2]), (attacked.submit, asked))]
    try:
        until(lambda: manager.run("condor_token_request_list").count("RequestId") == 4, "four requests that wait")
        manager.run("condor_reconfig")
        waiting.append(subprocess.Popen(laptop.command("condor_token_request", *asked), env=laptop.environment,
                                        cwd=laptop.work, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
        until(lambda: manager.run("condor_token_request_list").count("RequestId") == 5, "another, without a rule")
        # a rule made now reaches back a minute: it takes the last one, and those of the submit machine not
        said = manager.run("condor_token_request_auto_approve", "-netblock", f"{laptop.address}/32", "-lifetime", "60")
        assert "4 un-approved requests" in said
        assert waiting[-1].communicate(timeout=30)[0].count(".") == 2
        assert [each.poll() for each in waiting[:4]] == [None] * 4
    finally:
        for each in waiting:
            each.kill()
            each.communicate()


def test_a_local_user_fetches_a_token_in_his_own_name_only(laptop: Machine, attacked: AttackedPool) -> None:
    manager = attacked.manager
    stranger = ("setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups")
    token = manager.run(*stranger, *Machine.__mro__[1].command(manager, "condor_token_fetch")).strip()
    with holding(laptop, token):
        assert "uid54321@trio" in whoami(laptop, attacked)
        done = laptop.tool("condor_token_fetch", "-pool", f"{manager.address}:9618")
        assert "not given for a token" in done.stderr
    done = manager.tool(*stranger, *Machine.__mro__[1].command(manager, "condor_token_create"), "-identity",
                        "root@trio")
    assert done.returncode != 0
    done = manager.tool(*stranger, *Machine.__mro__[1].command(manager, "condor_token_revoke"), "-expr", "true")
    assert done.returncode != 0


@attrs.frozen
class Held:
    """A connection that someone keeps."""

    process: subprocess.Popen[str]

    def ended(self) -> bool:
        return self.process.poll() is not None

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def hold(machine: Machine, node: str) -> Held:
    """A tool that connects with what the machine has, and waits until the daemon hangs up."""
    process = subprocess.Popen(machine.command("python", "-c", f"""
from condor_actors.tools.lib.contact import credentials, load
from condor_actors.wire.blocking import WireError, connect
client = connect({node!r}, credentials(load()))
print("in", flush=True)
try:
    client.receive(120.0)
except WireError as error:
    print(error, flush=True)
"""), env={**machine.environment, "PYTHONPATH": str(Path(__file__).parents[2])}, cwd=machine.work,
        stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    held = Held(process)
    if (said := process.stdout.readline()) != "in\n":
        held.close()
        raise AssertionError(f"not let in: {said}")
    return held


def test_a_revoked_token_is_cut_off_everywhere_within_a_minute(laptop: Machine, attacked: AttackedPool) -> None:
    token = made(attacked, "games@trio")
    with holding(laptop, token):
        lines = [hold(laptop, attacked.collector), hold(laptop, attacked.node(attacked.submit, "schedd"))]
        attacked.manager.run("condor_token_revoke", read_claims(token.rpartition(".")[0]).token_id)
        try:
            until(lambda: all(each.ended() for each in lines), "both links to be cut", 60.0)
        finally:
            for each in lines:
                each.close()
        assert "was revoked" in whoami(laptop, attacked)
        assert "was revoked" in whoami(laptop, attacked, "schedd")


def test_a_revoked_machine_is_cut_off_everywhere_within_a_minute(attacked: AttackedPool) -> None:
    code = """
        import time
        evil = Intruder.enrolled(token, "revoked.trio")
        lines = [evil.client(collector), evil.client(schedd), evil.client(starter)]
        Path("enrolled").touch()
        began_s = time.monotonic()
        result = [tried(lambda line=line: line.receive(90.0)) for line in lines]
        took_s = time.monotonic() - began_s
        result = [took_s, result, tried(lambda: evil.client(collector)), tried(lambda: evil.client(schedd))]
        """
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(intrude, attacked.evil, code, token=attacked.token(), collector=attacked.collector,
                                schedd=attacked.node(attacked.submit, "schedd"),
                                starter=attacked.node(attacked.manager, "startd"))
        until((attacked.evil.work / "enrolled").exists, "the machine to be in")
        attacked.manager.run("condor_pool", "revoke", "revoked.trio")
        took_s, cut, collector, schedd = answer.result()
    assert took_s < 60.0
    assert all(each.startswith("LinkLost") for each in cut), cut
    assert collector != "in"
    assert schedd != "in"
