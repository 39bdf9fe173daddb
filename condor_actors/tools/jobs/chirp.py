"""condor_chirp: files and attributes of the submit machine, for a job that runs.

Needs nothing but Python's own library, so this one file can be sent along with a job that sees nothing else of the pool
(in an image, say) and be run there: ``python3 chirp.py fetch data data``.

**Source**: the manual, condor_chirp, for the words; chirp's protocol, version 2, for what is said.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

PIECE_BYTES = 65536
LINE_BYTES = 5120
PATIENCE_S = 300.0
FACTS = ("device", "inode", "mode", "nlink", "uid", "gid", "rdevice", "size", "blksize", "blocks", "atime", "mtime",
         "ctime")
SPACE = ("f_type", "f_bsize", "f_blocks", "f_bfree", "f_bavail", "f_files", "f_ffree")
ERRORS = {
    -1: "the cookie is not this job's", -2: "not allowed", -3: "there is no such file or attribute",
    -4: "it exists already", -5: "too big", -6: "no space is left", -7: "no memory is left",
    -8: "the request is not understood", -9: "too many files are open", -10: "busy, or too many requests",
    -11: "try again", -12: "no such descriptor", -13: "it is a directory", -14: "it is not a directory",
    -15: "the directory is not empty", -16: "it is on another file system",
    -17: "the submit machine does not answer; nobody knows whether it was done",
}

USAGE = """Usage:
condor_chirp fetch remote_file local_file
condor_chirp put [-mode mode] [-perm perm] local_file remote_file
condor_chirp remove remote_file
condor_chirp get_job_attr job_attribute
condor_chirp get_job_attr_delayed job_attribute
condor_chirp set_job_attr job_attribute attribute_value
condor_chirp set_job_attr_delayed job_attribute attribute_value
condor_chirp ulog text
condor_chirp read [-offset offset] [-stride length skip] remote_file length
condor_chirp write [-offset remote_offset] [-stride length skip] remote_file local_file [num_bytes]
condor_chirp rmdir [-r] remotepath
condor_chirp getdir [-l] remotepath
condor_chirp whoami
condor_chirp whoareyou remotehost
condor_chirp link [-s] oldpath newpath
condor_chirp readlink remotepath [length]
condor_chirp stat remotepath
condor_chirp lstat remotepath
condor_chirp statfs remotepath
condor_chirp access remotepath mode(rwxf)
condor_chirp chmod remotepath mode
condor_chirp chown remotepath uid gid
condor_chirp lchown remotepath uid gid
condor_chirp truncate remotepath length
condor_chirp utime remotepath actime mtime
"""


class ChirpFailed(Exception):
    """A request that was not done; says why."""


class BadWords(Exception):
    """A command line that is not understood; says what."""


class Chirp:
    """A connection to the starter of the job.

    Raises:
        ChirpFailed: there is none.
    """

    def __init__(self) -> None:
        path = os.environ.get("_CONDOR_CHIRP_CONFIG") or os.path.join(
            os.environ.get("_CONDOR_SCRATCH_DIR", "."), ".chirp.config")
        try:
            with open(path, encoding="ascii") as stream:
                host, port, cookie = stream.read().split()
            self._socket = socket.create_connection((host, int(port)), PATIENCE_S)
        except (OSError, ValueError) as error:
            raise ChirpFailed(f"cannot use {path} ({error}): condor_chirp works inside of a running job, where the "
                              "machine allows it (ENABLE_CHIRP); files need want_io_proxy = true") from None
        self._stream = self._socket.makefile("rb")
        self.ask("cookie", cookie)

    def close(self) -> None:
        """End it."""
        self._stream.close()
        self._socket.close()

    def ask(self, *words: str | int) -> int:
        """A request; the answer, from 0.

        Raises:
            ChirpFailed: another answer, or none.
        """
        self.say(*words)
        return self.answer()

    def say(self, *words: str | int) -> None:
        """Send a request."""
        line = " ".join(_quoted(str(word)) for word in words).encode() + b"\n"
        if len(line) >= LINE_BYTES:
            raise ChirpFailed(f"the request has {len(line)} bytes; {LINE_BYTES - 1} are the most")
        self.send(line)

    def send(self, data: bytes) -> None:
        """Send bytes."""
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise ChirpFailed(f"the starter is gone: {error}") from None

    def answer(self) -> int:
        """The number that answers a request."""
        line = self.line()
        try:
            value = int(line)
        except ValueError:
            raise ChirpFailed(f"the starter answered {line[:80]!r}") from None
        if value < 0:
            raise ChirpFailed(ERRORS.get(value, f"error {value}"))
        return value

    def line(self) -> bytes:
        """A line of the answer."""
        try:
            line = self._stream.readline(LINE_BYTES)
        except OSError as error:
            raise ChirpFailed(f"no answer: {error}") from None
        if not line.endswith(b"\n"):
            raise ChirpFailed("the starter has closed the connection")
        return line

    def pieces(self, count: int) -> Iterator[bytes]:
        """So many bytes of the answer."""
        while count > 0:
            try:
                data = self._stream.read(min(count, PIECE_BYTES))
            except OSError as error:
                raise ChirpFailed(f"no answer: {error}") from None
            if not data:
                raise ChirpFailed("the starter has closed the connection: the file has become shorter, or the run is "
                                  "over")
            count -= len(data)
            yield data

    def data(self, count: int) -> bytes:
        """So many bytes of the answer, in one piece."""
        return b"".join(self.pieces(count))

    def open(self, path: str, flags: str, mode: int = 0) -> int:
        """Open a file at home."""
        number = self.ask("open", path, flags, mode)
        self.line()
        return number


def _quoted(word: str) -> str:
    return re.sub(r"([\\ \n\t\r])", r"\\\1", word)


def _number(word: str, base: int = 10) -> int:
    try:
        return int(word, base)
    except ValueError:
        raise BadWords(f"{word!r} is no {'octal ' if base == 8 else ''}number") from None


def _out(data: bytes) -> None:
    sys.stdout.buffer.write(data)


@contextlib.contextmanager
def _local(path: str, mode: str, standard: IO[bytes]) -> Iterator[IO[bytes]]:
    """A file here, or with ``-`` a standard one."""
    if path == "-":
        yield standard
        return
    try:
        with open(path, mode) as stream:
            yield stream
    except OSError as error:
        raise ChirpFailed(f"cannot use local file {path}: {error.strerror}") from None


def _fetch(chirp: Chirp, words: list[str]) -> None:
    remote, local = words
    size = chirp.ask("getfile", remote)
    with _local(local, "wb", sys.stdout.buffer) as stream:
        for data in chirp.pieces(size):
            stream.write(data)


def _put(chirp: Chirp, words: list[str]) -> None:
    flags = _options(words, {"-mode": 1, "-perm": 1})
    local, remote = _these(words, 2)
    perm = _number(flags["-perm"][0], 8) if "-perm" in flags else 0o777
    mode = flags["-mode"][0] if "-mode" in flags else ""
    with _local(local, "rb", sys.stdin.buffer) as stream:
        if not mode and local != "-":
            size = os.fstat(stream.fileno()).st_size
            chirp.ask("putfile", remote, perm, size)
            left = size
            while left > 0:
                data = stream.read(min(left, PIECE_BYTES))
                if not data:
                    raise ChirpFailed(f"{local} has become shorter")
                chirp.send(data)
                left -= len(data)
            if size and chirp.answer() != size:
                raise ChirpFailed(f"not all of {local} could be written")
            return
        number = chirp.open(remote, mode or "cwb", perm)
        while data := stream.read(PIECE_BYTES):
            chirp.say("write", number, len(data))
            chirp.send(data)
            if chirp.answer() != len(data):
                raise ChirpFailed(f"not all of {local} could be written")
        chirp.ask("close", number)


def _read(chirp: Chirp, words: list[str]) -> None:
    flags = _options(words, {"-offset": 1, "-stride": 2})
    remote, length = _these(words, 2)
    count, offset = _number(length), _number(flags.get("-offset", ["0"])[0])
    number = chirp.open(remote, "r")
    if "-stride" in flags:
        stride, skip = (_number(word) for word in flags["-stride"])
        found = chirp.ask("sread", number, count, offset, stride, skip)
    else:
        found = chirp.ask("pread", number, count, offset)
    for data in chirp.pieces(found):
        _out(data)
    _out(b"\n")
    chirp.ask("close", number)


def _write(chirp: Chirp, words: list[str]) -> None:
    flags = _options(words, {"-offset": 1, "-stride": 2})
    if len(words) not in (2, 3):
        raise BadWords("write [-offset offset] [-stride length skip] remote_file local_file [num_bytes]")
    remote, local = words[:2]
    left = _number(words[2]) if len(words) == 3 else -1
    offset = _number(flags.get("-offset", ["0"])[0])
    stride, skip = (_number(word) for word in flags.get("-stride", ["0", "0"]))
    if "-stride" in flags and stride <= 0:
        raise BadWords("the length of -stride has to be above 0")
    number = chirp.open(remote, "w")
    with _local(local, "rb", sys.stdin.buffer) as stream:
        while left and (data := stream.read(stride or min(PIECE_BYTES, left if left > 0 else PIECE_BYTES))):
            data = data[:left] if left > 0 else data
            chirp.say("pwrite", number, len(data), offset)
            chirp.send(data)
            if chirp.answer() != len(data):
                raise ChirpFailed(f"not all of {local} could be written")
            offset += skip if stride else len(data)
            left -= len(data) if left > 0 else 0
    chirp.ask("fsync", number)
    chirp.ask("close", number)


def _print_facts(line: bytes, names: Sequence[str], lead: str = "") -> None:
    for name, word in zip(names, line.split(), strict=False):
        text = time.ctime(int(word)) if name.endswith("time") else word.decode()
        _out(f"{lead}{name}: {text}\n".encode())


def _getdir(chirp: Chirp, words: list[str]) -> None:
    flags = _options(words, {"-l": 0})
    (path,) = _these(words, 1)
    data = chirp.data(chirp.ask("getlongdir" if "-l" in flags else "getdir", path))
    if "-l" not in flags:
        _out(data)
        return
    lines = data.rstrip(b"\n").split(b"\n") if data.strip() else []
    for name, facts in zip(lines[::2], lines[1::2], strict=False):
        _out(name + b"\n")
        _print_facts(facts, FACTS, "\t")


def _facts_of(verb: str, names: Sequence[str]) -> Callable[[Chirp, list[str]], None]:
    def act(chirp: Chirp, words: list[str]) -> None:
        chirp.ask(verb, words[0])
        _print_facts(chirp.line(), names)

    return act


def _access(chirp: Chirp, words: list[str]) -> None:
    bits = {"f": 0, "r": 4, "w": 2, "x": 1}
    unknown = set(words[1]) - set(bits)
    if unknown:
        raise BadWords(f"the mode {words[1]!r} has {sorted(unknown)[0]!r}; it is made of r, w, x and f")
    chirp.ask("access", words[0], sum(bits[letter] for letter in set(words[1])))


def _printed(*before: str | int, after: tuple[int, ...] = ()) -> Callable[[Chirp, list[str]], None]:
    """A request whose answer is printed."""

    def act(chirp: Chirp, words: list[str]) -> None:
        _out(chirp.data(chirp.ask(*before, *words, *after)) + b"\n")

    return act


def _readlink(chirp: Chirp, words: list[str]) -> None:
    if len(words) not in (1, 2):
        raise BadWords("readlink remotepath [length]")
    length = _number(words[1]) if len(words) == 2 else 4096
    _out(chirp.data(chirp.ask("readlink", words[0], length)) + b"\n")


def _rmdir(chirp: Chirp, words: list[str]) -> None:
    flags = _options(words, {"-r": 0})
    chirp.ask("rmall" if "-r" in flags else "rmdir", *_these(words, 1))


def _link(chirp: Chirp, words: list[str]) -> None:
    flags = _options(words, {"-s": 0})
    chirp.ask("symlink" if "-s" in flags else "link", *_these(words, 2))


def _asked(verb: str, bases: tuple[int, ...] = ()) -> Callable[[Chirp, list[str]], None]:
    """A request about a path, with numbers behind it of these bases."""

    def act(chirp: Chirp, words: list[str]) -> None:
        plain = len(words) - len(bases)
        chirp.ask(verb, *words[:plain], *(_number(word, base) for word, base in zip(words[plain:], bases, strict=True)))

    return act


def _options(words: list[str], known: dict[str, int]) -> dict[str, list[str]]:
    """Take the options off the front of the words."""
    found = {}
    while words and words[0] in known:
        name = words.pop(0)
        if len(words) < known[name]:
            raise BadWords(f"{name} needs {known[name]} more")
        found[name] = [words.pop(0) for _ in range(known[name])]
    return found


def _these(words: list[str], count: int) -> list[str]:
    if len(words) != count:
        raise BadWords(f"{count} names are needed behind the options, and there are {len(words)}")
    return words


COMMANDS: dict[str, tuple[int | None, Callable[[Chirp, list[str]], Any]]] = {
    # how many words it has (None: it counts itself), what does it
    "fetch": (2, _fetch), "put": (None, _put), "remove": (1, _asked("unlink")),
    "get_job_attr": (1, _printed("get_job_attr")), "get_job_attr_delayed": (1, _printed("get_job_attr_delayed")),
    "set_job_attr": (2, _asked("set_job_attr")), "set_job_attr_delayed": (2, _asked("set_job_attr_delayed")),
    "ulog": (1, _asked("ulog")), "read": (None, _read), "write": (None, _write), "rmdir": (None, _rmdir),
    "getdir": (None, _getdir), "whoami": (0, _printed("whoami", LINE_BYTES)),
    "whoareyou": (1, _printed("whoareyou", after=(LINE_BYTES,))), "link": (None, _link),
    "readlink": (None, _readlink), "stat": (1, _facts_of("stat", FACTS)), "lstat": (1, _facts_of("lstat", FACTS)),
    "statfs": (1, _facts_of("statfs", SPACE)), "access": (2, _access), "chmod": (2, _asked("chmod", (8,))),
    "chown": (3, _asked("chown", (10, 10))), "lchown": (3, _asked("lchown", (10, 10))),
    "truncate": (2, _asked("truncate", (10,))), "utime": (3, _asked("utime", (10, 10))),
}


def main() -> int:
    """Entry of ``condor_chirp``."""
    try:
        status = _run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has left: write nothing more, not even at exit
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
        return 1
    return status


def _run(words: list[str]) -> int:
    """Do what the command line says; the exit status."""
    if not words or words[0] in ("-h", "-help", "--help"):
        sys.stdout.write(USAGE)
        return 0 if words else 1
    count, act = COMMANDS.get(words[0], (-1, None))
    if act is None:
        sys.stderr.write(f"condor_chirp: Unknown command {words[0]}\n{USAGE}")
        return 1
    usage = "".join(f"{line}\n" for line in USAGE.splitlines() if f" {words[0]} " in f"{line} ")
    if words[1:] in (["-h"], ["-help"], ["--help"]):
        sys.stdout.write(usage)
        return 0
    if count is not None and len(words) - 1 != count:
        sys.stderr.write(usage)
        return 1
    try:
        chirp = Chirp()
        try:
            act(chirp, words[1:])
            sys.stdout.flush()
        finally:
            chirp.close()
    except BadWords as error:
        sys.stderr.write(f"condor_chirp {words[0]}: {error}\n")
        return 1
    except (ChirpFailed, OSError) as error:
        sys.stderr.write(f"condor_chirp {' '.join(words)[:200]}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
