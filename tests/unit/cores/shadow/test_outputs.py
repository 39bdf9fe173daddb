"""The outputs of a program that has ended, where they cannot be written at home or not be fetched."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.shadow.shadow_events import BringOutputs, OutputsFailed, OutputsHome, Report
from condor_actors.cores.shadow.shadow_run import ROOM_PATIENCE_S, ROOM_RETRY_S, ShadowRun
from condor_actors.effects import Answer, SetTimer
from condor_actors.messages.codes import HoldCode
from condor_actors.messages.envelope import TimerFired
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.run import Reattached, RunBegan, RunExited, StopRun, Usage
from condor_actors.messages.shadow_host import RunEnded, StartRun, Transfer

FULL = OutputsFailed("[Errno 28] No space left on device: '/home/alice/out'", errno.ENOSPC)
MISSING = {"cause": "hold", "hold_code": 12, "hold_subcode": errno.ENOENT, "reason": "it did not make x",
           "exit_code": -1}


class Bench:
    """A run whose program has ended with an output that is to come home; ``facts``: how it ended otherwise."""

    def __init__(self, ad: bytes = b"ProcId = 0\n", **facts: Any) -> None:
        self.now_s = 1000.0
        self.run = ShadowRun(StartRun(
            run_id="1.0#1", job_ad=ad, claim_id="c", secret="s", starter_node="<e:1>", slot_name="slot1@e",
            slot_ad=b"", lease_s=300.0, reattach=True), ClassAd.from_bytes(ad), "key")
        self.out: list[Any] = list(self.run.start(self.now_s))
        self.tell(Answer("reattach", Reattached(run_id="1.0#1", pid=7, ended=False)))
        self.tell(RunBegan(run_id="1.0#1", pid=7, scratch_dir="/d", when_s=1000.0))
        self.tell(RunExited(**{
            "run_id": "1.0#1", "cause": "exited", "exit_code": 0, "usage": Usage(), "when_s": 1000.0,
            "outputs": (FileEntry(path="out", size_bytes=1 << 20, digest="a" * 64),), **facts}))

    def tell(self, event: Any) -> None:
        self.out += self.run.handle(event, self.now_s)
        self.run.validate()

    def count(self, kind: type) -> int:
        return sum(isinstance(each, kind) for each in self.out)

    @property
    def ends(self) -> list[RunEnded]:
        return [each.message for each in self.out if isinstance(each, Report) and isinstance(each.message, RunEnded)]


def test_outputs_are_brought_again_when_the_disk_has_room() -> None:
    bench = Bench()
    bench.tell(FULL)
    assert not bench.ends
    assert SetTimer("room", ROOM_RETRY_S) in bench.out
    bench.tell(TimerFired(key="room"))
    assert bench.count(BringOutputs) == 2
    bench.tell(OutputsHome(1 << 20))
    assert [end.outcome for end in bench.ends] == ["exited"]


def test_what_there_is_of_the_outputs_is_brought_before_the_job_is_held() -> None:
    bench = Bench(**MISSING)
    assert not bench.ends
    (brought,) = [each for each in bench.out if isinstance(each, BringOutputs)]
    assert (brought.keep, brought.partly) == (False, True)
    bench.tell(OutputsHome(1 << 20, 1))
    (end,) = bench.ends
    assert (end.outcome, end.hold_code, end.hold_subcode, end.reason) == ("hold", 12, 2, "it did not make x")
    limited = Bench(b"ProcId = 0\nMaxTransferOutputMB = 0\n", **MISSING)
    assert ([end.hold_code for end in limited.ends], limited.count(BringOutputs)) == (
        [HoldCode.MAX_TRANSFER_OUTPUT_SIZE_EXCEEDED], 0)


def test_the_end_tells_how_the_outputs_travelled() -> None:
    bench = Bench()
    bench.tell(FULL)
    bench.now_s += ROOM_RETRY_S
    bench.tell(TimerFired(key="room"))
    bench.now_s += 5.0
    bench.tell(OutputsHome(1 << 20, 1))
    assert [end.transfers for end in bench.ends] == [(
        Transfer(kind="OUTPUT", began_s=1000.0, ended_s=1005.0 + ROOM_RETRY_S, files=1, size_bytes=1 << 20),)]
    failed = Bench()
    failed.tell(OutputsFailed("gone\nor so", 2, remote=True))
    ((transfer,),) = [end.transfers for end in failed.ends]
    assert (transfer.kind, transfer.problem, transfer.files) == ("OUTPUT", "gone or so", 0)


def test_a_disk_that_stays_full_holds_the_job_with_the_reason() -> None:
    bench = Bench()
    for _ in range(int(ROOM_PATIENCE_S / ROOM_RETRY_S)):
        bench.tell(FULL)
        bench.now_s += ROOM_RETRY_S
        bench.tell(TimerFired(key="room"))
    assert not bench.ends
    bench.tell(FULL)
    (end,) = bench.ends
    assert (end.outcome, end.hold_subcode) == ("hold", errno.ENOSPC)
    assert "/home/alice/out" in end.reason


@pytest.mark.parametrize("how", ["remove", "hold", "vacate", "fast"])
def test_what_is_not_to_go_on_does_not_wait_for_room(how: str) -> None:
    bench = Bench()
    bench.tell(FULL)
    bench.tell(StopRun(run_id="1.0#1", how=how))
    assert [end.outcome for end in bench.ends] == ["evicted"]


@pytest.mark.parametrize("how", ["remove", "hold"])
def test_a_stop_before_the_disk_was_found_full_is_remembered(how: str) -> None:
    bench = Bench()
    bench.tell(StopRun(run_id="1.0#1", how=how))
    assert not bench.ends
    bench.tell(FULL)
    assert len(bench.ends) == 1


def test_what_else_cannot_be_written_holds_the_job_at_once() -> None:
    bench = Bench()
    bench.tell(OutputsFailed("permission denied", errno.EACCES))
    assert [end.outcome for end in bench.ends] == ["hold"]


def test_what_cannot_be_fetched_names_the_slot() -> None:
    bench = Bench()
    bench.tell(OutputsFailed("not-found", remote=True))
    assert [end.outcome for end in bench.ends] == ["failed"]
    assert "slot1@e" in bench.ends[0].reason
