"""Jobs of every kind at once, what their users do with them, and what must have come of each in the end.

A *batch* is one cluster (or one DAG) of a kind, in a folder of its own.  A submission whose answer was lost may have
succeeded: what it may have left is removed by the batch's name, and the next attempt has another folder.
"""

from __future__ import annotations

import random
import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs

from tests.harness.readable_python import python_for_all
from tests.harness.standard_jobs import LONG, PYTHON, expected
from tests.pool_fixture import Host, open_to_jobs, until

__all__ = ["KINDS", "Batch", "Kind", "submitted"]

COMPLETED, REMOVED = 4, 3
TAKEN_WITHIN_S = 300.0
STEPS = 120
INPUT = "input\n" * 1_000
MOVED = {"should_transfer_files": "yes", "transfer_input_files": "in", "transfer_output_files": "copy",
         "transfer_output_remaps": '"copy=copy.$(Process)"'}
RESULT = "echo result $1"
DAGMAN = "import sys; from condor_actors.tools.dag.dagman import main; sys.exit(main())"


@attrs.frozen
class Kind:
    """What jobs of a kind are.

    Attributes:
        share: of all jobs, in hundredths.
        script: of the shell, where ``$1`` is the job's number; empty: the batch has programs of its own.
        commands: of the submit description beside the usual ones.
        product: the file that each leaves, and wanted: what is in it, by its number.
        ending: the number of the event that ends it, and status: JobStatus in the history.
    """

    share: int
    script: str = RESULT
    commands: dict[str, str] = attrs.field(factory=dict)
    product: str = "out.{}"
    wanted: Callable[[int], str] = "result {}\n".format
    ending: str = "005"
    status: int = COMPLETED


KINDS = {
    "stream": Kind(24),
    "files": Kind(12, f"cat in >copy; {RESULT} >>copy", MOVED, "copy.{}", lambda number: f"{INPUT}result {number}\n"),
    "large": Kind(6, f"head -c 300000 /dev/zero | tr '\\0' x >copy; {RESULT} >>copy", MOVED, "copy.{}",
                  lambda number: "x" * 300_000 + f"result {number}\n"),
    "long": Kind(14, f"sleep $(( $1 % 7 )); {RESULT}"),
    "standard": Kind(6, "", {"universe": "standard", "executable": PYTHON, "arguments": f"program.py {STEPS}",
                             "initialdir": "{folder}/$(Process)", "input": "in", "output": "out",
                             "periodic_checkpoint": "time() - LastPeriodicCheckpoint > 15"},
                     "{}/out", lambda number: expected(STEPS)),
    "local": Kind(6, commands={"universe": "local"}),
    "scheduler": Kind(4, commands={"universe": "scheduler"}),
    "dag": Kind(6, "", product="out.{}"),
    "spooled": Kind(4, f"cat in; {RESULT}", {"should_transfer_files": "yes", "transfer_input_files": "in",
                                             "log": "job.$(Process).log"},
                    wanted=lambda number: f"{INPUT}result {number}\n"),
    "again": Kind(6, f"{RESULT}; exit $(( $$ % 2 ))", {"on_exit_remove": "ExitCode == 0"}),
    "held": Kind(6, f"{RESULT}; exit $2", {"arguments": "$(Process) 5", "on_exit_hold": "ExitCode == 5"}),
    "removed": Kind(6, "sleep 100000", ending="009", status=REMOVED, product=""),
}


class Batch:
    """One cluster, or one DAG.

    Args:
        name: of its folder, and what its jobs are marked with.
        kind: of ``kinds``; jobs: how many.
        kinds: what there are.
    """

    def __init__(self, host: Host, name: str, kind: str, jobs: int, kinds: Mapping[str, Kind] = KINDS) -> None:
        self.host, self.name, self.kind, self.jobs = host, name, kind, jobs
        self.of = kinds[kind]
        self.folder = host.work / name
        self.cluster = 0
        self.fetched = False
        self._make_files()

    @property
    def mine(self) -> str:
        """A constraint for its jobs."""
        return f'ChaosBatch == "{self.name}"'

    def _make_files(self) -> None:
        folders = [self.folder]
        if self.kind == "standard":
            folders += [self.folder / str(number) for number in range(self.jobs)]
        for folder in folders:
            folder.mkdir(parents=True)
            open_to_jobs(folder)
            (folder / "program.py").write_text(LONG)
            (folder / "in").write_text("hello\n" if self.kind == "standard" else INPUT)
        program = self.folder / "program.sh"
        program.write_text(f"#!/bin/sh\n{self.of.script or RESULT}\n")
        program.chmod(0o755)
        if self.kind == "dag":
            (self.folder / "node.sub").write_text(self._description({"arguments": "$(Number)",
                                                                     "output": "out.$(Number)"}, "queue"))
            nodes = [f'JOB N{n} node.sub\nVARS N{n} Number="{n}"' for n in range(self.jobs)]
            edges = [f"PARENT N{n} CHILD N{n + 1}" for n in range(self.jobs - 1) if n % 3]
            (self.folder / "all.dag").write_text("\n".join(nodes + edges) + "\n")
            dagman = self.folder / "dagman.sh"  # the jobs' owner need not have access to the tests' own
            dagman.write_text(f'#!/bin/sh\nexec {shlex.join([*python_for_all().words, "-c", DAGMAN])} "$@"\n')
            dagman.chmod(0o755)

    def _description(self, more: dict[str, str], queue: str) -> str:
        commands = {"initialdir": "{folder}", "executable": "program.sh", "arguments": "$(Process)",
                    "output": "out.$(Process)", "log": f"{self.folder}/job.log", "request_memory": "16MB",
                    "+ChaosBatch": f'"{self.name}"', **self.of.commands, **more}
        lines = [f"{name} = {value}".replace("{folder}", str(self.folder)) for name, value in commands.items()]
        return "\n".join([*lines, queue, ""])

    def attempt(self) -> bool:
        """Submit it; whether it was taken for certain."""
        if self.kind == "dag":
            done = self.host.tool("condor_submit_dag", "-dagman", str(self.folder / "dagman.sh"), "-append",
                                  f'+ChaosBatch = "{self.name}"', "all.dag", cwd=self.folder)
        else:
            spool = ("-spool",) if self.kind == "spooled" else ()
            done = self.host.tool("condor_submit", *spool, cwd=self.folder,
                                  stdin=self._description({}, f"queue {self.jobs}"))
        if done.returncode == 0:
            self.cluster = int(done.stdout.rsplit("cluster ", 1)[1].split()[0].strip("."))
        return done.returncode == 0

    # ---- what its users do

    def attend(self, chance: random.Random) -> None:
        """One step of its users; fails, and is done again, where the schedd is away."""
        if self.kind == "removed":
            self.host.tool("condor_rm", "-constraint", self.mine)
        elif self.kind == "held":
            held = f"{self.mine} && JobStatus == 5 && HoldReasonCode == 3"
            self.host.tool("condor_qedit", "-constraint", held, "Args", 'strcat(ProcId, " 0")')
            self.host.tool("condor_release", "-constraint", f'{held} && substr(Args, -2) == " 0"')
        elif self.kind == "spooled":
            if not self.fetched and self._all_completed():
                self.fetched = self.host.tool("condor_transfer_data", str(self.cluster)).returncode == 0
            if self.fetched:
                self.host.tool("condor_rm", str(self.cluster))
        elif self.kind in ("long", "files", "standard"):
            action = chance.choice(("condor_hold", "condor_release", "condor_vacate_job", "condor_suspend",
                                    "condor_continue"))
            self.host.tool(action, "-constraint", f"{self.mine} && ProcId % 5 == {chance.randrange(5)}")

    def _all_completed(self) -> bool:
        done = self.host.tool("condor_q", "-all", str(self.cluster), "-af", "JobStatus")
        return done.returncode == 0 and done.stdout.split() == [str(COMPLETED)] * self.jobs

    # ---- what must have come of it

    def wrong(self) -> list[str]:
        """What is not as it should be, in the files and in the logs; the jobs have ended."""
        found = [text for number in range(self.jobs if self.of.product else 0) if (text := self._wrong_file(number))]
        found += self._wrong_ends("job*.log", self.jobs)
        if self.kind == "dag":
            found += self._wrong_ends("all.dag.dagman.log", 1)
        if self.kind == "standard":
            steps = "".join(f"{step}\n" for step in range(STEPS))
            found += [f"{self.folder}/{number}/log: not each step once" for number in range(self.jobs)
                      if _text(self.folder / str(number) / "log") != steps]
        return found

    def _wrong_file(self, number: int) -> str:
        path, wanted = self.folder / self.of.product.format(number), self.of.wanted(number)
        text = _text(path)
        return "" if text == wanted else f"{path}: {len(text)} bytes for {len(wanted)}, at the end {text[-40:]!r}"

    def _wrong_ends(self, log: str, jobs: int) -> list[str]:
        lines = [line for path in self.folder.glob(log) for line in _text(path).splitlines()]
        ends = Counter(line[5:].split(")")[0] for line in lines if line[:5] in ("005 (", "009 ("))
        rights = sum(line.startswith(f"{self.of.ending} (") for line in lines)
        if len(ends) == jobs == rights and set(ends.values()) == {1}:
            return []
        twice = [name for name, count in ends.items() if count > 1]
        return [f"{self.folder}/{log}: {len(ends)} of {jobs} jobs have ended, {rights} with {self.of.ending}, "
                f"more than once {twice}"]


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else "(no file)"


def submitted(host: Host, name: str, kind: str, jobs: int, kinds: Mapping[str, Kind] = KINDS) -> Batch:
    """A batch that the schedd has taken, after as many attempts as that needs."""
    attempts = 0

    def one_more() -> Batch | None:
        nonlocal attempts
        attempts += 1
        batch = Batch(host, f"{name}-{attempts}", kind, jobs, kinds)
        if batch.attempt():
            return batch
        until(lambda: _is_gone(batch), f"what {batch.name} may have left is removed", TAKEN_WITHIN_S)
        return None

    taken: Batch = until(one_more, f"jobs of kind {kind} are taken", TAKEN_WITHIN_S)
    return taken


def _is_gone(batch: Batch) -> bool:
    """Whether nothing of a failed attempt is queued; removes what is."""
    done = batch.host.tool("condor_q", "-all", "-constraint", batch.mine, "-af", "ClusterId")
    if done.returncode == 0 and not done.stdout.strip():
        return True
    batch.host.tool("condor_rm", "-constraint", batch.mine)
    return False
