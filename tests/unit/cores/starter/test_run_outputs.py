"""What goes home of a run whose program has ended."""

from __future__ import annotations

from condor_actors.cores.starter import job_run as jr
from condor_actors.cores.starter.run_events import CloseRun
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.run import Usage
from tests.unit.cores.starter.test_job_run import Bench

OUTPUT = FileEntry(path="a", size_bytes=1, digest="a" * 64)


def test_on_success_leaves_the_outputs_of_a_failure() -> None:
    bench = Bench('WhenToTransferOutput = "ON_SUCCESS"\n').running()
    bench.tell(jr.ProgramEnded(1, -1, False))
    assert jr.Gather(complete=False, everything=False) in bench.tell(jr.TreeGone(Usage()))


def test_a_missing_output_holds_and_the_others_go_home() -> None:
    bench = Bench('TransferOutput = "a,b"\n').running()
    bench.tell(jr.ProgramEnded(0, -1, False))
    bench.tell(jr.TreeGone(Usage()))
    bench.tell(jr.Gathered(entries=(OUTPUT,), missing=("b",)))
    said = bench.said()[0]
    assert (said.cause, said.hold_code, said.outputs) == ("hold", 12, (OUTPUT,))


def test_an_output_that_cannot_be_sent_holds_unless_the_machine_is_wanted_back() -> None:
    for closing, cause, code, outputs in ((False, "hold", 12, (OUTPUT,)), (True, "evicted", 0, ())):
        bench = Bench().running()
        bench.tell(jr.ProgramEnded(0, -1, False))
        bench.tell(jr.TreeGone(Usage()))
        if closing:
            bench.tell(CloseRun(grace_s=1.0, reason="its owner is back"))
        bench.tell(jr.Gathered(entries=(OUTPUT,), unsent="x cannot be sent"))
        said = bench.said()[0]
        assert (said.cause, said.hold_code, said.outputs) == (cause, code, outputs)


def test_of_a_checkpoint_that_is_not_whole_nothing_goes_home() -> None:
    bench = Bench("SuccessCheckpointExitCode = 85\n").running()
    bench.tell(jr.ProgramEnded(85, -1, False))
    bench.tell(jr.TreeGone(Usage()))
    bench.tell(jr.Gathered(entries=(OUTPUT,), missing=("state",)))
    assert (bench.said()[0].cause, bench.said()[0].outputs) == ("hold", ())
