"""A user writes into jobs what is not his to say, and reads in those of others what is not his to know."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.pool_fixture import until
from tests.security.local_users import NEED_USERS, SharedPool, a_shared_pool

pytestmark = NEED_USERS

SECRET = """executable = /bin/sleep
arguments = 600 hush-in-arguments
environment = "TOKEN=hush-in-environment"
transfer_executable = false
requirements = false
log = secret.log
queue
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[SharedPool]:
    """One for all tests of this module."""
    with a_shared_pool() as shared:
        yield shared


@pytest.fixture(scope="module")
def victim(pool: SharedPool) -> int:
    """A cluster of Alice's."""
    return pool.submit_as(pool.alice, SECRET)


@pytest.mark.parametrize("question", [
    ("-all", "-long"), ("-all", "-json"), ("-all", "-xml"), ("-all", "-nobatch"),
    ("-all", "-af", "Environment", "Arguments"), ("-all", "-autoclusters", "-long"),
    ("-all", "-constraint", 'regexp("hush", Environment)'),
    ("-all", "-format", "%s", 'strcat(Environment, Arguments, Env, Args)')])
def test_he_reads_her_environment(pool: SharedPool, victim: int, question: tuple[str, ...]) -> None:
    """In every form that condor_q has."""
    found = pool.tool_as(pool.mallory, "condor_q", *question)
    assert "hush" not in found.stdout + found.stderr


def test_she_reads_her_own(pool: SharedPool, victim: int) -> None:
    ad = json.loads(pool.run_as(pool.alice, "condor_q", "-json", str(victim)))[0]
    assert "hush-in-environment" in str(ad)
    assert "hush-in-arguments" in str(ad)


def test_he_reads_it_in_the_history(pool: SharedPool) -> None:
    """What has left the queue is as private as what is in it."""
    secret = SECRET.replace("requirements = false\n", "").replace("/bin/sleep", "/bin/true")
    cluster = pool.submit_as(pool.alice, secret)
    pool.run_as(pool.alice, "condor_wait", "-wait", "60", "secret.log", str(cluster))
    until(lambda: pool.history(str(cluster)), "it is in the history")
    assert "hush" in pool.run_as(pool.alice, "condor_history", "-long", str(cluster))
    for question in (("-long",), ("-json",), ("-af", "Environment", "Arguments"),
                     ("-constraint", 'regexp("hush", Environment)', "-long")):
        found = pool.tool_as(pool.mallory, "condor_history", *question)
        assert found.returncode == 0, found.stderr
        assert "hush" not in found.stdout


def test_he_writes_what_the_schedd_alone_says(pool: SharedPool, victim: int) -> None:
    """With a client of his own: jobs in her name, of root, that have run already, with numbers of others."""
    answers = pool.attack(pool.mallory, """
        from condor_actors.messages.queue import *
        from condor_actors.messages.submission import *
        result = []
        forged = ['Owner = "root"', f'Owner = "{alice}"', 'User = "root@x"', f'User = "{alice}@x"', "JobStatus = 2",
                  "JobStatus = 4", 'Owner = "ro" + "ot"']
        with unix_client(schedd) as client:
            for line in forged:
                for cluster_ad, proc in ((line, ""), ("", line)):
                    reserved = client.ask("schedd", ReserveCluster())
                    ad = f'Cmd = "/usr/bin/id"\\nRequirements = false\\n{cluster_ad}\\n'.encode()
                    result.append(said(client, "schedd", SubmitPage(
                        cluster_id=reserved.cluster_id, page=0, cluster_ad=ad, procs=(proc.encode(),), first_proc=0,
                        last=True)))
            reserved = client.ask("schedd", ReserveCluster())
            ad = (b'Cmd = "/usr/bin/id"\\nRequirements = false\\nNumShadowStarts = 77\\nRemoteHost = "x"\\n'
                  b'ClusterId = 1\\n'
                  b'PublicClaimId = "x"\\nClaimId = "x"\\nGlobalJobId = "x"\\nQDate = 5\\nMachineAttrCpus0 = 9\\n')
            said(client, "schedd", SubmitPage(cluster_id=reserved.cluster_id, page=0, cluster_ad=ad, procs=(b"",),
                                              first_proc=0, last=True))
            last = reserved.cluster_id
        result = [result, last]
    """, schedd=pool.socket("schedd"), alice=pool.alice.name)
    refusals, last = answers
    allowed = [answer for answer in refusals if not answer.startswith("invalid: ")]
    assert not allowed
    (ad,) = pool.jobs(str(last))
    assert ad["Owner"] == pool.mallory.name
    assert ad["ClusterId"] == last
    assert not {"RemoteHost", "PublicClaimId", "ClaimId", "MachineAttrCpus0"} & set(ad)
    assert ad.get("NumShadowStarts") == 0
    assert ad["QDate"] > 5


def test_he_edits_what_is_not_his(pool: SharedPool, victim: int) -> None:
    """Her job, and of his own what would make it another's, or a finished one."""
    mine = pool.submit_as(pool.mallory, SECRET)
    answers = pool.attack(pool.mallory, """
        from condor_actors.messages.queue import *
        from condor_actors.messages.submission import *
        result = {}
        with unix_client(schedd) as client:
            for line in ('Owner = "root"', f'Owner = "{alice}"', f'User = "{alice}@x"', "JobStatus = 4",
                         "NumShadowStarts = 0", "ClusterId = 1", 'RemoteHost = "x"',
                         "NumJobStarts = 0", 'GlobalJobId = "x"', 'ClaimId = "x"',
                         "JobRunCount = 0", 'PublicClaimId = "x"', "RemoteWallClockTime = 0", 'MachineAttrCpus0 = 1'):
                edit = EditJobs(attributes=line.encode() + b"\\n", ids=((mine, 0), (mine, -1)), constraint="true")
                result[line] = said(client, "schedd", edit)
            hers = client.ask("schedd", EditJobs(attributes=b'Cmd = "/evil"\\n', ids=((victim, 0), (victim, -1)),
                                                 constraint=f"ClusterId == {victim}"))
            result = [result, hers.count]
    """, schedd=pool.socket("schedd"), alice=pool.alice.name, mine=mine, victim=victim)
    edits, count = answers
    assert {line: answer for line, answer in edits.items() if not answer.startswith("denied: ")} == {}
    assert count == 0
    assert pool.jobs(str(victim))[0]["Cmd"] == "/bin/sleep"
    assert pool.jobs(str(mine))[0]["Owner"] == pool.mallory.name


def test_his_shadow_reports_what_is_not_its_to_say(pool: SharedPool) -> None:
    """What a shadow host of his own would send, on a link that is none: the schedd hears nothing."""
    ours = SECRET.replace("requirements = false\n", "").replace("600 hush-in-arguments", "600")
    cluster = pool.submit_as(pool.mallory, ours)
    run = pool.stolen(f"{cluster}.0")
    pool.attack(pool.mallory, """
        from condor_actors.messages.shadow_host import *
        with unix_client(schedd) as client:
            client.tell("schedd", RunUpdated(run_id=run_id, attributes=b'Owner = "root"\\nNumCkpts = 77\\n'))
            said(client, "schedd", SayHello())
        result = 1
    """, schedd=pool.socket("schedd"), run_id=run.run_id)
    (ad,) = pool.jobs(f"{cluster}.0")
    assert ad["Owner"] == pool.mallory.name
    assert ad.get("NumCkpts") != 77
