"""Helpers of a program whose channel goes straight home: a connection of their own, or the relay's."""

from __future__ import annotations

import os
import selectors
import socket
import struct
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from condor_actors.machine.native.programs import runtime_path
from condor_actors.machine.native.shadow import EventKind, ShadowHost, Task
from tests.native.chain import at_end_of_test, end_family

DEADLINE_S = 120
CONTROL = struct.Struct("<IIq")
MEMBER = 6

FAMILY = """
echo first | cat
for i in 1 2 3 4 5 6; do ( echo one $i; sh -c "echo two $i; ( echo three $i )" | sed s/t/T/ ) & done
wait
x=$(printf '%s' deep | sed s/d/D/ | ( cat; echo er ))
echo $x
sh -c 'exit 7'
echo $?
sh -c 'kill -9 $$'
echo $?
"""


class Starter:
    """Runs ``sh -c SCRIPT`` with a channel of its own straight home, and does what the two hosts do beside that."""

    def __init__(self, script: str, folder: Path, *, spares: bool, encrypted: bool) -> None:
        self.host, self.spares = ShadowHost(), spares
        self.selector = selectors.DefaultSelector()
        self.kinds: list[EventKind] = []
        self.controls: dict[socket.socket, bytes] = {}
        self.asked: dict[int, socket.socket] = {}
        self.straight: dict[int, int] = {}
        self.relayed: dict[int, int] = {}
        self.kept: dict[int, socket.socket] = {}
        self.labels = 0
        self.output = folder / "output"
        key = os.urandom(32) if encrypted else None
        reader, writer = os.pipe()
        os.write(writer, key or b"")
        os.close(writer)
        ours, theirs = socket.socketpair()
        control = self.control()
        words = [runtime_path(), str(theirs.fileno()), "-", "family", f"control={control.fileno()}"]
        with self.output.open("wb") as output, open(os.devnull) as null, theirs, control:
            task = Task(program="/bin/sh", arguments=["sh", "-c", script], environment={"PATH": os.environ["PATH"]},
                        directory=str(folder), standard_fds=(null.fileno(), output.fileno(), output.fileno()),
                        key=key, direct=True, spares=True)  # fmt: skip
            self.session = self.host.open(ours, task)
            self.process = subprocess.Popen(
                [*words, f"key={reader}"] if key else words,
                pass_fds=(theirs.fileno(), control.fileno(), reader), stdin=subprocess.DEVNULL,
            )  # fmt: skip
        at_end_of_test(partial(end_family, self.process))
        os.close(reader)
        self.selector.register(self.host, selectors.EVENT_READ)

    def control(self) -> socket.socket:
        """Make a control socket; the process's end of it."""
        ours, theirs = socket.socketpair()
        self.controls[ours] = b""
        self.selector.register(ours, selectors.EVENT_READ)
        return theirs

    def hear(self, control: socket.socket) -> None:
        """Take what a process says."""
        data = control.recv(4096)
        if not data:
            self.selector.unregister(control)
            del self.controls[control]
            control.close()
            return
        self.controls[control] += data
        while len(self.controls[control]) >= CONTROL.size:
            what, _, value = CONTROL.unpack_from(self.controls[control])
            self.controls[control] = self.controls[control][CONTROL.size :]
            if what == MEMBER:
                self.asked[value] = control

    def give_spare(self) -> None:
        """Give the session a connection, or say that there is none."""
        if not self.spares:
            self.host.spare(self.session, None, 0)
            return
        self.labels += 1
        ours, theirs = socket.socketpair()
        try:
            self.host.spare(self.session, ours, self.labels)
        except OSError:  # it has enough
            ours.close()
            theirs.close()
        else:
            self.kept[self.labels] = theirs

    def take_events(self) -> None:
        """Take what the session tells."""
        for event in self.host.events():
            if event.session != self.session:
                continue
            assert event.kind is not EventKind.BROKEN, event.text
            self.kinds.append(event.kind)
            if event.kind is EventKind.WANTS_SPARE:
                self.give_spare()
            elif event.kind is EventKind.MEMBER_STRAIGHT:
                self.straight[event.detail] = event.value
                self.give_spare()
            elif event.kind is EventKind.MEMBER:
                self.relayed[event.detail] = event.value

    def give(self) -> None:
        """Give the helpers their channels."""
        for child, control in [*self.asked.items()]:
            if child in self.straight:
                own = self.control()
                with self.kept.pop(self.straight.pop(child)) as channel, own:
                    socket.send_fds(control, [CONTROL.pack(0, 0, 1)], [channel.fileno(), own.fileno()])
            elif child in self.relayed:
                channel_fd = self.relayed.pop(child)
                socket.send_fds(control, [CONTROL.pack(0, 0, 0)], [channel_fd])
                os.close(channel_fd)
            else:
                continue
            del self.asked[child]

    def until(self, kind: EventKind) -> None:
        """Serve until an event of that kind has come."""
        end_s = time.monotonic() + DEADLINE_S
        while kind not in self.kinds:
            assert time.monotonic() < end_s, self.kinds
            for key, _ in self.selector.select(1):
                if key.fileobj is self.host:
                    self.take_events()
                else:
                    assert isinstance(key.fileobj, socket.socket)
                    self.hear(key.fileobj)
            self.give()

    def close(self) -> int:
        """Wait for the program; its status."""
        for each in (*self.controls, *self.kept.values()):
            each.close()
        self.selector.close()
        return self.process.wait(DEADLINE_S)


def natively(folder: Path) -> subprocess.CompletedProcess[bytes]:
    """Run the family without us."""
    command = ["sh", "-c", FAMILY]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, cwd=folder)


@pytest.mark.parametrize("encrypted", [False, True])
def test_helpers_and_theirs_have_connections_of_their_own(encrypted: bool, tmp_path: Path) -> None:
    native = natively(tmp_path)
    starter = Starter(FAMILY, tmp_path, spares=True, encrypted=encrypted)
    starter.until(EventKind.ENDED)
    assert starter.close() == native.returncode
    assert EventKind.MEMBER not in starter.kinds
    assert starter.kinds.count(EventKind.MEMBER_STRAIGHT) > 30
    assert sorted(starter.output.read_bytes().splitlines()) == sorted(native.stdout.splitlines())


@pytest.mark.parametrize("encrypted", [False, True])
def test_without_such_connections_they_are_relayed(encrypted: bool, tmp_path: Path) -> None:
    native = natively(tmp_path)
    starter = Starter(FAMILY, tmp_path, spares=False, encrypted=encrypted)
    starter.until(EventKind.ENDED)
    assert starter.close() == native.returncode
    assert EventKind.MEMBER in starter.kinds
    assert EventKind.MEMBER_STRAIGHT not in starter.kinds
    assert starter.kinds.count(EventKind.WANTS_SPARE) == 1
    assert sorted(starter.output.read_bytes().splitlines()) == sorted(native.stdout.splitlines())


def test_the_end_of_a_session_ends_its_helpers(tmp_path: Path) -> None:
    starter = Starter("trap '' TERM; cat < /dev/zero > /dev/null", tmp_path, spares=True, encrypted=True)
    starter.until(EventKind.MEMBER_STRAIGHT)
    starter.host.close(starter.session)
    starter.until(EventKind.ENDED)  # the helper's session as well
    assert starter.close() == 113
