"""What both ends of chirp know: its words, its error numbers, and how much of anything is too much.

Theory: a program in a job speaks lines over a socket to its starter; the starter asks the shadow for what belongs home.
The wire format is that of HTCondor's ``condor_chirp`` (protocol version 2), so that its clients work as they are.

**Source**: HTCondor's manual, *Chirp* and ``condor_chirp``; ``chirp_protocol.h`` for the numbers.
"""

from __future__ import annotations

import enum
import errno
import re
from fnmatch import fnmatchcase

import attrs

__all__ = ["LINE_BYTES", "PIECE_BYTES", "VERSION", "Bucket", "ChirpError", "code_of", "is_attribute_name",
           "may_be_delayed", "words_of"]

VERSION = 2
LINE_BYTES = 5120
"""The longest request, with its end of line."""
PIECE_BYTES = 128 * 1024
"""The most of a file that travels in a message."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}")


class ChirpError(enum.IntEnum):
    """What a request is answered with when it cannot be done."""

    NOT_AUTHENTICATED = -1
    NOT_AUTHORIZED = -2
    DOESNT_EXIST = -3
    ALREADY_EXISTS = -4
    TOO_BIG = -5
    NO_SPACE = -6
    NO_MEMORY = -7
    INVALID_REQUEST = -8
    TOO_MANY_OPEN = -9
    BUSY = -10
    TRY_AGAIN = -11
    BAD_FD = -12
    IS_DIR = -13
    NOT_DIR = -14
    NOT_EMPTY = -15
    CROSS_DEVICE_LINK = -16
    OFFLINE = -17
    UNKNOWN = -127


_CODES = {
    errno.EPERM: ChirpError.NOT_AUTHORIZED, errno.EACCES: ChirpError.NOT_AUTHORIZED,
    errno.EROFS: ChirpError.NOT_AUTHORIZED,
    errno.ENOENT: ChirpError.DOESNT_EXIST, errno.EEXIST: ChirpError.ALREADY_EXISTS,
    errno.EFBIG: ChirpError.TOO_BIG, errno.E2BIG: ChirpError.INVALID_REQUEST,
    errno.ENAMETOOLONG: ChirpError.TOO_BIG, errno.ENOSPC: ChirpError.NO_SPACE, errno.EDQUOT: ChirpError.NO_SPACE,
    errno.ENOMEM: ChirpError.NO_MEMORY, errno.EBADF: ChirpError.BAD_FD, errno.EINVAL: ChirpError.INVALID_REQUEST,
    errno.ENFILE: ChirpError.TOO_MANY_OPEN, errno.EMFILE: ChirpError.TOO_MANY_OPEN,
    errno.ELOOP: ChirpError.NOT_AUTHORIZED,
    errno.EBUSY: ChirpError.BUSY, errno.ETXTBSY: ChirpError.BUSY,
    errno.EAGAIN: ChirpError.TRY_AGAIN, errno.EINTR: ChirpError.TRY_AGAIN,
    errno.EISDIR: ChirpError.IS_DIR, errno.ENOTDIR: ChirpError.NOT_DIR, errno.ENOTEMPTY: ChirpError.NOT_EMPTY,
    errno.EXDEV: ChirpError.CROSS_DEVICE_LINK, errno.ETIMEDOUT: ChirpError.OFFLINE,
}


def code_of(number: int | None) -> ChirpError:
    """The answer that stands for an errno."""
    return _CODES.get(number or 0, ChirpError.UNKNOWN)


def words_of(line: bytes) -> list[bytes]:
    r"""The words of a request; a backslash makes the next byte, even a blank or newline, part of the word."""
    words: list[bytes] = []
    word: bytearray | None = None
    escaped = False
    for byte in line:
        if escaped:
            assert word is not None
            word.append(byte)
            escaped = False
        elif byte in b" \t\r\n\v\f":
            if word is not None:
                words.append(bytes(word))
            word = None
        else:
            word = bytearray() if word is None else word
            if byte == 0x5C:
                escaped = True
            else:
                word.append(byte)
    if word is not None:
        words.append(bytes(word))
    return words


def is_attribute_name(name: str) -> bool:
    """Whether a job attribute can be called so."""
    return _NAME.fullmatch(name) is not None


def may_be_delayed(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether an attribute may be set delayed, by its name; ``*`` in a pattern stands for any letters."""
    return is_attribute_name(name) and any(fnmatchcase(name.lower(), each.lower()) for each in patterns)


@attrs.define
class Bucket:
    """How often something may happen: ``burst`` at once, then ``per_s``.

    Attributes:
        left, since_s: how much is left, and since when.
    """

    per_s: float
    burst: float
    left: float = attrs.field(default=attrs.Factory(lambda self: self.burst, takes_self=True))
    since_s: float = 0.0

    def wait_s(self, now_s: float) -> float:
        """Take one, now or in so many seconds, which are returned."""
        self.left = min(self.burst, self.left + max(0.0, now_s - self.since_s) * self.per_s)
        self.since_s = now_s
        self.left -= 1.0
        return max(0.0, -self.left / self.per_s)

    def takes(self, now_s: float) -> bool:
        """Take one if there is one now."""
        if self.wait_s(now_s) > 0.0:
            self.left += 1.0
            return False
        return True
