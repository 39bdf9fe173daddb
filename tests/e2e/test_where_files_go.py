"""Submit commands about where a job's files lie, where it begins, and whether it runs at all, on a real pool."""

from __future__ import annotations

import errno
import json
import os
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from condor_actors.cores.argument_quoting import split_raw
from condor_actors.messages.codes import HoldCode, JobEventType, JobStatus
from condor_actors.userlog.event_facts import facts_of
from condor_actors.userlog.reader import EventReader
from tests.pool_fixture import PersonalPool, open_to_jobs, until


def folder(pool: PersonalPool, name: str) -> Path:
    made = pool.work / name
    made.mkdir()
    open_to_jobs(made)
    return made


def shell(script: str) -> str:
    return f"executable = /bin/sh\ntransfer_executable = false\narguments = \"-c '{script}'\"\nlog = log\n"


def test_relative_paths_are_kept_both_ways(pool: PersonalPool) -> None:
    here = folder(pool, "paths")
    (here / "in" / "deep").mkdir(parents=True)
    (here / "in" / "deep" / "a").write_text("one\n")
    (here / "in" / "tree").mkdir()
    (here / "in" / "tree" / "b").write_text("two\n")
    (here / "flat").write_text("three\n")
    pool.submit(f"initialdir = {here}\n" + shell(
        "cat in/deep/a in/tree/b flat > all; mkdir -p out/x; cp all out/x/sum; cp all out/top") + f"""
        transfer_input_files = in/deep/a, in/tree/, {here}/flat
        transfer_output_files = out/x/sum, out/top
        transfer_output_remaps = "out/top = elsewhere"
        should_transfer_files = yes
        preserve_relative_paths = true
        error = err
        queue
    """)
    pool.wait(str(here / "log"))
    assert (here / "err").read_text() == ""
    assert (here / "out" / "x" / "sum").read_text() == "one\ntwo\nthree\n"
    assert (here / "elsewhere").read_text() == "one\ntwo\nthree\n"
    assert not (here / "sum").exists()


@pytest.mark.parametrize(("command", "hold_code", "hold_subcode", "role"), [
    ("input", HoldCode.UNABLE_TO_OPEN_INPUT, errno.ENOENT, "standard input"),
    ("output", HoldCode.UNABLE_TO_OPEN_OUTPUT, errno.EISDIR, "standard output"),
    ("error", HoldCode.UNABLE_TO_OPEN_OUTPUT, errno.EISDIR, "standard error")])
def test_a_standard_file_in_a_shared_folder_that_cannot_be_opened_holds_the_job(
        pool: PersonalPool, command: str, hold_code: int, hold_subcode: int, role: str) -> None:
    """What is wrong is the file: nobody is told to mend the program."""
    here = folder(pool, f"unopened-{command}")
    file = here / "file"
    file.write_text("")
    file.chmod(0o666)
    cluster = pool.submit(f"initialdir = {here}\nexecutable = /bin/true\nshould_transfer_files = no\nhold = true\n"
                          f"{command} = file\nqueue\n")
    file.unlink()
    if command != "input":
        file.mkdir()
    pool.run("condor_release", str(cluster))
    held = until(lambda: [ad for ad in pool.jobs(f"{cluster}.0") if ad["JobStatus"] == JobStatus.HELD
                          and ad["HoldReasonCode"] != HoldCode.SUBMITTED_ON_HOLD], "the job is held")[0]
    assert (held["HoldReasonCode"], held["HoldReasonSubCode"]) == (hold_code, hold_subcode)
    assert f"cannot open {file} as {role}: " in held["HoldReason"]
    assert "The program is missing" not in pool.run("condor_q", str(cluster), "-better-analyze")
    pool.run("condor_rm", str(cluster))


def test_a_kept_path_that_leads_out_holds_the_job(pool: PersonalPool) -> None:
    here = folder(pool, "leads-out")
    (pool.work / "beside").write_text("x")
    cluster = pool.submit(f"initialdir = {here}\n" + shell("true")
                          + "transfer_input_files = ../beside\nshould_transfer_files = yes\n"
                            "preserve_relative_paths = true\nqueue\n")
    (job,) = until(lambda: [job for job in pool.jobs(str(cluster)) if job["JobStatus"] == 5], "the job is held")
    assert job["HoldReasonCode"] == 13
    assert "leads out" in job["HoldReason"]
    pool.run("condor_rm", str(cluster))


def test_output_goes_to_a_folder_that_is_made_for_it(pool: PersonalPool) -> None:
    here = folder(pool, "places")
    cluster = pool.submit(f"initialdir = {here}\n" + shell("echo made > result; echo said") + f"""
        output_directory = results/$(ClusterId)/$(ProcId)
        output = out
        error = {here}/err
        queue 2
    """)
    pool.wait(str(here / "log"))
    for proc in (0, 1):
        place = here / "results" / str(cluster) / str(proc)
        assert (place / "result").read_text() == "made\n"
        assert (place / "out").read_text() == "said\n"
    assert (here / "err").read_text() == ""
    assert sorted(each.name for each in here.iterdir()) == ["err", "log", "results"]


def test_a_job_begins_in_a_folder_of_its_machine(pool: PersonalPool) -> None:
    here, there = folder(pool, "begins"), folder(pool, "there")
    pool.submit(f"initialdir = {here}\n" + shell("pwd; cp _nothing . 2>/dev/null; ls $_CONDOR_SCRATCH_DIR")
                + f"remote_initialdir = {there}\nshould_transfer_files = YES\noutput = out\nqueue\n")
    pool.wait(str(here / "log"))
    assert (here / "out").read_text().splitlines()[0] == str(there)
    cluster = pool.submit(f"initialdir = {here}\n" + shell("pwd") + "remote_initialdir = /no/such\nqueue\n")
    (job,) = until(lambda: [job for job in pool.jobs(str(cluster)) if job["JobStatus"] == 5], "the job is held")
    assert "/no/such" in job["HoldReason"]
    pool.run("condor_rm", str(cluster))


def test_a_job_whose_outputs_are_newer_is_skipped(pool: PersonalPool) -> None:
    here = folder(pool, "dataflow")
    program, source = here / "make.sh", here / "source"
    program.write_text("#!/bin/sh\ncp source made; date +%N >> made\n")
    program.chmod(0o755)
    source.write_text("1\n")
    text = (f"initialdir = {here}\nexecutable = {program}\ntransfer_input_files = source\nlog = $(name).log\n"
            "transfer_output_files = made\nshould_transfer_files = YES\nskip_if_dataflow = true\nqueue\n")
    pool.submit("name = first\n" + text)
    pool.wait(str(here / "first.log"))
    made = (here / "made").read_bytes()
    assert "001 (" in (here / "first.log").read_text()
    cluster = pool.submit("name = second\n" + text)
    pool.wait(str(here / "second.log"))
    assert (here / "made").read_bytes() == made
    log = (here / "second.log").read_text()
    assert [line[:3] for line in log.splitlines() if line[3:5] == " ("] == ["000", "046", "005"]
    assert "return value 0" in log
    (ad,) = pool.history(str(cluster))
    assert (ad["DataflowJobSkipped"], ad["ExitCode"]) == (True, 0)
    os.utime(source, (time.time() + 5, time.time() + 5))
    pool.submit("name = third\n" + text)
    pool.wait(str(here / "third.log"))
    assert (here / "made").read_bytes() != made


def test_the_stack_has_the_size_that_the_job_wants(pool: PersonalPool) -> None:
    here = folder(pool, "stack")
    pool.submit(f"initialdir = {here}\n" + shell("ulimit -S -s") + "stack_size = 4194304\noutput = out\nqueue\n")
    pool.wait(str(here / "log"))
    assert (here / "out").read_text() == "4096\n"


def test_the_execute_event_shows_attributes_of_the_machine(pool: PersonalPool) -> None:
    here = folder(pool, "props")
    pool.submit(f"initialdir = {here}\n" + shell("true") + "ulog_execute_attrs = Arch, NoSuchThing, TotalCpus\nqueue\n")
    pool.wait(str(here / "log"))
    log = (here / "log").read_text()
    assert '\tArch = "X86_64"\n' in log
    assert "\tTotalCpus = " in log
    assert "NoSuchThing" not in log
    until(lambda: "005 (" in (here / "log").read_text(), "the job has ended")


def test_attributes_of_the_job_follow_each_of_its_events(pool: PersonalPool) -> None:
    here = folder(pool, "informs")
    (here / "seen").write_text("published\n")
    pool.submit(f"initialdir = {here}\n" + shell("cat seen") + "output = out\nmy.Colour = \"red\"\n"
                "job_ad_information_attrs = ProcId, JobStatus, Colour, NoSuchThing\npublic_input_files = seen\n"
                "should_transfer_files = yes\nqueue 2\n")
    pool.wait(str(here / "log"))
    assert (here / "out").read_text() == "published\n", "what would be published is sent"
    found = [(event.number, facts_of(event, is_xml=False))
             for event in EventReader().feed((here / "log").read_bytes())]
    told = [facts for number, facts in found if number == JobEventType.JOB_AD_INFORMATION]
    assert len(told) == len(found) // 2, "one behind each event"
    for (number, _), (_, facts) in zip(found[::2], found[1::2], strict=True):
        assert facts.get_int("TriggerEventTypeNumber") == number
    assert {facts.get_int("ProcId") for facts in told} == {0, 1}
    assert {facts.get_int("JobStatus") for facts in told if facts.get_int("TriggerEventTypeNumber") == 5} == {4}
    assert all(facts.get_str("Colour") == "red" and "NoSuchThing" not in facts for facts in told)


def test_starts_are_spaced_by_the_job(pool: PersonalPool) -> None:
    here = folder(pool, "spaced")
    pool.submit(f"initialdir = {here}\n" + shell("date +%s.%N") + "next_job_start_delay = 4\noutput = out.$(ProcId)\n"
                "queue 3\n")
    pool.wait(str(here / "log"))
    times = sorted(float((here / f"out.{proc}").read_text()) for proc in range(3))
    assert all(later - earlier > 3.0 for earlier, later in pairwise(times))


def test_output_of_an_evicted_run_is_gone_on_with(pool: PersonalPool) -> None:
    here = folder(pool, "appends")
    cluster = pool.submit(f"initialdir = {here}\n" + shell(
        "echo run; test -e again && exit 0; touch again; while :; do sleep 1; done") + """
        should_transfer_files = YES
        when_to_transfer_output = ON_EXIT_OR_EVICT
        erase_output_and_error_on_restart = false
        output = out
        queue
    """)
    until(lambda: "001 (" in (here / "log").read_text(), "the job runs")
    until(lambda: "run" in pool.tool("condor_tail", f"{cluster}.0").stdout, "it has said so")
    pool.run("condor_vacate_job", str(cluster))
    pool.wait(str(here / "log"))
    assert (here / "out").read_text() == "run\nrun\n"


def test_every_run_of_a_job_is_recorded(pool: PersonalPool) -> None:
    here = folder(pool, "epochs")
    (here / "once").write_text("")
    os.chmod(here / "once", 0o666)
    cluster = pool.submit(
        f"initialdir = {here}\n" + shell(f"test -s {here}/once && exit 0; echo 1 > {here}/once; exit 3")
        + "max_retries = 2\nqueue\n")
    pool.wait(str(here / "log"))

    def runs() -> list[str]:
        return pool.run("condor_history", "-epochs", str(cluster), "-af", "ClusterId", "NumShadowStarts",
                        "ExitCode").splitlines()

    until(lambda: len(runs()) == 2, "both runs are recorded")
    assert runs() == [f"{cluster} 2 0", f"{cluster} 1 3"]
    assert pool.run("condor_history", "-type", "EPOCH", str(cluster), "-limit", "1", "-af",
                    "NumShadowStarts") == "2\n"
    assert pool.run("condor_history", str(cluster), "-af", "NumShadowStarts") == "2\n"


def test_how_files_travelled_is_recorded(pool: PersonalPool) -> None:
    here = folder(pool, "travel")
    (here / "in").write_text("x" * 100_000)
    cluster = pool.submit(f"initialdir = {here}\n" + shell(
        "test -f state && cp in out && cat state && exit 0; echo 1 > state; exit 85") + """
        transfer_input_files = in
        transfer_output_files = out
        transfer_checkpoint_files = state
        checkpoint_exit_code = 85
        should_transfer_files = yes
        queue
    """)
    pool.wait(str(here / "log"))

    def records(*options: str) -> list[str]:
        return pool.run("condor_history", f"-transfer-history{''.join(options)}", str(cluster), "-af", "TransferClass",
                        "TransferFileCount", "TransferTotalBytes", "TransferSuccess", "RunInstanceId").splitlines()

    found = until(lambda: len(all_kinds := records()) == 3 and all_kinds, "all that travelled is recorded")
    assert sorted(found) == ["CHECKPOINT 1 2 true 0", "INPUT 1 100000 true 0", "OUTPUT 1 100000 true 0"]
    assert records(":i") == ["INPUT 1 100000 true 0"]
    assert sorted(records(":oc")) == ["CHECKPOINT 1 2 true 0", "OUTPUT 1 100000 true 0"]
    assert pool.run("condor_history", "-type", "OUTPUT", str(cluster), "-af", "TransferClass") == "OUTPUT\n"
    (line,) = pool.run("condor_history", "-transfer-history:o", str(cluster)).splitlines()[1:]
    assert line.split()[:3] == [f"{cluster}.0", "0", "OUTPUT"]
    assert "100000 yes slot1" in line
    assert len(pool.run("condor_history", "-epochs", str(cluster), "-af", "ProcId").split()) == 1
    (job,) = pool.history(str(cluster))
    assert job["TransferInStarted"] <= job["TransferInFinished"] <= job["TransferOutStarted"]


def test_what_all_jobs_came_to(pool: PersonalPool) -> None:
    def totals() -> dict[str, int]:
        words = pool.run("condor_history", "-totals:outcome,year", "-af", "Outcome", "Jobs").split()
        return dict(zip(words[::2], map(int, words[1::2]), strict=True))

    before = totals()
    cluster = pool.submit("executable = /bin/sh\narguments = \"-c 'exit $(Process)'\"\nlog = totals.log\n"
                          "transfer_executable = false\nqueue 3\n")
    pool.wait("totals.log")
    until(lambda: len(pool.history(str(cluster))) == 3, "all three have left the queue")
    after = totals()
    assert {name: after[name] - before.get(name, 0) for name in ("completed", "failed")} == {
        "completed": 1, "failed": 2}
    *_, last = pool.run("condor_history", "-totals:day,owner").splitlines()
    assert last.split()[:2] == ["All", str(sum(after.values()))]
    words = ("-constraint", f"ClusterId == {cluster}")
    assert pool.run("condor_history", "-totals:exitcode,Outcome", *words, "-af", "exitcode", "Outcome", "Jobs") == (
        "0 completed 1\n1 failed 1\n2 failed 1\n")
    heading, line, _, last = pool.run("condor_history", "-totals:NoSuchThing", *words).splitlines()
    assert heading.split() == ["NOSUCHTHING", "JOBS", "STARTS", "HOURS", "CORE_HOURS", "CPU_HOURS"]
    assert line.split()[:2] == ["undefined", "3"]
    assert last.split()[:2] == ["All", "3"]
    refused = pool.tool("condor_history", "-totals:a-b")
    assert (refused.returncode, refused.stderr) == (1, "Error: -totals:a-b: a-b is no attribute\n")


def test_a_schedd_records_its_own_ad(pool: PersonalPool) -> None:
    def names() -> list[str]:
        return pool.run("condor_history", "-daemon", "-limit", "1", "-af", "Name", "MyType").splitlines()

    (first,) = until(names, "the schedd has recorded itself")
    assert first.split()[1] == "Scheduler"
    heading, line = pool.run("condor_history", "-daemon", "-limit", "1").splitlines()
    assert heading.split() == ["TIMESTAMP", "RUNNING", "IDLE", "HELD", "NAME"]
    assert line.split()[4] == first.split()[0]


def test_a_machine_records_the_runs_that_ended_on_it(pool: PersonalPool) -> None:
    here = folder(pool, "ran-here")
    cluster = pool.submit(f"initialdir = {here}\n" + shell("exit 5")
                          + "environment = \"SECRET=xyzzy\"\nqueue 2\n")
    pool.wait(str(here / "log"))

    def runs(*options: str) -> list[str]:
        return pool.run("condor_history", "-startd", str(cluster), *options, "-af", "ProcId", "ExitCode").splitlines()

    until(lambda: len(runs()) == 2, "both runs are recorded")
    assert sorted(runs()) == ["0 5", "1 5"]
    assert runs("-forwards") == runs()[::-1]
    assert len(runs("-limit", "1")) == 1
    machine = pool.run("condor_status", "-limit", "1", "-af", "Machine").strip()
    assert runs("-name", machine) == runs()
    assert pool.run("condor_history", "-startd", str(cluster)).count(" sh -c ") == 2
    written = Path(pool.run("condor_config_val", "STARTD_HISTORY").strip())
    assert written.stat().st_mode & 0o777 == 0o600
    assert "xyzzy" not in written.read_text()
    assert len(pool.run("condor_history", "-file", str(written), str(cluster), "-af", "ProcId").split()) == 2
    (ad,) = htcondor2_history(pool, f"ClusterId == {cluster} && ProcId == 1")
    assert ad["ExitCode"] == 5


def htcondor2_history(pool: PersonalPool, constraint: str) -> list[dict[str, int]]:
    """What a program that uses HTCondor's bindings reads."""
    program = ("import json; from condor_actors.compat import htcondor2\n"
               f"found = htcondor2.Startd().history({constraint!r}, ['ExitCode'], 10)\n"
               "print(json.dumps([dict(ad) for ad in found]))")
    found: list[dict[str, int]] = json.loads(pool.run(sys.executable, "-c", program))
    return found


def test_a_job_has_folders_of_its_own(pool: PersonalPool) -> None:
    here, shared = folder(pool, "own"), folder(pool, "shared")
    (shared / "of-others").write_text("x")
    text = f"initialdir = {here}\nshould_transfer_files = YES\noutput = out\nerror = err\n"
    pool.submit(text + shell(f"ls {shared} /opt; touch {shared}/mine; ls {shared}") + f"""
        mount_under_scratch = {shared}, /opt
        queue
    """)
    pool.wait(str(here / "log"))
    assert (here / "out").read_text() == f"/opt:\n\n{shared}:\nmine\n"
    assert [each.name for each in shared.iterdir()] == ["of-others"]
    cluster = pool.submit(text + shell("true") + "mount_under_scratch = /no/such\nqueue\n")
    (job,) = until(lambda: [job for job in pool.jobs(str(cluster)) if job["JobStatus"] == 5], "the job is held")
    assert "/no/such" in job["HoldReason"]
    pool.run("condor_rm", str(cluster))
    cluster = pool.submit(text + shell("true") + "mount_under_scratch = relative\nqueue\n")
    (job,) = until(lambda: [job for job in pool.jobs(str(cluster)) if job["JobStatus"] == 5], "the job is held")
    assert "absolute path" in job["HoldReason"]
    pool.run("condor_rm", str(cluster))


def test_a_manifest_lists_what_a_job_began_with_and_what_it_left(pool: PersonalPool) -> None:
    here = folder(pool, "manifests")
    (here / "given").mkdir()
    (here / "given" / "a").write_text("a\n")
    text = f"initialdir = {here}\ntransfer_input_files = given\noutput = out\nerror = err\n"
    cluster = pool.submit(text + shell("mkdir made; echo 1 > made/b; echo 2 > c; echo 0 > given/a")
                          + "environment = \"Colour='light blue'\"\nmanifest = true\nqueue\n")
    pool.wait(str(here / "log"))
    listed = here / f"{cluster}_0_manifest"
    assert sorted(each.name for each in listed.iterdir()) == ["environment", "in", "out"]
    began, left = ((listed / name).read_text().splitlines() for name in ("in", "out"))
    assert {"./given/", "./given/a", f"./{cluster}_0_manifest/in"} <= set(began)
    assert {"./made/", "./made/b", "./c", "./_condor_stdout"} <= set(left)
    assert not {"./c", "./made/"} & set(began)
    assert "Colour=light blue" in split_raw((listed / "environment").read_text().strip())
    assert (here / "c").read_text() == "2\n", "the job's own outputs come home as ever"
    (here / "log").unlink()
    pool.submit(text + shell("rm -r lists; ln -s / lists; echo 3 > d") + "transfer_output_files = d\n"
                "manifest_dir = lists\nqueue\n")
    pool.wait(str(here / "log"))
    assert (here / "d").read_text() == "3\n"
    assert not (here / "lists").exists(), "a link that the job has left there is not followed"
    cluster = pool.submit(text + shell("true") + "manifest_dir = a/b\nqueue\n")
    (job,) = until(lambda: [job for job in pool.jobs(str(cluster)) if job["JobStatus"] == 5], "the job is held")
    assert "ManifestDir" in job["HoldReason"]
    pool.run("condor_rm", str(cluster))
    refused = pool.tool("condor_submit", stdin=f"universe = local\n{text}" + shell("true") + "manifest = true\nqueue\n")
    assert refused.returncode == 1
    assert "would have no effect" in refused.stderr


def test_the_submit_event_shows_attributes_of_the_job(pool: PersonalPool) -> None:
    here = folder(pool, "notes")
    text = (f"initialdir = {here}\n" + shell("true") + "submit_event_notes_attrs = Colour, RequestCpus, NoSuch\n"
            "my.Colour = strcat(\"re\", \"d\")\nbatch_name = night\nsubmit_event_user_notes = mine\n")
    pool.submit(text + "queue 2\n")
    pool.submit(text + "log_xml = true\nlog = xml\nqueue\n")
    pool.wait(str(here / "log"))
    pool.wait(str(here / "xml"))
    for name, is_xml in (("log", False), ("xml", True)):
        events = list(EventReader().feed((here / name).read_bytes()))
        submits = [facts_of(event, is_xml=is_xml) for event in events if event.number == JobEventType.SUBMIT]
        assert len(submits) == (1 if is_xml else 2)
        for facts in submits:
            notes = facts.evaluate("StructuredNotes")
            assert dict(notes.items()) == {"Colour": "red", "RequestCpus": 1, "JobBatchName": "night"}
            assert facts.get_str("UserNotes") == "mine"
        assert [event.number for event in events if event.number == 5] == [5] * len(submits)


def test_a_job_that_is_submitted_on_hold_has_no_hold_event(pool: PersonalPool) -> None:
    """As in HTCondor: its submit event is all that has happened to it; a release is the next event."""
    here = folder(pool, "on-hold")
    cluster = pool.submit(f"initialdir = {here}\n" + shell("true") + "hold = true\nqueue\n")
    pool.run("condor_release", str(cluster))
    pool.wait(str(here / "log"))
    numbers = [int(line[:3]) for line in (here / "log").read_text().splitlines() if line[3:5] == " ("]
    assert numbers[:2] == [JobEventType.SUBMIT, JobEventType.JOB_RELEASED]
    assert JobEventType.JOB_HELD not in numbers


def test_the_starter_of_a_job_keeps_a_log_for_it(pool: PersonalPool) -> None:
    here = folder(pool, "starter-log")
    (here / "logs").mkdir()
    open_to_jobs(here / "logs")
    text = f"initialdir = {here}\noutput = out\nstarter_log = logs/$(level)\n" + shell("rm -f .starter.log; exit 3")
    cluster = pool.submit("level = plain\n" + text + "transfer_output_files = \"\"\nqueue\n")
    pool.submit("level = more\nstarter_debug = D_FULLDEBUG\nlog = log\n" + text + "queue\n")
    pool.wait(str(here / "log"))
    plain, more = ((here / "logs" / level).read_text() for level in ("plain", "more"))
    for said in (f"{cluster}.0: on slot1@", "launches sh with 2 arguments", "the program runs, pid",
                 "the program has ended with status 3"):
        assert said in plain
    assert "Prepared" not in plain
    assert "preparing: Prepared" in more
    assert not (here / ".starter.log").exists()
