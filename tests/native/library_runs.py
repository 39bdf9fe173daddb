"""Runs of programs beside which the contents of files are kept: a runtime, its home, and what a starter does for it."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import attrs

from condor_actors.machine.native.programs import runtime_path
from condor_actors.machine.native.shadow import EventKind, ShadowHost, Statistics, Task
from condor_actors.machine.standard.execute_endpoint import CONTROL, NEW, ROOM, USED
from condor_actors.machine.standard.library_cache import LibraryCache, shelf_name
from tests.native.chain import at_end_of_test, end_family
from tests.native.conftest import DEADLINE_S

OWNER = "alice@here here"

@attrs.define(kw_only=True)
class Outcome:
    """What a run printed, what it cost, and how many contents it handed over."""

    output: str
    statistics: Statistics
    added: int


class Starter(threading.Thread):
    """What the starter does for a runtime's control socket."""

    def __init__(self, control: socket.socket, cache: LibraryCache, owner: str) -> None:
        super().__init__(daemon=True)
        self.added = 0
        self._control = control
        self._cache = cache
        self._name = shelf_name(owner)
        self._room = -1
        lent = cache.lend(self._name)
        if lent is None:
            cache.load(self._name)
            lent = cache.lend(self._name)
        assert lent is not None
        self.contents, self._shelf = lent
        self.table = os.memfd_create("table")
        os.write(self.table, self._shelf.table())

    def run(self) -> None:
        """Answer until the runtime has ended."""
        said = b""
        while data := self._control.recv(4096):
            said += data
            while len(said) >= CONTROL.size:
                what, _, value = CONTROL.unpack_from(said)
                said = said[CONTROL.size :]
                self._hear(what, value)

    def _hear(self, what: int, value: int) -> None:
        if what == ROOM:
            self._room = os.memfd_create("contents")
            socket.send_fds(self._control, [CONTROL.pack(0, 0, 0)], [self._room])
        elif what == NEW:
            self.added += self._cache.add(self._name, self._room)
            os.close(self._room)
        elif what == USED:
            self._cache.note_used(self._shelf.contents[value])


def run(host: ShadowHost, cache: LibraryCache | None, command: Sequence[str], folder: Path, libraries: Sequence[str],
        owner: str = OWNER, wire: Callable[[socket.socket], socket.socket] = lambda far: far) -> Outcome:
    """Run COMMAND once, with what OWNER has in CACHE (None: nothing is kept); its channel passes through WIRE."""
    ours, far = socket.socketpair()
    theirs = wire(far)
    control, far_control = socket.socketpair()
    starter = Starter(control, cache, owner) if cache is not None else None
    words = [runtime_path(), str(theirs.fileno()), "-", f"control={far_control.fileno()}"]
    passed = [theirs.fileno(), far_control.fileno()]
    if starter is not None:
        words += [f"library={starter.contents}", f"table={starter.table}"]
        passed += [starter.contents, starter.table]
    statistics = None
    with theirs, far_control, (folder / "output").open("w+b") as output, open(os.devnull, "rb") as null:
        task = Task(program=command[0], arguments=command, environment={"PATH": os.environ["PATH"], "HOME": "/"},
                    directory=str(folder), standard_fds=(null.fileno(), output.fileno(), output.fileno()),
                    direct=True, libraries=libraries)
        session = host.open(ours, task)
        process = subprocess.Popen(words, pass_fds=passed)
        at_end_of_test(partial(end_family, process))
        theirs.close()
        far_control.close()
        if starter is not None:
            starter.start()
            os.close(starter.contents)
            os.close(starter.table)
        over = False
        while not over:
            assert select.select([host], [], [], DEADLINE_S)[0]
            for event in host.events():
                if event.session == session and event.kind in (EventKind.EXITED, EventKind.LOST):
                    statistics = host.statistics(session)
                over |= event.session == session and event.kind is EventKind.ENDED
        process.wait(DEADLINE_S)
        if starter is not None:
            starter.join(DEADLINE_S)
        control.close()
        output.seek(0)
        assert statistics is not None
        return Outcome(output=output.read().decode(), statistics=statistics,
                       added=starter.added if starter is not None else 0)


def warmed(host: ShadowHost, cache: LibraryCache, command: Sequence[str], folder: Path, libraries: Sequence[str],
           owner: str = OWNER) -> Outcome:
    """Run COMMAND until a run has got what it reads from the cache; that run."""
    end_s = time.monotonic() + DEADLINE_S
    while time.monotonic() < end_s:
        found = run(host, cache, command, folder, libraries, owner)
        if found.statistics.files_kept_there and not found.added:
            return found
        time.sleep(0.2)  # home tells no digest of what changed a moment ago
    raise AssertionError("no run has got anything from the cache")
