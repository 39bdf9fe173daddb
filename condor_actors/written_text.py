"""Reading texts that people write, or have printed: submit descriptions, lists of items, DAG files, configuration.

Theory: the name of such a file may lead anywhere.  What is read is bounded, a FIFO that nobody writes to keeps nobody
waiting, and what is no text is said to be none, before a parser takes it for one.

======================  =====================================================================================
what stands there       what becomes of it
======================  =====================================================================================
a folder                refused, as by the kernel
a FIFO without a writer refused after :data:`NO_WRITER_S`; one with a writer (``<(command)``) is read to its end
a device                read as a file: ``/dev/null`` is empty, and ``/dev/zero`` no text
more than a bound       refused
UTF-8 with a mark       read without the mark
UTF-16, UTF-32          refused, and named
a NUL                   refused, with the line where it stands
lines that end in CR    refused where a CR is no line end
other bytes             kept as they are (``surrogateescape``): names of files may be any
======================  =====================================================================================
"""

from __future__ import annotations

import errno
import os
import stat
import time

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["MOST_BYTES", "NotText", "open_written", "printed_text", "read_plain", "read_written", "text_problem",
           "written_text"]

MOST_BYTES = 256 << 20
NO_WRITER_S = 5.0
"""How long a FIFO may be without anybody who writes to it."""
PIECE_BYTES = 1 << 20
MOST_PLAIN_BYTES = 16 << 20
MARK = "\ufeff"
_FOREIGN_MARKS = ((b"\xff\xfe\x00\x00", "UTF-32"), (b"\x00\x00\xfe\xff", "UTF-32"), (b"\xff\xfe", "UTF-16"),
                  (b"\xfe\xff", "UTF-16"))


class NotText(OSError):
    """What a file has is no text.

    Attributes:
        problem: why; line: where, counted from 1.
    """

    def __init__(self, problem: str, line: int, path: str) -> None:
        super().__init__(errno.EINVAL, f"{problem} (line {line})", path)
        self.problem, self.line = problem, line


def read_written(path: str, *, most_bytes: int = MOST_BYTES) -> str:
    """The text of a file, with its line ends as they are.

    Args:
        path: of the file.
        most_bytes: it is refused when it has more.

    Raises:
        OSError: it cannot be read, or is no text; ``strerror`` says what is wrong.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        data = _all_of(descriptor, path, most_bytes)
    finally:
        os.close(descriptor)
    return written_text(data, path)


def read_plain(path: str | os.PathLike[str], *, most_bytes: int = MOST_PLAIN_BYTES) -> bytes:
    """The bytes of a file that a setting of a daemon names; neither a FIFO nor an endless device keeps it.

    Args:
        path: of a file, or of a device that ends (``/dev/null``).
        most_bytes: it is refused when it has more.

    Raises:
        OSError: it cannot be read, has more, or is no file; ``strerror`` says what is wrong.
    """
    name = os.fspath(path)
    descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        if not (stat.S_ISREG(mode) or stat.S_ISCHR(mode)):
            kind = "a FIFO" if stat.S_ISFIFO(mode) else "a block device"
            raise OSError(errno.EINVAL, f"it is {kind}, and has to be a plain file", name)
        with open(descriptor, "rb", closefd=False) as stream:
            data = stream.read(most_bytes + 1) or b""
    finally:
        os.close(descriptor)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"it has more than {most_bytes} bytes", name)
    return data


def printed_text(command: str | Sequence[str], *, most_bytes: int = MOST_BYTES, patience_s: float | None = None,
                 environ: Mapping[str, str] | None = None) -> str:
    """What a command prints, with its line ends as they are; it is ended when that is not taken.

    Args:
        command: for the shell, or words.
        most_bytes: it may print no more.
        patience_s: how long it may take; None: as long as it runs.
        environ: its environment; None: ours.

    Raises:
        OSError: it cannot be run, fails, takes too long, or prints too much or what is no text.
    """
    import subprocess

    with subprocess.Popen(command, shell=isinstance(command, str), stdout=subprocess.PIPE,
                          stdin=None if isinstance(command, str) else subprocess.DEVNULL, env=environ) as running:
        assert running.stdout is not None
        try:
            end_s = None if patience_s is None else time.monotonic() + patience_s
            data = _printed(running.stdout.fileno(), most_bytes, end_s)
            running.wait(_left_s(end_s))
        except (OSError, subprocess.TimeoutExpired) as error:
            running.kill()
            raise error if isinstance(error, OSError) else _too_long() from None
    if running.returncode:
        raise OSError(0, f"the command failed with status {running.returncode}")
    return written_text(data, command if isinstance(command, str) else command[0])


def _printed(descriptor: int, most_bytes: int, end_s: float | None) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        if not _wait(descriptor, _left_s(end_s)):
            raise _too_long()
        piece = os.read(descriptor, PIECE_BYTES)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
        if size > most_bytes:
            raise OSError(errno.EFBIG, f"the command prints more than {most_bytes:,} bytes")


def _left_s(end_s: float | None) -> float | None:
    return None if end_s is None else max(0.0, end_s - time.monotonic())


def _too_long() -> OSError:
    return OSError(errno.ETIMEDOUT, "the command takes too long")


def open_written(path: str) -> int:
    """A descriptor for a file that is read piece by piece, however large it is.

    Raises:
        OSError: it cannot be opened, is a folder or a device, or a FIFO that nobody writes to.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        is_stream = stat.S_ISFIFO(kind) or os.isatty(descriptor) or os.path.realpath(path) == os.devnull
        if not (stat.S_ISREG(kind) or is_stream):
            raise OSError(errno.EINVAL, "it is a device", path)
        if stat.S_ISFIFO(kind) and not _wait(descriptor, NO_WRITER_S):
            raise OSError(errno.EINVAL, "it is a FIFO, and nothing writes to it", path)
        os.set_blocking(descriptor, True)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def written_text(data: bytes, path: str) -> str:
    """The text of what was read from ``path``.

    Raises:
        OSError: as :func:`read_written`.
    """
    if len(data) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {MOST_BYTES:,} bytes", path)
    for mark, name in _FOREIGN_MARKS:
        if data.startswith(mark):
            raise OSError(errno.EINVAL, f"it is {name}; save it as UTF-8", path)
    text = data.decode("utf-8", "surrogateescape").removeprefix(MARK)
    problem, line = text_problem(text)
    if problem:
        raise NotText(problem, line, path)
    return text


def text_problem(text: str) -> tuple[str, int]:
    """Why this is nothing that a person wrote, and in which line; empty: it may be."""
    found = text.find("\0")
    if found >= 0:
        return "it is no text: it has a NUL byte", text.count("\n", 0, found) + 1
    if "\r" in text and "\n" not in text and "\r" in text.strip("\r"):
        return "its lines end with CR alone; they have to end with LF", 1
    return "", 0


def _all_of(descriptor: int, path: str, most_bytes: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    is_pipe = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    if is_pipe and not _wait(descriptor, NO_WRITER_S):
        raise OSError(errno.EINVAL, "it is a FIFO, and nothing writes to it", path)
    while True:
        try:
            piece = os.read(descriptor, PIECE_BYTES)
        except BlockingIOError:  # someone writes to it, slowly
            _wait(descriptor)
            continue
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
        if size > most_bytes:
            raise OSError(errno.EFBIG, f"it has more than {most_bytes:,} bytes", path)
        if b"\0" in piece:
            return b"".join(pieces)  # it is refused, whatever follows


def _wait(descriptor: int, patience_s: float | None = None) -> bool:
    """Until there is something to read, or the other end is closed; whether that came about."""
    import select

    return bool(select.select([descriptor], [], [], patience_s)[0])
