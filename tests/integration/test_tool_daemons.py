"""A second program beside a job: in pools of root's and of an ordinary user's, shut in and not."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from condor_actors.machine.containers.probe import containers_work
from tests.harness.images import docker_archive, root_folder
from tests.harness.proc_files import command_lines
from tests.harness.root_pool import RootPool, root_pool
from tests.harness.user_pool import user_pool
from tests.pool_fixture import PersonalPool, fresh_folder, open_to_jobs, until

OPEN = "JOB_CONFINEMENT =\n"
TOOL = """#!/bin/sh
pid=$TDP_AP_PID
echo "address $TDP_LASS_ADDRESS"
echo "words $1 $2"
echo "read $(cat)"
echo "state $(cut -d ' ' -f 3 /proc/$pid/stat)"
echo "program $(readlink /proc/$pid/exe)"
for each in pid mnt user; do
    [ "$(readlink /proc/$pid/ns/$each)" = "$(readlink /proc/self/ns/$each)" ] && echo "same $each"
done
cmp -s /proc/$pid/cgroup /proc/self/cgroup && echo "same group"
[ "$(grep -E '^(Uid|Gid|Groups|NoNewPrivs|Seccomp):' /proc/$pid/status)" = \\
  "$(grep -E '^(Uid|Gid|Groups|NoNewPrivs|Seccomp):' /proc/self/status)" ] && echo "same rights"
[ -e begun ] || echo "nothing done"
kill -CONT $pid
while grep -q '^State:.[^Z]' /proc/$pid/status; do sleep 0.05; done 2> /dev/null
echo "the job has ended"
"""
JOB = "touch begun; echo the job has run"


OWNERS = ["of root", "of root, open", "of root, who has gone", "of a user", "of a user, open"]


@pytest.fixture(scope="module", params=OWNERS)
def pool(request: pytest.FixtureRequest) -> Iterator[PersonalPool]:
    config = OPEN if request.param.endswith("open") else ""
    if request.param.startswith("of a user"):
        with user_pool(config) as made:
            yield made
        return
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if request.param.endswith("gone"):
        with root_pool(slots=2) as dropped:
            yield dropped
        return
    with fresh_folder() as folder:
        own = PersonalPool(folder, slots=2, config=config)
        yield own
        own.stop()


def submitted(pool: PersonalPool, name: str, tool: str, more: str = "", job: str = JOB) -> int:
    (pool.work / f"{name}.tool").write_text(tool)
    return pool.submit(
        f"executable = /bin/sh\ntransfer_executable = false\narguments = \"-c '{job}'\"\n"
        f"should_transfer_files = YES\noutput = {name}.out\nerror = {name}.err\nlog = {name}.log\n"
        f"tool_daemon_cmd = {name}.tool\ntool_daemon_output = {name}.said\ntool_daemon_error = {name}.said\n"
        f"{more}\nqueue\n")


def sleeps(marker: str) -> bool:
    return any(words.rpartition(b"/")[2] == b"sleep\0" + marker.encode() + b"\0" for _, words in command_lines())


def held(pool: PersonalPool, cluster: int) -> str:
    def reason() -> str:
        return pool.tool("condor_q", str(cluster), "-constraint", "JobStatus == 5", "-af", "HoldReason").stdout

    return str(until(reason, "a job that is held"))


def test_a_tool_daemon_lets_its_job_go_and_outlives_it(pool: PersonalPool) -> None:
    """It is in the job's namespaces and groups, finds it at its first instruction, and writes on when it has ended."""
    (pool.work / "asked").write_text("the question")
    submitted(pool, "all", TOOL, "tool_daemon_arguments = \"'a b' c\"\ntool_daemon_input = asked\n"
              "suspend_job_at_exec = true\ntransfer_output_files = \"\"")
    pool.wait("all.log")
    assert (pool.work / "all.out").read_text() == "the job has run\n"
    said = (pool.work / "all.said").read_text().splitlines()
    assert said == [
        "address ENV", "words a b c", "read the question", "state T", f"program {os.path.realpath('/bin/sh')}",
        "same pid", "same mnt", "same user", "same group", "same rights", "nothing done", "the job has ended"]


def test_without_a_word_the_job_goes_on_when_its_tool_is_there(pool: PersonalPool) -> None:
    tool = "#!/bin/sh\nwhile [ ! -e begun ]; do sleep 0.05; done\necho seen\n"
    submitted(pool, "beside", tool)
    pool.wait("beside.log")
    assert (pool.work / "beside.said").read_text() == "seen\n"


def test_what_a_tool_writes_goes_where_its_path_says(pool: PersonalPool) -> None:
    (pool.work / "deep").mkdir()
    open_to_jobs(pool.work / "deep")
    (pool.work / "deep.tool").write_text("#!/bin/sh\necho one\necho two >&2\n")
    pool.submit("executable = /bin/true\nshould_transfer_files = YES\nlog = deep.log\ntool_daemon_cmd = deep.tool\n"
                "tool_daemon_output = deep/tool.out\ntool_daemon_error = deep/tool.err\nqueue\n")
    pool.wait("deep.log")
    assert [(pool.work / "deep" / name).read_text() for name in ("tool.out", "tool.err")] == ["one\n", "two\n"]


def test_a_tool_that_leaves_its_job_standing_is_told(pool: PersonalPool) -> None:
    cluster = submitted(pool, "left", "#!/bin/sh\nexit 7\n", "suspend_job_at_exec = true")
    reason = held(pool, cluster)
    assert "the tool daemon 'left.tool' has ended with status 7" in reason
    assert "still stands at its first instruction" in reason
    assert not (pool.work / "left.out").exists()
    pool.run("condor_rm", str(cluster))


def test_a_tool_that_is_no_program_holds_its_job(pool: PersonalPool) -> None:
    cluster = submitted(pool, "none", "#!/no/such/interpreter\n")
    assert "Failed to execute the tool daemon 'none.tool'" in held(pool, cluster)
    pool.run("condor_rm", str(cluster))


@pytest.mark.parametrize("how", ["condor_rm", "condor_hold"])
def test_a_job_that_stands_still_goes_with_its_tool(pool: PersonalPool, how: str) -> None:
    marker = f"{8_000_000 + os.getpid()}.{len(how)}"
    cluster = submitted(pool, how, f"#!/bin/sh\nexec sleep {marker}\n", "suspend_job_at_exec = true")
    until(lambda: sleeps(marker), "the tool")
    pool.run(how, str(cluster))
    until(lambda: not sleeps(marker), "the tool to go")
    if how == "condor_hold":
        assert pool.tool("condor_q", str(cluster), "-af", "HoldReasonCode").stdout == "1\n"
        pool.run("condor_rm", str(cluster))
    until(lambda: not pool.scratch(), "the scratch directory to go")


def test_a_tool_ends_with_its_starter_host_and_is_started_again(pool: PersonalPool) -> None:
    marker = f"{9_000_000 + os.getpid()}"
    tool = (f"#!/bin/sh\nif [ -e {pool.work}/second ]; then kill -CONT $TDP_AP_PID; exit; fi\nexec sleep {marker}\n")
    submitted(pool, "again", tool, "suspend_job_at_exec = true")
    until(lambda: sleeps(marker), "the tool")
    (pool.work / "second").touch()
    os.kill(pool.pid("starter-host") if isinstance(pool, RootPool) else pool.daemons()["starter-host"], signal.SIGKILL)
    until(lambda: not sleeps(marker), "the tool to go")
    pool.wait("again.log", 60)
    assert (pool.work / "again.out").read_text() == "the job has run\n"


@pytest.mark.skipif(not containers_work(), reason="this kernel gives no namespaces or no overlays")
def test_a_tool_is_in_the_image_of_its_job(pool: PersonalPool) -> None:
    image = docker_archive(root_folder(pool.work / "source-of-tool"), pool.work / "tool.tar")
    tool = "#!/bin/sh\ncat /etc/image\nkill -CONT $TDP_AP_PID\n"
    submitted(pool, "image", tool, f"universe = container\ncontainer_image = {image}\nsuspend_job_at_exec = true")
    pool.wait("image.log", 40)
    assert (pool.work / "image.said").read_text() == "made in a test\n"
    assert (pool.work / "image.out").read_text() == "the job has run\n"


def test_a_shell_knows_the_job_by_its_number_too(pool: PersonalPool) -> None:
    marker = f"{7_000_000 + os.getpid()}"
    cluster = pool.submit(f"executable = /bin/sleep\ntransfer_executable = false\narguments = {marker}\n"
                          "should_transfer_files = YES\nlog = shell.log\nqueue\n")
    until(lambda: sleeps(marker), "the job")
    pool.until_status(f"{cluster}.0", 2)
    said = pool.run("condor_ssh_to_job", f"{cluster}.0", "cat /proc/$_CONDOR_JOB_PIDS/cmdline")
    assert said.replace("\0", " ").split() == ["/bin/sleep", marker]
    pool.run("condor_rm", str(cluster))
