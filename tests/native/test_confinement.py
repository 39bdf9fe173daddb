"""A hostile program inside the runtime: what the filter's own rules forbid must be fatal, wherever it is tried."""

from __future__ import annotations

import re
from pathlib import Path

from .conftest import Compile, finished, tool

NATIVE = Path(__file__).parents[2] / "native"

# Permitted with particular arguments: these are near misses. NUMBER:a0:a1:a2:a3 in hexadecimal.
NEAR_MISSES = {
    "read from another descriptor": "0:0:0:0",
    "writev to another descriptor": "20:1:0:0",
    "recvmsg from another descriptor": "47:0:0:0",
    "map a file": "9:0:1000:1:2",
    "map a file to be shared": "9:0:1000:1:1",
    "map huge pages": "9:0:1000:1:40022",
    "clone into new namespaces": "56:10000000:0:0",
    "clone sharing memory without being a thread": "56:111:0:0",
    "clone as a child of the parent": "56:8011:0:0",
    "duplicate over standard output": "292:3:1:0",
    "duplicate standard input over the channel": "292:0:3:0",
    "close the channel": "3:3:0:0",
    "write at a place of the channel": "18:3:0:0",
    "truncate another file": "77:1:0:0",
    "change a limit": "302:0:7:6fff00000000",
    "limits of another process": "302:1:7:0",
    "signal every process": "62:ffffffff:9:0",
    "signal a group": "62:fffffffe:9:0",
    "signal the own group": "62:0:9:0",
    "control-flow enforcement": "158:5001:0:0",
}


def permitted_in_any_case() -> set[str]:
    """Names of the calls that the filter lets the runtime make with any arguments."""
    text = (NATIVE / "runtime" / "filter.c").read_text()
    always = set(re.findall(r"\{__NR_(\w+), \{\{0\}\}\}", text)) | {"clock_gettime", "madvise", "futex"}
    senders = {"tgkill", "rt_tgsigqueueinfo", "kill"}
    conditional = set(re.findall(r"\{__NR_(\w+), \{\{[A-Z]", text))
    assert always
    assert conditional
    return always | senders


def forbidden_calls() -> list[int]:
    """Numbers of all calls that must be fatal when they come from the runtime's text with wrong arguments."""
    numbers = []
    permitted = permitted_in_any_case()
    for line in (NATIVE / "syscalls.tbl").read_text().splitlines():
        if line and not line.startswith("#"):
            number, name, how = line.split()[:3]
            if how != "local" and name not in permitted:
                numbers.append(int(number))
    return numbers


def test_jumping_into_the_runtime_is_fatal(compiled: Compile, tmp_path: Path) -> None:
    attacks = [str(number) for number in forbidden_calls()] + list(NEAR_MISSES.values())
    assert len(attacks) > 300
    command = [*tool("run", "--"), compiled("hostile"), *attacks]
    status, out, err = finished(command, tmp_path)
    assert (status, err) == (0, b"")
    assert out == f"{len(attacks)} died\n".encode()


def test_the_shadows_own_memory_is_out_of_reach(tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "shadow = os.getppid()\n"
        "import glob\n"
        "tried = 0\n"
        "for pid in [p for p in os.listdir('/proc') if p.isdigit()]:\n"
        "    for mode in (os.O_WRONLY, os.O_RDWR):\n"
        "        try:\n"
        "            os.open(f'/proc/{pid}/mem', mode)\n"
        "            print('opened', pid)\n"
        "        except OSError:\n"
        "            tried += 1\n"
        "print(tried > 0)\n"
        "for name in ('maps', 'environ', 'mem'):\n"
        "    for pid in [p for p in os.listdir('/proc') if p.isdigit()]:\n"
        "        try:\n"
        "            text = open(f'/proc/{pid}/cmdline').read()\n"
        "            if sys.argv[1] in text and int(pid) != os.getpid():\n"
        "                open(f'/proc/{pid}/{name}', 'rb').read(1)\n"
        "                print('read', pid, name)\n"
        "        except OSError:\n"
        "            pass\n"
    )
    import sys

    _status, out, _err = finished([*tool("run", "--"), sys.executable, "-c", code, str(tmp_path)], tmp_path)
    assert out == b"True\n"
