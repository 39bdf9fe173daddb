"""What a program does with descriptors of processes (pidfd) is the native thing, also when all are moved."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.chain import Chain
from tests.native.conftest import Compile

WATCHES = """
import asyncio, os, signal, sys

async def one(number):
    child = await asyncio.create_subprocess_exec("/bin/sh", "-c", f"sleep 0.{number}; exit {number}")
    return await child.wait()

async def main():
    own = os.pidfd_open(os.getpid())
    signal.pidfd_send_signal(own, 0)
    print(await asyncio.gather(*(one(number) for number in range(1, 6))))

with asyncio.Runner() as runner:
    asyncio.set_child_watcher(watcher := asyncio.PidfdChildWatcher())
    watcher.attach_loop(runner.get_loop())
    runner.run(main())
"""
"""Needs Python 3.11 to 3.13: later ones have no choice of watchers, and take this one by themselves."""


@pytest.mark.parametrize(("rest_ms", "links", "pause_s"), [(5, 0, 0.0), (120, 10, 0.15), (60, 14, 0.02)])
def test_what_a_program_does_with_descriptors_of_processes_is_the_native_thing(
    rest_ms: int, links: int, pause_s: float, compiled: Compile, tmp_path: Path
) -> None:
    command = [compiled("process_files"), str(rest_ms)]
    native = subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL)
    life = Chain(command, tmp_path, seed=links).live(links, pause_s)
    assert life.output.decode() == native.stdout.decode()
    assert life.status == 0
    assert bool(life.links) == bool(links)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="there is no choice of watchers")
def test_python_watches_its_children_by_descriptors(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", WATCHES]
    native = subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL)
    life = Chain(command, tmp_path, seed=3).live(5, 0.1)
    assert (life.status, life.output) == (native.returncode, native.stdout)
    assert life.links
