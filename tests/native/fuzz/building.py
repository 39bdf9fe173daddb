"""The fuzzers of the native shadow and the relays: each is a harness beside this file and their own sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["HERE", "NATIVE", "Unbuildable", "build_fuzzer", "make_table", "may_mount", "search", "shadow_sources"]

HERE = Path(__file__).parent
NATIVE = HERE.parents[2] / "native"
MARKS = ("runtime error:", "ERROR:", "SUMMARY:")


class Unbuildable(Exception):
    """This machine lacks what it takes."""


def make_table(folder: Path) -> None:
    """Make calls.h in FOLDER, which the shadow's sources include."""
    table = [sys.executable, str(NATIVE / "generate.py"), str(NATIVE / "syscalls.tbl"), "header"]
    subprocess.run([*table, str(folder / "calls.h")], check=True)


def shadow_sources() -> list[str]:
    return sorted(map(str, (NATIVE / "shadow").rglob("*.c")))


def may_mount() -> bool:
    """Return whether this process can make a mount namespace: root does, others in a user namespace."""
    words = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-current-user", "--mount"]
    return shutil.which("unshare") is not None and subprocess.run(
        [*words, "true"], capture_output=True, check=False).returncode == 0


def build_fuzzer(folder: Path, harness: str, sources: list[str] | None = None) -> Path:
    """Build HARNESS in FOLDER, with clang's address and undefined-behaviour checks; return the program.

    SOURCES are what it is about; without any, the shadow's.

    Raises Unbuildable when there is no clang, or nothing to confine the program with.
    """
    if shutil.which("clang") is None:
        raise Unbuildable("needs clang")
    if os.geteuid() and not may_mount():
        raise Unbuildable("needs root or user namespaces: hostile input is not answered with this user's rights")
    make_table(folder)
    program = folder / harness
    built = subprocess.run(
        ["clang", "-g", "-O1", "-std=gnu11", "-w", "-D_GNU_SOURCE", "-fsanitize=fuzzer,address,undefined",
         "-fno-sanitize=alignment", "-fno-sanitize-recover=undefined", "-include", str(HERE / "clang.h"),
         f"-I{folder}", f"-I{NATIVE}", "-o", str(program), str(HERE / f"{harness}.c"),
         *(sources if sources is not None else shadow_sources()), "-lpthread"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if built.returncode and "clang_rt.fuzzer" in built.stderr:
        raise Unbuildable("needs clang's fuzzing library")
    assert built.returncode == 0, built.stderr[-2000:]
    return program


def finding(said: str) -> str:
    """Return the sanitizer's report out of what the fuzzer SAID."""
    starts = [at for mark in MARKS if (at := said.find(mark)) >= 0]
    return said[min(starts) :][:4000] if starts else said[-4000:]


def search(fuzzer: Path, folder: Path, *words: str) -> str:
    """Run the fuzzer in FOLDER; return what it found, with the input in hexadecimal digits, or nothing."""
    fixed = ["-timeout=100", "-rss_limit_mb=4096", "-detect_leaks=0", "-artifact_prefix=./"]
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
    if not done.returncode:
        return ""
    running = [folder / line[9:] for line in done.stderr.splitlines() if line.startswith("Running: ")][-1:]
    artifacts = [path for path in folder.glob("*-*") if path.is_file()]
    guilty = {path.name: path.read_bytes().hex()[:8000] for path in [*artifacts, *running] if path.is_file()}
    return f"the fuzzer ended with {done.returncode}\n{finding(done.stderr)}\n{guilty}"
