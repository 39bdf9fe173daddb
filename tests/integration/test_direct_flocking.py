"""Two pools with authorities of their own, on a wire of network namespaces, lend each other machines."""

from __future__ import annotations

import json
import os
import pwd
import signal
import sys
from collections.abc import Iterator

import pytest

from tests.harness.namespaces import NEED_NAMESPACES, Machine, Wire, a_wire
from tests.harness.proc_files import proc_file
from tests.pool_fixture import until

pytestmark = NEED_NAMESPACES

JOB = """executable = /bin/sh
arguments = "-c 'cat word; hostname; id -u; {then}'"
transfer_input_files = word
transfer_executable = false
should_transfer_files = yes
output = out.$(Process)
error = err.$(Process)
log = {log}
queue {count}
"""
SOMEONE = "daemon"
"""A user of both pools, which have the same UID_DOMAIN: nothing but their authorities tells them apart."""


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    """A wire to hang machines on."""
    with a_wire() as made:
        yield made


@pytest.fixture(scope="module")
def pools(wire: Wire) -> tuple[Machine, Machine]:
    """``math``, which has no machine that runs jobs, sends its jobs to ``physics``."""
    math = wire.manager("math", "DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD\nFLOCK_TO = physics\n"
                        "SCHEDD_INTERVAL = 20\n", "math")
    physics = wire.manager("physics", "FLOCK_FROM = math\nSTARTER_ALLOW_RUNAS_OWNER = true\n", "physics")
    introduce(math, physics)
    introduce(physics, math)
    for machine in (math, physics):
        (machine.work / "word").write_text("hello\n")
    return math, physics


def introduce(host: Machine, guest: Machine) -> None:
    """Have one pool trust another."""
    invited = guest.tool("condor_flock", "invite")
    fingerprint = invited.stderr.strip().splitlines()[-1].strip()
    said = host.run("condor_flock", "accept", invited.stdout.strip(), "--fingerprint", fingerprint)
    assert fingerprint in said


def results(machine: Machine, count: int) -> list[list[str]]:
    """What the jobs have written: the word, the host, the account."""
    return [(machine.work / f"out.{number}").read_text().split() for number in range(count)]


def as_somebody(machine: Machine, *words: str, text: str) -> int:
    """Submit as a user that both pools know; the cluster."""
    said = machine.run("setpriv", f"--reuid={SOMEONE}", f"--regid={SOMEONE}", "--clear-groups",
                       f"{sys.prefix}/bin/condor_submit", *words, stdin=text)
    return int(said.rsplit("cluster ", 1)[1].strip().rstrip("."))


def test_an_invitation_is_checked(pools: tuple[Machine, Machine]) -> None:
    math, physics = pools
    text = physics.run("condor_flock", "invite").strip()
    assert "not the fingerprint" in math.tool("condor_flock", "accept", text, "--fingerprint", "00" * 32).stderr
    assert "--fingerprint" in math.tool("condor_flock", "accept", "-", stdin=text).stderr
    own = math.run("condor_flock", "invite").strip()
    assert "names of their own" in math.tool("condor_flock", "accept", own).stderr
    assert "is no partner" in math.tool("condor_flock", "revoke", "biology").stderr
    listed = math.run("condor_flock", "list")
    assert "physics" in listed
    assert "FLOCK_TO" in listed


def test_jobs_go_where_machines_are(pools: tuple[Machine, Machine]) -> None:
    math, _ = pools
    cluster = math.submit(JOB.format(count=3, log="job.log", then="true"))
    math.wait("job.log")
    for word, host, uid in results(math, 3):
        assert (word, host) == ("hello", "physics.trio")
        assert uid != "0"
    (ad,) = math.history(f"{cluster}.0")
    assert ad["LastRemoteHost"].endswith("@physics.trio%physics")
    assert "%physics" in (math.work / "job.log").read_text()


def test_the_user_of_the_same_name_there_is_another(pools: tuple[Machine, Machine]) -> None:
    uid = str(pwd.getpwnam(SOMEONE).pw_uid)
    for machine, is_hers in ((pools[1], True), (pools[0], False)):
        folder = machine.work / "hers"
        folder.mkdir()
        folder.chmod(0o777)
        (folder / "word").write_text("hello\n")
        cluster = as_somebody(machine, text=JOB.format(count=1, log="job.log", then="true").replace(
            "queue 1", f"initialdir = {folder}\nqueue 1"))
        until(lambda at=machine, number=cluster: at.history(str(number)), "the job's end")
        ran_as = (folder / "out.0").read_text().split()[2]
        assert (ran_as == uid) is is_hers
    users = pools[1].run("condor_userprio", "-all", "-af", "Name")
    assert f"{SOMEONE}@trio%math" in users


def test_who_is_named_sees_the_other_pool(pools: tuple[Machine, Machine]) -> None:
    math, physics = pools
    assert "physics.trio" in math.run("condor_status", "-pool", "physics", "-af", "Machine")
    assert math.run("condor_q", "-pool", "physics", "-name", "physics.trio", "-totals")
    refused = math.tool("condor_off", "-pool", "physics", "-name", "physics.trio")
    assert refused.returncode != 0
    assert "math.trio" in physics.run("condor_status", "-pool", "math", "-schedd", "-af", "Name")


def test_a_running_job_outlives_its_schedd_and_is_removed(pools: tuple[Machine, Machine]) -> None:
    math, physics = pools
    cluster = math.submit(JOB.format(count=1, log="long.log", then="sleep 1000"))
    math.until_status(f"{cluster}.0", 2)
    (ad,) = math.jobs(f"{cluster}.0")
    schedd = next(pid for pid in math.pids() if "services schedd" in cmdline(pid))
    os.kill(schedd, signal.SIGKILL)
    until(lambda: any("services schedd" in cmdline(pid) and pid != schedd for pid in math.pids()), "a new schedd")
    until(lambda: math.tool("condor_q", "-totals").returncode == 0, "it to answer")
    until(lambda: math.status_of(f"{cluster}.0") == 2, "the job to be found running")
    (again,) = math.jobs(f"{cluster}.0")
    assert again["NumShadowStarts"] == ad["NumShadowStarts"]
    until(lambda: json.loads(math.run("condor_status", "-schedd", "-json"))[0]["TotalFlockedJobs"] == 1,
          "the schedd to say that one of its jobs is elsewhere")
    math.run("condor_rm", str(cluster))
    until(lambda: "Claimed" not in physics.run("condor_status", "-af", "State"), "the machine to be free")


def test_jobs_that_name_no_pool_stay_at_home_where_that_is_set(pools: tuple[Machine, Machine]) -> None:
    math, _ = pools
    lists = math.dir / "config.d" / "99-lists.config"
    lists.write_text("FLOCK_BY_DEFAULT = false\n")
    math.run("condor_reconfig")
    stays = math.submit(JOB.format(count=1, log="stays.log", then="true"))
    goes = math.submit(JOB.format(count=1, log="goes.log", then="true").replace(
        "queue", 'My.FlockTo = "physics"\nqueue'))
    math.wait("goes.log")
    assert math.history(f"{goes}.0")[0]["LastRemoteHost"].endswith("%physics")
    assert math.status_of(f"{stays}.0") == 1
    refused = math.tool("condor_submit", "-", stdin=JOB.format(count=1, log="bad.log", then="true").replace(
        "queue", "My.FlockTo = 1 + 1\nqueue"))
    assert "FlockTo = 1 + 1 would have no effect" in refused.stderr
    lists.unlink()
    math.run("condor_reconfig")
    math.wait("stays.log")
    assert math.history(f"{stays}.0")[0]["LastRemoteHost"].endswith("%physics")


def cmdline(pid: int) -> str:
    """A process's command line; empty when it is gone."""
    return proc_file(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace")


def test_a_pool_that_is_trusted_no_longer_loses_its_machines(pools: tuple[Machine, Machine]) -> None:
    math, physics = pools
    cluster = math.submit(JOB.format(count=1, log="last.log", then="sleep 1000"))
    math.until_status(f"{cluster}.0", 2)
    physics.run("condor_flock", "revoke", "math")
    until(lambda: "Claimed" not in physics.run("condor_status", "-af", "State"), "its job to leave")
    refused = physics.tool("condor_status", "-pool", "10.88.7.1")
    assert refused.returncode != 0
    assert "not a machine of this pool" in refused.stderr
    next_one = math.submit(JOB.format(count=1, log="next.log", then="true"))
    until(lambda: "does not take our submitters" in (math.dir / "log" / "ScheddLog").read_text(),
          "the schedd to say why its jobs stay")  # when it tells of them again
    assert math.status_of(f"{next_one}.0") == 1
    math.run("condor_rm", str(cluster), str(next_one))
