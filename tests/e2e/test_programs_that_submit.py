"""The pool is driven by its commands: what public programs write and read, in the forms in which they do it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.harness.user_pool import UserPool, user_pool
from tests.pool_fixture import PersonalPool, open_to_jobs, until


def folder(pool: PersonalPool, name: str) -> Path:
    made = pool.work / name
    made.mkdir()
    open_to_jobs(made)
    return made


def test_empty_requirements_an_empty_attribute_and_a_job_that_stays(pool: PersonalPool) -> None:
    here = folder(pool, "block")
    script = here / "block.1.script"
    script.write_text("export BLOCK=1\necho $JOBNAME $BLOCK\n")
    cluster = pool.submit(f"""
        universe                = vanilla
        should_transfer_files   = YES
        when_to_transfer_output = ON_EXIT_OR_EVICT
        Transfer_Executable     = false
        transfer_input_files    = {script}
        machine_count           = 1
        output                  = {here}/block.1.stdout
        error                   = {here}/block.1.stderr
        log                     = {here}/block.1.log
        executable              = /bin/bash
        arguments               = block.1.script
        requirements            =
        +projectname            =
        leave_in_queue          = TRUE
        environment             = "JOBNAME='block.1'"
        RequestMemory = 512.0
        RequestCpus = 1
        queue
    """)
    pool.wait(str(here / "block.1.log"))
    assert (here / "block.1.stdout").read_text() == "block.1 1\n"
    said = pool.run("condor_q", str(cluster), "-af:jr", "JobStatus").split()
    assert said == [f"{cluster}.0", "4"]
    pool.run("condor_rm", str(cluster))


def test_numbers_that_are_made_of_other_attributes(pool: PersonalPool) -> None:
    here = folder(pool, "worker")
    description = here / "worker.sub"
    description.write_text("""
        MY.WorkerName = "cluster--$F(MY.JobId)--"
        batch_name = some-name
        RequestCpus = MY.WorkerCores
        RequestMemory = floor(MY.WorkerMemory / 1048576)
        RequestDisk = floor(MY.WorkerDisk / 1024)
        MY.JobId = "$(ClusterId).$(ProcId)"
        MY.WorkerCores = 1
        MY.WorkerMemory = 100000000
        MY.WorkerDisk = 100000000
        Environment = "A=1 JOB_ID=$F(MY.JobId)"
        Arguments = "-c 'echo $JOB_ID'"
        Executable = /bin/sh
        Output = worker.out
        Log = worker.log
        Queue
    """)
    said = pool.run("condor_submit", str(description), cwd=here)
    cluster = said.rsplit("cluster ", 1)[1].strip().rstrip(".")
    pool.wait(str(here / "worker.log"))
    assert (here / "worker.out").read_text() == f"{cluster}.0\n"


def test_a_server_that_begins_in_its_users_folder_and_is_found_by_its_host(pool: PersonalPool) -> None:
    here, home = folder(pool, "server"), folder(pool, "home")
    cluster = pool.submit(f"""
Executable = /bin/sh
RequestMemory = 100
RequestCpus = 1
Arguments = "-c 'pwd > {here}/where; exec sleep 600'"
Remote_Initialdir = {home}
Output = {home}/.server.out
Error = {home}/.server.err
ShouldTransferFiles = False
GetEnv = True

Queue
""")
    question = ("condor_q", str(cluster), "-format", "%s, ", "JobStatus", "-format", "%s", "RemoteHost", "-format",
                "\n", "True")
    until(lambda: pool.run(*question).startswith("2, slot"), "it runs")
    until(lambda: (here / "where").exists() and (here / "where").read_text() == f"{home}\n", "it says where it began")
    pool.run("condor_rm", str(cluster))
    until(lambda: pool.run(*question).strip() == "", "it is gone")


def test_a_configuration_that_is_the_empty_device_counts_as_not_set(pool: PersonalPool) -> None:
    done = pool.tool("condor_config_val", "-config", environment={"CONDOR_CONFIG": "/dev/null"})
    assert "/dev/null" not in done.stderr


def test_a_task_of_nextflow() -> None:
    """It knows a task's job by the first word of -terse, and its state by the sixth column of condor_q -nobatch."""
    with user_pool() as pool:  # whose disk the machine shares, as Nextflow expects it
        follow_task(pool)


def follow_task(pool: UserPool) -> None:
    here = folder(pool, "task")
    run = here / ".command.run"
    run.write_text("#!/bin/bash\necho began\nwhile [ ! -e go ]; do sleep 0.2; done\necho ended > out.txt\n")
    run.chmod(0o755)
    (here / ".command.condor").write_text(
        "log = .command.log\nout = .command.out\nerror = .command.err\nstream_out = true\nstream_error = true\n"
        'executable = .command.run\ntransfer_executable = False\ntransfer_output_files=""\nuniverse = vanilla\n'
        "request_memory = 100 MB\nrequest_disk = 1 GB\n"
        "periodic_remove = (RemoteWallClockTime - CumulativeSuspensionTime) > 3600\nqueue\n\n")
    job = pool.run("condor_submit", "-terse", ".command.condor", cwd=here).replace("-", " ").split()[0]

    def states() -> dict[str, str]:
        lines = pool.run("condor_q", "-nobatch").splitlines()
        first = next(number for number, line in enumerate(lines) if line.startswith(" ID ")) + 1
        rows = [line.split() for line in lines[first : lines.index("", first)]]
        return {row[0]: row[5] for row in rows}

    until(lambda: states().get(job) == "R", "it runs")
    (here / "go").touch()
    until(lambda: job not in states(), "it has ended")
    assert (here / ".command.out").read_text() == "began\n"
    assert (here / "out.txt").read_text() == "ended\n"
    other = pool.run("condor_submit", "-terse", ".command.condor", "-append", "hold = true", cwd=here).split()[0]
    assert states()[other] == "H"
    pool.run("condor_rm", other)
    until(lambda: other not in states(), "it is removed")


def test_clusters_of_one_file_are_asked_for_together(pool: PersonalPool) -> None:
    """As b2luigi and law do: by JSON and by blocks of lines, of the queue and then of the history."""
    here = folder(pool, "group")
    blocks = []
    for name, status in (("good", 0), ("bad", 3)):
        program = here / f"{name}.sh"
        program.write_text(f"#!/bin/sh\nexit {status}\n")
        program.chmod(0o755)
        blocks.append(f"output = {here}/{name}.out\nlog = {here}/job.log\nexecutable = {program}\nqueue 1")
    (here / "job.submit").write_text("\n".join(blocks))
    said = pool.tool("condor_submit", "job.submit", cwd=here)
    assert said.stderr == ""
    clusters = re.findall(r"^1 job\(s\) submitted to cluster (\d+)\.$", said.stdout, re.MULTILINE)
    assert re.findall(r"\d+\.", said.stdout) == [f"{cluster}." for cluster in clusters]
    assert len(clusters) == 2
    pool.wait(str(here / "job.log"))
    until(lambda: pool.run("condor_q", "-json", "-attributes", "ClusterId", *clusters) == "", "both are gone")
    ads = json.loads(pool.run("condor_history", "-json", "-attributes", "ClusterId,JobStatus,ExitCode,UserLog",
                              "-match", "2", *clusters))
    assert sorted((str(ad["ClusterId"]), ad["JobStatus"], ad["ExitCode"], ad["UserLog"]) for ad in ads) == [
        (clusters[0], 4, 0, f"{here}/job.log"), (clusters[1], 4, 3, f"{here}/job.log")]
    lines = pool.run("condor_history", *(f"{cluster}.0" for cluster in clusters), "-af:lng", "ClusterId", "ProcId",
                     "JobStatus", "ExitCode", "HoldReason", "LastRemoteHost", "-limit", "2")
    found = [dict(re.findall(r'(\w+) = "?([^"\n]*)"?\n', block + "\n")) for block in lines.strip().split("\n\n")]
    assert sorted((each["ClusterId"], each["ProcId"], each["ExitCode"], each["HoldReason"]) for each in found) == [
        (clusters[0], "0", "0", "undefined"), (clusters[1], "0", "3", "undefined")]
    assert all(each["LastRemoteHost"].startswith("slot") for each in found)
