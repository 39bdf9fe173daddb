"""The claims of a startd on disk: few, small, and private to it.

Theory: a claim begins once per many jobs, so the file is a journal: one line per change, synced before anyone hears
of it; it is written anew, by rename, when it is opened and when it has grown long.  A last line that a crash cut short
is dropped: nobody heard of it.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from condor_actors.cores.startd.claims.claim import ClaimRecord, DropClaim, SaveClaim, SaveFact
from condor_actors.durable import append_whole, sync_folder

__all__ = ["ClaimFile", "Claims"]

LONG_LINES = 2000
_BYTES = ("job_ad", "checkpoint_key")


class Claims(Protocol):
    """What a startd needs: its claims, kept; the simulation has its own."""

    @property
    def records(self) -> tuple[ClaimRecord, ...]:
        """The claims kept."""

    def commit(self, operations: Sequence[Any]) -> None:
        """Make all operations (``SaveClaim``, ``DropClaim``) durable."""

    def close(self) -> None:
        """Stop writing."""


class ClaimFile:
    """The journal at ``path``.

    Raises:
        OSError: it cannot be read or written.
        ValueError: a line other than the last makes no sense; names the file and the line.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._claims: dict[str, ClaimRecord] = {}
        self.facts: dict[str, Any] = {}
        self._lines = 0
        self._file = -1
        self.path.parent.mkdir(parents=True, exist_ok=True)
        known = self.path.exists()
        if known:
            self._read()
        try:
            self._rewrite()
        except OSError:
            if not known:
                raise
            self._go_on()  # a full disk: what there is will do

    @property
    def records(self) -> tuple[ClaimRecord, ...]:
        """The claims kept."""
        return tuple(self._claims.values())

    def commit(self, operations: Sequence[Any]) -> None:
        """Make all operations durable, all or none.

        Raises:
            OSError: nothing of it was kept (a full disk, say).
        """
        before, facts = dict(self._claims), dict(self.facts)
        try:
            self._write(operations)
        except OSError as error:
            self._claims, self.facts = before, facts
            raise OSError(error.errno, error.strerror, str(self.path)) from error

    def _write(self, operations: Sequence[Any]) -> None:
        lines = []
        for operation in operations:
            if isinstance(operation, SaveClaim):
                self._claims[operation.record.claim_id] = operation.record
                lines.append(_line(operation.record))
            elif isinstance(operation, DropClaim):
                if self._claims.pop(operation.claim_id, None) is not None:
                    lines.append(json.dumps({"drop": operation.claim_id}) + "\n")
            elif isinstance(operation, SaveFact):
                self._keep(operation.name, operation.value)
                lines.append(json.dumps({"fact": [operation.name, operation.value]}) + "\n")
            else:
                raise TypeError(f"a claim file cannot keep {operation!r}")
        if not lines:
            return
        self._lines += len(lines)
        if self._lines > LONG_LINES:
            self._rewrite()
            return
        append_whole(self._file, "".join(lines).encode())

    def close(self) -> None:
        """Stop writing."""
        os.close(self._file)

    def _read(self) -> None:
        lines = self.path.read_bytes().splitlines(keepends=True)
        for number, line in enumerate(lines, start=1):
            try:
                entry = json.loads(line)
                if "fact" in entry:
                    self._keep(*entry["fact"])
                elif "drop" in entry:
                    self._claims.pop(entry["drop"], None)
                else:
                    record = _record(entry["save"])
                    self._claims[record.claim_id] = record
            except (ValueError, KeyError, TypeError) as error:
                if number == len(lines) and not line.endswith(b"\n"):
                    return
                raise ValueError(f"{self.path}, line {number} is not a claim ({error}); "
                                 "remove the file to forget all claims") from None

    def _go_on(self) -> None:
        """Append to the file as it is, without what a crash left of its last line."""
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        os.ftruncate(self._file, self.path.read_bytes().rfind(b"\n") + 1)

    def _rewrite(self) -> None:
        fresh = self.path.with_name(self.path.name + ".new")
        fresh.unlink(missing_ok=True)
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL | os.O_CLOEXEC, 0o600)
        lines = [_line(record) for record in self._claims.values()]
        lines += [json.dumps({"fact": [name, value]}) + "\n" for name, value in self.facts.items()]
        try:
            append_whole(file, "".join(lines).encode())
        except OSError:
            os.close(file)
            fresh.unlink(missing_ok=True)
            raise
        fresh.replace(self.path)
        sync_folder(self.path.parent)
        if self._file >= 0:
            os.close(self._file)
        self._file = file
        self._lines = len(lines)

    def _keep(self, name: str, value: Any) -> None:
        if value is None:
            self.facts.pop(name, None)
        else:
            self.facts[name] = value


def _line(record: ClaimRecord) -> str:
    plain = record.to_plain()
    for name in _BYTES:
        plain[name] = base64.b64encode(plain[name]).decode()
    return json.dumps({"save": plain}) + "\n"


def _record(plain: dict[str, Any]) -> ClaimRecord:
    return ClaimRecord.from_plain({**plain, **{name: base64.b64decode(plain.get(name, "")) for name in _BYTES}})
