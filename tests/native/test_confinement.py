"""A hostile program inside the runtime: what the filter's own rules forbid must be fatal, wherever it is tried."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.native.attacks import DIES, attacks
from tests.native.conftest import Compile, finished, tool


def test_every_attack_dies_or_gets_its_errno(compiled: Compile, tmp_path: Path) -> None:
    expected = attacks()
    assert list(expected.values()).count(DIES) > 600
    assert len(expected) > 750
    with subprocess.Popen(["sleep", "1000"]) as bystander:
        status, out, err = finished([*tool("run", "--"), compiled("hostile")], tmp_path, "\n".join(expected).encode())
        assert bystander.poll() is None
        bystander.kill()
    found = dict(line.split(" ", 1) for line in out.decode().splitlines())
    assert {word: found.get(word) for word in expected if found.get(word) != expected[word]} == {}
    assert (status, err) == (0, b"")
    assert os.listdir(tmp_path) == []


def test_the_other_way_into_the_kernel(compiled: Compile, tmp_path: Path) -> None:
    """What ``sysenter`` does depends on the processor: it is not known to some in this mode."""
    _, out, _ = finished([*tool("run", "--"), compiled("hostile")], tmp_path, b"sysenter:14:1\nsysenter:1:1\n")
    assert {line.split(" ", 1)[1] for line in out.decode().splitlines()} <= {DIES, "signal 4", "signal 11"}


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
    _status, out, _err = finished([*tool("run", "--"), sys.executable, "-c", code, str(tmp_path)], tmp_path)
    assert out == b"True\n"
