"""Credentials in a real pool with a real OAuth2 server: stored, found after kill -9, given as tokens, never shown."""

from __future__ import annotations

import base64
import json
import os
import pwd
from collections.abc import Iterator

import attrs
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.harness.oauth_server import CLIENT, SECRET, OAuthServer
from tests.pool_fixture import PersonalPool, fresh_folder, until

LIFE_S = 6
STATIC = "static-token-0123456789abcdef"
ME = pwd.getpwuid(os.getuid()).pw_name


@attrs.frozen
class Pool:
    """A personal pool with a credential daemon, and its OAuth2 server."""

    pool: PersonalPool
    server: OAuthServer
    public_key: bytes

    def store(self, *words: str, content: str) -> str:
        return self.pool.run("condor_store_cred", "add-oauth", *words, "-i", "-", stdin=content)

    def refresh_token(self) -> str:
        """A fresh refresh token of the server's."""
        token = f"refresh-{len(self.server.validator.refresh)}-{os.urandom(8).hex()}"
        with self.server.validator.lock:
            self.server.validator.refresh[token] = ME
        return token


@pytest.fixture(scope="module")
def made() -> Iterator[Pool]:
    with fresh_folder() as folder, OAuthServer(folder, LIFE_S) as server:
        secret, key_file = folder / "client-secret", folder / "issuer.pem"
        secret.write_text(SECRET)
        key = ec.generate_private_key(ec.SECP256R1())
        key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                               serialization.NoEncryption()))
        for path in (secret, key_file):
            path.chmod(0o600)
        pool = PersonalPool(folder, slots=2, config=f"""
            DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD STARTD CREDD
            BOX_TOKEN_URL = {server.url}
            BOX_CLIENT_ID = {CLIENT}
            BOX_CLIENT_SECRET_FILE = {secret}
            CREDD_CA_FILE = {server.ca_file}
            LOCAL_CREDMON_PROVIDER_NAMES = scitokens
            LOCAL_CREDMON_PRIVATE_KEY = {key_file}
            LOCAL_CREDMON_TOKEN_AUDIENCE = https://a https://b
            LOCAL_CREDMON_TOKEN_LIFETIME = 4
        """)
        until((pool.dir / "run" / "credd.sock").exists, "the credential daemon")
        yield Pool(pool, server, key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo))
        pool.stop()


def test_a_refresh_token_becomes_access_tokens(made: Pool) -> None:
    original = made.refresh_token()
    said = made.store("-s", "Box", content=json.dumps({"refresh_token": original}))
    assert said == "The refresh token of box is stored.\n"
    first = json.loads(made.pool.run("htcondor", "credential", "get", "oauth2", "--service", "box"))
    assert 0 <= first["expires_in"] <= LIFE_S
    same = json.loads(made.pool.run("htcondor", "credential", "get", "oauth2", "--service", "box"))
    assert same["access_token"] == first["access_token"]  # it counts still
    given = [token for token, _ in made.server.validator.access]
    assert first["access_token"] in given
    # the server has replaced the refresh token, and the daemon has the new one also after kill -9
    made.pool.until_restarted("credd", made.pool.kill("credd"))
    until((made.pool.dir / "run" / "credd.sock").exists, "its socket")
    again = until(lambda: (done := made.pool.tool("htcondor", "credential", "get", "oauth2", "--service", "box"),
                           done.stdout)[1], "a token of the daemon that was started again")
    assert json.loads(again)["access_token"] not in given
    assert original in made.server.validator.used
    assert made.server.validator.used[-1] != original
    assert f"box: refresh token of {ME}@" in made.pool.run("condor_store_cred", "query", "-s", "box")


def test_tokens_of_the_pools_own(made: Pool) -> None:
    content = json.loads(made.pool.run("htcondor", "credential", "get", "oauth2", "--service", "scitokens"))
    claims = jwt.decode(content["access_token"], made.public_key.decode(), ["ES256"], audience="https://a",
                        options={"verify_exp": False})
    assert (claims["sub"], claims["scope"]) == (ME, f"read:/user/{ME} write:/user/{ME}")
    assert claims["exp"] - claims["iat"] == 4
    assert jwt.get_unverified_header(content["access_token"])["kid"] == "local"
    refused = made.pool.tool("condor_store_cred", "add-oauth", "-s", "scitokens", "-i", "-", stdin="x")
    assert (refused.returncode, "issued by this pool" in refused.stderr) == (1, True)


def test_an_access_token_goes_as_it_is(made: Pool) -> None:
    pool = made.pool
    assert made.store("-s", "gdrive", "-H", "mine", "-P", "-S", "read,list", content=STATIC + "\n") == (
        "The access token of gdrive*mine is stored.\n")
    get = ("htcondor", "credential", "get", "oauth2", "--service", "gdrive", "--handle", "mine")
    assert pool.run(*get) == STATIC + "\n"
    pool.run("condor_store_cred", "query-oauth", "-s", "gdrive", "-H", "mine", "-S", "list read")
    pool.run("condor_store_cred", "query-oauth", "-s", "gdrive", "-H", "mine", "-S", "write", expect=2)
    shown = pool.run("htcondor", "credential", "list")
    assert [word in shown for word in ("gdrive", "mine", "gdrive_mine.use", STATIC)] == [True, True, True, False]
    pool.run("condor_store_cred", "delete-oauth", "-s", "gdrive", "-H", "mine")
    pool.run("condor_store_cred", "query", "-s", "gdrive", "-H", "mine", expect=1)
    gone = pool.tool(*get)
    assert (gone.returncode, "store one: condor_store_cred add-oauth -s gdrive -H mine" in gone.stderr) == (1, True)


@pytest.mark.parametrize(("words", "content", "why"), [
    (("add-oauth", "-s", "nowhere", "-i", "-"), "refresh", "NOWHERE_TOKEN_URL"),
    (("add-oauth", "-s", "../x", "-i", "-"), "refresh", "no name of a service"),
    (("add-oauth", "-s", "box", "-i", "-"), "x" * 70_000, "more than 65536 bytes"),
    (("add-oauth", "-s", "box", "-i", "-"), "{oops", "JSON object"),
    (("add-oauth", "-s", "box"), "", "needs -i FILE"),
    (("add-oauth", "-s", "box", "-i", "/nonexistent/file"), "", "/nonexistent/file"),
    (("add-oauth", "-i", "-"), "x", "needs -s SERVICE"),
    (("add", "-p", "secret"), "", "Windows"),
    (("delete-oauth", "-s", "none"), "", "no credential of none"),
])
def test_what_is_refused_says_why(made: Pool, words: tuple[str, ...], content: str, why: str) -> None:
    done = made.pool.tool("condor_store_cred", *words, stdin=content)
    assert done.returncode == 1
    assert why in done.stderr
    assert "Traceback" not in done.stderr
    assert not content or content[:10] not in done.stderr or len(content) < 8


def test_a_refresh_token_that_counts_no_longer(made: Pool) -> None:
    made.store("-s", "box", "-H", "stale", content="refresh-that-was-revoked")
    done = made.pool.tool("htcondor", "credential", "get", "oauth2", "--service", "box", "--handle", "stale")
    assert done.returncode == 1
    assert "invalid_grant; store another: condor_store_cred add-oauth -s box -H stale -i FILE" in done.stderr


JOB = """#!/bin/sh
# says which tokens it has seen, and ends when it has seen another one of box
cd "$_CONDOR_CREDS" || exit 3
stat -c '%a %n' . *.use
token() { sed 's/.*"access_token": "\\([^"]*\\)".*/\\1/' box.use; }
first=$(token)
echo "first $(cat box.use)"
echo "own $(cat scitokens.use)"
until [ "$(token)" != "$first" ]; do sleep 0.2; done
echo "then $(cat box.use)"
ls -a
cp box.use ../kept-by-the-job
"""


def seen(pool: PersonalPool, name: str) -> dict[str, str]:
    """What the job said, by its first word."""
    lines = (pool.work / name).read_text().splitlines()
    return {word: rest for word, _, rest in (line.partition(" ") for line in lines)}


def test_a_job_sees_its_token_renewed(made: Pool) -> None:
    pool = made.pool
    made.store("-s", "box", content=made.refresh_token())
    script = pool.work / "job.sh"
    script.write_text(JOB)
    script.chmod(0o755)
    pool.submit("executable = job.sh\nlog = job.log\noutput = job.out\nerror = job.err\n"
                "should_transfer_files = YES\nuse_oauth_services = box, scitokens\n"
                "box_oauth_permissions = read\nqueue\n")
    pool.wait("job.log")
    said = seen(pool, "job.out")
    assert (pool.work / "job.err").read_text() == ""
    assert (said["700"], said["600"]) == (".", "scitokens.use")
    first, then = json.loads(said["first"])["access_token"], json.loads(said["then"])["access_token"]
    given = dict(made.server.validator.access)
    assert first != then
    assert given[first] == given[then] == "read"
    assert json.loads(said["own"])["expires_in"] <= 4
    ad = pool.history("-limit", "1")[0]
    assert ad["OAuthServicesNeeded"] == "box,scitokens"
    assert first not in json.dumps(ad)
    assert not (pool.work / ".condor_creds").exists()
    assert not (pool.work / "box.use").exists()


def test_a_job_that_goes_on_after_a_checkpoint_has_its_tokens(made: Pool) -> None:
    pool = made.pool
    script = pool.work / "twice.sh"
    script.write_text("#!/bin/sh\ntest -s $_CONDOR_CREDS/scitokens.use || exit 9\n"
                      "test -e saved && exit 0\necho 1 > saved\nexit 85\n")
    script.chmod(0o755)
    pool.submit("executable = twice.sh\nlog = twice.log\nshould_transfer_files = YES\ncheckpoint_exit_code = 85\n"
                "transfer_checkpoint_files = saved\nuse_oauth_services = scitokens\nqueue\n")
    pool.wait("twice.log")
    assert "return value 0" in (pool.work / "twice.log").read_text()


def test_tokens_are_never_sent_home(made: Pool) -> None:
    pool = made.pool
    pool.submit("shell = cat $_CONDOR_CREDS/scitokens.use > seen; test -s seen && echo yes > result\n"
                "log = home.log\nerror = home.err\nuse_oauth_services = scitokens\n"
                "should_transfer_files = YES\ntransfer_output_files = result, .condor_creds/scitokens.use\nqueue\n")
    until(lambda: pool.jobs("-hold"), "the job to be held")
    (ad,) = pool.jobs("-hold", "-attributes", "HoldReason,ClusterId")
    assert "scitokens.use" in ad["HoldReason"]
    assert not (pool.work / "scitokens.use").exists()
    pool.run("condor_rm", str(ad["ClusterId"]))


def test_without_a_credential_nothing_is_queued(made: Pool) -> None:
    pool = made.pool
    description = ("executable = /bin/true\ntransfer_executable = false\nlog = no.log\n"
                   "use_oauth_services = {}\n{}queue\n")
    for service, more, why in (
            ("gdrive", "gdrive_oauth_permissions_mine =\n", "condor_store_cred add-oauth -s gdrive -H mine -i FILE"),
            ("scitokens", "scitokens_oauth_permissions = read:/\n", "scitokens_oauth_permissions asks for read:/"),
            ("scitokens", "scitokens_oauth_resource = https://c\n", "the audiences that there are: https://a https://b")):
        done = pool.tool("condor_submit", stdin=description.format(service, more))
        assert done.returncode == 1
        assert why in done.stderr
    assert pool.jobs() == []


def test_a_credential_that_is_gone_holds_the_job(made: Pool) -> None:
    pool = made.pool
    made.store("-s", "gdrive", "-P", content=STATIC)
    cluster = pool.submit("executable = /bin/true\ntransfer_executable = false\nlog = gone.log\nhold = true\n"
                          "use_oauth_services = gdrive\nqueue\n")
    pool.run("condor_store_cred", "delete-oauth", "-s", "gdrive")
    pool.run("condor_release", str(cluster))
    until(lambda: [ad for ad in pool.jobs("-attributes", "HoldReasonCode,HoldReason") if ad.get("HoldReasonCode") == 4],
          "the job to be held for its credential")
    (ad,) = pool.jobs("-attributes", "HoldReasonCode,HoldReason")
    assert f"{ME}@" in ad["HoldReason"]
    assert "store one: condor_store_cred add-oauth -s gdrive -i FILE" in ad["HoldReason"]
    made.store("-s", "gdrive", "-P", content=STATIC)
    pool.run("condor_release", str(cluster))
    pool.wait("gone.log")


def test_nothing_that_is_written_down_holds_a_secret(made: Pool) -> None:
    """Last of the file: logs, audit logs, the database, sockets' folder."""
    refresh = made.refresh_token()
    made.store("-s", "box", "-H", "watched", content=refresh)
    token = json.loads(made.pool.run("htcondor", "credential", "get", "oauth2", "--service", "box",
                                     "--handle", "watched"))["access_token"]
    secrets = [refresh, token, STATIC, *made.server.validator.refresh, *made.server.validator.used, SECRET,
               *(token for token, _ in made.server.validator.access)]
    words = {word.encode() for secret in secrets for word in (secret, base64.b64encode(secret.encode()).decode())}
    files = [path for folder in ("log", "spool", "run") for path in (made.pool.dir / folder).rglob("*")
             if path.is_file()]
    assert [path.name for path in files if path.name.startswith("credentials.db")]
    found = [f"{path}" for path in files for word in words if word in path.read_bytes()]
    assert found == []
    audit = "\n".join(path.read_text() for path in (made.pool.dir / "log").glob("*AuditLog*"))
    assert "act=store-credential" in audit
    assert "service=box handle=watched" in audit
    assert "act=fetch-tokens" in audit
    assert "act=delete-credential" in audit
