"""Runs the whole corpus and makes its page, docs/corpus.md.

``python -m tests.native.corpus_run``            every program that is installed, two at a time
``python -m tests.native.corpus_run --continue`` the same, but what an earlier run found out is kept
``python -m tests.native.corpus_run NAME...``    these anew (a word that several names contain means them all)
``python -m tests.native.corpus_run --workers=3`` so many at a time
``python -m tests.native.corpus_run --packages`` what to install for all of them

Each program has a process of its own and ten minutes. What came of it is written at once to ``build/corpus``, one file
per program, and the page is made from these files after each; so a run that was broken off is continued with
``--continue``, and an entry that was changed since is tried anew.

The random moments come from a seed: ``CONDOR_CORPUS_SEED=N python -m tests.native.corpus_run NAME`` tries those of the
page again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import attrs
import psutil

from tests.native.chain import Stuck
from tests.native.corpus import MOST_CHAINS, Bench, Program, Result, programs

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "corpus.md"
KEPT = ROOT / "build" / "corpus"
WORKERS = 2
LIMIT_S = 600
"""Of one program, all its runs together."""
FIRST_SEED = 1988


@attrs.frozen(kw_only=True)
class Entry:
    """One program's result as it is kept, with when and of which sources it is."""

    result: Result
    entry: str
    """Digest of the program's definition."""
    commit: str = ""
    began: float = 0.0
    """Seconds since 1970."""
    ended: float = 0.0


def _digest(program: Program) -> str:
    return hashlib.sha256(json.dumps(attrs.asdict(program), sort_keys=True).encode()).hexdigest()[:16]


def _file(program: Program) -> Path:
    return KEPT / ("".join(c if c.isalnum() else "-" for c in program.name) + ".json")


def _kept(program: Program) -> Entry | None:
    """Return what is known of PROGRAM as it is defined now."""
    try:
        found = json.loads(_file(program).read_text())
    except (FileNotFoundError, ValueError):
        return None
    if found["entry"] != _digest(program):
        return None
    return Entry(**{**found, "result": Result(program=program, **found["result"])})


def _keep(entry: Entry) -> None:
    """Write ENTRY down, in one step."""
    found = {**attrs.asdict(entry), "result": attrs.asdict(entry.result)}
    del found["result"]["program"]
    path = _file(entry.result.program)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".new").write_text(json.dumps(found, indent=1))
    path.with_suffix(".new").replace(path)


def _commit() -> str:
    words = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


def _prove_alone(name: str, seed: int) -> None:
    """Run one program in this process and keep what came of it."""

    def overdue(*_: object) -> None:
        raise Stuck(f"not done within {LIMIT_S} s")

    program = next(p for p in programs() if p.name == name)
    began = time.time()
    signal.signal(signal.SIGALRM, overdue)
    signal.alarm(LIMIT_S)
    with tempfile.TemporaryDirectory(prefix="corpus") as folder:
        result = Bench(Path(folder)).prove(program, seed=seed)
        signal.alarm(0)
    _keep(Entry(result=result, entry=_digest(program), commit=_commit(), began=began, ended=time.time()))


def _prove_apart(program: Program, seed: int) -> Entry:
    """Run one program in a process of its own, which leaves nobody behind."""
    began = time.time()
    process = subprocess.Popen([sys.executable, "-m", __spec__.name, "--one", program.name, str(seed)], cwd=ROOT)
    why = ""
    try:
        status = process.wait(LIMIT_S + 60)
        why = f"the process that ran it ended with {status}" if status else ""
    except subprocess.TimeoutExpired:
        why = f"not done within {LIMIT_S} s"
    if why:
        family = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        for member in [process, *family]:
            member.kill()
        process.wait()
        result = Result(program=program, seed=seed, remote=why)
        _keep(Entry(result=result, entry=_digest(program), commit=_commit(), began=began, ended=time.time()))
    found = _kept(program)
    assert found
    return found


def _cell(result: Result) -> str:
    """Return in words what became of a program."""
    if result.absent:
        return f"not run: {result.absent}" if " " in result.absent else f"not installed ({result.absent})"
    if result.remote:
        return "does not run: " + (result.program.reason or result.remote)
    if result.moved:
        return "runs; does not move: " + (result.program.reason or result.moved)
    same = "same" if result.links else "same; never one process long enough to be moved"
    return f"{same} ({result.program.note})" if result.program.note else same


def machine() -> str:
    """Return what the results were seen on."""
    library = os.confstr("CS_GNU_LIBC_VERSION") or "another C library"
    memory = psutil.virtual_memory().total / 2**30
    release = os.uname().release.split("-")[0]
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, kernel {release}, {library}, load {os.getloadavg()[2]:.0f}"


INTRODUCTION = """# Programs that were seen to move

*For users and developers: which programs were checkpointed and moved, and with which result.*

Made by `make corpus`, which installs Debian's packages and runs `python -m tests.native.corpus_run`. Each
program runs natively (twice), under the runtime, and then through checkpoints at random moments: it is
killed at each and continued from the image. *Same* means: standard output, exit status and every file that
it wrote, byte for byte; what could not be compared is said beside it. *Waited* counts how often a
checkpoint was put off: one of the program's processes did not stop in time. The seconds are of a machine
that had other work, and say only that a program is not too short to be moved. The moments come from
the *seed*: `CONDOR_CORPUS_SEED=N python -m tests.native.corpus_run NAME` tries
the same ones again. A part of the page is made anew when programs of it have run.
"""
FAMILIES = "families"
PARTS = {False: "Programs", True: "Families of processes"}


def _is_family(program: Program) -> bool:
    return program.language.partition(":")[0] == FAMILIES


def part(entries: Sequence[Entry]) -> str:
    """Return a part of the page: figures, and a table of ENTRIES, of which there is at least one."""
    results = [e.result for e in entries]
    good = [r for r in results if r.good]
    moved = [r for r in good if r.links]
    whole_s = sum(e.ended - e.began for e in entries)
    first, last = (time.strftime("%F %H:%M", time.gmtime(f(e.began for e in entries))) for f in (min, max))
    commits = list(dict.fromkeys(e.commit for e in sorted(entries, key=lambda e: e.began) if e.commit))
    lines = [
        f"Begun {first}, last program begun {last} UTC, {whole_s / 60:.0f} minutes of programs; "
        f"{machine()}; of commit {', '.join(commits)}.",
        "",
        f"{len(good)} programs of {len([r for r in results if not r.absent])} in "
        f"{len({r.program.language for r in good})} languages and fields do the same; {len(moved)} of them were moved, "
        f"{sum(r.links for r in moved)} times in all, {len([r for r in moved if r.links >= 5])} of them at least five "
        "times.",
        "",
        "| program | language or field | package | native s | remote s | moves | waited | seed | result |",
        "|---|---|---|---:|---:|---:|---:|---:|---|",
    ]
    for r in sorted(results, key=lambda r: (r.program.language.lower(), r.program.name.lower())):
        numbers = f"{r.native_s:.2f} | {r.remote_s:.2f} | {r.links} | {r.deferred} | {r.seed}"
        field = r.program.language.removeprefix(f"{FAMILIES}: ")
        text = " ".join(_cell(r).replace("|", "\\|").split())
        lines.append(
            f"| {r.program.name} | {field} | {r.program.package} | {numbers if not r.absent else '| | | |'} | {text} |"
        )
    return "\n".join(lines) + "\n"


def page(entries: Sequence[Entry], before: str) -> str:
    """Return the documentation page for ENTRIES; a part that none of them belongs to stays as it was BEFORE."""
    heads = re.split(r"^## (.*)\n\n", before, flags=re.MULTILINE)[1:]
    kept = dict(zip(heads[::2], heads[1::2], strict=True))
    text = INTRODUCTION
    for of_families, title in PARTS.items():
        these = [e for e in entries if _is_family(e.result.program) is of_families]
        body = part(these) if these else kept.get(title, "").rstrip("\n") + "\n"
        text += f"\n## {title}\n\n{body}" if body.strip() else ""
    return text


def run(chosen: Sequence[Program], anew: bool, first: int | None, workers: int) -> list[Result]:
    """Run CHOSEN, those with a kept result only when ANEW; FIRST: the first one's seed, else each has its own."""
    corpus = programs()
    seeds = {p.name: FIRST_SEED + MOST_CHAINS * n for n, p in enumerate(corpus)}
    if first is not None:
        seeds |= {p.name: first + MOST_CHAINS * n for n, p in enumerate(chosen)}
    if anew:
        for program in chosen:
            _file(program).unlink(missing_ok=True)
    wanted = [p for p in chosen if _kept(p) is None]
    absent = {p.name: p.missing() for p in wanted}
    seen: list[Result] = []
    with ThreadPoolExecutor(workers) as pool:
        waiting = []
        for program in wanted:
            if absent[program.name]:
                seen.append(Result(program=program, absent=absent[program.name]))
                now = time.time()
                _keep(Entry(result=seen[-1], entry=_digest(program), began=now, ended=now))
            else:
                waiting.append(pool.submit(_prove_apart, program, seeds[program.name]))
        for number, done in enumerate(as_completed(waiting), 1):
            r = done.result().result
            seen.append(r)
            text = " ".join((r.remote or r.moved or r.absent or _cell(r)).split())[:300]
            print(f"{number}/{len(waiting)} {r.program.name}: {text} ({r.native_s:.2f} s, {r.remote_s:.2f} s, "
                  f"{r.links} links, {r.deferred} waited, seed {r.seed})", flush=True)  # fmt: skip
            PAGE.write_text(page([found for p in corpus if (found := _kept(p))], PAGE.read_text()))
    return seen


def main(words: list[str]) -> int:
    """Do what the command line asks for; return 1 when a program failed without a known reason."""
    if words[:1] == ["--one"]:
        _prove_alone(words[1], int(words[2]))
        return 0
    corpus = programs()
    if words == ["--packages"]:
        print(" ".join(sorted({p.package for p in corpus})))
        return 0
    anew = "--continue" not in words
    names = [word.lower() for word in words if not word.startswith("--")]
    chosen = [p for p in corpus if not names or any(name in p.name.lower() for name in names)]
    seed = os.environ.get("CONDOR_CORPUS_SEED")
    workers = [int(word.partition("=")[2]) for word in words if word.startswith("--workers=")] or [WORKERS]
    seen = run(chosen, anew, int(seed) if seed else None, workers[-1])
    return int(any(not (r.good or r.absent or r.program.reason) for r in seen))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
