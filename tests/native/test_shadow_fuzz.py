"""The shadow's decoder under clang's address and undefined-behaviour checks.

In the gate the inputs are the same each time: what earlier searches kept (fuzz/frames), each call and operation with
arguments at the edges of their types (fuzz/extremes.py), mutants of the kept ones made with a fixed dice, and a
coverage-guided search of a fixed length from a fixed number.  The soak searches from a fresh number and for long;
``CONDOR_KEEP_FRAMES=1`` copies what it finds worth keeping to fuzz/frames.  The harness confines itself (an empty root
directory, nobody's rights) and works in a folder of its own.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.native.fuzz import extremes

NATIVE = Path(__file__).parents[2] / "native"
HERE = Path(__file__).parent / "fuzz"
KEPT = HERE / "frames"
MUTANTS = 4000
SEARCHED = 20_000
LONG_S = 900
MARKS = ("runtime error:", "ERROR:", "SUMMARY:")


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the fuzzer, built with clang's address and undefined-behaviour checks."""
    if shutil.which("clang") is None:
        pytest.skip("needs clang")
    folder = tmp_path_factory.mktemp("fuzzer")
    table = [sys.executable, str(NATIVE / "generate.py"), str(NATIVE / "syscalls.tbl"), "header"]
    subprocess.run([*table, str(folder / "calls.h")], check=True)
    sources = [str(HERE / "shadow_frames.c"), *sorted(map(str, (NATIVE / "shadow").glob("*.c")))]
    built = subprocess.run(
        ["clang", "-g", "-O1", "-std=gnu11", "-w", "-D_GNU_SOURCE", "-fsanitize=fuzzer,address,undefined",
         "-fno-sanitize=alignment", "-fno-sanitize-recover=undefined", "-include", str(HERE / "clang.h"),
         f"-I{folder}", "-o", str(folder / "fuzzer"), *sources, "-lpthread"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if built.returncode and "clang_rt.fuzzer" in built.stderr:
        pytest.skip("needs clang's fuzzing library")
    assert built.returncode == 0, built.stderr[-2000:]
    return folder / "fuzzer"


@pytest.fixture
def place() -> Iterator[Path]:
    """Yield a folder that becomes the harness's root directory, in memory where the machine has that."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="shadow-fuzz", dir=memory if os.access(memory, os.W_OK) else None) as name:
        Path(name).chmod(0o777)
        yield Path(name)


def finding(said: str) -> str:
    """Return the sanitizer's report out of what the fuzzer SAID."""
    starts = [at for mark in MARKS if (at := said.find(mark)) >= 0]
    return said[min(starts) :][:4000] if starts else said[-4000:]


def run(fuzzer: Path, folder: Path, *words: str) -> None:
    """Run the fuzzer in FOLDER; a finding fails with its report and the input, in hexadecimal digits."""
    fixed = ["-timeout=600", "-rss_limit_mb=4096", "-max_len=8192", "-detect_leaks=0", "-artifact_prefix=./"]
    environment = {
        **os.environ,
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "ASAN_SYMBOLIZER_PATH": shutil.which("llvm-symbolizer") or "",
    }
    done = subprocess.run(
        [str(fuzzer), *fixed, *words], cwd=folder, capture_output=True, text=True, errors="replace",
        env=environment, check=False,
    )  # fmt: skip
    if done.returncode:
        running = [folder / line[9:] for line in done.stderr.splitlines() if line.startswith("Running: ")][-1:]
        artifacts = [path for path in folder.glob("*-*") if path.is_file()]
        guilty = {path.name: path.read_bytes().hex()[:8000] for path in [*artifacts, *running] if path.is_file()}
        pytest.fail(f"the fuzzer ended with {done.returncode}\n{finding(done.stderr)}\n{guilty}", pytrace=False)


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
                data[at : at + 2] = dice.choice([*range(334), *range(1000, 1024)]).to_bytes(2, "little")
    return bytes(data[:8192])


@pytest.mark.timeout(1300)
def test_kept_frames_extremes_and_mutants(fuzzer: Path, place: Path) -> None:
    inputs = place / "inputs"
    inputs.mkdir()
    kept = {path.name: path.read_bytes() for path in sorted(KEPT.iterdir())}
    dice = random.Random(1988)
    mutants = {f"mutant {i}": mutant(dice, list(kept.values())) for i in range(MUTANTS)}
    cases = {**kept, **dict(extremes.inputs()), **mutants}
    for name, data in cases.items():
        (inputs / name).write_bytes(data)
    run(fuzzer, place, *(f"inputs/{name}" for name in cases))


@pytest.fixture
def frames(place: Path) -> Path:
    """Return a copy of the kept frames that the search may add to."""
    shutil.copytree(KEPT, place / "frames").chmod(0o777)
    return place / "frames"


@pytest.mark.timeout(1300)
def test_short_search_for_hostile_frames(fuzzer: Path, place: Path, frames: Path) -> None:
    run(fuzzer, place, "-seed=1988", f"-runs={SEARCHED}", frames.name)


@pytest.mark.soak
def test_search_for_hostile_frames(fuzzer: Path, place: Path, frames: Path) -> None:
    seed = os.environ.get("CONDOR_FUZZ_SEED") or str(random.SystemRandom().randrange(1, 1 << 31))
    print(f"CONDOR_FUZZ_SEED={seed}")
    run(fuzzer, place, f"-seed={seed}", f"-max_total_time={LONG_S}", frames.name)
    if os.environ.get("CONDOR_KEEP_FRAMES"):
        for path in frames.iterdir():
            content = path.read_bytes()
            if not (KEPT / path.name).exists():
                (KEPT / hashlib.sha256(content).hexdigest()[:16]).write_bytes(content)
