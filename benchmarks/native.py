"""What the launcher and the standard universe cost, against what the machine does without them.

Usage: python benchmarks/native.py [--megabytes N] [--jobs N] [--only WORD]

Everything runs on this machine; small C programs are compiled for it.  Each line has the figure, the native one or the
floor, their ratio, and what the ratio (or, where the aim has a unit, the figure) is to be.  The two are measured in
turns, so compare within a line only; both ends of a single call, and of its floor, share one processor, at real-time
priority where that is allowed.  Delays are made by a relay that keeps every piece for half the round trip
(benchmarks/delay.c).  All of it takes some five minutes of an idle machine; the last line says which aims were missed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from condor_actors.machine.native.image import full_image
from condor_actors.machine.native.programs import launcher_path, runtime_path
from condor_actors.machine.native.shadow import EventKind, ShadowEvent, ShadowHost, Task
from condor_actors.messages.codes import CHECKPOINT_SIGNAL
from tests.pool_fixture import PersonalPool, fresh_folder

HERE = Path(__file__).resolve().parent
DELAYS_MS = (0.2, 1.0, 20.0)
JOB_S = 600.0
CHECKPOINTS = 10

host = ShadowHost()
missed: list[str] = []


def compiled(folder: Path, name: str) -> str:
    """Compile NAME.c of this folder and return the program's path."""
    subprocess.run(["gcc", "-O2", "-w", "-o", str(folder / name), str(HERE / f"{name}.c"), "-lpthread"], check=True)
    return str(folder / name)


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    """Return two ends of a connection over loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        one = socket.create_connection(listener.getsockname())
        two, _ = listener.accept()
    for end in (one, two):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return one, two


class Remote:
    """One program under the runtime, with a session of this process."""

    def __init__(
        self,
        command: list[str],
        *,
        standard: tuple[int, int],
        tcp: bool = False,
        delay: tuple[str, float] | None = None,
        encrypted: bool = False,
        image: str | None = None,
        executable: str | None = None,
    ) -> None:
        self.cpu_s = 0.0
        ours, theirs = tcp_pair() if tcp else socket.socketpair()
        self.relay: subprocess.Popen[bytes] | None = None
        if delay:
            near, far = socket.socketpair()
            words = [delay[0], str(theirs.fileno()), str(near.fileno()), str(int(delay[1] * 500))]
            self.relay = subprocess.Popen(words, pass_fds=(theirs.fileno(), near.fileno()))
            theirs.close()
            near.close()
            theirs = far
        key = os.urandom(32) if encrypted else None
        reader, writer = os.pipe()
        os.write(writer, key or b"")
        os.close(writer)
        task = Task(
            program=command[0],
            arguments=command,
            environment={"PATH": os.environ["PATH"]},
            image=image,
            standard_fds=(standard[0], standard[1], 2),
            key=key,
            increments=1,
        )
        self.session = host.open(ours, task)
        words = [executable or runtime_path(), str(theirs.fileno()), "-", "family"]
        self.process = subprocess.Popen([*words, f"key={reader}"] if key else words, pass_fds=(theirs.fileno(), reader))
        theirs.close()
        os.close(reader)

    def until(self, *kinds: EventKind) -> ShadowEvent:
        """Return the next event of one of KINDS."""
        while True:
            select.select([host], [], [])
            for event in host.events():
                if event.session == self.session:
                    if event.kind in (EventKind.EXITED, EventKind.LOST):
                        self.cpu_s = host.statistics(self.session).served_ns / 1e9
                    if event.kind in kinds:
                        return event

    def finish(self) -> None:
        """Wait for its end."""
        self.until(EventKind.ENDED)
        self.process.wait()
        if self.relay:
            self.relay.kill()
            self.relay.wait()

    def checkpoint_s(self) -> tuple[float, ShadowEvent]:
        """Take a checkpoint; return the seconds it took and its event."""
        began = time.perf_counter()
        self.process.send_signal(CHECKPOINT_SIGNAL)
        event = self.until(EventKind.IMAGE, EventKind.INCREMENT, EventKind.NO_IMAGE)
        return time.perf_counter() - began, event


@contextlib.contextmanager
def nothing() -> Iterator[int]:
    """Yield a descriptor of /dev/null."""
    descriptor = os.open(os.devnull, os.O_RDWR)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def printed_s(command: list[str], remote: bool = True, **options: object) -> float:
    """Return the seconds that COMMAND prints as its own measurement."""
    if not remote:
        return float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    with tempfile.TemporaryFile() as output, nothing() as given:
        Remote(command, standard=(given, output.fileno()), **options).finish()  # type: ignore[arg-type]
        output.seek(0)
        return float(output.read())


def taken_s(command: list[str], remote: bool = True, **options: object) -> float:
    """Return the seconds from starting COMMAND to its end."""
    with nothing() as null:
        began = time.perf_counter()
        if remote:
            Remote(command, standard=(null, null), **options).finish()  # type: ignore[arg-type]
        else:
            subprocess.run(command, stdout=null, check=True)
        return time.perf_counter() - began


def in_turns(*measures: Callable[[], float], rounds: int = 5) -> list[float]:
    """Return the least of ROUNDS measurements of each, taken in turns: the others were disturbed."""
    best = [float("inf")] * len(measures)
    for _ in range(rounds):
        best = [min(least, measure()) for least, measure in zip(best, measures, strict=True)]
    return best


def line(what: str, figure: float, floor: float, unit: str, scale: float = 1.0, aim: str = "") -> None:
    """Print one line of the table; AIM: ``<= 1.5`` of the ratio, ``<= 60 ms`` of the figure."""
    verdict = ""
    if aim:
        relation, limit, *with_unit = aim.split()
        found = figure * scale if with_unit else figure / floor
        kept = found <= float(limit) if relation == "<=" else found >= float(limit)
        verdict = f"  {aim:<10} {'yes' if kept else 'NO'}"
        if not kept:
            missed.append(what)
    print(f"{what:<66} {figure * scale:>10.2f} {floor * scale:>10.2f} {unit:<5} {figure / floor:>8.3f}{verdict}",
          flush=True)


def spawn_s(prefix: list[str], trivial: str, count: int = 300) -> float:
    """Return the mean time from spawning a trivial static program to its end."""
    command = [*prefix, trivial]
    began = time.perf_counter()
    for _ in range(count):
        os.waitpid(os.posix_spawn(command[0], command, {}), 0)
    return (time.perf_counter() - began) / count


def trivial_program(folder: Path) -> str:
    """Return a program that ends at once."""
    (folder / "true.c").write_text("int main(void){return 0;}")
    subprocess.run(["gcc", "-static", "-o", str(folder / "true"), str(folder / "true.c")], check=True)
    return str(folder / "true")


def launching(folder: Path, _megabytes: int, _jobs: int) -> None:
    """Measure the launcher."""
    trivial = trivial_program(folder)
    launch = [launcher_path(), "--new-session", "--rlimit", "core=0", "--"]
    through, directly = in_turns(lambda: spawn_s(launch, trivial), lambda: spawn_s([], trivial))
    line("spawn through condor_launcher / directly", through, directly, "ms", 1e3)


@contextlib.contextmanager
def one_processor() -> Iterator[None]:
    """Keep what is started meanwhile, threads and processes, on one processor: both ends of what is compared.

    Left to the scheduler, a ping-pong between two processors takes several times as long as one on a single one, and
    which of them it is changes from run to run.  Where the machine allows it nothing else comes in between.
    """
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(0, before)


def calls(folder: Path, _megabytes: int, _jobs: int) -> None:
    """Measure single calls."""
    program, count = compiled(folder, "calls"), 5000  # short turns, many of them: some are undisturbed
    text = str(count)
    with one_processor():
        found = in_turns(
            lambda: printed_s([program, "local", text]),
            lambda: printed_s([program, "local", text], remote=False),
            lambda: printed_s([program, "remote", text]),
            lambda: printed_s([program, "pingpong", text], remote=False),
            lambda: printed_s([program, "remote", text], tcp=True),
            lambda: printed_s([program, "remote", text], tcp=True, encrypted=True),
            lambda: printed_s([program, "pingpong", text, "tcp"], remote=False),
            rounds=30,
        )
    local, native, far, floor, far_tcp, sealed, floor_tcp = (value / count for value in found)
    line("call done inside the runtime / native", local, native, "us", 1e6)
    line("trivial remote call / C ping-pong, both on socket pairs", far, floor, "us", 1e6, "<= 1.5")
    line("trivial remote call / C ping-pong, both on TCP", far_tcp, floor_tcp, "us", 1e6, "<= 1.5")
    line("the same, encrypted", sealed, floor_tcp, "us", 1e6, "<= 3")
    work, native = in_turns(
        lambda: printed_s([program, "compute", "300"]), lambda: printed_s([program, "compute", "300"], remote=False)
    )
    line("speed of computing / native", 1 / work, 1 / native, "1/s", 1.0, ">= 0.99")


def a_file(folder: Path, megabytes: int) -> Path:
    """Return a file of random bytes."""
    data = folder / "data"
    if not data.exists() or data.stat().st_size != megabytes << 20:
        with data.open("wb") as file:
            for _ in range(megabytes):
                file.write(os.urandom(1 << 20))
    return data


def streams(folder: Path, megabytes: int, _jobs: int) -> None:
    """Measure reading and writing in order."""
    program, data, blocks = compiled(folder, "calls"), a_file(folder, megabytes), megabytes * 16
    read, write = [program, "read", "0", str(data)], [program, "write", str(blocks), str(folder / "out")]
    found = in_turns(
        lambda: printed_s([program, "stream", str(blocks), "tcp"], remote=False),
        lambda: printed_s([program, "carry", str(blocks), str(data), "/dev/null"], remote=False),
        lambda: printed_s([program, "carry", str(blocks), "/dev/zero", str(folder / "out")], remote=False),
        lambda: printed_s(read, tcp=True),
        lambda: printed_s(write, tcp=True),
        lambda: printed_s(read, tcp=True, encrypted=True),
        lambda: printed_s(write, tcp=True, encrypted=True),
    )
    raw, from_file, to_file, reading, writing, reading_sealed, writing_sealed = (megabytes / value for value in found)
    line("sequential read, 64 KiB blocks / file sent through raw TCP", reading, from_file, "MB/s", 1.0, ">= 0.6")
    line("the same / one block sent through raw TCP again and again", reading, raw, "MB/s")
    line("the same, encrypted / file sent through raw TCP", reading_sealed, from_file, "MB/s")
    line("sequential write, 64 KiB blocks / raw TCP into a file", writing, to_file, "MB/s", 1.0, ">= 0.6")
    line("the same / one block sent through raw TCP again and again", writing, raw, "MB/s")
    line("the same, encrypted / raw TCP into a file", writing_sealed, to_file, "MB/s")


def starting(folder: Path, _megabytes: int, _jobs: int) -> None:
    """Measure how long an interpreter takes to begin and end, the first time and later."""
    relay, python = compiled(folder, "delay"), [os.path.realpath(sys.executable), "-S", "-c", "pass"]
    (native,) = in_turns(lambda: taken_s(python, remote=False))
    first = taken_s(python)
    line("start of python3 -c pass, first on a host / native", first, native, "ms", 1e3)
    line("start of python3 -c pass, later / native", in_turns(lambda: taken_s(python))[0], native, "ms", 1e3)
    for delay in DELAYS_MS:
        (later,) = in_turns(lambda delay=delay: taken_s(python, delay=(relay, delay)))  # type: ignore[misc]
        line(f"start of python3 -c pass, later, {delay} ms round trip / native", later, native, "ms", 1e3,
             "<= 60 ms" if delay == 1.0 else "")


def distances(folder: Path, megabytes: int, _jobs: int) -> None:
    """Measure reading and writing over wires with delays."""
    for delay in DELAYS_MS:
        distance(folder, delay, 1024 if delay == 1.0 else megabytes)


def distance(folder: Path, delay: float, megabytes: int) -> None:
    """Measure reading and writing over a wire with a delay of so many milliseconds."""
    program, data = compiled(folder, "calls"), a_file(folder, megabytes)
    wire = (compiled(folder, "delay"), delay)
    digest = ["/usr/bin/md5sum", str(data)]
    far, near = in_turns(lambda: taken_s(digest, delay=wire), lambda: taken_s(digest, remote=False), rounds=3)
    line(f"md5sum of {megabytes} MiB, {delay} ms round trip / native", far, near, "s", 1.0,
         "<= 1.3" if delay == 1.0 else "")
    count = 200
    random = [program, "random", str(count), str(data), str(megabytes * 256)]
    (took,) = in_turns(lambda: printed_s(random, delay=wire), rounds=2)
    line(f"random read of 4 KiB, {delay} ms round trip / round trip", took / count, delay / 1e3, "ms", 1e3)
    write = [program, "write", str(1024), str(folder / "out")]
    far, near = in_turns(lambda: taken_s(write, delay=wire), lambda: taken_s(write, remote=False), rounds=2)
    line(f"writing 64 MiB, {delay} ms round trip / native", far, near, "s")


def checkpoints(folder: Path, _megabytes: int, _jobs: int) -> None:
    """Measure writing images and starting from one."""
    program, image, megabytes = compiled(folder, "memory"), folder / "image", 1024
    ready, output = os.pipe()
    given, more = os.pipe()
    remote = Remote([program, str(megabytes)], standard=(given, output), image=str(image))
    os.read(ready, 1)
    whole_s, event = remote.checkpoint_s()
    assert event.kind is EventKind.IMAGE, event
    began = time.perf_counter()
    dd = ["dd", f"if={image}", f"of={folder / 'copy'}", "bs=4M", "conv=fsync", "status=none"]
    subprocess.run(dd, check=True)
    dd_s = time.perf_counter() - began
    (folder / "copy").unlink()
    line(f"checkpoint of {megabytes} MiB / dd of it", megabytes / whole_s, megabytes / dd_s, "MB/s", 1.0, ">= 0.8")
    os.write(more, b"x")
    os.read(ready, 1)
    some_s, event = remote.checkpoint_s()
    if event.kind is EventKind.INCREMENT:
        line("incremental checkpoint, 1 % of the pages changed / whole one", some_s, whole_s, "ms", 1e3,
             "<= 0.05")
        began = time.perf_counter()
        full_image(str(image), event.text, str(image))
        line("whole image of the two / dd of it", time.perf_counter() - began, dd_s, "ms", 1e3)
        os.unlink(event.text)
    remote.process.kill()
    remote.finish()
    trivial = trivial_program(folder)
    starts = []
    for _ in range(5):
        began = time.perf_counter()
        again = Remote([program], standard=(given, output), executable=str(image))
        again.until(EventKind.STARTED)
        starts.append(time.perf_counter() - began)
        again.process.kill()
        again.finish()
    line("restart of it / start of a trivial program", min(starts), spawn_s([], trivial), "ms", 1e3, "<= 2 ms")
    for descriptor in (ready, output, given, more):
        os.close(descriptor)
    image.unlink()


def leverage(folder: Path, megabytes: int, _jobs: int) -> None:
    """Measure processor time at home for a job of ten minutes, from a shorter one with the same calls."""
    program, data = compiled(folder, "calls"), a_file(folder, megabytes)
    image = folder / "image"

    def home_s(command: list[str], images: int) -> float:
        with nothing() as null:
            remote = Remote(command, standard=(null, null), image=str(image))
            remote.until(EventKind.STARTED)
            for _ in range(images):
                remote.checkpoint_s()
            remote.finish()
            return remote.cpu_s

    compute_s = home_s([program, "compute", "2000"], CHECKPOINTS)
    line("leverage of a 10-minute job, a checkpoint each minute / 1300", JOB_S / compute_s, 1300, "", 1.0, ">= 1")
    job = [program, "job", "70000", str(data), str(folder / "out")]
    scale = 1024 / megabytes
    io_s = home_s(job, 0) * scale + compute_s
    line("leverage of one that also reads 1 GiB and writes 100 MiB / 100", JOB_S / io_s, 100, "", 1.0, ">= 1")


def resident_kib() -> int:
    """Return this process's own resident memory."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(text.split()[1]) for text in lines if text.startswith("Private_"))


def until_settled() -> int:
    """Return the resident memory when it falls no more: sessions of which nothing is heard give theirs back."""
    seen = [resident_kib()]
    while len(seen) < 40 and (len(seen) < 6 or seen[-6] > seen[-1]):
        select.select([], [], [], 0.5)  # between two looks
        seen.append(resident_kib())
    return seen[-1]


def many_jobs(folder: Path, _megabytes: int, jobs: int) -> None:
    """Measure a host's memory per running job."""
    (folder / "pause.c").write_text("#include <unistd.h>\nint main(void){char c;read(0,&c,0);return pause();}")
    subprocess.run(["gcc", "-O2", "-o", str(folder / "pause"), str(folder / "pause.c")], check=True)
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    before = resident_kib()
    with nothing() as null:
        running = [Remote([str(folder / "pause")], standard=(null, null)) for _ in range(jobs)]
        started = 0
        while started < jobs:
            select.select([host], [], [])
            started += sum(event.kind is EventKind.STARTED for event in host.events())
        settled = until_settled()
        line(f"resident memory of a shadow host per running job, {jobs} jobs / 100 KiB",
             (settled - before) / jobs, 100, "KiB", 1.0, "<= 1")  # fmt: skip
        for remote in running:
            remote.process.kill()
        ended = 0
        while ended < jobs:
            select.select([host], [], [])
            ended += sum(event.kind is EventKind.ENDED for event in host.events())
        for remote in running:
            remote.process.wait()


def pool(folder: Path, _megabytes: int, _jobs: int) -> None:
    """Measure a call of a job in a real pool, over TLS's own connection, and what the pool's processes pay for it."""
    program, count = compiled(folder, "calls"), 20000
    folder.chmod(0o755)
    with fresh_folder() as place:
        personal = PersonalPool(place, slots=1)
        try:
            for calls in (100, count):  # the first run starts the hosts
                before = {pid: cpu_s(pid) for pid in personal.processes()}
                personal.submit(f"universe = standard\nexecutable = {program}\narguments = remote {calls}\n"
                                f"output = out\nlog = log.{calls}\nqueue\n")
                personal.wait(f"log.{calls}")
                paid = sum(cpu_s(pid) - before.get(pid, 0.0) for pid, command in personal.processes().items()
                           if "-host" in command)
            took = float((personal.work / "out").read_text())
            floor = printed_s([program, "pingpong", str(count), "tcp"], remote=False)
            line("remote call of a job in a pool / C ping-pong on TCP", took / count, floor / count, "us", 1e6, "<= 3")
            line("processor time of both hosts for each / C ping-pong on TCP", paid / count, floor / count, "us", 1e6)
            script = personal.work / "helper.sh"
            script.write_text(f"{program} remote {count}\necho\n")  # something after it: no exec in place
            personal.submit(f"universe = standard\nexecutable = /bin/sh\narguments = {script}\n"
                            "output = out\nlog = log.helper\nqueue\n")
            personal.wait("log.helper")
            took = float((personal.work / "out").read_text())
            line("remote call of its helper / C ping-pong on TCP", took / count, floor / count, "us", 1e6, "<= 3")
        finally:
            personal.stop()


def cpu_s(pid: int) -> float:
    """Return the processor time of a process so far."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


PARTS = (launching, calls, streams, starting, distances, checkpoints, leverage, many_jobs, pool)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--only", default="", help="part of a function's name")
    options = parser.parse_args()
    where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=where) as name:
        print(f"{'what / beside what':<66} {'figure':>10} {'beside':>10} {'unit':<5} {'ratio':>8}  {'aim':<10} kept")
        for part in PARTS:
            if options.only in part.__name__:
                part(Path(name), options.megabytes, options.jobs)
    print(f"missed: {'; '.join(missed) or 'none'}")


if __name__ == "__main__":
    main()
