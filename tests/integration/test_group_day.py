"""A day of a group that works on genomes: an image, reference data, GPUs, desks whose owners come back.

The jobs of the day are beside each other in one pool: most run in an image and read the same reference; some of them
want a GPU; two ask for less memory than they use and are mended by their policy; others are vanilla jobs, and standard
jobs that move.  The machines are of three kinds: one with GPUs that nobody sits at, a plain one, and two desks.  The
GPUs are those of a driver's recorded files.

Each result is compared with what this process computes from the same bytes, and the wire says what was read from the
submit machine: the image and the reference once a machine, whatever the number of jobs.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from time import sleep
from typing import BinaryIO

import attrs
import pytest

from condor_actors.machine.containers.probe import containers_work
from tests.harness import driver_trees
from tests.harness.aftermath import left_over, tracebacks
from tests.harness.images import docker_archive, root_folder
from tests.harness.mixed_jobs import KINDS, Batch, Kind
from tests.harness.namespaces import NEED_NAMESPACES, Machine, Wire, a_wire
from tests.harness.standard_jobs import NEED_RUNTIME
from tests.harness.trouble import daemons_of
from tests.integration.test_owner_visits import Owner
from tests.pool_fixture import fresh_folder, open_to_jobs, until

pytestmark = [*NEED_NAMESPACES, *NEED_RUNTIME,
              pytest.mark.skipif(not containers_work(), reason="this kernel gives no namespaces or no overlays")]
SLICE = 4096
MIB = 1 << 20
PATIENCE_S = 900.0
STANDARD_BYTES = 48 * MIB
"""What a standard job's program and its libraries may have from home: each time that it starts."""
MANAGER = "DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD\nNEGOTIATOR_INTERVAL = 5\n"
STARTER = "STARTER_INITIAL_UPDATE_INTERVAL = 1\nSTARTER_UPDATE_INTERVAL = 2\n"
WHOLE = f"use FEATURE : PartitionableSlot\nNUM_CPUS = 4\nMEMORY = 2048\n{STARTER}"
IN_IMAGE = {"universe": "container", "container_image": "{folder}/../image.tar", "executable": "/bin/sh",
            "transfer_executable": "false", "should_transfer_files": "yes", "request_memory": "64MB"}
READS = f"dd if=reference bs={SLICE} skip=$(Process) count=1 2>/dev/null | md5sum | cut -c1-32"
FILLS = "dd if=/dev/zero of=/dev/null bs=300M count=10 2>/dev/null && echo filled"


@attrs.frozen
class Size:
    """How much of everything.

    Attributes:
        readers, on_gpus, others, standard: jobs in the image, with a GPU, vanilla and standard ones.
        image_mib, reference_mib: sizes.
        visits: of owners.
    """

    readers: int
    on_gpus: int
    others: int
    standard: int
    image_mib: int
    reference_mib: int
    visits: int


@pytest.fixture
def wire() -> Iterator[Wire]:
    with a_wire(cgroups=True) as made:
        yield made


def files(folder: Path, size: Size) -> bytes:
    """Make the image and the reference in ``folder``; what of the reference jobs read."""
    with fresh_folder() as scratch:
        source = root_folder(scratch / "root")
        for name in ("md5sum", "cut"):
            (source / "bin" / name).symlink_to("busybox")
        with (source / "tools").open("wb") as tools:
            fill(tools, size.image_mib * MIB, Random(1))
        docker_archive(source, folder / "image.tar")
    random = Random(2)
    head = random.randbytes(size.readers * SLICE)
    with (folder / "reference").open("wb") as reference:
        reference.write(head)
        fill(reference, size.reference_mib * MIB - len(head), random)
    return head


def fill(file: BinaryIO, left: int, random: Random) -> None:
    """Write so many random bytes, in pieces: Python makes fewer than 2**28 at once."""
    while left > 0:
        left -= file.write(random.randbytes(min(left, 16 * MIB)))


def kinds(head: bytes) -> Mapping[str, Kind]:
    """What jobs there are in the image."""
    def summed(number: int) -> str:
        return hashlib.md5(head[number * SLICE:][:SLICE]).hexdigest() + "\n"

    def script(text: str) -> str:
        return f"\"-c '{text}'\""

    return {
        "reader": Kind(0, commands={**IN_IMAGE, "arguments": script(READS),
                                    "transfer_input_files": "{folder}/../reference"}, wanted=summed),
        "gpu": Kind(0, "echo $CUDA_VISIBLE_DEVICES", {"request_gpus": "1", "require_gpus": "Capability >= 8"},
                    wanted=lambda number: f"{driver_trees.A100[:12]}\n"),
        "slow": Kind(0, commands={**IN_IMAGE, "arguments": script(f"{READS}; sleep 3"),
                                  "transfer_input_files": "{folder}/../reference"}, wanted=summed),
        "hungry": Kind(0, commands={**IN_IMAGE, "arguments": script(FILLS), "retry_request_memory": "500MB"},
                       wanted=lambda number: "filled\n"),
    }


def sent(machine: Machine) -> int:
    """Bytes that the machine has sent over the wire."""
    text = subprocess.run(["ip", "netns", "exec", machine.namespace, "cat", "/proc/net/dev"],
                          capture_output=True, text=True, check=True).stdout
    return sum(int(line.split(":")[1].split()[8]) for line in text.splitlines()[2:] if "lo:" not in line)


class Day:
    """The pool, and its jobs; see the module."""

    def __init__(self, wire: Wire, size: Size) -> None:
        self.wire, self.size = wire, size
        self.home = wire.manager(config=MANAGER)
        tree = driver_trees.nvidia(wire.folder / "tree")
        wire.member(self.home, "gpus", "master,startd", f"use FEATURE : GPUs(-tree {tree})\n{WHOLE}")
        wire.member(self.home, "plain", "master,startd", WHOLE)
        self.owners = [Owner(wire, self.home, doctrine) for doctrine in ("vacates", "kills")]
        machines = {f"{machine.name}.trio" for machine in wire.machines[1:]}
        until(lambda: machines <= set(self.home.run("condor_status", "-af", "Machine", "-constraint", "HasContainer")
                                      .split()), "all machines in the collector, able to run images")
        self.executing = len(machines)
        head = files(self.home.work, size)
        self.made = made = {**KINDS, **kinds(head)}
        numbers = {"hungry": 2, "gpu": size.on_gpus, "reader": size.readers, "files": size.others,
                   "standard": size.standard}
        self.before = sent(self.home)
        self.batches = [Batch(self.home, kind, kind, number, made) for kind, number in numbers.items()]
        for batch in self.batches:
            assert batch.attempt(), batch.name

    def left(self) -> int:
        """Jobs in the queue; held ones are a failure."""
        held = self.home.jobs("-constraint", "JobStatus == 5", "-attributes", "ClusterId,ProcId,HoldReason")
        assert not held
        return len(self.home.jobs("-attributes", "ClusterId"))

    def visits(self) -> int:
        """Owners come back to desks that work, and stay until nothing of a job is there; how often they did."""
        done = 0
        random = Random(3)
        while done < self.size.visits and self.left():
            owner = random.choice(self.owners)
            if not until(lambda desk=owner: bool(desk.machine.scratch()) or not self.left(), "a desk that works",
                         PATIENCE_S):
                break
            with owner.types():
                until(lambda desk=owner: not desk.remains(),
                      lambda desk=owner: f"the jobs to leave {desk.machine.name}: {desk.remains()}")
            done += 1
        return done

    def check(self) -> None:
        """Every job once, with the right bytes; read once a machine; nothing left."""
        wrong = [text for batch in self.batches for text in batch.wrong()]
        ends = Counter((ad["ClusterId"], ad["ProcId"]) for ad in self.home.history("-attributes", "ClusterId,ProcId"))
        assert not wrong
        assert set(ends.values()) == {1}
        assert len(ends) == sum(batch.jobs for batch in self.batches)
        (first, *_), *_ = self.home.history("-constraint", 'ChaosBatch == "hungry"'),
        assert first["RequestMemory"] == 500, "its policy has mended it"
        once = (self.size.image_mib + self.size.reference_mib) * MIB
        starts = sum(ad["NumJobStarts"] for ad in self.home.history("-constraint", 'ChaosBatch == "standard"'))
        assert sent(self.home) - self.before <= once * self.executing * 1.1 + STANDARD_BYTES * starts + 32 * MIB
        for machine in self.wire.machines[1:]:
            unpacked = list(machine.dir.rglob(".images/*"))
            assert len([path for path in unpacked if path.is_dir()]) <= 1, "an image is unpacked once"
        assert left_over(self.wire) == []
        assert tracebacks(self.wire.machines) == []


class Deaths(Day):
    """A day on which nobody visits: starter hosts and startds are killed instead, while they have jobs."""

    def visits(self) -> int:
        """Kill one after the other, each when there is a job on its machine, and the next when it is back."""
        random = Random(4)
        for number in range(self.size.visits):
            machine, name = random.choice(self.wire.machines[1:]), random.choice(("startd", "starter-host"))
            until(lambda there=machine: there.scratch() or self.more(), f"a job on {machine.name}", PATIENCE_S)
            sleep(random.uniform(0.0, 1.5))  # the moment is a matter of chance
            before = until(lambda there=machine, what=name: dict(daemons_of(there)).get(what), f"{name}'s process")
            os.kill(before, signal.SIGKILL)
            until(lambda there=machine, what=name, old=before: dict(daemons_of(there)).get(what) not in (None, old),
                  f"a new {name} on {machine.name}", PATIENCE_S)
            print(f"{number + 1}: {name} of {machine.name}")
        return self.size.visits

    def more(self) -> None:
        """Some more jobs of each kind, when few are left."""
        if self.left() < 12:
            for kind, jobs in {"slow": 12, "long": 8, "standard": 2}.items():
                self.batches.append(Batch(self.home, f"{kind}-{len(self.batches)}", kind, jobs, self.made))
                assert self.batches[-1].attempt()

    def check(self) -> None:
        """Every job once, with the right bytes; nothing left."""
        assert [text for batch in self.batches for text in batch.wrong()] == []
        ends = Counter((ad["ClusterId"], ad["ProcId"]) for ad in self.home.history("-attributes", "ClusterId,ProcId"))
        assert set(ends.values()) == {1}
        assert len(ends) == sum(batch.jobs for batch in self.batches)
        assert left_over(self.wire) == []
        assert tracebacks(self.wire.machines) == []


def live(wire: Wire, size: Size, kind: type[Day] = Day) -> None:
    """A whole day."""
    day = kind(wire, size)
    open_to_jobs(day.home.work)
    try:
        visits = day.visits()
        until(lambda: not day.left(), lambda: day.home.run("condor_q", "-all", "-nobatch"), PATIENCE_S)
    except BaseException:
        day.home.tool("condor_rm", "-all")  # a shadow host outlives its schedd while there are runs
        raise
    day.check()
    jobs, mib = sum(batch.jobs for batch in day.batches), (sent(day.home) - day.before) // MIB
    print(f"{jobs} jobs, {visits} visits, {mib} MiB sent")


def test_a_short_day(wire: Wire) -> None:
    live(wire, Size(readers=12, on_gpus=2, others=3, standard=1, image_mib=8, reference_mib=16, visits=2))


DEATHS = Size(readers=12, on_gpus=2, others=3, standard=1, image_mib=8, reference_mib=16, visits=4)


def test_hosts_and_startds_are_killed_and_nothing_is_left(wire: Wire) -> None:
    live(wire, DEATHS, Deaths)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_they_are_killed_fifty_times(wire: Wire) -> None:
    live(wire, attrs.evolve(DEATHS, visits=50), Deaths)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_two_hundred_jobs_with_four_gigabytes(wire: Wire) -> None:
    if shutil.disk_usage(wire.folder).free < 40 << 30:
        pytest.skip("needs 40 GB")
    live(wire, Size(readers=170, on_gpus=10, others=12, standard=6, image_mib=300, reference_mib=4096, visits=20))
