"""A user has others charged for his jobs, and uses up the numbers of clusters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.pool_fixture import until
from tests.security.local_users import NEED_USERS, SharedPool, a_shared_pool

pytestmark = NEED_USERS


@pytest.fixture(scope="module")
def pool() -> Iterator[SharedPool]:
    """One for all tests of this module."""
    with a_shared_pool("CHARGE_ALLOW_GROUPS = *=common\nMAX_RESERVED_CLUSTERS_PER_OWNER = 20\n") as shared:
        yield shared


def job(line: str) -> str:
    return f"executable = /bin/true\ntransfer_executable = false\nrequirements = false\n{line}\nqueue\n"


def test_he_has_her_charged(pool: SharedPool) -> None:
    """By every way that condor_submit has, and by an edit of a job that is queued."""
    alice = pool.alice.name
    for line in (f"accounting_group_user = {alice}", f'+AccountingGroup = "{alice}"', f'+AccountingGroup = "x.{alice}"',
                 f'MY.AcctGroupUser = "{alice}"', "accounting_group = physics", "+AccountingGroup = Owner",
                 f"accounting_group = common\naccounting_group_user = {alice}"):
        done = pool.tool_as(pool.mallory, "condor_submit", stdin=job(line))
        assert done.returncode != 0, line
        assert ("must be a name" if line.endswith("Owner") else "may not charge") in done.stderr, done.stderr
    mine = pool.submit_as(pool.mallory, job("accounting_group = common"))
    assert pool.jobs(str(mine))[0]["AccountingGroup"] == f"common.{pool.mallory.name}"
    edited = pool.tool_as(pool.mallory, "condor_qedit", str(mine), "AccountingGroup", f'"{alice}"')
    assert edited.returncode != 0
    assert pool.jobs(str(mine))[0]["AccountingGroup"] == f"common.{pool.mallory.name}"
    pool.run_as(pool.mallory, "condor_rm", str(mine))


def test_he_has_her_charged_for_one_job_of_a_cluster(pool: SharedPool) -> None:
    """By id, by a constraint, with a name that is none; a group that is open to him is charged for that job alone."""
    alice, mallory = pool.alice.name, pool.mallory.name
    mine = pool.submit_as(pool.mallory, job("").replace("queue", "queue 3"))
    edits = {f'"{alice}"': "may not charge", f'"x.{alice}"': "may not charge", f'"physics.{mallory}"': "may not charge",
             'strcat("a", "b")': "must be a name"}
    for value, why in edits.items():
        for which in ((f"{mine}.1",), ("-constraint", f"ClusterId == {mine} && ProcId == 1")):
            done = pool.tool_as(pool.mallory, "condor_qedit", *which, "AccountingGroup", value)
            assert done.returncode != 0, (which, value)
            assert why in done.stderr, done.stderr
    alone = pool.tool_as(pool.mallory, "condor_qedit", f"{mine}.1", "AcctGroup", '"common"')
    assert alone.returncode != 0
    assert "AccountingGroup" in alone.stderr
    assert not any("common" in str(ad.get("AccountingGroup")) for ad in pool.jobs(str(mine)))
    pool.run_as(pool.mallory, "condor_qedit", f"{mine}.1", "AccountingGroup", f'"common.{mallory}"')
    assert [str(ad.get("AccountingGroup")).startswith("common") for ad in pool.jobs(str(mine))] == [False, True, False]
    until(lambda: f"common.{mallory}" in pool.run_as(pool.mallory, "condor_status", "-submitters"),
          "the job to be offered as the group's")
    pool.run_as(pool.mallory, "condor_rm", str(mine))


def test_he_has_her_charged_by_messages_of_his_own(pool: SharedPool) -> None:
    """In the ad of a cluster and in that of a job."""
    answers = pool.attack(pool.mallory, """
        from condor_actors.messages.submission import *
        result = []
        with unix_client(schedd) as client:
            for line in (f'AccountingGroup = "{alice}"', f'AcctGroupUser = "{alice}"',
                         'AccountingGroup = strcat("a", "b")', 'AcctGroup = "physics"',
                         f'AccountingGroup = "{alice}@x"'):
                for cluster_ad, proc in ((line, ""), ("", line)):
                    reserved = client.ask("schedd", ReserveCluster())
                    ad = f'Cmd = "/bin/true"\\nRequirements = false\\n{cluster_ad}\\n'.encode()
                    result.append(said(client, "schedd", SubmitPage(
                        cluster_id=reserved.cluster_id, page=0, cluster_ad=ad, procs=(proc.encode(),), first_proc=0,
                        last=True)))
    """, schedd=pool.socket("schedd"), alice=pool.alice.name)
    assert [answer for answer in answers if not answer.startswith("invalid: ")] == []


def test_he_burns_numbers(pool: SharedPool) -> None:
    """Thousands of reservations, over one link and over many: hers is the next number all the same."""
    before = pool.submit_as(pool.alice, job(""))
    refused = pool.attack(pool.mallory, """
        from condor_actors.messages.submission import *
        result = 0
        with unix_client(schedd) as client:
            for _ in range(300):
                result += said(client, "schedd", ReserveCluster()).startswith("busy: ")
        for _ in range(30):
            with unix_client(schedd) as client:
                said(client, "schedd", ReserveCluster())
    """, schedd=pool.socket("schedd"))
    assert refused == 300 - 20
    assert pool.submit_as(pool.alice, job("")) <= before + 21
