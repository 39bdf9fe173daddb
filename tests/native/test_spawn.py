"""A start: what the new process has, what it does not, and what it is in a pid namespace of its own."""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from condor_actors.machine.native.programs import launcher_path
from condor_actors.machine.native.spawn import spawn
from condor_actors.machine.run.process_tree import children_of
from tests.pool_fixture import until

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def output_of(*words: str, variables: dict[str, str] | None = None, kept: tuple[int, ...] = ()) -> tuple[str, int]:
    """What a program writes, and its wait status."""
    reader, writer = os.pipe()
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        pid = spawn(words, variables or {}, (null, writer, writer), kept)
    finally:
        os.close(writer)
        os.close(null)
    with os.fdopen(reader) as said:
        text = said.read()
    return text, os.waitpid(pid, 0)[1]


def test_it_has_its_words_variables_and_descriptors_and_no_others() -> None:
    reader, writer = os.pipe()
    code = ("import json, os, sys; "
            "print(json.dumps([sys.argv[1:], dict(os.environ), sorted(map(int, os.listdir('/proc/self/fd')))]))")
    try:
        text, status = output_of(sys.executable, "-I", "-c", code, "a", "", "b c",
                                 variables={"X": "", "Y": "1=2", "LC_ALL": "C.UTF-8"}, kept=(writer,))
        words, variables, descriptors = json.loads(text)
        assert (words, variables, status) == (["a", "", "b c"], {"X": "", "Y": "1=2", "LC_ALL": "C.UTF-8"}, 0)
        assert {0, 1, 2, writer} <= set(descriptors)
        assert reader not in descriptors
        assert not os.get_inheritable(writer), "it is handed on to that process alone"
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize(("words", "variables"), [
    (("/bin/true\0--uid", "0"), {}), (("/bin/true", "x\0y"), {}), (("/bin/true",), {"A": "b\0C=d"}),
])
def test_a_text_with_an_end_in_it_starts_nothing(words: tuple[str, ...], variables: dict[str, str]) -> None:
    """A job's variable could otherwise become a word of the launcher's."""
    with pytest.raises(OSError, match="Invalid argument") as raised:
        spawn(words, variables, (0, 1, 2))
    assert raised.value.errno == errno.EINVAL


def test_a_program_that_is_none_is_told_and_leaves_no_child() -> None:
    before = children_of(os.getpid())
    with pytest.raises(FileNotFoundError):
        spawn(["/nonexistent/program"], {}, (0, 1, 2))
    with pytest.raises(OSError, match="Bad file descriptor"):
        spawn(["/bin/true"], {}, (0, 1, 2), (9999,))
    assert children_of(os.getpid()) == before


def test_a_crowd_of_threads_starts_and_each_gets_its_own() -> None:
    code = ("import os, threading\n"
            "from condor_actors.machine.native.spawn import spawn\n"
            "def work(name):\n"
            "    for turn in range(50):\n"
            "        r, w = os.pipe()\n"
            "        pid = spawn(['/bin/echo', f'{name}-{turn}'], {}, (0, w, 2))\n"
            "        os.close(w)\n"
            "        assert os.read(r, 100) == f'{name}-{turn}\\n'.encode()\n"
            "        assert os.waitpid(pid, 0)[1] == 0\n"
            "        os.close(r)\n"
            "threads = [threading.Thread(target=work, args=(each,)) for each in range(8)]\n"
            "[each.start() for each in threads]\n"
            "[each.join() for each in threads]\n"
            "print(len(os.listdir('/proc/self/fd')))\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout) == ("", "4\n")


# ---- the launcher as the first process of a namespace


class Job:
    """A job that the launcher began so, with the pipes that the starter host has."""

    def __init__(self, *options: str, script: str) -> None:
        self.status, status = os.pipe2(os.O_CLOEXEC)
        self.end, end = os.pipe2(os.O_CLOEXEC)
        self.output, output = os.pipe2(os.O_CLOEXEC)
        words = [launcher_path(), "--status-fd", str(status), "--end-fd", str(end), "--first", "--isolate", "mount,pid",
                 *options, "--", "/bin/sh", "-c", script]
        try:
            self.pid = spawn(words, {"PATH": "/usr/bin:/bin"}, (output, output, output), (status, end), own_pids=True)
        finally:
            for each in (status, end, output):
                os.close(each)

    def said(self) -> str:
        """Its next words."""
        assert select.select([self.output], [], [], 60.0)[0]
        return os.read(self.output, 4096).decode()

    def ended(self) -> tuple[int, int]:
        """The wait status of the job as it was told, and of the first process."""
        told = os.read(self.end, 4)
        first = os.waitpid(self.pid, 0)[1]
        for each in (self.status, self.end, self.output):
            os.close(each)
        return int.from_bytes(told, sys.byteorder) if told else -1, first


@root_only
@pytest.mark.parametrize(("script", "told"), [("exit 3", 3 << 8), ("kill -SEGV $$", signal.SIGSEGV), ("true", 0)])
def test_how_the_job_ended_is_told(script: str, told: int) -> None:
    job = Job(script=f"ulimit -c 0; {script}")
    assert os.read(job.status, 100) == b""
    assert job.ended() == (told, 0)


@root_only
def test_it_sees_its_own_processes_and_none_outlives_it() -> None:
    job = Job(script="set -- /proc/[0-9]*; echo $#; (sleep 1000 &); exit 0")
    assert job.said() == "2\n", "the first and itself"
    assert os.read(job.output, 1) == b"", "nobody has its output open any more"
    assert job.ended() == (0, 0)


@root_only
@pytest.mark.parametrize("when", ["at once", "later"])
def test_a_signal_reaches_the_job_and_none_is_lost_before_it_begins(when: str) -> None:
    """The first process of a namespace gets no signal by default: those that come early wait until it takes them."""
    for _ in range(20):
        job = Job(script="trap 'echo caught; exit 7' TERM; echo up; while :; do sleep 0.01; done")
        if when == "later":
            assert job.said() == "up\n"
        os.kill(job.pid, signal.SIGTERM)
        told, first = job.ended()
        assert first == 0
        assert told in ((7 << 8,) if when == "later" else (7 << 8, signal.SIGTERM))


@root_only
def test_a_kill_of_the_first_ends_all() -> None:
    job = Job(script="sleep 1000 & echo $$; wait")
    job.said()
    os.kill(job.pid, signal.SIGKILL)
    assert os.read(job.output, 10) == b"", "no process of it has its output open"
    assert job.ended() == (-1, signal.SIGKILL)


@root_only
def test_it_dies_with_its_starter() -> None:
    code = ("import os, signal, sys\n"
            "sys.path.insert(0, '.')\n"
            "from tests.native.test_spawn import Job\n"
            "job = Job('--death-signal', '9', script='echo up; exec sleep 1000')\n"
            "assert job.said() == 'up\\n'\n"
            "print(job.pid, flush=True)\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done
    until(lambda: _is_dead(int(done.stdout)), "the job ends with its starter")


def _is_dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@root_only
def test_first_is_for_the_first_with_a_parent_to_tell() -> None:
    done = subprocess.run([launcher_path(), "--first", "--isolate", "mount,pid", "--", "/bin/true"],
                          capture_output=True, text=True, check=False)
    assert "--first needs" in done.stderr
    reader, writer = os.pipe()
    done = subprocess.run([launcher_path(), "--first", "--status-fd", str(writer), "--isolate", "mount,pid", "--",
                           "/bin/true"], pass_fds=(writer,), capture_output=True, text=True, check=False)
    os.close(writer)
    assert os.read(reader, 200).startswith(b"pid-namespace 22 --first is not the first")
    os.close(reader)
