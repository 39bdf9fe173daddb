"""What is said beforehand: the table of calls, the verdict on a program, the level of a processor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from condor_actors.machine.native.cpu import level_of_flags, level_of_machine
from condor_actors.machine.native.preflight import REFUSED, examine
from tests.native.conftest import Compile, finished, tool

NATIVE = Path(__file__).parents[2] / "native"
V2 = {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"}
V3 = V2 | {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}
V4 = V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


def generate(table: Path, what: str, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(NATIVE / "generate.py"), str(table), what, str(out)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_documentation_is_the_tables(tmp_path: Path) -> None:
    out = tmp_path / "page.md"
    assert generate(NATIVE / "syscalls.tbl", "page", out).returncode == 0
    page = NATIVE.parent / "docs" / "system-calls.md"
    assert page.read_text() == out.read_text(), "make it again: native/generate.py native/syscalls.tbl page docs/…"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("0 read everywhere", "unknown disposition 'everywhere'"),
        ("0 read remote fd out@2 x", "unknown argument 'x'"),
        ("0 read refused ENOTHING why", "'ENOTHING' is no errno"),
        ("0 read as pread64 $0", "stands for pread64, which is not in the table"),
        ("zero read local", "invalid literal"),
    ],
)
def test_a_wrong_line_is_named(line: str, text: str, tmp_path: Path) -> None:
    table = tmp_path / "table"
    table.write_text(f"# comment\n{line}\n")
    done = generate(table, "header", tmp_path / "out")
    assert done.returncode == 1
    assert str(table) in done.stderr
    assert text in done.stderr


def test_every_call_of_the_architecture_is_in_the_table() -> None:
    header = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
    if not header.exists():
        pytest.skip("needs the kernel's headers")
    known = {line.split()[1] for line in (NATIVE / "syscalls.tbl").read_text().splitlines() if line[:1].isdigit()}
    named = {line.split()[1][5:] for line in header.read_text().splitlines() if line.startswith("#define __NR_")}
    assert {name for name in named - known if not name.startswith("set_mempolicy_home")} == set()


def test_verdicts(compiled: Compile, tmp_path: Path) -> None:
    assert examine(compiled("worker")).runs
    assert examine(compiled("worker")).remarks == ()
    assert not examine("/no/such/file").runs
    text = tmp_path / "text"
    text.write_text("just text")
    assert examine(str(text)).summary == "cannot run: neither a program nor a script"
    text.write_text(f"#!{compiled('worker')} -x\n")
    assert examine(str(text)).runs
    (tmp_path / "net.c").write_text("int connect(); int main(){return connect(0, 0, 0);}")
    subprocess.run(["gcc", "-w", "-o", str(tmp_path / "net"), str(tmp_path / "net.c")], check=True)
    assert examine(str(tmp_path / "net")).remarks == (f"connect: {REFUSED['connect']}",)
    (tmp_path / "pty.c").write_text("int posix_openpt(); int main(){return posix_openpt(2);}")
    subprocess.run(["gcc", "-w", "-o", str(tmp_path / "pty"), str(tmp_path / "pty.c")], check=True)
    assert examine(str(tmp_path / "pty")).remarks == ()
    script = tmp_path / "script"
    script.write_text("#!/usr/bin/env -S sh -e\necho on\n")
    assert examine(str(script)).runs
    assert "a checkpoint covers them all" in examine(str(script)).remarks[-1]
    script.write_text(f"#!{script}\n")
    assert "too many scripts" in examine(str(script)).summary
    other = bytearray(Path(compiled("worker")).read_bytes())
    other[18] = 183  # another architecture
    (tmp_path / "arm").write_bytes(other)
    assert not examine(str(tmp_path / "arm")).runs


@pytest.mark.parametrize("found_by", ["run path", "origin", "environment"])
def test_verdicts_of_the_libraries_that_a_program_names(found_by: str, tmp_path: Path,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "lib"
    folder.mkdir()
    (tmp_path / "inner.c").write_text("int fanotify_init(); int inner(void) { return fanotify_init(); }")
    (tmp_path / "outer.c").write_text("int inner(); int uuid(); int outer(void) { return inner() + uuid(); }")
    (tmp_path / "uuid.c").write_text("int connect(); int uuid(void) { return connect(); }")
    (tmp_path / "main.c").write_text("int outer(); int main(void) { return outer(); }")
    where = {"run path": [f"-Wl,-rpath,{folder}"], "origin": ["-Wl,-rpath,$ORIGIN/lib"], "environment": []}[found_by]
    if found_by == "environment":
        monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
    for name, needed in (("inner", []), ("uuid", []), ("outer", ["-linner", "-luuid"])):
        subprocess.run(["gcc", "-w", "-shared", "-fPIC", "-o", str(folder / f"lib{name}.so"),
                        str(tmp_path / f"{name}.c"), f"-L{folder}", *needed], check=True)
    program = str(tmp_path / "main")
    subprocess.run(["gcc", "-w", "-o", program, str(tmp_path / "main.c"), f"-L{folder}", "-louter",
                    f"-Wl,-rpath-link,{folder}", *where], check=True)
    verdict = examine(program)
    assert (verdict.summary, verdict.remarks) == ("can run", ())
    assert verdict.libraries == (f"libinner.so: fanotify_init: {REFUSED['fanotify_init']}",
                                 f"libuuid.so: connect: {REFUSED['connect']}")


def test_a_new_process_with_what_it_cannot_have_here_is_refused() -> None:
    """Namespaces of its own, two things in one place, its parent's parent; descriptors of others, leases."""
    code = (
        "import ctypes, errno, os\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "for flags in (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x101000, 0x8000):\n"
        "    found = c.syscall(56, flags | 17, 0, ctypes.byref(ctypes.c_int()), 0, 0)\n"
        "    if found == 0: os._exit(9)\n"
        "    print(found, errno.errorcode[ctypes.get_errno()])\n"
        "for number in (438, 437, 449):\n"
        "    print(c.syscall(number, 1, 1, 1, 1), errno.errorcode[ctypes.get_errno()])\n"
        "room = ctypes.byref(ctypes.create_string_buffer(128))\n"
        "print(c.waitid(3, 0, room, 4), errno.errorcode[ctypes.get_errno()])\n"
        "print(c.fcntl(os.open('/dev/null', 0), 1024, 0), errno.errorcode[ctypes.get_errno()])\n"
    )
    said = ["-1 EPERM"] * 4 + ["-1 EINVAL"] * 2 + ["-1 EPERM"] + ["-1 ENOSYS"] * 2 + ["-1 EBADF", "-1 EINVAL"]
    assert finished(tool("run", "--", sys.executable, "-c", code))[:2] == (0, "\n".join([*said, ""]).encode())


def test_the_errno_that_is_told_is_the_one_that_comes() -> None:
    refused = {line.split()[1]: line.split()[3] for line in (NATIVE / "syscalls.tbl").read_text().splitlines()
               if line[:1].isdigit() and line.split()[2] == "refused"}
    assert {name: why for name, why in REFUSED.items() if name in refused and f"({refused[name]})" not in why} == {}
    assert {"io_setup", "execveat"} <= refused.keys() & REFUSED.keys()
    code = ("import errno, socket\nfor kind, name in ((socket.AF_INET, ('192.0.2.1', 80)),\n"
            " (socket.AF_INET, ('127.0.0.1', 1)),\n"
            " (socket.AF_INET6, ('2001:db8::1', 80)), (socket.AF_UNIX, '\\0nobody')):\n"
            " try: socket.socket(kind).connect(name)\n except OSError as error: print(errno.errorcode[error.errno])")
    status, out, _ = finished(tool("run", "--", sys.executable, "-c", code))
    assert (status, out) == (0, b"ENETUNREACH\nECONNREFUSED\nENETUNREACH\nECONNREFUSED\n")


def test_levels() -> None:
    assert [level_of_flags(frozenset(flags)) for flags in (set(), V2, V3, V4)] == [1, 2, 3, 4]
    assert level_of_flags(frozenset(V4 - {"avx2"})) == 2
    assert level_of_machine() in (1, 2, 3, 4)


def test_condor_compile_runs_the_command_and_tells_the_verdict(tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text("int main(){return 0;}")
    tool = [sys.executable, "-m", "condor_actors.tools.jobs.compile"]
    environment = {**os.environ, "PYTHONPATH": str(NATIVE.parent)}

    def run(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [*tool, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stderr

    assert run("gcc", "-o", "x", "x.c") == (0, "condor_compile: ./x: can run\n")
    assert run("gcc", "x.c") == (0, "condor_compile: ./a.out: can run\n")
    assert run("gcc", "-c", "x.c") == (0, "")
    assert run("false") == (1, "")
    assert run("no-such-compiler")[0] == 127
