"""A job in a user's own pool, where nothing but its user's rights keeps it apart from the daemons."""

from __future__ import annotations

import json
import shutil

import psutil
import pytest

from condor_actors.machine.run.confinement import PARTS, confinement_here
from tests.harness.user_pool import UserPool, user_pool
from tests.pool_fixture import fresh_folder, until

ALLOWED = set(confinement_here(frozenset(PARTS)))

KILLER = """#!/bin/sh
pid=$$
while [ "$pid" -gt 1 ]; do
    if grep -q starter-host "/proc/$pid/cmdline" 2>/dev/null; then kill -KILL "$pid"; fi
    pid=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$pid/status")
done
exec sleep 1000
"""


def killer(pool: UserPool) -> str:
    program = pool.work / "killer.sh"
    program.write_text(KILLER)
    program.chmod(0o755)
    return program.name


def test_a_job_that_kills_its_starter_host_is_held_in_the_end() -> None:
    """And ``condor_personal stop`` (in user_pool) leaves no process of it."""
    with user_pool("MAX_LOST_RUNS = 2\nUSE_PID_NAMESPACES = false") as pool:
        cluster = pool.submit(f"executable = {killer(pool)}\nlog = job.log\nqueue")
        pool.until_status(f"{cluster}.0", 5)
        (job,) = pool.jobs(str(cluster))
        assert "MAX_LOST_RUNS" in job["HoldReason"]


NEED_NAMESPACES = pytest.mark.skipif(bool(set(PARTS) - ALLOWED), reason="this kernel gives users no namespaces")
OF_JOB = """
import ctypes, errno, json, os, socket, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
own, run, spool, log, keys, key, shut, home = sys.argv[1:]
def tried(function, *words):
    try:
        return repr(function(*words))
    except OSError as error:
        return errno.errorcode[error.errno]
def call(number, *words):
    libc.syscall(number, *words)
    return errno.errorcode.get(ctypes.get_errno(), 0)
lines = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
found = {
    "uid": os.getuid(), "pids": sorted(int(name) for name in os.listdir("/proc") if name.isdigit())[:1],
    "processes": len([name for name in os.listdir("/proc") if name.isdigit()]),
    "rights": [lines[name].split()[0] for name in ("CapPrm", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")],
    "pool": [tried(os.listdir, folder) for folder in (run, spool, log, keys)],
    "key": tried(open, key), "sandboxes": os.listdir(os.path.dirname(os.getcwd())) == [os.path.basename(os.getcwd())],
    "dials": tried(socket.socket(socket.AF_UNIX).connect, run + "/schedd.sock"),
    "writes": tried(open, shut + "/x", "w"), "at home": tried(open, home + "/made", "w")[:3],
    "scratch": tried(open, "made", "w")[:3],
    "first": tried(os.kill, 1, 0), "of its pool": tried(os.kill, int(own), 0),
    "memory of the first": tried(open, "/proc/1/mem", "r+b"),
    "traces the first": libc.ptrace(0x4206, 1, None, None),
    "calls": [call(272, 0x10000000), call(272, 0x20000), call(308, 0, 0), call(165, b"x", b"/tmp", b"x", 0, 0),
              call(321, 0, 0, 0), call(425, 1, 0), call(323, 0), call(298, 0, 0, 0, 0, 0), call(250, 0, 0)],
    "name": tried(socket.sethostname, "mine"),
}
subprocess.Popen(["/bin/sh", "-c", "trap '' TERM HUP INT; exec sleep 7654321"], start_new_session=True)
print(json.dumps(found))
"""


def reports(pool: UserPool, *words: object) -> dict[str, object]:
    """What a job of the pool's user finds."""
    (pool.work / "job.py").write_text(OF_JOB)
    python = shutil.which("python3", path="/usr/bin:/bin") or pytest.skip("needs the system's Python")
    arguments = " ".join(map(str, words))
    pool.submit(f"executable = {python}\ntransfer_executable = false\ntransfer_input_files = job.py\n"
                f"should_transfer_files = YES\narguments = job.py {arguments}\noutput = seen\nerror = errors\n"
                "log = job.log\nqueue")
    pool.wait()
    assert (pool.work / "errors").read_text() == ""
    found: dict[str, object] = json.loads((pool.work / "seen").read_text())
    return found


@NEED_NAMESPACES
def test_a_job_is_shut_in_by_its_users_own_rights() -> None:
    """Nobody is root here: it sees itself, its scratch directory and the system, and nothing of the pool's."""
    with fresh_folder() as shut, user_pool(f"JOB_READ_ONLY = /etc, /usr, {shut}\n") as pool:
        if pool.user:
            shutil.chown(shut, pool.user, pool.user)
        own = pool.daemons()["startd"]
        folders = [pool.dir / name for name in ("run", "spool", "log")]
        key = next(pool.dir.rglob("host.key"))
        found = reports(pool, own, *folders, key.parent, key, shut, pool.folder)
        assert found == {
            "uid": pool.dir.stat().st_uid, "pids": [1], "processes": 2,
            "rights": ["0" * 16, "0" * 16, "0" * 16, "1", "2"],
            "pool": ["[]"] * 4, "key": "ENOENT", "sandboxes": True, "dials": "ENOENT", "writes": "EROFS",
            "at home": "<_i", "scratch": "<_i", "first": "None", "of its pool": "ESRCH",
            "memory of the first": "EACCES", "traces the first": -1, "calls": ["EPERM"] * 9, "name": "EPERM"}
        assert {frozenset(said.split(",")) for said in confinements(pool)} == {frozenset(PARTS)}
        assert not [line for line in psutil.process_iter(["cmdline"]) if "7654321" in (line.info["cmdline"] or [])]
        assert "shut in by processes, host_name, system_calls, read_only, sandboxes" in host_log(pool)


def confinements(pool: UserPool) -> list[str]:
    """What the slots say of it."""
    return pool.run("condor_status", "-af", "JobConfinement").split()


def host_log(pool: UserPool) -> str:
    return (pool.dir / "log" / "StarterHostLog").read_text()


def test_where_the_kernel_gives_no_namespaces_it_is_told_and_the_rest_holds() -> None:
    """Daemons that may make none: the filter is in force, the log and the slots say what is not."""
    with user_pool(shut=True) as pool:
        own = pool.daemons()["startd"]
        folders = [pool.dir / name for name in ("run", "spool", "log")]
        key = next(pool.dir.rglob("host.key"))
        found = reports(pool, own, *folders, key.parent, key, pool.work, pool.folder)
        assert (found["of its pool"], found["calls"], found["name"]) == ("None", ["EPERM"] * 9, "EPERM")
        assert set(confinements(pool)) == {"system_calls"}
        told = host_log(pool)
        assert told.count("the kernel gives this user no namespaces") == 1
        assert "parts of JOB_CONFINEMENT: host_name, processes, read_only, sandboxes" in told
        assert "shut in by system_calls" in told


@NEED_NAMESPACES
def test_a_shell_beside_a_job_is_shut_in_with_it() -> None:
    with user_pool() as pool:
        pool.submit("executable = /bin/sleep\narguments = 1000\ntransfer_executable = false\n"
                    "should_transfer_files = YES\nlog = job.log\nqueue")
        pool.until_status("1.0", 2)
        said = until(lambda: pool.tool("condor_ssh_to_job", "1.0", "ls -d /proc/[0-9]* | wc -l; ls "
                                       f"{pool.dir}/run | wc -l; grep Seccomp: /proc/self/status").stdout, "a shell")
        processes, sockets, filtered = said.splitlines()
        assert int(processes) < 8
        assert (sockets.strip(), filtered.split()) == ("0", ["Seccomp:", "2"])


def test_a_job_does_not_reach_the_processes_of_its_pool() -> None:
    """Where the kernel lets users make namespaces; where not, the log says so once."""
    with user_pool("MAX_LOST_RUNS = 2") as pool:
        text = f"#!/bin/sh\ntimeout 5 sh {pool.work}/killer.sh\nls -d /proc/[0-9]* | wc -l\nid -u\nexit 7\n"
        killer(pool)
        (pool.work / "looks.sh").write_text(text)
        (pool.work / "looks.sh").chmod(0o755)
        address = pool.dir / "run" / "starter-host.address"
        until(address.exists, "the starter host listens")
        before = address.read_text()
        pool.submit("executable = looks.sh\noutput = seen\nlog = job.log\nqueue")
        pool.wait()
        log = (pool.dir / "log" / "StarterHostLog").read_text()
        if "the kernel gives this user no namespaces" in log:
            assert log.count("the kernel gives this user no namespaces") == 1
            return
        processes, uid = (pool.work / "seen").read_text().split()
        assert int(processes) < 10
        assert int(uid) == pool.dir.stat().st_uid
        assert "return value 7" in (pool.work / "job.log").read_text()
        assert address.read_text() == before
