"""What may break does break while jobs of the standard universe run in a real pool: wires, disks, whole machines.

The program goes on from its last checkpoint, or waits, or begins anew; its output and files are those of an
undisturbed run, its end is recorded once, and nothing of it is left.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.harness.standard_jobs import NEED_RUNTIME, Job
from tests.pool_fixture import PersonalPool, fresh_folder, small_file_system, until

pytestmark = NEED_RUNTIME


# ---- the wire


class Wire(threading.Thread):
    """Carries every connection to its port on to the same port of ``there``, and cuts all of them when so many bytes
    more have passed."""

    def __init__(self, here: str, there: str) -> None:
        super().__init__(daemon=True)
        self._door = socket.create_server((here, 0))
        self.port = self._door.getsockname()[1]
        self._there = (there, self.port)
        try:
            with socket.socket() as probe:
                probe.bind(self._there)
        except OSError:
            self._door.close()
            raise
        self._others: dict[socket.socket, socket.socket] = {}
        self._left = -1
        self.cuts = 0
        self._over, self._end = os.pipe()
        self.start()

    def cut_after(self, count: int) -> None:
        """From now on."""
        self._left = count

    def run(self) -> None:
        while True:
            ready, _, _ = select.select([self._over, self._door, *self._others], [], [])
            if self._over in ready:
                break
            for each in ready:
                if each is self._door:
                    self._connect()
                elif each in self._others:
                    self._carry(each)
        self._hang_up()
        self._door.close()

    def _connect(self) -> None:
        one, _ = self._door.accept()
        try:
            two = socket.create_connection(self._there)
        except OSError:
            one.close()
            return
        self._others |= {one: two, two: one}

    def _carry(self, end: socket.socket) -> None:
        other = self._others[end]
        try:
            data = end.recv(65536 if self._left < 0 else max(1, min(65536, self._left)))
            other.sendall(data)
        except OSError:
            data = b""
        if not data:
            for each in (end, other):
                del self._others[each]
                each.close()
        elif self._left >= 0:
            self._left -= len(data)
            if self._left <= 0:
                self._left = -1
                self._hang_up()
                self.cuts += 1

    def _hang_up(self) -> None:
        for each in self._others:
            each.close()
        self._others.clear()

    def stop(self) -> None:
        os.write(self._end, b"x")
        self.join()
        os.close(self._over)
        os.close(self._end)


@pytest.fixture
def wired() -> Iterator[tuple[PersonalPool, Wire]]:
    """A pool whose shadows reach the starter host over a wire that can be cut."""
    for _ in range(20):
        with contextlib.suppress(OSError):
            wire = Wire("127.0.0.1", "127.0.0.2")
            break
    else:
        pytest.skip("this machine has one loopback address only")
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=1, config=f"""
            STARTER_HOST_PORT = {wire.port}
            STARTER_HOST.NETWORK_INTERFACE = 127.0.0.2
            STARTER_HOST.TCP_FORWARDING_HOST = 127.0.0.1
        """)
        try:
            yield pool, wire
            pool.stop()
        finally:
            wire.stop()


LEAST_BYTES = {"call": 3000, "checkpoint": 250_000, "vacate": 8_000_000}
"""What passes at least: by and by, while a checkpoint goes home, and until the program has begun again from its own."""


def cut_again_and_again(pool: PersonalPool, wire: Wire, seed: int, count: int) -> None:
    """Cut the wire COUNT times: in a call, in a checkpoint that leaves the machine or comes to it."""
    random = Random(seed)
    pauses = [3 * number + 2 for number in range(count)]
    steps = pauses[-1] + 3
    job = Job(pool, "cut", " ".join(map(str, [steps, *pauses])))
    for number, pause in enumerate(pauses):
        job.until_lines(pause + 1)
        if number % 3 == 1:
            job.checkpoint()
        starts = job.text("job.log").count("001 (")
        what = random.choice(tuple(LEAST_BYTES))
        wire.cut_after(random.randrange(1, LEAST_BYTES[what]))
        if what == "checkpoint":
            pool.tool("condor_checkpoint", "job", job.id)  # may find the wire cut already: the program calls meanwhile
        elif what == "vacate":
            pool.tool("condor_vacate_job", job.id)
        until(lambda number=number: wire.cuts > number, f"cut {number} in a {what}")  # type: ignore[misc]
        job.until_logged("001 (", starts + 1)
        job.go_on(pause)
    job.wait()
    job.check(steps)


def test_a_wire_that_is_cut_anywhere(wired: tuple[PersonalPool, Wire]) -> None:
    cut_again_and_again(*wired, seed=1988, count=5)


@pytest.mark.soak
def test_a_wire_that_is_cut_a_hundred_times(wired: tuple[PersonalPool, Wire]) -> None:
    cut_again_and_again(*wired, seed=1989, count=100)


# ---- the disks


@pytest.fixture
def small_disk() -> Iterator[Path]:
    with small_file_system("64m") as folder:
        yield folder


@contextlib.contextmanager
def full(disk: Path, but: int = 0) -> Iterator[None]:
    """While there is no room but so many bytes."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)
    if but:
        os.truncate(filler, filler.stat().st_size - but)
    try:
        yield
    finally:
        filler.unlink()


def problem_of(job: Job) -> str:
    """Why the last checkpoint was not taken."""
    return str(job.pool.jobs(job.id, "-attributes", "LastCkptProblem")[0].get("LastCkptProblem", ""))


@pytest.mark.parametrize("end", ["EXECUTE", "SPOOL"])
def test_no_room_for_a_checkpoint(small_disk: Path, end: str) -> None:
    with fresh_folder() as folder:
        if end == "EXECUTE":
            small_disk.chmod(0o1777)
        pool = PersonalPool(folder, slots=1, config=f"{end} = {small_disk}\nRESERVED_DISK = 0\n")
        try:
            job = Job(pool, "noroom", "14 4 9", request_disk="1MB")
            job.until_lines(5)
            job.checkpoint()
            with full(small_disk, but=1 << 20):
                refused = pool.tool("condor_checkpoint", "job", job.id)
                until(lambda: problem_of(job), "a checkpoint that found no room")
                assert refused.returncode == 1, refused
                job.go_on(4)
                job.until_lines(10)  # it goes on all the same
            job.checkpoint()
            pool.run("condor_vacate_job", job.id)
            job.until_logged("004 (")
            job.go_on(9)
            job.wait()
            job.check(14)
            assert pool.history(job.id)[0]["NumRestarts"] == 1
        finally:
            pool.stop()


@pytest.mark.parametrize("end", ["EXECUTE", "SPOOL"])
def test_who_has_to_go_is_asked_again_when_there_was_no_room(small_disk: Path, end: str) -> None:
    """The program leaves with its work as soon as it can be saved."""
    with fresh_folder() as folder:
        if end == "EXECUTE":
            small_disk.chmod(0o1777)
        pool = PersonalPool(folder, slots=1, config=f"{end} = {small_disk}\nRESERVED_DISK = 0\n")
        try:
            job = Job(pool, "asked", "8 4", request_disk="1MB")
            job.until_lines(5)
            with full(small_disk, but=1 << 20):
                pool.tool("condor_vacate_job", job.id)
                until(lambda: problem_of(job), "a checkpoint that found no room")
            job.until_logged("(1) Job was checkpointed.")
            job.go_on(4)
            job.wait()
            job.check(8)
            assert pool.history(job.id)[0]["NumRestarts"] == 1
        finally:
            pool.stop()


HOLDS = """import os, time
file = os.open("one", os.O_RDWR | os.O_CREAT)
os.mkdir("elsewhere")
os.link("one", "elsewhere/other")
os.unlink("one")  # it is open, and has a name in another folder only: no checkpoint is taken
print("open", flush=True)
while not os.path.exists("gate"):
    time.sleep(0.05)
os.close(file)
while not os.path.exists("end"):
    time.sleep(0.05)
print("end", flush=True)
"""


def test_who_has_to_go_is_asked_again_when_what_was_open_is_closed(own_pool: PersonalPool) -> None:
    """What the description of its files refuses is said to its starter, too, which asks again."""
    work = own_pool.work
    (work / "holds.py").write_text(HOLDS)
    cluster = own_pool.submit("universe = standard\nexecutable = /usr/bin/python3\narguments = holds.py\n"
                              "output = holds.out\nlog = holds.log\nqueue\n")
    until(lambda: (work / "holds.out").exists() and (work / "holds.out").read_text(), "the file to be open")
    own_pool.run("condor_vacate_job", f"{cluster}.0")
    until(lambda: "cannot be checkpointed now" in (work / "holds.log").read_text(), "the refusal")
    (work / "gate").touch()
    until(lambda: "(1) Job was checkpointed." in (work / "holds.log").read_text(), "the checkpoint with which it goes")
    (work / "end").touch()
    own_pool.wait("holds.log")
    assert (work / "holds.out").read_text() == "open\nend\n"
    assert own_pool.history(f"{cluster}.0")[0]["NumRestarts"] == 1


def test_no_room_to_note_what_a_program_changes(small_disk: Path) -> None:
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=1, config=f"SPOOL = {small_disk}\n")
        try:
            job = Job(pool, "nojournal", "14 4 9")
            job.until_lines(5)
            job.checkpoint()
            with full(small_disk):
                job.go_on(4)  # its next write has to wait
                logs = pool.dir / "log"  # the queue cannot note it
                until(lambda: any("no room to note" in path.read_text() for path in logs.glob("ShadowHostLog*")),
                      "that it waits for room")
                before = job.text("out")
            assert len(before.splitlines()) < 10
            job.until_lines(10)
            pool.kill("starter-host")
            job.until_logged("001 (", 2)
            job.go_on(9)
            job.wait()
            job.check(14)
        finally:
            pool.stop()


# ---- power


def test_a_write_at_home_that_the_program_does_not_ask_for(small_disk: Path, own_pool: PersonalPool) -> None:
    """Neither the program nor the shell that runs it would have noticed; nothing more is believed of the rest."""
    source = Path(__file__).parents[1] / "native/programs/lost_write.c"
    subprocess.run(["gcc", "-w", "-o", "lost_write", source], cwd=own_pool.work, check=True)
    small_disk.chmod(0o1777)
    script = own_pool.work / "lost.sh"
    script.write_text(f"#!/bin/sh\n./lost_write exit {small_disk}/out || exit 9\n")
    script.chmod(0o755)
    with full(small_disk):
        cluster = own_pool.submit("universe = standard\nexecutable = lost.sh\nlog = lost.log\nqueue\n")
        own_pool.wait("lost.log")
    assert own_pool.history(str(cluster))[0]["ExitCode"] == 9
    said = f"{small_disk}/out: a write failed that the program was not told of: No space left on device"
    assert said in (own_pool.work / "lost.log").read_text()


def test_everything_dies_at_once(own_pool: PersonalPool) -> None:
    job = Job(own_pool, "power", "16 5 10")
    job.until_lines(6)
    job.checkpoint()
    job.go_on(5)
    job.until_lines(11)
    own_pool.power_off()
    until(lambda: not own_pool.processes(), "everything to be dead")
    own_pool.run("condor_personal", "start", "--dir", str(own_pool.dir))
    job.until_logged("001 (", 2)
    job.go_on(10)
    job.wait()
    job.check(16)
