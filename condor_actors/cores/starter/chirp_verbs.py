"""What each request of chirp does, as generators that say what they need.

Theory: see :mod:`condor_actors.cores.starter.chirp_session`, which runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

import attrs

from condor_actors.cores.chirp_protocol import PIECE_BYTES, VERSION, ChirpError, is_attribute_name
from condor_actors.messages.run import ChirpResult

__all__ = ["Call", "ChirpVerbs", "Delay", "HangUp", "Look", "Row", "Say", "Step", "Take", "VERBS", "Verb", "fail",
           "line_of", "repeatable", "skip"]

MOST_OPEN = 64
MOST_VALUE_BYTES = 993
"""Of a delayed attribute."""
MOST_STRIDED_BYTES = 1 << 20
MOST_STRIDES = 4096
FARTHEST, FARTHEST_STEP = 1 << 60, 1 << 44
"""Positions in files."""
MOST_INFO = 128
"""Characters of ``ulog``."""
IDENTITY = b"CONDOR"
ONCE = frozenset({"unlink", "rename", "mkdir", "rmdir", "rmall", "link", "symlink", "ulog"})


# ---- what a session wants


@attrs.frozen
class Say:
    """Send this to the client."""

    data: bytes


@attrs.frozen
class Call:
    """Ask the shadow; ``answered`` gets what it says."""

    verb: str
    path: str = ""
    other: str = ""
    numbers: tuple[int, ...] = ()
    data: bytes = b""


@attrs.frozen
class Delay:
    """Keep an attribute until it is told; ``answered`` gets whether it may be."""

    name: str
    text: str


@attrs.frozen
class Look:
    """What an attribute is as far as this machine knows; ``answered`` gets the expression."""

    name: str


@attrs.frozen
class HangUp:
    """Close the connection."""


@attrs.frozen
class Take:
    """The next bytes of the request, up to so many (inside of the session)."""

    most: int


Step = Say | Call | Delay | Look | HangUp
Verb = Generator[Any, Any, None]


def repeatable(call: Call) -> bool:
    """Whether doing it a second time changes nothing, so that it may be asked again when no answer came."""
    if call.verb in ONCE:
        return False
    if call.verb == "open":
        return "x" not in call.other
    return call.verb != "write" or call.numbers[1] >= 0


@attrs.define
class _File:
    """An open file: its handle at the shadow, path, flags, and where the next byte is read or written."""

    handle: int
    path: str
    flags: str
    position: int = 0

    def call(self, verb: str, *numbers: int, data: bytes = b"") -> Call:
        return Call(verb, self.path, self.flags, (self.handle, *numbers), data)

    def at(self, offset: int) -> int:
        """Where bytes are written: those of a file that is appended to, at its end."""
        return -1 if "a" in self.flags else offset


class ChirpVerbs:
    """The requests of one client, and the files that it has open.

    Args:
        handles: numbers that no other client of the run uses for its files.
    """

    def __init__(self, handles: Iterator[int]) -> None:
        self._handles = handles
        self._files: dict[int, _File] = {}

    def close_all(self) -> list[Call]:
        """What closes all that is open."""
        closing = [file.call("close") for file in self._files.values()]
        self._files.clear()
        return closing

    # ---- files

    def _open(self, path: str, flags: str, mode: int) -> Verb:
        if len(self._files) >= MOST_OPEN:
            yield Say(line_of(ChirpError.TOO_MANY_OPEN))
            return
        file = _File(next(self._handles), path, flags)
        result = yield Call("open", path, flags, (file.handle, mode))
        if result.value < 0:
            yield Say(line_of(result.value))
            return
        number = next(number for number in range(MOST_OPEN + 1) if number not in self._files)
        self._files[number] = file
        yield Say(line_of(number) + result.data)

    def _close(self, fd: int) -> Verb:
        file = self._files.pop(fd, None)
        if file is None:
            yield Say(line_of(ChirpError.BAD_FD))
        else:
            yield from _ask(file.call("close"))

    def _seek(self, fd: int, offset: int, whence: int) -> Verb:
        file = self._files.get(fd)
        if file is None or whence not in (0, 1, 2):
            yield Say(line_of(ChirpError.BAD_FD if file is None else ChirpError.INVALID_REQUEST))
            return
        start = 0 if whence == 0 else file.position
        if whence == 2:
            result = yield file.call("fstat")
            if result.value < 0:
                yield Say(line_of(result.value))
                return
            start = result.value
        if not 0 <= start + offset < FARTHEST:
            yield Say(line_of(ChirpError.INVALID_REQUEST))
            return
        file.position = start + offset
        yield Say(line_of(file.position))

    def _read(self, fd: int, length: int) -> Verb:
        file = self._files.get(fd)
        start = file.position if file is not None else 0

        def moved(count: int) -> None:
            if file is not None:
                file.position = start + count

        yield from self._bring(file, start, length, moved)

    def _pread(self, fd: int, length: int, offset: int) -> Verb:
        yield from self._bring(self._files.get(fd), offset, length, lambda _: None)

    def _bring(self, file: _File | None, offset: int, length: int, moved: Callable[[int], None]) -> Verb:
        """So many bytes of a file, or as many as it has; how many is said first."""
        if file is None or length < 0 or offset < 0:
            yield Say(line_of(ChirpError.BAD_FD if file is None else ChirpError.INVALID_REQUEST))
            return
        result = yield file.call("read", offset, min(length, PIECE_BYTES))
        if result.value < 0:
            yield Say(line_of(result.value))
            return
        total = min(length, max(result.value, len(result.data)))
        data = result.data[:total]
        moved(total)
        yield Say(line_of(total) + data)
        yield from _stream(file, offset + len(data), total - len(data))

    def _sread(self, fd: int, length: int, offset: int, stride: int, step: int) -> Verb:
        file = self._files.get(fd)
        problem = _stride_problem(file, length, offset, stride, step)
        if file is None or problem is not None:
            yield Say(line_of(problem or ChirpError.BAD_FD))
            return
        found = bytearray()
        while len(found) < length:
            wanted = min(stride, length - len(found), PIECE_BYTES)
            result = yield file.call("read", offset, wanted)
            if result.value < 0:
                yield Say(line_of(result.value))
                return
            found += result.data[:wanted]
            offset += step
            if not result.data:
                break
        yield Say(line_of(len(found)) + bytes(found))

    def _write(self, fd: int, length: int) -> Verb:
        file = self._files.get(fd)
        start = file.position if file is not None else 0
        total = yield from _store(file, length, start, 0, 0)
        if file is not None and total > 0:
            file.position = start + total
        yield Say(line_of(total))

    def _pwrite(self, fd: int, length: int, offset: int) -> Verb:
        total = yield from _store(self._files.get(fd), length, offset, 0, 0)
        yield Say(line_of(total))

    def _swrite(self, fd: int, length: int, offset: int, stride: int, step: int) -> Verb:
        file = self._files.get(fd)
        problem = _stride_problem(file, length, offset, stride, step)
        if problem is not None:
            yield from skip(length)
            yield Say(line_of(problem))
            return
        total = yield from _store(file, length, offset, stride, step)
        yield Say(line_of(total))

    def _on_file(self, verb: str, says_data: bool, fd: int, *numbers: int) -> Verb:
        file = self._files.get(fd)
        if file is None:
            yield Say(line_of(ChirpError.BAD_FD))
            return
        result = yield file.call(verb, *numbers)
        yield Say(line_of(min(result.value, 0)) + (result.data if says_data and result.value >= 0 else b""))

    def _getfile(self, path: str) -> Verb:
        file = _File(next(self._handles), path, "r")
        result = yield Call("open", path, "r", (file.handle, 0))
        if result.value < 0:
            yield Say(line_of(result.value))
            return
        result = yield file.call("read", 0, PIECE_BYTES)
        total = max(result.value, len(result.data)) if result.value >= 0 else result.value
        yield Say(line_of(total) + result.data)
        if total > 0:
            yield from _stream(file, len(result.data), total - len(result.data))
        yield file.call("close")

    def _putfile(self, path: str, mode: int, length: int) -> Verb:
        if length < 0:
            yield Say(line_of(ChirpError.INVALID_REQUEST))
            return
        file = _File(next(self._handles), path, "wct")
        result = yield Call("open", path, file.flags, (file.handle, mode))
        yield Say(line_of(min(result.value, 0)))
        if result.value < 0:
            return
        if length:
            total = yield from _store(file, length, 0, 0, 0)
            yield Say(line_of(total))
        yield file.call("close")

    def _readlink(self, path: str, length: int) -> Verb:
        result = yield Call("readlink", path)
        data = result.data[: max(0, length)]
        yield Say(line_of(result.value) if result.value < 0 else line_of(len(data)) + data)

    # ---- the job

    def _set_attribute(self, name: str, text: str) -> Verb:
        if not is_attribute_name(name):
            yield Say(line_of(ChirpError.INVALID_REQUEST))
        else:
            yield from _ask(Call("set_job_attr", name, text))

    def _delay_attribute(self, name: str, text: str) -> Verb:
        if not is_attribute_name(name) or len(text.encode()) > MOST_VALUE_BYTES:
            yield Say(line_of(ChirpError.TOO_BIG if is_attribute_name(name) else ChirpError.INVALID_REQUEST))
            return
        yield Say(line_of((yield Delay(name, text))))

    def _delayed_attribute(self, name: str) -> Verb:
        found: str | None = yield Look(name)
        data = (found or "").encode()
        yield Say(line_of(ChirpError.DOESNT_EXIST) if found is None else line_of(len(data)) + data)

    def _log(self, text: str) -> Verb:
        yield from _ask(Call("ulog", data=text[:MOST_INFO].encode()))

    def _whoami(self, length: int) -> Verb:
        yield Say(line_of(len(IDENTITY)) + IDENTITY if length >= len(IDENTITY) else line_of(ChirpError.NO_SPACE))

    def _whoareyou(self, host: str, length: int) -> Verb:
        yield from self._whoami(length)

    def _lookup(self, path: str) -> Verb:
        data = path.encode()
        yield Say(line_of(len(data)) + data)

    def _constrain(self, expression: str) -> Verb:
        """No run changes where its job may run next."""
        yield Say(line_of(ChirpError.NOT_AUTHORIZED))

    def _version(self, *_: str) -> Verb:
        yield Say(line_of(VERSION))


# ---- what several verbs share


def line_of(value: int) -> bytes:
    """A number as an answer."""
    return b"%d\n" % value


def fail(error: ChirpError) -> Verb:
    """Only say what is wrong."""
    yield Say(line_of(error))


def _ask(call: Call) -> Verb:
    result: ChirpResult = yield call
    yield Say(line_of(result.value))


def _tell(call: Call) -> Verb:
    """The answer with what belongs to it; how much that is, is the answer."""
    result: ChirpResult = yield call
    yield Say(line_of(result.value) + (result.data if result.value > 0 else b""))


def _facts(call: Call) -> Verb:
    """The answer, and a line of facts where it is good."""
    result: ChirpResult = yield call
    yield Say(line_of(min(result.value, 0)) + (result.data if result.value >= 0 else b""))


def skip(length: int) -> Verb:
    """Read so many bytes of the request for nothing."""
    while length > 0:
        data: bytes = yield Take(min(length, PIECE_BYTES))
        length -= len(data)


def _stream(file: _File, offset: int, left: int) -> Verb:
    """What was promised of a file; one that has become shorter ends the connection, as nothing else can say so."""
    while left > 0:
        result = yield file.call("read", offset, min(left, PIECE_BYTES))
        data = result.data[:left]
        if result.value < 0 or not data:
            yield HangUp()
            return
        yield Say(data)
        offset += len(data)
        left -= len(data)


def _store(file: _File | None, length: int, offset: int, stride: int, step: int) -> Generator[Any, Any, int]:
    """Write the bytes that follow: how many are there, or what was wrong with the first."""
    if length < 0:
        return int(ChirpError.INVALID_REQUEST)
    problem = int(ChirpError.BAD_FD) if file is None else int(ChirpError.INVALID_REQUEST) if offset < 0 else 0
    done = 0
    while length > 0 and not problem:
        most = min(length, PIECE_BYTES, stride - done % stride if stride else PIECE_BYTES)
        data: bytes = yield Take(most)
        length -= len(data)
        assert file is not None
        at = offset + done if not stride else offset + done // stride * step + done % stride
        result = yield file.call("write", file.at(at), data=data)
        problem = min(0, result.value)
        if not problem:
            done += len(data)
    yield from skip(length)
    return done or problem


def _stride_problem(file: _File | None, length: int, offset: int, stride: int, step: int) -> ChirpError | None:
    if file is None:
        return ChirpError.BAD_FD
    if length < 0 or not 0 <= offset < FARTHEST or stride <= 0 or not 0 <= step < FARTHEST_STEP:
        return ChirpError.INVALID_REQUEST
    return ChirpError.TOO_BIG if length > MOST_STRIDED_BYTES or length // stride > MOST_STRIDES else None


@attrs.frozen
class Row:
    """A verb: the right it needs, its arguments (``s``, ``d``), what does it, which argument counts its bytes."""

    needs: str
    takes: str
    act: Callable[..., Verb]
    body: int = -1


def _path_call(verb: str, answer: Callable[[Call], Verb] = _ask) -> Callable[..., Verb]:
    """A verb about one path, and numbers."""
    return lambda session, path, *numbers: answer(Call(verb, path, "", numbers))


def _pair_call(verb: str) -> Callable[..., Verb]:
    return lambda session, path, other: _ask(Call(verb, path, other))


def _file_call(verb: str, says_data: bool = False) -> Callable[..., Verb]:
    return lambda session, fd, *numbers: session._on_file(verb, says_data, fd, *numbers)


VERBS: Mapping[str, Row] = {
    "open": Row("files", "ssd", ChirpVerbs._open),
    "close": Row("files", "d", ChirpVerbs._close),
    "lseek": Row("files", "ddd", ChirpVerbs._seek),
    "read": Row("files", "dd", ChirpVerbs._read),
    "pread": Row("files", "ddd", ChirpVerbs._pread),
    "sread": Row("files", "ddddd", ChirpVerbs._sread),
    "write": Row("files", "dd", ChirpVerbs._write, 1),
    "pwrite": Row("files", "ddd", ChirpVerbs._pwrite, 1),
    "swrite": Row("files", "ddddd", ChirpVerbs._swrite, 1),
    "fsync": Row("files", "d", _file_call("fsync")),
    "fstat": Row("files", "d", _file_call("fstat", True)),
    "fstatfs": Row("files", "d", _file_call("fstatfs", True)),
    "fchown": Row("files", "ddd", _file_call("fchown")),
    "fchmod": Row("files", "dd", _file_call("fchmod")),
    "ftruncate": Row("files", "dd", _file_call("ftruncate")),
    "getfile": Row("files", "s", ChirpVerbs._getfile),
    "putfile": Row("files", "sdd", ChirpVerbs._putfile),
    "unlink": Row("files", "s", _path_call("unlink")),
    "rmdir": Row("files", "s", _path_call("rmdir")),
    "rmall": Row("files", "s", _path_call("rmall")),
    "mkdir": Row("files", "sd", _path_call("mkdir")),
    "rename": Row("files", "ss", _pair_call("rename")),
    "link": Row("files", "ss", _pair_call("link")),
    "symlink": Row("files", "ss", _pair_call("symlink")),
    "readlink": Row("files", "sd", ChirpVerbs._readlink),
    "getdir": Row("files", "s", _path_call("getdir", _tell)),
    "getlongdir": Row("files", "s", _path_call("getlongdir", _tell)),
    "stat": Row("files", "s", _path_call("stat", _facts)),
    "lstat": Row("files", "s", _path_call("lstat", _facts)),
    "statfs": Row("files", "s", _path_call("statfs", _facts)),
    "access": Row("files", "sd", _path_call("access")),
    "chmod": Row("files", "sd", _path_call("chmod")),
    "chown": Row("files", "sdd", _path_call("chown")),
    "lchown": Row("files", "sdd", _path_call("lchown")),
    "truncate": Row("files", "sd", _path_call("truncate")),
    "utime": Row("files", "sdd", _path_call("utime")),
    "whoami": Row("files", "d", ChirpVerbs._whoami),
    "whoareyou": Row("files", "sd", ChirpVerbs._whoareyou),
    "lookup": Row("files", "s", ChirpVerbs._lookup),
    "get_job_attr": Row("updates", "s", _path_call("get_job_attr", _tell)),
    "set_job_attr": Row("updates", "ss", ChirpVerbs._set_attribute),
    "constrain": Row("updates", "s", ChirpVerbs._constrain),
    "ulog": Row("updates", "s", ChirpVerbs._log),
    "version": Row("updates", "*", ChirpVerbs._version),
    "get_job_attr_delayed": Row("delayed", "s", ChirpVerbs._delayed_attribute),
    "set_job_attr_delayed": Row("delayed", "ss", ChirpVerbs._delay_attribute),
}
