"""condor_status and condor_userprio on ads from a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.tools.pool import status, userprio

Run = Callable[..., tuple[int, str, str]]


def slot(name: str, **values: Any) -> ClassAd:
    machine = name.partition("@")[2]
    return ClassAd(
        {
            "MyType": "Machine",
            "TargetType": "Job",
            "Name": name,
            "Machine": machine,
            "OpSys": "LINUX",
            "Arch": "X86_64",
            "OpSysAndVer": "Debian12",
            "State": "Unclaimed",
            "Activity": "Idle",
            "CondorLoadAvg": 0.5,
            "LoadAvg": 0.5,
            "Cpus": 1,
            "Memory": 2000,
            "TotalSlotCpus": 1,
            "TotalSlotMemory": 2000,
            "EnteredCurrentActivity": 1000,
            "EnteredCurrentState": 1000,
            "MyCurrentTime": 4661,
            "LastHeardFrom": 4661,
            **values,
        }
    )


ADS = [
    slot("slot2@b.org", State="Claimed", Activity="Busy", RemoteUser="alice@org", ClientMachine="submit.org"),
    slot("slot1@b.org", Arch="ARM"),
    slot(
        "slot1@a.org",
        PartitionableSlot=True,
        SlotType="Partitionable",
        SlotID=1,
        TotalCpus=4,
        TotalSlotCpus=4,
        TotalSlotMemory=8192,
        Memory=2048,
        TotalLoadAvg=2.0,
    ),
    slot(
        "slot1_1@a.org",
        DynamicSlot=True,
        SlotID=1,
        DSlotID=1,
        State="Claimed",
        Activity="Busy",
        Memory=6144,
        RemoteUser="bob@org",
        ClientMachine="submit.org",
    ),
]


@pytest.fixture
def ads_file(tmp_path: Path) -> Path:
    path = tmp_path / "ads"
    path.write_text("".join(ad.to_text() + "\n" for ad in ADS))
    return path


@pytest.fixture
def run(ads_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setattr("time.time", lambda: 4661.0)

    def call(*words: str, module: Any = status) -> tuple[int, str, str]:
        file = ["-ads", str(ads_file)] if module is status and "-ads" not in words else []
        monkeypatch.setattr(sys, "argv", ["tool", *file, *words])
        code = module.main()
        out = capsys.readouterr()
        return code, out.out, out.err

    return call


def test_the_default_table(run: Run) -> None:
    assert (
        run()[1]
        == """\
Name               OpSys      Arch   State     Activity LoadAv Mem      ActvtyTime

slot1@a.org        LINUX      X86_64 Unclaimed Idle      0.500   2048   0+01:01:01
slot1_1@a.org      LINUX      X86_64 Claimed   Busy      0.500   6144   0+01:01:01
slot1@b.org        LINUX      ARM    Unclaimed Idle      0.500   2000   0+01:01:01
slot2@b.org        LINUX      X86_64 Claimed   Busy      0.500   2000   0+01:01:01

               Total Owner Claimed Unclaimed Matched Preempting  Drain Backfill BkIdle

     ARM/LINUX     1     0       0         1       0          0      0        0      0
  X86_64/LINUX     3     0       2         1       0          0      0        0      0

         Total     4     0       2         2       0          0      0        0      0
"""
    )


def test_the_table_of_running_jobs(run: Run) -> None:
    out = run("-run")[1].splitlines()
    assert out[0].split() == ["Name", "OpSys", "Arch", "LoadAv", "RemoteUser", "ClientMachine"]
    assert out[2].split() == ["slot1_1@a.org", "LINUX", "X86_64", "0.500", "bob@org", "submit.org"]
    assert out[-1].split() == ["Total", "2", "0", "0", "0.500"]


def test_one_line_a_machine(run: Run) -> None:
    out = run("-compact", "-constraint", 'Machine == "a.org"')[1].splitlines()
    assert out[2].split() == ["a.org", "x64/Debian12", "1", "4", "8.00", "1", "2.00", "0.50", "Cb", "_", "6.00"]


def test_words_name_machines_slots_and_hosts_without_domain(run: Run) -> None:
    assert run("slot2@b.org", "-af", "Name")[1] == "slot2@b.org\n"
    assert run("b", "-af", "Name")[1] == "slot1@b.org\nslot2@b.org\n"
    assert run("a.org", "-af", "Name")[1] == "slot1@a.org\nslot1_1@a.org\n"
    assert run("nowhere")[1] == ""


def test_queries(run: Run) -> None:
    assert run("-claimed", "-af", "Name")[1] == "slot1_1@a.org\nslot2@b.org\n"
    assert run("-avail", "-af", "Name")[1] == "slot1@a.org\nslot1@b.org\n"
    assert run("-constraint", "Memory > 3000", "-af:h", "Name", "Memory")[1].splitlines() == [
        "Name          Memory",
        "slot1_1@a.org 6144  ",
    ]
    assert run("-limit", "1", "-af", "Name")[1].count("\n") == 1
    assert run("-sort", "-Memory", "-limit", "1", "-af", "Memory")[0] == 0


def test_whole_ads(run: Run) -> None:
    code, out, _ = run("-json", "-attributes", "Name,Memory", "slot2@b.org")
    assert code == 0
    assert json.loads(out) == [{"Name": "slot2@b.org", "Memory": 2000}]
    assert run("-json", "-constraint", "false")[1] == "[\n]\n"
    assert 'Name = "slot2@b.org"\n' in run("-long", "slot2@b.org")[1]
    assert run("-xml", "-attributes", "Name", "slot2@b.org")[1].count("<c>") == 1
    assert run("-format", "%s ", "Name", "-format", "%d\\n", "Memory", "slot2@b.org")[1] == "slot2@b.org 2000\n"


def test_totals_alone_and_appended_columns(run: Run) -> None:
    assert run("-totals")[1].lstrip("\n").startswith("               Total Owner")
    out = run("-aaf", "ClientMachine")[1].splitlines()
    assert out[0].endswith("ActvtyTime ClientMachine")
    assert out[3].endswith("submit.org")


def test_expressions_about_a_target(run: Run, tmp_path: Path) -> None:
    job = tmp_path / "job"
    job.write_text("RequestMemory = 2040\n")
    said = run("b.org", "-target", str(job), "-af", "Name", "Memory >= TARGET.RequestMemory")
    assert said[1] == "slot1@b.org false\nslot2@b.org false\n"
    assert run("-target", str(job), "-format", "%d\n", "TARGET.RequestMemory", "slot2@b.org")[1] == "2040\n"
    assert "Can't open target ad file" in run("-target", "/no/such", "-af", "Name")[2]


def test_a_table_of_ones_own(run: Run, tmp_path: Path) -> None:
    form = tmp_path / "slots.cpf"
    form.write_text(
        "SELECT\n  Name AS Slot WIDTH AUTO\n  Memory AS MiB PRINTF %6d\n  State AS ST PRINTAS ACTIVITY_CODE\n"
        'WHERE Machine == "a.org"\nGROUP BY Memory DESCENDING\nSUMMARY NONE\n'
    )
    assert run("-print-format", str(form))[1] == (
        "Slot             MiB ST\n\nslot1_1@a.org   6144 Cb\nslot1@a.org     2048 Ui\n"
    )
    form.write_text(form.read_text().replace("SUMMARY NONE", "SUMMARY STANDARD"))
    assert run("-pr", str(form))[1].splitlines()[-1].split()[:2] == ["Total", "2"]
    form.write_text("SELECT\n  Name PRINTAS NOTHING\n")
    code, out, err = run("-pr", str(form))
    assert (code, out) == (1, "")
    assert "line 2: unknown function NOTHING" in err
    assert "No such file" in run("-pr", "/no/such")[2]


def test_what_makes_no_sense_is_refused(run: Run) -> None:
    for words, said in (
        (("-bogus",), "unrecognized argument -bogus"),
        (("-constraint", "a >"), "Parse error in constraint"),
        (("-limit", "x"), "-limit requires a number"),
        (("-format", "%s"), "requires another parameter"),
        (("-cod",), "-cod is not available: there are no claims on demand"),
        (("-ads", "/no/such"), "Can't open ads file /no/such"),
    ):
        code, out, err = run(*words)
        assert (code, out) == (1, "")
        assert said in err


def test_priorities_of_active_users(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "users"
    users = [
        ClassAd(
            {
                "Name": "alice@org",
                "Priority": 500.25,
                "PriorityFactor": 1000.0,
                "RealPriority": 0.50025,
                "WeightedResourcesUsed": 3.0,
                "ResourcesUsed": 3,
                "WeightedAccumulatedUsage": 7200.0,
                "LastUsageTime": 1_000_000,
                "BeginUsageTime": 1000,
                "Ceiling": 5.0,
                "Floor": -1.0,
                "Requested": 10.0,
                "LastUpdate": 1_000_000,
            }
        ),
        ClassAd({"Name": "old@org", "Priority": 500.0, "WeightedAccumulatedUsage": 3600.0, "LastUsageTime": 1000}),
    ]
    path.write_text("".join(ad.to_text() + "\n" for ad in users))
    monkeypatch.setattr("time.time", lambda: 1_000_000.0)
    out = run("-inputfile", str(path), module=userprio)[1].splitlines()
    assert out[1].split() == [
        "Effective",
        "Priority",
        "Wghted",
        "Total",
        "Usage",
        "Time",
        "Since",
        "Weighted",
        "Submitter",
        "Submitter",
    ]
    assert out[4].split() == ["alice@org", "500.25", "1000.00", "3", "2.00", "<now>", "10", "5"]
    assert out[-1].split()[:4] == ["Number", "of", "users:", "1"]
    assert "old@org" in run("-inputfile", str(path), "-allusers", module=userprio)[1]
    assert run("-inputfile", str(path), "-af", "Name", "Priority", module=userprio)[1] == "alice@org 500.25\n"
    assert run("-setfactor", "alice", "2", module=userprio)[0] == 1
    assert run("-setfactor", "alice@org", "much", module=userprio)[2].startswith("Error: -setfactor takes a number")
