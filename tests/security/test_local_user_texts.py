"""A local user whose jobs say what is no text, or say it without end: in names, policies, reasons and addresses.

An ad has bytes, a message has text: what cannot be said in one must neither end a daemon, which would read the same
queue again and end again, nor keep others from what they ask.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until

PROGRAM = b'#!/bin/sh\necho x > a\xff\necho out\xff\n[ "$1" = stay ] && exec sleep 1000\n'
JOB = """executable = x.sh
arguments = \udcff
should_transfer_files = yes
log = {name}.log
"""
LONG = '+A1 = "' + "x" * 100_000 + '"\n'
MANY = "strcat(A1, A1, A1, A1, A1, A1)"
ENDS = {
    "names": "output = o\udcff\nerror = e\udcff\nbatch_name = b\udcff\nmanifest_dir = m\udcff\n",
    "variables": 'environment = "A\udcff=b\udcff"\n+JobPrio = "\udcff"\n+DAGNodeName = "\udcff"\nmax_retries = 1\n',
    "mail": "notification = always\nnotify_user = a\udcff@b\n",
    "output": 'transfer_output_files = a\udcff\ntransfer_output_remaps = "a\udcff=b\udcff"\n',
    "who": '+RemoteHost = "\udcff"\n+OsUser = "\udcff"\n+NTDomain = "\udcff"\n',
}
HELD = {
    "at once": 'periodic_hold = JobStatus == 1\nperiodic_hold_reason = "h\udcff"\nrequirements = false\n',
    "while it runs": 'periodic_hold = JobStatus == 2\nperiodic_hold_reason = "h\udcff"\narguments = stay\n',
    "at its end": 'on_exit_hold = true\non_exit_hold_reason = "h\udcff"\n',
    "at length": f"{LONG}periodic_hold = JobStatus == 1\nperiodic_hold_reason = {MANY}\nrequirements = false\n",
    "at length, while it runs": f"{LONG}arguments = stay\nperiodic_hold = JobStatus == 2\n"
                                f"periodic_hold_reason = {MANY}\n",
    "at length, at its end": f"{LONG}on_exit_hold = true\non_exit_hold_reason = {MANY}\n",
}


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=4, config="SMTP_SERVER = 127.0.0.1:9\nPERIODIC_EXPR_INTERVAL = 1\n")
        (made.work / "x.sh").write_bytes(PROGRAM)
        (made.work / "x.sh").chmod(0o755)
        yield made
        made.stop()


def submitted(pool: PersonalPool, lines: str, name: str) -> int:
    (pool.work / "job.sub").write_text(f"{JOB.format(name=name)}{lines}queue\n", errors="surrogateescape")
    return int(pool.run("condor_submit", "job.sub").rsplit("cluster ", 1)[1].strip().rstrip("."))


def test_jobs_that_say_what_is_no_text_end_like_others(pool: PersonalPool) -> None:
    for number, lines in enumerate(ENDS.values()):
        submitted(pool, lines, f"ends{number}")
    for number in range(len(ENDS)):
        pool.wait(f"ends{number}.log")
    fell(pool)


OTHER = "\udcff"
"""A byte that is no UTF-8, as Python has it in a name."""
EVERY_FILE = f"""executable = x{OTHER}.sh
initialdir = i{OTHER}
input = in{OTHER}
output = out{OTHER}
error = err{OTHER}
log = log{OTHER}
should_transfer_files = yes
transfer_input_files = a{OTHER},d{OTHER}
transfer_output_files = o{OTHER},r{OTHER},t{OTHER}
transfer_output_remaps = "r{OTHER}=n{OTHER}"
queue
"""
READS_AND_WRITES = b"""#!/bin/sh
cat - 'a\xff' 'd\xff/f\xff'
echo o > 'o\xff'
echo r > 'r\xff'
mkdir 't\xff'
echo t > 't\xff/t\xff'
ln -s 't\xff' 't\xff/l\xff'
"""


def test_a_file_is_opened_by_its_own_name_and_no_other(pool: PersonalPool) -> None:
    """Of every kind of file that a job names, at home and by way of the spool, with files beside them whose names have
    question marks there."""
    home = pool.work / f"i{OTHER}"
    (home / f"d{OTHER}").mkdir(parents=True)
    for folder in (home, home / f"d{OTHER}"):
        folder.chmod(0o777)
    (home / f"x{OTHER}.sh").write_bytes(READS_AND_WRITES)
    (home / f"x{OTHER}.sh").chmod(0o755)
    given = {f"in{OTHER}": "in\n", f"a{OTHER}": "a\n", f"d{OTHER}/f{OTHER}": "f\n"}
    traps = [f"{name}?" for name in ("in", "a", "d", "out", "err", "log", "o", "r", "t", "n")]
    for name, text in given.items() | {(name, "not this\n") for name in traps}:
        (home / name).write_text(text)
    (pool.work / "names.sub").write_text(EVERY_FILE, errors="surrogateescape")
    for spooled in ((), ("-spool",)):
        cluster = pool.run("condor_submit", *spooled, "names.sub").rsplit("cluster ", 1)[1].strip().rstrip(".")
        pool.until_status(f"{cluster}.0", 4 if spooled else 0)
        if spooled:
            pool.run("condor_transfer_data", cluster)
        assert (home / f"out{OTHER}").read_text() == "in\na\nf\n", spooled
        found = {name: (home / name).read_text() for name in (f"err{OTHER}", f"o{OTHER}", f"n{OTHER}",
                                                              f"t{OTHER}/t{OTHER}")}
        assert found == {f"err{OTHER}": "", f"o{OTHER}": "o\n", f"n{OTHER}": "r\n", f"t{OTHER}/t{OTHER}": "t\n"}
        if not spooled:
            assert (home / f"t{OTHER}" / f"l{OTHER}").readlink().name == f"t{OTHER}"
            assert "Job terminated" in (home / f"log{OTHER}").read_text()
        assert {(home / name).read_text() for name in traps} == {"not this\n"}
        for name in (f"out{OTHER}", f"err{OTHER}", f"o{OTHER}", f"n{OTHER}"):
            (home / name).unlink()
        shutil.rmtree(home / f"t{OTHER}")
    pool.run("condor_rm", "-all")
    fell(pool)


def test_a_command_looks_for_what_it_was_told_and_nothing_else(pool: PersonalPool) -> None:
    """A constraint with a byte that is no text would otherwise mean other jobs."""
    cluster = pool.submit("executable = /bin/true\nhold = true\n+Word = \"?\"\nqueue\n")
    for command in ("condor_rm", "condor_release", "condor_q", "condor_history"):
        done = pool.tool(command, "-constraint", f'Word == "{OTHER}"')
        assert done.returncode != 0, command
        assert "is not UTF-8, and only UTF-8 can be asked for" in done.stderr, done.stderr
    assert pool.status_of(f"{cluster}.0") == 5
    pool.run("condor_qedit", f"{cluster}.0", "Word", f'"{OTHER}"')
    pool.run("condor_rm", "-constraint", 'Word =!= "?" && size(Word) == 1')
    pool.until_status(f"{cluster}.0", 0)


def test_jobs_whose_reasons_no_message_takes_are_held(pool: PersonalPool) -> None:
    """And shown to everybody who asks for the queue."""
    clusters = {submitted(pool, lines, f"held{number}"): how for number, (how, lines) in enumerate(HELD.items())}
    for cluster, how in clusters.items():
        pool.until_status(f"{cluster}.0", 5)
        reason = next(ad["HoldReason"] for ad in pool.jobs() if ad["ClusterId"] == cluster)
        assert reason == "x" * 4096 if "length" in how else reason == "h?", how
    pool.submit("executable = /bin/true\nlog = other.log\nqueue\n")
    pool.wait("other.log")
    pool.run("condor_rm", "-all")
    until(lambda: not pool.jobs(), "the queue to be empty")
    fell(pool)


def test_jobs_of_large_ads_keep_nobody_from_the_queue_or_the_history(pool: PersonalPool) -> None:
    """The ads of two fit no message together; one that fits none is not taken, and cannot be edited into."""
    large = 'executable = /bin/true\nlog = large.log\n+A1 = "' + "x" * 280_000 + '"\nqueue 2\n'
    cluster = pool.submit(large.replace("queue", "hold = true\nqueue"))
    assert pool.run("condor_q", "-all", "-l").count('A1 = "xxxxxx') == 2
    edits = [pool.tool("condor_qedit", f"{cluster}.0", f"B{number}", '"' + "y" * 100_000 + '"') for number in range(2)]
    assert [done.returncode for done in edits] == [1, 1]
    pool.run("condor_qedit", f"{cluster}.0", "B0", '"y"')
    done = pool.tool("condor_submit", stdin=large.replace("queue 2", '+A2 = "' + "x" * 100_000 + '"\nqueue 1'))
    assert (done.returncode, "the ad of a job has at most 300 KiB" in done.stderr) == (1, True), done.stderr
    pool.run("condor_release", str(cluster))
    pool.wait("large.log")
    assert pool.run("condor_history", str(cluster), "-l").count('A1 = "xxxxxx') == 2
    fell(pool)


def test_limits_that_no_slots_ad_holds_are_no_match(pool: PersonalPool) -> None:
    """They were one again and again, and the slot was nobody else's meanwhile."""
    submitted(pool, f"{LONG}concurrency_limits_expr = {MANY}\n", "limits")
    log = pool.dir / "log" / "ScheddLog"
    until(lambda: "ConcurrencyLimits have 600,000 letters" in log.read_text(), "the reason")
    pool.submit("executable = /bin/true\nlog = beside.log\nqueue\n")
    pool.wait("beside.log")
    assert "was not granted" not in log.read_text()
    pool.run("condor_rm", "-all")


def fell(pool: PersonalPool) -> None:
    """No daemon fell over any of it."""
    logs = {path: path.read_text(errors="replace") for path in (pool.dir / "log").rglob("*") if path.is_file()}
    assert len(logs) > 5
    for path, text in logs.items():
        assert "Traceback" not in text, (path, text[text.index("Traceback") - 300:][:4000])
