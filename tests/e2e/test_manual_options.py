"""Each option of the manual does what it says, is refused with a reason, or is told to be without effect."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import pwd
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from condor_actors.tools.jobs.job_commands import COMMANDS
from condor_actors.tools.lib import job_actions
from condor_actors.tools.lib.flags import Flag, match
from tests.conformance.manual_options import EXAMPLES
from tests.harness.commands import COMMANDS as ENTRIES
from tests.pool_fixture import PersonalPool, fresh_folder, until

Call = Callable[..., tuple[int, str, str]]

MAINS: dict[str, Callable[[], int]] = {}
UNKNOWN = ("nrecognized", "not a valid", "nknown argument", "not supported", "Traceback")
TRANSFORM = "REQUIREMENTS true\nSET Shouted true\n"


def flags_of(command: str) -> tuple[Flag, ...]:
    """The table of a command."""
    if command in COMMANDS:
        return (*COMMANDS[command][1], *job_actions.COMMON)
    module = importlib.import_module(ENTRIES[command].module)
    flags: tuple[Flag, ...] = module.FLAGS
    return flags


def examples(command: str) -> Iterator[tuple[int, str]]:
    """Expected status and words."""
    for text in EXAMPLES[command].split(";"):
        words = " ".join(text.split())
        status, _, rest = words.partition(" ")
        yield (int(status), rest) if status.isdigit() else (0, words)


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    """A pool with a finished job, and files for the examples."""
    with fresh_folder() as folder:
        (folder / "epochs").mkdir()
        made = PersonalPool(folder, slots=1, config=f"JOB_EPOCH_HISTORY_DIR = {folder / 'epochs'}\n"
                                                    f"JOB_TRANSFORM_shout @=end\n{TRANSFORM}@end\n")
        made.submit("executable = /bin/true\ntransfer_executable = false\nlog = done.log\nqueue\n")
        made.wait("done.log")
        write(made)
        yield made
        made.stop()


def write(pool: PersonalPool) -> None:
    """The files that the examples name."""
    work = pool.work
    (work / "jobs.ads").write_text('MyType = "Job"\nClusterId = 7\nProcId = 0\nJobStatus = 4\nOwner = "ann"\n')
    (work / "slots.ads").write_text(pool.run("condor_status", "-long"))
    (work / "users.ads").write_text('Name = "ann@x"\nPriority = 1.0\nPriorityFactor = 1000.0\n')
    (work / "table").write_text("SELECT\n  Owner AS OWNER\n")
    (work / "edits").write_text("X = 1\n")
    (work / "rules").write_text(TRANSFORM)


class Place:
    """What stands for the names in braces."""

    def __init__(self, pool: PersonalPool, cluster: int) -> None:
        self._cluster, self._procs, self._files = cluster, itertools.count(), itertools.count()
        ad = json.loads(pool.run("condor_status", "-schedd", "-json"))[0]
        startd = json.loads(pool.run("condor_status", "-startd", "-json"))[0]
        work = pool.work
        self._fixed = {
            "me": pwd.getpwuid(os.getuid()).pw_name,
            "domain": pool.run("condor_config_val", "UID_DOMAIN").strip(), "schedd": ad["Name"],
            "host": startd["Machine"], "central": pool.run("condor_config_val", "COLLECTOR_HOST").strip(),
            "schedd_addr": ad["MyAddress"], "startd_addr": startd["MyAddress"],
            "job": "1.0", "done_log": work / "done.log", "log": work / "spare.log", "ads": work / "jobs.ads",
            "slots": work / "slots.ads", "users": work / "users.ads", "table": work / "table", "edits": work / "edits",
            "rules": work / "rules", "folder": work, "config": pool.environment["CONDOR_CONFIG"]}  # fmt: skip
        self._work = work

    def words(self, example: str) -> list[str]:
        """The words of an example."""
        proc = next(self._procs) if "{spare}" in example or "{this}" in example else 0
        words = shlex.split(example)
        return [word.format(**self._fixed, spare=f"{self._cluster}.{proc}", new=self._work / f"new{next(self._files)}",
                            this=f"ClusterId=={self._cluster}&&ProcId=={proc}") for word in words]


@pytest.fixture
def call(pool: PersonalPool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run a command's entry in this process: an interpreter each would take minutes."""
    for name, value in pool.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(pool.work)

    def run(command: str, *words: str) -> tuple[int, str, str]:
        if command not in MAINS:
            MAINS[command] = ENTRIES[command].load()
        monkeypatch.setattr(sys, "argv", [command, *words])
        capsys.readouterr()
        try:
            status = MAINS[command]()
        except SystemExit as left:
            status = int(left.code or 0)
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


@pytest.mark.parametrize("command", EXAMPLES)
def test_every_option_of_the_manual(command: str, pool: PersonalPool, call: Call) -> None:
    pool.tool("condor_rm", "-all")  # jobs of another command's examples, which may run by now
    until(lambda: not pool.jobs(), "an empty queue")
    kind = "hold = true\n" if command == "condor_release" else "requirements = false\n"
    cluster = pool.submit(f"executable = /bin/true\n{kind}log = spare.log\nqueue 30\n")
    place, flags, wrong = Place(pool, cluster), flags_of(command), []
    for expected, example in examples(command):
        words = place.words(example)
        status, out, err = call(command, *words)
        found = [flag for word in words if word[:1] in "-" and (flag := match(word, flags)) is not None]
        refused = [found[0][0]] if found and found[0][0].refused else []
        if refused:
            good = status == 1 and refused[0].refused in err
        else:
            good = status == expected and not any(word in out + err for word in UNKNOWN)
            good &= all(flag.idle in err for flag, _ in found if flag.idle)
        if not good:
            wrong.append(f"{example}: status {status}\n{out[-300:]}{err[-500:]}")
    assert not wrong, "\n".join(wrong)


def test_every_row_of_the_tables_has_one_meaning() -> None:
    for command in EXAMPLES:
        for flag in flags_of(command):
            assert not (flag.idle and flag.refused), (command, flag.name)
            for reason in (flag.idle, flag.refused):
                assert not reason.endswith("."), (command, flag.name)


def test_run_time_is_that_of_the_last_run_or_of_all(call: Call, tmp_path: Path) -> None:
    ads = tmp_path / "ads"
    ads.write_text('ClusterId = 1\nProcId = 0\nOwner = "ann"\nJobStatus = 1\nQDate = 1\nRemoteWallClockTime = 7200.0\n'
                   "LastRemoteWallClockTime = 60.0\nCmd = \"x\"\n")
    last = call("condor_q", "-jobads", str(ads), "-nobatch")[1]
    assert "0+00:01:00" in last
    assert call("condor_q", "-jobads", str(ads), "-nobatch", "-currentrun")[1] == last
    assert "0+02:00:00" in call("condor_q", "-jobads", str(ads), "-nobatch", "-cumulative-time")[1]
    assert call("condor_q", "-cumul", "-curr")[0] == 1
    table = call("condor_q", "-jobads", str(ads), "-aaf", "JobStatus+5")[1].splitlines()
    assert [line.split()[-1] for line in table if " ann " in line] == ["6"]


def test_runs_are_read_from_a_file_for_each_job(call: Call, pool: PersonalPool) -> None:
    job = pool.submit("executable = /bin/sh\ntransfer_executable = false\narguments = \"-c 'exit 3'\"\n"
                      "max_retries = 1\nlog = again.log\nqueue\n")
    pool.wait("again.log")
    words = ("condor_history", "-epochs", "-directory")

    def runs() -> list[str]:
        return call(*words, str(job), "-af", "ClusterId", "NumShadowStarts")[1].splitlines()

    found = until(lambda: lines if len(lines := runs()) == 2 else None, "both runs are recorded")
    assert found == [f"{job} 2", f"{job} 1"], "the newest first"
    folder = pool.folder / "epochs"
    path = folder / f"job.runs.{job}.0.ads"
    assert path.stat().st_mode & 0o077 == 0, "an ad has the job's environment"
    assert call(*words, "-search", str(folder), str(job), "-limit", "1", "-af", "NumShadowStarts")[1] == "2\n"
    assert call(*words, "-search", "/nope") == (1, "", "Error: Can't open directory /nope: No such file or directory\n")
    assert "no effect without -epochs" in call("condor_history", "-directory", str(job))[2]


def test_jobs_that_no_machine_would_take(call: Call, tmp_path: Path) -> None:
    common = 'Owner = "ann"\nJobStatus = 1\nQDate = 1\nCmd = "x"\n'
    ads, slots = tmp_path / "ads", tmp_path / "slots"
    ads.write_text("\n".join(
        f"ClusterId = 1\nProcId = {proc}\nRequestCpus = {cpus}\nRequirements = TARGET.Cpus >= RequestCpus\n{common}"
        for proc, cpus in enumerate((9, 1, 2, 8, 3))))
    slots.write_text('MyType = "Machine"\nName = "s"\nState = "Claimed"\nCpus = 2\nStart = true\n'
                     "Requirements = START\n\n"
                     'MyType = "Machine"\nName = "t"\nCpus = 4\nStart = TARGET.ProcId > 9\nRequirements = START\n')
    words = ("condor_q", "-jobads", str(ads), "-slotads", str(slots), "-unmatchable")
    assert call(*words, "-af", "ProcId")[1].split() == ["0", "3", "4"]
    assert call(*words, "-limit", "2", "-af", "ProcId")[1].split() == ["0", "3"]
    assert [ad["ProcId"] for ad in json.loads(call(*words, "-json")[1])] == [0, 3, 4]
    assert "3 jobs; 0 completed, 0 removed, 3 idle" in call(*words, "-totals")[1]
    assert call(*words, "-better-analyze")[1].splitlines()[1:] == ["1.0", "1.3", "1.4"]
    assert call(*words, "-mconstraint", 'Name == "t"', "-af", "ProcId")[1].split() == ["0", "1", "2", "3", "4"]
    table = call(*words)[1]
    assert [line.split()[0] for line in table.splitlines() if " ann " in line] == ["1.0", "1.3", "1.4"]


def test_the_reasons_of_held_jobs_are_counted(call: Call, pool: PersonalPool) -> None:
    cluster = pool.submit("executable = /bin/true\nhold = true\nqueue 2\n")
    try:
        (line,) = call("condor_q", str(cluster), "-hold-codes")[1].splitlines()[-1:]
        assert line.split()[1:4] == ["15/0", "2", f"{cluster}.0"]
        assert line.endswith(" submitted on hold at user's request")
    finally:
        pool.run("condor_rm", str(cluster))


def test_ads_are_compared_with_those_of_a_file(call: Call, tmp_path: Path) -> None:
    for name, slots in (("before", "ab"), ("now", "bc")):
        ads = [f'MyType = "Machine"\nName = "{slot}"\nMachine = "{slot}"\n' for slot in slots]
        (tmp_path / name).write_text("\n".join(ads))
    words = ("condor_status", "-ads", str(tmp_path / "now"), "-merge", str(tmp_path / "before"))
    found = json.loads(call(*words, "-json")[1])
    names = {key: [ad["Name"] for ad in ads] for key, ads in found.items()}
    assert names == {"new": ["c"], "both": ["b"], "gone": ["a"]}
    heads = [line for line in call(*words, "-af", "Name")[1].splitlines() if not line.startswith("--")]
    assert heads == ["c", "b", "a"]


def test_history_files_that_were_put_aside_are_searched(call: Call, tmp_path: Path) -> None:
    for number, name in enumerate(("h.20240101T000000", "h.20250101T000000", "h", "h.old"), 1):
        (tmp_path / name).write_text(f'ClusterId = {number}\nProcId = 0\nOwner = "ann"\n')
    assert call("condor_history", "-search", str(tmp_path / "h"), "-af", "ClusterId")[1].split() == ["3", "2", "1"]
    found = call("condor_history", "-search", str(tmp_path / "h"), "-scanlimit", "2", "-const", "ClusterId < 3", "-af",
                 "ClusterId")
    assert found[1].split() == ["2"]
    copy = str(tmp_path / "copy")
    assert call("condor_history", "-search", str(tmp_path / "h"), "-extract", copy, "-const", "ClusterId > 1")[0] == 0
    assert call("condor_history", "-file", copy, "-af", "ClusterId")[1].split() == ["3", "2"]
    assert call("condor_history", "-extract", copy)[0] == 1


def test_the_history_of_a_schedd_is_written_for_analysts(call: Call, tmp_path: Path) -> None:
    import duckdb

    def clusters() -> list[str]:
        return call("condor_history", "-af", "ClusterId")[1].split()

    ended = until(clusters, "a job in the history")
    out = tmp_path / "jobs.parquet"
    status, _, said = call("condor_history", "-parquet", str(out))
    assert status == 0, said
    with duckdb.connect() as base:
        rows = base.execute(f"select ClusterId, Cmd, ExitCode from '{out}'").fetchall()
    assert {int(cluster) for cluster in ended} <= {row[0] for row in rows}
    assert ("/bin/true", 0) in {row[1:] for row in rows}


def test_readiness_is_waited_for(pool: PersonalPool, call: Call) -> None:
    status, out, _ = call("condor_who", "-wait:60", 'IsReady && STARTD_State =?= "Ready"')
    assert (status, out) == (0, "true\n")
    status, out, _ = call("condor_who", "-wait-for-ready", "NumDead > 0")
    assert (status, out) == (1, "false\n")
    assert f"SCHEDD_PID = {pool.daemons()['schedd']}" in call("condor_who", "-quick")[1]


def test_users_are_listed_with_their_groups(call: Call, tmp_path: Path) -> None:
    lines = [("bob@x", False), ("g.h.eve@x", False), ("g.ann@x", False), ("g", True), ("g.h", True)]
    (tmp_path / "users").write_text("\n".join(
        f'Name = "{name}"\nIsAccountingGroup = {str(group).lower()}\nResourcesUsed = 1\n' for name, group in lines))

    def order(*options: str) -> list[str]:
        return call("condor_userprio", "-inputfile", str(tmp_path / "users"), *options, "-af", "Name")[1].split()

    assert order("-flat") == ["bob@x", "g.h.eve@x", "g.ann@x"]
    assert order("-grouporder") == ["g", "g.h", "bob@x", "g.ann@x", "g.h.eve@x"]
    assert order("-hierarchical") == ["bob@x", "g", "g.ann@x", "g.h", "g.h.eve@x"]
    text = call("condor_userprio", "-inputfile", str(tmp_path / "users"), "-long", "-legacy")[1]
    assert 'Name2 = "g.h.eve@x"' in text
