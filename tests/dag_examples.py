"""Runs HTCondor's own example DAGs (``src/condor_tests/job_dagman_*``) in a personal pool, and says what comes of it.

``python -m tests.dag_examples SOURCES``              those that HTCondor runs; SOURCES: a checkout or git directory
``python -m tests.dag_examples SOURCES retry halt-A`` these only
``python -m tests.dag_examples --help``               everything else

Each example is a DAG, the jobs and scripts of its nodes, and a Perl program that submits it by ``condor_submit_dag``,
follows its event log, and compares the files that it leaves with what they have to be.  All of these are run as they
are, in a folder of their own, and nothing of them is kept here.  The pool is that of an ordinary user, with 16 slots.
HTCondor runs those that its ``CMakeLists.txt`` names; others have been left behind by its own changes.

============  ==========================================================================================
``passes``    the example's own program found what it expects
``refused``   it uses what this system refuses; the reason is in ``KNOWN``
``not run``   its program needs another that HTCondor's own build makes
``differs``   it looks at something that is otherwise here for a reason; the reason is in ``KNOWN``
``wrong``     anything else; there must be none
============  ==========================================================================================

The table is written to ``--table``, and the status is 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import attrs

from tests.harness.commands import COMMANDS, program_of
from tests.harness.readable_python import python_for_all
from tests.harness.user_pool import UserPool, user_pool
from tests.harness.verdicts import figures, page, put

TABLE = Path(__file__).parents[1] / "build" / "dag_examples.md"
PARTS = ("src/condor_tests", "src/condor_scripts")
PREFIX, SUFFIX = "job_dagman_", ".run"
PASSES, REFUSED, NOT_RUN, DIFFERS, WRONG = "passes", "refused", "not run", "differs", "wrong"
FIRST, ALONE = ("global_event_log-A",), ("condor_restart",)
"""The one waits until all jobs of the pool have ended, the other stops it: no other may run beside them."""
REQUIRED = re.compile(r"<<CONDOR_TESTREQ_CONFIG;?\n(.*?)\nCONDOR_TESTREQ_CONFIG", re.DOTALL)
LISTED = re.compile(r"^[ \t]*condor_pl_test\(job_dagman_(\S+)", re.MULTILINE)
PROGRAM = re.compile(r"^[^#\n]*system\(.*?\b(x_read_joblog\.exe)", re.MULTILINE)
LIMIT_S = 240.0
MOST_TEXT = 200
CONFIG = """NUM_CPUS = 16
NEGOTIATOR_INTERVAL = 2
DAGMAN_USER_LOG_SCAN_INTERVAL = 1
EVENT_LOG = $(LOG)/EventLog
"""
AT_ONCE = (DIFFERS, "condor_submit_dag tells the mistake and submits nothing; HTCondor's tells it in dagman.out")
KNOWN = {
    "retry_recovery": (DIFFERS, "it looks for words about a cache of dagman.out's lines, which there is not"),
    "cycle-A": AT_ONCE, "final-H": AT_ONCE, "node_name_illegal_chars": AT_ONCE, "reject": AT_ONCE,
    "splice_connect-D": AT_ONCE, "splice_connect-E": AT_ONCE, "splice_connect-F": AT_ONCE,
    "condor_restart": (DIFFERS, "condor_restart leaves jobs running, and the example waits for their end"),
    "retry": (DIFFERS, "it runs a rescue file as a DAG, which HTCondor itself writes no more since 25.8"),
    "suppress_log": (DIFFERS, "its vanilla job asks the schedd of its machine, whose sockets are hidden from it"),
}
"""Of examples that cannot pass here: the verdict, and why."""


@attrs.frozen
class Verdict:
    """What became of one example, the text that says why, and how long it took."""

    name: str
    what: str
    why: str = ""
    took_s: float = 0.0


def unpacked(sources: Path, folder: Path) -> Path:
    """Copy the examples and their Perl modules from SOURCES, a checkout or a git directory, to FOLDER."""
    for part in PARTS:
        if (sources / part).is_dir():
            words = ["tar", "-c", "-C", str(sources), part]
        else:
            words = ["git", f"--git-dir={sources}", "archive", "HEAD", part]
        archive = subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["tar", "-x", "--no-same-owner", "-C", str(folder)], input=archive, check=True)
    return folder / "src"


def commands_of(pool: UserPool) -> Path:
    """Make a folder of this system's commands which the pool's user can run."""
    folder = pool.folder / "bin"
    folder.mkdir()
    for name in COMMANDS:
        words = [*python_for_all().words, "-c", program_of(name), name]
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        script.chmod(0o755)
    return folder


@attrs.frozen
class Examples:
    """The examples in ``source``, the pool that runs them, and the environment of their programs."""

    pool: UserPool
    source: Path
    keep: bool

    def names(self) -> list[str]:
        """Return what examples there are."""
        found = sorted((self.source / "condor_tests").glob(f"{PREFIX}*{SUFFIX}"))
        return [path.name.removeprefix(PREFIX).removesuffix(SUFFIX) for path in found]

    def listed(self) -> list[str]:
        """Return those that HTCondor runs."""
        wanted = set(LISTED.findall((self.source / "condor_tests" / "CMakeLists.txt").read_text()))
        return [name for name in self.names() if name in wanted]

    def verdict(self, name: str) -> Verdict:
        """Run one example in a copy of its folder."""
        text = (self.source / "condor_tests" / f"{PREFIX}{name}{SUFFIX}").read_text(errors="replace")
        needs = PROGRAM.search(text)
        if needs:
            return Verdict(name, NOT_RUN, f"it needs {needs[1]}")
        required = REQUIRED.search(text)
        place = self.pool.folder / "examples" / name / "condor_tests"  # its programs look for a folder of this name
        shutil.copytree(self.source / "condor_tests", place, symlinks=True)
        for module in (self.source / "condor_scripts").glob("*.pm"):
            shutil.copy(module, place)
        self._own(place.parent)
        began = time.monotonic()
        status, said = self._run(place, f"{PREFIX}{name}{SUFFIX}", _settings(required[1] if required else ""))
        took_s = time.monotonic() - began
        (place.parent / "said").write_text(said)
        if not self.keep:
            shutil.rmtree(place)
        if status == 0:
            return Verdict(name, PASSES, "", took_s)
        what, why = KNOWN.get(name, (WRONG, reason(said)))
        return Verdict(name, what, why, took_s)

    def _own(self, place: Path) -> None:
        if self.pool.user:
            subprocess.run(["chown", "-R", f"{self.pool.user}:{self.pool.user}", str(place)], check=True)

    def _run(self, place: Path, program: str, settings: dict[str, str]) -> tuple[int, str]:
        words = ["/bin/sh", "-c", 'cd "$0" && exec perl "$1"', str(place), program]
        environment = {
            **self.pool.environment, "PERL5LIB": str(place),
            "PATH": f"{self.pool.folder / 'bin'}:{os.defpath}", "PWD": str(place), **settings,
        }  # fmt: skip
        process = subprocess.Popen(
            self.pool.command(*words), env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True, cwd="/",
        )  # fmt: skip
        try:
            said = process.communicate(timeout=LIMIT_S)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return 1, process.communicate()[0] + f"\nit did not end within {LIMIT_S:g} s\n"
        return process.returncode, said


def _settings(text: str) -> dict[str, str]:
    """Return the assignments to DAGMAN_* in TEXT, what an example asks of its pool, as variables of the environment."""
    pairs = [line.partition("=") for line in text.splitlines()]
    return {f"_CONDOR_{name.strip()}": value.strip() for name, _, value in pairs if name.strip().startswith("DAGMAN_")}


def reason(said: str) -> str:
    """Return the last line of what an example's program SAID that tells why it failed."""
    lines = [line for line in said.splitlines() if line.strip()]
    told = [line for line in lines if re.search(r"did not end| at \S+ line \d+|FAIL|rror|xpected", line)]
    return (told or lines or ["it said nothing"])[-1].strip()[:MOST_TEXT]


def table(verdicts: Sequence[Verdict]) -> str:
    """Return VERDICTS as a page: figures, then a line for each example."""
    order = [PASSES, REFUSED, NOT_RUN, DIFFERS, WRONG]
    first = f"{len(verdicts)} examples: {figures((v.what for v in verdicts), order)}."
    ordered = sorted(verdicts, key=lambda v: (-order.index(v.what), v.name))
    rows = [(v.name, v.what, f"{v.took_s:.0f}", v.why) for v in ordered]
    return page(first, ("example", "verdict", "seconds", "reason"), rows)


def _told(verdict: Verdict) -> Verdict:
    print(f"{verdict.name}: {verdict.what} {verdict.why}".rstrip(), flush=True)
    return verdict


def run_all(given: argparse.Namespace) -> list[Verdict]:
    """Run what the command line asks for, in a pool of an ordinary user."""
    verdicts = []
    with user_pool(CONFIG) as pool:
        examples = Examples(pool, unpacked(given.sources, pool.folder), given.keep is not None)
        commands_of(pool)
        examples.pool.folder.joinpath("examples").mkdir()
        known = examples.names()
        unknown = [name for name in given.names if name not in known]
        if unknown:
            raise SystemExit(f"no such examples: {' '.join(unknown)}; there are: {' '.join(known)}")
        wanted = given.names or examples.listed()
        verdicts += [_told(examples.verdict(name)) for name in wanted if name in FIRST]
        with ThreadPoolExecutor(given.workers) as workers:
            futures = [workers.submit(examples.verdict, name) for name in wanted if name not in (*FIRST, *ALONE)]
            for future in as_completed(futures):
                verdicts.append(_told(future.result()))
        verdicts += [_told(examples.verdict(name)) for name in wanted if name in ALONE]
        if given.keep is not None:
            kept = [str(pool.folder / "examples"), str(pool.dir / "log"), str(given.keep)]
            subprocess.run(["cp", "-a", *kept], check=True)
    return verdicts


def main(words: list[str]) -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="dag_examples", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sources", type=Path, help="a checkout of HTCondor, or its git directory")
    parser.add_argument("names", nargs="*", help="examples; without any, those that HTCondor runs")
    parser.add_argument("--keep", type=Path, help="copy what the examples leave to this folder")
    parser.add_argument("--table", type=Path, default=TABLE, help=f"where the table goes (default {TABLE.name})")
    parser.add_argument("--workers", type=int, default=4, help="examples at a time (default 4)")
    given = parser.parse_args(words)
    if given.keep is not None:
        given.keep.mkdir(parents=True, exist_ok=True)
    verdicts = run_all(given)
    put(table(verdicts), given.table)
    return 1 if any(v.what == WRONG for v in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
