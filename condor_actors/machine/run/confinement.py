"""How ordinary jobs are shut in: which parts there are, which of them this machine allows, and what a launch is told.

======================  ==============================================================================================
``processes``           a pid namespace: a job sees and signals its own processes only, and none of them outlives it
``host_name``           a UTS namespace: nothing it does to names of the machine is seen by others
``system_calls``        a filter: no mounts, namespaces, modules, keys, tracing of others, and what led into kernels
``read_only``           folders of the system (JOB_READ_ONLY) cannot be written to, whatever their modes
``sandboxes``           other jobs' scratch directories are not there
======================  ==============================================================================================

JOB_CONFINEMENT names those that are wanted.  What the kernel does not allow is left out, once told in the log, and the
slot ads say what is in force (``JobConfinement``).

In a pool of an ordinary user a job has the rights of its starter host, and could end it or use its keys.  Where the
kernel lets users make namespaces, all parts work there too: in a namespace of users in which the job is itself, and
nobody else is anybody.

The pool's own folders are as little there as others' scratch directories, unless a job has the account of its owner: to
the daemons behind the sockets it would be a user of this machine, who submits jobs that are shut in by nothing.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path

from condor_actors.config import Config
from condor_actors.machine.native.programs import NativeProgramMissing, launcher_path
from condor_actors.machine.privilege.ownership import TOO_WIDE

__all__ = [
    "NAMESPACES", "PARTS", "allowed_isolation", "confinement_here", "folders_of_pool", "open_files_limit", "reachable",
    "shut_in", "stops_at_exec", "tasks_of", "wanted_parts",
]

PARTS = ("processes", "host_name", "system_calls", "read_only", "sandboxes")
NAMESPACES = {"processes": "pid", "host_name": "uts"}
OPEN_FILES, MOST_OPEN_FILES = 1024, 524_288
PROBE_S = 20
PLACES_S = 30.0
"""How long a folder of the configuration is taken to be where it was."""
NO_PROGRAM = "/condor-no-such-program"
WITHOUT_NAMESPACES = ("system_calls",)
PROBED = ("/etc", "/sys", "/usr", "/var")
"""Folders whose mounts a user may not be allowed to change."""
POOL_FOLDERS = ("RUN", "SPOOL", "LOG")
POOL_KEYS = ("HOST_KEY", "POOL_CA_KEY", "POOL_TOKENS", "SEC_TOKEN_POOL_SIGNING_KEY_FILE")


def _works(words: Sequence[str]) -> bool:
    """Whether the launcher gets as far as the program, which is not there."""
    try:
        launcher = launcher_path()
    except NativeProgramMissing:
        return False
    done = subprocess.run([launcher, *words, "--", NO_PROGRAM], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=PROBE_S, check=False)
    return done.stderr.startswith(b"exec ")


def allowed_isolation(*choices: tuple[str, ...], empty_root: bool = False) -> tuple[str, ...]:
    """The first choice of namespaces that the kernel lets this process make; empty: none.

    Args:
        empty_root: also a root directory of its own.
    """
    with tempfile.TemporaryDirectory(prefix="condor-probe-") as folder:
        os.mkdir(os.path.join(folder, "proc"))
        root = ("--root", folder) if empty_root else ()
        return next((names for names in choices if _works(("--isolate", ",".join(names), *root))), ())


@lru_cache(maxsize=1)
def _lacks_root() -> bool:
    """Whether this process never was root; asked first before one that was has dropped it."""
    return os.geteuid() != 0


@lru_cache(maxsize=1)
def _working_parts() -> tuple[str, ...]:
    """Those that work on this machine: asked once, with the rights that jobs are started with."""
    user = "user," if _lacks_root() else ""
    with tempfile.TemporaryDirectory(prefix="condor-probe-") as folder:
        shut = [word for place in (folder, *filter(os.path.isdir, PROBED)) for word in ("--read-only", place)]
        tries = {
            "processes": ("--isolate", f"{user}mount,pid,ipc"), "host_name": ("--isolate", f"{user}uts"),
            "system_calls": ("--filter", "job"), "read_only": ("--isolate", f"{user}mount", *shut),
            "sandboxes": ("--isolate", f"{user}mount", "--hide", folder),
        }
        return tuple(part for part in PARTS if _works(tries[part]))


def confinement_here(wanted: Collection[str]) -> tuple[str, ...]:
    """Those parts of ``wanted`` that work here."""
    return tuple(part for part in _working_parts() if part in wanted)


@lru_cache(maxsize=1)
def stops_at_exec() -> bool:
    """Whether the kernel lets a job be stopped at its first instruction: some let nobody trace."""
    return _works(("--stop-at-exec",))


def wanted_parts(config: Config) -> tuple[str, ...]:
    """JOB_CONFINEMENT, but for what takes namespaces where a user does not want any (USE_PID_NAMESPACES)."""
    wanted = config.list_of("JOB_CONFINEMENT")
    if _lacks_root() and not config.boolean("USE_PID_NAMESPACES"):
        return tuple(part for part in wanted if part in WITHOUT_NAMESPACES)
    return tuple(wanted)


def folders_of_pool(config: Config) -> tuple[str, ...]:
    """Where daemons keep what no job has to do with: sockets, queue, logs; in a user's own pool, keys that the user can
    read.  Folders of the system's, in which there is more than that, are none of them."""
    keys = POOL_KEYS if _lacks_root() else ()
    found = [*(str(config.path(name)) for name in POOL_FOLDERS),
             *(os.path.dirname(text) for name in keys if (text := config.text(name)))]
    return tuple(dict.fromkeys(folder for folder in found if Path(folder) not in TOO_WIDE))


def shut_in(words: Sequence[str], *, hidden: Collection[str], shown: str, needed: Collection[str],
            limits: Sequence[str]) -> list[str]:
    """The command line of a program that a daemon starts beside itself, with its own account, for what strangers say.

    It sees none of the daemon's folders and processes, as far as the kernel allows that; where not, it has at least the
    filter of system calls.

    Args:
        words: the program and its arguments.
        hidden: folders; a place of the system's, and one in which something is ``needed``, is left as it is.
        shown: the folder in one of them that is the program's own.
        limits: of its process, as the launcher knows them.

    Raises:
        NativeProgramMissing: there is no launcher.
    """
    user = () if os.geteuid() == 0 else ("user",)
    isolate = allowed_isolation((*user, "mount", "pid", "ipc", "uts"), (*user, "mount"))
    made = [launcher_path(), "--new-session", "--death-signal", str(int(signal.SIGKILL)), "--filter", "job"]
    for limit in limits:
        made += ["--rlimit", limit]
    if isolate:
        made += ["--isolate", ",".join(isolate), "--bind", shown, shown]
        for folder in reachable([each for each in hidden if Path(each) not in TOO_WIDE], needed):
            made += ["--hide", folder]
    return [*made, "--", *words]


@lru_cache(maxsize=1)
def open_files_limit() -> str:
    """How many files a job may have open: as many as programs are used to, and more if they ask."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = MOST_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_OPEN_FILES)
    return f"{min(OPEN_FILES, most)}:{most}"


def tasks_of(uid: int) -> int:
    """How many processes and threads of a user there are: a limit of the kernel's counts them all."""
    count = 0
    with os.scandir("/proc") as found:
        for entry in found:
            if entry.name.isdecimal():
                try:
                    if entry.stat().st_uid == uid:
                        count += len(os.listdir(f"/proc/{entry.name}/task"))
                except OSError:
                    continue
    return count


def reachable(folders: Collection[str], needed: Collection[str]) -> tuple[str, ...]:
    """Those of ``folders`` that are there and in which nothing lies that is ``needed`` as it is; without those that lie
    in another one of them."""
    now_s = time.monotonic()
    places = _places(tuple(folders), int(now_s / PLACES_S))
    seen = [path for each in set(needed) if (path := f"{_real(each, int(now_s))}/").startswith(places)]
    return _outermost(tuple([place for place in places if not any(path.startswith(place) for path in seen)]) if seen
                      else places)


@lru_cache(maxsize=32)
def _places(folders: tuple[str, ...], _when: int) -> tuple[str, ...]:
    """Where the administrator's folders are, each with a slash behind it; each job asks, and they hardly change."""
    places = dict.fromkeys(os.path.realpath(folder) for folder in folders)
    return tuple(f"{place}/" for place in places if place != "/" and os.path.isdir(place))


@lru_cache(maxsize=32)
def _outermost(places: tuple[str, ...]) -> tuple[str, ...]:
    """Those that lie in no other one, without the slash."""
    return tuple(place[:-1] for place in places
                 if not any(place != other and place.startswith(other) for other in places))


@lru_cache(maxsize=64)
def _real(path: str, _when: int) -> str:
    """The path without links: by one look of the kernel's where it can be opened.  A run asks twice, and the next one
    has its program in the same place; a user who can change a link there could have named another path as well."""
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return os.path.realpath(path)
    try:
        return os.readlink(f"/proc/self/fd/{opened}")
    except OSError:
        return os.path.realpath(path)
    finally:
        os.close(opened)
