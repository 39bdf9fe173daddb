"""What a run may do at home by chirp: the shadow's decision, whatever the execute machine says.

Theory: the execute machine speaks for the job and is nobody's friend.  So what is allowed follows from the job's ad as
it was submitted, which only its owner writes: ``WantIOProxy`` opens files, attributes and the event log,
``LimitDirectoryAccess`` says where, and without them there are delayed attributes only, whose names begin as the
administrator says.  How much there may be of anything is counted here as well.
"""

from __future__ import annotations

import attrs

from condor_actors.classads import ClassAd
from condor_actors.config.settings import setting
from condor_actors.cores.chirp_protocol import Bucket, ChirpError, is_attribute_name, may_be_delayed
from condor_actors.messages.run import ChirpCall

__all__ = ["FILE_VERBS", "MOST_WAITING", "ChirpLimits", "HomeRights"]

MOST_WAITING = 64
MOST_ATTRIBUTES = 100
MOST_ATTRIBUTE_BYTES = 64 * 1024
"""Of attributes that are set together."""
NAMED = frozenset({
    "open", "unlink", "rmdir", "rmall", "mkdir", "rename", "link", "symlink", "readlink", "getdir", "getlongdir",
    "stat", "lstat", "statfs", "access", "chmod", "chown", "lchown", "truncate", "utime",
})
HELD = frozenset({"close", "read", "write", "fsync", "fstat", "fstatfs", "fchown", "fchmod", "ftruncate"})
FILE_VERBS = NAMED | HELD
NUMBERS = {
    "open": 2, "mkdir": 1, "access": 1, "chmod": 1, "chown": 2, "lchown": 2, "truncate": 1, "utime": 2, "close": 1,
    "read": 3, "write": 2, "fsync": 1, "fstat": 1, "fstatfs": 1, "fchown": 3, "fchmod": 2, "ftruncate": 2,
}
"""How many each verb has; the others have none."""


@attrs.frozen(kw_only=True)
class ChirpLimits:
    """The administrator's part.

    Attributes:
        folders: LIMIT_DIRECTORY_ACCESS: jobs use files below these only; empty: as each job says.
        delayed: CHIRP_DELAYED_UPDATE_PREFIX, with ``*``; most_delayed: CHIRP_DELAYED_UPDATE_MAX_ATTRS.
    """

    folders: tuple[str, ...] = ()
    delayed: tuple[str, ...] = ("Chirp*",)
    most_delayed: int = setting("CHIRP_DELAYED_UPDATE_MAX_ATTRS")


class HomeRights:
    """Decides what one run may do, and counts.

    Args:
        job: its ad; limits: the administrator's.
        as_root: the shadow has root's rights, so no word of the job's owner opens more than the job's own folder.

    Attributes:
        folders: below which its files are; written_bytes: how much it has written there.
    """

    def __init__(self, job: ClassAd, limits: ChirpLimits, *, as_root: bool = False) -> None:
        self._limits = limits
        self.files = job.get_bool("WantIOProxy")
        self.updates = job.get_bool("WantRemoteUpdates", self.files)
        self._delayed = job.get_bool("WantDelayedUpdates", True)
        own = job.get_str("Iwd", "/nonexistent")
        said = tuple(word for part in job.get_str("LimitDirectoryAccess").split(",") if (word := part.strip()))
        self.folders = limits.folders or ((own,) if as_root else (own, *said))
        most_mb = job.get_int("MaxTransferOutputMB", -1)
        self._most_bytes = most_mb << 20 if most_mb >= 0 else None
        self.written_bytes = 0
        self._changes = Bucket(per_s=10.0, burst=200.0)
        self._events = Bucket(per_s=5.0, burst=100.0)
        self._names: set[str] = set()
        self._delayed_names: set[str] = set()

    def refusal(self, call: ChirpCall, now_s: float) -> ChirpError | None:
        """Why a call is not done; None: it is."""
        if call.verb in FILE_VERBS:
            return self._of_files(call)
        if call.numbers:
            return ChirpError.INVALID_REQUEST
        if call.verb == "get_job_attr":
            return None if self.updates else ChirpError.NOT_AUTHORIZED
        if call.verb == "ulog":
            if not self.updates:
                return ChirpError.NOT_AUTHORIZED
            return None if self._events.takes(now_s) else ChirpError.BUSY
        return None if call.verb in ("set_job_attr", "set_delayed") else ChirpError.INVALID_REQUEST

    def _of_files(self, call: ChirpCall) -> ChirpError | None:
        if not self.files:
            return ChirpError.NOT_AUTHORIZED
        if len(call.numbers) != NUMBERS.get(call.verb, 0) or not call.path:
            return ChirpError.INVALID_REQUEST
        if call.verb in ("truncate", "ftruncate") and self._most_bytes is not None and (
                call.numbers[-1] > self._most_bytes):
            return ChirpError.NO_SPACE
        if call.verb == "write":
            self.written_bytes += len(call.data)
            if self._most_bytes is not None and self.written_bytes > self._most_bytes:
                return ChirpError.NO_SPACE
        return None

    def attributes_refusal(self, names: tuple[str, ...], size_bytes: int, now_s: float, *,
                           delayed: bool) -> ChirpError | None:
        """Why attributes are not set; None: they are, as far as the schedd agrees."""
        if not names or not all(is_attribute_name(name) for name in names):
            return ChirpError.INVALID_REQUEST
        if not (self._delayed if delayed else self.updates):
            return ChirpError.NOT_AUTHORIZED
        keys = {name.lower() for name in names}
        if delayed:
            if not all(may_be_delayed(name, self._limits.delayed) for name in names):
                return ChirpError.NOT_AUTHORIZED
            if len(self._delayed_names | keys) > self._limits.most_delayed:
                return ChirpError.TOO_BIG
        if len(self._names | keys) > MOST_ATTRIBUTES + self._limits.most_delayed or size_bytes > MOST_ATTRIBUTE_BYTES:
            return ChirpError.TOO_BIG
        if not self._changes.takes(now_s):
            return ChirpError.BUSY
        self._names |= keys
        if delayed:
            self._delayed_names |= keys
        return None
