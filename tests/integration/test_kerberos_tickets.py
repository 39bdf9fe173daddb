"""Kerberos tickets in a real pool with a real server: stored, renewed, given to jobs, refused once they have ended."""

from __future__ import annotations

import base64
import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from condor_actors.cores.credd.tickets import Ticket, read_cache
from tests.harness.kdc import SERVICE, USER, Kdc
from tests.pool_fixture import PersonalPool, fresh_folder, until

LIFE_S, RENEWABLE_S = 8, 600
ME = pwd.getpwuid(os.getuid()).pw_name


@attrs.frozen
class Pool:
    """A personal pool with a credential daemon, and its Kerberos server."""

    pool: PersonalPool
    kdc: Kdc

    def store(self, cache: Path) -> str:
        return self.pool.run("condor_store_cred", "add-krb", "-i", str(cache))

    def ticket(self) -> Ticket | None:
        """What a job would get now; None: nothing."""
        done = self.pool.tool("htcondor", "credential", "get", "kerberos")
        return read_cache(base64.b64decode(done.stdout), 0.0) if done.returncode == 0 else None


@pytest.fixture(scope="module")
def made() -> Iterator[Pool]:
    with fresh_folder() as folder, Kdc(folder) as kdc:
        pool = PersonalPool(folder, slots=2, config=f"""
            DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD STARTD CREDD
            CREDD_KRB5_CONFIG = {kdc.configuration}
        """)
        until((pool.dir / "run" / "credd.sock").exists, "the credential daemon")
        yield Pool(pool, kdc)
        pool.stop()


JOB = f"""#!/bin/sh
# shows its ticket, has one of a service by it, and ends when it has seen another
stat -c '%a %n' "${{KRB5CCNAME#FILE:}}"
expires() {{ klist 2>&1 | awk '/krbtgt/ {{ print $4 }}'; }}
klist
first=$(expires)
until [ "$(expires)" != "$first" ]; do sleep 0.2; done
echo again
klist
kvno {SERVICE}
"""


def test_a_job_sees_its_ticket_renewed(made: Pool) -> None:
    pool = made.pool
    cache = made.kdc.ticket("renewed.cc", life_s=LIFE_S, renewable_s=RENEWABLE_S)
    made.kdc.with_service(cache)
    said = made.store(cache)
    assert said.startswith(f"The Kerberos ticket of {USER} is stored; it is renewed until ")
    script = pool.work / "job.sh"
    script.write_text(JOB)
    script.chmod(0o755)
    cluster = pool.submit(
        "executable = job.sh\nlog = job.log\noutput = job.out\nerror = job.err\nshould_transfer_files = YES\n"
        f"send_credential = true\nenvironment = \"KRB5_CONFIG={made.kdc.configuration} KRB5CCNAME=/none\"\nqueue\n")
    assert f"{cluster}.0" in pool.run("htcondor", "credential", "list")
    pool.wait("job.log")
    out = (pool.work / "job.out").read_text()
    assert (pool.work / "job.err").read_text() == ""
    first, _, then = out.partition("again\n")
    assert first.startswith("600 ")
    assert "/.condor_creds/krb.cc" in first
    for part in (first, then):
        assert f"Default principal: {USER}" in part
    assert SERVICE not in first  # tickets of services stay at home
    assert f"{SERVICE}@POOL.TEST: kvno = " in then
    ad = pool.history("-limit", "1")[0]
    assert ad["SendCredential"] is True
    assert not (pool.work / "krb.cc").exists()


def test_a_ticket_is_renewed_though_no_job_asks_and_after_kill_9(made: Pool) -> None:
    made.store(made.kdc.ticket("kept.cc", life_s=LIFE_S, renewable_s=RENEWABLE_S))
    made.pool.until_restarted("credd", made.pool.kill("credd"))
    first = until(made.ticket, "the daemon that was started again")
    again = until(lambda: (now := made.ticket()) is not None and now.ends_s > first.ends_s and now, "its renewal")
    assert again.renew_until_s == first.renew_until_s
    assert f"krb: Kerberos ticket of {ME}@" in made.pool.run("condor_store_cred", "query-krb")


def test_what_has_ended_holds_the_job_and_another_ticket_mends_it(made: Pool) -> None:
    pool = made.pool
    made.store(made.kdc.ticket("long.cc", life_s=600))
    cluster = pool.submit("executable = /bin/true\ntransfer_executable = false\nlog = held.log\nhold = true\n"
                          "send_credential = true\nqueue\n")
    assert "is renewed until" in made.store(made.kdc.ticket("short.cc", life_s=4, renewable_s=6))
    until(lambda: made.ticket() is None, "the end of the ticket")
    pool.run("condor_release", str(cluster))
    until(lambda: [ad for ad in pool.jobs("-attributes", "HoldReasonCode") if ad.get("HoldReasonCode") == 4],
          "the job to be held for its ticket")
    (ad,) = pool.jobs("-attributes", "HoldReason")
    assert "has run out" in ad["HoldReason"]
    assert "kinit -f -r 7d, and then condor_store_cred add-krb" in ad["HoldReason"]
    made.store(made.kdc.ticket("other.cc", life_s=600))
    pool.run("condor_release", str(cluster))
    pool.wait("held.log")


def test_the_default_is_the_users_own_cache(made: Pool) -> None:
    pool = made.pool
    cache = made.kdc.ticket("own.cc", life_s=600)
    for name in (str(cache), f"FILE:{cache}"):
        done = pool.tool("condor_store_cred", "add-krb", environment={"KRB5CCNAME": name})
        assert (done.returncode, done.stderr) == (0, "")
        assert "cannot be renewed (kinit -r 7d" in done.stdout
    for name, why in (("KCM:", "which is no file"), (f"{cache}-not", "kinit -f -r 7d")):
        done = pool.tool("condor_store_cred", "add-krb", environment={"KRB5CCNAME": name})
        assert done.returncode == 1
        assert why in done.stderr
    pool.run("condor_store_cred", "delete-krb")
    pool.run("condor_store_cred", "query-krb", expect=1)


def test_without_a_ticket_nothing_is_queued(made: Pool) -> None:
    done = made.pool.tool("condor_submit", stdin="executable = /bin/true\ntransfer_executable = false\n"
                                                 "send_credential = true\nqueue\n")
    assert done.returncode == 1
    assert "has no Kerberos ticket here; store one: kinit -f -r 7d" in done.stderr
    assert made.pool.jobs() == []


def test_the_python_bindings(made: Pool) -> None:
    cache = made.kdc.ticket("bindings.cc", life_s=600)
    said = made.pool.run("python3", "-c", f"""if True:
        from condor_actors.compat import htcondor2
        credd, krb = htcondor2.Credd(), htcondor2.CredType.Kerberos
        print(credd.query_user_cred(krb))
        credd.add_user_cred(krb, open({str(cache)!r}, "rb").read())
        print(int(credd.query_user_cred(krb)) > 1e9)
        credd.delete_user_cred(krb)
        credd.delete_user_cred(krb)
        print(credd.query_user_cred(krb))
    """)
    assert said.split() == ["None", "True", "None"]


@pytest.mark.parametrize(("words", "content", "why"), [
    (("add-krb", "-i", "-"), "", "is empty"),
    (("add-krb", "-i", "-"), "something-secret", "does not begin like one"),
    (("add-krb", "-i", "-"), "\x05\x04" + "something-secret", "ends in the middle"),
    (("add-krb", "-i", "-", "-H", "x"), "\x05", "you have one Kerberos ticket"),
    (("add-oauth", "-s", "krb", "-H", "x", "-i", "-"), "x", "one Kerberos ticket"),
    (("delete-krb",), "", "no credential of krb"),
])
def test_what_is_refused_says_why(made: Pool, words: tuple[str, ...], content: str, why: str) -> None:
    done = made.pool.tool("condor_store_cred", *words, stdin=content)
    assert done.returncode == 1
    assert why in done.stderr
    assert "Traceback" not in done.stderr
    assert "something" not in done.stderr


def test_nothing_that_is_written_down_holds_a_ticket(made: Pool) -> None:
    """Last of the file."""
    words = set()
    for path in made.kdc.folder.glob("*.cc"):
        content = read_cache(path.read_bytes(), 0.0).cache
        middle = content[-len(content) // 3:][:120]  # within the ticket itself
        words |= {middle, base64.b64encode(content)[-150:-30]}
    files = [path for folder in ("log", "spool", "run") for path in (made.pool.dir / folder).rglob("*")
             if path.is_file()]
    assert [f"{path}" for path in files for word in words if word in path.read_bytes()] == []
    assert list((made.pool.dir / "run" / "tickets").iterdir()) == []
