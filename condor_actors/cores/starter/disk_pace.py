"""When the scratch directories of an execute machine's runs are looked through, and which runs stand still meanwhile.

Theory: to look a directory through costs a call of the kernel for each file; to ask how much room its file system has
costs one.  So the room is looked at every second, and a run's files only when the room has shrunk since by half of
what the run may still take, or when the last look is old.  Of the time, the looks take at most half while room
disappears, and else a fifth, or a fiftieth where no run is held to what it asked for.  Where hardly any room is left,
the runs that may have taken it stand still until they have been looked at: the others find room for what they write.

Some room stays free whatever runs may take (the floor).  When it is touched, all are looked at, and one has to make
room: the one that has taken most beyond its own, else most of all.  Runs that have taken next to nothing together are
left alone: others have filled the disk, and it would gain nothing.
"""

from __future__ import annotations

import math

import attrs

__all__ = ["DiskLook", "DiskPace"]

LOOK_S = 1.0
"""How often the room is looked at."""
REGULAR_S = 5.0
"""How old a look at a run's files gets while nothing is suspected, where looking costs little."""
PATIENT_S = 60.0
"""The same for a run that is not held to what it asked for."""
SHARE_IN_NEED, SHARE, PATIENT_SHARE = 2.0, 5.0, 50.0
"""A look that took so long is followed by the next one not before so many times as long have passed."""
LEAST_FALL_KIB = 1 << 10
"""What the machine itself writes meanwhile is no reason."""
LOW = 0.05
"""The part of a file system that is the last room."""
STANDS_AT_MOST_S = 30.0
LITTLE = 4
"""Runs that have taken less than such a part of the floor together are not what has filled a disk."""
GOES_S = 10.0
"""So long one that has to make room may take for it, before the next one has to."""


@attrs.define
class _Watched:
    """A run: its limit (0: none), its own part, what it used at the last look, how much room there was then or has been
    since."""

    limit_kib: int
    own_kib: int
    strict: bool
    looked_s: float
    used_kib: int = 0
    took_s: float = 0.0
    room_kib: int | None = None
    most_room_kib: int = 0
    stands_since_s: float | None = None

    def pressure(self, free_kib: int, is_low: bool) -> float:
        """How much of what the run may still take has gone since the last look; at least 1: it is to be looked at."""
        fallen_kib = (self.room_kib or free_kib) - free_kib
        if fallen_kib < LEAST_FALL_KIB:
            return 0.0
        left_kib = self.limit_kib - self.used_kib if self.limit_kib else free_kib
        return 2 * fallen_kib / max(1, min(left_kib, free_kib) if is_low else left_kib)

    @property
    def regular_s(self) -> float:
        """How old a look gets."""
        return max(REGULAR_S, SHARE * self.took_s) if self.strict else max(PATIENT_S, PATIENT_SHARE * self.took_s)

    def beyond_kib(self) -> tuple[int, int]:
        """By how much it has taken more than its own, and how much in all: who has most makes room first."""
        return max(0, self.used_kib - self.own_kib), self.used_kib


@attrs.frozen(kw_only=True)
class DiskLook:
    """What follows from a look at the room.

    Attributes:
        run_id: whose files are to be looked through now; empty: nobody's.
        stand, go_on: runs that are to stand still, and that go on.
        makes_room: a run that has to end, for the floor is touched; empty: none. used_kib: what it uses.
        again_s: when the room is to be looked at next, from now.
    """

    run_id: str = ""
    stand: tuple[str, ...] = ()
    go_on: tuple[str, ...] = ()
    makes_room: str = ""
    used_kib: int = 0
    again_s: float = LOOK_S


class DiskPace:
    """The looks at the files of the runs of one machine, by any clock that goes on."""

    def __init__(self) -> None:
        self._runs: dict[str, _Watched] = {}
        self._looking = ""
        self._over_s = -math.inf
        self._took_s = 0.0
        self._seen = (0, -math.inf)
        self._touched_s: float | None = None
        self._going: tuple[str, float] = ("", 0.0)

    def begin(self, run_id: str, limit_kib: int, now_s: float, *, own_kib: int = 0, strict: bool = True) -> None:
        """A program has begun that may use so much (0: any amount), ``own_kib`` of it its own (0: all); ``strict``: it
        is held to what it asked for."""
        seen_kib, seen_s = self._seen
        self._runs[run_id] = _Watched(limit_kib, own_kib or limit_kib, strict, now_s,
                                      most_room_kib=seen_kib if now_s - seen_s <= LOOK_S else 0)

    def end(self, run_id: str) -> None:
        """It is over."""
        self._runs.pop(run_id, None)
        if self._looking == run_id:
            self._looking = ""
        if not self._runs:
            self._touched_s = None

    @property
    def idle(self) -> bool:
        """Whether there is nothing to look at."""
        return not self._runs

    def had_room(self, run_id: str) -> bool:
        """Whether the file system has had room for all that is the run's own, while it ran."""
        run = self._runs.get(run_id)
        return run is not None and run.most_room_kib >= run.own_kib

    def look(self, free_kib: int, total_kib: int, now_s: float, *, floor_kib: int = 0) -> DiskLook:
        """What is to be done, with so much room left of so much, of which ``floor_kib`` stay free."""
        for run in self._runs.values():
            run.room_kib = max(run.room_kib or 0, free_kib)
            run.most_room_kib = max(run.most_room_kib, free_kib)
        self._seen = (free_kib, now_s)
        touched = free_kib < floor_kib
        self._touched_s = None if not touched else now_s if self._touched_s is None else self._touched_s
        is_low = touched or free_kib < LOW * total_kib
        suspects = {run_id: pressure for run_id, run in self._runs.items()
                    if (pressure := run.pressure(free_kib, is_low)) >= 1.0}
        stand = self._stand(suspects if is_low else (), now_s)
        go_on = self._go_on(now_s)
        run_id, wait_s = self._next(suspects, now_s)
        if run_id:
            self._looking = run_id
        makes_room = self._makes_room(floor_kib, now_s) if touched else ""
        return DiskLook(run_id=run_id, stand=stand, go_on=go_on, again_s=wait_s, makes_room=makes_room,
                        used_kib=self._runs[makes_room].used_kib if makes_room else 0)

    def looked(self, run_id: str, used_kib: int | None, took_s: float, free_kib: int, now_s: float) -> None:
        """A run's files were looked through (None: without a result); ``free_kib``: the room before that."""
        self._over_s, self._took_s = now_s, took_s
        if self._looking == run_id:
            self._looking = ""
        run = self._runs.get(run_id)
        if run is not None:
            run.looked_s, run.took_s, run.room_kib = now_s, took_s, free_kib
            run.used_kib = run.used_kib if used_kib is None else used_kib

    def _next(self, suspects: dict[str, float], now_s: float) -> tuple[str, float]:
        """Whose files are looked through now, and when the room is looked at again."""
        if self._looking or not self._runs:
            return "", LOOK_S
        in_need = bool(suspects) or self._touched_s is not None
        share = SHARE_IN_NEED if in_need else SHARE if any(run.strict for run in self._runs.values()) else PATIENT_SHARE
        waits_s = self._over_s + share * self._took_s - self._took_s - now_s
        unknown = [run_id for run_id, run in self._runs.items() if self._touched_s is not None and
                   run.looked_s < self._touched_s]
        if suspects:
            found = max(suspects, key=lambda each: (suspects[each], each))
        else:
            found = min(unknown or self._runs, key=lambda each: (self._runs[each].looked_s, each))
            if not unknown and now_s - self._runs[found].looked_s < self._runs[found].regular_s:
                return "", LOOK_S
        return (found, LOOK_S) if waits_s <= 0.0 else ("", min(LOOK_S, waits_s))

    def _makes_room(self, floor_kib: int, now_s: float) -> str:
        """The run that has to end, once all have been looked at since the floor is touched."""
        assert self._touched_s is not None
        going, since_s = self._going
        if going in self._runs and now_s - since_s < GOES_S:
            return ""
        runs = {run_id: run for run_id, run in self._runs.items() if run_id != going}
        if any(run.looked_s < self._touched_s and now_s - self._touched_s < STANDS_AT_MOST_S for run in runs.values()):
            return ""
        found = max(runs, key=lambda each: (runs[each].beyond_kib(), each), default="")
        if sum(run.used_kib for run in runs.values()) * LITTLE < floor_kib:
            return ""
        if found:
            self._going = (found, now_s)
            self._touched_s = now_s
        return found

    def _stand(self, suspects: dict[str, float] | tuple[()], now_s: float) -> tuple[str, ...]:
        found = tuple(each for each in suspects if self._runs[each].stands_since_s is None)
        for run_id in found:
            self._runs[run_id].stands_since_s = now_s
        return found

    def _go_on(self, now_s: float) -> tuple[str, ...]:
        """Those that were looked at since they stand still, or cannot be looked at."""
        found = tuple(run_id for run_id, run in self._runs.items() if run.stands_since_s is not None and (
            run.looked_s > run.stands_since_s or now_s - run.stands_since_s >= STANDS_AT_MOST_S))
        for run_id in found:
            run = self._runs[run_id]
            run.stands_since_s = None
            if run.looked_s <= now_s - STANDS_AT_MOST_S:
                run.looked_s, run.room_kib = now_s, None
        return found
