"""Says beforehand whether a program can run in the standard universe and what of it would be refused.

The verdict comes from files alone: the program's format, its interpreter, and the C library's functions that it and the
libraries that it names import, compared with the functions whose system calls the runtime refuses.  The libraries are
looked for where the dynamic linker would.  What a program loads while it runs, and calls that it makes without the C
library, are not seen.
"""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Iterator, Mapping, Sequence

import attrs

__all__ = ["REFUSED", "Verdict", "examine"]

REFUSED = {
    "connect": "a process that is not its own (ENETUNREACH, ECONNREFUSED)",
    **dict.fromkeys(("ptrace", "process_vm_readv"), "looking into other processes (EPERM)"),
    "fanotify_init": "watching whole file systems (EPERM)",
    "io_setup": "asynchronous kernel I/O (ENOSYS)",
    "io_uring_setup": "asynchronous kernel I/O (ENOSYS)",
    **dict.fromkeys(("mount", "chroot", "unshare", "setns", "sethostname"), "administration (EPERM)"),
    "userfaultfd": "handling its own page faults (EPERM)",
    "pidfd_getfd": "descriptors of other processes (EPERM)",
    **dict.fromkeys(("pidfd_spawn", "pidfd_spawnp"), "a process with its descriptor by clone3 (ENOSYS)"),
    "execveat": "programs by their descriptor (ENOSYS)",
}
"""Functions of the C library, with what they are for and the errno that the program gets."""

_STARTS = frozenset({"execl", "execle", "execlp", "execv", "execve", "execvp", "fork", "popen", "posix_spawn",
                     "posix_spawnp", "system", "vfork"})
"""Calls of a program that starts others."""
_WITH_CHILDREN = "it starts other programs: a checkpoint covers them all; what they would be refused is not looked at"
SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh", "ksh93", "mksh", "csh", "tcsh", "fish"})
_DYNSYM, _DYNAMIC = 11, 6
_NEEDED, _RPATH, _RUNPATH = 1, 15, 29
_CACHE = "/etc/ld.so.cache"
_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
_CACHE_ENTRY = struct.Struct("<iIIIQ")
_USUAL = ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib")
_C_LIBRARY = ("libc.so.", "ld-linux-x86-64.so.", "libpthread.so.", "libresolv.so.", "libnss_", "libnsl.so.")
MOST_FILES = 1000
MOST_BYTES = 256 << 20


@attrs.frozen
class Verdict:
    """What became of the examination.

    Attributes:
        runs: whether it can be started; summary: that in words.
        remarks: what it would be refused, by its own imports.
        libraries: what other libraries that it names would be refused, should it use that part of them.
    """

    runs: bool
    summary: str
    remarks: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()


@attrs.frozen
class _Elf:
    """What a file takes from elsewhere: names of functions, of libraries, and the folders where it looks for these."""

    imports: frozenset[str]
    needed: tuple[str, ...]
    folders: tuple[str, ...]


def _name(data: bytes, start: int) -> str:
    return os.fsdecode(data[start : data.index(b"\0", start)])


def _parse(path: str, data: bytes) -> _Elf:
    """What the ELF file at PATH takes from elsewhere.

    Raises struct.error or ValueError when its tables make no sense.
    """
    (table_at,) = struct.unpack_from("<Q", data, 40)
    entry_size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table_at + i * entry_size) for i in range(count)]
    imports, needed, folders = set(), [], []
    for section in sections:
        if section[1] not in (_DYNSYM, _DYNAMIC) or section[6] >= len(sections):
            continue
        strings, end = sections[section[6]][4], min(section[4] + section[5], len(data))
        if section[1] == _DYNSYM:
            for at in range(section[4], end - 23, 24):
                name, _info, _other, index = struct.unpack_from("<IBBH", data, at)
                if index == 0 and name:
                    imports.add(_name(data, strings + name))
            continue
        for at in range(section[4], end - 15, 16):
            tag, value = struct.unpack_from("<QQ", data, at)
            if tag == _NEEDED:
                needed.append(_name(data, strings + value))
            elif tag in (_RPATH, _RUNPATH):
                own = os.path.dirname(os.path.realpath(path))
                folders += [each.replace("$ORIGIN", own).replace("${ORIGIN}", own)
                            for each in _name(data, strings + value).split(":") if each]
    return _Elf(frozenset(imports), tuple(needed), tuple(folders))


def _cached_libraries() -> Mapping[str, str]:
    """What the dynamic linker's cache says: name to path; nothing where there is none."""
    try:
        with open(_CACHE, "rb") as file:
            data = file.read(64 << 20)
        start = data.index(_CACHE_MAGIC)  # an older format may come first
        (count,) = struct.unpack_from("<I", data, start + 20)
        found: dict[str, str] = {}
        for number in range(min(count, len(data) // _CACHE_ENTRY.size)):
            at = start + 48 + number * _CACHE_ENTRY.size
            flags, key, value, _version, _levels = _CACHE_ENTRY.unpack_from(data, at)
            if flags == 0x303:  # of the C library, for x86-64
                found.setdefault(_name(data, start + key), _name(data, start + value))
        return found
    except (OSError, ValueError, struct.error):
        return {}


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(MOST_BYTES)


def _is_program(data: bytes) -> bool:
    return data[:4] == b"\x7fELF" and len(data) >= 64 and data[4] == 2 and struct.unpack_from("<HH", data, 16)[1] == 62


def _libraries(path: str, program: _Elf) -> Iterator[tuple[str, _Elf]]:
    """Yield each library that PROGRAM, at PATH, and its libraries name: where it is, and what it takes from elsewhere.

    The C library's own are left out: what they call is what the others ask of them.
    """
    cached = _cached_libraries()
    environment = tuple(each for each in os.environ.get("LD_LIBRARY_PATH", "").split(":") if each)
    waiting = [(name, program.folders) for name in program.needed]
    seen: set[str] = set()
    while waiting and len(seen) < MOST_FILES:
        name, folders = waiting.pop()
        if name in seen or name.startswith(_C_LIBRARY):
            continue
        seen.add(name)
        for place in _places(name, (*environment, *folders), cached):
            try:
                data = _read(place)
                library = _parse(place, data) if _is_program(data) else None
            except (OSError, struct.error, ValueError):
                continue
            if library is not None:
                yield place, library
                waiting += [(each, (*library.folders, *folders)) for each in library.needed]
                break


def _places(name: str, folders: Sequence[str], cached: Mapping[str, str]) -> Iterator[str]:
    if "/" in name:
        yield name
        return
    yield from (os.path.join(folder, name) for folder in folders)
    if name in cached:
        yield cached[name]
    yield from (os.path.join(folder, name) for folder in _USUAL)


def _examine_elf(path: str, data: bytes) -> Verdict:
    kind = struct.unpack_from("<H", data, 16)[0]
    if not _is_program(data) or kind not in (2, 3):
        return Verdict(False, "cannot run: not a program for 64-bit x86")
    try:
        own = _parse(path, data)
    except (struct.error, ValueError):
        return Verdict(True, "can run; what it calls cannot be seen")
    loads = "dlopen" in own.imports
    quiet: list[str] = []
    remarks = [f"{name}: {REFUSED[name]}" for name in sorted(own.imports & REFUSED.keys())]
    for place, library in sorted(_libraries(path, own)):
        names = sorted(library.imports & REFUSED.keys())
        loads = loads or "dlopen" in library.imports
        if names:
            quiet.append(f"{os.path.basename(place)}: {', '.join(names)}: {_whys(names)}")
    if own.imports & _STARTS:
        quiet.insert(0, _WITH_CHILDREN)
    summary = "can run; these of its calls would be refused, should it make them" if remarks else "can run"
    summary += "; what it loads while it runs is not seen" if loads else ""
    return Verdict(True, summary, tuple(remarks), tuple(quiet))


def _whys(names: Sequence[str]) -> str:
    return "; ".join(dict.fromkeys(REFUSED[name] for name in names))


def _interpreter(data: bytes) -> str | None:
    """Who a script is for; None: nobody."""
    words = [os.fsdecode(word) for word in data[2:].split(b"\n", 1)[0].split()]
    if words and os.path.basename(words[0]) == "env":
        named = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        return (shutil.which(named[0]) or named[0]) if named else words[0]
    return words[0] if words else None


def examine(program: str, depth: int = 0) -> Verdict:
    """Return the verdict on PROGRAM, a path or a name to be found in PATH, which so many scripts have named."""
    path = program if "/" in program else shutil.which(program)
    if path is None or not os.path.isfile(path):
        return Verdict(False, "cannot run: there is no such file")
    try:
        data = _read(path)
    except OSError as error:
        return Verdict(False, f"cannot run: {error.strerror}")
    if data.startswith(b"#!"):
        found = _interpreter(data)
        if found is None:
            return Verdict(False, "cannot run: its first line names no interpreter")
        if depth == 4:  # as in the kernel
            return Verdict(False, "cannot run: too many scripts name each other as interpreters")
        inner = examine(found, depth + 1)
        remarks = inner.remarks
        if os.path.basename(found) in SHELLS:
            remarks = tuple(dict.fromkeys((*remarks, _WITH_CHILDREN)))
        return Verdict(inner.runs, f"a script of {found}, which {inner.summary}", remarks, inner.libraries)
    if not data.startswith(b"\x7fELF") or len(data) < 64:
        return Verdict(False, "cannot run: neither a program nor a script")
    return _examine_elf(path, data)
