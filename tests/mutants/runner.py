"""``make mutants``: tries every standing mutant and says which of them no test notices.

Theory: first all tests that are to kill something run on the sound tree; a test that fails there proves nothing.  Then
each bug is put into a private copy, and the tests it names must fail.  Two copies work side by side; those that need a
compiler come first, so that the sound native code is compiled once more at most.

=========  ========================================================================================
verdict    meaning
=========  ========================================================================================
killed     a test failed
SURVIVED   the tests passed with the bug in place: one is missing
STALE      the code has changed and the bug is no longer in its text
BROKEN     the bug does not compile, or the tests could not run: the mutation says nothing
STUCK      the tests did not end; a test waits without a deadline of its own
skipped    the tests need what is not here (root, a compiler, ssh); counts as neither
=========  ========================================================================================
"""

from __future__ import annotations

import argparse
import fnmatch
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs

from tests.mutants.every import MUTATIONS
from tests.mutants.mutation import ROOT, Mutation, StaleMutation, home_directories
from tests.mutants.tree import FAILED, PASSED, BuildFailed, Outcome, Stopped, Tree

KILLED, SURVIVED, STALE, BROKEN, STUCK, SKIPPED = "killed", "SURVIVED", "STALE", "BROKEN", "STUCK", "skipped"
GOOD = (KILLED, SKIPPED)
ALL_KILLED, NOT_ALL_KILLED, MISUSE = 0, 1, 2


@attrs.frozen
class Result:
    """What became of one mutation; ``detail`` is for the reader who has to see to it."""

    mutation: Mutation
    verdict: str
    took_s: float
    detail: str = ""


def verdict_on(outcome: Outcome) -> str:
    """What the end of the killing tests says about a bug."""
    if outcome.status is None:
        return STUCK
    summary = outcome.output.rstrip().rpartition("\n")[2]
    if outcome.status == PASSED and "skipped" in summary and "passed" not in summary:
        return SKIPPED
    return {PASSED: SURVIVED, FAILED: KILLED}.get(outcome.status, BROKEN)


def try_one(tree: Tree, mutation: Mutation, searched: Sequence[str] | None) -> Result:
    """Try one bug in a copy; see :class:`Run`."""
    began_s = time.monotonic()
    detail = ""
    try:
        with tree.with_bug(mutation):
            if searched is not None:
                homes = [home for home in home_directories(mutation) if (ROOT / home).is_dir()]
                outcome = tree.test(searched or homes, stops_at_first=False)
            else:
                outcome = tree.test(mutation.killed_by)
        verdict = verdict_on(outcome)
        if searched is not None:
            detail = "\n".join(line for line in outcome.output.splitlines() if line.startswith(("FAILED", "ERROR")))
        elif verdict not in GOOD:
            detail = f"{mutation.why}\n{outcome.output[-3000:]}"
    except StaleMutation as error:
        verdict, detail = STALE, str(error)
    except BuildFailed as error:
        verdict, detail = BROKEN, str(error)
    return Result(mutation, verdict, time.monotonic() - began_s, detail)


class Run:
    """All of it: copies, the sound tree's tests, the bugs.

    Args:
        mutations: which to try.
        workers: how many copies.
        searched: run all tests there and name those that fail, instead of the named ones; empty: the directories
            that mirror the bug's file.
    """

    def __init__(self, mutations: Sequence[Mutation], workers: int, searched: Sequence[str] | None = None) -> None:
        self._mutations = sorted(mutations, key=lambda each: not each.is_native)
        self._workers = max(1, min(workers, len(mutations)))
        self._searched = searched
        self._lock = threading.Lock()
        self._done = 0

    def run(self) -> list[Result]:
        """The results, in the order of the lists.

        Raises:
            RuntimeError: tests fail on the sound tree.
        """
        with tempfile.TemporaryDirectory(prefix="condor-mutants-") as folder:
            trees = [Tree(Path(folder) / f"tree{number}") for number in range(self._workers)]
            pool = ThreadPoolExecutor(self._workers)
            try:
                if self._searched is None:
                    self._check_sound(trees, pool)
                waiting: queue.SimpleQueue[Mutation] = queue.SimpleQueue()
                for mutation in self._mutations:
                    waiting.put(mutation)
                futures = [pool.submit(self._work, tree, waiting) for tree in trees]
                found = [result for future in futures for result in future.result()]
            finally:
                for tree in trees:
                    tree.stop()
                pool.shutdown()
        order = {mutation: number for number, mutation in enumerate(self._mutations)}
        return sorted(found, key=lambda result: order[result.mutation])

    def _check_sound(self, trees: list[Tree], pool: ThreadPoolExecutor) -> None:
        tests = sorted({test for mutation in self._mutations for test in mutation.killed_by})
        print(f"{len(tests)} tests on the sound tree", flush=True)
        shares = [tests[number::len(trees)] for number in range(len(trees))]
        futures = [pool.submit(tree.test, share) for tree, share in zip(trees, shares, strict=True) if share]
        for future in futures:
            outcome = future.result()
            if outcome.status != PASSED:
                raise RuntimeError(f"the killing tests must pass on the sound tree:\n{outcome.output[-6000:]}")

    def _work(self, tree: Tree, waiting: queue.SimpleQueue[Mutation]) -> list[Result]:
        results = []
        while True:
            try:
                mutation = waiting.get_nowait()
            except queue.Empty:
                return results
            try:
                result = try_one(tree, mutation, self._searched)
            except Stopped:
                return results
            results.append(result)
            with self._lock:
                self._done += 1
                print(f"{self._done:3}/{len(self._mutations)}  {result.verdict:8} {result.took_s:5.1f} s  "
                      f"{mutation.name}", flush=True)
                if result.detail and self._searched is not None:
                    print(result.detail, flush=True)


def table(results: Sequence[Result]) -> str:
    """The results as a table, then what is wrong with those that are not killed."""
    width = max(len(result.mutation.name) for result in results)
    lines = [f"{result.mutation.name:{width}}  {result.verdict:8}  {result.took_s:5.1f} s  {result.mutation.file}"
             for result in results]
    wrong = [result for result in results if result.verdict not in GOOD]
    killed = sum(result.verdict == KILLED for result in results)
    for result in wrong:
        lines += ["", f"-- {result.mutation.name}: {result.verdict}", result.detail]
    lines += ["", f"{killed} of {len(results)} killed"]
    return "\n".join(lines)


def chosen(patterns: Sequence[str]) -> tuple[Mutation, ...]:
    """The mutations whose names match one of the patterns; all without any.

    Raises:
        LookupError: a pattern matches none.
    """
    wanted = [pattern for each in patterns for pattern in each.replace(",", " ").split()]
    for pattern in wanted:
        if not any(fnmatch.fnmatch(mutation.name, pattern) for mutation in MUTATIONS):
            raise LookupError(f"no mutation is called {pattern!r}; --list shows all names")
    return tuple(mutation for mutation in MUTATIONS
                 if not wanted or any(fnmatch.fnmatch(mutation.name, pattern) for pattern in wanted))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="make mutants", description="Tries bugs that the tests have to notice.")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="names or patterns (slots-*)")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="copies of the tree at work (2)")
    parser.add_argument("--search", nargs="*", metavar="TESTS",
                        help="run these tests (without any: all that stand beside the bug) and name those that fail")
    parser.add_argument("--list", action="store_true", help="show the mutations and try none")
    options = parser.parse_args(arguments)
    try:
        mutations = chosen(options.only)
    except LookupError as error:
        print(f"make mutants: {error}", file=sys.stderr)
        return MISUSE
    if options.list:
        for mutation in mutations:
            print(f"{mutation.name}\n    {mutation.file}: {mutation.why}")
        return ALL_KILLED
    began_s = time.monotonic()
    try:
        results = Run(mutations, options.workers, options.search).run()
    except RuntimeError as error:
        print(f"make mutants: {error}", file=sys.stderr)
        return MISUSE
    except KeyboardInterrupt:
        return 130
    print(f"\n{table(results)} in {time.monotonic() - began_s:.0f} s")
    return ALL_KILLED if all(result.verdict in GOOD for result in results) else NOT_ALL_KILLED


if __name__ == "__main__":
    sys.exit(main())
