"""The shadow's C code for Python: open a session per channel, take events, read statistics.

A session does the system calls of one running program at home, in a thread of its own; Python is never in the
path of a call.  Everything that happens to sessions comes as events through one descriptor per process, which
a reactor or a ``select`` can watch:

=================== ====================================================================================================
``STARTED``         the program runs (``value``: pid of the runtime, ``detail`` 1 after a restart)
``EXITED``          it has ended (``value``: exit status; ``detail``: errno when it could not be started)
``LOST``            the channel ended without an exit: killed, or its machine is gone
``IMAGE``           a checkpoint is complete (``value``: bytes, ``detail``: ns it took, ``text``: the file)
``INCREMENT``       as ``IMAGE``: what changed since the last whole image (``text``: ``<image>.delta``)
``NO_IMAGE``        a checkpoint failed (``value``: errno, ``text``: why); the program goes on
``BROKEN``          the other side broke the protocol, or the program's files are gone (``text``)
``WRITE_LOST``      a write that nobody waited for has failed, and the program did not ask; it dies of SIGBUS when it
                    would exit (``value``: errno, ``detail``: the process whose write it was, ``text``: the file)
``REFUSED``         a call was refused for a reason that its errno does not tell (``text``: which)
``MEMBER``          of a direct channel: a helper's (``value``: its descriptor, the taker's; ``detail``: its number)
``MEMBER_STRAIGHT`` a helper has a connection of its own straight home (``value``: its label; ``detail``: its number)
``WANTS_SPARE``     a helper waits for such a connection: ``spare``
``ENDED``           the session is over and its number is free
=================== ====================================================================================================
"""


from __future__ import annotations

import enum
import os
import socket
from collections.abc import Iterator, Mapping, Sequence

import attrs

__all__ = ["EventKind", "ShadowEvent", "ShadowHost", "Statistics", "Task"]

_CALLS = 512


class EventKind(enum.IntEnum):
    """What happened to a session; see the module's table."""

    STARTED = 1
    EXITED = 2
    LOST = 3
    IMAGE = 4
    NO_IMAGE = 5
    BROKEN = 6
    ENDED = 7
    WRITE_LOST = 8
    INCREMENT = 9
    MEMBER = 10
    MEMBER_STRAIGHT = 11
    WANTS_SPARE = 12
    REFUSED = 13


@attrs.frozen(kw_only=True)
class Task:
    """What a session's program is and where it begins."""

    program: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    directory: str | None = None
    image: str | None = None
    standard_fds: tuple[int, int, int] = (0, 1, 2)
    stack_bytes: int = 8 << 20
    journal: bool = True
    """Whether files roll back with the program when it restarts from its image."""
    journal_from_start: bool = False
    """Whether they also do when it begins anew: the journal is kept from the program's first call on."""
    journal_outlives: bool = False
    """Whether it stays when the program has ended, for one who starts the image once more."""
    key: bytes | None = None
    """32 random bytes, of this run only, which the runtime gets as ``key=FD``: the channel is encrypted."""
    increments: int = 0
    """A checkpoint may hold what changed since a whole one of so many bytes (native_image.full_image); 0: never."""
    direct: bool = False
    """Whether the channel cannot carry descriptors: see MEMBER; the other end writes checkpoints to ``<image>.new``."""
    spares: bool = False
    """Of a direct channel: helpers wait for connections of their own (``ShadowHost.spare``)."""
    identity: tuple[int, int] | None = None
    """User and group as whom the session's threads do the calls; None: as this process."""
    libraries: Sequence[str] = ()
    """Folders: of a file below that every user may read, an execute machine that has its content is told the digest
    only."""
    job_root: str | None = None
    """The program gets at what lies below this directory, and to read at what every program needs (programs,
    libraries, /etc); None: at what its owner may."""


@attrs.frozen(kw_only=True)
class ShadowEvent:
    """One event of one session."""

    session: int
    kind: EventKind
    value: int
    detail: int
    text: str


@attrs.frozen(kw_only=True)
class Statistics:
    """What a session did so far; ``calls`` by the name the kernel's headers give their number."""

    calls: int
    bytes_in: int
    bytes_out: int
    files_opened: int
    checkpoints: int
    served_ns: int
    files_kept_there: int
    bytes_kept_there: int
    by_number: Mapping[int, int]


class ShadowHost:
    """All sessions of this process."""

    def __init__(self) -> None:
        from condor_actors.machine.native import _native

        self._ffi = _native.ffi
        self._lib = _native.lib

    def fileno(self) -> int:
        """Return the descriptor that is readable while there are events."""
        return int(self._lib.shadow_event_descriptor())

    def open(self, channel: socket.socket, task: Task) -> int:
        """Serve CHANNEL, whose other end a runtime has, and return the session's number.

        The socket is detached: it is the session's from now on.  Raises OSError.
        """
        new = self._ffi.new
        words = [os.fsencode(word) for word in task.arguments]
        pairs = [os.fsencode(f"{name}={value}") for name, value in task.environment.items()]
        keep = [new("char[]", word) for word in (*words, *pairs)]
        arguments = new("char *[]", [*keep[: len(words)], self._ffi.NULL])
        environment = new("char *[]", [*keep[len(words) :], self._ffi.NULL])
        names = (task.program, task.directory or "", task.image or "", task.job_root or "", ":".join(task.libraries))
        strings = [new("char[]", os.fsencode(text)) for text in names]
        wanted = new("struct shadow_task *")
        wanted.program = strings[0]
        wanted.arguments = arguments
        wanted.environment = environment
        wanted.directory = strings[1] if task.directory else self._ffi.NULL
        wanted.image = strings[2] if task.image else self._ffi.NULL
        wanted.job_root = strings[3] if task.job_root else self._ffi.NULL
        wanted.libraries = strings[4] if task.libraries else self._ffi.NULL
        wanted.standard = list(task.standard_fds)
        wanted.stack_bytes = task.stack_bytes
        wanted.journal = 2 if task.journal and task.journal_from_start else task.journal
        wanted.journal_outlives = task.journal_outlives
        wanted.increments = task.increments
        wanted.direct = task.direct
        wanted.spares = task.direct and task.spares
        key = new("uint8_t[32]", task.key) if task.key is not None else self._ffi.NULL
        wanted.key = key
        wanted.has_identity = task.identity is not None
        wanted.uid, wanted.gid = task.identity or (0, 0)
        descriptor = channel.detach()
        session = int(self._lib.shadow_open(descriptor, wanted))
        if session < 0:
            os.close(descriptor)
            raise OSError(-session, os.strerror(-session))
        return session

    def events(self) -> Iterator[ShadowEvent]:
        """Take all events that are there."""
        event = self._ffi.new("struct shadow_event *")
        while self._lib.shadow_next_event(event):
            yield ShadowEvent(
                session=event.session,
                kind=EventKind(event.kind),
                value=event.value,
                detail=event.detail,
                text=self._ffi.string(event.text).decode(errors="backslashreplace"),
            )

    def statistics(self, session: int) -> Statistics:
        """Return what SESSION did; possible until its ENDED event has been taken. Raises OSError."""
        found = self._ffi.new("struct shadow_statistics *")
        failed = int(self._lib.shadow_read_statistics(session, found))
        if failed:
            raise OSError(-failed, os.strerror(-failed))
        return Statistics(
            calls=found.calls,
            bytes_in=found.bytes_in,
            bytes_out=found.bytes_out,
            files_opened=found.files_opened,
            checkpoints=found.checkpoints,
            served_ns=found.served_ns,
            files_kept_there=found.files_kept_there,
            bytes_kept_there=found.bytes_kept_there,
            by_number={number: found.by_call[number] for number in range(_CALLS) if found.by_call[number]},
        )

    def vacate(self, session: int) -> None:
        """Make the next complete checkpoint of SESSION the program's last act here.

        The checkpoint itself is asked for by the signal, as ever.
        """
        self._lib.shadow_vacate(session)

    def spare(self, session: int, channel: socket.socket | None, label: int) -> None:
        """Give SESSION the connection LABEL for its next helper; None: there will be none.

        The socket is the session's from then on.  Raises OSError: the session is over, or has enough.
        """
        failed = int(self._lib.shadow_spare(session, -1 if channel is None else channel.fileno(), label))
        if failed:
            raise OSError(-failed, os.strerror(-failed))
        if channel is not None:
            channel.detach()

    def close(self, session: int) -> None:
        """End SESSION: its program loses its files and ends."""
        self._lib.shadow_close(session)
