"""The launcher prepares a job's process exactly as told, or says in one line why it could not."""

from __future__ import annotations

import errno
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from condor_actors.machine.native.programs import launcher_path
from condor_actors.machine.run.process_tree import children_of, is_alive
from tests.harness.proc_files import proc_file
from tests.pool_fixture import until

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
DEADLINE_S = 60


def launch(
    *words: str, keep: tuple[int, ...] = (), env: dict[str, str] | None = None,
    before: Callable[[], None] | None = None,
) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run the launcher with WORDS; return the finished process and what it said on the status descriptor."""
    reader, writer = os.pipe()
    with os.fdopen(reader) as said:
        try:
            done = subprocess.run(
                [launcher_path(), "--status-fd", str(writer), *words],
                pass_fds=(writer, *keep),
                capture_output=True,
                text=True,
                timeout=DEADLINE_S,
                env=env,
                check=False,
                preexec_fn=before,
            )
        finally:
            os.close(writer)
        return done, said.read()


def report(*words: str, code: str) -> object:
    """Run Python CODE under the launcher with WORDS; CODE prints one JSON value."""
    done, said = launch(*words, "--", sys.executable, "-c", "import json, os, signal, resource\n" + code)
    assert (said, done.stderr, done.returncode) == ("", "", 0)
    return json.loads(done.stdout)


@pytest.mark.parametrize("isolate", ["mount", "user,mount"])
def test_a_device_that_is_shut_is_seen_and_cannot_be_opened(isolate: str) -> None:
    if os.geteuid() != 0 and not isolate.startswith("user"):
        pytest.skip("needs root")
    code = """
def opened(path):
    try:
        return os.close(os.open(path, os.O_RDONLY)) is None
    except OSError as error:
        return error.errno
print(json.dumps([opened(path) for path in ("/dev/zero", "/dev/full", "/dev/null")]))"""
    words = ("--isolate", isolate, "--shut-device", "/dev/zero", "--shut-device", "/dev/no-such-device")
    assert report(*words, code=code) == [errno.EACCES, True, True]
    assert launch("--shut-device", "/dev/zero", "--", "/bin/true")[1].startswith("options ")
    assert launch("--isolate", isolate, "--shut-device", "/dev/../etc", "--", "/bin/true")[1].startswith("options ")


def test_program_gets_arguments_environment_and_status() -> None:
    done, said = launch("--", "/bin/sh", "-c", 'echo "$0 $1 $KEY"; exit 42', "a", "b c", env={"KEY": "value"})
    assert (done.stdout, done.returncode, said) == ("a b c value\n", 42, "")


def test_the_programs_variables_are_the_programs() -> None:
    veiled = {"_CONDOR_JOB_ENV_KEY": "value", "_CONDOR_JOB_ENV__CONDOR_JOB_ENV_X": "", "OTHER": "b"}
    done, said = launch("--", "/usr/bin/env", env=veiled)
    assert (sorted(done.stdout.split()), said) == (["KEY=value", "OTHER=b", "_CONDOR_JOB_ENV_X="], "")


def test_death_by_signal_is_the_parents_to_see() -> None:
    done, said = launch("--", "/bin/sh", "-c", "kill -SEGV $$")
    assert (done.returncode, said) == (-signal.SIGSEGV, "")


@pytest.mark.parametrize(
    ("words", "stage"),
    [
        (["--chdir", "/no/such/place"], "chdir 2 /no/such/place"),
        (["--cgroup", "/no/such/group"], "cgroup 2 /no/such/group/cgroup.procs"),
        (["--uid", "1"], "options 22 --uid needs --gid"),
        (["--uid", "minus"], "options 22 --uid"),
        (["--rlimit", "cores=1"], "options 22 cores"),
        (["--rlimit", "core=ten"], "options 22 --rlimit"),
        (["--isolate", "net,moon"], "options 22 moon"),
        (["--bind", "/tmp", "/var/tmp"], "options 22 --bind and --tmpfs need"),
        (["--tmpfs", "/dev/shm"], "options 22 --bind and --tmpfs need"),
        (["--join", "/no/such/namespace"], "join 2 /no/such/namespace"),
        (["--keep-fd", "999"], "descriptors 9 --keep-fd"),
        (["--frobnicate"], "options 22 --frobnicate"),
    ],
)
def test_a_failing_step_says_stage_errno_and_detail(words: list[str], stage: str) -> None:
    done, said = launch(*words, "--", "/bin/true")
    assert done.returncode == 127
    assert said.startswith(stage)
    assert said.endswith("\n")
    assert said.count("\n") == 1


def test_missing_program_and_missing_words() -> None:
    done, said = launch("--", "/no/program")
    assert (done.returncode, said) == (127, "exec 2 /no/program\n")
    done, said = launch("--umask")
    assert (done.returncode, said) == (127, "options 22 --umask\n")
    done, said = launch()
    assert said.startswith("options 22 no program")


def test_descriptors_are_closed_but_those_kept(tmp_path: Path) -> None:
    with open(tmp_path / "secret", "w") as secret, open(tmp_path / "kept", "w") as kept:
        kept_fd = kept.fileno()
        os.set_inheritable(secret.fileno(), True)
        done, said = launch(
            "--keep-fd",
            str(kept.fileno()),
            "--",
            "/bin/ls",
            "-1",
            "/proc/self/fd",
            keep=(secret.fileno(), kept.fileno()),
        )
    assert said == ""
    listed = [int(word) for word in done.stdout.split()]
    assert len(listed) == 5  # 0, 1, 2, the kept one, and the directory that ls reads
    assert kept_fd in listed


def test_limits_umask_nice_directory_session(tmp_path: Path) -> None:
    found = report(
        "--rlimit", "nofile=64:128", "--rlimit", "core=0", "--umask", "027", "--nice", "3",
        "--chdir", str(tmp_path), "--new-session",
        code="print(json.dumps([resource.getrlimit(resource.RLIMIT_NOFILE),"
        "resource.getrlimit(resource.RLIMIT_CORE), os.umask(0), os.nice(0), os.getcwd(),"
        "os.getsid(0) == os.getpid()]))",
    )  # fmt: skip
    assert found == [[64, 128], [0, 0], 0o27, os.nice(0) + 3, str(tmp_path), True]


def test_signals_start_at_their_defaults() -> None:
    words = [launcher_path(), "--", "/bin/grep", "-E", "SigBlk|SigIgn|NoNew", "/proc/self/status"]
    code = (
        "import signal, subprocess, sys\n"
        "for number in (signal.SIGINT, signal.SIGPIPE): signal.signal(number, signal.SIG_IGN)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
        f"subprocess.run({words!r}, restore_signals=False)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, timeout=DEADLINE_S, check=True
    )
    values = {line.split()[0]: int(line.split()[1], 16) for line in done.stdout.splitlines()}
    assert values == {"NoNewPrivs:": 1, "SigBlk:": 0, "SigIgn:": 0}


@root_only
def test_identity_is_dropped_for_good() -> None:
    words = ["--uid", "65534", "--gid", "65533", "--groups", "65532,65531", "--chdir", "/"]
    done, said = launch(*words, "--", "/bin/grep", "-E", "^(Uid|Gid|Groups|Cap(Prm|Eff)):", "/proc/self/status")
    assert said == ""
    found = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    assert found == {
        "Uid:": ["65534"] * 4,
        "Gid:": ["65533"] * 4,
        "Groups:": ["65531", "65532"],
        "CapPrm:": ["0" * 16],
        "CapEff:": ["0" * 16],
    }


def namespaces() -> list[str]:
    """Isolation an ordinary user may ask for needs a user namespace; root needs none."""
    return ["--isolate", "pid,mount,net,ipc" if os.geteuid() == 0 else "user,pid,mount,net,ipc"]


def can_isolate() -> bool:
    done, said = launch(*namespaces(), "--", "/bin/true")
    return said == "" and done.returncode == 0


isolating = pytest.mark.skipif("not can_isolate()", reason="this kernel allows no namespaces here")


@isolating
def test_isolated_job_sees_itself_and_loopback_only() -> None:
    found = report(
        *namespaces(),
        code="import socket; print(json.dumps([os.getpid(), sorted(int(p) for p in os.listdir('/proc')"
        " if p.isdigit()), [name for _, name in socket.if_nameindex()]]))",
    )
    assert isinstance(found, list)
    assert found[0] == 2
    assert found[1] == [1, 2]
    assert set(found[2]) - {"sit0", "tunl0", "gre0", "gretap0", "erspan0", "ip6tnl0", "ip_vti0"} == {"lo"}


@isolating
@pytest.mark.parametrize(("script", "status"), [("exit 7", 7), ("kill -KILL $$", -9), ("kill -TERM $$", -15)])
def test_isolated_jobs_end_is_relayed(script: str, status: int) -> None:
    done, said = launch(*namespaces(), "--", "/bin/sh", "-c", script)
    assert (done.returncode, said) == (status, "")


@isolating
def test_who_stands_before_a_job_is_not_the_jobs_to_trace() -> None:
    """It has the job's account, and no filter."""
    code = ("import ctypes\nfound = [ctypes.CDLL(None).ptrace(0x4206, 1, None, None)]\n"
            "for name in ('mem', 'environ', 'maps'):\n"
            "    try: open('/proc/1/' + name).read(1) if name != 'mem' else open('/proc/1/mem', 'r+b')\n"
            "    except OSError as error: found.append(error.errno)\n"
            "print(json.dumps([os.getpid() > 1, *found]))")
    assert report(*namespaces(), "--filter", "job-traceable", code=code) == [True, -1] + [errno.EACCES] * 3


@isolating
def test_isolated_job_gets_signals_and_dies_with_its_relay() -> None:
    words = [
        launcher_path(),
        *namespaces(),
        "--",
        "/bin/sh",
        "-c",
        "trap 'echo got; exit 5' TERM; sleep 1000 & echo up; wait",
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout
        assert job.stdout.readline() == "up\n"
        job.send_signal(signal.SIGTERM)  # the shell's "wait" ends with it, and with nothing else
        assert job.stdout.readline() == "got\n"
        assert job.wait(DEADLINE_S) == 5
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout
        assert job.stdout.readline() == "up\n"
        job.kill()
        assert job.stdout.read() == ""  # end of file: nobody of the namespace holds the pipe


def test_death_signal_ends_the_job_with_its_parent() -> None:
    reader, writer = os.pipe()
    code = (
        "import os, subprocess, sys\n"
        f"p = subprocess.Popen([{launcher_path()!r}, '--death-signal', '9', '--', '/bin/sh', '-c',"
        " 'echo up; exec sleep 1000'], stdout=subprocess.PIPE, pass_fds=())\n"
        "p.stdout.readline(); print(p.pid, flush=True); sys.stdin.read()"
    )
    with os.fdopen(reader):
        with subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as parent:
            assert parent.stdout
            job = int(parent.stdout.readline())
            watch = os.pidfd_open(job)
            parent.kill()
        os.close(writer)
        assert select.select([watch], [], [], DEADLINE_S)[0]
        os.close(watch)


@root_only
def test_root_directory_confines(tmp_path: Path) -> None:
    program = tmp_path / "launcher"
    program.write_bytes(Path(launcher_path()).read_bytes())
    program.chmod(0o755)
    done, said = launch("--root", str(tmp_path), "--", "/launcher", "--", "/bin/true")
    assert (done.returncode, said) == (127, "")
    assert done.stderr == "exec 2 /bin/true\n"


@root_only
def test_nothing_outside_is_reached_from_where_the_job_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("root", "outside"):
        (tmp_path / name).mkdir()
    program = tmp_path / "root" / "launcher"
    program.write_bytes(Path(launcher_path()).read_bytes())
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    done, _ = launch("--root", str(tmp_path / "root"), "--", "/launcher", "--chdir", "outside", "--", "/launcher")
    assert (done.returncode, done.stderr) == (127, "chdir 2 outside\n")


@root_only
def test_bind_puts_a_directory_over_another(tmp_path: Path) -> None:
    (tmp_path / "mark").write_text("")
    done, said = launch("--isolate", "mount", "--bind", str(tmp_path), "/mnt", "--", "/bin/ls", "/mnt")
    assert (done.stdout, said) == ("mark\n", "")
    assert not Path("/mnt/mark").exists()


@root_only
@isolating
def test_a_file_system_in_memory_goes_with_its_namespace_which_others_may_join() -> None:
    with subprocess.Popen([launcher_path(), "--isolate", "mount,ipc", "--tmpfs", "/mnt", "--", "/bin/sh", "-c",
                           "echo kept > /mnt/mark; echo there; read word"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as job:
        assert job.stdin is not None
        assert job.stdout is not None
        assert job.stdout.readline() == "there\n"
        beside = ["--join", f"/proc/{job.pid}/ns/mnt", "--join", f"/proc/{job.pid}/ns/ipc"]
        done, said = launch(*beside, "--", "/bin/cat", "/mnt/mark")
        assert (done.stdout, said) == ("kept\n", "")
        assert not Path("/mnt/mark").exists()
        job.stdin.write("go\n")


@root_only
def test_no_capability_is_left() -> None:
    done, said = launch("--uid", "65534", "--gid", "65534", "--", "/bin/cat", "/proc/self/status")
    assert said == ""
    assert [line.split()[1] for line in done.stdout.splitlines() if line.startswith("Cap")] == ["0" * 16] * 5


@pytest.mark.parametrize(("which", "number"), [("job", errno.EPERM), ("job-traceable", errno.EPERM)])
def test_the_filter_is_closed_before_the_program_begins(which: str, number: int) -> None:
    code = ("import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"
            "print(json.dumps([libc.unshare(0x10000000), ctypes.get_errno()]))")
    assert report("--filter", which, code=code) == [-1, number]


def test_filters_have_names() -> None:
    assert launch("--filter", "sieve", "--", "/bin/true")[1] == "options 22 sieve\n"
    assert launch("--hide", "/tmp", "--", "/bin/true")[1].startswith("options 22 --read-only and --hide need")
    assert launch("--isolate", "mount", "--hide", "tmp", "--", "/bin/true")[1] == "options 22 --hide\n"


@root_only
def test_hidden_folders_are_empty_but_for_what_is_bound(tmp_path: Path) -> None:
    for name in ("own/deep", "others"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_text(name)
    own = str(tmp_path / "own" / "deep")
    code = (f"top = {str(tmp_path)!r}\nopen({own!r} + '/new', 'w').write('x')\n"
            "def refused(path):\n    try:\n        open(path, 'w')\n"
            "    except OSError as error:\n        return error.errno\n"
            "print(json.dumps([os.listdir(top), os.listdir(top + '/own'), refused(top + '/x')]))")
    assert report("--isolate", "mount", "--hide", str(tmp_path), "--bind", own, own, code=code) == [
        ["own"], ["deep"], errno.EROFS]
    assert (tmp_path / "own" / "deep" / "new").exists()


@root_only
def test_read_only_folders_stay_so_below_but_for_what_is_bound(tmp_path: Path) -> None:
    (tmp_path / "a" / "open").mkdir(parents=True)
    (tmp_path / "a" / "open").chmod(0o777)
    own = str(tmp_path / "a" / "own")
    os.mkdir(own)
    code = (f"open({own!r} + '/new', 'w').write('x')\n"
            f"try:\n    open({str(tmp_path / 'a' / 'open' / 'x')!r}, 'w')\n"
            "except OSError as error:\n    print(error.errno)")
    assert report("--isolate", "mount", "--read-only", str(tmp_path), "--bind", own, own, code=code) == errno.EROFS
    assert os.listdir(tmp_path / "a" / "open") == []


@root_only
def test_the_old_root_is_let_go(tmp_path: Path) -> None:
    """What was mounted there is not there any more, not even for someone who may mount and move."""
    (tmp_path / "proc").mkdir()
    if shutil.which("gcc") is None:
        pytest.skip("there is no compiler")
    code = r"""
#include <stdio.h>
#include <string.h>
int main(void)
{
    char line[1000];
    FILE *mounts = fopen("/proc/self/mountinfo", "r");
    int count = 0;
    while (mounts && fgets(line, sizeof line, mounts))
        count++;
    printf("%d\n", count);
    return 0;
}
"""
    (tmp_path / "count.c").write_text(code)
    subprocess.run(["gcc", "-static", "-o", str(tmp_path / "count"), str(tmp_path / "count.c")], check=True)
    done, said = launch("--isolate", "mount,pid", "--root", str(tmp_path), "--", "/count")
    assert (done.stdout, said) == ("2\n", "")  # itself and /proc


@root_only
def test_a_joined_process_namespace_is_entered_by_a_child(tmp_path: Path) -> None:
    """Where the shell beside a job stands: among the job's processes, ended as it ended, and dead with its relay."""
    reader, writer = os.pipe()
    job = subprocess.Popen([launcher_path(), "--status-fd", str(writer), "--isolate", "mount,pid", "--", "/bin/sleep",
                            "1000"], pass_fds=(writer,))
    os.close(writer)
    try:
        with os.fdopen(reader) as begun:
            assert begun.read() == "", "its processes are mounted"
        names = [f"/proc/{job.pid}/ns/mnt", f"/proc/{job.pid}/ns/pid_for_children"]
        words = [word for name in names for word in ("--join", name)]
        done, said = launch(*words, "--", "/bin/sh", "-c", "ls -d /proc/[0-9]* | wc -l; kill -SEGV $$")
        assert (done.returncode, said) == (-signal.SIGSEGV, "")
        assert int(done.stdout) <= 6
    finally:
        job.kill()
        job.wait()


STOPPING = ([], ["--filter", "job"], ["--isolate", "user,mount,pid", "--filter", "job-traceable"])


@pytest.mark.parametrize("words", STOPPING, ids=" ".join)
def test_a_program_that_stands_at_its_first_instruction(words: list[str]) -> None:
    """When the launcher has become the program, that stands still, has no child, and has done nothing."""
    reader, writer = os.pipe()
    command = [launcher_path(), "--status-fd", str(writer), "--stop-at-exec", *words, "--", "/bin/sh", "-c", "echo on"]
    with subprocess.Popen(command, pass_fds=(writer,), stdout=subprocess.PIPE, text=True) as process:
        os.close(writer)
        with os.fdopen(reader) as said:
            assert said.read() == ""
        job = process.pid
        for _ in range(2 if "--isolate" in words else 0):
            job = min(children_of(job))  # the first one is the program
        until(lambda: proc_file(job, "stat").rpartition(b")")[2].split()[0] == b"T", "the program to stand still")
        assert os.readlink(f"/proc/{job}/exe") == os.path.realpath("/bin/sh")
        assert children_of(job) == []
        assert b"TracerPid:\t0\n" in proc_file(job, "status")
        os.kill(process.pid, signal.SIGCONT)
        assert process.communicate(timeout=DEADLINE_S)[0] == "on\n"
        assert process.returncode == 0


def test_a_program_that_cannot_be_executed_is_not_waited_for() -> None:
    done, said = launch("--stop-at-exec", "--", "/no/such/program")
    assert (said, done.returncode) == ("exec 2 /no/such/program\n", 127)


def test_a_namespace_that_waits_for_a_pipe_to_be_closed() -> None:
    """The program has ended, and what has joined its namespace is not killed before the pipe is closed."""
    waits, lets_end = os.pipe()
    words = ["--isolate", "user,mount,pid", "--linger-fd", str(waits), "--linger-s", str(DEADLINE_S)]
    with subprocess.Popen([launcher_path(), *words, "--", "/bin/sh", "-c", "sleep 600 & exit 3"],
                          pass_fds=(waits,)) as process:
        os.close(waits)
        first = until(lambda: children_of(process.pid), "the first process")[0]
        (sleeper,) = until(lambda: [pid for pid in children_of(first) if b"sleep" in proc_file(pid, "cmdline")],
                           "what the program has left")
        os.close(lets_end)
        assert process.wait(DEADLINE_S) == 3
        assert not is_alive(sleeper)


def test_a_namespace_that_waits_no_longer_than_told() -> None:
    waits, lets_end = os.pipe()
    done, said = launch("--isolate", "user,mount,pid", "--linger-fd", str(waits), "--linger-s", "0", "--", "/bin/false",
                        keep=(waits,))
    os.close(waits)
    os.close(lets_end)
    assert (said, done.returncode) == ("", 1)


def test_without_a_namespace_nothing_is_waited_for() -> None:
    assert launch("--linger-fd", "9", "--", "/bin/true")[1] == "options 22 --linger-fd needs --isolate pid\n"
