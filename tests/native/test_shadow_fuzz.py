"""Coverage-guided fuzzing of the shadow's decoder; what it found worth keeping is in fuzz/frames.

The fuzzer confines itself (an empty root directory, nobody's rights) and works in a folder of its own.  New inputs
that reach new code are left there; ``CONDOR_KEEP_FRAMES=1`` copies them to fuzz/frames.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[2] / "native"
HERE = Path(__file__).parent / "fuzz"
SHORT_S = 30
LONG_S = 900


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


def fuzz(fuzzer: Path, *options: str) -> None:
    with tempfile.TemporaryDirectory(prefix="shadow-fuzz") as name:
        folder = Path(name)
        folder.chmod(0o777)
        shutil.copytree(HERE / "frames", folder / "frames")
        (folder / "frames").chmod(0o777)
        fixed = ["-timeout=60", "-rss_limit_mb=4096", "-max_len=8192", "-detect_leaks=0", "-artifact_prefix=./"]
        done = subprocess.run(
            [str(fuzzer), *fixed, *options, "frames"], cwd=folder, capture_output=True, text=True, errors="replace",
            env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}, check=False,
        )  # fmt: skip
        found = {p.name: p.read_bytes().hex() for p in folder.glob("*-*") if p.is_file()}
        assert done.returncode == 0, (done.stderr[-4000:], found)
        if os.environ.get("CONDOR_KEEP_FRAMES"):
            for path in (folder / "frames").iterdir():
                content = path.read_bytes()
                if not (HERE / "frames" / path.name).exists():
                    (HERE / "frames" / hashlib.sha256(content).hexdigest()[:16]).write_bytes(content)


def test_hostile_frames_for_a_moment(fuzzer: Path) -> None:
    fuzz(fuzzer, f"-max_total_time={SHORT_S}")


@pytest.mark.soak
def test_hostile_frames_for_long(fuzzer: Path) -> None:
    fuzz(fuzzer, f"-max_total_time={LONG_S}")
