"""Every system call of the table, with good and bad arguments: the same result and errno here and away."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.native.conformance import cases, refused

ROOT = Path(__file__).parents[2]
SOURCES = Path(__file__).parent / "programs"

# Differences that are known: a pattern of "call: argument N what", and why.
KNOWN = {
    r"\w*(setxattr|getxattr|removexattr): argument 2 longest": "a name that no path may have is refused as a path",
    r"\w*setxattr: argument 4 (-1|huge|negative)": "the size is bounded first, then the memory is looked at",
    r"(read|pread64|write|pwrite64): argument 2 edge": "a buffer that ends in a hole: EFAULT, not the part before it",
    r"pwrite64: argument 4 huge": "the error of a write that was not waited for comes with the next call",
    r"p?readv2?: argument 1 directory": "nothing to read: the descriptor is not asked",
    r"(getpeername|getsockname): argument [23]": "two errors at once: which one is told",
    r"(recvfrom|sendto): argument 2 kernel": "two errors at once: which one is told",
    r"(newfstatat|utimensat|statx): argument 2 (longest|unmapped)": "two errors at once: which one is told",
    r"(newfstatat|utimensat): argument 2 runs into a hole": "two errors at once: which one is told",
    r"inotify_add_watch: argument 2 (longest|unmapped|runs into a hole)": "two errors at once: which one is told",
    r"pipe2: argument 1 null": "two errors at once: which one is told",
    r"mknod(at)?: argument [23] -1": "devices are refused before the number is looked at",
    r"copy_file_range: argument 4 (edge|cannot be written)": "an offset is looked at only when bytes are copied",
    r"p(read|write)v2: argument 6": "flags are looked at before the data",
    r"(socket|socketpair): argument": "kinds of sockets that mean something outside of the program",
    r"(accept4?|bind|connect|sendto|sendmsg|recvfrom|recvmsg): argument [2-6]": "two errors at once: which one is told",
}  # fmt: skip


# Everything is done as nobody, so that no case can reach anything of the machine's.
AS_NOBODY = "import os, sys\nif os.geteuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
NATIVE = AS_NOBODY + "os.execv(sys.argv[1], sys.argv[1:])"
AWAY = (
    "from condor_actors.tools.jobs import checkpoint\nimport condor_actors.machine.native.shadow\n"
    + AS_NOBODY
    + "sys.exit(checkpoint.main(['run', '--', *sys.argv[1:]]))"
)


def clear(folder: Path) -> None:
    """Remove FOLDER with all it holds, whatever the cases did to the modes of what is in it."""
    subprocess.run(["chmod", "-R", "u+rwX", str(folder)], capture_output=True, check=False)
    shutil.rmtree(folder, ignore_errors=not folder.exists())


def run(how: str, command: list[str], folder: Path, under: tuple[str, ...] = ()) -> list[str]:
    """Run COMMAND in a fresh FOLDER, natively or away, all of it by the command UNDER; return the lines it writes."""
    clear(folder)
    folder.mkdir()
    folder.chmod(0o777)
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "PYTHONPATH": str(ROOT), "HOME": "/nonexistent"}
    done = subprocess.run(
        [*under, sys.executable, "-c", how, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().splitlines()


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Yield a folder that nobody may enter too: pytest closes its own ones to others."""
    with tempfile.TemporaryDirectory(prefix="conformance") as name:
        os.chmod(name, 0o755)
        yield Path(name)


def compiled_here(name: str, folder: Path) -> str:
    target = folder / name
    source = SOURCES / f"{name}.c"
    subprocess.run(["gcc", "-w", "-O1", f"-I{folder}", "-o", str(target), str(source), "-lpthread"], check=True)
    return str(target)


@pytest.mark.timeout(1300)
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
def test_every_call_has_the_same_result_and_errno(place: Path) -> None:
    (place / "conformance_cases.h").write_text(cases())
    program = compiled_here("conformance", place)
    native = run(NATIVE, [program], place / "work")
    away = run(AWAY, [program], place / "work")
    assert len(native) == len(away) > 2500
    different = [
        f"{ours} (natively {theirs.rsplit(': ', 1)[-1]})"
        for theirs, ours in zip(native, away, strict=True)
        if theirs != ours and not any(re.match(pattern, ours) for pattern in KNOWN)
    ]
    assert different == []


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
def test_waiting_calls_and_signals(place: Path) -> None:
    program = compiled_here("interruptions", place)
    native = run(NATIVE, [program], place / "work")
    assert run(AWAY, [program], place / "work") == native
    assert len(native) > 40


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
def test_refused_calls_have_the_errno_of_the_table(place: Path) -> None:
    lines = [f'    {{{number}, "{name}"}},' for name, (number, _) in refused().items()]
    source = place / "refused.c"
    source.write_text(
        "#define _GNU_SOURCE\n#include <errno.h>\n#include <stdio.h>\n#include <unistd.h>\n"
        "static const struct { long number; const char *name; } calls[] = {\n" + "\n".join(lines) + "\n};\n"
        "int main(void) {\n"
        "    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) {\n"
        "        errno = 0;\n"
        "        long result = syscall(calls[i].number, 0, 0, 0, 0, 0, 0);\n"
        '        printf("%s %d\\n", calls[i].name, result == -1 ? errno : 0);\n'
        "    }\n    return 0;\n}\n"
    )
    target = place / "refused"
    subprocess.run(["gcc", "-o", str(target), str(source)], check=True)
    away = run(AWAY, [str(target)], place / "work")
    assert away == [f"{name} {getattr(errno, error)}" for name, (_, error) in refused().items()]
