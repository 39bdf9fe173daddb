"""The shadow's decoder under clang's address and undefined-behaviour checks.

In the gate the inputs are the same each time: what earlier searches kept (fuzz/frames), each call and operation with
arguments at the edges of their types (fuzz/extremes.py), what images say of their open files, sound and hostile
(fuzz/descriptions.py), what the members of a family say of themselves
(fuzz/families.py), what is done with sockets (fuzz/sockets.py), terminals
(fuzz/terminals.py), watches (fuzz/watches.py), and System V's
semaphores, queues and memory (fuzz/queues.py), mutants of the kept ones made with a fixed dice, and a coverage-guided
search of a fixed length from a fixed number.  ``make fuzz`` searches for a minute, the soak from a fresh number and for
long; ``CONDOR_KEEP_FRAMES=1`` copies what it finds worth keeping to fuzz/frames.
The harness confines itself (an empty root directory, no rights) and works in a folder of its own.  That
the inputs reach the shadow's code is counted in a build of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.native.fuzz import descriptions, extremes, families, journals, queues, sockets, terminals, watches
from tests.native.fuzz.building import (
    HERE,
    NATIVE,
    Unbuildable,
    build_fuzzer,
    make_table,
    may_mount,
    search,
    shadow_sources,
)

KEPT = HERE / "frames"
MUTANTS = 1000
LONGEST = 16 << 20
SEARCHED, LONGEST_SEARCHED = 4000, 8192
LONG_S = 900


# Functions of the shadow that no input reaches, and why.
NOT_REACHED = {
    "encrypted channels: tests/native/test_secret.py changes their records": {
        "make", "secret_record", "open_records", "secret_receive", "send_copied",
    },
    "asked by the host, not by the runtime": {
        "shadow_read_statistics", "shadow_vacate", "shadow_spare", "shadow_close", "shadow_digest_image", "piece_at",
        "take_spare", "forget_member", "session_of",
    },
    "of two members: tests/native/test_record_locks.py has such": {"has_lock"},
    "of members that have ended: tests/native/test_kinship.py has such": {"lives"},
    "a matter of time": {"idle_sleep", "send_padding"},
    "no room for the journal: tests/integration/test_standard_faults.py fills the disk": {"wait_for_room"},
    "left to the search: pipes with names, directories foreseen, names in /proc": {
        "names_own_thread", "awaits_reader", "has_writer", "park_open", "add_listing",
    },
    "a file that has lost its name: tests/native/test_open_files_moved.py has such": {"found_beside"},
    "of files that have rested: tests/native/test_library.py has such": {
        "same_time", "is_as_it_was", "has_rested", "lies_below", "set_of", "find_sum", "is_known", "keep_sum",
        "sum_up", "sum_all", "begin_summing", "other_has", "turned", "add_blocks_plainly", "add_blocks_quickly",
        "has_instructions", "add_blocks", "sha256_begin", "sha256_add", "sha256_end",
    },
    "of files that others have mapped: tests/native/test_mapped_elsewhere.py has such": {
        "is_ours", "maps", "is_shared_line",
    },
    "told to a program: tests/native/test_inotify.py asks": {"put_watches"},
}  # fmt: skip


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the fuzzer, built with clang's address and undefined-behaviour checks."""
    try:
        return build_fuzzer(tmp_path_factory.mktemp("fuzzer"), "shadow_frames")
    except Unbuildable as why:
        pytest.skip(str(why))


@pytest.fixture(scope="module")
def journal_fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return that of the undo journal."""
    try:
        return build_fuzzer(tmp_path_factory.mktemp("journal"), "journal_back")
    except Unbuildable as why:
        pytest.skip(str(why))


@pytest.fixture
def place() -> Iterator[Path]:
    """Yield a folder that becomes the harness's root directory, in memory where the machine has that."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="shadow-fuzz", dir=memory if os.access(memory, os.W_OK) else None) as name:
        Path(name).chmod(0o777)
        yield Path(name)


def run(fuzzer: Path, folder: Path, *words: str) -> None:
    """Run the fuzzer in FOLDER; a finding fails with its report and the input, in hexadecimal digits."""
    found = search(fuzzer, folder, *words)
    if found:
        pytest.fail(found, pytrace=False)


def mutant(dice: random.Random, inputs: list[bytes]) -> bytes:
    """Return one of INPUTS, changed in a few places the way a search would."""
    data = bytearray(dice.choice(inputs))
    for _ in range(dice.randrange(1, 5)):
        at = dice.randrange(len(data) + 1)
        match dice.randrange(5):
            case 0:
                data[at : at + 1] = dice.randbytes(1)
            case 1:
                data[at : at + 8] = dice.choice(extremes.EDGES).to_bytes(8, "little", signed=True)
            case 2:
                del data[at : at + dice.randrange(1, 64)]
            case 3:
                other = dice.choice(inputs)
                data[at:at] = other[dice.randrange(len(other)) :][:512]
            case 4:
                data[at : at + 2] = dice.choice([*range(334), *range(1000, 1030)]).to_bytes(2, "little")
    return bytes(data[:LONGEST_SEARCHED])


def kept_frames() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(KEPT.iterdir())}


def seeds() -> dict[str, bytes]:
    return {**descriptions.seeds(), **families.seeds(), **sockets.seeds(), **terminals.seeds(), **watches.seeds(),
            **queues.seeds()}


def fixed_inputs() -> dict[str, bytes]:
    """Return every input but mutants, by name."""
    return {**kept_frames(), **dict(extremes.inputs()), **dict(descriptions.inputs()),
            **dict(families.inputs()), **dict(sockets.inputs()), **dict(terminals.inputs()),
            **dict(watches.inputs()), **dict(queues.inputs())}


def written(folder: Path, cases: dict[str, bytes]) -> list[str]:
    """Write CASES into a new folder "inputs" of FOLDER; return their names, as seen from FOLDER."""
    (folder / "inputs").mkdir()
    for name, data in cases.items():
        (folder / "inputs" / name).write_bytes(data)
    return [f"inputs/{name}" for name in cases]


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the harness with counters, built without a fuzzer."""
    if shutil.which("gcc") is None or shutil.which("gcov") is None:
        pytest.skip("needs gcc and gcov")
    folder = tmp_path_factory.mktemp("replay")
    make_table(folder)
    subprocess.run(
        ["gcc", "-O0", "-std=gnu11", "-w", "-D_GNU_SOURCE", "--coverage", "-fprofile-update=atomic", f"-I{folder}",
         f"-I{NATIVE}", "-o", str(folder / "replay"), str(HERE / "shadow_frames.c"), str(HERE / "replay.c"),
         *shadow_sources(), "-lpthread"],
        check=True,
    )  # fmt: skip
    return folder / "replay"


def counted(build: Path, place: Path) -> dict[str, int]:
    """Return how often each function of the shadow was called, from the counters that a run left in PLACE."""
    counters = [shutil.copy(path, build) for path in place.glob("*.gcda")]
    told = subprocess.run(
        ["gcov", "--json-format", "--stdout", *counters], cwd=build, capture_output=True, check=True
    ).stdout
    return {
        function["name"]: function["execution_count"]
        for line in told.splitlines()
        for file in json.loads(line)["files"]
        if (NATIVE / "shadow") in Path(file["file"]).resolve().parents
        for function in file["functions"]
    }


@pytest.mark.timeout(1300)
@pytest.mark.skipif(not may_mount(), reason="the harness cannot see its own descriptors")
def test_the_inputs_reach_the_shadows_code(replay: Path, place: Path) -> None:
    names = written(place, fixed_inputs())
    where = {**os.environ, "GCOV_PREFIX": "/", "GCOV_PREFIX_STRIP": "99"}
    subprocess.run([str(replay), *names], cwd=place, env=where, check=True, capture_output=True)
    calls = counted(replay.parent, place)
    expected = set().union(*NOT_REACHED.values())
    assert {name for name, count in calls.items() if not count} <= expected
    assert expected <= calls.keys()
    assert calls["write_pieces"] > 1000


@pytest.mark.timeout(1300)
def test_kept_frames_extremes_and_mutants(fuzzer: Path, place: Path) -> None:
    dice = random.Random(1988)
    begun = [*kept_frames().values(), *seeds().values()]
    mutants = {f"mutant {i}": mutant(dice, begun) for i in range(MUTANTS)}
    names = written(place, {**fixed_inputs(), **mutants})
    run(fuzzer, place, f"-max_len={LONGEST}", *names)  # longer ones would be cut


@pytest.fixture
def frames(place: Path) -> Path:
    """Return a folder with what the search begins with, that it may add to."""
    folder = place / "frames"
    shutil.copytree(KEPT, folder).chmod(0o777)
    for name, data in seeds().items():
        (folder / name).write_bytes(data)
    return folder


@pytest.mark.timeout(1300)
def test_short_search_for_hostile_frames(fuzzer: Path, place: Path, frames: Path) -> None:
    run(fuzzer, place, "-seed=1988", f"-runs={SEARCHED}", f"-max_len={LONGEST_SEARCHED}", frames.name)


@pytest.mark.timeout(1300)
def test_hostile_journals(journal_fuzzer: Path, place: Path) -> None:
    """What going back makes of journals that the shadow did not write: each seed, then a search of a fixed length."""
    corpus = place / "journals"
    corpus.mkdir(mode=0o777)
    corpus.chmod(0o777)
    for name, data in journals.seeds().items():
        (corpus / name).write_bytes(data)
    run(journal_fuzzer, place, "-seed=1988", f"-runs={SEARCHED}", f"-max_len={LONGEST_SEARCHED}", corpus.name)


@pytest.mark.soak
def test_search_for_hostile_frames(fuzzer: Path, place: Path, frames: Path) -> None:
    seed = os.environ.get("CONDOR_FUZZ_SEED") or str(random.SystemRandom().randrange(1, 1 << 31))
    print(f"CONDOR_FUZZ_SEED={seed}")
    run(fuzzer, place, f"-seed={seed}", f"-max_total_time={LONG_S}", f"-max_len={LONGEST_SEARCHED}", frames.name)
    if os.environ.get("CONDOR_KEEP_FRAMES"):
        for path in frames.iterdir():
            content = path.read_bytes()
            if path.name not in seeds() and not (KEPT / path.name).exists():
                (KEPT / hashlib.sha256(content).hexdigest()[:16]).write_bytes(content)
