"""A user looks into the process that speaks for her at the schedd: it holds secrets of claims.  She never can:
from its first moment on, the loader's and Python's, before it could ask the kernel for anything itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.readable_python import python_for_all
from tests.harness.root_helper import PROGRAM, Helper, status_of
from tests.pool_fixture import until
from tests.security.local_users import NEED_USERS, SharedPool, a_shared_pool

pytestmark = NEED_USERS

LOOK = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
SEIZE, DETACH = 0x4206, 17
def looks_into(pid):
    found = []
    if libc.ptrace(SEIZE, pid, None, None) == 0:
        found.append("ptrace")
        libc.ptrace(DETACH, pid, None, None)
    for name in ("mem", "environ", "maps", "auxv", "syscall"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                file.read(1) if name != "mem" else None
                found.append(name)
        except OSError:
            pass
    for name in ("fd/0", "fd/3", "cwd", "exe"):
        try:
            os.readlink(f"/proc/{pid}/{name}")
            found.append(name)
        except OSError:
            pass
    return found
"""
LOOK_ON = LOOK + """
import sys
seen, found = set(), []
print("looks", flush=True)
while not os.path.exists(sys.argv[1]):
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            try:
                mine = os.stat(f"/proc/{name}").st_uid == os.getuid() or name in seen
                host = b"shadow-host" in open(f"/proc/{name}/cmdline", "rb").read()
                own = f"Uid:\\t{os.getuid()}\\t" in open(f"/proc/{name}/status").read()
            except OSError:
                continue
            if host and (mine or own):
                seen.add(name)
                found += looks_into(int(name))
print(len(seen), sorted(set(found)))
"""


def sleeps(pid: int) -> bool:
    return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"/bin/sleep\0")


def test_a_program_that_begins_as_a_user_is_none_of_hers_at_once() -> None:
    """Whatever it does not do for itself: this one only sleeps."""
    uid = 60_123
    policy = ["--orders", "program", "--account", str(uid), str(uid),
              "--program", "sleeper", "user", "X", "/bin/sleep", "1000", ";"]
    with Helper(*policy, exact=True) as helper, open(os.devnull) as null:
        answer = helper.order(PROGRAM, uid, "sleeper", [null.fileno()])
        assert answer.error == 0, answer.reason
        try:
            until(lambda: sleeps(answer.value), "it sleeps")
            assert status_of(answer.value)["Uid"].split() == [str(uid)] * 4
            done = subprocess.run(
                ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *python_for_all().words, "-c",
                 f"{LOOK}\nprint(looks_into(os.getppid()), looks_into({answer.value}))"],
                capture_output=True, text=True, check=True, timeout=60)
            assert done.stdout == "[] []\n"
        finally:
            os.kill(answer.value, 9)
            os.waitpid(answer.value, 0)


def test_the_look_finds_what_is_not_guarded() -> None:
    """An ordinary process of hers, so that the other tests have seen something."""
    own = ["setpriv", "--reuid=60123", "--regid=60123", "--clear-groups"]
    with subprocess.Popen([*own, "/bin/sleep", "1000"]) as sleeper:
        try:
            until(lambda: sleeps(sleeper.pid), "it sleeps")
            done = subprocess.run([*own, *python_for_all().words, "-c", f"{LOOK}\nprint(looks_into({sleeper.pid}))"],
                                  capture_output=True, text=True, check=True, timeout=60)
            assert {"mem", "environ", "maps", "fd/0", "cwd"} <= set(eval(done.stdout))  # noqa: S307
        finally:
            sleeper.kill()


@pytest.fixture(params=[True, False], ids=["dropped", "root"])
def pool(request: pytest.FixtureRequest) -> Iterator[SharedPool]:
    with a_shared_pool(drops_root=request.param) as shared:
        yield shared


def test_a_shadow_host_is_not_looked_into_while_it_starts(pool: SharedPool) -> None:
    """In a loop, from before it is there until its job has ended."""
    owner, over = pool.mallory, pool.mallory.home / "over"
    script = owner.home / "look_on.py"
    script.write_text(LOOK_ON)
    with subprocess.Popen(owner.command(sys.executable, str(script), str(over)), stdout=subprocess.PIPE,
                          text=True) as attacker:
        assert attacker.stdout is not None
        assert attacker.stdout.readline() == "looks\n"
        pool.submit_as(owner, f"executable = /bin/true\nlog = {owner.home}/log\nqueue\n")
        pool.wait(f"{owner.home}/log")
        hosts = pool.pids_of(owner, "shadow-host")
        rights = [status_of(pid)[name] for pid in hosts for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")]
        over.touch()
        said = attacker.stdout.read()
    count, found = said.split(" ", 1)
    assert int(count) >= 1
    assert found == "[]\n"
    assert set(rights) <= {"0" * 16}
