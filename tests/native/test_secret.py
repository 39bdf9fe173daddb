"""The encrypted channel: the cipher against another implementation, programs through it, and someone on the wire."""

from __future__ import annotations

import os
import select
import shutil
import socket
import struct
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from condor_actors.machine.native.programs import runtime_path
from condor_actors.machine.native.shadow import EventKind, ShadowHost, Task
from tests.native.chain import at_end_of_test, end_family
from tests.native.conftest import DEADLINE_S, SOURCES

SIZES = [0, 1, 15, 16, 17, 63, 64, 100, 191, 192, 193, 255, 256, 257, 1000, 4096, 65535, 65536]
LOST = 113


def test_records_are_those_of_the_standard(tmp_path: Path) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    header = Path(__file__).parents[2] / "native" / "seal.h"
    program = tmp_path / "seal"
    command = [compiler, "-O2", "-mno-avx", f'-DSEAL_HEADER="{header}"', "-o", str(program), str(SOURCES / "seal.c")]
    subprocess.run(command, check=True)
    key = bytes(range(32))
    for size in SIZES:
        count = 0x1122334455667788 + size
        text = bytes((i * 7 + 3) & 255 for i in range(size))
        head = struct.pack("<I", size)
        record = head + ChaCha20Poly1305(key).encrypt(struct.pack("<IQ", 1, count), text, head)
        done = subprocess.run([str(program), str(count), str(size)], capture_output=True, check=True)
        assert done.stdout.decode() == record.hex(), size


class Wire(threading.Thread):
    """Carries bytes between two sockets, keeps them, and may change one byte from home."""

    def __init__(self, one: socket.socket, two: socket.socket, change_at: int | None = None) -> None:
        super().__init__(daemon=True)
        self.ends = (one, two)
        self.seen = bytearray()
        self.change_at = change_at

    def run(self) -> None:
        """Carry until one side ends."""
        try:
            while True:
                for end in select.select(self.ends, [], [])[0]:
                    other = self.ends[1 - self.ends.index(end)]
                    data = bytearray(end.recv(1 << 16))
                    if not data:
                        raise ConnectionError
                    if self.change_at is not None and len(self.seen) <= self.change_at < len(self.seen) + len(data):
                        data[self.change_at - len(self.seen)] ^= 1
                    self.seen += data
                    other.sendall(data)
        except OSError:
            for end in self.ends:
                end.close()


def run(command: list[str], folder: Path, wire: bool, change_at: int | None = None) -> tuple[int, bytes, bytes, bool]:
    """Run COMMAND with an encrypted channel; return its status, output, the wire's bytes, and whether it was broken."""
    host = ShadowHost()
    key = os.urandom(32)
    reader, writer = os.pipe()
    os.write(writer, key)
    os.close(writer)
    ours, theirs = socket.socketpair()
    carrier = None
    if wire:
        near, theirs_now = socket.socketpair()
        carrier = Wire(theirs, near, change_at)
        carrier.start()
        theirs = theirs_now
    broken = False
    with (folder / "output").open("w+b") as output, open(os.devnull, "rb") as null:
        task = Task(
            program=command[0],
            arguments=command,
            environment={"PATH": os.environ["PATH"]},
            directory=str(folder),
            standard_fds=(null.fileno(), output.fileno(), output.fileno()),
            key=key,
        )
        session = host.open(ours, task)
        words = [runtime_path(), str(theirs.fileno()), "-", "family", f"key={reader}"]
        process = subprocess.Popen(words, pass_fds=(theirs.fileno(), reader))
        at_end_of_test(partial(end_family, process))
        theirs.close()
        os.close(reader)
        over = False
        while not over:
            assert select.select([host], [], [], DEADLINE_S)[0]
            for event in host.events():
                if event.session == session:
                    broken |= event.kind is EventKind.BROKEN
                    over |= event.kind is EventKind.ENDED
        status = process.wait(DEADLINE_S)
        output.seek(0)
        return status, output.read(), bytes(carrier.seen) if carrier else b"", broken


def test_programs_and_their_helpers_run_encrypted(tmp_path: Path) -> None:
    (tmp_path / "native").mkdir()
    (tmp_path / "remote").mkdir()
    command = [sys.executable, str(SOURCES / "io_order.py")]
    native = subprocess.run(command, cwd=tmp_path / "native", capture_output=True, check=True)
    status, out, _seen, broken = run(command, tmp_path / "remote", wire=False)
    assert (status, out, broken) == (0, native.stdout, False)


def test_nothing_readable_passes_the_wire(tmp_path: Path) -> None:
    (tmp_path / "secret-name").write_text("secret content" * 1000)
    status, out, seen, _broken = run(["/bin/cat", "secret-name"], tmp_path, wire=True)
    assert (status, len(out)) == (0, 14000)
    assert len(seen) > 14000
    for word in (b"secret-name", b"/bin/cat", b"GLIBC_2"):
        assert word not in seen


@pytest.mark.parametrize("place", [2, 7, 100, 20000])
def test_a_changed_byte_ends_the_session(place: int, tmp_path: Path) -> None:
    status, out, _seen, broken = run(["/bin/echo", "never said"], tmp_path, wire=True, change_at=place)
    assert out == b""
    assert {broken, status in (LOST, 115)} != {False}, "the shadow notices, or the runtime"
