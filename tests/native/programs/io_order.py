"""Reads and writes in orders in which something read ahead or written behind would show; prints what it saw."""

import os
import signal
import sys
import threading

BLOCK = bytes(range(256)) * 256


def show(*values: object) -> None:
    print(*values, flush=True)


def own_changes() -> None:
    with open("a", "wb") as file:
        file.write(BLOCK * 40)
    reader = os.open("a", os.O_RDONLY)
    show(len(os.read(reader, 1000)), len(os.read(reader, 100000)))
    writer = os.open("a", os.O_WRONLY)
    os.pwrite(writer, b"X" * 200000, 101000)  # what the reader would have had ahead
    show(os.read(reader, 50000) == b"X" * 50000, os.lseek(reader, 0, os.SEEK_CUR))
    os.ftruncate(writer, 160000)
    show(len(os.read(reader, 1 << 20)), os.read(reader, 10), os.fstat(reader).st_size)
    os.pwrite(writer, b"grown", 160000)
    show(os.read(reader, 10), os.lseek(reader, -5, os.SEEK_END), os.read(reader, 9))
    show(os.pread(reader, 4, 159998), os.lseek(reader, 3, os.SEEK_SET), os.read(reader, 2))


def shared_positions() -> None:
    reader = os.open("a", os.O_RDONLY)
    os.read(reader, 5000)
    other = os.dup(reader)
    show(os.lseek(other, 0, os.SEEK_CUR), os.read(other, 7), os.lseek(reader, 0, os.SEEK_CUR))
    third = os.open("a", os.O_RDONLY)
    os.read(third, 300)
    if (pid := os.fork()) == 0:
        show(os.read(third, 3), os.lseek(reader, 0, os.SEEK_CUR))
        os._exit(0)
    os.waitpid(pid, 0)
    show(os.lseek(third, 0, os.SEEK_CUR), os.read(third, 3))


def killed_writer() -> None:
    if (pid := os.fork()) == 0:
        out = os.open("killed", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for _ in range(60):
            os.write(out, BLOCK)
        os.kill(os.getpid(), signal.SIGKILL)
    show(os.waitpid(pid, 0)[1], os.stat("killed").st_size)


def told_by_a_pipe() -> None:
    with open("p", "wb") as file:
        file.write(b"old" * 30000)
    reader = os.open("p", os.O_RDONLY)
    os.read(reader, 10)
    there, here = os.pipe()
    if (pid := os.fork()) == 0:
        with open("p", "r+b") as file:
            file.write(b"new" * 30000)
        os.write(here, b".")
        os._exit(0)
    os.read(there, 1)
    show(os.pread(reader, 6, 30), os.fstat(reader).st_size)
    os.waitpid(pid, 0)


def names_after_writing() -> None:
    out = os.open("n", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(out, BLOCK)
    show(os.stat("n").st_size, os.path.getsize("n"))
    os.rename("n", "m")
    os.write(out, b"tail")
    os.close(out)
    show(os.stat("m").st_size, os.path.exists("n"))
    with open("m", "rb") as file:
        show(len(file.read()), file.read())


def threads() -> None:
    with open("t", "wb") as file:
        file.write(b"".join(b"%07d\n" % i for i in range(100000)))
    found: list[int] = []
    reader = os.open("t", os.O_RDONLY)

    def read_some() -> None:
        while piece := os.read(reader, 8 * 100):
            found.extend(int(line) for line in piece.split())

    several = [threading.Thread(target=read_some) for _ in range(4)]
    [thread.start() for thread in several]
    [thread.join() for thread in several]
    show(len(found), sorted(found) == list(range(100000)))


def rest_after_exec() -> None:
    reader = os.open("t", os.O_RDONLY)
    os.read(reader, 8 * 99990)
    os.dup2(reader, 0)
    os.execv("/bin/cat", ["cat"])


for step in (own_changes, shared_positions, killed_writer, told_by_a_pipe, names_after_writing, threads):
    step()
sys.stdout.flush()
rest_after_exec()
