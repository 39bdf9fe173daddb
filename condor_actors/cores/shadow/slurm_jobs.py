"""Slurm's side of a run: what it is submitted with, the script that runs there, and what Slurm's words mean.

Theory: the script is the only thing of ours that runs in the batch system, and needs nothing there but ``/bin/sh`` and
the folder.  It claims the run by making the link ``claim``, which names the batch system's job: of two jobs of one run
one succeeds, whatever file system it is.  How the program ended it writes down in ``end``, where a signal is told from
an exit status by what the shell says of it.  Without that word Slurm's own state of the job decides.

**Source**: squeue(1), "JOB STATE CODES"; sbatch(1); sacct(1).
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Mapping
from typing import Protocol

from condor_actors.classads import ClassAd
from condor_actors.cores.shadow.grid_events import BatchJob, Fits, FolderRecord, GridKind
from condor_actors.messages.codes import HoldCode, HoldSubCode
from condor_actors.numerals import numeral

__all__ = [
    "FENCE", "NAME_PREFIX", "QUEUE_FORMAT", "SLURM", "batch_name", "is_transient", "make_script", "parse_accounting",
    "parse_queue", "read_record", "shown_status", "submission_words", "verdict", "what_it_is",
]

NAME_PREFIX = "condor."
QUEUE_FORMAT = "%i|%T|%r|%N|%j"
LONGEST_HOST = 255
FENCE = "withdrawn"
"""The claim of the grid manager itself."""

_RUNNING = frozenset({"RUNNING", "COMPLETING", "STAGE_OUT", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING"})
_WAITING = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD",
                      "SPECIAL_EXIT"})
_HELD = frozenset({"JobHeldUser", "JobHeldAdmin"})
_SIGNALS_SAID = re.compile(r"\b(?:Killed|Terminated|Aborted|Hangup|Quit|Bus error|Segmentation fault|Illegal|Floating|"
                           r"Alarm|User defined|Trace|Bad system call|CPU time|File size|Real-time|Virtual|Profiling|"
                           r"Stack fault|I/O|Power|SIG\w+|Unknown signal)", re.IGNORECASE)
_SILENT_SIGNALS = (2, 13)
"""SIGINT and SIGPIPE: no shell says a word of a program that they ended."""

_TRANSIENT = re.compile(
    r"unable to contact slurm|socket timed out|connection (?:refused|reset|timed out)|unable to connect|zero bytes|"
    r"standby mode|munge|protocol authentication|temporar|try again|resource.*unavailable|slurm.*not responding|"
    r"communication (?:connection )?failure|MaxSubmit|MaxJobCount|job count limit|no answer", re.IGNORECASE)


def batch_name(run_id: str, job: ClassAd) -> str:
    """The name of a run in the batch system: always the same one for a run, and no other's."""
    whose = f"{run_id}\0{job.get_str('GlobalJobId')}\0{job.get_int('QDate')}\0{job.get_str('Owner')}"
    number = run_id.partition("@")[0].replace("#", ".")
    return f"{NAME_PREFIX}{number}.{hashlib.sha256(whose.encode()).hexdigest()[:16]}"


# ---- submission


def submission_words(job: ClassAd, name: str, folder: str) -> list[str]:
    """The arguments of sbatch; what the job's author wants beyond that comes first, and overrides nothing of ours.

    Raises:
        ValueError: ``BatchExtraSubmitArgs`` has a quote without its partner.
    """
    words = ["--parsable"]
    for attribute, option in (("BatchQueue", "--partition"), ("BatchProject", "--account")):
        value = job.get_str(attribute)
        if value:
            words.append(f"{option}={value}")
    runtime_s = job.get_int("BatchRuntime")
    if runtime_s > 0:
        words.append(f"--time={-(-runtime_s // 60)}")
    for attribute, option in (("RequestCpus", "--cpus-per-task={}"), ("RequestMemory", "--mem={}M"),
                              ("RequestGPUs", "--gres=gpu:{}")):
        amount = job.get_int(attribute)
        if amount > 0:
            words.append(option.format(amount))
    try:
        words += shlex.split(job.get_str("BatchExtraSubmitArgs"))
    except ValueError as error:
        raise ValueError(f"batch_extra_submit_args = {job.get_str('BatchExtraSubmitArgs')}: {error}") from None
    identity = f"{job.get_str('GlobalJobId') or 'job'} {job.get_int('ClusterId')}.{job.get_int('ProcId')}"
    said = f"{folder}/said".replace("%", "%%")  # sbatch fills in what follows a single one
    return [*words, f"--job-name={name}", f"--comment=condor {identity}", f"--chdir={folder}",
            f"--output={said}", f"--error={said}", "--open-mode=append", "--no-requeue",
            "--export=ALL", f"{folder}/script"]


def is_transient(said: str) -> bool:
    """Whether what a command of Slurm's said may be otherwise a little later."""
    return _TRANSIENT.search(said) is not None


class Program(Protocol):
    """What the script needs of a job, as plain values (``RunSpec``)."""

    @property
    def transfers(self) -> bool:
        """Whether files travel."""

    @property
    def iwd(self) -> str:
        """Its own folder."""

    @property
    def program(self) -> str:
        """Absolute, or a name in the folder where it begins."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """Of the program."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Of the job."""

    @property
    def stdin(self) -> str:
        """Its path, relative to where it begins."""

    @property
    def stdout(self) -> str:
        """Likewise."""

    @property
    def stderr(self) -> str:
        """Likewise."""


_SCRIPT = """\
#!/bin/sh
# Of two batch jobs for one run a single one goes on: who makes the link.
folder={folder}
ln -s "$SLURM_JOB_ID" "$folder/claim" 2>/dev/null
[ "$(readlink "$folder/claim")" = "$SLURM_JOB_ID" ] || exit 0
[ ! -e "$folder/end" ] || exit 0
cd {directory} || exit 1
printf '%s %s\\n' "$(date +%s)" "${{SLURMD_NODENAME:-$(hostname)}}" > "$folder/began.new"
mv "$folder/began.new" "$folder/began"
exec 3>&2 2>"$folder/death"
# The job's variables are the program's alone: the rest of this script needs its own PATH.
(
unset CONDOR_CONFIG
{variables}
exec /bin/sh -c 'exec "$0" "$@" <{stdin} >{stdout} {stderr} 3>&-' {program}
)
status=$?
{{ echo "$status"; times | tail -n 1; }} > "$folder/end.new"
mv "$folder/end.new" "$folder/end"
exit "$status"
"""


def make_script(spec: Program, folder: str, more: Mapping[str, str]) -> str:
    """The script that the batch system runs.

    Args:
        spec: the job; its paths are relative to where it begins.
        folder: of the run.
        more: variables beneath the job's own.
    """
    directory = f"{folder}/sandbox" if spec.transfers else spec.iwd
    program = f"./{spec.program}" if "/" not in spec.program else spec.program
    variables = "\n".join(f"export {name}={shlex.quote(value)}"
                          for name, value in {**more, **spec.environment}.items()
                          if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name))
    inner = {"stdin": spec.stdin, "stdout": spec.stdout, "stderr": spec.stderr}
    quoted = {name: shlex.quote(path).replace("'", "'\\''") for name, path in inner.items()}
    stderr = "2>&1" if spec.stderr == spec.stdout else f"2>{quoted['stderr']}"
    return _SCRIPT.format(
        folder=shlex.quote(folder), directory=shlex.quote(directory), variables=variables,
        stdin=quoted["stdin"], stdout=quoted["stdout"], stderr=stderr,
        program=" ".join(shlex.quote(word) for word in (program, *spec.arguments)))


# ---- answers


def parse_queue(text: str) -> dict[str, tuple[BatchJob, ...]]:
    """The jobs of squeue's table, by name; those that are not of ours are left out."""
    found: dict[str, tuple[BatchJob, ...]] = {}
    for line in text.splitlines():
        parts = line.strip().split("|", 4)
        if len(parts) == 5 and numeral(parts[0]) is not None and parts[4].startswith(NAME_PREFIX):
            batch_id, state, reason, host, name = parts
            found[name] = (*found.get(name, ()), BatchJob(batch_id, state, reason, host))
    return found


def parse_accounting(batch_id: str, text: str) -> BatchJob | None:
    """What sacct says of a job; None: nothing."""
    for line in text.splitlines():
        state = line.strip().partition("|")[0].split(" ")[0]
        if state:
            return BatchJob(batch_id, state)
    return None


def what_it_is(state: str) -> Fits:
    """What a state of Slurm's means here."""
    if state in _RUNNING:
        return Fits.RUNNING
    return Fits.WAITING if state in _WAITING else Fits.OVER


def shown_status(state: str, reason: str) -> str:
    """``GridJobStatus``, in the words that HTCondor has for all batch systems."""
    if state == "SUSPENDED":
        return "SUSPENDED"
    if what_it_is(state) is Fits.WAITING:
        return "HELD" if reason in _HELD else "IDLE"
    return "RUNNING"


def read_record(files: Mapping[str, str], claim: str) -> FolderRecord:
    """What the files of a run's folder say.

    Args:
        files: their texts, by name; one that is not there is left out.
        claim: where the link leads; empty: there is none.
    """
    began, taken = files.get("began", "").split(), files.get("batch_id", "").split()
    words = files.get("end", "").split()
    status, number = _ended(words, files.get("death", ""))
    return FolderRecord(
        prepared="prepared" in files, batch_id=_number(taken[0]) if taken else "",
        submitted_s=_date(taken[1]) if len(taken) > 1 else 0.0,
        claim="" if claim == FENCE else _number(claim), host=began[1][:LONGEST_HOST] if len(began) > 1 else "",
        began_s=_date(began[0]) if began else 0.0, status=status, signal=number,
        user_cpu_s=_clock(words[1]) if len(words) > 2 else 0.0,
        system_cpu_s=_clock(words[2]) if len(words) > 2 else 0.0, said=files.get("said", "").strip()[-300:])


def _number(text: str) -> str:
    word = text.strip()
    return word if numeral(word) is not None else ""


def _date(word: str) -> float:
    """Seconds since 1970; 0 where it is none."""
    return float(numeral(word, 11) or 0)


def _ended(words: list[str], death: str) -> tuple[int | None, int]:
    """Status and signal of a program, by the shell's ``$?`` and what it said."""
    if not words or numeral(words[0], 3) is None:
        return None, 0
    status = int(words[0])
    number = status - 128
    if 0 < number < 65 and (number in _SILENT_SIGNALS or _SIGNALS_SAID.search(death)):
        return status, number
    return status, 0


def _clock(text: str) -> float:
    """``1m2.500s`` of a shell's ``times``."""
    found = re.fullmatch(r"(\d{1,9})m(\d{1,9}(?:\.\d{1,9})?)s", text, re.ASCII)
    return int(found[1]) * 60 + float(found[2]) if found else 0.0


_AGAIN = frozenset({"NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REVOKED", "LAUNCH_FAILED", "RECONFIG_FAIL"})


def verdict(batch_id: str, current: BatchJob | None, record: FolderRecord) -> tuple[str, str, int, int]:
    """What a job came to whose script has left no word: outcome of the run, reason, hold code and its subcode."""
    if current is None:
        return "lost", f"Slurm has forgotten job {batch_id}, which began and has left no word of its end", 0, 0
    state, where = current.state, f"Slurm ended job {batch_id}"
    if state in _AGAIN:
        return "evicted", f"{where}: {state}", 0, 0
    if state in ("TIMEOUT", "DEADLINE"):
        return ("hold", f"{where}: {state}, it took longer than its time limit there (batch_runtime)",
                HoldCode.JOB_EXECUTE_EXCEEDED, 0)
    if state == "OUT_OF_MEMORY":
        return "hold", f"{where}: {state}", HoldCode.JOB_OUT_OF_RESOURCES, HoldSubCode.MEMORY_EXCEEDED
    if state == "CANCELLED":
        return "hold", f"{where}: it was cancelled there", HoldCode.STARTD_HELD_JOB, 0
    said = f"; it said: {' '.join(record.said.split())}" if record.said else ""
    return ("hold", f"{where} ({state}), and its script has left no word: the machines of Slurm must see the folder of "
            f"GRIDMANAGER_FOLDER as this one does{said}", HoldCode.STARTD_HELD_JOB, 0)


SLURM = GridKind(fits=lambda job: what_it_is(job.state), shown=lambda job: shown_status(job.state, job.reason),
                 verdict=verdict, patience=4)
