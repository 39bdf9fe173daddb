"""The file of an audit log: lines of fields, appended and synced, put aside at a size; see ``docs/security.md``."""

from __future__ import annotations

import json
import os
import re
import stat
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

__all__ = ["AuditFile", "audit_line"]

PLAIN = re.compile(r"[\w.:@/+-]+", re.ASCII)
VALUE_CHARS = 600
MODE = 0o640


def audit_line(when_s: float, **fields: Any) -> str:
    """One line of the log, without its end; fields without a value are left out."""
    second = int(when_s // 1)
    shown = " ".join([f"{name}={_value(str(value)[:VALUE_CHARS + 1])}" for name, value in fields.items()
                      if value not in ("", None)])
    return f"{_stamp(second)}.{int((when_s - second) * 1000):03}Z {shown}"


@lru_cache(maxsize=1)
def _stamp(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


@lru_cache(maxsize=1024)
def _value(text: str) -> str:
    """A value as it is written; the same names and places come again and again."""
    if len(text) > VALUE_CHARS:
        text = f"{text[:VALUE_CHARS]}..."
    return text if PLAIN.fullmatch(text) else json.dumps(text).replace("\x7f", "\\u007f")


class AuditFile:
    """Appends to it; creates it at once where it is missing, so that a file that cannot be written is noticed early.

    Args:
        max_bytes: the size at which it is put aside; 0: never.
        keep: how many that were put aside stay.

    Raises:
        OSError: it cannot be written, or is no plain file with one name.
    """

    def __init__(self, path: Path, *, max_bytes: int, keep: int) -> None:
        self._path, self._max_bytes, self._keep = path, max_bytes, keep
        os.close(self._open())

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        descriptor = os.open(self._path, flags, MODE)
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink > 1:
            os.close(descriptor)
            raise PermissionError(f"{self._path} is no plain file with one name")
        if facts.st_uid == os.geteuid():
            os.fchmod(descriptor, MODE)
        return descriptor

    def append(self, data: bytes) -> None:
        """Append whole lines and sync.

        Raises:
            OSError: not all of it is in the file.
        """
        if not data:
            return
        descriptor = self._open()
        try:
            size = os.fstat(descriptor).st_size
            if self._max_bytes and size and size + len(data) > self._max_bytes:
                os.close(descriptor)
                self._put_aside()
                descriptor = self._open()
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view):]
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)

    def _put_aside(self) -> None:
        """``LOG.1`` is the newest of those."""
        for number in range(max(self._keep, 1), 0, -1):
            older = Path(f"{self._path}.{number - 1}") if number > 1 else self._path
            if older.exists():
                older.replace(f"{self._path}.{number}")
