"""Makes the cases of programs/conformance.c from the table of system calls."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

NATIVE = Path(__file__).parents[2] / "native"

# What the runtime does itself, as the table would describe it.
EMULATED = {
    "readv": "fd in i", "writev": "fd in i", "preadv": "fd in i i i", "pwritev": "fd in i i i",
    "preadv2": "fd in i i i i", "pwritev2": "fd in i i i i", "sendto": "fd in i i in i", "recvfrom": "fd out i i",
    "poll": "in i i", "ppoll": "in i in", "select": "i in in in in", "pselect6": "i in in in in",
    "mmap": "i i i i fd i", "munmap": "i i", "mremap": "i i i i i", "msync": "i i i", "mlock": "i i",
    "rt_sigaction": "i in out i", "rt_sigprocmask": "i in out i", "sigaltstack": "i out", "rt_sigpending": "out i",
    "nanosleep": "in out", "clock_nanosleep": "i i in out", "clock_gettime": "i out", "getitimer": "i out",
    "timer_create": "i in out", "timer_settime": "i i in out", "timer_gettime": "i out", "timer_delete": "i",
    "timer_getoverrun": "i", "getrlimit": "i out", "prlimit64": "i i in out", "setrlimit": "i in",
    "getgroups": "i out", "getresuid": "out out out", "getresgid": "out out out", "capget": "in out",
    "getpgid": "i", "getsid": "i", "personality": "i", "prctl": "i i", "arch_prctl": "i out",
    "sched_getparam": "i out", "sched_getscheduler": "i", "sched_get_priority_max": "i",
    "sched_get_priority_min": "i", "wait4": "i out i out", "waitid": "i i out i out", "tgkill": "i i i",
    "epoll_wait": "fd out i i", "epoll_pwait": "fd out i i", "execve": "path in in", "madvise": "i i i",
    "getrandom": "out i i", "clock_getres": "i out", "getrusage": "i out", "sysinfo": "out", "times": "out",
    "gettimeofday": "out out", "mincore": "i i out", "mprotect": "i i i", "getcpu": "out out",
}  # fmt: skip

# Never made up: they end, stop or move the program, wait forever, or reach beyond it.
LEFT_OUT = {
    "sync": "the whole machine's", "syncfs": "the whole machine's", "vhangup": "a terminal's",
    "uname": "the same words in another test", "select": "waits", "pause": "waits", "pselect6": "waits",
    "ppoll": "waits when it is given no time", "poll": "waits when it is given no time", "umask": "has no errors",
    "sendfile": "the position is another test's matter", "chdir": "would change the other cases",
    "fchdir": "would change the other cases", "dup2": "any number is a place", "dup3": "any number is a place",
    "close_range": "closes what the cases need", "mremap": "moves what the cases need",
    "munmap": "any number may be a place", "mmap": "places differ", "mprotect": "any number may be a place",
    "execve": "would leave", "epoll_wait": "waits", "epoll_pwait": "waits", "wait4": "waits",
    "tgkill": "might hit", "timer_settime": "a signal later", "timer_create": "a signal later",
    "setrlimit": "would change the other cases", "prlimit64": "limits are another test's matter",
    "prctl": "the runtime's own list", "arch_prctl": "would lose the thread pointer", "capget": "made up",
    "nanosleep": "waits", "clock_nanosleep": "waits", "personality": "would change the other cases",
    "getrusage": "numbers differ", "sigaltstack": "would change the other cases", "times": "numbers differ",
    "ioctl": "a list of its own", "fcntl": "a list of its own", "getrandom": "numbers differ",
    "open": "the number of a descriptor", "sysinfo": "numbers differ", "getsid": "other processes",
    "getpgid": "other processes", "rt_sigaction": "would change the other cases", "madvise": "may be a place",
    "rt_sigprocmask": "would change the other cases", "time": "numbers differ", "mincore": "may be a place",
    "flock": "waits", "mlock": "limits differ", "waitid": "waits", "msync": "any number may be a place",
    "clock_gettime": "clocks that do not exist are another matter", "getpriority": "-", "splice": "refused",
    "setsockopt": "a list of its own", "getsockopt": "a list of its own", "getsockname": "names differ",
    **dict.fromkeys(("semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv", "msgctl",
                     "shmget", "shmat", "shmctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive",
                     "mq_notify", "mq_getsetattr"),
                    "a list of its own, in programs/*queues.c and segments.c: what is made has to be removed"),
    "memfd_create": "names differ", "sched_getparam": "other processes", "sched_getscheduler": "other processes",
}  # fmt: skip


def table() -> ModuleType:
    """Return the module that reads native/syscalls.tbl."""
    spec = importlib.util.spec_from_file_location("native_generate", NATIVE / "generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def kind(word: str) -> str:
    """Return the name in conformance.c for the table's WORD."""
    return {"i": "NUMBER", "fd": "FD", "at": "AT", "path": "PATH"}.get(word) or (
        "IN" if word.startswith("in") else "OUT"
    )


def cases() -> str:
    """Return the rows of conformance_cases.h: all calls whose arguments are known and that may be tried."""
    calls = table().parse(NATIVE / "syscalls.tbl")
    by_name = {call.name: call for call in calls}
    rows = []
    for call in calls:
        words: list[str] = list(call.arguments) if call.how == "remote" else EMULATED.get(call.name, "").split()
        if call.how == "as":
            target = by_name[call.target].arguments
            places = {int(word[1:]): target[i] for i, word in enumerate(call.arguments) if word.startswith("$")}
            words = [places[i] for i in sorted(places)]
        if not words or call.name in LEFT_OUT:
            continue
        kinds = ", ".join(kind(word) for word in words)
        rows.append(f'    {{"{call.name}", {call.number}, {{{kinds}}}}},')
    return "\n".join(rows) + "\n"


def refused() -> dict[str, tuple[int, str]]:
    """Return number and errno's name of every call that the table refuses, by name."""
    calls = table().parse(NATIVE / "syscalls.tbl")
    return {call.name: (call.number, call.target) for call in calls if call.how == "refused"}
