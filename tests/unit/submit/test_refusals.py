"""Every command of the manual has a row, and each refused one is refused with the reason, file, line and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.classads import ClassAd, requirements_hold
from condor_actors.cores.submit_commands import COMMANDS, Standing, objection
from condor_actors.submit import SubmitError
from condor_actors.submit.keywords import SIMPLE
from tests.unit.submit.worlds import World, described, jobs_of

ROOT = Path(__file__).parents[3]
MANUAL = (ROOT / "tests/conformance/submit/manual_commands.txt").read_text().split()
REFUSED = [row for row in COMMANDS if row.standing is Standing.REFUSED]
IGNORED = [row for row in COMMANDS if row.standing is Standing.IGNORED]
START = "executable = /bin/true\n"
MADE_BY_SUBMIT = {"AcctGroup", "AcctGroupUser", "JobMaxRetries", "OnExitHoldSubCode", "PeriodicHoldReason",
                  "PeriodicHoldSubCode", "JobBatchId", "DAGNodeName", "DAGManJobId", "TransferContainer", "RequireGPUs",
                  "GPUsMinCapability", "GPUsMaxCapability", "GPUsMinMemory", "GPUsMinRuntime"}
"""Attributes whose effect is the tool's own work, or that other attributes are made of."""


def world() -> World:
    return World(files={"/bin/true": 30_000})


def word_of(name: str) -> str:
    return name.replace("<name>", "abc").replace("<service-name>", "web").replace("<credential_service_name>", "box")


def test_every_command_of_the_manual_has_one_row() -> None:
    names = [row.name for row in COMMANDS]
    assert sorted(set(MANUAL) - set(names)) == []
    assert len(names) == len(set(names))


def test_every_simple_command_has_a_row_by_name_or_attribute() -> None:
    names = {row.name.lower() for row in COMMANDS}
    attributes = {row.attribute.lower() for row in COMMANDS if row.attribute}
    assert [each.command for each in SIMPLE if each.command not in names and each.key not in attributes] == []


def test_what_is_done_is_read_by_somebody_outside_the_language() -> None:
    skipped = ("submit/", "config/", "cores/submit_commands.py", "simulation/", "userlog/", "tools/printing")
    package = ROOT / "condor_actors"
    text = "\n".join(
        path.read_text() for path in package.rglob("*.py")
        if not str(path.relative_to(package)).startswith(skipped)
    )
    done = [row.attribute for row in COMMANDS if row.standing is Standing.DONE and row.attribute]
    assert [name for name in done if f'"{name}"' not in text and name not in MADE_BY_SUBMIT] == []


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row.name)
def test_what_is_not_done_is_refused_with_the_reason(row: object) -> None:
    name = word_of(row.name)  # type: ignore[attr-defined]
    with pytest.raises(SubmitError, match="would have no effect") as caught:
        described(f"{START}{name} = 7\nqueue\n", world())
    assert row.reason in str(caught.value)  # type: ignore[attr-defined]
    assert caught.value.command == name.lower()


@pytest.mark.parametrize("row", [row for row in REFUSED if row.attribute], ids=lambda row: row.attribute)
def test_the_attribute_is_refused_too(row: object) -> None:
    name = row.attribute  # type: ignore[attr-defined]
    with pytest.raises(SubmitError, match="would have no effect"):
        described(f"{START}+{name} = 7\nqueue\n", world())
    assert objection(ClassAd.from_text(f"{name} = 7"), [name]) is not None


@pytest.mark.parametrize("value", ["", "false", "False", "0", "no"])
@pytest.mark.parametrize("name", ["noop_job", "use_scitokens", "manifest", "container_is_common"])
def test_a_value_that_asks_for_nothing_is_taken(name: str, value: str) -> None:
    jobs_of(f"{START}{name} = {value}\nqueue\n", world())


@pytest.mark.parametrize("row", IGNORED, ids=lambda row: row.name)
def test_what_is_ignored_is_told(row: object) -> None:
    name, reason = row.name, row.reason  # type: ignore[attr-defined]
    made = described(f"{START}{name} = 7\nqueue\n" if name != "load_profile"
                     else f"{START}{name} = true\nqueue\n", world())
    assert any(reason in warning for warning in made.warnings)


@pytest.mark.parametrize("universe", ["java", "10"])
def test_universes_that_are_not_there(universe: str) -> None:
    with pytest.raises(SubmitError, match=f"universe = {universe} would have no effect") as caught:
        described(f"{START}universe = {universe}\nmachine_count = 1\nqueue\n", world())
    assert caught.value.command == "universe"


def test_a_job_is_handed_to_slurm() -> None:
    (job,) = jobs_of(f"{START}universe = grid\ngrid_resource = batch slurm\nbatch_queue = short\n"
                     "batch_project = p\nbatch_runtime = 90\nbatch_extra_submit_args = --nice=3 -N 1\nqueue\n", world())
    assert (job.get_int("JobUniverse"), job.get_str("GridResource")) == (9, "batch slurm")
    assert (job.get_str("BatchQueue"), job.get_str("BatchProject"), job.get_int("BatchRuntime"),
            job.get_str("BatchExtraSubmitArgs")) == ("short", "p", 90, "--nice=3 -N 1")
    assert objection(job, job) is None


def test_a_job_is_handed_to_another_schedd() -> None:
    (job,) = jobs_of(f"{START}universe = grid\ngrid_resource = condor there pool\nremote_universe = local\n"
                     "remote_requirements = TARGET.HasIt\nremote_Colour = \"red\"\n+remote_Size = 3\nqueue\n", world())
    assert (job.get_str("GridResource"), job.get_int("Remote_JobUniverse")) == ("condor there pool", 12)
    assert str(job.expression("Remote_requirements")) == "TARGET.HasIt"
    assert (job.get_str("Remote_Colour"), job.get_int("Remote_Size")) == ("red", 3)
    assert objection(job, job) is None


@pytest.mark.parametrize("line", ["remote_universe = grid", "remote_remote_x = 1", "remote_cmd = 1",
                                  "+remote_GridResource = \"a\"", "+remote_JobUniverse = 9",
                                  "remote_grid_resource = batch slurm"])
def test_what_it_cannot_be_there(line: str) -> None:
    with pytest.raises(SubmitError):
        described(f"{START}universe = grid\ngrid_resource = condor there pool\n{line}\nqueue\n", world())


@pytest.mark.parametrize("resource", ["batch pbs", "condor schedd.example", "batch slurm user@host", "7"])
def test_a_job_is_handed_to_nothing_else(resource: str) -> None:
    with pytest.raises(SubmitError, match="would have no effect") as caught:
        described(f"{START}universe = grid\ngrid_resource = {resource}\nqueue\n", world())
    assert caught.value.command == "grid_resource"
    ad = ClassAd({"JobUniverse": 9, "GridResource": resource})
    assert "would have no effect" in str(objection(ad, ad))


def test_a_job_of_the_grid_says_where_it_runs() -> None:
    with pytest.raises(SubmitError, match="has to say where it runs"):
        described(f"{START}universe = grid\nqueue\n", world())
    ad = ClassAd({"JobUniverse": 9})
    assert "would have no effect" in str(objection(ad, ad))


def test_a_macro_of_the_same_name_is_a_macro() -> None:
    text = f"{START}encrypt_execute_directory = results\noutput = $(encrypt_execute_directory)/out\nqueue\n"
    made = described(text, world())
    (job,) = jobs_of(text, world())
    assert job.get_str("Out") == "results/out"
    assert "EncryptExecuteDirectory" not in job
    assert any("taken for a macro only" in warning for warning in made.warnings)


def test_a_dry_run_tells_instead_of_refusing() -> None:
    made = described(f"{START}encrypt_execute_directory = true\nqueue\n", world(), refuses=False)
    assert made.clusters
    assert any("would be refused: encrypt_execute_directory" in warning for warning in made.warnings)


@pytest.mark.parametrize("text", ["JobUniverse = 9", "JobUniverse = 10", 'GridResource = "ec2 https://a"',
                                  "EncryptExecuteDirectory = true", 'CudaVersion = "12"'])
def test_the_schedd_refuses_what_other_clients_send(text: str) -> None:
    ad = ClassAd.from_text(text)
    assert "would have no effect" in str(objection(ad, ad))


def test_false_attributes_are_no_objection() -> None:
    ad = ClassAd.from_text("IsNoopJob = false\nStreamIn = false\nJobUniverse = 5")
    assert objection(ad, ad) is None


def test_the_page_names_every_command() -> None:
    import importlib.util

    spec = importlib.util.spec_from_file_location("command_table", ROOT / "docs/command_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.on_page_markdown((ROOT / "docs/submit.md").read_text())
    assert [row.name for row in COMMANDS if f"`{row.name}`" not in page] == []


@pytest.mark.parametrize("line", ["queue 1 in ($(manifest))", "if $(manifest)\n arguments = x\nendif\nqueue"])
def test_a_macro_is_one_wherever_it_is_used(line: str) -> None:
    assert described(f"{START}manifest = true\n{line}\n", world()).clusters


def test_one_machine_is_what_every_job_gets() -> None:
    assert described(f"{START}machine_count = 1\nqueue\n", world()).clusters
    for text in ("machine_count = 2", "node_count = 2", "+WantParallelScheduling = true"):
        with pytest.raises(SubmitError, match="in the parallel universe alone"):
            described(f"{START}{text}\nqueue\n", world())


def test_a_gang_says_how_many_and_what_stands_for_a_node() -> None:
    (cluster,) = described(f"{START}universe = parallel\nmachine_count = 3\noutput = o.$(Node)\nqueue\n",
                           world()).clusters
    ad = dict(cluster.attributes.values())
    assert (ad["JobUniverse"], ad["MinHosts"], ad["MaxHosts"], ad["Out"]) == (11, 3, 3, "o.#pArAlLeLnOdE#")
    assert "DedicatedScheduler" in str(ad["Requirements"])
    with pytest.raises(SubmitError, match="No machine_count"):
        described(f"{START}universe = parallel\nqueue\n", world())


@pytest.mark.parametrize(("lines", "attributes"), [
    ("request_memory = 1GB\nretry_request_memory = 2GB, 8GB", {"RetryRequestMemory": [2048, 8192]}),
    ("request_memory = 1GB, 4GB", {"RequestMemory": 1024, "RetryRequestMemory": [4096]}),
    ("request_memory = 1GB\nretry_request_memory_max = 4GB", {"RetryRequestMemory": [4096]}),
    ("request_memory = 1GB\nretry_request_memory_increase = 1GB",
     {"NextRequestMemory": 2048, "MaxRequestMemory": 2048}),
    ("request_memory = 1GB\nretry_request_memory_increase = RequestMemory * 4\nretry_request_memory_max = 8GB",
     {"NextRequestMemory": 4096, "MaxRequestMemory": 8192}),
    ("request_memory = 1GB\nretry_request_memory_increase = RequestMemory * 4",
     {"NextRequestMemory": 4096, "MaxRequestMemory": 4096}),
    ("request_disk = 1GB\nretry_request_disk = 2GB", {"RetryRequestDisk": [2 << 20]}),
])
def test_requests_that_are_raised(lines: str, attributes: dict[str, object]) -> None:
    (job,) = jobs_of(f"{START}{lines}\nqueue\n", world())
    made = {name: job.evaluate(name) for name in attributes}
    plain = {name: list(value) if isinstance(value, (list, tuple)) else value for name, value in made.items()}
    assert plain == attributes


@pytest.mark.parametrize(("lines", "problem"), [
    ("request_memory = 4GB\nretry_request_memory = 2GB", "must grow, and are 4096, 2048"),
    ("request_memory = 4GB\nretry_request_memory = much", "expected amounts such as 2GB, 8GB"),
    ("request_memory = 4GB\nretry_request_memory_increase = 7 * 8", "or an expression of RequestMemory"),
    ("request_memory = 4GB\nretry_request_memory_increase = 1GB\nretry_request_memory_max = 2GB", "more than 4096"),
    ("request_memory = 4GB\nretry_request_memory_increase = RequestMemory / 2", "comes to 2048, expected more"),
    ("request_memory = Foo\n+Foo = 3\nretry_request_memory_increase = 1GB", "needs a request_memory that is an"),
])
def test_requests_that_cannot_be_raised(lines: str, problem: str) -> None:
    with pytest.raises(SubmitError, match=problem):
        jobs_of(f"{START}{lines}\nqueue\n", world())


def test_an_image_of_a_registry_is_fetched_where_the_job_runs() -> None:
    (job,) = jobs_of(f"{START}universe = container\ncontainer_image = docker://registry.example:5000/a/tool:x\n"
                     "should_transfer_files = YES\nqueue\n", world())
    assert job.evaluate("ContainerImage") == "docker://registry.example:5000/a/tool:x"
    assert (job.evaluate("WantContainer"), job.evaluate("WantDockerImage")) == (True, True)
    assert (job.evaluate("TransferContainer"), "TransferInput" in job, "WantSandboxImage" in job) == (False,) * 3
    requirements = str(job.expression("Requirements"))
    assert "TARGET.HasContainer && TARGET.HasDockerURL" in requirements
    assert "HasSandboxImage" not in requirements


@pytest.mark.parametrize(("image", "problem"), [
    ("docker://Tool", "no name of an image"), ("docker://tool:a:b", "is no tag"), ("docker:tool", "neither a path nor"),
    ("docker://user:word@host/tool", "is no digest"), ("oras://tool", "has to name its registry"),
    ("oras:x", "neither a path"), ("https://h/t", "neither a path"),
])
def test_what_names_no_image_is_refused_when_it_is_submitted(image: str, problem: str) -> None:
    with pytest.raises(SubmitError, match=problem):
        jobs_of(f"{START}universe = container\ncontainer_image = {image}\nqueue\n", world())


def test_a_job_of_the_docker_universe_names_its_image_without_a_scheme() -> None:
    text = "universe = docker\ndocker_image = registry.example:5000/tool\nshould_transfer_files = YES\nqueue\n"
    (job,) = jobs_of(START + text, world())
    assert (job.evaluate("WantDocker"), job.evaluate("DockerImage")) == (True, "registry.example:5000/tool")
    assert "TARGET.HasDocker" in str(job.expression("Requirements"))
    (job,) = jobs_of(START + text.replace("= docker\n", "= container\n"), world())
    assert job.evaluate("ContainerImage") == "docker://registry.example:5000/tool"


@pytest.mark.parametrize(("lines", "problem"), [
    ("docker_image = Tool", "no name of an image"), ("container_image = x", "needs a docker_image"),
    ("docker_image = tool\ndocker_network_type = bridge", "neither host nor none"),
    ("docker_image = tool\ncontainer_target_dir = x", "no absolute path"),
    ("docker_image = tool\ndocker_pull_policy = never", "is not always"),
])
def test_what_the_docker_universe_cannot_have_is_refused(lines: str, problem: str) -> None:
    with pytest.raises(SubmitError, match=problem):
        jobs_of(f"{START}universe = docker\n{lines}\nqueue\n", world())


@pytest.mark.parametrize(("image", "wanted"), [
    ("tool.sif", {"WantSIF": "HasSIF"}), ("tool.tar", {"WantSandboxImage": "HasSandboxImage"}),
    ("oras://registry.example/tool.sif:1", {"WantSIF": "HasSIF", "WantDockerImage": "HasDockerURL"}),
])
def test_which_machines_an_image_takes(image: str, wanted: dict[str, str]) -> None:
    (job,) = jobs_of(f"{START}container_image = {image}\nshould_transfer_files = YES\nqueue\n", world())
    assert {name for name in job if name.startswith("Want") and name not in ("WantContainer",)} >= set(wanted)
    requirements = str(job.expression("Requirements"))
    assert all(f"TARGET.{name}" in requirements for name in wanted.values())
    assert job.evaluate("TransferContainer") is not image.startswith("oras:")


SENDS = "should_transfer_files = YES\ndocker_send_credentials = true\n"
LOGINS = '{"auths": {"https://index.docker.io/v1/": {"auth": "YWxpY2U6d29yZA=="}}}'


def test_the_file_with_the_login_for_a_private_image_is_found() -> None:
    here = World(files={"/bin/true": 30_000, "/d/config.json": 9}, texts={"/d/config.json": LOGINS},
                 environ={"DOCKER_CONFIG": "/d", "HOME": "/h"})
    for image in ("universe = docker\ndocker_image = alice/tool\n", "container_image = docker://tool\n"):
        (job,) = jobs_of(f"{START}{image}{SENDS}queue\n", here)
        assert job.evaluate("DockerSendCredentials") is True
        assert job.evaluate("ContainerLoginFile") == "/d/config.json"
    with pytest.raises(SubmitError, match=r"no login for other\.example in /d/config\.json"):
        jobs_of(f"{START}container_image = docker://other.example/tool\n{SENDS}queue\n", here)
    with pytest.raises(SubmitError, match=r"no login for docker\.io in any file of docker login"):
        jobs_of(f"{START}container_image = docker://tool\n{SENDS}queue\n", world())
    with pytest.raises(SubmitError, match="is about an image of a registry"):
        jobs_of(f"{START}container_image = tool.tar\n{SENDS}queue\n", here)


SERVES = "universe = container\ncontainer_image = docker://tool\ncontainer_service_names = web, db\n"
PORTS = "web_container_port = 80\ndb_container_port = 5432\n"


def test_ports_of_a_job_in_an_image() -> None:
    made = described(f"{START}{SERVES}{PORTS}queue\n", world())
    (job,) = jobs_of(f"{START}{SERVES}{PORTS}queue\n", world())
    assert job.evaluate("ContainerServiceNames") == "web,db"
    assert (job.evaluate("web_ContainerPort"), job.evaluate("db_ContainerPort")) == (80, 5432)
    assert any("in which it reaches nothing else" in warning for warning in made.warnings)
    made = described(f"{START}{SERVES}{PORTS}docker_network_type = host\nqueue\n", world())
    assert not made.warnings


@pytest.mark.parametrize(("lines", "problem"), [
    (f"{SERVES}web_container_port = 80\n", "names db, and there is no db_container_port"),
    (f"{SERVES}web_container_port = 80\ndb_container_port = 70000\n", "whole number from 1 to 65535"),
    (f"{SERVES}web_container_port = 80\ndb_container_port = 80\n", "have the same port 80"),
    (f"{SERVES}{PORTS}container_service_names = a-b\n", "is no name of a service"),
    ("container_service_names = web\nweb_container_port = 80\n", "about a job in an image"),
])
def test_ports_that_cannot_be_forwarded(lines: str, problem: str) -> None:
    with pytest.raises(SubmitError, match=problem):
        jobs_of(f"{START}{lines}queue\n", world())


KEYS = "s3_access_key_id_file = id\ns3_secret_access_key_file = secret\n"


@pytest.mark.parametrize(("text", "command", "message"), [
    ("transfer_input_files = s3://b/k\n", None, "s3_access_key_id_file is missing"),
    ("transfer_input_files = gs://b/k\ngs_access_key_id_file = id\n", None, "s3_secret_access_key_file is missing"),
    ("output_destination = results\n", "output_destination", "no URL"),
    ("checkpoint_destination = results\ncheckpoint_exit_code = 85\n", "checkpoint_destination", "no URL"),
    ("checkpoint_destination = https://h/x\n", "checkpoint_destination", "without checkpoint_exit_code"),
    ("checkpoint_destination = https://h/x\ncheckpoint_exit_code = 85\nshould_transfer_files = no\n",
     "checkpoint_destination", "should_transfer_files is NO"),
    ("checkpoint_destination = s3://b/x\ncheckpoint_exit_code = 85\n", None, "s3_access_key_id_file is missing"),
    ("universe = local\ncheckpoint_destination = https://h/x\ncheckpoint_exit_code = 85\n", None, "of this universe"),
    ("output = https://h/x\nstream_output = true\n", "stream_output", "no effect"),
    ('transfer_output_remaps = "a = https://h/x"\nshould_transfer_files = NO\n', "should_transfer_files", "is NO"),
    ("universe = scheduler\nerror = https://h/x\n", None, "of this universe"),
    ("universe = grid\ngrid_resource = batch slurm\noutput_destination = https://h/x\n", None, "of this universe"),
])  # fmt: skip
def test_urls_that_could_not_be_served_at_the_end(text: str, command: str | None, message: str) -> None:
    with pytest.raises(SubmitError, match=message) as caught:
        described(f"{START}{text}queue\n", world())
    if command:
        assert caught.value.command == command


def test_objects_need_machines_that_speak_https() -> None:
    (job,) = jobs_of(f'{START}{KEYS}transfer_input_files = s3://b/k\ntransfer_output_remaps = "a = gs://b/a"\nqueue\n',
                     world())
    assert job.get_str("WantTransferPluginMethods") == "https"
    assert 'stringListIMember("https",TARGET.HasFileTransferPluginMethods)' in str(job.expression("Requirements"))
    assert (job.get_str("EC2AccessKeyId"), job.get_str("EC2SecretAccessKey")) == ("id", "secret")


def test_a_shared_disk_does_not_replace_the_plugin_for_a_url() -> None:
    """A machine with the same disk and without the plugin matched, and the job began without its input."""
    text = f"{START}should_transfer_files = IF_NEEDED\n"
    (job,) = jobs_of(f"{text}transfer_input_files = osdf://store/part\nqueue\n", world())
    near = {"HasFileTransfer": True, "FileSystemDomain": job.evaluate("FileSystemDomain"), "Arch": "X86_64",
            "OpSys": "LINUX", "Disk": 1 << 30, "Memory": 1 << 20}
    assert not requirements_hold(job, ClassAd({**near, "HasFileTransferPluginMethods": "http,https"}), 0.0)
    assert requirements_hold(job, ClassAd({**near, "HasFileTransferPluginMethods": "https,osdf"}), 0.0)
    (job,) = jobs_of(f"{text}transfer_input_files = /bin/true\nqueue\n", world())
    assert requirements_hold(job, ClassAd({**near, "HasFileTransfer": False}), 0.0)


def test_how_files_travel_does_not_say_that_they_do() -> None:
    """Snakemake says preserve_relative_paths always: its programs were copied to machines that share its disk."""
    for said, expected in (("", "IF_NEEDED"), ("should_transfer_files = NO\n", "NO"),
                           ("should_transfer_files = YES\n", "YES")):
        (job,) = jobs_of(f"{START}{said}preserve_relative_paths = true\nqueue\n", world())
        assert job.get_str("ShouldTransferFiles") == expected
    (job,) = jobs_of(f"{START}output_directory = there\nqueue\n", world())
    assert job.get_str("ShouldTransferFiles") == "YES"


def test_a_level_for_a_log_that_the_job_does_not_have() -> None:
    with pytest.raises(SubmitError, match="it has none") as caught:
        described(f"{START}starter_debug = D_FULLDEBUG\nqueue\n", world())
    assert caught.value.command == "starter_debug"
    (job,) = jobs_of(f"{START}starter_log = own\nqueue\n", world())
    assert (job.evaluate("JobStarterDebug"), job.get_str("ShouldTransferFiles")) == (True, "YES")
