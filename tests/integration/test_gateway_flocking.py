"""Two pools whose machines cannot reach one another lend each other machines through two gateways.

Each pool has a wire of its own, and the same private addresses as the other; only the two gateways hang on a third
wire.  Nothing is forwarded between the wires: a packet from a machine of one pool cannot get to one of the other.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.harness.federation import Federation, a_federation
from tests.harness.forwarded_ports import forwarded
from tests.harness.namespaces import NEED_NAMESPACES, Machine
from tests.harness.packets import PacketWatch
from tests.harness.standard_jobs import NEED_RUNTIME, Job
from tests.pool_fixture import until

pytestmark = NEED_NAMESPACES

JOB = """executable = /bin/sh
arguments = "-c 'cat word; hostname; {then}'"
transfer_input_files = word
transfer_executable = false
should_transfer_files = yes
output = out.$(Process)
error = err.$(Process)
log = {log}
queue {count}
"""


@pytest.fixture(scope="module")
def pools() -> Iterator[Federation]:
    """They, for all tests here."""
    with a_federation() as made:
        yield made


def test_jobs_run_where_their_pool_cannot_reach(pools: Federation) -> None:
    math, physics = pools.math, pools.physics
    with PacketWatch(pools.outside.hub) as between:
        until(lambda: "has dialled" in math.run("condor_flock", "status"), "the gateways to meet")
        cluster = math.submit(JOB.format(count=3, log="job.log", then="true"))
        math.wait("job.log")
        for number in range(3):
            assert (math.work / f"out.{number}").read_text().split() == ["hello", "physics.trio"]
        (ad,) = math.history(f"{cluster}.0")
        assert ad["LastRemoteHost"].endswith("@physics.trio%physics")
        assert "physics.trio" in math.run("condor_status", "-pool", "physics", "-af", "Machine")
        users = physics.run("condor_userprio", "-all", "-af", "Name")
        assert "@trio%math" in users
    gates = {pools.math_gateway.outside, pools.standby.outside, pools.physics_gateway.outside}
    assert between.pairs
    assert {address for pair in between.pairs for address in pair} <= gates


def long_job(math: Machine, log: str) -> str:
    """A job that runs until there is a file ``stop`` beside it; it runs when this returns."""
    then = "echo at it; while [ ! -e stop ]; do sleep 0.2; done; echo done"
    job = f"{math.submit(JOB.format(count=1, log=log, then=then))}.0"
    math.until_status(job, 2)
    return job


def finish(math: Machine, job: str, log: str) -> None:
    """Have a long job end, and see that it ran once, to its end."""
    math.touch_beside(job, "stop")
    math.wait(log)
    assert (math.work / "out.0").read_text().split() == ["hello", "physics.trio", "at", "it", "done"]
    text = (math.work / log).read_text()
    assert text.count("005 (") == 1
    assert (ended := math.history(job)[0])["NumShadowStarts"] == 1, ended["NumShadowStarts"]


def test_the_port_of_a_job_out_there_is_brought_home(pools: Federation) -> None:
    math = pools.math
    serve = "exec /usr/bin/python3 -m http.server --bind 127.0.0.1 8123"
    job = f"{math.submit(JOB.format(count=1, log='served.log', then=serve))}.0"
    math.until_status(job, 2)
    fetch = ("import urllib.request as u; "
             "print(u.urlopen('http://127.0.0.1:8124/word', timeout=60).read().decode(), end='')")
    with forwarded(math, "-L", "8124:8123", job):
        until(lambda: math.tool("/usr/bin/python3", "-c", fetch).stdout == "hello\n", "the job to answer")
    assert "%physics" in math.run("condor_q", "-run")
    math.run("condor_rm", job)
    math.until_status(job, 0)


def test_its_user_looks_into_a_job_out_there_and_stops_it(pools: Federation) -> None:
    math, physics = pools.math, pools.physics
    job = long_job(math, "seen.log")
    until(lambda: "at it" in math.tool("condor_tail", job).stdout, "its output")
    assert "%physics" in math.run("condor_q", "-run")
    assert math.run("condor_ssh_to_job", job, "cat", "word", stdin="") == "hello\n"
    math.run("condor_suspend", job)
    math.until_status(job, 7)
    math.run("condor_continue", job)
    math.until_status(job, 2)
    math.run("condor_vacate_job", job)
    until(lambda: "004 (" in (math.work / "seen.log").read_text(), "it to be evicted")
    math.until_status(job, 2)
    math.run("condor_hold", job)
    math.until_status(job, 5)
    until(lambda: "Claimed" not in physics.run("condor_status", "-af", "Activity", "-constraint", 'Activity == "Busy"'),
          "nothing to run there")
    math.run("condor_release", job)
    math.until_status(job, 2)
    math.run("condor_rm", job)
    until(lambda: "Claimed" not in physics.run("condor_status", "-af", "State"), "the machine to be free")


def kill_gateway(machine: Machine) -> None:
    """Kill a gateway without a word, and wait for the one that its master starts."""
    before = gateway_pid(machine)
    os.kill(before, signal.SIGKILL)
    until(lambda: gateway_pid(machine) not in (0, before), "a new gateway")


def gateway_pid(machine: Machine) -> int:
    """The process of a machine's gateway; 0: there is none."""
    address = machine.dir / "run" / "gateway.address"
    pid = int(address.read_text().split()[1]) if address.exists() else 0
    return pid if pid in machine.pids() else 0


@contextmanager
def rarely_running(pid: int) -> Iterator[None]:
    """A process that gets the processor for two milliseconds now and then, as on a machine with much else to do."""
    over = threading.Event()

    def pulse() -> None:
        while not over.is_set():
            os.kill(pid, signal.SIGSTOP)
            over.wait(0.02)
            os.kill(pid, signal.SIGCONT)
            over.wait(0.002)

    pulsing = threading.Thread(target=pulse)
    pulsing.start()
    try:
        yield
    finally:
        over.set()
        pulsing.join()


def test_a_way_is_whole_when_the_gateway_that_brings_it_is_slow(pools: Federation) -> None:
    """What the true end says at once comes to that gateway in the same read as the answer to its own question."""
    until(lambda: "has dialled" in pools.math.run("condor_flock", "status"), "the gateways to meet")
    with rarely_running(gateway_pid(pools.physics_gateway)):
        for _ in range(8):
            assert "physics.trio" in pools.math.run("condor_status", "-pool", "physics", "-af", "Machine")


@pytest.mark.parametrize("whose", [("math_gateway",), ("physics_gateway",), ("math_gateway", "physics_gateway")])
def test_a_running_job_outlives_its_gateways(pools: Federation, whose: tuple[str, ...]) -> None:
    math = pools.math
    log = f"{'-'.join(whose)}.log"
    job = long_job(math, log)
    for name in whose:
        kill_gateway(getattr(pools, name))
    until(lambda: "has dialled" in math.run("condor_flock", "status"), "the gateways to meet again")
    finish(math, job, log)


@NEED_RUNTIME[0]
@NEED_RUNTIME[1]
def test_a_standard_job_outlives_its_gateways(pools: Federation) -> None:
    """It calls home all the time, and none of its calls is lost or done twice; a checkpoint goes the same way."""
    math = pools.math
    job = Job(math, "caller", "1000000")
    job.until_lines(4)
    assert where(job).endswith("@physics.trio%physics")
    for gateway in (pools.math_gateway, pools.physics_gateway):
        kill_gateway(gateway)
        job.until_lines(len(job.text("out").splitlines()) + 4)
    job.checkpoint()
    for gateway in (pools.math_gateway, pools.physics_gateway):
        kill_gateway(gateway)
    job.until_lines(len(job.text("out").splitlines()) + 4)
    (job.folder / "enough").touch()
    job.wait()
    job.check(len(job.text("out").splitlines()) - 1)
    assert job.text("job.log").count("001 (") == 1
    assert math.history(job.id)[0]["NumShadowStarts"] == 1


def test_a_running_job_outlives_a_cut_between_the_gateways(pools: Federation) -> None:
    math = pools.math
    job = long_job(math, "cut.log")
    with pools.outside.cut(pools.physics_gateway):
        kill_gateway(pools.math_gateway)  # so the other one holds connections that are dead, and does not know
        kill_gateway(pools.standby)
        until(lambda: math.run("condor_flock", "status").count("NOT REACHED") == 2,
              "the other pool to be out of reach")
        refused = math.tool("condor_status", "-pool", "physics")
        assert "has not dialled this one" in refused.stderr
    finish(math, job, "cut.log")


def test_a_gateway_that_stands_by_takes_over(pools: Federation) -> None:
    """The first one is gone for good, in the middle of a job that its user looks into."""
    math, gone = pools.math, pools.math_gateway
    job = long_job(math, "over.log")
    until(lambda: "at it" in math.tool("condor_tail", job).stdout, "its output")
    gateway = gateway_pid(gone)
    gone.stop()
    until(lambda: gateway not in gone.pids(), "the gateway to be gone")
    try:
        finish(math, job, "over.log")
        next_one = math.submit(JOB.format(count=1, log="after.log", then="true"))
        math.wait("after.log")
        assert math.history(f"{next_one}.0")[0]["ExitCode"] == 0
        assert "has dialled" in math.run("condor_flock", "status")
    finally:
        gone.start()
    until(lambda: gateway_pid(gone), "it to be back")


def running(machine: Machine, cluster: int) -> list[str]:
    """Which jobs of a cluster run."""
    return [str(ad["ProcId"]) for ad in machine.jobs(str(cluster)) if ad["JobStatus"] == 2]


def test_the_pool_that_lends_says_how_much_and_takes_it_back_for_its_own_jobs(pools: Federation) -> None:
    math, physics = pools.math, pools.physics
    physics.run("condor_flock", "limit", "math", "--quota", "1", "--jobs", "RequestCpus == 1")
    assert "neither below nor alike" in physics.tool("condor_flock", "limit", "math", "--rank", "above").stderr
    assert "is no partner" in math.tool("condor_flock", "limit", "biology", "--quota", "1").stderr
    until(lambda: "of 1 cores" in physics.run("condor_flock", "report"), "the negotiator to know the terms")
    cluster = math.submit(JOB.format(count=3, log="lent.log", then="sleep 1000"))
    until(lambda: running(math, cluster), "one of them to run")
    until(lambda: "has 1 of 1 cores" in physics.run("condor_flock", "report"), "the quota to be used up")
    assert len(running(math, cluster)) == 1
    cpus = physics.run("condor_status", "-af", "TotalSlotCpus").split()[0]
    own = physics.submit("executable = /bin/true\ntransfer_executable = false\nlog = own.log\n"
                         f"request_cpus = {cpus}\nqueue\n")
    physics.wait("own.log")
    assert physics.history(f"{own}.0")[0]["ExitCode"] == 0
    until(lambda: "004 (" in (math.work / "lent.log").read_text(), "the guest to have left for it")
    report = physics.run("condor_flock", "report")
    assert "1 taken back for local jobs" in report, report
    physics.run("condor_flock", "limit", "math", "--refuse", "root")
    until(lambda: not running(math, cluster) and "requests refused" in physics.run("condor_flock", "report"),
          "its user to be admitted no longer")
    math.run("condor_rm", str(cluster))
    until(lambda: "Claimed" not in physics.run("condor_status", "-af", "State"), "the machine to be free")
    physics.run("condor_flock", "limit", "math", "--refuse", "", "--quota=", "--jobs", "")
    until(lambda: "no limit" in physics.run("condor_flock", "report"), "the terms to be gone")
    schedd_log = math.dir / "log" / "ScheddLog"
    before = schedd_log.read_text().count("on the terms that")
    math.run("condor_flock", "limit", "physics", "--send-jobs", "Wanted =?= true")
    until(lambda: schedd_log.read_text().count("on the terms that") > before, "the schedd to know the terms")
    sent = math.submit(JOB.format(count=1, log="sent.log", then="true"))
    wanted = math.submit("MY.Wanted = true\n" + JOB.format(count=1, log="wanted.log", then="true"))
    math.wait("wanted.log")
    assert math.history(f"{wanted}.0")
    assert math.status_of(f"{sent}.0") in (1, 4)
    math.run("condor_flock", "limit", "physics", "--send-jobs", "")
    math.wait("sent.log")


def where(job: Job) -> str:
    """The slot that it runs on; empty while it does not."""
    return str(job.pool.jobs(job.id)[0].get("RemoteHost", ""))


@NEED_RUNTIME[0]
@NEED_RUNTIME[1]
def test_a_standard_job_comes_home_and_goes_out_again(pools: Federation) -> None:
    math = pools.math
    job = Job(math, "wanderer", "14 3 8 11")
    job.until_lines(4)
    assert where(job).endswith("@physics.trio%physics")
    pools.inside.member(math, "desk", "master,startd", "GATEWAY_HOST = 10.88.7.2\n")
    until(lambda: "desk.trio" in math.run("condor_status", "-af", "Machine"), "a machine at home")
    math.run("condor_qedit", job.id, "Requirements", 'Machine == "desk.trio"')
    math.run("condor_vacate_job", job.id)
    job.until_logged("(1) Job was checkpointed.")
    until(lambda: where(job).endswith("@desk.trio"), "it to run at home")
    job.go_on(3)
    job.until_lines(9)
    math.run("condor_qedit", job.id, "Requirements", 'Machine == "physics.trio"')
    math.run("condor_vacate_job", job.id)
    job.until_logged("(1) Job was checkpointed.", 2)
    until(lambda: where(job).endswith("@physics.trio%physics"), "it to be out again")
    job.go_on(8)
    job.until_lines(12)
    job.go_on(11)
    job.wait()
    job.check(14)
    report = math.run("condor_flock", "report", "--svg", "flow.svg")
    assert float(report.splitlines()[1].split()[5]) > 0.0, report
    assert ">physics</text>" in (math.work / "flow.svg").read_text()
