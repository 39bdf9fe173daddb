"""Descriptions as people write them, and what is said of those they got wrong."""

from __future__ import annotations

import pytest

from condor_actors.classads import UNDEFINED
from condor_actors.submit import SubmitError
from tests.unit.submit.worlds import SETTINGS, World, described, jobs_of


def test_one_job() -> None:
    (job,) = jobs_of(
        "#!/usr/bin/env condor_submit\n# comment\nExecutable=/bin/sleep\n  arguments = 10 \\\n  # not this\n 20\nqueue"
    )
    assert job["Cmd"] == "/bin/sleep"
    assert job["Args"] == "10 20"
    assert job["Iwd"] == "/home/alice"
    assert job["ClusterId"] == 5
    assert job["JobStatus"] == 1


def test_dos_line_ends_and_no_newline_at_the_end() -> None:
    assert len(jobs_of("executable = /bin/sleep\r\narguments = 1\r\nqueue 2")) == 2


def test_a_block_keeps_its_lines() -> None:
    (job,) = jobs_of('executable=/bin/true\nMY.Text @=end\n"one\ntwo"\n@end\nqueue')
    assert job["Text"] == "one\ntwo"


def test_later_assignments_win_and_each_queue_takes_what_stands_then() -> None:
    jobs = jobs_of("executable=/bin/true\narguments=1\nqueue\narguments=2\narguments=3\nqueue 2")
    assert [job["Args"] for job in jobs] == ["1", "3", "3"]
    assert [job["ProcId"] for job in jobs] == [0, 1, 2]


def test_another_executable_begins_another_cluster() -> None:
    clusters = described("executable=/bin/true\nqueue\nexecutable=/bin/sleep\nqueue 2").clusters
    assert [(cluster.cluster_id, len(cluster.procs)) for cluster in clusters] == [(5, 1), (6, 2)]
    with pytest.raises(SubmitError, match="single-cluster"):
        described("executable=/bin/true\nqueue\nexecutable=/bin/sleep\nqueue 2", single_cluster=True)


def test_like_jobs_cost_nothing() -> None:
    (cluster,) = described("executable=/bin/true\nqueue 500").clusters
    assert set(cluster.procs) == {b""}


def test_a_proc_holds_only_what_differs() -> None:
    (cluster,) = described("executable=/bin/true\noutput=out.$(Process)\nqueue 3").clusters
    assert cluster.procs[2] == b'Out = "out.2"\n'


def test_what_the_first_job_has_and_another_has_not_is_undefined_there() -> None:
    jobs = jobs_of("executable=/bin/true\nconcurrency_limits=$(x)\nqueue x from (\n a\n\n)\n")
    assert len(jobs) == 1
    jobs = jobs_of("executable=/bin/true\nnotify_user=$(x)\nqueue x,y from (\n a 1\n,2\n)\n")
    assert jobs[0]["NotifyUser"] == "a"
    assert jobs[1].evaluate("NotifyUser") is UNDEFINED


def test_queue_from_a_file_a_program_and_a_pattern() -> None:
    world = World(texts={"rows.txt": "1 2\n# no\n3, 4 5\n"}, outputs={"ls": "a\nb\n"})
    args = [job["Args"] for job in jobs_of("executable=/bin/true\narguments=$(x)-$(y)\nqueue x,y from rows.txt", world)]
    assert args == ["1-2", "3-4 5"]
    assert len(jobs_of("executable=/bin/true\nqueue x from ls |", world)) == 2
    matched = jobs_of("executable=/bin/true\narguments=$(f)\nqueue f matching files /bin/*", world)
    assert [job["Args"] for job in matched] == ["/bin/sleep", "/bin/true"]
    folders = jobs_of("executable=/bin/true\narguments=$(f)\nqueue f matching dirs /home/alice/*", world)
    assert [job["Args"] for job in folders] == ["/home/alice/runs/"]


def test_arguments_and_options_of_the_tool() -> None:
    assert jobs_of("executable=/bin/true\narguments=$(x)\nqueue", assignments=(("x", "9"),))[0]["Args"] == "9"
    assert jobs_of("executable=/bin/true\nqueue", appended=("arguments = 4",))[0]["Args"] == "4"
    assert len(jobs_of("executable=/bin/true\n", queue="x in (1, 2, 3)")) == 3
    assert jobs_of("executable=/bin/true\nbatch_name=b\nqueue", batch_name="mine")[0]["JobBatchName"] == "mine"
    held = jobs_of("executable=/bin/true\noutput=a/b\nqueue", spool=True)[0]
    assert (held["JobStatus"], held["HoldReasonCode"], held["Out"]) == (5, 16, "_condor_stdout")
    assert held["TransferOutputRemaps"] == "_condor_stdout=a/b"


def test_conditions_includes_and_templates() -> None:
    world = World(
        texts={"more.inc": "arguments = included"}, settings={**SETTINGS, "SUBMIT_TEMPLATE_BIG": "request_cpus = $(1)"}
    )
    job = jobs_of(
        """
        executable = /bin/true
        if defined nothing
            arguments = wrong
        elif version >= 8.1.6
            include : more.inc
        else
            arguments = wrong
        endif
        use TEMPLATE : BIG(4)
        queue
        """,
        world,
    )[0]
    assert job["Args"] == "included"
    assert job["RequestCpus"] == 4


@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        ("executable=/bin/true\nthis is garbage\nqueue", "'this is garbage': expected NAME = VALUE or queue", 2),
        ("executable=/bin/true\nqueue x in (\na\nb", "closing brace", 2),
        ("executable=/bin/true\nqueue many", "queue many", 2),
        ("executable=/bin/true\nqueue -3", "queue -3", 2),
        ("executable=/bin/true\nqueue x from missing.txt", "missing.txt", 2),
        ("executable=/bin/true\nqueue x in [a:b] 1 2", "slice", 2),
        ("error : not today\nqueue", "not today", 1),
        ("endif\nqueue", "endif without if", 1),
        ("a @=end\nx", "@end", 1),
        ("include : none.inc\nqueue", "none.inc", 1),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line(text: str, said: str, line: int) -> None:
    with pytest.raises(SubmitError) as caught:
        jobs_of(text)
    assert caught.value.parsing
    assert caught.value.line == line
    assert said in caught.value.problem


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("queue", "No 'executable' parameter was provided"),
        ("executable = /no/such\nqueue", "Can't access executable file /no/such: No such file or directory"),
        ("executable = /bin/true", 'doesn\'t contain any "queue" commands'),
        ("executable=/bin/true\nrequirements = (Memory >\nqueue", "Parse error"),
        ("executable=/bin/true\n+Foo = bar baz\nqueue", "MY.Foo = bar baz"),
        ("executable=/bin/true\nrequirements = Requirements && true\nqueue", "Circular"),
        (
            "executable=/bin/true\nshould_transfer_files = NO\ntransfer_input_files = a\nqueue",
            "disabled should_transfer",
        ),
        ("executable=/bin/true\nshould_transfer_files = perhaps\nqueue", "invalid value (perhaps)"),
        ('executable=/bin/true\nenvironment = "A"\nqueue', "Missing '='"),
        ("executable=/bin/true\nmax_retries = -1\nqueue", "max_retries"),
        ("executable=/bin/true\nkill_sig = SIGNOTHING\nqueue", "invalid signal"),
        ("executable=/bin/true\nqueue 5", "-maxjobs (3)"),
    ],
)
def test_what_makes_no_job_is_said(text: str, said: str) -> None:
    with pytest.raises(SubmitError) as caught:
        jobs_of(text, max_jobs=3)
    assert said in str(caught.value)


def test_misspelled_commands_are_told_from_used_macros() -> None:
    made = described("executable=/bin/true\nexecutible=/bin/x\nmine=3\narguments=$(mine)\nqueue")
    (sentence,) = made.unused()
    assert "'executible = /bin/x' was unused" in sentence
    assert "Did you mean executable? (job.sub, line 2)" in sentence


def test_standard_universe_needs_no_file_transfer() -> None:
    job = jobs_of("universe=standard\nexecutable=/bin/true\nqueue")[0]
    assert job["JobUniverse"] == 1
    assert "FileTransfer" not in str(job["Requirements"])
    assert "TARGET.HasStandardUniverse" in str(job["Requirements"])


def test_a_script_with_dos_line_ends_is_refused() -> None:
    world = World(files={"/bin/true": 1, "/s.sh": 10}, texts={"/s.sh": "#!/bin/sh\r\n"})
    with pytest.raises(SubmitError, match="CRLF"):
        jobs_of("executable = /s.sh\nqueue", world)
    assert jobs_of("executable = /s.sh\nqueue", world, allow_crlf=True)


def test_an_executable_that_is_only_in_the_initial_folder_is_found_there() -> None:
    world = World(files={"/home/alice/runs/x": 1, "/home/alice/y": 1, "/home/alice/runs/y": 1})
    assert jobs_of("initialdir = runs\nexecutable = x\nqueue", world)[0]["Cmd"] == "/home/alice/runs/x"
    assert jobs_of("initialdir = runs\nexecutable = y\nqueue", world)[0]["Cmd"] == "/home/alice/y"
