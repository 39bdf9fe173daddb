"""Which process belongs to which slot."""

from __future__ import annotations

import pytest

from condor_actors.classads import ClassAd
from condor_actors.config import load_config
from condor_actors.messages.queue import JobsPage
from condor_actors.tools.lib import running_programs

RUNS = {11: "/execute:7.0#1@alpha", 12: "/execute:7.0#3@beta"}


@pytest.fixture(autouse=True)
def two_jobs_of_one_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_programs, "all_processes", lambda: list(RUNS))
    monkeypatch.setattr(running_programs, "environment_of", lambda pid: [f"_CONDOR_RUN_MARK={RUNS[pid]}".encode()])
    monkeypatch.setattr(running_programs, "start_ticks", lambda pid: pid)
    monkeypatch.setattr(running_programs, "command_line", lambda pid: [f"program-{pid}"])


def slots(*schedds: str) -> list[ClassAd]:
    ads = [ClassAd({"JobId": "7.0", "RemoteScheddName": name}) for name in schedds]
    running_programs.add_programs(load_config(files=[], environ={}, overrides={"EXECUTE": "/execute"}), ads)
    return ads


def test_jobs_of_one_number_from_two_schedds_are_told_apart() -> None:
    assert [ad.get_int("JobPid") for ad in slots("beta", "alpha")] == [12, 11]


def test_a_queue_knows_only_its_own_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Queue:
        def __enter__(self) -> Queue:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def ask(self, _: object) -> JobsPage:
            ad = ClassAd({"ClusterId": 7, "ProcId": 0, "GlobalJobId": "alpha#7.0#1", "Cmd": "/bin/of-alpha"})
            return JobsPage(ads=(ad.to_bytes(),))

    monkeypatch.setattr(running_programs, "all_processes", list)
    monkeypatch.setattr("condor_actors.tools.lib.contact.schedd", lambda config: Queue())
    assert [ad.get_str("JobProgram") for ad in slots("alpha", "beta")] == ["/bin/of-alpha", ""]
