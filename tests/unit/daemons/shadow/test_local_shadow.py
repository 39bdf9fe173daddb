"""A job of the local universe, whose program is played."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from condor_actors.actors.workers import at_once
from condor_actors.classads import ClassAd
from condor_actors.daemons.shadow.local_shadow import LocalShadow
from condor_actors.machine.run.launch import Ended, LaunchFailure, LaunchPlan
from condor_actors.messages.shadow_host import RunEnded, StartRun
from condor_actors.userlog.writer import UserLogs
from tests.harness.local_post import LocalNetwork


class Played:
    """A launcher, and the process that it has started."""

    pid = 2_000_000_000

    def launch(self, plan: LaunchPlan, began: Callable[[], None], failed: Callable[[LaunchFailure], None],
               ended: Callable[[Ended], None]) -> Played:
        self.ended = ended
        return self

    def stop_watching(self) -> None:
        """Nobody watches."""


def test_what_a_program_leaves_behind_may_be_another_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def not_ours(group: int, number: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "killpg", not_ours)
    job = ClassAd({"ClusterId": 1, "ProcId": 0, "Owner": "alice", "User": "alice@test", "JobUniverse": 12,
                   "Cmd": "/bin/true", "Iwd": str(tmp_path)})
    order = StartRun(run_id="1.0#1", job_ad=job.to_bytes(), claim_id="", secret="", starter_node="", slot_name="",
                     slot_ad=b"", lease_s=60.0)
    net, launcher = LocalNetwork(), Played()
    system = net.system("<host:1>")
    probe = net.probe(system, "shadow-host")
    system.spawn("shadow/1.0#1", lambda: LocalShadow(order, launcher, UserLogs(net.clock, sync=False), {}, at_once))
    net.run(0.1)
    launcher.ended(Ended(exit_code=0, exit_signal=-1, core_dumped=False, user_cpu_s=0.5, system_cpu_s=0.0,
                         peak_memory_kib=100))
    net.run(0.1)
    assert [report.message.outcome for report in probe.messages if isinstance(report.message, RunEnded)] == ["exited"]
    net.stop()
