"""The ads of machines that sleep, on the collector's disk (COLLECTOR_PERSISTENT_AD_LOG).

Theory: a journal, one line per change, synced before anybody hears of it.  It is written anew, by rename, when most of
its lines are out of date.  A last line that a crash cut short is dropped: nobody heard of it.  The file is made when
the first machine sleeps, so a pool whose machines do not has none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import attrs

from condor_actors.cores.collector.offline_ads import DropAd, KeepAd
from condor_actors.durable import append_whole, sync_folder, write_whole

__all__ = ["OfflineAds", "OfflineAdsFile"]

SPARE_LINES = 1000
"""Lines that are out of date, beside as many as there are ads."""


class OfflineAds(Protocol):
    """What a collector needs; the simulation has its own."""

    @property
    def kept(self) -> Mapping[str, KeepAd]:
        """The ads, by key."""

    def commit(self, operations: Sequence[Any]) -> None:
        """Make all operations (``KeepAd``, ``DropAd``) durable."""


class OfflineAdsFile:
    """The journal at ``path``.

    Raises:
        OSError: it is there and cannot be read.
        ValueError: a line other than the last makes no sense; names the file and the line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._kept: dict[str, KeepAd] = {}
        self._lines = 0
        self._read()

    @property
    def kept(self) -> Mapping[str, KeepAd]:
        """The ads, by key."""
        return self._kept

    def commit(self, operations: Sequence[Any]) -> None:
        """Make all operations durable, all or none.

        Raises:
            OSError: nothing of it was kept (a full disk, say).
        """
        if not operations:
            return
        after = dict(self._kept)
        for operation in operations:
            _apply(after, operation)
        lines = "".join(map(_line, operations)).encode()
        if self._lines and self._lines + len(operations) <= 2 * len(after) + SPARE_LINES:
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                append_whole(file, lines)
            finally:
                os.close(file)
            self._lines += len(operations)
        else:
            write_whole(self.path, "".join(map(_line, after.values())).encode(), 0o600)
            self._lines = len(after)
        self._kept = after

    def _read(self) -> None:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return
        whole, _, rest = data.rpartition(b"\n")
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                _apply(self._kept, _operation(line))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{self.path}, line {number} is no ad of a machine that sleeps ({error}); remove the "
                                 "file to forget them all (COLLECTOR_PERSISTENT_AD_LOG)") from None
            self._lines = number
        if rest:
            os.truncate(self.path, len(data) - len(rest))
            sync_folder(self.path.parent)


def _apply(kept: dict[str, KeepAd], operation: Any) -> None:
    if isinstance(operation, KeepAd):
        kept[operation.key] = operation
    elif isinstance(operation, DropAd):
        kept.pop(operation.key, None)
    else:
        raise TypeError(f"a collector does not store {type(operation).__name__}")


def _line(operation: KeepAd | DropAd) -> str:
    if isinstance(operation, DropAd):
        return json.dumps({"drop": operation.key}) + "\n"
    data = operation.data.decode("utf-8", "surrogateescape")  # an ad of others may have bytes that are no text
    return json.dumps({"keep": {**attrs.asdict(operation), "data": data}}) + "\n"


def _operation(line: bytes) -> KeepAd | DropAd:
    entry = json.loads(line)
    if "drop" in entry:
        return DropAd(str(entry["drop"]))
    plain = entry["keep"]
    return KeepAd(key=str(plain["key"]), data=str(plain["data"]).encode("utf-8", "surrogateescape"),
                  host=str(plain["host"]), expires_s=float(plain["expires_s"]))
