"""Slurm's commands, played by scripts: what they say, that they fail, hang, or are not there."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from twisted.internet import defer, reactor

from condor_actors.cores.shadow.grid_events import BatchJob
from condor_actors.machine.grid.slurm import CommandFailed, Slurm, SlurmPlace


def played(folder: Path, deadline_s: float = 30.0, **scripts: str) -> Slurm:
    for name, script in scripts.items():
        program = folder / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    place = SlurmPlace(commands=str(folder), conf="", deadline_s=deadline_s, at_once=8)
    return Slurm(reactor, place, {"PATH": os.environ["PATH"]}, 1000)


Steps = Generator[Any, Any, None]


@pytest_twisted.inlineCallbacks
def test_the_number_of_a_submission(tmp_path: Path) -> Steps:
    batch = played(tmp_path, sbatch='echo "$@" > "$(dirname "$0")/words"; echo "12;cluster"')
    assert (yield batch.submit(["--parsable", "a b"])) == "12"
    assert (tmp_path / "words").read_text() == "--parsable a b\n"


@pytest_twisted.inlineCallbacks
def test_a_submission_that_answers_nonsense_may_have_been_taken(tmp_path: Path) -> Steps:
    with pytest.raises(CommandFailed, match="which is no number") as caught:
        yield played(tmp_path, sbatch="echo queued").submit([])
    assert caught.value.transient


@pytest.mark.parametrize(("script", "said", "transient"), [
    ('echo "sbatch: error: invalid partition specified: x" >&2; exit 1', "invalid partition", False),
    ('echo "sbatch: error: Unable to contact slurm controller (connect failure)" >&2; exit 1', "Unable", True),
    ("exit 3", "exit status 3 and said nothing", True),
    ("kill -9 $$", "signal 9", True),
])
@pytest_twisted.inlineCallbacks
def test_a_refusal_is_told_from_trouble(tmp_path: Path, script: str, said: str, transient: bool) -> Steps:
    with pytest.raises(CommandFailed, match=said) as caught:
        yield played(tmp_path, sbatch=script).submit([])
    assert caught.value.transient is transient


@pytest_twisted.inlineCallbacks
def test_a_command_that_hangs_is_given_up_with_its_children(tmp_path: Path) -> Steps:
    with pytest.raises(CommandFailed, match=r"no answer within 0\.2 s") as caught:
        yield played(tmp_path, 0.2, sbatch="sleep 3").submit([])  # the sleep keeps the pipes open
    assert caught.value.transient


@pytest_twisted.inlineCallbacks
def test_a_command_that_is_not_there_is_named(tmp_path: Path) -> Steps:
    with pytest.raises(CommandFailed, match=r"scancel is not in .*SLURM_BINPATH"):
        yield played(tmp_path).cancel("condor.1.0.1.a")


@pytest_twisted.inlineCallbacks
def test_one_question_serves_all_who_ask(tmp_path: Path) -> Steps:
    batch = played(tmp_path, squeue=f"echo x >> {tmp_path}/asked; echo '7|RUNNING|None|n1|condor.1.0.1.a'")
    answers = yield defer.gatherResults([batch.look() for _ in range(50)])
    assert answers == [{"condor.1.0.1.a": (BatchJob("7", "RUNNING", "None", "n1"),)}] * 50
    assert (tmp_path / "asked").read_text() == "x\n"
    yield batch.look()
    assert (tmp_path / "asked").read_text() == "x\nx\n"


@pytest_twisted.inlineCallbacks
def test_a_question_that_fails_fails_for_all(tmp_path: Path) -> Steps:
    batch = played(tmp_path, squeue="echo 'slurm_load_jobs error: Unable to contact' >&2; exit 1")
    results = yield defer.DeferredList([batch.look(), batch.look()], consumeErrors=True)
    assert [ok for ok, _ in results] == [False, False]


@pytest_twisted.inlineCallbacks
def test_the_accounting_is_asked_and_may_be_missing(tmp_path: Path) -> Steps:
    assert (yield played(tmp_path, sacct="echo 'CANCELLED by 0'").account("7")) == BatchJob("7", "CANCELLED")
    assert (yield played(tmp_path, sacct="exit 1").account("7")) is None
