"""Jobs in images of registries: a real registry, and one that lies; in a pool of root's and in an ordinary user's."""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import signal
import tarfile
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from condor_actors.machine.containers.probe import containers_work
from tests.harness.images import packed, root_folder
from tests.harness.proc_files import command_lines, proc_file
from tests.harness.registry import Hostile, Image, hostile_registry, made_image, push, real_registry
from tests.harness.registry_logins import PASSWORD, USER, logins, token_server
from tests.harness.sif import sif, squashfs
from tests.harness.user_pool import user_pool
from tests.pool_fixture import PersonalPool, fresh_folder, until

pytestmark = pytest.mark.skipif(not containers_work(), reason="this kernel gives no namespaces or no overlays")
CONFIG = "STARTER_INITIAL_UPDATE_INTERVAL = 1\nSTARTER_UPDATE_INTERVAL = 1\nCONTAINER_IMAGE_LIMIT = 64\n"


@pytest.fixture(scope="module", params=["root's", "a user's"])
def pool(request: pytest.FixtureRequest) -> Iterator[PersonalPool]:
    if request.param == "a user's":
        with user_pool(CONFIG) as made:
            yield made
        return
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with fresh_folder() as folder:
        own = PersonalPool(folder, slots=2, config=CONFIG)
        yield own
        own.stop()


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with real_registry(tmp_path_factory.mktemp("registry")) as host:
        yield host


@pytest.fixture
def hostile() -> Iterator[Hostile]:
    with hostile_registry() as made:
        yield made


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A layer with a root directory."""
    return packed(root_folder(tmp_path_factory.mktemp("image")))


def saying(text: str) -> bytes:
    """A layer with a file that says which image it is."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        member = tarfile.TarInfo("etc/image")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text.encode()))
    return stream.getvalue()


def docker_job(pool: PersonalPool, name: str, image: str, more: str = "") -> str:
    """What a job of the docker universe says."""
    pool.submit(f"universe = docker\ndocker_image = {image}\nexecutable = /bin/sh\ntransfer_executable = false\n"
                f"arguments = \"-c 'cat /etc/image; echo $0 $1' zero one\"\nlog = {name}.log\noutput = {name}.out\n"
                f"should_transfer_files = YES\n{more}queue\n")
    pool.wait(f"{name}.log", 60)
    return (pool.work / f"{name}.out").read_text()


def test_the_docker_universe_starts_the_program_by_the_entrypoint_of_its_image(
        pool: PersonalPool, registry: str, root: bytes) -> None:
    """Its word is looked for by the image's PATH; docker_override_entrypoint and images without one do without it."""
    until(lambda: "true" in pool.run("condor_status", "-af", "HasDocker"), "the machine to have tried an image")
    entry = ("sh", "-c", 'echo "by entrypoint $1"; exec "$@"', "entry")
    push(registry, "group/entry", "x", made_image(gzip.compress(root), saying("entered\n"), entrypoint=entry))
    push(registry, "group/entry", "bare", made_image(gzip.compress(root), saying("bare\n")))
    said = docker_job(pool, "entry", f"{registry}/group/entry:x")
    assert said == "by entrypoint /bin/sh\nentered\nzero one\n"
    said = docker_job(pool, "override", f"{registry}/group/entry:x", "docker_override_entrypoint = true\n")
    assert said == "entered\nzero one\n"
    assert docker_job(pool, "bare", f"docker://{registry}/group/entry:bare") == "bare\nzero one\n"


def submitted(pool: PersonalPool, name: str, image: str, script: str = "cat /etc/image", more: str = "") -> int:
    return pool.submit(
        f"universe = container\ncontainer_image = {image}\nexecutable = /bin/sh\ntransfer_executable = false\n"
        f"arguments = \"-c '{script}'\"\nlog = {name}.log\noutput = {name}.out\nerror = {name}.err\n"
        f"should_transfer_files = YES\n{more}\nqueue\n")


def ran(pool: PersonalPool, name: str, image: str, more: str = "") -> str:
    submitted(pool, name, image, more=more)
    pool.wait(f"{name}.log", 60)
    return (pool.work / f"{name}.out").read_text()


def held(pool: PersonalPool, image: str) -> str:
    """Why a job in this image is held."""
    cluster = submitted(pool, "held", image)
    pool.until_status(f"{cluster}.0", 5)
    (job,) = pool.jobs(str(cluster))
    assert job["HoldReasonCode"] == 35
    pool.run("condor_rm", str(cluster))
    return str(job["HoldReason"])


def test_a_job_runs_in_an_image_of_a_real_registry_and_keeps_its_digest(
        pool: PersonalPool, registry: str, root: bytes) -> None:
    base = gzip.compress(root)
    first, second = made_image(base, saying("first\n")), made_image(base, saying("second\n"))
    push(registry, "group/tool", "x", first)
    cluster = submitted(pool, "one", f"docker://{registry}/group/tool:x", "cat /etc/image; echo $FROM_IMAGE")
    pool.wait("one.log", 60)
    assert (pool.work / "one.out").read_text() == "first\nyes\n"
    (job,) = pool.history(str(cluster))
    assert job["ContainerImageDigest"] == first.digest
    push(registry, "group/tool", "x", second)
    named = f"docker://{registry}/group/tool@{second.digest}"
    assert ran(pool, "named", named) == "second\n"
    pinned = f'+ContainerImageDigest = "{second.digest}"'  # as a job has it that moves
    assert ran(pool, "pinned", f"docker://{registry}/group/tool:x", pinned) == "second\n"
    assert ran(pool, "lately", f"docker://{registry}/group/tool:x") == "first\n"  # what it meant a moment ago
    always = f'docker_pull_policy = always\n+ContainerImageDigest = "{first.digest}"'
    assert ran(pool, "always", f"docker://{registry}/group/tool:x", always) == "second\n"


def test_a_private_image_is_fetched_with_what_its_owners_login_is_worth(
        pool: PersonalPool, root: bytes, tmp_path: Path) -> None:
    """The password goes to the server of tokens alone; where the login is wrong the job is held."""
    image = made_image(gzip.compress(root), saying("private\n"))
    with real_registry(tmp_path) as open_one:
        push(open_one, "group/private", "x", image)
        push(open_one, "group/private", "y", image)  # another name, which no run has asked about
    more = "docker_send_credentials = true\n"
    with token_server(tmp_path / "tokens") as tokens, real_registry(tmp_path, auth=tokens.auth) as host:
        file = logins(pool.work / "logins", host)
        file.chmod(0o644)
        pool.environment["DOCKER_CONFIG"] = str(file.parent)
        assert docker_job(pool, "private", f"{host}/group/private:x", more) == "private\nzero one\n"
        (job,) = [each for each in pool.history() if each.get("UserLog", "").endswith("private.log")]
        assert job["ContainerImageDigest"] == image.digest
        told = " ".join(map(str, job.values())) + (pool.work / "private.log").read_text()
        assert PASSWORD not in told
        assert "Bearer" not in told
        logins(pool.work / "logins", host, password="wrong")
        cluster = submitted(pool, "wrong", f"docker://{host}/group/private:y", more=more)
        pool.until_status(f"{cluster}.0", 5)
        (job,) = pool.jobs(str(cluster))
        assert f"the registry does not give {host}/group/private to alice" in job["HoldReason"]
        assert job["HoldReasonCode"] == 35
        pool.run("condor_rm", str(cluster))
        words = [word.encode() for each in (PASSWORD, f"{USER}:{PASSWORD}", f"{USER}:wrong", "Bearer eyJ")
                 for word in (each, base64.b64encode(each.encode()).decode().rstrip("="))]
        until(lambda: not pool.scratch(), "the folder of the last run to go")
        files = [path for path in pool.dir.rglob("*") if path.is_file()]
        assert [path for path in files if any(word in path.read_bytes() for word in words)] == []


def test_an_image_that_apptainer_has_pushed(pool: PersonalPool, registry: str, tmp_path: Path) -> None:
    """One layer, which is a SIF file."""
    packed = squashfs(root_folder(tmp_path / "root"), tmp_path / "image")
    push(registry, "group/apptainer", "x", made_image(sif(packed)))
    assert ran(pool, "oras", f"oras://{registry}/group/apptainer:x") == "made in a test\n"


def test_an_image_is_fetched_once_for_jobs_that_begin_together(
        pool: PersonalPool, hostile: Hostile, root: bytes) -> None:
    image = hostile.has("x", made_image(root, saying("once\n")))
    cluster = submitted(pool, "both", f"docker://{hostile.host}/tool:x", more="queue 3")
    until(lambda: len(pool.history(str(cluster))) == 4, "the end of all four")
    assert hostile.count("manifests/x") == 1
    assert hostile.count(f"manifests/{image.digest}") == 1
    assert [hostile.count(digest) for digest in image.blobs] == [1, 1, 1]


def test_what_lies_or_does_not_fit_is_held_with_the_reason(pool: PersonalPool, hostile: Hostile, root: bytes) -> None:
    name = f"docker://{hostile.host}/tool"
    image = hostile.has("wrong", made_image(root, saying("wrong\n")))
    hostile.blobs[json.loads(image.manifest)["layers"][0]["digest"]] = bytes(len(root))
    assert "gave something else for sha256:" in held(pool, f"{name}:wrong")
    hostile.has("bomb", made_image(gzip.compress(_tar(bytes(80 << 20)))))
    assert "unpacked it has more than the 64 MB" in held(pool, f"{name}:bomb")
    assert f"has no {hostile.host}/tool of that tag" in held(pool, f"{name}:none")
    until(lambda: not pool.scratch(), "the folder of the last run to go")


def _tar(content: bytes) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        member = tarfile.TarInfo("zeros")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def test_a_registry_that_does_not_answer_is_no_fault_of_the_job(
        pool: PersonalPool, hostile: Hostile, root: bytes) -> None:
    hostile.has("x", made_image(root, saying("back\n")))

    def away(request: BaseHTTPRequestHandler) -> None:
        request.send_error(503)

    hostile.answers["manifests/x"] = away
    cluster = submitted(pool, "away", f"docker://{hostile.host}/tool:x")
    until(lambda: any(job.get("NumFailedStarts", 0) > 0 for job in pool.jobs(str(cluster))), "a run that failed")
    (job,) = pool.jobs(str(cluster))
    assert job["JobStatus"] != 5
    assert "the registry says 503" in (pool.work / "away.log").read_text()
    hostile.answers.clear()
    pool.wait("away.log", 60)
    assert (pool.work / "away.out").read_text() == "back\n"


class Dripping:
    """A layer that comes slowly until the test ends."""

    def __init__(self, hostile: Hostile, image: Image) -> None:
        self.going = True
        self.content = image.blobs[json.loads(image.manifest)["layers"][0]["digest"]]
        hostile.answers[json.loads(image.manifest)["layers"][0]["digest"]] = self

    def __call__(self, request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(self.content)))
        request.end_headers()
        for byte in self.content:
            if not self.going:
                return
            request.wfile.write(bytes([byte]))
            time.sleep(0.05)


def test_killed_while_it_fetches_nothing_is_left_and_the_job_runs_again(
        pool: PersonalPool, hostile: Hostile, root: bytes) -> None:
    image = hostile.has("x", made_image(root, saying("again\n")))
    slow = Dripping(hostile, image)
    cluster = submitted(pool, "killed", f"docker://{hostile.host}/tool:x")
    layer = json.loads(image.manifest)["layers"][0]["digest"]
    until(lambda: hostile.count(layer) == 1, "the begin of the transfer")
    pool.kill("starter-host")
    hostile.answers.clear()
    pool.wait("killed.log", 60)
    slow.going = False
    assert (pool.work / "killed.out").read_text() == "again\n"
    until(lambda: not pool.scratch(), "an empty EXECUTE")
    until(lambda: not pullers(pool), "no puller")
    stopped = hostile.has("y", made_image(root, saying("never\n")))
    slow = Dripping(hostile, stopped)
    cluster = submitted(pool, "removed", f"docker://{hostile.host}/tool:y")
    until(lambda: hostile.count(layer) == 3, "the begin of the next")
    (puller,) = pullers(pool)
    os.kill(puller, signal.SIGSTOP)
    pool.run("condor_rm", str(cluster))
    until(lambda: not pullers(pool) and not pool.scratch(),
          lambda: f"nothing of a job that was removed meanwhile, but {pullers(pool)}, {pool.scratch()}")
    slow.going = False


def pullers(pool: PersonalPool) -> list[int]:
    """Processes of this pool that fetch images."""
    return [pid for pid, line in command_lines() if b"condor_actors.machine.containers.pull'" in line
            and str(pool.folder).encode() in proc_file(pid, "environ")]


def test_the_machines_say_that_they_fetch(pool: PersonalPool) -> None:
    said = pool.run("condor_status", "-af", "HasDockerURL", "HasContainer", "HasDocker").splitlines()
    assert set(said) == {"true true true"}
