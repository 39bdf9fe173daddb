"""Sandboxes of simulated machines, and the blobs that fill them: all in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from condor_actors.machine.run.users import Account
from condor_actors.messages.manifest import FileEntry
from condor_actors.transfer.manifest import digest_bytes

if TYPE_CHECKING:
    from condor_actors.simulation.world.machine import SimulatedMachine

__all__ = ["MemoryBlobs", "Outputs", "SimulatedSandbox", "SimulatedSandboxes"]


@attrs.define
class Outputs:
    """As :class:`~condor_actors.transfer.manifest.ManifestBuilder`."""

    entries: list[FileEntry] = attrs.field(factory=list)
    sources: dict[str, str] = attrs.field(factory=dict)
    missing: tuple[str, ...] = ()

    def add(self, path: str, data: bytes) -> None:
        """A file."""
        self.entries.append(FileEntry(path=path, mode=0o644, size_bytes=len(data), digest=digest_bytes(data),
                                      inline=data))


class SimulatedSandbox:
    """A scratch directory: as :class:`~condor_actors.machine.run.sandbox.Sandbox`."""

    def __init__(self, machine: SimulatedMachine, path: str, account: Account | None) -> None:
        self.path = path
        self.account = account
        self._machine = machine
        self._before: frozenset[str] = frozenset()
        machine.scratch[path] = {}

    @property
    def _files(self) -> dict[str, bytes]:
        return self._machine.scratch.setdefault(self.path, {})

    def fill(self, entries: Sequence[FileEntry], store: Any, job_ad: bytes, machine_ad: bytes) -> None:
        """Lay the inputs out."""
        self._machine.disk.check()
        for entry in entries:
            if entry.kind == "file" and entry.inline is not None:
                self._files[entry.path] = entry.inline

    def remember(self, but: Collection[str] = ()) -> None:
        """Note what is there before the job begins, but what an earlier run has made."""
        self._before = frozenset(self._files) - frozenset(but)

    def rights(self) -> contextlib.AbstractContextManager[None]:
        """The job's."""
        return contextlib.nullcontext()

    lent = False

    lends_at_once = False

    def lend(self) -> None:
        """Its files are nobody's."""

    def show(self) -> None:
        """They have no modes."""

    def open_output(self, path: str, go_on: bool = False) -> int:
        """A descriptor that is none."""
        self._machine.disk.check()
        name = path.removeprefix(f"{self.path}/")
        if not go_on or name not in self._files:
            self._files[name] = b""
        return -1

    def make_file(self, path: str, mode: int) -> int:
        """A descriptor that is none."""
        return -1

    def clear_files(self, names: Iterable[str]) -> None:
        """Remove files that are there no longer for the job to see."""
        for name in names:
            self._files.pop(name, None)

    def open_input(self, path: str) -> int:
        """A descriptor that is none."""
        return -1

    def leave_secret(self, name: str, data: bytes) -> None:
        """Nobody reads it."""

    def first_other(self, promised: Iterable[tuple[str, str]]) -> str:
        """No file of a URL comes here."""
        return ""

    def leave_log(self, name: str, data: bytes) -> None:
        """Put the starter's log of the run beside its outputs."""
        self._files[name] = data

    def open_own(self, path: str) -> int:
        """A descriptor that is none."""
        return -1

    def take_back(self) -> None:
        """Accounts are not played."""

    def gather(self, named: Sequence[str] | None, streamed: Collection[str] = (), *, complete: bool = True,
               inline_limit_bytes: int | None = None, light: bool = False,
               keeps_paths: bool = False, besides: Collection[str] = ()) -> Outputs:
        """What goes home."""
        self._machine.disk.check(writing=False)
        files, outputs = self._files, Outputs()
        if "_condor_stdout" in files and "_condor_stdout" not in streamed:
            outputs.add("_condor_stdout", files["_condor_stdout"])
        if named is None:
            wanted = [name for name in sorted(files) if not name.startswith("_condor_") and name != "condor_exec.exe"]
        else:
            wanted = [name for name in named if name in files]
            outputs.missing = tuple(name for name in named if name not in files) if complete else ()
        for name in dict.fromkeys((*wanted, *(each for each in besides if each in files))):
            if named is not None or name not in self._before or name == PROGRESS:
                outputs.add(name, files[name])
        return outputs

    def size_kib(self, pids: Collection[int] = ()) -> int:
        """Disk space in use; the simulation's processes keep nothing open."""
        return self._machine.written_kib(self.path)

    def read(self, path: str, offset: int, max_bytes: int) -> tuple[int, bytes, int]:
        """(offset, bytes, size) of a file."""
        if path not in self._files:
            raise FileNotFoundError(2, "no such file", path)
        data = self._files[path]
        start = max(0, len(data) - max_bytes) if offset < 0 else offset
        return start, data[start:start + max_bytes], len(data)

    def remove(self) -> bool:
        """Remove everything."""
        self._machine.scratch.pop(self.path, None)
        return True

    def private(self, folders: Iterable[str], needed: Collection[str]) -> tuple[tuple[str, str], ...]:
        """No machine here has folders of its own to hide."""
        return ()


class SimulatedSandboxes:
    """EXECUTE: as :class:`~condor_actors.machine.run.sandbox_root.SandboxRoot`."""

    notice = ""

    def __init__(self, machine: SimulatedMachine, path: str, pid: int) -> None:
        self.path = path
        self._machine = machine
        self._pid = pid
        self._count = 0

    def create(self, account: Account | None) -> SimulatedSandbox:
        """A fresh one."""
        self._machine.disk.check()
        self._count += 1
        return SimulatedSandbox(self._machine, f"{self.path}/dir_{self._pid}_{self._count}", account)

    def leave(self) -> None:
        """Nothing stands in for EXECUTE."""

    def leftovers(self, keep: Collection[str] = ()) -> tuple[str, ...]:
        """Sandboxes that no living run uses."""
        return tuple(path for path in self._machine.scratch if path not in keep)


class MemoryBlobs:
    """Content that runs have fetched: as :class:`~condor_actors.transfer.blob_store.BlobStore`, for small inputs."""

    def of(self, owner: str) -> MemoryBlobs:
        """Contents that are made up are nobody's in particular."""
        return self

    def missing(self, digests: Sequence[str]) -> tuple[str, ...]:
        """All of them."""
        return tuple(dict.fromkeys(digests))

    def pin(self, digest: str, holder: str) -> None:
        """Nothing is kept."""

    def unpin(self, holder: str) -> None:
        """Nothing is kept."""

    def make_room(self) -> None:
        """Nothing is kept."""

PROGRESS = "progress"
