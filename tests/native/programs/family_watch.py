"""Looks at its family's processes, as ps does and with ps; says what it finds by names that are the same each time."""

import contextlib
import ctypes
import os
import subprocess
import sys
import threading
import time

NAME_OF_THREAD = 15


def fields(pid: int, thread: str = "") -> list[str]:
    """Return what stat says of PID, its name first."""
    with open(f"/proc/{pid}{thread}/stat") as file:
        front, back = file.read().rsplit(")", 1)
    return [front.split("(", 1)[1], *back.split()]


def status(pid: int) -> dict[str, str]:
    """Return the lines of status of PID."""
    with open(f"/proc/{pid}/status") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def arguments(pid: int) -> bytes:
    """Return what PID was started with."""
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()


def look(people: dict[int, str]) -> None:
    """Say who is there."""
    there = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
    print([people[pid] for pid in there if pid in people])
    for pid, who in people.items():
        name, _state, parent, group, session, *_rest = fields(pid)
        told = status(pid)
        print(who, name, *(people.get(int(number), "-") for number in (parent, group, session) if who != "I"))
        with open(f"/proc/{pid}/comm") as file:
            print(
                told["Name"],
                people.get(int(told["PPid"]), "-"),
                told["Uid"],
                arguments(pid).split(b"\0")[1:],
                file.read(),
            )
        print(os.path.basename(os.readlink(f"/proc/{pid}/exe")), os.path.basename(os.readlink(f"/proc/{pid}/cwd")))
        print(
            os.stat(f"/proc/{pid}").st_uid == os.getuid(),
            os.path.isdir(f"/proc/{pid}/task"),
            os.access(f"/proc/{pid}/stat", os.R_OK),
        )
        assert "stat" in os.listdir(f"/proc/{pid}"), who
        assert str(pid) in os.listdir(f"/proc/{pid}/task"), who
        if who == "I":
            assert int(fields(pid)[18]) == len(os.listdir("/proc/self/task"))


def commands(people: dict[int, str]) -> None:
    """Say what the usual commands find."""
    numbers = ",".join(map(str, people))
    lines = subprocess.run(
        ["ps", "-o", "pid=,ppid=,pgid=,sid=,comm=", "-p", numbers], capture_output=True, text=True, check=True
    )
    for line in lines.stdout.splitlines():
        pid, parent, *rest, name = line.split()
        print(
            people[int(pid)],
            people.get(int(parent), "-"),
            *(people.get(int(one), "-") for one in rest if pid != str(os.getpid())),
            name,
        )
    found = subprocess.run(
        ["pgrep", "-P", str(os.getpid()), "a_script|sleep"], capture_output=True, text=True, check=True
    )
    print([people.get(int(pid), "-") for pid in found.stdout.split()])
    print(
        subprocess.run(
            ["pstree", "-A", str(next(iter(people)))], capture_output=True, text=True, check=True
        ).stdout.count("sleep")
    )
    lines = subprocess.run(
        ["top", "-b", "-n1", "-w200", "-p", numbers],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HOME": "/"},
    )
    print(
        sorted(
            line.split()[-1]
            for line in lines.stdout.splitlines()
            if line.split()[:1] and line.split()[0] in numbers.split(",")
        )
    )


def started(people: dict[int, str]) -> list[int]:
    """Return when each began, in ticks."""
    return [int(fields(pid)[20]) for pid in people]


def main() -> None:
    """Start some, and look at them time and again."""
    rest_s = int(sys.argv[1]) / 1000
    with open("a_script", "w") as file:
        file.write("#!/bin/sh\necho\nread line\n")
    os.chmod("a_script", 0o755)
    script = subprocess.Popen(["./a_script", "one", ""], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    script.stdout.readline()
    leader = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    others = subprocess.Popen(["sleep", "1001"], process_group=0)
    people = {os.getpid(): "I", script.pid: "script", leader.pid: "leader", others.pid: "other"}
    over = threading.Event()
    thread = threading.Thread(target=over.wait, daemon=True)
    thread.start()
    ctypes.CDLL(None).prctl(NAME_OF_THREAD, b"a name", 0, 0, 0)
    for pid in people:
        while not arguments(pid):  # there is a moment of an exec without any
            os.sched_yield()
    began = started(people)
    listing = os.open("/proc/self/task", os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(4):
        look(people)
        time.sleep(rest_s)
        commands(people)
        print([abs(now - then) <= 1 for now, then in zip(started(people), began, strict=True)])
        time.sleep(rest_s)
        sys.stdout.flush()
    print(sorted(map(int, os.listdir(listing)))[0] == os.getpid(), oct(os.fstat(listing).st_mode))
    over.set()
    thread.join()
    print(sorted(os.listdir("/proc/self/fd"))[:3], os.listdir("/proc/self/fdinfo").count("1"))
    for child in (script, leader, others):
        child.kill()
        child.wait()
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields(child.pid)
            print("is there still")
    for name in ("/proc/4194304/stat", f"/proc/{os.getpid()}/no", "/proc/self/task/4194303/stat"):
        print(os.path.exists(name))


main()
