"""A client of chirp for programs within jobs: files of the submit machine, attributes of the job, its event log.

**Source**: HTCondor's manual, *htcondor2.htchirp* and condor_chirp, for names, arguments and results.
"""

from __future__ import annotations

import os
import re
import socket
import stat
from collections.abc import Callable, Collection, Sequence
from typing import IO

PIECE_BYTES = 65536
FACTS = ("device", "inode", "mode", "nlink", "uid", "gid", "rdevice", "size", "blksize", "blocks", "atime", "mtime",
         "ctime")
SPACE = ("f_type", "f_bsize", "f_blocks", "f_bfree", "f_bavail", "f_files", "f_free")


def quote(chirp_string: str) -> str:
    """A word as a request has it: blanks, line ends and backslashes are escaped."""
    return re.sub(r"([\\ \n\t\r])", r"\\\1", chirp_string)


class HTChirp:
    """A client; in a ``with`` block it is connected.

    Args:
        host, port: of the chirp server; None: what the job's environment or ``.chirp.config`` names.
        auth: ways of authentication to try; there is one, ``cookie``.
        cookie: proves which job's client it is.
        timeout: for each answer, in seconds.

    Raises:
        ValueError: it is not known where the server is.
        HTChirp.NotAuthenticated: the cookie is not accepted.
    """

    CHIRP_LINE_MAX = 5120
    CHIRP_VERSION = 2
    CHIRP_AUTH_METHODS = ["cookie"]  # noqa: RUF012 - as in the original
    DEFAULT_MODE = 0o777

    class ChirpError(Exception):
        """A request that was not done; each reason has a class of its own."""

    class NotAuthenticated(ChirpError):
        """The client has not said whose it is."""

    class NotAuthorized(ChirpError):
        """It may not do that."""

    class DoesntExist(ChirpError):
        """There is no such file or attribute."""

    class AlreadyExists(ChirpError):
        """There is such a file already."""

    class TooBig(ChirpError):
        """The request, or what it wants, is too long."""

    class NoSpace(ChirpError):
        """There is no room on the disk."""

    class NoMemory(ChirpError):
        """The server has no memory left."""

    class InvalidRequest(ChirpError):
        """The request is not understood."""

    class TooManyOpen(ChirpError):
        """Too many files are open."""

    class Busy(ChirpError):
        """It is in use, or too much is asked for."""

    class TryAgain(ChirpError):
        """It cannot be done just now."""

    class BadFD(ChirpError):
        """There is no such descriptor."""

    class IsDir(ChirpError):
        """It is a directory."""

    class NotDir(ChirpError):
        """It is no directory."""

    class NotEmpty(ChirpError):
        """The directory is not empty."""

    class CrossDeviceLink(ChirpError):
        """The two names are on different file systems."""

    class Offline(ChirpError):
        """The submit machine cannot be reached; nobody knows whether it was done."""

    class UnknownError(ChirpError):
        """Another number than these."""

    _ERRORS = (NotAuthenticated, NotAuthorized, DoesntExist, AlreadyExists, TooBig, NoSpace, NoMemory, InvalidRequest,
               TooManyOpen, Busy, TryAgain, BadFD, IsDir, NotDir, NotEmpty, CrossDeviceLink, Offline)
    """By their numbers, from -1 down."""

    def __init__(self, host: str | None = None, port: int | None = None, auth: Sequence[str] = ["cookie"],  # noqa: B006
                 cookie: str | None = None, timeout: float = 10) -> None:
        self._socket: socket.socket | None = None
        self._answers: IO[bytes] | None = None
        self.fds: dict[int, tuple[str, str, int]] = {}
        if not (host and port):
            path = os.environ.get("_CONDOR_CHIRP_CONFIG", ".chirp.config")
            if cookie or "cookie" not in auth or not os.path.isfile(path):
                raise ValueError(f"{path} is not there, and no host and port are given: chirp is for running jobs")
            with open(path, encoding="ascii") as file:
                host, number, cookie = file.read().split()
            port = int(number)
        self.host, self.port, self.cookie, self.timeout = host, int(port or 0), cookie, timeout
        self.authentication: str | None = None
        for method in auth:
            try:
                self.connect(method)
            except self.NotAuthenticated:
                continue
            finally:
                self.disconnect()
            self.authentication = method
            return
        raise self.NotAuthenticated(f"the server at {self.host}:{self.port} accepts none of {', '.join(auth)}")

    def __enter__(self) -> HTChirp:
        self.connect()
        return self

    def __exit__(self, *args: object) -> None:
        self.disconnect()

    def __del__(self) -> None:
        self.disconnect()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.host}, {self.port}) using {self.authentication} authentication"

    # ---- the connection

    def is_connected(self) -> bool:
        """Whether there is a connection."""
        return getattr(self, "_socket", None) is not None

    def connect(self, auth_method: str | None = None) -> None:
        """Connect anew.

        Args:
            auth_method: how to authenticate; None: as before.
        """
        self.disconnect()
        method = auth_method or self.authentication
        if method not in self.CHIRP_AUTH_METHODS:
            raise ValueError(f"there is no authentication by {method!r}, but by {', '.join(self.CHIRP_AUTH_METHODS)}")
        self._socket = socket.create_connection((self.host or "", self.port), self.timeout)
        self._answers = self._socket.makefile("rb")
        self._ask("cookie", self.cookie or "")

    def disconnect(self) -> None:
        """End the connection, if there is one; files that are open are closed."""
        for each in (getattr(self, "_answers", None), getattr(self, "_socket", None)):
            if each is not None:
                each.close()
        self._socket = self._answers = None
        self.fds = {}

    def _ask(self, *words: object) -> int:
        """The number that answers a request.

        Raises:
            HTChirp.ChirpError: it was not done.
        """
        self._say(*words)
        return self._answer()

    def _say(self, *words: object) -> None:
        line = " ".join(quote(str(word)) for word in words).encode() + b"\n"
        if len(line) >= self.CHIRP_LINE_MAX:
            raise self.TooBig(f"the request has {len(line)} bytes; {self.CHIRP_LINE_MAX - 1} are the most")
        self._send(line)

    def _send(self, data: bytes) -> None:
        if self._socket is None:
            raise RuntimeError("there is no connection: use 'with HTChirp() as chirp', or connect()")
        self._socket.sendall(data)

    def _answer(self) -> int:
        line = self._line()
        try:
            value = int(line)
        except ValueError:
            raise OSError(f"the server answered {line[:80]!r}") from None
        if value < 0:
            known = -value <= len(self._ERRORS)
            error = self._ERRORS[-value - 1] if known else self.UnknownError
            raise error((error.__doc__ or "") if known else f"error {value}")
        return value

    def _line(self) -> bytes:
        if self._answers is None:
            raise RuntimeError("there is no connection: use 'with HTChirp() as chirp', or connect()")
        line = self._answers.readline(self.CHIRP_LINE_MAX)
        if not line.endswith(b"\n"):
            raise OSError("the server has closed the connection, or answers without end")
        return line

    def _data(self, count: int, write: Callable[[bytes], object]) -> int:
        """Receive so many bytes; how many there were."""
        assert self._answers is not None
        left = count
        while left > 0:
            data = self._answers.read(min(left, PIECE_BYTES))
            if not data:
                raise OSError("the server has closed the connection")
            left -= len(data)
            write(data)
        return count

    def _text(self, *words: object) -> str:
        """The text that answers a request."""
        return self._bytes(*words).decode()

    def _bytes(self, *words: object) -> bytes:
        data = bytearray()
        self._data(self._ask(*words), data.extend)
        return bytes(data)

    def _numbers(self, names: Sequence[str], *words: object) -> dict[str, int]:
        """The line of numbers that follows an answer, by their names."""
        self._ask(*words)
        return dict(zip(names, map(int, self._line().split()), strict=False))

    def _open(self, name: str, flags: Collection[str], mode: int | None = None) -> int:
        if not set(flags) <= set("rwatcx"):
            raise ValueError(f"the flags {''.join(flags)!r} are more than r, w, a, t, c and x")
        bits = self.DEFAULT_MODE if mode is None else int(mode)
        number = self._ask("open", name, "".join(flags), bits)
        self._line()
        self.fds[number] = (name, "".join(flags), bits)
        return number

    def _close(self, number: int) -> None:
        self._ask("close", number)
        self.fds.pop(number, None)

    def _place(self, verb: str, number: int, length: int, offset: int | None, stride_length: int | None,
               stride_skip: int | None) -> tuple[object, ...]:
        """The request that reads or writes somewhere in a file."""
        if (stride_length is None) != (stride_skip is None):
            raise self.InvalidRequest("stride_length and stride_skip go together")
        if stride_length is not None and stride_skip is not None:
            return f"s{verb}", number, int(length), int(offset or 0), int(stride_length), int(stride_skip)
        return (verb, number, int(length)) if offset is None else (f"p{verb}", number, int(length), int(offset))

    # ---- what HTCondor has in addition

    def fetch(self, remote_file: str, local_file: str) -> int:
        """Copy a file from the submit machine; the number of bytes."""
        return self.getfile(remote_file, local_file)

    def put(self, local_file: str, remote_file: str, flags: Collection[str] | None = "wct",
            mode: int | None = None) -> int:
        """Copy a file to the submit machine; the number of bytes.

        Args:
            local_file: here; remote_file: there.
            flags: how it is opened there, of ``rwatcx``.
            mode: its permissions; None: 0777.
        """
        if flags is None or set(flags) == set("wct"):
            return self.putfile(local_file, remote_file, mode)
        with open(local_file, "rb") as file:
            return self.write(file.read(), remote_file, flags, mode)

    def remove(self, remote_file: str) -> None:
        """Remove a file of the submit machine."""
        self.unlink(remote_file)

    def get_job_attr(self, job_attribute: str) -> str:
        """The value of an attribute of the job, as text."""
        return self._text("get_job_attr", job_attribute)

    def get_job_attr_delayed(self, job_attribute: str) -> str:
        """The same, as this machine knows it."""
        return self._text("get_job_attr_delayed", job_attribute)

    def set_job_attr(self, job_attribute: str, attribute_value: str) -> None:
        """Set an attribute of the job; the value is an expression."""
        self._ask("set_job_attr", job_attribute, attribute_value)

    def set_job_attr_delayed(self, job_attribute: str, attribute_value: str) -> None:
        """Set an attribute of the job with its next report."""
        self._ask("set_job_attr_delayed", job_attribute, attribute_value)

    def ulog(self, text: str) -> None:
        """Write an event into the job's log."""
        self._ask("ulog", text)

    # ---- parts of files

    def read(self, remote_path: str, length: int, offset: int | None = None, stride_length: int | None = None,
             stride_skip: int | None = None) -> bytes:
        """Up to so many bytes of a file.

        Args:
            remote_path: the file; length: how many.
            offset: from there on.
            stride_length, stride_skip: so many bytes of every so many.
        """
        number = self._open(remote_path, "r")
        data = self._bytes(*self._place("read", number, length, offset, stride_length, stride_skip))
        self._close(number)
        return data

    def write(self, data: bytes, remote_path: str, flags: Collection[str] | None = "w", mode: int | None = None,
              length: int | None = None, offset: int | None = None, stride_length: int | None = None,
              stride_skip: int | None = None) -> int:
        """Write bytes into a file; how many were written.

        Args:
            data: the bytes; length: how many of them; None: all.
            remote_path: the file.
            flags: how it is opened, of ``rwatcx``, w among them; mode: its permissions when it is new.
            offset, stride_length, stride_skip: as for :meth:`read`.
        """
        flags = "w" if flags is None else flags
        if "w" not in flags:
            raise ValueError(f"the flags {''.join(flags)!r} have no 'w'")
        data = data if isinstance(data, bytes) else str(data).encode()
        data = data if length is None else data[:length]
        number = self._open(remote_path, flags, mode)
        self._say(*self._place("write", number, len(data), offset, stride_length, stride_skip))
        self._send(data)
        written = self._answer()
        self._ask("fsync", number)
        self._close(number)
        return written

    # ---- files and directories

    def rename(self, old_path: str, new_path: str) -> None:
        """Give a file another name."""
        self._ask("rename", old_path, new_path)

    def unlink(self, remote_file: str) -> None:
        """Remove a file."""
        self._ask("unlink", remote_file)

    def rmdir(self, remote_path: str, recursive: bool = False) -> None:
        """Remove a directory; ``recursive``: with all that is in it."""
        self._ask("rmall" if recursive else "rmdir", remote_path)

    def rmall(self, remote_path: str) -> None:
        """Remove a directory with all that is in it."""
        self._ask("rmall", remote_path)

    def mkdir(self, remote_path: str, mode: int | None = None) -> None:
        """Make a directory."""
        self._ask("mkdir", remote_path, self.DEFAULT_MODE if mode is None else int(mode))

    def getfile(self, remote_file: str, local_file: str) -> int:
        """Copy a file from the submit machine; the number of bytes."""
        size = self._ask("getfile", remote_file)
        with open(local_file, "wb") as file:
            return self._data(size, file.write)

    def putfile(self, local_file: str, remote_file: str, mode: int | None = None) -> int:
        """Copy a file to the submit machine, in place of one that is there; the number of bytes."""
        with open(local_file, "rb") as file:
            left = size = os.fstat(file.fileno()).st_size
            self._ask("putfile", remote_file, self.DEFAULT_MODE if mode is None else int(mode), size)
            while left > 0:
                data = file.read(min(left, PIECE_BYTES))
                if not data:
                    self.disconnect()
                    raise OSError(f"{local_file} has become shorter while it was sent")
                self._send(data)
                left -= len(data)
        written = self._answer() if size else 0
        if written != size:
            raise RuntimeWarning(f"{written} of the {size} bytes of {local_file} were written")
        return written

    def getlongdir(self, remote_path: str) -> dict[str, dict[str, int]]:
        """What is in a directory, with the facts of each file as :meth:`stat` has them."""
        lines = self._text("getlongdir", remote_path).splitlines()
        return {name: dict(zip(FACTS, map(int, facts.split()), strict=False))
                for name, facts in zip(lines[::2], lines[1::2], strict=False)}

    def getdir(self, remote_path: str, stat_dict: bool = False) -> list[str] | dict[str, dict[str, int]]:
        """What is in a directory: names, or with ``stat_dict`` as :meth:`getlongdir` has it."""
        if stat_dict:
            return self.getlongdir(remote_path)
        return self._text("getdir", remote_path).rstrip("\n").splitlines()

    def whoami(self) -> str:
        """Who the client is to the server."""
        return self._text("whoami", self.CHIRP_LINE_MAX)

    def whoareyou(self, remote_host: str) -> str:
        """Who the server is to another host."""
        return self._text("whoareyou", remote_host, self.CHIRP_LINE_MAX)

    def link(self, old_path: str, new_path: str, symbolic: bool = False) -> None:
        """Give a file a second name; ``symbolic``: by a symbolic link."""
        self._ask("symlink" if symbolic else "link", old_path, new_path)

    def symlink(self, old_path: str, new_path: str) -> None:
        """Make a symbolic link."""
        self._ask("symlink", old_path, new_path)

    def readlink(self, remote_path: str) -> bytes:
        """What a symbolic link holds."""
        return self._bytes("readlink", remote_path, self.CHIRP_LINE_MAX)

    def stat(self, remote_path: str) -> dict[str, int]:
        """The facts of a file; of a link's target."""
        return self._numbers(FACTS, "stat", remote_path)

    def lstat(self, remote_path: str) -> dict[str, int]:
        """The facts of a file; of a link itself."""
        return self._numbers(FACTS, "lstat", remote_path)

    def statfs(self, remote_path: str) -> dict[str, int]:
        """The facts of a file system."""
        return self._numbers(SPACE, "statfs", remote_path)

    def access(self, remote_path: str, mode_str: str) -> None:
        """Raise `HTChirp.NotAuthorized` unless a file can be read, written, executed (r, w, x) or is there (f)."""
        bits = {"f": 0, "r": stat.S_IROTH, "w": stat.S_IWOTH, "x": stat.S_IXOTH}
        if not set(mode_str) <= set(bits):
            raise ValueError(f"the mode {mode_str!r} is more than f, r, w and x")
        self._ask("access", remote_path, sum(bits[letter] for letter in set(mode_str)))

    def chmod(self, remote_path: str, mode: int) -> None:
        """Set the permissions of a file."""
        self._ask("chmod", remote_path, int(mode))

    def chown(self, remote_path: str, uid: int, gid: int) -> None:
        """Give a file to another user and group; of a link its target."""
        self._ask("chown", remote_path, int(uid), int(gid))

    def lchown(self, remote_path: str, uid: int, gid: int) -> None:
        """Give a file to another user and group; a link itself."""
        self._ask("lchown", remote_path, int(uid), int(gid))

    def truncate(self, remote_path: str, length: int) -> None:
        """Make a file so long."""
        self._ask("truncate", remote_path, int(length))

    def utime(self, remote_path: str, actime: int, mtime: int) -> None:
        """Set the times of a file."""
        self._ask("utime", remote_path, int(actime), int(mtime))
