"""The parallel universe as a user meets it: several machines for one job, all or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.test_vanilla import folder
from tests.pool_fixture import PersonalPool, until

SCRIPT = """#!/bin/sh
echo "$_CONDOR_PROCNO of $_CONDOR_NPROCS, argument $1, hosts $(echo $_CONDOR_GANG_HOSTS | tr , '\\n' | wc -l)"
cat part.$1
exit $1
"""


def program(here: Path, text: str) -> Path:
    path = here / "member.sh"
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_every_node_runs_and_brings_its_own_output_home(pool: PersonalPool) -> None:
    here = folder(pool, "gang")
    program(here, SCRIPT)
    for node in range(2):
        (here / f"part.{node}").write_text(f"input of {node}\n")
    cluster = pool.submit(f"""
        universe = parallel
        machine_count = 2
        initialdir = {here}
        executable = member.sh
        arguments = $(Node)
        transfer_input_files = part.$(Node)
        should_transfer_files = YES
        output = out.$(Node)
        error = err.$(Node)
        log = gang.log
        +ParallelShutdownPolicy = "WAIT_FOR_ALL"
        queue
    """)
    pool.wait(str(here / "gang.log"))
    for node in range(2):
        assert (here / f"err.{node}").read_text() == ""
        assert (here / f"out.{node}").read_text() == f"{node} of 2, argument {node}, hosts 2\ninput of {node}\n"
    log = (here / "gang.log").read_text()
    numbers = [line[:3] for line in log.splitlines() if line[:3].isdigit() and line[3:5] == " ("]
    assert [numbers.count(each) for each in ("000", "001", "014", "015", "005")] == [1, 1, 2, 2, 1]
    assert numbers[-1] == "005"
    assert {"Node 0 terminated.", "Node 1 terminated."} <= {line.partition(") ")[2][20:] for line in log.splitlines()}
    (ad,) = pool.history(str(cluster))
    assert (ad["ExitCode"], ad["JobStatus"], ad["MinHosts"]) == (0, 4, 2)


def test_the_end_of_node_0_ends_the_others(pool: PersonalPool) -> None:
    here = folder(pool, "short")
    program(here, '#!/bin/sh\n[ "$_CONDOR_PROCNO" = 0 ] && exit 3\nexec sleep 3600\n')
    cluster = pool.submit(f"""
        universe = parallel
        machine_count = 2
        initialdir = {here}
        executable = member.sh
        log = short.log
        queue
    """)
    pool.wait(str(here / "short.log"))
    (ad,) = pool.history(str(cluster))
    assert (ad["ExitCode"], ad["NumShadowStarts"]) == (3, 1)


def test_groups_of_nodes_have_arguments_and_requirements_of_their_own(pool: PersonalPool) -> None:
    here = folder(pool, "groups")
    program(here, '#!/bin/sh\necho "$1 is $_CONDOR_PROCNO of $_CONDOR_NPROCS on $_CONDOR_SLOT"\n')
    cluster = pool.submit(f"""
        universe = parallel
        initialdir = {here}
        executable = member.sh
        output = out.$(Node)
        log = groups.log
        +ParallelShutdownPolicy = "WAIT_FOR_ALL"
        machine_count = 1
        arguments = head
        requirements = SlotID == 3
        queue
        machine_count = 2
        arguments = tail
        requirements = SlotID < 3
        queue
    """)
    pool.wait(str(here / "groups.log"))
    said = [(here / f"out.{node}").read_text().split() for node in range(3)]
    assert said[0] == ["head", "is", "0", "of", "3", "on", "slot3"]
    assert [words[:3] for words in said[1:]] == [["tail", "is", str(node)] for node in (1, 2)]
    assert {words[-1] for words in said[1:]} == {"slot1", "slot2"}
    (ad,) = pool.history(str(cluster))
    assert (ad["MinHosts"], ad["GangSizes"]) == (3, "1,2")


def test_a_gang_that_is_vacated_runs_again_as_a_whole(pool: PersonalPool) -> None:
    here = folder(pool, "vacated")
    cluster = long_gang(pool, here, 2)
    members(pool, here, 2)
    pool.run("condor_vacate_job", str(cluster))
    members(pool, here, 4)
    (here / "go").touch()
    pool.wait(str(here / "gang.log"))
    (ad,) = pool.history(str(cluster))
    assert (ad["NumShadowStarts"], ad["NumVacates"], ad["ExitCode"]) == (2, 1, 0)


def test_the_analysis_says_that_there_will_never_be_enough_machines(pool: PersonalPool) -> None:
    cluster = pool.submit("universe = parallel\nmachine_count = 50\nexecutable = /bin/true\nhold = true\nqueue\n")
    said = pool.run("condor_q", "-better-analyze", str(cluster))
    assert "Its 50 nodes begin together; 0 of their machines are gathered now." in said
    assert "It can never begin: 46 more would have to match." in said
    pool.run("condor_rm", str(cluster))


@pytest.mark.parametrize("line", ["queue", "machine_count = 0\nqueue"])
def test_what_no_gang_can_be_is_refused(pool: PersonalPool, line: str) -> None:
    done = pool.tool("condor_submit", stdin=f"universe = parallel\nexecutable = /bin/true\n{line}\n")
    assert done.returncode == 1
    assert "machine_count" in done.stderr


def members(pool: PersonalPool, here: Path, wanted: int) -> list[str]:
    """The nodes of the run that runs now, as soon as so many have begun."""
    return until(lambda: found if len(found := sorted(each.name for each in here.glob("began.*"))) == wanted else None,
                 f"{wanted} nodes in {here}, {pool.logs()}")


def long_gang(pool: PersonalPool, here: Path, nodes: int) -> int:
    """A gang whose nodes say that they began, and end when there is a file ``go``."""
    program(here, f"#!/bin/sh\n: > {here}/began.$1.$(cat /proc/sys/kernel/random/uuid)\n"
                  f"while [ ! -e {here}/go ]; do sleep 0.1; done\n")
    return pool.submit(f"""
        universe = parallel
        machine_count = {nodes}
        initialdir = {here}
        executable = member.sh
        arguments = $(Node)
        log = gang.log
        +ParallelShutdownPolicy = "WAIT_FOR_ALL"
        queue
    """)


def test_condor_rm_and_hold_take_all_nodes_away(pool: PersonalPool) -> None:
    for command, left in (("condor_hold", 5), ("condor_rm", 0)):
        here = folder(pool, command)
        cluster = long_gang(pool, here, 3)
        members(pool, here, 3)
        assert [ad["CurrentHosts"] for ad in pool.jobs(str(cluster))] == [3]
        pool.run(command, str(cluster))
        until(lambda: not pool.scratch() or None, "no node of the gang is left")
        pool.until_status(f"{cluster}.0", left)
        pool.tool("condor_rm", "-all")


def test_a_gang_survives_its_schedd_and_its_shadow_host(own_pool: PersonalPool) -> None:
    here = folder(own_pool, "gang")
    cluster = long_gang(own_pool, here, 3)
    members(own_pool, here, 3)
    for daemon in ("schedd", "shadow-host"):
        pid = own_pool.kill(daemon)
        own_pool.until_restarted(daemon, pid)
    (here / "go").touch()
    own_pool.wait(str(here / "gang.log"))
    (ad,) = own_pool.history(str(cluster))
    assert (ad["NumShadowStarts"], ad["ExitCode"]) == (1, 0)
    assert len(list(here.glob("began.*"))) == 3


def test_a_gang_whose_starter_host_dies_is_run_again_as_a_whole(own_pool: PersonalPool) -> None:
    here = folder(own_pool, "gang")
    cluster = long_gang(own_pool, here, 3)
    members(own_pool, here, 3)
    own_pool.kill("starter-host")
    members(own_pool, here, 6)
    (here / "go").touch()
    own_pool.wait(str(here / "gang.log"))
    (ad,) = own_pool.history(str(cluster))
    assert (ad["NumShadowStarts"], ad["ExitCode"]) == (2, 0)
