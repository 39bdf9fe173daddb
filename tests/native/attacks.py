"""Attacks on the runtime's filter, made from its own rules: the tables of native/ say what must become of each.

An attack is a word of ``programs/hostile.c``; its end is ``signal 31`` where the filter ends the process, or the errno
that the table promises.
"""

from __future__ import annotations

import errno
import functools
import operator
import re
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

from condor_actors.machine.native.programs import runtime_path
from native.generate import parse

NATIVE = Path(__file__).parents[2] / "native"
DIES = "signal 31"
GOOD = "errno 200"
SENDERS = {"tgkill", "rt_tgsigqueueinfo", "kill", "rt_sigqueueinfo"}
GROUPS = {"setpgid"}
"""Of a family: the kernel lets a process put itself and its children into groups, and nobody else."""
ALL_BITS = [1 << bit for bit in range(32)]
OTHER_REQUESTS = [0x5401, 0x540E, 0x5412, 0x541B, 0x8933, 0xC0606611]
"""Of ioctl: reading the terminal's state, taking it, typing into it, and others."""


NUMBERS = ("FAULT_REGISTER", "DIRTY_SCAN", "PLAIN_MAP", "MAP_ANONYMOUS", "THREAD_FLAGS", "FORK_FLAGS", "SIBLING_FLAGS")
ENUMERATED = re.compile(r"\b([A-Z]\w+) = ([0-9a-fx]+)\b")


@functools.cache
def constants() -> dict[str, int]:
    """Return the numbers that the filter's table names: the protocol's, and what the preprocessor knows."""
    found = {word: int(value, 0) for word, value in ENUMERATED.findall((NATIVE / "protocol.h").read_text())}
    table = (NATIVE / "runtime" / "filter.c").read_text()
    names = {*NUMBERS, *re.findall(r"\b(?:HAS_ONLY|HAS_ALL|IS\w*), \d, ([A-Z]\w+)", table)} - set(found)
    source = f'#include "{NATIVE}/runtime/filter.c"\n' + "".join(f"VALUE_OF_{name} {name}\n" for name in sorted(names))
    command = ["gcc", "-E", "-P", "-ffreestanding", f"-I{NATIVE}", f"-I{NATIVE / 'build'}", "-x", "c", "-"]
    text = subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout
    for name, value in re.findall(r"VALUE_OF_(\w+) (.*)", text):
        parts = re.sub(r"\b(0x[0-9a-f]+|\d+)[ul]*\b", r"\1", re.sub(r"[()]", " ", value)).split("|")
        found[name] = functools.reduce(operator.or_, (int(part.strip(), 0) for part in parts))
    return found


def permissions() -> list[tuple[str, list[tuple[str, int, int]]]]:
    """Return the filter's table: names of calls, each with its conditions (test, argument, value)."""
    text = (NATIVE / "runtime" / "filter.c").read_text()
    table = text[text.index("permissions[] = {") : text.index("/* Each test falls through")]
    table = re.sub(r"#ifdef.*?#endif|/\*.*?\*/", "", table, flags=re.DOTALL)
    numbers = constants()
    rows = []
    for name, conditions in re.findall(r"\{__NR_(\w+), \{(.*)\}\},?\n", table):
        tests = re.findall(r"\{([A-Z_]+), (\d), (\w+)\}", conditions)
        rows.append((name, [(test, int(at), numbers[v] if v in numbers else int(v, 0)) for test, at, v in tests]))
    return rows


def holding(test: str, value: int) -> int:
    """Return an argument for which TEST holds."""
    if test == "HAS_ONLY":
        return 0
    return constants()["DIRTY_SCAN"] if test == "IS_DIRTY_SCAN" else value


def violating(test: str, value: int, held: int) -> Iterator[int]:
    """Yield arguments for which TEST does not hold, near those for which it does."""
    if test == "IS":
        yield from {(value ^ bit) & 0xFFFFFFFF for bit in (1, 2, 16, 0x80000000)}
        if value == 0:
            yield 1 << 32
    elif test == "IS_OR_FORK":
        allowed = {value, constants()["FORK_FLAGS"], constants()["SIBLING_FLAGS"]}
        yield from {good ^ bit for good in allowed for bit in ALL_BITS} - allowed
    elif test == "HAS_ONLY":
        yield from (held | bit for bit in ALL_BITS if not bit & value)
    elif test == "HAS_ALL":
        yield from (held & ~bit for bit in ALL_BITS if bit & value)
    else:
        yield from OTHER_REQUESTS


def near_misses(jump: str) -> Iterator[str]:
    """Yield the runtime's own calls, each with one condition on its arguments broken."""
    numbers = {call.name: call.number for call in parse(NATIVE / "syscalls.tbl")}
    for name, conditions in permissions():
        for test, at, value in conditions:
            arguments = [0x77, 0x11, 0x7FFFFFFF, 0x1, 0x12345, 0x33]
            for place in {place for _, place, _ in conditions}:
                arguments[place] = max(holding(other, wanted) for other, p, wanted in conditions if p == place)
            for wrong in violating(test, value, arguments[at]):
                tried = [*arguments]
                tried[at] = wrong
                yield ":".join([jump, f"{numbers[name]:x}", *(f"{a:x}" for a in tried)])


def executable_part() -> tuple[int, bytes]:
    """Return where the runtime's text is, and its bytes."""
    data = Path(runtime_path()).read_bytes()
    at, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    for i in range(count):
        kind, flags, offset, address, _, size = struct.unpack_from("<IIQQQQ", data, at + 56 * i)
        if kind == 1 and flags & 1:
            return address, data[offset : offset + size]
    raise AssertionError("the runtime has no text")


def attacks() -> dict[str, str]:
    """Return every attack with the end it must take."""
    table = parse(NATIVE / "syscalls.tbl")
    numbers = {call.name: call.number for call in table}
    start, text = executable_part()
    end = start + len(text)
    jumps = [f"j{start + at:x}" for at in range(len(text) - 1) if text[at : at + 2] == b"\x0f\x05"]
    permitted = {name for name, _ in permissions()} | SENDERS | GROUPS
    expected: dict[str, str] = {}
    for call in table:  # from the runtime's text: what it may not do, and what it may with other arguments
        if call.how != "local" and call.name not in permitted:
            expected[f"{jumps[0]}:{call.number:x}"] = DIES
    expected |= dict.fromkeys(near_misses(jumps[-1]), DIES)
    for pid in ("ffffffff", "fffffffe", "80000000"):
        expected[f"{jumps[0]}:{numbers['kill']:x}:{pid}:9"] = DIES
    for jump in jumps:  # wherever those two bytes are, also within other instructions
        expected[f"{jump}:{numbers['socket']:x}:2:1:0"] = DIES
    expected[f"w{start:x}:{numbers['execve']:x}:0:0:0"] = DIES  # written over the text: no more than a jump to it
    for call in table:  # from the program, and from places that are not the runtime's text: what the table says
        if call.how == "refused":
            wanted = f"errno {getattr(errno, call.target)}"
            expected[f"plain:{call.number:x}"] = wanted
    for place in ("w0", f"w{end + 64:x}", f"w{end - 2:x}"):  # a page of its own, the constants, the text's last bytes
        expected[f"{place}:{numbers['connect']:x}:3e7:0:0"] = f"errno {errno.EBADF}"
        expected[f"{place}:{numbers['socket']:x}:10:1:0"] = f"errno {errno.EAFNOSUPPORT}"
    for number in (0x1FF, 0x200, 0x3E8, 0xFFFF, 0x3FFFFFFF):
        expected[f"plain:{number:x}"] = f"errno {errno.ENOSYS}"
    for number in (1, 3, 4, 5, 11, 20, 37, 102, 120):
        expected[f"int80:{number:x}:1:1:1"] = DIES
    for number in (0, 1, 39, 56, 57, 59, 62, 512, 520, 536):
        expected[f"x32:{number:x}:1"] = DIES
    return expected
