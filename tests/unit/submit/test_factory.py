"""Descriptions whose jobs the schedd makes as they are needed: one text for all where that is the truth."""

from __future__ import annotations

import pytest

from condor_actors.submit import Cluster, Description, Options, SubmitError
from condor_actors.submit.factory import Repeated
from tests.unit.submit.worlds import World

START = "executable = /bin/true\nlog = x.log\nmax_idle = 5\n"


def made(text: str, **options: object) -> Cluster:
    return Description(World().environment(), lambda: 7, Options(**options)).read(text, "x.sub")[0]  # type: ignore[arg-type]


def whole(text: str) -> list[bytes]:
    """The jobs of a description, made one by one."""
    return list(made(text, factory=False).procs)


@pytest.mark.parametrize("more", [
    "arguments = $(Process)", "arguments = a$(ProcId)b $(Step)\noutput = o.$(Cluster).$(Process)",
    "environment = \"N=$(Process)\"\n+Half = $(Process) / 2", "request_memory = $(Process) + 1", "",
    "queue_name = x\narguments = $(JobId)", "job = $(Process)\narguments = $(job)",
])
def test_jobs_that_differ_by_their_number_are_one_text(more: str) -> None:
    text = f"{START}{more}\nqueue 3000\n"
    cluster = made(text)
    assert isinstance(cluster.procs, Repeated)
    first, *others = cluster.procs
    assert others == whole(text)[1:]
    assert all(line in cluster.ad for line in first.splitlines())
    assert cluster.procs[-1] == cluster.procs[2999]
    assert cluster.procs[5:7] == [cluster.procs[5], cluster.procs[6]]
    with pytest.raises(IndexError):
        cluster.procs[3000]


@pytest.mark.parametrize("more", [
    "arguments = $INT(Process,%04d)", "n = $(Process) * 2\narguments = $INT(n)", "arguments = $SUBSTR(Process,0,2)",
    "request_cpus = $INT(Process) + 1", "arguments = $CHOICE(Step,a,b)",
])
def test_what_more_is_done_with_the_number_is_noticed(more: str) -> None:
    queue = "queue 2" if "CHOICE" in more else "queue 300"
    text = f"{START}{more}\n{queue}\n"
    assert list(made(text).procs)[1:] == whole(text)[1:]


@pytest.mark.parametrize("queue", ["queue 3 a in (x y z)", "queue a from (\n x\n y\n)", "queue 300\nqueue 300",
                                   "queue 2\narguments = b$(Process)\nqueue 400"])
def test_items_and_several_statements(queue: str) -> None:
    text = f"{START}arguments = $(a:none) $(Process)\n{queue}\n"
    cluster = made(text)
    assert cluster.is_factory
    assert list(cluster.procs)[1:] == whole(text)[1:]


def test_the_limits_are_attributes() -> None:
    ad = made("executable = /bin/true\nmax_materialize = 100\nmaterialize_max_idle = 2 * 5\nqueue 9\n").ad
    assert b"JobMaterializeLimit = 100\n" in ad
    assert b"JobMaterializeMaxIdle = 10\n" in ad
    assert b"JobMaterialize" not in made("executable = /bin/true\nmax_idle = 5\nqueue 9\n", factory=False).ad
    assert made("executable = /bin/true\nqueue 9\n", factory=True).is_factory
    assert not made("executable = /bin/true\nqueue 9\n").is_factory


@pytest.mark.parametrize(("text", "options", "says"), [
    ("max_idle = -1\nqueue 9", {}, "max_idle=-1 is invalid, expected 0 or more"),
    ("max_materialize = lots\nqueue 9", {}, "max_materialize=lots"),
    ("max_idle = 5\nqueue 9", {"spool": True}, "cannot be spooled. Leave out -spool"),
    ("queue 9", {"spool": True, "factory": True}, "-factory: the input files"),
    ("max_idle = 5\nqueue 10000001", {}, "number of jobs from 0 to 10000000"),
    ("queue 1000001", {}, "more than the 1000000 "),
])
def test_mistakes(text: str, options: dict[str, object], says: str) -> None:
    with pytest.raises(SubmitError, match=says.replace("(", r"\(")):
        made(f"executable = /bin/true\n{text}\n", **options)


def test_a_million_jobs_are_a_moment() -> None:
    assert len(made(f"{START}arguments = $(Process)\nqueue 1000000\n").procs) == 1_000_000
