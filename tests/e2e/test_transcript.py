"""The tools print what HTCondor's print, on the stream it uses, with its exit status."""

from __future__ import annotations

import getpass
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.pool_fixture import PersonalPool, until

TRANSCRIPT = Path(__file__).parents[1] / "conformance" / "tools" / "transcript.txt"
WAITING = "executable = /bin/sleep\ntransfer_executable = false\narguments = 300\nrequirements = false\nqueue {}\n"
FORMS = {
    "HOST": r"\S+",
    "MORE": r".*",
    "ADDRESS": r"<[\d.:]+>",
    "DATE": r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d",
    "TIME": r"[ \d]\d/\d+ +\d\d:\d\d",
}


@attrs.define
class Step:
    """One command and what it must do."""

    command: str
    out: str = ""
    err: str = ""
    status: int = 0


def steps() -> Iterator[Step]:
    step: Step | None = None
    for line in TRANSCRIPT.read_text().splitlines():
        if line.startswith("$ "):
            step = Step(line[2:])
        elif step is not None and line.startswith(("out|", "err|")):
            text = line[5:]
            setattr(step, line[:3], getattr(step, line[:3]) + (text[:-1] if text.endswith("~") else text + "\n"))
        elif step is not None and line.startswith("rc="):
            step.status = int(line[3:])
            yield step


def _filled(text: str, values: dict[str, str | int]) -> str:
    return re.sub(r"\{([A-Z]+)(:[^}]*)?\}", lambda found: format(values[found[1]], (found[2] or ":")[1:]), text)


def _pattern(text: str, values: dict[str, str | int]) -> str:
    marked = {**values, **{name: f"\0{name}\0" for name in FORMS}}
    escaped = re.escape(_filled(text, marked))
    for name, form in FORMS.items():
        escaped = escaped.replace(re.escape(f"\0{name}\0"), form)
    return escaped


def test_every_command_of_the_transcript(own_pool: PersonalPool) -> None:
    values: dict[str, str | int] = {
        name: own_pool.submit(WAITING.format(count)) for name, count in zip("CDE", (3, 3, 1), strict=True)
    }
    values["USER"] = getpass.getuser()
    (own_pool.work / "bad.sub").write_text("executable = /no/such\nqueue\n")
    (own_pool.work / "bad2.sub").write_text("this is no submit description\n")
    for step in steps():
        done = own_pool.tool(*shlex.split(_filled(step.command, values).replace("\\n", "'\\n'")))
        shown = f"{step.command}\n{done.stdout}\n{done.stderr}"
        assert re.fullmatch(_pattern(step.out, values), done.stdout), shown
        assert re.fullmatch(_pattern(step.err, values), done.stderr), shown
        assert done.returncode == step.status, shown


def test_submit_says_what_it_did_and_nothing_else(pool: PersonalPool) -> None:
    (pool.work / "three.sub").write_text(WAITING.format(3).rstrip("\n"))
    done = pool.tool("condor_submit", "three.sub")
    found = re.fullmatch(r"Submitting job\(s\)\.\.\.\n3 job\(s\) submitted to cluster (\d+)\.\n", done.stdout)
    assert found is not None, done.stdout
    assert done.stderr == ""
    cluster = int(found.group(1))
    assert pool.run("condor_submit", "-terse", "three.sub") == f"{cluster + 1}.0 - {cluster + 1}.2\n"
    assert pool.run("condor_submit", "--terse", stdin=WAITING.format(1)) == f"{cluster + 2}.0 - {cluster + 2}.0\n"
    verbose = pool.run("condor_submit", "-v", "three.sub")
    assert f"** Proc {cluster + 3}.2:\n" in verbose
    assert verbose.count('Cmd = "/bin/sleep"\n') == 3
    pool.run("condor_rm", "-all")


def test_edits_and_priorities_are_kept(pool: PersonalPool) -> None:
    cluster = pool.submit(WAITING.format(2))
    pool.run("condor_prio", "-p", "7", f"{cluster}.0")
    pool.run("condor_prio", "+3", f"{cluster}")
    assert pool.run("condor_q", str(cluster), "-af", "JobPrio") == "10\n3\n"
    said = pool.run("condor_qedit", str(cluster), "Note", '"a\\b"', "Sum=1+2")
    assert said == 'Set attribute "Note" for 2 matching jobs.\nSet attribute "Sum" for 2 matching jobs.\n'
    assert pool.run("condor_q", f"{cluster}.1", "-af:r", "Note", "Sum") == '"a\\b" 1 + 2\n'
    refused = pool.tool("condor_qedit", str(cluster), "Owner", '"root"')
    assert refused.returncode == 1
    assert "No attributes were set" in refused.stderr
    pool.run("condor_rm", str(cluster))


def test_analysis_names_the_condition_that_fails(pool: PersonalPool) -> None:
    cluster = pool.submit("executable=/bin/sleep\ntransfer_executable=false\nrequest_memory=900TB\nqueue\n")
    text = pool.run("condor_q", "-better-analyze", str(cluster))
    assert re.search(r"\[\d\] +0  TARGET.Memory >= RequestMemory", text), text
    assert "No machines matched" in text
    pool.run("condor_rm", str(cluster))


def test_tools_find_the_pool_whatever_the_caller_did_to_home(pool: PersonalPool) -> None:
    done = pool.tool("condor_q", "-all", environment={"HOME": "/nonexistent", "PYTHONPATH": "/nonexistent"})
    assert done.returncode == 0, done.stderr


TOOLS = (
    "submit q history rm hold release suspend continue vacate_job wait prio qedit transfer_data tail ssh_to_job drain"
)


@pytest.mark.parametrize("tool", [*TOOLS.split(), "vacate"])
def test_an_unknown_flag_is_an_error(pool: PersonalPool, tool: str) -> None:
    done = pool.tool(f"condor_{tool}", "-no_such_flag_here")
    assert done.returncode != 0
    assert done.stderr


def test_version_lines(pool: PersonalPool) -> None:
    first, second = pool.run("condor_version").splitlines()
    assert re.fullmatch(r"\$CondorVersion: \d+\.\d+\.\d+ .* \$", first)
    assert re.fullmatch(r"\$CondorPlatform: \S+ \$", second)


def test_autoclusters_and_the_jobs_of_a_log(pool: PersonalPool) -> None:
    log = pool.work / "told.log"
    cluster = pool.submit(f"log = {log}\n{WAITING.format(3)}")
    line = until(lambda: next((line for line in pool.run("condor_q", "-autocluster", str(cluster)).splitlines()
                               if line.split()[1:2] == ["3"]), ""), "the autocluster of the jobs")  # fmt: skip
    assert line.split()[2] == "Vanilla"
    (ad,) = pool.jobs("-autocluster", str(cluster))
    assert (ad["JobCount"], ad["JobIds"]) == (3, f"{cluster}.0 ... {cluster}.2")
    assert "RequestMemory" in ad
    form = pool.work / "by_owner.cpf"
    form.write_text("SELECT UNIQUE BARE\nOwner\nJobStatus PRINTAS JOB_STATUS_RAW\nJobCount\n")
    said = pool.run("condor_q", "-all", "-print-format", str(form), str(cluster))
    assert said.split()[1:] == ["Idle", "3"]
    pool.run("condor_rm", str(cluster))
    until(lambda: log.read_text().count("\n009 (") == 3, "three events of removal")
    assert pool.run("condor_q", "-userlog", str(log), "-af:j", "JobStatus").splitlines() == [
        f"{cluster}.{proc} 3" for proc in range(3)
    ]
    assert pool.run("condor_history", "-userlog", str(log), "-limit", "1", "-af", "ProcId") == "2\n"
