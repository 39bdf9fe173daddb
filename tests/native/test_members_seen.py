"""What a program finds under /proc of itself and of its family is the native thing, also when all are moved."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.chain import Chain
from tests.native.conftest import SOURCES, Compile, finished, tool

NEEDED = ("ps", "pgrep", "pstree", "top")


@pytest.mark.skipif(any(shutil.which(name) is None for name in NEEDED), reason=f"needs {NEEDED}")
@pytest.mark.parametrize(("rest_ms", "links", "pause_s"), [(1, 0, 0.0), (250, 8, 0.3), (20, 12, 0.05)])
def test_what_a_program_finds_of_its_family_is_the_native_thing(
    rest_ms: int, links: int, pause_s: float, tmp_path: Path
) -> None:
    native, here = tmp_path / "place", tmp_path / "other" / "place"
    native.mkdir()
    here.mkdir(parents=True)
    command = [sys.executable, str(SOURCES / "family_watch.py"), str(rest_ms)]
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    done = subprocess.run(
        command,
        cwd=native,
        capture_output=True,
        check=True,
        stdin=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )
    life = Chain(command, here.parent, seed=links, work=here).live(links, pause_s)
    assert life.output.decode() == done.stdout.decode()
    assert life.status == 0
    assert bool(life.links) == bool(links)


def test_nobody_else_is_there(tmp_path: Path) -> None:
    """But for process 1, which stands for what started the family."""
    code = (
        "import os\n"
        "print(sorted(int(name) for name in os.listdir('/proc') if name.isdigit()) == [1, os.getpid()])\n"
        "print(open('/proc/1/comm').read(), os.path.exists(f'/proc/{SHADOW}'), 'meminfo' in os.listdir('/proc'))\n"
    ).replace("SHADOW", str(os.getpid()))
    assert finished(tool("run", "--", sys.executable, "-c", code), tmp_path)[:2] == (0, b"True\ninit\n False True\n")


LIMITS = """
import resource, subprocess
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 120))
resource.setrlimit(resource.RLIMIT_CORE, (0, 4096))
head, *lines = open("/proc/self/limits").read().split("\\n")
print(repr(head), len(lines))
for number, line in enumerate(lines[:-1]):
    said = [-1 if word == "unlimited" else int(word) for word in (line[26:47].strip(), line[47:68].strip())]
    print(line[:26], repr(line[68:]), tuple(said) == resource.getrlimit(number))
print(lines[7], lines[4], subprocess.check_output(["grep", "open files", "/proc/self/limits"]))
"""


def test_the_limits_of_a_process_are_told(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIMITS]
    native = finished(command, tmp_path)
    assert native[1].count(b"True") == 16
    assert finished([*tool("run", "--"), *command], tmp_path) == native


def test_what_others_have_for_themselves_is_refused(tmp_path: Path) -> None:
    code = (
        "import os, signal\n"
        "if not (child := os.fork()):\n"
        "    signal.pause()\n"
        "for name in ('environ', 'maps', 'fd', 'fd/0', 'fdinfo/0', 'mem', 'stat'):\n"
        "    try:\n"
        "        os.close(os.open(f'/proc/{child}/{name}', os.O_RDONLY if name != 'stat' else os.O_WRONLY))\n"
        "    except OSError as error:\n"
        "        print(name, error.strerror)\n"
        "os.kill(child, 9)\n"
    )
    _, out, _ = finished(tool("run", "--", sys.executable, "-c", code), tmp_path)
    said = dict(line.split(" ", 1) for line in out.decode().splitlines())
    assert said == dict.fromkeys(("environ", "maps", "fd", "fd/0", "fdinfo/0", "stat"), "Permission denied") | {
        "mem": "No such file or directory"
    }


def test_it_is_said_beforehand_that_no_memory_of_others_can_be_read(tmp_path: Path) -> None:
    """Open MPI goes by it; the call that does so is refused."""
    code = "cat /proc/sys/kernel/yama/ptrace_scope; ls /proc/self | grep -c scope"
    assert finished(tool("run", "--", "/bin/sh", "-c", code), tmp_path)[1] == b"3\n0\n"


def test_who_is_killed_while_it_reads_keeps_nobody_waiting(compiled: Compile, tmp_path: Path) -> None:
    assert finished(tool("run", "--", compiled("killed_readers"), "1000"), tmp_path)[:2] == (0, b"1000 of 1000\n")
