"""Standing still and going on, which a run does some time after its user has asked for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.messages.queue import ActionResult
from condor_actors.messages.run import ContinueRun, RunProgress, SuspendRun, Usage
from tests.harness.submit_side import SubmitPool


@pytest.fixture
def pool(tmp_path: Path) -> SubmitPool:
    return SubmitPool(tmp_path)


def wishes(pool: SubmitPool) -> list[str]:
    """What the starter was told of standing still and going on."""
    return [type(message).__name__ for message in pool.execute.log if isinstance(message, SuspendRun | ContinueRun)]


def test_what_was_suspended_can_be_continued_at_once(pool: SubmitPool) -> None:
    """And the other way round, though the run has not yet told what became of it."""
    cluster = pool.submit()
    pool.match()
    run_id = f"{cluster}.0#1"
    pool.execute.begin(run_id)
    done = ((cluster, 0, ActionResult.SUCCESS),)
    assert pool.act("continue", cluster, 0).results == ((cluster, 0, ActionResult.BAD_STATUS),)
    assert pool.act("suspend", cluster, 0).results == done
    assert pool.status(cluster) == 2
    assert pool.act("continue", cluster, 0).results == done
    pool.run()
    assert wishes(pool) == ["SuspendRun", "ContinueRun"]
    assert pool.act("suspend", cluster, 0).results == done
    pool.execute.tell_shadow(run_id, RunProgress(
        run_id=pool.execute.activations[0].run_id, usage=Usage(), state="suspended"))
    pool.run()
    assert pool.status(cluster) == 7
    assert pool.act("suspend", cluster, 0).results == ((cluster, 0, ActionResult.ALREADY_DONE),)
    assert pool.act("continue", cluster, 0).results == done
    assert pool.act("suspend", cluster, 0).results == done
    pool.run()
    assert wishes(pool)[-2:] == ["ContinueRun", "SuspendRun"]


def test_the_wish_to_stand_still_survives_the_shadow_host(pool: SubmitPool) -> None:
    cluster = pool.submit()
    pool.match()
    run_id = f"{cluster}.0#1"
    pool.execute.begin(run_id)
    pool.run()
    pool.act("suspend", cluster, 0)
    told = len(wishes(pool))
    pool.kill_host(pool.owner_host_pid())
    pool.run(30.0)
    assert wishes(pool)[told:] == ["SuspendRun"]
