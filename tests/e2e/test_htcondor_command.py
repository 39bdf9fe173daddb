"""The command htcondor, a noun and a verb, against a pool."""

from __future__ import annotations

from tests.pool_fixture import PersonalPool, until

HELLO = """executable = /bin/echo
arguments = Hello, World!
transfer_executable = false
log = helloworld.log
output = helloworld.out
queue
"""


def test_a_job_from_submit_to_end(pool: PersonalPool) -> None:
    (pool.work / "helloworld.sub").write_text(HELLO)
    done = pool.tool("htcondor", "job", "submit", "helloworld.sub")
    assert (done.returncode, done.stdout) == (0, "")
    words = done.stderr.split()
    assert (words[0], words[2:]) == ("Job", ["was", "submitted."])
    cluster = words[1]
    pool.run("condor_wait", "helloworld.log")
    until(lambda: pool.tool("htcondor", "job", "status", cluster).stderr.count("has completed"), "the job's end")
    told = pool.tool("htcondor", "job", "status", cluster).stderr
    assert f"Job {cluster} has completed." in told
    assert pool.tool("htcondor", "job", "out", cluster).stdout == "Hello, World!\n"
    assert pool.tool("htcondor", "job", "log", cluster).stdout.startswith(f"000 ({int(cluster):03}.000.000)")
    assert pool.tool("htcondor", "job", "status", "--skip-history", cluster).returncode == 1
    lines = pool.tool("htcondor", "eventlog", "read", "helloworld.log").stdout.splitlines()
    assert lines[0].startswith("Job ")
    assert lines[1].startswith(f"{cluster}.0 ")
    assert pool.tool("htcondor", "job", "resources", cluster).stderr.endswith("has ended.\n")


def test_sentences_can_be_silenced_and_nothing_is_taken_silently(pool: PersonalPool) -> None:
    done = pool.tool("htcondor", "-q", "server", "status")
    assert (done.returncode, done.stderr) == (0, "")
    assert pool.tool("htcondor", "-q", "ep", "status", "nowhere").stderr
    assert "-v has no effect" in pool.tool("htcondor", "-v", "server", "status").stderr


def test_a_job_that_waits_and_several_at_once(pool: PersonalPool) -> None:
    cluster = pool.submit("executable = /bin/true\nrequirements = false\nqueue\n")
    told = pool.tool("htcondor", "job", "status", f"{cluster}.0").stderr.splitlines()
    assert told[0] == f"Job {cluster}.0 is currently idle."
    pool.run("condor_hold", str(cluster))
    assert "is currently held." in pool.tool("htcondor", "job", "status", str(cluster)).stderr
    pool.run("condor_rm", str(cluster))
    (pool.work / "two.sub").write_text("executable = /bin/true\nqueue 2\n")
    done = pool.tool("htcondor", "job", "submit", "two.sub")
    assert done.returncode == 1
    assert "Can only submit one job at a time" in done.stderr


def test_machines(pool: PersonalPool) -> None:
    server = pool.tool("htcondor", "server", "status")
    assert server.returncode == 0
    assert server.stderr.rstrip().endswith("Overall HTCondor Health: Good")
    assert "SCHEDD" in server.stderr
    for noun in ("ap", "cm"):
        done = pool.tool("htcondor", noun, "status")
        assert (done.returncode, done.stderr.split()[-1]) == (0, "Good"), done.stderr
    machine = pool.run("condor_status", "-af", "Machine").split()[0]
    slots = pool.tool("htcondor", "ep", "status", machine).stderr
    assert f"Total slots: {len(pool.run('condor_status', '-af', 'Name').split())}" in slots
    assert pool.tool("htcondor", "ep", "status", "nowhere").returncode == 1
    assert pool.tool("htcondor", "ap", "claims").returncode == 0
    ours = pool.tool("htcondor", "owner", "status")
    assert (ours.returncode, ours.stdout.split()[0]) == (0, pool.run("condor_owner", "status").split()[0])


def test_a_dag_is_submitted_and_no_other_job_is_one(pool: PersonalPool) -> None:
    (pool.work / "node.sub").write_text("executable = /bin/true\nrequirements = false\nqueue\n")
    (pool.work / "small.dag").write_text("JOB A node.sub\n")
    done = pool.tool("htcondor", "dag", "submit", "small.dag")
    assert done.returncode == 0, done.stderr
    word = done.stderr.split()[-3]
    assert f"DAG {word} [small.dag] " in pool.tool("htcondor", "dag", "status", word).stderr
    pool.run("condor_rm", word)
    assert pool.tool("htcondor", "dag", "status", "999999").returncode == 1
    cluster = pool.submit("executable = /bin/true\nrequirements = false\nqueue\n")
    assert f"Job {cluster} is not a DAG" in pool.tool("htcondor", "dag", "status", str(cluster)).stderr
    pool.run("condor_rm", str(cluster))


JOB_SET = """name = Models
iterator = table who, what {
    ada,1
    bob,2
}
job {
    executable = /bin/echo
    transfer_executable = false
    arguments = $(who) $(what)
    output = first.$(who)
}
job n=what {
    executable = /bin/echo
    transfer_executable = false
    arguments = $(n)
    output = second.$(n)
    requirements = false
}
"""


def test_a_job_set_from_submit_to_remove(pool: PersonalPool) -> None:
    assert "No active job sets found." in pool.tool("htcondor", "jobset", "list").stderr
    (pool.work / "my.set").write_text(JOB_SET)
    done = pool.tool("htcondor", "jobset", "submit", "my.set")
    assert done.stderr == "Submitted job set Models containing 2 job clusters.\n"
    assert pool.tool("htcondor", "jobset", "list").stdout == "JOB_SET_NAME\nModels\n"
    assert pool.tool("htcondor", "jobset", "list", "--allusers").stdout.splitlines()[1].split()[1] == "Models"
    heads, row = pool.run("condor_q", "-jobset").split("\n")[-3:-1]
    assert heads.split() == ["JOBSETID", "NAME", "OWNER", "COMPLETE", "REMOVED", "IDLE", "RUNNING", "HELD"]
    assert row.split()[1] == "Models"
    until(lambda: "2 jobs completed" in pool.tool("htcondor", "jobset", "status", "models").stderr, "two jobs' end")
    told = pool.tool("htcondor", "jobset", "status", "Models").stderr.splitlines()
    assert told[-4] == "Models currently has 2 jobs idle, 0 jobs running, and 2 jobs completed."
    assert told[-3] == "Models contains:"
    assert all("with 2 total jobs" in line for line in told[-2:])
    assert (pool.work / "first.bob").read_text() == "bob 2\n"
    (pool.work / "my.set").write_text(JOB_SET.replace("    requirements = false", "universe = java"))
    wrong = pool.tool("htcondor", "jobset", "submit", "my.set")
    assert (wrong.returncode, "my.set, line 17" in wrong.stderr or wrong.stderr) == (1, True)
    assert pool.tool("htcondor", "jobset", "remove", "Models").stderr == (
        "Removed 2 jobs matching job set Models for user " + pool.run("id", "-un").strip() + ".\n")
    gone = pool.tool("htcondor", "jobset", "status", "Models")
    assert (gone.returncode, "No active job sets found matching" in gone.stderr) == (1, True)
