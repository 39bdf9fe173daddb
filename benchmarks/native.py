"""What the launcher and the standard universe's runtime cost, against what the machine does without them.

Usage: python benchmarks/native.py [--megabytes N]

Everything runs on this machine, the channel is a socket pair; small C programs are compiled for it.  Each line has
the figure, the native one or the floor, and their ratio; compare within a line only.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from condor_actors.machine.native_programs import launcher_path, runtime_path
from condor_actors.machine.native_shadow import CHECKPOINT_SIGNAL, EventKind, ShadowHost, Task

CALLS = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static char block[1 << 16];

static int clock_used = CLOCK_MONOTONIC;

static double now(void)
{
    struct timespec t;
    clock_gettime(clock_used, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static int other_end(int count, int answers)
{
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    if (fork() == 0) {
        close(pair[1]);
        if (answers)
            while (read(pair[0], block, 64) > 0 && write(pair[0], block, 16) > 0)
                ;
        else
            for (int i = 0; i < count && write(pair[0], block, sizeof block) > 0; i++)
                ;
        _exit(0);
    }
    close(pair[0]);
    return pair[1];
}

int main(int argc, char **argv)
{
    int n = atoi(argv[2]), fd;
    if (!strcmp(argv[1], "local") || !strcmp(argv[1], "compute")) /* nobody else has a part in these */
        clock_used = CLOCK_PROCESS_CPUTIME_ID;
    double began = now();
    if (!strcmp(argv[1], "local"))
        for (int i = 0; i < n; i++)
            syscall(SYS_getppid);
    if (!strcmp(argv[1], "remote"))
        for (int i = 0; i < n; i++)
            lseek(0, 0, SEEK_CUR);
    if (!strcmp(argv[1], "read"))
        for (fd = open(argv[3], O_RDONLY); read(fd, block, sizeof block) > 0;)
            ;
    if (!strcmp(argv[1], "write")) {
        fd = open(argv[3], O_WRONLY | O_CREAT | O_TRUNC, 0600);
        for (int i = 0; i < n && write(fd, block, sizeof block) > 0; i++)
            ;
    }
    if (!strcmp(argv[1], "compute")) {
        volatile double s = 0;
        for (long i = 0; i < n * 1000000l; i++)
            s += i * 0.5;
    }
    if (!strcmp(argv[1], "pingpong")) {
        fd = other_end(0, 1);
        began = now();
        for (int i = 0; i < n; i++)
            if (write(fd, block, 64) < 0 || read(fd, block, 16) < 0)
                return 1;
    }
    if (!strcmp(argv[1], "stream")) {
        fd = other_end(n, 0);
        began = now();
        while (read(fd, block, sizeof block) > 0)
            ;
    }
    printf("%.9f\n", now() - began);
    return 0;
}
"""

MEMORY = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    size_t size = (size_t)atoi(argv[1]) << 20;
    char *memory = malloc(size), byte;
    for (size_t i = 0; i < size; i += 8)
        *(size_t *)(memory + i) = i * 2654435761u + 1;
    puts("ready");
    fflush(stdout);
    return read(0, &byte, 1) < 0;
}
"""


def compiled(folder: Path, name: str, source: str) -> str:
    """Compile SOURCE and return the program's path."""
    (folder / f"{name}.c").write_text(source)
    subprocess.run(["gcc", "-O2", "-w", "-o", str(folder / name), str(folder / f"{name}.c")], check=True)
    return str(folder / name)


def under_runtime(
    command: list[str], output: int, standard_input: int, image: str | None = None
) -> tuple[ShadowHost, subprocess.Popen[bytes]]:
    """Start COMMAND under the runtime with a shadow in this process."""
    host = ShadowHost()
    ours, theirs = socket.socketpair()
    with theirs:
        task = Task(
            program=command[0],
            arguments=command,
            environment={"PATH": os.environ["PATH"]},
            image=image,
            standard_fds=(standard_input, output, 2),
        )
        host.open(ours, task)
        process = subprocess.Popen([runtime_path(), str(theirs.fileno()), "-", "family"], pass_fds=(theirs.fileno(),))
    return host, process


def until(host: ShadowHost, kind: EventKind) -> int:
    """Wait for an event of KIND; return its value."""
    import select

    while True:
        select.select([host], [], [])
        for event in host.events():
            if event.kind is kind:
                return event.value


def printed_s(command: list[str], remote: bool) -> float:
    """Return the seconds that COMMAND prints as its own measurement."""
    if not remote:
        return float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    with tempfile.TemporaryFile() as output, open("/etc/hostname") as given:
        host, process = under_runtime(command, output.fileno(), given.fileno())
        until(host, EventKind.ENDED)
        process.wait()
        output.seek(0)
        return float(output.read())


def best(measure: Callable[[], float], rounds: int = 3) -> float:
    """Return the least of ROUNDS measurements: the others were disturbed."""
    return min(measure() for _ in range(rounds))


def line(what: str, figure: float, floor: float, unit: str, scale: float = 1.0) -> None:
    """Print one line of the table."""
    print(f"{what:<52} {figure * scale:>10.2f} {floor * scale:>10.2f} {unit:<6} {figure / floor:>7.2f}", flush=True)


def spawn_s(prefix: list[str], count: int = 300) -> float:
    """Return the mean time from spawning a trivial static program to its end."""
    command = [*prefix, TRIVIAL]
    began = time.perf_counter()
    for _ in range(count):
        os.waitpid(os.posix_spawn(command[0], command, {}), 0)
    return (time.perf_counter() - began) / count


TRIVIAL = ""


def calls(program: str, folder: Path, megabytes: int) -> None:
    """Measure calls and streams."""
    count = 100000
    local = best(lambda: printed_s([program, "local", str(count)], True)) / count
    native = best(lambda: printed_s([program, "local", str(count)], False)) / count
    line("call done inside the runtime / native", local, native, "us", 1e6)
    far = best(lambda: printed_s([program, "remote", str(count)], True)) / count
    floor = best(lambda: printed_s([program, "pingpong", str(count)], False)) / count
    line("trivial remote call / ping-pong of two C programs", far, floor, "us", 1e6)
    blocks = megabytes * 16
    data = folder / "data"
    with open(data, "wb") as file:
        for _ in range(megabytes):
            file.write(os.urandom(1 << 20))
    stream = blocks / 16 / best(lambda: printed_s([program, "stream", str(blocks)], False))
    read = megabytes / best(lambda: printed_s([program, "read", "0", str(data)], True))
    line("sequential read, 64 KiB blocks / raw socket stream", read, stream, "MB/s")
    write = megabytes / best(lambda: printed_s([program, "write", str(blocks), str(folder / "out")], True))
    line("sequential write, 64 KiB blocks / raw socket stream", write, stream, "MB/s")
    work = best(lambda: printed_s([program, "compute", "300"], True))
    line("computing / native", work, best(lambda: printed_s([program, "compute", "300"], False)), "s")


def start_of_python() -> None:
    """Measure how long an interpreter takes to begin and end."""
    python = os.path.realpath(sys.executable)

    def remote() -> float:
        null = os.open("/dev/null", os.O_RDWR)
        began = time.perf_counter()
        host, process = under_runtime([python, "-c", "pass"], null, null)
        until(host, EventKind.ENDED)
        process.wait()
        os.close(null)
        return time.perf_counter() - began

    def native() -> float:
        began = time.perf_counter()
        subprocess.run([python, "-c", "pass"], check=True)
        return time.perf_counter() - began

    line("start of python3 -c pass / native", best(remote, 10), best(native, 10), "ms", 1e3)


def checkpoints(program: str, folder: Path, megabytes: int) -> None:
    """Measure writing an image and starting from it."""
    image = folder / "image"
    ready, output = os.pipe()
    given, hold = os.pipe()
    host, process = under_runtime([program, str(megabytes)], output, given, str(image))
    until(host, EventKind.STARTED)
    os.read(ready, 6)
    began = time.perf_counter()
    process.send_signal(CHECKPOINT_SIGNAL)
    until(host, EventKind.IMAGE)
    took = time.perf_counter() - began
    dd = ["dd", f"if={image}", f"of={folder / 'copy'}", "bs=4M", "conv=fsync", "status=none"]
    began = time.perf_counter()
    subprocess.run(dd, check=True)
    line(
        f"checkpoint of {megabytes} MiB / dd of it", megabytes / took, megabytes / (time.perf_counter() - began), "MB/s"
    )
    process.kill()
    process.wait()
    until(host, EventKind.ENDED)
    ours, theirs = socket.socketpair()
    with theirs:
        host.open(ours, Task(program=program, arguments=[program], environment={}, standard_fds=(given, output, 2)))
        began = time.perf_counter()
        process = subprocess.Popen([str(image), str(theirs.fileno()), "-", "family"], pass_fds=(theirs.fileno(),))
        until(host, EventKind.STARTED)
        took = time.perf_counter() - began
    line("restart of it / start of a trivial program", took, spawn_s([]), "ms", 1e3)
    os.write(hold, b"x")
    until(host, EventKind.ENDED)
    process.wait()
    for descriptor in (ready, output, given, hold):
        os.close(descriptor)


def main() -> None:
    """Print the table."""
    global TRIVIAL
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--megabytes", type=int, default=256)
    megabytes = parser.parse_args().megabytes
    where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=where) as name:
        folder = Path(name)
        (folder / "true.c").write_text("int main(void){return 0;}")
        subprocess.run(["gcc", "-static", "-o", str(folder / "true"), str(folder / "true.c")], check=True)
        TRIVIAL = str(folder / "true")
        print(f"{'what / beside what':<52} {'figure':>10} {'beside':>10} {'unit':<6} {'ratio':>7}")
        launch = [launcher_path(), "--new-session", "--rlimit", "core=0", "--"]
        line(
            "spawn through condor_launcher / directly",
            best(lambda: spawn_s(launch)),
            best(lambda: spawn_s([])),
            "ms",
            1e3,
        )
        calls(compiled(folder, "calls", CALLS), folder, megabytes)
        start_of_python()
        checkpoints(compiled(folder, "memory", MEMORY), folder, 1024)


if __name__ == "__main__":
    main()
