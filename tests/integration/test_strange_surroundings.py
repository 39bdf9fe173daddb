"""Commands in surroundings that nobody means to give them: each does what it was asked, or says in a line why not."""

from __future__ import annotations

import array
import fcntl
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until

JOB = "executable = /bin/true\nrequirements = false\nqueue\n"
CLOSED, FULL = "standard output: Bad file descriptor", "standard output: No space left on device"
TALKERS = ("condor_submit job.sub", "condor_q", "condor_q -long", "condor_q -json", "condor_q -af ClusterId",
           "condor_history", "condor_status", "condor_status -long", "condor_userprio", "condor_config_val SPOOL",
           "condor_config_val -dump", "condor_version", "condor_ping READ", "condor_config check",
           "condor_q -help", "htcondor --help", "condor_qedit 1 Marked 1", "condor_transform_ads -help")
"""Each of them writes to its standard output."""


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=1, config="STARTER_LOG_LEVEL = 0\n")
        try:
            (made.work / "job.sub").write_text(JOB)
            made.submit(JOB)
            yield made
        finally:
            made.stop()


def shell(pool: PersonalPool, line: str, **variables: str | None) -> subprocess.CompletedProcess[str]:
    """What a shell makes of a line; a variable that is None is not there."""
    given = {name: value for name, value in {**pool.environment, **variables}.items() if value is not None}
    return subprocess.run(["bash", "-c", line], cwd=pool.work, env=given, capture_output=True, text=True,
                          errors="replace", timeout=120, check=False)


def no_trace(done: subprocess.CompletedProcess[str]) -> None:
    for word in ("Traceback", "Exception ignored", "Fatal Python"):
        assert word not in done.stdout + done.stderr, done.stderr


@pytest.mark.parametrize("command", TALKERS)
def test_what_cannot_be_written_is_no_success(pool: PersonalPool, command: str) -> None:
    for where, said in ((">&-", CLOSED), ("> /dev/full", FULL)):
        done = shell(pool, f"{command} {where}")
        no_trace(done)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.strip().endswith(said), done.stderr
        assert done.stderr.count("standard output") == 1


@pytest.mark.parametrize("command", ["condor_submit job.sub", "condor_q", "condor_rm 999", "condor_version"])
def test_files_of_its_own_do_not_take_the_place_of_closed_ones(pool: PersonalPool, command: str) -> None:
    ordinary = shell(pool, command)
    for where in ("<&-", "2>&-", "<&- 2>&-"):
        done = shell(pool, f"{command} {where}")
        no_trace(done)
        assert done.returncode == ordinary.returncode
        assert bool(done.stdout) == bool(ordinary.stdout), "what is wrong does not come out as an answer"
    assert shell(pool, f"{command} <&- >&- 2>&-").returncode == 1


@pytest.mark.parametrize(("content", "said"), [
    (b"\x7fELF\x02\x01\x01\0\0" + bytes(range(256)) * 40, "it is no text"),
    (b"executable = /bin/true\narguments = a\0b\nqueue\n", "NUL byte (line 2)"),
    (b"executable = /bin/true\narguments = " + b"x" * 100_000_000 + b"\nqueue\n", "100,000,012 letters"),
    ("executable = /bin/true\nqueue\n".encode("utf-16"), "it is UTF-16"),
    (b"", "no jobs queued"),
    (b"executable = /bin/true\nqueue x from .\n", "can't open '.': Is a directory"),
    (b"executable = /bin/true\nqueue x from nowhere\n", "can't open 'nowhere': No such file"),
])
def test_what_is_no_submit_file_is_refused(pool: PersonalPool, content: bytes, said: str) -> None:
    (pool.work / "odd.sub").write_bytes(content)
    done = shell(pool, "condor_submit odd.sub")
    no_trace(done)
    assert done.returncode == 1
    assert said in done.stderr
    assert len(done.stderr) < 500
    (pool.work / "odd.sub").unlink()


@pytest.mark.parametrize("content", [
    JOB.replace("\n", "\r\n").encode(), b"\xef\xbb\xbf" + JOB.encode(), JOB.rstrip().encode()])
def test_what_is_an_odd_submit_file_is_taken(pool: PersonalPool, content: bytes) -> None:
    (pool.work / "odd.sub").write_bytes(content)
    done = shell(pool, "condor_submit odd.sub")
    no_trace(done)
    assert "1 job(s) submitted to cluster" in done.stdout, done.stderr


def test_items_come_from_a_fifo(pool: PersonalPool) -> None:
    (pool.work / "fifo.sub").write_text(JOB.replace("queue", "arguments = $(x)\nqueue x from fifo"))
    done = shell(pool, "mkfifo fifo; (timeout 60 sh -c 'seq 2 > fifo' > /dev/null 2>&1 &); condor_submit fifo.sub")
    no_trace(done)
    assert "2 job(s) submitted to cluster" in done.stdout, done.stderr


@pytest.mark.parametrize(("line", "said"), [
    ("condor_submit .", "(Is a directory)"), ("condor_submit < .", "condor_submit: the standard input is a directory"),
    ("condor_q < .", "condor_q: the standard input is a directory"), ("condor_submit nowhere", "No such file"),
    ("condor_submit /dev/zero", "it is no text"), ("condor_submit < /dev/null", "no jobs queued"),
    ("condor_rm $'1\\n2'", "unrecognized"), ("condor_history -limit $'1\\n'", "-limit"),
    ("condor_q -constraint $'a ==\\n'", "constraint"),
    ("mkdir gone; cd gone; rmdir ../gone; condor_submit ../job.sub",
     "the working directory has been removed, or cannot be entered"),
])
def test_words_and_files_that_are_none(pool: PersonalPool, line: str, said: str) -> None:
    done = shell(pool, line)
    no_trace(done)
    assert done.returncode != 0
    assert said in done.stderr


@pytest.mark.parametrize("variables", [
    {"LC_ALL": "C"}, {"LC_ALL": "POSIX", "LANG": "nonsense"}, {"HOME": None}, {"HOME": "/nonexistent"},
    {"HOME": "/dev/null"}, {"HOME": ""}, {"TERM": "nonsense", "COLUMNS": "many"}, {"TZ": "Nowhere/None"},
    {"PYTHONPATH": "/nonexistent", "PYTHONHOME": "/nonexistent"}, {"TMPDIR": "/nonexistent"}])
@pytest.mark.parametrize("command", ["condor_submit job.sub", "condor_q", "condor_status", "condor_history"])
def test_the_environment_changes_nothing(pool: PersonalPool, command: str, variables: dict[str, str | None]) -> None:
    done = shell(pool, f"setsid -w {command} < /dev/null", **variables)
    no_trace(done)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("limit", ["-f 0", "-c 0", "-n 12", "-n 24", "-v 200000", "-s 64"])
@pytest.mark.parametrize("command", ["condor_submit job.sub", "condor_q", "condor_status"])
def test_little_is_enough(pool: PersonalPool, command: str, limit: str) -> None:
    done = shell(pool, f"ulimit {limit}; {command}")
    no_trace(done)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("limit", ["-v 15000", "-v 20000", "-v 25000", "-v 30000", "-v 40000"])
@pytest.mark.parametrize("command", ["condor_submit job.sub", "condor_q", "condor_who", "condor_submit_dag -f a.dag"])
def test_too_little_memory_is_said_in_a_line(pool: PersonalPool, command: str, limit: str) -> None:
    (pool.work / "a.dag").write_text("JOB A job.sub\n")
    done = shell(pool, f"ulimit {limit}; {command} -no_submit" if "dag" in command else f"ulimit {limit}; {command}")
    no_trace(done)
    if done.returncode != 0:
        (line,) = done.stderr.splitlines()
        assert "'ulimit -v'" in line


@pytest.mark.parametrize("variables", [
    {"FOO": "\udcff\udcfe"}, {"_CONDOR_FOO": "\udcff"}, {"USER": "\udcff", "LOGNAME": "\udcff"}, {"TMPDIR": "/\udcff"},
    {"TZ": "\udcff"}, {"HOME": "/tmp/\udcff"}, {"LC_ALL": "ja_JP.SJIS"}, {"PYTHONIOENCODING": "utf-16"}])
@pytest.mark.parametrize("command", [
    "condor_submit job.sub", "condor_q", "condor_status", "condor_history", "condor_config_val SPOOL",
    "condor_userprio"])
def test_variables_that_are_no_text_change_nothing(pool: PersonalPool, command: str, variables: dict[str, str]) -> None:
    name, _, rest = command.partition(" ")
    done = shell(pool, f"umask 777; {pool.command(name)[0]} {rest}", **variables)
    no_trace(done)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_command_that_reads(pool: PersonalPool, number: signal.Signals) -> None:
    """What has been read of a submit file that is still written is not queued."""
    before = len(pool.jobs())
    read, write = os.pipe()
    with subprocess.Popen(pool.command("condor_submit"), cwd=pool.work, env=pool.environment, stdin=read,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as reading:
        os.write(write, JOB.encode())
        until(lambda: unread(read) == 0, "the command to have read what there is")
        reading.send_signal(number)
        _, said = reading.communicate(timeout=60)
    os.close(read)
    os.close(write)
    assert (reading.returncode, said) == ((1, "\nERROR: interrupted\n") if number == signal.SIGINT else (-number, ""))
    assert len(pool.jobs()) == before


def unread(pipe: int) -> int:
    """How many bytes wait in a pipe."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def test_an_interrupt_before_it_has_begun(pool: PersonalPool) -> None:
    program = ("import signal, sys; from condor_actors.tools import start; "
               "import builtins; real = builtins.__import__\n"
               "def interrupted(name, *rest):\n"
               "    if name == 'condor_actors.tools.jobs.q': raise KeyboardInterrupt\n"
               "    return real(name, *rest)\n"
               "builtins.__import__ = interrupted\n"
               "sys.exit(start.command('condor_actors.tools.jobs.q', 'main'))")
    done = subprocess.run([sys.executable, "-c", program], env=pool.environment, capture_output=True, text=True,
                          timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
