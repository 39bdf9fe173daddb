"""Reads native/ for what guards what: see ``native/guards.h``.

Theory: C of one house style, so a scan by braces finds every definition; what it finds is compared with the compiler's
writable symbols, so nothing hides from it.  Of a function it asks where, in the order of the text, a lock is taken for
the first time and given back for the last; clang, where there is one, follows each path.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

NATIVE = Path(__file__).parents[2] / "native"

ALONE = "one_thread"
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"' + r"|'(?:[^'\\\n]|\\.)+'")
NOTE = re.compile(r'\b(GUARDED_BY)\((\w+)\)|\b(ATOMIC)\b|\b(UNGUARDED)\(\s*"([^"]*)"\s*\)')
NEEDS = re.compile(r"\b(?:REQUIRES|RELEASE)\(([^)]*)\)")
PASSES = {"takes": re.compile(r"(?<!TRY_)\bACQUIRE\(([^)]*)\)"), "gives": re.compile(r"\bRELEASE\(([^)]*)\)")}
ATTRIBUTES = re.compile(
    r"\b(?:REQUIRES|ACQUIRE|RELEASE|TRY_ACQUIRE|ASSERT_HELD|CAPABILITY)\([^)]*\)"
    r"|__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)"
)
LOCK_TYPE = re.compile(r"\b(?:struct lock|pthread_mutex_t)\s+(?!\*)")
TAKES = r"\b(?:try_lock|lock|pthread_mutex_lock)\(&{0}\)"
GIVES = r"\b(?:unlock|pthread_mutex_unlock|forget_lock)\(&{0}\)"


@dataclass(frozen=True)
class Variable:
    """A definition of something that outlives a call and can change."""

    file: str
    name: str
    is_lock: bool
    is_static: bool
    is_volatile: bool
    notes: tuple[tuple[str, str], ...]  # (GUARDED_BY, lock), (ATOMIC, ""), (UNGUARDED, why)
    function: str = ""  # of one that is local to it


@dataclass
class Function:
    """A function with a body."""

    file: str
    name: str
    head: str
    body: str


@dataclass
class Program:
    """All sources of one program."""

    variables: list[Variable] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    required: dict[tuple[str, str], set[str]] = field(default_factory=dict)  # (file or "", function): locks
    takes: dict[str, set[str]] = field(default_factory=dict)  # lock: functions that return with it
    gives: dict[str, set[str]] = field(default_factory=dict)  # lock: functions that return without it
    includes: dict[str, set[str]] = field(default_factory=dict)
    declared: dict[str, str] = field(default_factory=dict)  # name of an extern variable: the header


def readable(source: str) -> str:
    """Return SOURCE without comments and directives, and without braces or semicolons in its strings."""
    source = COMMENT.sub(" ", source)
    source = DIRECTIVE.sub("", source)
    return TEXT.sub(lambda found: re.sub(r"[{};(),=]", "_", found[0]), source)


def closing(text: str, at: int) -> int:
    """Return the place behind the brace that closes the one AT."""
    depth = 0
    for place in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    raise ValueError("a brace is not closed")


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield (declaration, "") and (head, body) for what stands in TEXT outside of any function."""
    at, begin, kept = 0, 0, ""
    while at < len(text):
        if text[at] == ";":
            yield (kept + text[begin:at]).strip(), ""
            at, kept = at + 1, ""
            begin = at
        elif text[at] == "{":
            head, end = (kept + text[begin:at]).strip(), closing(text, at)
            bare = ATTRIBUTES.sub("", NOTE.sub("", head)).strip()
            if bare.endswith(")") and "=" not in bare:
                yield head, text[at:end]
                kept = ""
            else:
                kept = head + " {} "
            at = begin = end
        else:
            at += 1


def declarators(declaration: str) -> list[str]:
    """Return the parts of DECLARATION between its commas, without initialisers."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(declaration + ","):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(declaration[start:at].split("=")[0])
            start = at + 1
    return parts


def variables_of(file: str, declaration: str, function: str = "") -> list[Variable]:
    """Return what DECLARATION defines that can change."""
    if re.match(r"\s*(typedef|extern|_Static_assert|__asm__)\b", declaration):
        return []
    plain = NOTE.sub("", ATTRIBUTES.sub("", declaration))
    if re.fullmatch(r"\s*(static\s+)?(struct|enum|union)\s*\w*\s*(\{\})?\s*", plain.split("=")[0]):
        return []
    if "(" in plain.split("=")[0]:
        return []
    found = []
    for part in declarators(declaration):
        bare = NOTE.sub("", ATTRIBUTES.sub("", part)).strip()
        name = re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$", bare)
        if not name or (bare in ("", name[1]) and not found):
            continue
        first = not found and "const" in bare.split("*")[-1] if "*" in bare else "const" in plain.split("*")[0]
        if first:
            continue
        notes = tuple((n[0] or n[2] or n[3], n[1] or n[4]) for n in NOTE.findall(part))
        found.append(
            Variable(
                file,
                name[1],
                bool(LOCK_TYPE.search(plain)),
                plain.lstrip().startswith("static") or bool(function),
                "volatile" in plain or "atomic_" in plain,
                notes,
                function,
            )
        )
    return found


def read(sources: dict[str, str]) -> Program:
    """Return what SOURCES, by name, define and require."""
    program = Program()
    for file, source in sources.items():
        program.includes[file] = {Path(name).name for name in re.findall(r'#include "([^"]+)"', source)}
        for declaration, body in pieces(readable(source)):
            named = re.search(r"(\w+)\s*\((?!\()", ATTRIBUTES.sub("", NOTE.sub("", declaration)).split("=")[0])
            if named:
                where = file if re.search(r"\bstatic\b", declaration) else ""
                program.required.setdefault((where, named[1]), set()).update(named_locks(NEEDS, declaration))
                for lock in named_locks(PASSES["takes"], declaration):
                    program.takes.setdefault(lock, set()).add(named[1])
                for lock in named_locks(PASSES["gives"], declaration):
                    program.gives.setdefault(lock, set()).add(named[1])
            if named and body:
                program.functions.append(Function(file, named[1], declaration, TEXT.sub("0", body)))
                for local in re.findall(r"(?<![\w])static\s[^;]*", flattened(body)):
                    program.variables += variables_of(file, local, named[1])
            elif not named:
                program.variables += variables_of(file, declaration)
                extern = re.match(r"extern\b", declaration)
                for part in declarators(declaration) if extern else ():
                    name = re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$", NOTE.sub("", part).strip())
                    if name:
                        program.declared[name[1]] = file
    return program


def named_locks(pattern: re.Pattern[str], declaration: str) -> set[str]:
    """Return the locks, not those that are someone's members, that PATTERN finds in DECLARATION."""
    names = {name.strip() for group in pattern.findall(declaration) for name in group.split(",")}
    return {name for name in names if name.isidentifier()}


def flattened(body: str) -> str:
    """Return BODY with empty braces for initialisers and structures, so that semicolons end statements."""
    while True:
        fresh = re.sub(r"(=\s*|\bstruct\s*\w*\s*)\{[^{}]*\}", r"\1", body)
        if fresh == body:
            return body
        body = fresh


def sees(program: Program, file: str, header: str) -> bool:
    """Return whether FILE includes HEADER, directly or not."""
    seen, left = set(), [file]
    while left:
        one = left.pop()
        if one == header:
            return True
        if one not in seen:
            seen.add(one)
            left += program.includes.get(one, ())
    return False


def calls(names: set[str]) -> str:
    """Return a pattern for calls of NAMES."""
    return "".join(rf"|\b{name}\(" for name in names)


def spans(program: Program, function: Function, lock: str, required: set[str]) -> tuple[int, int]:
    """Return from where to where in FUNCTION's body LOCK may be held; (0, 0): nowhere."""
    if lock in required or re.search(r"\bUNCHECKED_LOCKS\b", function.head):
        return 0, len(function.body)
    takes = (
        r"\bno_other_thread_runs\(\)" if lock == ALONE else TAKES.format(lock) + calls(program.takes.get(lock, set()))
    )
    taken = re.search(takes, function.body)
    if not taken:
        return 0, 0
    gives = GIVES.format(lock) + calls(program.gives.get(lock, set()))
    given = [found.end() for found in re.finditer(gives, function.body)]
    return taken.start(), max(given, default=len(function.body))


def faults(sources: dict[str, str]) -> list[str]:
    """Return what is wrong in SOURCES, each as one line."""
    program = read(sources)
    locks = {variable.name for variable in program.variables if variable.is_lock}
    wrong = []
    guarded = []
    for variable in program.variables:
        where = f"{variable.file}: {variable.name}"
        if variable.is_lock:
            continue
        if len(variable.notes) != 1:
            wrong.append(f"{where}: says {len(variable.notes)} times what guards it")
            continue
        ((note, about),) = variable.notes
        if note == "GUARDED_BY" and about not in locks:
            wrong.append(f"{where}: there is no lock {about}")
        elif note == "GUARDED_BY":
            guarded.append((variable, about))
        elif note == "ATOMIC" and not variable.is_volatile:
            wrong.append(f"{where}: is no word for atomic instructions")
        elif note == "UNGUARDED" and len(about) < len("one thread"):
            wrong.append(f"{where}: does not say why it needs no lock")
    for function in program.functions:
        needed = program.required.get((function.file, function.name), set()) | program.required.get(
            ("", function.name), set()
        )
        touched = [
            (rf"(?<![\w.>])(?<!->){variable.name}\b(?!\s*\()", lock, variable.name)
            for variable, lock in guarded
            if (variable.file == function.file and variable.function in ("", function.name))
            or (not variable.is_static and sees(program, function.file, program.declared.get(variable.name, "-")))
        ]
        touched += [
            (rf"(?<![\w.>]){name}\((?!\))|(?<![\w.>]){name}\(\)", lock, f"{name}()")
            for (file, name), locks_of in program.required.items()
            if file in ("", function.file) and name != function.name
            for lock in locks_of
        ]
        for pattern, lock, what in touched:
            begin, end = spans(program, function, lock, needed)
            for use in re.finditer(pattern, function.body):
                if not begin <= use.start() < end:
                    wrong.append(f"{function.file}: {function.name} touches {what} without {lock}")
                    break
    return wrong


def writable(source: Path, include: Path) -> set[str]:
    """Return the names of SOURCE's variables that the compiler puts into writable sections."""
    flags = ["-O0", "-std=gnu11", "-w", "-D_GNU_SOURCE", f"-I{include}", f"-I{NATIVE}", "-fdata-sections"]
    if source.relative_to(NATIVE).parts[0] == "runtime":
        flags += ["-ffreestanding", "-fno-builtin", "-fPIE"]
    built = include / f"{source.parent.name}.{source.stem}.o"
    subprocess.run(["gcc", *flags, "-c", str(source), "-o", str(built)], check=True)
    listed = subprocess.run(["nm", "--format=sysv", str(built)], check=True, capture_output=True, text=True).stdout
    rows = [[cell.strip() for cell in line.split("|")] for line in listed.splitlines() if line.count("|") > 5]
    return {
        row[0].split(".")[0]
        for row in rows
        if row[3] in ("OBJECT", "TLS")
        and row[6].startswith((".data", ".bss", ".tdata", ".tbss", "*COM*"))
        and ".rel.ro" not in row[6]
    }
