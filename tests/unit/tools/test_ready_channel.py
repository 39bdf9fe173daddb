"""A daemon's first words count when they are its own account's."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from condor_actors.tools.lib.ready_channel import ReadyChannel

SAY = """
import os, socket, sys
os.setuid(int(sys.argv[3]))
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
    channel.sendto(sys.argv[2].encode(), "\\0" + sys.argv[1][1:])
"""
LONG_S = 60.0


@pytest.fixture
def running() -> Iterator[int]:
    """The pidfd of a process that runs."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        descriptor = os.pidfd_open(process.pid)
        yield descriptor
        os.close(descriptor)
        process.kill()


def say(channel: ReadyChannel, text: str, uid: int = os.getuid()) -> None:
    subprocess.run([sys.executable, "-I", "-c", SAY, channel.address, text, str(uid)], check=True)


def test_what_the_own_account_says_is_heard(running: int) -> None:
    with ReadyChannel("test") as channel:
        say(channel, "READY=1\nSTATUS=up")
        assert channel.lines(running, time.monotonic() + LONG_S) == ["READY=1", "STATUS=up"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be someone else")
def test_strangers_are_not_heard(running: int) -> None:
    with ReadyChannel("test") as channel:
        say(channel, "READY=1", uid=65534)
        with pytest.raises(TimeoutError):
            channel.lines(running, time.monotonic())
        say(channel, "READY=1", uid=65534)
        say(channel, "STATUS=starts")
        assert channel.lines(running, time.monotonic() + LONG_S) == ["STATUS=starts"]


def test_the_end_of_the_daemon_is_heard_of() -> None:
    with ReadyChannel("test") as channel, subprocess.Popen(["true"]) as process:
        descriptor = os.pidfd_open(process.pid)
        with pytest.raises(ProcessLookupError):
            channel.lines(descriptor, time.monotonic() + LONG_S)
        os.close(descriptor)
