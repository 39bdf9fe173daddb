"""Describes the extension module ``condor_actors.machine.native._native``: C code of shadow, starts and relays.

The module is built against the stable ABI.  Nothing of it is ever in the path of a system call: Python opens
sessions, takes events and reads statistics.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cffi import FFI

NATIVE = Path(__file__).resolve().parent.parent
BUILD = NATIVE / "build"


FOLDERS = ("shadow", "spawn", "relay")


def declarations() -> str:
    """Return what cffi may read of the folders' headers: everything but the preprocessor's lines."""
    lines = [line for name in FOLDERS for line in (NATIVE / name / f"{name}.h").read_text().splitlines()]
    return "\n".join(line for line in lines if not line.startswith("#"))


def make_tables() -> None:
    """Make calls.h, which the shadow's sources include."""
    BUILD.mkdir(exist_ok=True)
    command = [sys.executable, str(NATIVE / "generate.py"), str(NATIVE / "syscalls.tbl"), "header"]
    subprocess.run([*command, str(BUILD / "calls.h")], check=True)


make_tables()
os.chdir(NATIVE.parent)  # setuptools wants source paths relative to setup.py
ffibuilder = FFI()
ffibuilder.cdef(declarations())
ffibuilder.set_source(
    "condor_actors.machine.native._native",
    "".join(f'#include "{name}.h"\n' for name in FOLDERS),
    sources=sorted(f"native/{path.relative_to(NATIVE)}" for name in FOLDERS for path in (NATIVE / name).rglob("*.c")),
    depends=sorted(f"native/{path.relative_to(NATIVE)}" for path in NATIVE.glob("**/*.h")),
    include_dirs=["native", *(f"native/{name}" for name in FOLDERS), "native/build"],
    extra_compile_args=["-O2", "-std=gnu11", "-Wall", "-Wextra", "-Wno-unused-parameter"],
    py_limited_api=True,
)
