"""The commands about a second program beside the job."""

from __future__ import annotations

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.argument_quoting import split_raw
from condor_actors.cores.output_names import OutputNames
from condor_actors.cores.starter.run_spec import BadJob, read_spec
from condor_actors.cores.starter.tool_daemon import ToolSpec
from condor_actors.cores.submit_commands import objection
from condor_actors.submit import SubmitError
from tests.unit.submit.worlds import World, described, jobs_of

START = "executable = /bin/true\nshould_transfer_files = YES\n"
TOOL = f"{START}tool_daemon_cmd = tool\n"


def world() -> World:
    return World(files={"/bin/true": 30_000})


def made(text: str) -> ClassAd:
    (job,) = jobs_of(f"{text}queue\n", world())
    return job


def test_what_a_job_says_of_its_tool() -> None:
    job = made(f"{TOOL}tool_daemon_arguments = \"'a b' c\"\ntool_daemon_input = in/asked\n"
               "tool_daemon_output = out/said\ntool_daemon_error = said.err\nsuspend_job_at_exec = true\n")
    iwd = job.get_str("Iwd")
    assert job.get_str("TransferInput") == f"{iwd}/tool,{iwd}/in/asked"
    assert job.get_str("TransferOutputRemaps") == "said=out/said"
    assert "TARGET.HasTDP" in str(job.expression("Requirements"))
    assert objection(job, job) is None
    assert read_spec(job).tool == ToolSpec(program="tool", arguments=("a b", "c"), stdin="asked", stdout="said",
                                           stderr="said.err", lets_go=True)
    assert all(OutputNames(job).have(name) for name in ("said", "said.err"))
    assert made(f"{TOOL}tool_daemon_args = a b\n").get_str("ToolDaemonArgs") == "a b"
    assert split_raw(made(f"{TOOL}tool_daemon_arguments2 = \"'a b'\"\n").get_str("ToolDaemonArguments")) == ["a b"]


def test_the_tool_of_a_job_whose_files_stay() -> None:
    job = made("executable = /bin/true\nshould_transfer_files = NO\nskip_filechecks = true\n")
    job.update({"ToolDaemonCmd": "/opt/tool", "ToolDaemonOutput": "said"})
    tool = read_spec(job).tool
    assert tool is not None
    assert (tool.program, tool.outputs) == ("/opt/tool", ("said",))


@pytest.mark.parametrize(("text", "said"), [
    (f"{START}suspend_job_at_exec = true\n", "suspend_job_at_exec is about a tool daemon"),
    (f"{START}tool_daemon_output = x\n", "tool_daemon_output is about a tool daemon"),
    (f"{START}tool_daemon_args = x\n", "tool_daemon_arguments is about a tool daemon"),
    (f"{TOOL}tool_daemon_args = x\ntool_daemon_arguments = y\n", "two names of the same command"),
    (f"{TOOL}tool_daemon_args = x\ntool_daemon_arguments2 = \"y\"\n", "allow_arguments_v1"),
    (f"{TOOL}output = x\ntool_daemon_output = x\n", "is what the job itself writes"),
    (f"{TOOL}universe = local\n", "jobs of this universe are not run by a starter"),
    (f"{TOOL}universe = standard\n", "jobs of this universe are not run by a starter"),
])
def test_what_cannot_be(text: str, said: str) -> None:
    with pytest.raises(SubmitError) as caught:
        described(f"{text}queue\n", world())
    assert said in str(caught.value)


@pytest.mark.parametrize("attributes", [
    {"SuspendJobAtExec": True}, {"ToolDaemonCmd": "/"}, {"ToolDaemonCmd": "tool", "ToolDaemonOutput": "a/.."},
    {"ToolDaemonCmd": "tool", "ToolDaemonArguments": "'"},
    {"ToolDaemonCmd": "tool", "JobUniverse": 1},
])
def test_what_another_client_cannot_say(attributes: dict[str, object]) -> None:
    with pytest.raises(BadJob):
        read_spec(ClassAd({"Cmd": "/bin/true", "ClusterId": 1, "ProcId": 0, **attributes}))
