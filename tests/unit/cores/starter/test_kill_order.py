"""In which order a starter's core says what is to be done about processes that have to go."""

from __future__ import annotations

from condor_actors.cores.starter import job_run as jr
from condor_actors.effects import SetTimer
from condor_actors.messages.envelope import TimerFired
from condor_actors.messages.run import StopRun
from tests.unit.cores.starter.test_job_run import RUN, Bench


def test_the_timer_of_a_kill_is_set_before_it() -> None:
    """That nothing is left may be said while it is killed: a timer set afterwards killed what sent the outputs."""
    bench = Bench().running()
    for out in (bench.tell(StopRun(run_id=RUN, how="fast")), bench.tell(TimerFired(key="again")),
                bench.tell(jr.ProgramEnded(-1, 9, False))):
        again = next(each for each in out if isinstance(each, SetTimer) and each.key == "again")
        assert out.index(again) < out.index(jr.KillTree())
