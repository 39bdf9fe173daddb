"""condor_qsub: what the options of qsub come to, and what is refused."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from condor_actors.tools.jobs import qsub
from condor_actors.tools.jobs.qsub_description import QsubJob, description_of
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.flags import RefusedFlag
from tests.unit.submit.worlds import jobs_of

NOON_S = time.mktime((2026, 6, 15, 12, 0, 0, 0, 0, -1))


def job(*words: str, **changes: object) -> QsubJob:
    options = qsub._values(qsub.read(words))
    given = {"script": "/home/a/night.sh", "options": options, "variables": {"LANG": "C"}, "folder": "/home/a",
             **changes}
    return QsubJob(**given)  # type: ignore[arg-type]


def lines(*words: str, **changes: object) -> list[str]:
    return description_of(job(*words, **changes), NOON_S).splitlines()


@pytest.mark.parametrize(("words", "wanted"), [
    (["-N", "x"], ["batch_name = x", "output = x.o$(Cluster)", "error = x.e$(Cluster)"]),
    (["-o", "host:out", "-e", "err"], ["output = out", "error = err"]),
    (["-o", "log/$JOB_NAME.$JOB_ID", "-j", "oe"],
     ["output = log/night.sh.$(Cluster)", "error = log/night.sh.$(Cluster)"]),
    (["-j", "y"], ["output = night.sh.o$(Cluster)", "error = night.sh.o$(Cluster)"]),
    (["-d", "sub"], ["initialdir = /home/a/sub"]),
    (["-d", "sub", "-cwd"], ["initialdir = /home/a"]),
    (["-l", "mem=1500Mb,file=1025,procs=3"], ["request_memory = 1500", "request_disk = 2", "request_cpus = 3"]),
    (["-l", "nodes=1:ppn=4:gpus=2", "-l", "walltime=1:02:03"],
     ["request_cpus = 4", "request_gpus = 2", "allowed_job_duration = 3723"]),
    (["-l", 'arch="X86_64",host=m1'], ['requirements = (TARGET.Arch == "X86_64") && (TARGET.Machine == "m1")']),
    (["-v", "LANG,A=it's 5$"], ['''environment = "LANG=C A='it''s 5$(DOLLAR)'"''']),
    (["-V", "-h", "-p", "-7", "-m", "ae", "-M", "me@x.org", "-A", "g"],
     ["getenv = true", "hold = true", "priority = -7", "notification = Complete", "notify_user = me@x.org",
      "accounting_group = g"]),
    (["-r", "n"], ["periodic_remove = JobStatus == 1 && NumJobStarts > 0"]),
    (["-t", "2-9:3"], ["place = 2 + $(Process) * 3", "queue 3", "output = night.sh.o$(Cluster).$(task)"]),
    (["-S", "/bin/ksh"],
     ["executable = /bin/ksh", "transfer_input_files = /home/a/night.sh", 'arguments = "night.sh"']),
    (["-W", "stagein=in@host:/data/in,b@host:b", "-W", "stageout=out@host:out"],
     ["transfer_input_files = /data/in, b", "transfer_output_files = out"]),
])
def test_what_options_come_to(words: list[str], wanted: list[str]) -> None:
    assert set(wanted) <= set(lines(*words))


@pytest.mark.parametrize(("date", "wanted"), [
    ("1300", (2026, 6, 15, 13, 0, 0)), ("1100", (2026, 6, 16, 11, 0, 0)), ("101100.30", (2026, 7, 10, 11, 0, 30)),
    ("01101100", (2027, 1, 10, 11, 0, 0)), ("2701101100", (2027, 1, 10, 11, 0, 0)),
    ("203001101100", (2030, 1, 10, 11, 0, 0)),
])
def test_dates(date: str, wanted: tuple[int, ...]) -> None:
    assert f"deferral_time = {int(time.mktime((*wanted, 0, 0, -1)))}" in lines("-a", date)


@pytest.mark.parametrize(("words", "text"), [
    (["-a", "2500"], "-a 2500"), (["-l", "mem=lots"], "mem=lots"), (["-l", "colour=red"], "colour=red"),
    (["-l", "nodes=4"], "parallel universe"), (["-l", "nodes=1:fast"], "fast"), (["-t", "9-1"], "-t 9-1"),
    (["-t", "1-9999999"], "max_materialize"), (["-m", "b"], "begins"), (["-r", "maybe"], "-r maybe"),
    (["-p", "high"], "-p high"), (["-v", "NOWHERE"], "NOWHERE"), (["-W", "depend=afterok:1"], "condor_submit_dag"),
    (["-N", "a b"], "-N a b"), (["-o", "a\nqueue 9"], "control characters"), (["-A", "g\nqueue 9"], "-A"),
    (["-M", "x\nqueue 9"], "-M"), (["-v", "A=x\ny"], "line end"),
])
def test_what_is_wrong_is_named(words: list[str], text: str) -> None:
    with pytest.raises(ToolError, match="condor_qsub: ") as caught:
        lines(*words)
    assert text in str(caught.value)


@pytest.mark.parametrize("words", [["-hold_jid", "1"], ["-I"], ["-sync", "y"], ["-c", "s"]])
def test_what_cannot_be_is_refused_with_what_comes_nearest(words: list[str]) -> None:
    with pytest.raises(RefusedFlag, match="is not available: "):
        qsub.read(words)


def test_letters_are_told_apart_by_their_case_and_arguments_follow_the_script() -> None:
    given = qsub.read(["-v", "A=1", "-V", "-a", "1200", "-A", "g", "script", "-v", "x"])
    assert [item.name for item in given] == ["v", "V", "a", "A", "", "", ""]


def test_the_lines_of_a_script(tmp_path: Path) -> None:
    script = tmp_path / "s"
    script.write_text('#!/bin/sh\n#PBS -N "from file" # a name\n#$ -l mem=1Gb\necho "#PBS -h"\n#SGE -p 3\n')
    assert qsub._directives(str(script), script.read_text()) == {"N": "from file", "l": "mem=1Gb", "p": "3"}
    for line, text in (("#PBS -y 3", "unknown option -y"), ("#PBS -l", "no value after -l"),
                       ("#$ -h word", "only options"), ("#PBS -hold_jid 3", "condor_submit_dag"),
                       ('#PBS -N "x', "closing quotation"), ("#$ -b y", "-b belongs on the command line")):
        with pytest.raises(ToolError, match=f"s, line 2: .*{text}"):
            qsub._directives("s", f"#!/bin/sh\n{line}\n")


def test_a_line_without_effect_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert qsub._directives("s", "#!/bin/sh\n#PBS -q long\n#PBS -p 3\n") == {"p": "3"}
    assert "WARNING: s, line 2: -q has no effect: a pool has no queues" in capsys.readouterr().err


def test_yes_and_no() -> None:
    assert [qsub._yes(word) for word in ("y", "N", "yes", "no")] == [True, False, True, False]
    with pytest.raises(ToolError, match="-b maybe"):
        qsub._yes("maybe")


def test_a_script_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="No such file"):
        qsub._script(str(tmp_path / "missing"))
    (tmp_path / "program").write_bytes(b"\x7fELF\0")
    with pytest.raises(ToolError, match="-b y submits a program"):
        qsub._script(str(tmp_path / "program"))


def test_the_tasks_of_an_array_know_their_numbers() -> None:
    text = description_of(job("-t", "2-9:3", "-v", "A=1", script="/bin/true", folder="/home/alice"), NOON_S)
    jobs = jobs_of(text)
    assert [(ad.get_str("Environment"), ad.get_str("Out")) for ad in jobs] == [
        (f"A=1 SGE_TASK_ID={task} PBS_ARRAYID={task} SGE_TASK_FIRST=2 SGE_TASK_LAST=9 SGE_TASK_STEPSIZE=3",
         f"true.o5.{task}") for task in (2, 5, 8)]


def test_what_it_is_run_by(tmp_path: Path) -> None:
    assert "executable = /bin/sh" in lines(is_runnable=False)
    assert "executable = /home/a/night.sh" in lines(is_runnable=True)
    assert {"executable = /usr/bin/sort", "transfer_executable = false", '''arguments = "'a b' -r"'''} <= set(
        lines(script="/usr/bin/sort", is_program=True, arguments=["a b", "-r"]))
