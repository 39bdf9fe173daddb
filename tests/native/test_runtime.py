"""Unmodified programs do under the runtime what they do natively: output, status, files."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from pathlib import Path

import pytest

from tests.native.conftest import Compile, finished, tool

COMMANDS = {
    "echo": ["echo", "a", "b c"],
    "cat from standard input": ["cat"],
    "md5sum": ["md5sum", "/bin/sh", "/etc/os-release"],
    "ls": ["ls", "-l", "/usr"],
    "sort": ["sort", "-r"],
    "find": ["find", "/usr/share/doc", "-name", "a*"],
    "tar": ["tar", "cf", "-", "/etc/apt"],
    "xz with threads": ["xz", "-T2", "-0", "-c", "/bin/sh"],
    "awk": ["awk", "BEGIN { for (i = 0; i < 1000; i++) s += i; print s }"],
    "perl": ["perl", "-e", 'my %h = map { $_ => 1 } 1..100; print scalar(keys %h), " $0\\n"'],
    "shell with pipes": ["sh", "-c", "for i in 1 2 3; do echo $i; done | sort -r | tr 1-3 a-c; exit 4"],
    "bash": ["bash", "-c", "x=$(echo inner | cat); echo $x; false; echo $?; exec echo over"],
    "shell that dies": ["sh", "-c", "kill -9 $$"],
    "gcc": ["sh", "-c", "echo 'int main(){return 42;}' > t.c && gcc -o t t.c && ./t"],
    "sqlite3": ["sqlite3", "t.db", "create table a(b); insert into a values(1),(41); select sum(b) from a;"],
    "python": [sys.executable, "-c", "import json, hashlib, threading; print(json.dumps([1, 2]))"],
    "node": ["node", "-e", "setTimeout(() => console.log([1, 2].map(x => x * x)), 5)"],
    "program that is not there": ["sh", "-c", "no_such_program"],
}


def both(command: list[str], tmp_path: Path, given: bytes = b"") -> tuple[object, object]:
    """Run COMMAND natively and under the runtime, each in an empty directory of the same name."""
    results = []
    for prefix in ([], tool("run", "--")):
        folder = tmp_path / "work"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        status, out, err = finished([*prefix, *command], folder, given)
        files = {p.name: p.read_bytes() for p in sorted(folder.iterdir()) if p.is_file() and p.suffix != ".o"}
        files.pop("t", None)  # the linker's output names the temporary files it came from
        files.pop("t.db", None)
        results.append((status, out, err, files))
    return results[0], results[1]


@pytest.mark.parametrize("name", COMMANDS)
def test_programs_do_the_same(name: str, tmp_path: Path) -> None:
    command = COMMANDS[name]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    native, remote = both(command, tmp_path, b"pear\napple\n")
    assert remote == native


@pytest.mark.parametrize("program", ["threads", "signals", "calls", "forks", "spawns"])
def test_compiled_programs_do_the_same(program: str, compiled: Compile, tmp_path: Path) -> None:
    native, remote = both([compiled(program)], tmp_path)
    assert remote == native


def test_limits_give_the_same_errors(compiled: Compile, tmp_path: Path) -> None:
    """ENAMETOOLONG, ELOOP, EMFILE; a limit on descriptors counts although they exist only at home."""
    said = []
    for place, words in (("native", [compiled("limits")]), ("here", tool("run", "--", compiled("limits")))):
        (tmp_path / place).mkdir()
        said.append(finished(words, tmp_path / place))
    assert said[0] == said[1]
    assert b"up to 23: EMFILE" in said[0][1]


def test_scripts_and_their_interpreters(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text('#!/bin/sh -e\necho "$0 $1 $#"\n')
    script.chmod(0o755)
    native, remote = both([str(script), "x", "y"], tmp_path)
    assert remote == native


def test_the_program_sees_itself_not_the_runtime(tmp_path: Path) -> None:
    code = (
        "import os, sys; print(os.path.realpath(os.readlink('/proc/self/exe')) == os.path.realpath(sys.executable),"
        "os.getpid() == int(os.readlink('/proc/self')), open('/proc/self/cmdline').read().split('\\0')[1],"
        "'condor' in open('/proc/self/maps').read())"
    )
    _status, out, _err = finished([*tool("run", "--"), sys.executable, "-c", code], tmp_path)
    assert out == b"True True -c False\n"


def test_nothing_outside_the_program_is_reached(tmp_path: Path) -> None:
    """Neither who listens on this machine, by TCP or by a path or an abstract name, nor any other one."""
    served = [socket.socket(), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)]
    names = [("127.0.0.1", 0), str(tmp_path / "outside"), f"\0outside {os.getpid()}"]
    for one, name in zip(served, names, strict=True):
        one.bind(name)
        one.listen()
    places = [one.getsockname() for one in served]
    code = (
        "import socket\n"
        f"for place in {[place.decode() if isinstance(place, bytes) else place for place in places]!r}:\n"
        "    family = socket.AF_INET if isinstance(place, tuple) else socket.AF_UNIX\n"
        "    try:\n        socket.socket(family).connect(place)\n"
        "    except OSError as error:\n        print(error.strerror)\n"
        "mine = socket.socket()\n"
        f"mine.bind({places[0]!r})\nmine.listen()\nprint('its own')"
    )
    _status, out, _err = finished([*tool("run", "--"), sys.executable, "-c", code], tmp_path)
    assert out == b"Connection refused\n" * 3 + b"its own\n"
    for one in served:
        one.setblocking(False)
        with pytest.raises(BlockingIOError):
            one.accept()
        one.close()


def test_a_program_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"\x7fELF" + bytes(100))
    garbage.chmod(0o755)
    status, _out, err = finished([*tool("run", "--"), str(garbage)])
    assert status == 115
    assert b"cannot be started: Exec format error" in err


def test_misuse_is_told_in_one_line() -> None:
    for words, text in [
        (["run"], b"which program?"),
        (["run", "--every", "soon", "--", "true"], b"--every soon: not a time"),
        (["jump"], b"unknown command 'jump'"),
        (["restart", "/etc/passwd"], b"not an ELF file"),
        (["info"], b"info: the following arguments are required: FILE; see condor_checkpoint info --help"),
        (["verify", "/nowhere"], b"/nowhere: No such file or directory"),
        (["core", "--x"], b"core: "),
        (["now", "x"], b"now: x: not the number of a process"),
        (["now", str(os.getpid())], b"does not run under condor_checkpoint"),
    ]:
        status, _out, err = finished(tool(*words))
        assert status == 1
        assert text in err
        assert err.count(b"\n") == 1


@pytest.mark.parametrize("command", ["run", "restart", "now", "info", "verify", "core", "preflight"])
def test_each_command_tells_its_options(command: str) -> None:
    status, out, err = finished(tool(command, "--help"))
    assert (status, err) == (0, b"")
    assert out.startswith(f"Usage: condor_checkpoint {command} ".encode())


def test_code_is_not_written_through_one_mapping_and_run_through_another(tmp_path: Path) -> None:
    """Each mapping of a file is memory of its own here; compilers at run time that hear so have another way."""
    code = (
        "import mmap, os\nfd = os.memfd_create('code')\nos.ftruncate(fd, 4096)\n"
        "mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)[:2] = b'ok'\n"
        "try:\n    mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_EXEC)\n"
        "except PermissionError:\n    print('refused')\n"
        "mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)\n"
        "mmap.mmap(os.open('/bin/sh', os.O_RDONLY), 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_EXEC)\n"
    )
    assert finished(tool("run", "--", sys.executable, "-c", code), tmp_path) == (0, b"refused\n", b"")


OF_OPEN_FILES = """
import os, stat
os.mkdir("folder"); open("file", "w").close()
for name in ("folder", "file"):
    for flags in (os.O_PATH, os.O_RDONLY):
        link = f"/proc/self/fd/{os.open(name, flags)}"
        os.chmod(link, 0o705), os.utime(link, (1, 2)), os.chown(link, os.getuid(), -1)
        print(oct(os.stat(name).st_mode), os.stat(name).st_mtime, stat.S_ISLNK(os.lstat(link).st_mode))
        if os.chmod in os.supports_follow_symlinks:
            os.chmod(name, 0o750, follow_symlinks=False)
gone = os.open("gone", os.O_RDWR | os.O_CREAT)
os.unlink("gone")
os.chmod(f"/dev/fd/{gone}", 0o604)
print(oct(os.fstat(gone).st_mode))
try:
    os.chmod("/proc/self/fd/99", 0o600)
except OSError as error:
    print(error)
"""


def test_what_a_link_to_an_open_file_stands_for_is_changed_by_it(tmp_path: Path) -> None:
    """As the C library changes a mode without following a link: tar does so for each directory that it makes."""
    said = []
    for place, words in (("native", []), ("here", tool("run", "--"))):
        (tmp_path / place).mkdir()
        said.append(finished([*words, sys.executable, "-c", OF_OPEN_FILES], tmp_path / place))
    assert said[0][0] == 0, said[0][2]
    assert said[1] == said[0]


def test_how_much_a_program_gives_way_is_kept(tmp_path: Path) -> None:
    """Over an exec and a fork, as it is told; who has given way does not get it back."""
    code = "export b=$(nice); nice -n 3 sh -c 'echo $(($(nice) - b)); nice -n 4 sh -c \"nice; nice -n 1 nice\"; nice'"
    assert finished(tool("run", "--", "/bin/sh", "-c", code), tmp_path) == (0, b"3\n7\n8\n3\n", b"")
