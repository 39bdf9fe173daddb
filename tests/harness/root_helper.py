"""The helper that stays root, driven by raw messages as a daemon that was taken over would."""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import select
import socket
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from condor_actors.machine.native.programs import launcher_path, program_path

MAGIC = 0x544F4F52
READY, START, OPEN, SIGNAL, GIVE, TAKE, REMOVE, MEASURE, PROGRAM, WATCH = range(1, 11)
OWN_PIDS = 1
ORDER = struct.Struct("<IIQIIIiII4096s")
ANSWER = struct.Struct("<IIQiIq232s")
SHEET = struct.Struct("<IIII16i")
POOL, ALICE, BOB = 60_101, 60_123, 60_124
DEADLINE_S = 60.0


@attrs.frozen
class Answer:
    """What the helper said."""

    kind: int
    number: int
    error: int
    value: int
    reason: str
    descriptor: int


class Helper:
    """A helper with a policy of its own; numeric accounts that no user database knows.

    Args:
        policy: further words of it; with ``exact`` all that there are.
        environment: further variables of it.
    """

    def __init__(self, *policy: str, orders: str = "start,open,signal,give,take,remove,measure",
                 accounts: Sequence[int] = (ALICE, BOB), exact: bool = False,
                 environment: Mapping[str, str] | None = None) -> None:
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket = mine
        listed = [word for uid in accounts for word in ("--account", str(uid), str(uid))]
        usual = [] if exact else [*listed, "--orders", orders, "--launcher", launcher_path()]
        self.process = subprocess.Popen(
            [program_path("condor_root"), str(its.fileno()), "--pool", str(POOL), str(POOL), *usual, *policy],
            pass_fds=(its.fileno(),), env={"PATH": "/usr/bin:/bin", **(environment or {})})
        its.close()
        mine.settimeout(DEADLINE_S)
        self._number = 0

    def __enter__(self) -> Helper:
        assert self.order(READY).error == 0
        return self

    def __exit__(self, *_: Any) -> None:
        self.socket.close()
        self.process.wait(DEADLINE_S)

    def send(self, data: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send any bytes with any descriptors."""
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        self.socket.sendmsg([data], control)

    def receive(self) -> Answer:
        """The next answer."""
        data, control, _, _ = self.socket.recvmsg(ANSWER.size, socket.CMSG_SPACE(4))
        assert len(data) == ANSWER.size
        magic, kind, number, error, _, value, reason = ANSWER.unpack(data)
        assert magic == MAGIC
        descriptor = array.array("i", control[0][2])[0] if control else -1
        return Answer(kind, number, error, value, reason.split(b"\0")[0].decode(), descriptor)

    def order(self, kind: int, uid: int = 0, text: bytes | str = b"", descriptors: Sequence[int] = (), *,
              flags: int = 0, mode: int = 0, signal: int = 0, extra: int = 0, claimed: int | None = None) -> Answer:
        """An order, and its answer."""
        self._number += 1
        raw = text.encode() if isinstance(text, str) else text
        count = len(descriptors) if claimed is None else claimed
        self.send(ORDER.pack(MAGIC, kind, self._number, uid, flags, mode, signal, count, extra, raw), descriptors)
        answer = self.receive()
        assert answer.number == self._number
        return answer

    def open(self, uid: int, path: Path | str, flags: int = os.O_RDONLY, *, folder: int | None = None, mode: int = 0,
             extra: int = 0) -> Answer:
        """An OPEN."""
        return self.order(OPEN, uid, os.fsencode(path), () if folder is None else (folder,), flags=flags, mode=mode,
                          extra=extra)

    def start(self, uid: int, words: Sequence[str], *, variables: Sequence[str] = (), groups: Sequence[str] = (),
              sheet: int | None = None, flags: int = 0, extra: int = 0) -> tuple[Answer, str, str]:
        """A START of the launcher with WORDS; the answer, what the launcher complained of, and the program's output."""
        status, status_in = os.pipe()
        output, output_in = os.pipe()
        null = os.open(os.devnull, os.O_RDWR)
        own = sheet if sheet is not None else self.sheet(
            ["condor_launcher", "--status-fd", "63", *words], variables, groups, (0, 1, 2, 63))
        answer = self.order(START, uid, b"", (own, null, output_in, null, status_in), flags=flags,
                            extra=extra)
        for descriptor in (own, null, output_in, status_in):
            os.close(descriptor)
        complaint, said = self._read(status), self._read(output)
        if answer.error == 0:
            os.waitpid(answer.value, 0)
        return answer, complaint, said

    @staticmethod
    def _read(descriptor: int) -> str:
        with os.fdopen(descriptor, "rb") as stream:
            assert select.select([stream], [], [], DEADLINE_S)[0]
            return stream.read().decode()

    @staticmethod
    def sheet(words: Sequence[str], variables: Sequence[str] = (), groups: Sequence[str] = (),
              targets: Sequence[int] = (), *, seal: bool = True, counts: tuple[int, int, int] | None = None) -> int:
        """The memory file of a START."""
        file = os.memfd_create("sheet", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        numbers = counts or (len(words), len(variables), len(groups))
        os.write(file, SHEET.pack(MAGIC, *numbers, *targets, *([0] * (16 - len(targets)))))
        os.write(file, b"".join(os.fsencode(each) + b"\0" for each in (*words, *variables, *groups)))
        if seal:
            fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
        return file


def status_of(pid: int) -> dict[str, str]:
    """``/proc/PID/status`` by name."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def become_subreaper(on: bool) -> None:
    """Have what is left behind re-parented to this process."""
    assert ctypes.CDLL(None).prctl(36, int(on), 0, 0, 0) == 0


@contextmanager
def opened(path: Path | str, flags: int = os.O_RDONLY) -> Iterator[int]:
    """A descriptor, for as long as it is needed."""
    descriptor = os.open(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def owned(path: Path, uid: int, data: bytes | None = b"content", mode: int = 0o600) -> Path:
    """A file (or folder, without data) of an account."""
    if data is None:
        path.mkdir(mode=mode)
    else:
        path.write_bytes(data)
    path.chmod(mode)
    os.chown(path, uid, uid)
    return path
