"""Every variable of the native programs that threads can share says what guards it, and what touches it holds that."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native import guards

NATIVE = Path(__file__).parents[2] / "native"
PROGRAMS = ("runtime", "shadow", "launcher", "root", "relay")
LOCK = "struct lock { int word; };\nvoid lock(struct lock *l);\nvoid unlock(struct lock *l);\nstatic struct lock l;\n"


def sources(program: str) -> dict[str, str]:
    """Return the sources of PROGRAM by name, of which there is one each: an error names it without its folder."""
    paths = sorted((NATIVE / program).rglob("*.[ch]"))
    found = {path.name: path.read_text() for path in paths}
    assert len(found) == len(paths)
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_variable_has_its_lock(program: str) -> None:
    assert guards.faults(sources(program)) == []


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("program", PROGRAMS)
def test_no_variable_hides(program: str, tmp_path: Path) -> None:
    """What is found in the text is what the compiler puts into writable sections, locks included."""
    make = [sys.executable, str(NATIVE / "generate.py"), str(NATIVE / "syscalls.tbl"), "header"]
    subprocess.run([*make, str(tmp_path / "calls.h")], check=True)
    found = guards.read(sources(program)).variables
    for path in sorted((NATIVE / program).rglob("*.c")):
        assert {v.name for v in found if v.file == path.name} == guards.writable(path, tmp_path), path.name


@pytest.mark.skipif(shutil.which("clang") is None, reason="needs clang")
def test_each_path_holds_its_locks() -> None:
    done = subprocess.run(["make", "-C", str(NATIVE), "guards"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


BAD = {
    "nothing said": ("static int table[4];", "t.c: table: says 0 times what guards it"),
    "nothing said of a second one": (
        "static int a GUARDED_BY(l), b;",
        "t.c: b: says 0 times what guards it",
    ),
    "a structure": (
        "static struct entry {\n    int x;\n} entries[4] = {{1}};",
        "t.c: entries: says 0 times what guards it",
    ),
    "a variable inside a function": (
        "int f(void)\n{\n    static char room[64];\n    return room[0];\n}",
        "t.c: room: says 0 times what guards it",
    ),
    "a pointer to what is constant": ("static const char *name;", "t.c: name: says 0 times what guards it"),
    "a lock that is not there": ("static int a GUARDED_BY(other);", "t.c: a: there is no lock other"),
    "no reason": ('static int a UNGUARDED("");', "t.c: a: does not say why it needs no lock"),
    "not a word": ("static int a ATOMIC;", "t.c: a: is no word for atomic instructions"),
    "touched without": (
        "static int a GUARDED_BY(l);\nint f(void)\n{\n    return a;\n}",
        "t.c: f touches a without l",
    ),
    "touched too early": (
        "static int a GUARDED_BY(l);\nvoid f(void)\n{\n    a = 1;\n    lock(&l);\n    unlock(&l);\n}",
        "t.c: f touches a without l",
    ),
    "touched too late": (
        "static int a GUARDED_BY(l);\nint f(void)\n{\n    lock(&l);\n    unlock(&l);\n    return a;\n}",
        "t.c: f touches a without l",
    ),
    "called without": (
        "static void g(void) REQUIRES(l);\nstatic void g(void)\n{\n}\nvoid f(void)\n{\n    g();\n}",
        "t.c: f touches g() without l",
    ),
    "touched where others run": (
        "struct lock one_thread;\nstatic int a GUARDED_BY(one_thread);\nint f(void)\n{\n    return a;\n}",
        "t.c: f touches a without one_thread",
    ),
}
GOOD = {
    "held": "static int a GUARDED_BY(l);\nvoid f(void)\n{\n    lock(&l);\n    a = 1;\n    unlock(&l);\n}",
    "required": "static int a GUARDED_BY(l);\nstatic int f(void) REQUIRES(l);\nstatic int f(void)\n{\n    return a;\n}",
    "another one's member": "static int a GUARDED_BY(l);\nint f(struct s *s)\n{\n    return s->a + s->b.a;\n}",
    "constant": "static const int a[] = {1, 2};\nstatic const char *const names[] = {0};\nenum { X };",
    "no variable": "struct s {\n    int y;\n};\nextern int z;\ntypedef int t;\nint f(int a);",
    "atomic": "static volatile uint32_t a ATOMIC;\nint f(void)\n{\n    return a;\n}",
    "with a reason": 'static int a UNGUARDED("one thread writes; it is one word");',
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_missing_is_found(case: str) -> None:
    text, fault = BAD[case]
    assert guards.faults({"t.c": LOCK + text}) == [fault]


@pytest.mark.parametrize("case", GOOD)
def test_what_is_there_is_accepted(case: str) -> None:
    assert guards.faults({"t.c": LOCK + GOOD[case]}) == []
