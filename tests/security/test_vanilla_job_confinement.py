"""An ordinary job tries what a user could: other processes, the system, the kernel, other jobs, no end of them all."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from condor_actors.machine.native.programs import launcher_path
from condor_actors.machine.run.confinement import PARTS, confinement_here
from tests.harness.proc_files import command_lines
from tests.pool_fixture import PersonalPool, fresh_folder, until

HERE = confinement_here(frozenset(PARTS))
pytestmark = pytest.mark.skipif(os.geteuid() != 0 or set(HERE) != set(PARTS),
                                reason="of pools of root's; test_vanilla_job_own_pool is of others")


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=2, config=(
            "MEMORY = 512\nSTARTER_INITIAL_UPDATE_INTERVAL = 1\nSTARTER_UPDATE_INTERVAL = 1\nMAX_JOB_PROCESSES = 60\n"))
        yield made
        made.stop()


def attack(pool: PersonalPool, name: str, code: str, more: str = "") -> str:
    """What a job prints that runs this piece of Python."""
    program = pool.work / f"{name}.py"
    program.write_text(f"import ctypes, os, socket, sys, time\nlibc = ctypes.CDLL(None, use_errno=True)\n{code}\n")
    pool.submit(f"executable = /usr/bin/python3\ntransfer_executable = false\narguments = {name}.py\nlog = {name}.log\n"
                f"transfer_input_files = {program}\nshould_transfer_files = YES\noutput = {name}.out\n"
                f"error = {name}.err\nrequest_memory = 100MB\n{more}\nqueue\n")
    pool.wait(f"{name}.log")
    return (pool.work / f"{name}.out").read_text()


def test_a_job_sees_no_other_process(pool: PersonalPool) -> None:
    """Not their command lines, not their environments, and signals reach none."""
    text = attack(pool, "processes", """
pids = [int(name) for name in os.listdir('/proc') if name.isdigit()]
print(len(pids), max(pids) < 100)
for pid in OTHERS:
    for number in (0, 9):
        try:
            os.kill(pid, number); print('signalled')
        except OSError as error:
            print(error.strerror)
""".replace("OTHERS", str((os.getpid(), pool.daemons()["startd"]))))
    lines = text.splitlines()
    assert int(lines[0].split()[0]) <= 4
    assert lines[0].endswith("True")
    assert lines[1:] == ["No such process"] * 4


CALLS = """
import errno
def call(name, number, *arguments):
    result = libc.syscall(number, *arguments)
    print(name, 'done' if result >= 0 else errno.errorcode[ctypes.get_errno()])
""".strip()


def test_a_job_asks_the_kernel_for_what_it_may_not(pool: PersonalPool) -> None:
    text = attack(pool, "calls", CALLS + """
call('mount', 165, b'none', b'/tmp', b'tmpfs', 0, None)
call('umount', 166, b'/tmp', 2)
call('unshare user', 272, 0x10000000)
call('unshare mount', 272, 0x00020000)
call('clone user', 56, 0x10000000 | 17, None, None, None, None)
call('clone3', 435, None, 0)
call('setns', 308, 0, 0)
call('bpf', 321, 0, None, 0)
call('keyctl', 250, 0, -3, 0)
call('add_key', 248, b'user', b'x', b'x', 1, -4)
call('perf', 298, None, 0, -1, -1, 0)
call('io_uring', 425, 8, None)
call('userfaultfd', 323, 1)
call('kexec', 246, 0, 0, None, 0)
call('module', 313, 0, b'', 0)
call('by handle', 304, 0, None, 0)
call('pivot', 155, b'.', b'.')
call('syslog', 103, 3, None, 0)
call('fsopen', 430, b'ext4', 0)
call('open_tree', 428, -100, b'/', 1)
call('fanotify', 300, 0, 0)
call('ldt', 154, 1, None, 0)
import fcntl, termios
try:
    fcntl.ioctl(0, 0x5412, b'x'); print('TIOCSTI done')
except OSError as error:
    print('TIOCSTI', errno.errorcode[error.errno])
for family in (38, 40, 17):
    try:
        socket.socket(family, socket.SOCK_STREAM); print(family, 'done')
    except OSError as error:
        print(family, errno.errorcode[error.errno])
""")
    assert "done" not in text, text
    assert text.count("EPERM") >= 20
    assert "clone3 ENOSYS" in text


def test_a_job_calls_by_the_other_tables(pool: PersonalPool) -> None:
    """The numbers of 32-bit and x32 programs are no way around the filter."""
    text = attack(pool, "tables", CALLS + """
call('x32', 0x40000000 | 165, b'none', b'/tmp', b'tmpfs', 0, None)
import mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex('b814000000cd80c3'))  # mov $20, %eax; int $0x80; ret: getpid, as 32-bit programs call it
sys.stdout.flush()
print('i386', ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))())
""")
    assert text in ("x32 ENOSYS\ni386 -38\n", "x32 ENOSYS\n")  # or the kernel itself knows no such calls


def test_no_privilege_is_left_and_none_comes_back(pool: PersonalPool) -> None:
    text = attack(pool, "privileges", """
for line in open('/proc/self/status'):
    if line.startswith(('Cap', 'NoNewPrivs', 'Seccomp:')):
        print(line.split()[0], line.split()[1])
os.system('cp /usr/bin/id ./id; chmod u+s id; ./id -u; /usr/bin/su root -c id </dev/null')
""")
    facts = dict(line.split() for line in text.splitlines() if ":" in line)
    assert {facts[name] for name in ("CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:")} == {"0" * 16}
    assert facts["NoNewPrivs:"] == "1"
    assert facts["Seccomp:"] == "2"
    assert "uid=0" not in text


@pytest.mark.parametrize("folder", ["/etc", "/usr/bin", "/var", "/var/tmp/../lib", "/opt", "/root", "/sys/kernel"])
def test_the_system_is_for_reading_whatever_its_modes(pool: PersonalPool, folder: str) -> None:
    """Even a folder that someone has left open to all."""
    name = "system" + folder.replace("/", "_").replace(".", "")
    code = f"""
try:
    open('{folder}/condor-attack', 'w'); print('written')
except OSError as error:
    print(error.strerror)
"""
    text = attack(pool, name, code)
    assert text.strip() in ("Read-only file system", "Permission denied")
    assert not Path(folder, "condor-attack").exists()


def test_a_folder_open_to_all_is_for_reading(pool: PersonalPool) -> None:
    with_all = Path("/opt/condor-open-to-all")
    with_all.mkdir(exist_ok=True)
    with_all.chmod(0o1777)
    try:
        text = attack(pool, "open", f"""
try:
    open('{with_all}/x', 'w'); print('written')
except OSError as error:
    print(error.strerror)
""")
        assert text == "Read-only file system\n"
    finally:
        for left in with_all.iterdir():
            left.unlink()
        with_all.rmdir()


def test_other_jobs_scratch_directories_are_not_there(pool: PersonalPool) -> None:
    """Two jobs of one account at once: each finds its own directory only, and can write there."""
    pool.submit("executable = /bin/sh\ntransfer_executable = false\n"
                "arguments = \"-c 'echo mine > secret; sleep 1000'\"\nshould_transfer_files = YES\n"
                "request_memory = 100MB\nlog = victim.log\nqueue\n")
    until(lambda: any((path / "secret").exists() for path in (pool.dir / "execute").glob("dir_*")), "the victim to run")
    (victim,) = (path for path in (pool.dir / "execute").glob("dir_*") if (path / "secret").exists())
    text = attack(pool, "sandboxes", f"""
scratch = os.environ['_CONDOR_SCRATCH_DIR']
print(os.listdir(os.path.dirname(scratch)) == [os.path.basename(scratch)])
open(scratch + '/own', 'w').write('x')
for path in ('{victim}/secret', '/proc/1/root{victim}/secret', '/proc/self/cwd/../{victim.name}/secret'):
    try:
        print(open(path).read())
    except OSError as error:
        print(error.strerror)
""")
    assert (victim / "secret").exists()
    pool.run("condor_rm", "-all")
    lines = text.splitlines()
    assert lines[0] == "True"
    assert "mine" not in text


def test_a_fork_bomb_ends_at_its_limit(pool: PersonalPool) -> None:
    text = attack(pool, "bomb", """
children = 0
try:
    for _ in range(1000):
        if os.fork() == 0:
            time.sleep(1000)
        children += 1
except OSError as error:
    print(children, error.strerror)
""")
    assert "Resource temporarily unavailable" in text
    assert int(text.split()[0]) <= 60
    until(lambda: not pool.scratch() or None, "the scratch directory freed")


def test_what_a_job_forks_off_dies_with_it(pool: PersonalPool) -> None:
    mark = f"condor-attack-{os.getpid()}"
    attack(pool, "orphan", f"""
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve('/bin/sh', ['{mark}', '-c', 'sleep 1000; true'], {{}})
        os._exit(0)
""")
    until(lambda: not any(mark.encode() in line for _, line in command_lines()), "none of them lives")


def test_the_name_of_the_machine_is_its_own(pool: PersonalPool) -> None:
    text = attack(pool, "name", CALLS + """
call('sethostname', 170, b'evil', 4)
print(os.readlink('/proc/self/ns/uts'))
""")
    assert text.splitlines()[0] == "sethostname EPERM"
    assert text.splitlines()[1] != os.readlink("/proc/self/ns/uts")


def test_a_job_without_a_network_has_none(pool: PersonalPool) -> None:
    code = "print(sorted(name for _, name in socket.if_nameindex()))"
    assert attack(pool, "quiet", code, "want_job_networking = false") == "['lo']\n"


def test_nothing_of_the_daemons_is_inherited(pool: PersonalPool) -> None:
    """Descriptors, variables, keys."""
    text = attack(pool, "inherited", """
for name in sorted(os.listdir('/proc/self/fd'), key=int):
    try:
        print(name, os.readlink('/proc/self/fd/' + name))
    except OSError:
        pass
print(sorted(name for name in os.environ if 'CONDOR' in name and not name.startswith('_CONDOR')))
print(open('/proc/keys').read() if os.path.exists('/proc/keys') else '')
""")
    descriptors = [line.split()[1] for line in text.splitlines() if line[:1].isdigit() and " /" in line]
    assert all(place.startswith(("/dev/null", str(pool.dir / "execute"), "/proc/")) for place in descriptors), text
    assert "[]" in text
    assert "socket:" not in text


def test_memory_beyond_the_request_is_told_with_numbers(pool: PersonalPool) -> None:
    cluster = pool.submit("executable = /usr/bin/python3\ntransfer_executable = false\n"
                          "arguments = \"-c 'x = bytearray(400000000); import time; time.sleep(1000)'\"\n"
                          "should_transfer_files = YES\nrequest_memory = 100MB\nlog = fat.log\nqueue\n")
    pool.until_status(f"{cluster}.0", 5)
    (job,) = pool.jobs(str(cluster))
    pool.run("condor_rm", str(cluster))
    assert job["HoldReasonCode"] == 34
    assert "of 256 MB that were its own (RequestMemory)" in job["HoldReason"]


def test_without_control_groups_limits_are_kept_and_told() -> None:
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=1, config=(
            "USE_CGROUPS = False\nMEMORY = 256\nMAX_JOB_PROCESSES = 40\nSTARTER_INITIAL_UPDATE_INTERVAL = 1\n"))
        try:
            text = attack(pool, "bomb", """
children = 0
try:
    for _ in range(1000):
        if os.fork() == 0:
            time.sleep(1000)
        children += 1
except OSError as error:
    print(children, error.strerror)
""")
            assert "Resource temporarily unavailable" in text
            cluster = pool.submit("executable = /usr/bin/python3\ntransfer_executable = false\n"
                                  "arguments = \"-c 'x = bytearray(400000000); import time; time.sleep(1000)'\"\n"
                                  "should_transfer_files = YES\nrequest_memory = 100MB\nlog = fat.log\nqueue\n")
            pool.until_status(f"{cluster}.0", 5)
            (job,) = pool.jobs(str(cluster))
            assert "of 256 MB that were its own (RequestMemory)" in job["HoldReason"]
            log = (pool.dir / "log" / "StarterHostLog").read_text()
            assert "memory 256 MB (looked at every 1 s), processes 40 (limit of the account)" in log
        finally:
            pool.stop()


def test_the_slots_say_how_jobs_are_shut_in(pool: PersonalPool) -> None:
    said = pool.run("condor_status", "-af", "JobConfinement").split()
    assert said
    assert set(said[0].split(",")) == set(PARTS)


@pytest.mark.parametrize(("name", "said"), [("job", "-1\n"), ("job-traceable", "0\n")])
def test_tracing_is_for_those_who_see_only_themselves(name: str, said: str) -> None:
    code = "import ctypes; print(ctypes.CDLL(None).syscall(101, 0, 0, 0, 0))"
    done = subprocess.run([launcher_path(), "--filter", name, "--", "/usr/bin/python3", "-c", code],
                          capture_output=True, text=True, check=False)
    assert done.stdout == said


def test_a_shell_beside_a_job_is_shut_in_as_the_job_is(pool: PersonalPool) -> None:
    """It enters namespaces that a hostile job has had in its hands, and has no more rights in them than the job."""
    cluster = pool.submit("executable = /bin/sleep\ntransfer_executable = false\narguments = 1000\n"
                          "should_transfer_files = YES\nrequest_memory = 100MB\nlog = shell.log\nqueue\n")
    pool.until_status(f"{cluster}.0", 2)
    command = ("grep -E '^(Uid|Cap|NoNew|Seccomp:)' /proc/self/status; ls -d /proc/[0-9]* | wc -l; "
               "touch /etc/condor-attack; unshare -m true")
    said = pool.tool("condor_ssh_to_job", f"{cluster}.0", command, stdin="").stdout
    pool.run("condor_rm", str(cluster))
    facts = dict(line.split()[:2] for line in said.replace("\r", "").splitlines() if ":\t" in line)
    assert facts["Uid:"] != "0"
    assert {facts[name] for name in ("CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:")} == {"0" * 16}
    assert (facts["NoNewPrivs:"], facts["Seccomp:"]) == ("1", "2")
    numbers = [int(line) for line in said.replace("\r", "").splitlines() if line.strip().isdigit()]
    assert numbers[0] <= 10
    assert not Path("/etc/condor-attack").exists()
    assert "unshare failed" in said


def test_a_job_that_begins_among_the_sandboxes_sees_its_own_only(pool: PersonalPool) -> None:
    """``remote_initialdir`` opens nothing that is shut."""
    neighbour = pool.submit("executable = /bin/sleep\ntransfer_executable = false\narguments = 600\n"
                            "should_transfer_files = YES\nlog = neighbour.log\nqueue\n")
    until(lambda: "001 (" in (pool.work / "neighbour.log").read_text(), "the neighbour runs")
    execute = pool.run("condor_config_val", "EXECUTE").strip()
    pool.submit("executable = /bin/sh\ntransfer_executable = false\nshould_transfer_files = YES\nlog = among.log\n"
                "arguments = \"-c 'pwd; ls | wc -l; ls -d $(basename $_CONDOR_SCRATCH_DIR) | wc -l'\"\n"
                f"remote_initialdir = {execute}\noutput = among.out\nqueue\n")
    pool.wait("among.log")
    assert (pool.work / "among.out").read_text() == f"{execute}\n1\n1\n"
    pool.run("condor_rm", str(neighbour))


def test_a_program_among_the_sandboxes_opens_none_of_them(pool: PersonalPool) -> None:
    """``executable`` below EXECUTE, where the administrator or another job has put a program that lists the folder."""
    execute = Path(pool.run("condor_config_val", "EXECUTE").strip())
    program = execute / "lister"
    program.write_text(f"#!/bin/sh\nls {execute}\n")
    program.chmod(0o755)
    cluster = pool.submit(f"executable = {program}\ntransfer_executable = false\nshould_transfer_files = YES\n"
                          "output = lister.out\nlog = lister.log\nqueue\n")
    until(lambda: pool.history(str(cluster)) or pool.status_of(f"{cluster}.0") == 5, "an end or a hold")
    out = pool.work / "lister.out"
    assert "lister" not in (out.read_text() if out.exists() else "")
    pool.run("condor_rm", str(cluster))
    program.unlink()
