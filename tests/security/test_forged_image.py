"""A checkpoint that is none: a program of the attacker's is executed in its place.

It is started as the starter host starts checkpoints.  Whatever it tries, it is in an empty room for reading, with a few
system calls, alone.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from condor_actors.machine.native.programs import launcher_path
from condor_actors.machine.run.run_host import RunHost
from tests.pool_fixture import fresh_folder

ISOLATION = RunHost().standard_isolation
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0 or not ISOLATION, reason="only root shuts programs in with namespaces here"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no compiler"),
]
NOBODY = ("--uid", "65534", "--gid", "65534", "--groups", "65534")

FORGED = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <stdlib.h>
static char line[400];
static void say(const char *what, long result)
{
    int error = errno;
    int size = snprintf(line, sizeof line, "%s %s\n", what, result < 0 ? strerrorname_np(error) : "done");
    write(1, line, size);
}
#define TRY(call) say(#call, (long)(call))
static void look(int fd, const char *path)
{
    int found = openat(fd, path, O_RDONLY | O_CLOEXEC);
    char text[64] = {0};
    int size = snprintf(line, sizeof line, "%d/%s %s\n", fd, path, found < 0 ? strerrorname_np(errno) :
                        read(found, text, 40) > 0 ? text : "opened");
    write(1, line, size);
}
int main(int count, char **words)
{
    const char *paths[] = {
        "/etc/passwd", "/proc/1/root/etc/passwd", "/proc/self/root/etc/passwd", "../../../etc/passwd",
        "/proc/1/environ", "/proc/1/fd/0", "/proc/self/cwd/../../etc/passwd", "/../etc/passwd", "/dev/null",
        "/sys/kernel", words[1]};
    for (unsigned i = 0; i < sizeof paths / sizeof *paths; i++)
        look(AT_FDCWD, paths[i]);
    for (int fd = 0; fd < 64; fd++)
        if (fcntl(fd, F_GETFD) >= 0) {
            look(fd, "self/root/etc/passwd");
            look(fd, "1/root/etc/passwd");
            look(fd, "../../etc/passwd");
        }
    TRY(socket(AF_INET, SOCK_STREAM, 0));
    TRY(socket(AF_UNIX, SOCK_STREAM, 0));
    TRY(syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0));
    TRY(unshare(CLONE_NEWUSER));
    TRY(unshare(CLONE_NEWNS));
    TRY(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
    TRY(syscall(SYS_clone3, 0, 0));
    TRY(syscall(SYS_mount, "none", "/proc", "tmpfs", 0, 0));
    TRY(syscall(SYS_bpf, 0, 0, 0));
    TRY(syscall(SYS_keyctl, 0, -3, 0));
    TRY(syscall(SYS_io_uring_setup, 1, 0));
    TRY(syscall(SYS_perf_event_open, 0, 0, -1, -1, 0));
    TRY(syscall(SYS_process_vm_readv, 1, 0, 0, 0, 0, 0));
    TRY(syscall(SYS_setns, 0, 0));
    TRY(syscall(SYS_chroot, "/proc"));
    TRY(syscall(SYS_memfd_create, "x", 0));
    TRY(syscall(SYS_setuid, 0));
    TRY(syscall(SYS_open, "/new", O_CREAT | O_WRONLY, 0644));
    TRY(syscall(SYS_openat, AT_FDCWD, "/new", O_CREAT | O_WRONLY, 0644));
    TRY(syscall(SYS_openat, AT_FDCWD, "/program", O_WRONLY, 0));
    TRY(syscall(SYS_unlink, "/program"));
    TRY(syscall(SYS_userfaultfd, 0));
    TRY(kill(atoi(words[2]), 0));
    TRY(kill(1, SIGKILL));
    TRY(execl("/bin/sh", "sh", (char *)0));
    return 0;
}
"""


@attrs.define
class Room:
    """Where the forged checkpoint is executed."""

    place: Path

    def run(self, *words: str, keep: tuple[int, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Execute it as the starter host would."""
        kept = [word for number in keep for word in ("--keep-fd", str(number))]
        return subprocess.run(
            [launcher_path(), *NOBODY, "--isolate", ",".join(ISOLATION), "--root", str(self.place), "--filter",
             "runtime", "--chdir", "/", "--rlimit", "core=0", *kept, "--", "/program", *words],
            capture_output=True, text=True, timeout=60, pass_fds=keep, check=False)


@pytest.fixture(scope="module")
def room() -> Iterator[Room]:
    with fresh_folder() as folder:
        source = folder / "forged.c"
        source.write_text(FORGED)
        place = folder / "room"
        (place / "proc").mkdir(parents=True)
        place.chmod(0o777)  # the starter's own room is the account's
        subprocess.run(["gcc", "-static", "-O1", "-w", "-o", str(place / "program"), str(source)], check=True)
        yield Room(place)


def test_a_forged_image_reaches_nothing(room: Room) -> None:
    outside = room.place.parent / "secret"
    outside.write_text("for nobody's eyes\n")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        done = room.run(str(outside), str(os.getpid()), keep=(theirs.fileno(),))
    assert done.returncode == 0, done
    said = done.stdout
    assert "root:" not in said
    assert "nobody's eyes" not in said
    tried = dict(line.rpartition(" ")[::2] for line in said.splitlines())
    opened = {name for name, how in tried.items() if how in ("done", "opened")}
    assert opened <= {"kill(1, SIGKILL)"}, opened  # which the first process of a pid namespace does not get
    assert not (room.place / "new").exists()
    assert (room.place / "program").exists()


def test_a_forged_image_without_the_filter_is_what_the_test_is_for(room: Room) -> None:
    """The same program where nothing shuts it in gets at things: the test above sees what it is to see."""
    done = subprocess.run([str(room.place / "program"), "/etc/hostname", str(os.getpid())], capture_output=True,
                          text=True, timeout=60, check=False)
    assert "root:" in done.stdout
    assert "socket(AF_INET, SOCK_STREAM, 0) done" in done.stdout


def test_the_room_has_no_way_out_for_root_either(room: Room) -> None:
    """The old root is let go (pivot_root): not even a program with root's rights finds it above the new one."""
    (room.place / "bin").mkdir(exist_ok=True)
    source = room.place.parent / "escape.c"
    source.write_text(r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void)
{
    int here = open("/", O_RDONLY);
    chroot("/proc");
    fchdir(here);
    for (int i = 0; i < 64; i++)
        chdir("..");
    chroot(".");
    printf("%d\n", open("/etc/passwd", O_RDONLY));
    return 0;
}
""")
    subprocess.run(["gcc", "-static", "-w", "-o", str(room.place / "escape"), str(source)], check=True)
    done = subprocess.run([launcher_path(), "--isolate", "mount,pid", "--root", str(room.place), "--", "/escape"],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "-1\n", done


def test_the_starter_gives_no_descriptor_that_leads_out() -> None:
    """What a standard-universe program inherits is its channel, its control socket and a pipe."""
    from condor_actors.daemons.starter import standard_starter

    source = Path(standard_starter.__file__).read_text()
    assert 'os.open("/proc"' not in source
    assert 'filter="runtime"' in source
