"""A job whose files stay where they are (should_transfer_files = NO) names its directory, its program and its image:
none of these names shows it the scratch directory of another user's job, nor the sockets of the daemons.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from condor_actors.actors.workers import NoAnswer
from condor_actors.daemons.starter.run_files import answer_read
from condor_actors.machine.containers.probe import containers_work
from condor_actors.machine.run.confinement import PARTS, confinement_here
from condor_actors.machine.run.users import named_account
from condor_actors.messages.interactive import ReadRunFile
from tests.harness.root_pool import RootPool, root_pool, scratch_of_a_victim
from tests.pool_fixture import open_to_jobs

HERE = confinement_here(frozenset(PARTS))
pytestmark = pytest.mark.skipif(os.geteuid() != 0 or set(HERE) != set(PARTS), reason="of pools of root's")

LOOK = """#!/bin/sh
for folder in {execute} /proc/1/root{execute} {inside}; do
    cat $folder/dir_*/secret
done
for folder in {run} {inside}; do
    ls $folder | grep '[.]sock$'
done
echo looked
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[RootPool]:
    with root_pool(slots=2, config="MEMORY = 512\n") as made:
        yield made


@pytest.fixture(scope="module")
def victim(pool: RootPool) -> Path:
    """The scratch directory of a job of the same account."""
    return scratch_of_a_victim(pool)


def seen(pool: RootPool, name: str, directory: Path, more: str, *, inside: str = "/nowhere",
         program: Path | None = None) -> str:
    """What such a job has seen; empty: it did not run."""
    out = pool.work / f"{name}.seen"
    script = program or pool.work / f"{name}.sh"
    script.write_text(LOOK.format(execute=pool.dir / "execute", run=pool.dir / "run", inside=inside))
    script.chmod(0o755)
    open_to_jobs(pool.work)
    cluster = pool.submit(f"executable = {script}\ntransfer_executable = false\nshould_transfer_files = NO\n"
                          f"initialdir = {directory}\nrequest_memory = 100MB\noutput = {out}\n{more}\nqueue\n")
    pool.until_status(f"{cluster}.0", 0, 4, 5)
    pool.tool("condor_rm", str(cluster))
    return out.read_text() if out.exists() else ""


def test_other_jobs_scratch_directories_are_not_there(pool: RootPool, victim: Path) -> None:
    assert seen(pool, "plain", pool.work, "") == "looked\n"
    assert (victim / "secret").read_text() == "mine\n"


@pytest.mark.parametrize("place", ["run", "execute", "spool", "log"])
def test_a_folder_of_the_pools_as_its_directory(pool: RootPool, victim: Path, place: str) -> None:
    """So that it could not be hidden from the job."""
    assert seen(pool, f"in-{place}", pool.dir / place, "") in ("", "looked\n")


def test_a_program_in_a_folder_of_the_pools(pool: RootPool, victim: Path) -> None:
    """A link that leads there while the launch is planned, and elsewhere when the program is executed, will do."""
    assert seen(pool, "program", pool.work, "", program=pool.dir / "run" / "program") == ""


@pytest.mark.skipif(not containers_work(), reason="this kernel gives no namespaces or no overlays")
@pytest.mark.parametrize("image", ["/usr/..", "{dir}", "{dir}/execute", "{dir}/run"])
def test_a_folder_with_the_pools_as_its_image(pool: RootPool, victim: Path, image: str) -> None:
    found = seen(pool, "image", pool.work, f"universe = container\ncontainer_image = {image.format(dir=pool.dir)}\n"
                 "transfer_container = false", inside="/ /execute /run")
    assert "mine" not in found
    assert ".sock" not in found


@pytest.mark.skipif(not containers_work(), reason="this kernel gives no namespaces or no overlays")
@pytest.mark.parametrize("place", ["run", "execute", "."])
def test_a_folder_of_the_pools_is_no_directory_of_a_job_in_an_image(pool: RootPool, victim: Path, place: str) -> None:
    found = seen(pool, "mounted", pool.dir / place, "universe = container\ncontainer_image = /usr\n"
                 "transfer_container = false\n", program=pool.dir / place / "looks.sh")
    assert "mine" not in found
    assert ".sock" not in found


@pytest.mark.skipif(not containers_work(), reason="this kernel gives no namespaces or no overlays")
def test_an_image_here_without_an_end(pool: RootPool) -> None:
    """A file of holes takes no room, and as long to be read as one that is full; a device never ends."""
    holes = pool.work / "holes"
    with holes.open("wb") as file:
        file.truncate(1 << 42)
    for number, (image, said) in enumerate(((holes, "CONTAINER_IMAGE_LIMIT"), ("/dev/zero", "no plain file"))):
        cluster = pool.submit(
            f"universe = container\ncontainer_image = {image}\ntransfer_container = false\nexecutable = /bin/true\n"
            f"transfer_executable = false\nshould_transfer_files = YES\nrequest_memory = 100MB\nlog = {number}.log\n"
            "queue\n")
        pool.until_status(f"{cluster}.0", 5)
        assert said in pool.jobs(str(cluster))[0]["HoldReason"]
        pool.run("condor_rm", str(cluster))


def test_a_file_system_that_does_not_answer_holds_up_one_question(tmp_path: Path) -> None:
    """What condor_tail shows of such a job may be anywhere: on a mount of its user's that never answers, say."""
    replies: list[Any] = []
    asked: Deferred[Any] = Deferred()
    context = SimpleNamespace(reply=lambda _, answer: replies.append(answer),
                              defer_to_turn=lambda work, then: work.addBoth(then))
    starter: Any = SimpleNamespace(
        context=context, sandbox=None, account=named_account("nobody"), edges=SimpleNamespace(
            elsewhere=lambda function, *words: asked), spec=SimpleNamespace(transfers=False, iwd=str(tmp_path)))
    question: Any = SimpleNamespace(message=ReadRunFile(run_id="1.0#1", path="mounted/file", offset=0, max_bytes=10))
    answer_read(starter, question)
    assert replies == []
    asked.errback(NoAnswer("no answer within 60 s", "mounted/file", None))
    assert [(answer.code, "no answer" in answer.text) for answer in replies] == [("busy", True)]
