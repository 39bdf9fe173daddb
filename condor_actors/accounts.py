"""What the user database says: names, numbers, homes and groups of this machine's users.

Theory: the database may be a directory server on the network, and the C library waits for that as long as it likes.
Commands, worker threads and daemons that only begin wait with it.  A thread that has declared itself :func:`impatient`,
which a reactor's does when its daemon is ready, does not: its questions are asked on threads of their own, and it gets
what comes at once (from files always), what was known before, or :class:`NotYet`.  It waits no longer than
:data:`WAIT_S`, and after a wait without an answer, not at all for a while: so a server that hangs costs a daemon a
hundredth of its time, and nobody that is known already is in want of anything.

This is the only module that asks the database.
"""

from __future__ import annotations

import errno
import os
import pwd
import time
from _thread import allocate_lock, get_ident
from collections.abc import Callable

from condor_actors import records

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    import threading

__all__ = ["Entry", "NotYet", "UserDatabase", "group_named", "groups_of", "impatient", "named", "numbered", "own_name"]

WAIT_S = 0.2
RECOVER_S = 20.0
"""How long no caller waits after one has waited without an answer, unless an answer comes."""
FRESH_S = 10.0
"""For how long an answer is not asked for again; one that there is no such user: a tenth of it."""
MOST_ASKED = 16
"""How many questions may be on their way."""
MOST_ASKED_BY_STRANGERS = 2
"""How many of them may come from expressions, which anybody may write."""
MOST_KNOWN = 4096
MOST_GROUPS = 65_536



class NotYet(OSError):
    """The user database has not answered so far; ask again later."""

    def __init__(self, what: object) -> None:
        super().__init__(errno.EAGAIN, f"the user database does not answer about {what}; it was asked again")


@records.frozen
class Entry:
    """A user.

    Attributes:
        name, uid, gid, home: as the database has them.
    """

    name: str
    uid: int
    gid: int
    home: str


def _of(found: pwd.struct_passwd) -> Entry:
    return Entry(found.pw_name, found.pw_uid, found.pw_gid, found.pw_dir)


def _ask_name(name: str) -> Entry | None:
    try:
        return _of(pwd.getpwnam(name))
    except (KeyError, ValueError):
        return None


def _ask_number(uid: int) -> Entry | None:
    try:
        return _of(pwd.getpwuid(uid))
    except (KeyError, OverflowError):
        return None


def _ask_group(name: str) -> int | None:
    import grp

    try:
        return grp.getgrnam(name).gr_gid
    except (KeyError, ValueError):
        return None


def _ask_groups(key: tuple[str, int]) -> tuple[int, ...]:
    """By the C library itself: ``os.getgrouplist`` keeps all other threads of the interpreter waiting."""
    import ctypes

    library = ctypes.CDLL(None)
    name, gid = os.fsencode(key[0]), key[1]
    room = 64
    while True:
        found, count = (ctypes.c_uint * room)(), ctypes.c_int(room)
        if library.getgrouplist(name, ctypes.c_uint(gid), found, ctypes.byref(count)) >= 0:
            return tuple(sorted(set(found[: count.value])))
        room = max(2 * room, count.value)
        if room > MOST_GROUPS:
            raise OSError(errno.EOVERFLOW, f"{key[0]} is in more than {MOST_GROUPS} groups")


@records.define(eq=False)
class _Question:
    """One that is on its way, since when, and whether it has come back."""

    asked_s: float
    by_stranger: bool
    back: threading.Event


Key = tuple[Callable[..., object], object]


class UserDatabase:
    """Answers of the database, asked for beside the threads that must not wait.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = allocate_lock()
        self._known: dict[Key, tuple[object, float]] = {}
        self._asked: dict[Key, _Question] = {}
        self._impatient: set[int] = set()
        self._no_wait_until_s = 0.0
        self._wait_s = WAIT_S

    def be_impatient(self, wait_s: float = WAIT_S) -> None:
        """The calling thread waits no longer than that from now on; what a daemon always needs is asked before."""
        if wait_s != WAIT_S:
            self._impatient.add(get_ident())
        self._wait_s = wait_s
        for uid in {0, os.getuid()}:
            try:
                found = self.answer(_ask_number, uid)
                if isinstance(found, Entry):
                    self.answer(_ask_groups, (found.name, found.gid))
            except NotYet:
                pass
        self._impatient.add(get_ident())

    def answer(self, ask: Callable[..., object], key: object, *, by_stranger: bool = False) -> object:
        """What ``ask(key)`` returns, or has returned a while ago.

        Raises:
            NotYet: nothing so far.
        """
        if get_ident() not in self._impatient:
            found = ask(key)
            self._keep((ask, key), found)
            return found
        wanted = (ask, key)
        known = self._known.get(wanted)
        if known is not None and self._is_fresh(known):
            return known[0]
        question = self._question(wanted, by_stranger)
        if question is not None and self._clock() >= self._no_wait_until_s and not question.back.wait(self._wait_s):
            self._no_wait_until_s = self._clock() + RECOVER_S
        known = self._known.get(wanted)
        if known is None:
            raise NotYet(key)
        return known[0]

    def _is_fresh(self, known: tuple[object, float]) -> bool:
        return self._clock() - known[1] < (FRESH_S if known[0] is not None else FRESH_S / 10)

    def _question(self, wanted: Key, by_stranger: bool) -> _Question | None:
        """The question on its way; None: too many are."""
        import threading

        with self._lock:
            question = self._asked.get(wanted)
            if question is None:
                strangers = sum(each.by_stranger for each in self._asked.values())
                if len(self._asked) >= MOST_ASKED or (by_stranger and strangers >= MOST_ASKED_BY_STRANGERS):
                    return None
                question = self._asked[wanted] = _Question(self._clock(), by_stranger, threading.Event())
                threading.Thread(target=self._look_up, args=(wanted, question), name="users", daemon=True).start()
        return question

    def _look_up(self, wanted: Key, question: _Question) -> None:
        try:
            self._keep(wanted, wanted[0](wanted[1]))
        finally:
            with self._lock:
                del self._asked[wanted]
            self._no_wait_until_s = 0.0
            question.back.set()

    def _keep(self, wanted: Key, found: object) -> None:
        now_s = self._clock()
        with self._lock:
            self._known.pop(wanted, None)
            self._known[wanted] = (found, now_s)
            if isinstance(found, Entry):  # one answer is two: a daemon that was told the number need not ask the name
                self._known[_ask_name, found.name] = self._known[_ask_number, found.uid] = (found, now_s)
            while len(self._known) > MOST_KNOWN:
                del self._known[next(iter(self._known))]


DATABASE = UserDatabase()


def impatient(wait_s: float = WAIT_S) -> None:
    """The calling thread, a reactor's, waits for the user database no longer than that."""
    DATABASE.be_impatient(wait_s)


def named(name: str, *, by_stranger: bool = False) -> Entry | None:
    """The user of that name; None: there is none.

    Args:
        name: a login name.
        by_stranger: the name comes out of an expression that anybody may have written.

    Raises:
        NotYet: nobody has said so far.
    """
    found = DATABASE.answer(_ask_name, name, by_stranger=by_stranger)
    assert found is None or isinstance(found, Entry)
    return found


def numbered(uid: int) -> Entry | None:
    """The user with that number; None: it has no name.

    Raises:
        NotYet: nobody has said so far.
    """
    found = DATABASE.answer(_ask_number, uid)
    assert found is None or isinstance(found, Entry)
    return found


def groups_of(entry: Entry) -> tuple[int, ...]:
    """All groups of a user.

    Raises:
        NotYet: nobody has said so far.
    """
    found = DATABASE.answer(_ask_groups, (entry.name, entry.gid))
    assert isinstance(found, tuple)
    return found


def group_named(name: str) -> int | None:
    """The number of the group of that name; None: there is none.

    Raises:
        NotYet: nobody has said so far.
    """
    found = DATABASE.answer(_ask_group, name, by_stranger=True)
    assert found is None or isinstance(found, int)
    return found


def own_name() -> str:
    """The name of this process's user; its number when it has none, or nobody has said so far."""
    try:
        found = numbered(os.getuid())
    except NotYet:
        found = None
    return found.name if found is not None else str(os.getuid())
