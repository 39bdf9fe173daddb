"""What the options of a qsub come to as a submit description.

Options are looked up by their names as qsub has them, whose case counts.  What has no counterpart in a pool is an
error that says why and what comes nearest, so that a job runs as its author meant, or not at all.

**Source**: the manual, condor_qsub; POSIX, qsub; the resource lists of PBS.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath

from condor_actors import records
from condor_actors.messages.codes import JobStatus
from condor_actors.tools.lib.command import ToolError

__all__ = ["QsubJob", "description_of"]

MOST_TASKS = 100_000
LATE_S = 10 * 365 * 86_400
"""How late a job with a date (-a) may still begin: as good as always."""
_SIZE = re.compile(r"(\d{1,15})([kmgt]?)(?:b|w)?", re.IGNORECASE)
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_TASKS = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")
_DATE = re.compile(r"((((\d\d)?\d\d)?\d\d)?\d\d)?(\d\d)(\d\d)(?:\.(\d\d))?")
_SPAN = re.compile(r"(?:(?:(\d{1,6}):)?(\d{1,6}):)?(\d{1,9})")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VARIABLE = re.compile(r"\$(?:[A-Z_]+)?")
_WORD = re.compile(r"[A-Za-z0-9_.+@:/-]+")


@records.frozen(kw_only=True)
class QsubJob:
    """What is submitted.

    Attributes:
        script: path of the script, or of the program when ``is_program``.
        arguments: of it.
        is_program: it is run as it is, whatever is in it (``-b y``).
        is_runnable: it names its own interpreter and may be executed.
        options: by name, the last value of each; "" of those that have none.
        variables: the environment of the caller, for ``-v NAME``.
        folder: the caller's working directory.
    """

    script: str
    arguments: Sequence[str] = ()
    is_program: bool = False
    is_runnable: bool = True
    options: Mapping[str, str]
    variables: Mapping[str, str]
    folder: str

    @property
    def name(self) -> str:
        """What the job is called, and its output files after it."""
        name = self.options.get("N") or PurePath(self.script).name
        if not _WORD.fullmatch(name):
            raise _wrong("N", name, "letters, digits and _ . + @ : / -")
        return PurePath(name).name


def description_of(job: QsubJob, now_s: float) -> str:
    """The submit description.

    Args:
        job: what is submitted.
        now_s: seconds since 1970; dates of ``-a`` without a day are the next such time.

    Raises:
        ToolError: an option's value is wrong, or cannot be had; says which.
    """
    options, lines = job.options, _program(job)
    wanted: list[str] = []
    lines += [f"batch_name = {job.name}", f"initialdir = {_folder(job)}"]
    tasks = _tasks(options["t"]) if "t" in options else None
    lines += _files(job, ".$(task)" if tasks else "")
    for name, add in _SIMPLE.items():
        if name in options:
            lines += add(options[name])
    if "a" in options:
        lines += [f"deferral_time = {_date(options['a'], now_s)}", f"deferral_window = {LATE_S}"]
    if "l" in options:
        for line in _resources(options["l"]):
            (wanted if line.startswith("(") else lines).append(line)
    if wanted:
        lines.append(f"requirements = {' && '.join(wanted)}")
    lines += _environment(job, tasks)
    if tasks is None:
        return "\n".join([*lines, "queue", ""])
    first, last, step = tasks
    count = (last - first) // step + 1
    return "\n".join([f"task = $INT(place)\nplace = {first} + $(Process) * {step}", *lines, f"queue {count}", ""])


def _wrong(option: str, value: str, form: str) -> ToolError:
    return ToolError(f"condor_qsub: -{option} {value}: it has the form {form}")


def _program(job: QsubJob) -> list[str]:
    """What is run: the script itself, or the shell that reads it."""
    shell = job.options.get("S") or ("" if job.is_program or job.is_runnable else "/bin/sh")
    words = list(job.arguments)
    if not shell:
        lines = [f"executable = {_path(job, job.script)}"]
        if job.is_program and job.script.startswith(("/bin/", "/usr/")):
            lines.append("transfer_executable = false")
    else:
        lines = [f"executable = {_path(job, shell)}", "transfer_executable = false"]
        words.insert(0, PurePath(job.script).name)
    inputs = [_path(job, job.script)] if shell else []
    stage_in, stage_out = ([_path(job, each) for each in files] for files in _staged(job.options.get("W", "")))
    if inputs + stage_in:
        lines.append(f"transfer_input_files = {', '.join(inputs + stage_in)}")
    if stage_out:
        lines.append(f"transfer_output_files = {', '.join(stage_out)}")
    if words:
        lines.append(f'arguments = "{" ".join(_quoted(each) for each in words)}"')
    return [*lines, "should_transfer_files = yes", "when_to_transfer_output = on_exit"]


def _quoted(word: str) -> str:
    """A word within a double-quoted list of arguments or variables."""
    if any(each in word for each in "\n\r"):
        raise ToolError(f"condor_qsub: {word!r}: a word of a job cannot have a line end in it")
    inner = word.replace("'", "''").replace('"', '""').replace("$", "$(DOLLAR)")
    return f"'{inner}'" if not word or any(each.isspace() or each == "'" for each in word) else inner


def _folder(job: QsubJob) -> str:
    return _path(job, os.path.normpath(os.path.join(job.folder, job.options.get("d", ""))))


def _path(job: QsubJob, text: str) -> str:
    """A path as a description has it; the names of qsub's own variables in it mean what they mean there."""
    if not text.isprintable() or "," in text:
        raise ToolError(f"condor_qsub: {text!r}: names of files with commas or control characters cannot be said here")
    known = {"$JOB_ID": "$(Cluster)", "$TASK_ID": "$(task)", "$JOB_NAME": job.name,
             "$HOME": job.variables.get("HOME", "")}
    return _VARIABLE.sub(lambda found: known.get(found[0], found[0].replace("$", "$(DOLLAR)")), text)


def _staged(text: str) -> tuple[list[str], list[str]]:
    """The files of ``-W stagein=FILE@HOST:FILE,…`` and ``stageout``."""
    found: dict[str, list[str]] = {"stagein": [], "stageout": []}
    kind = ""
    for part in filter(None, text.split(",")):
        name, equals, file = part.partition("=")
        if equals and "@" not in name:
            kind = name.strip().lower()
            if kind not in found:
                nearest = "; condor_submit_dag runs jobs that depend on others" if kind == "depend" else ""
                raise ToolError(f"condor_qsub: -W {name}: only stagein and stageout are known{nearest}")
        elif not kind:
            raise _wrong("W", text, "stagein=FILE@HOST:FILE or stageout=FILE@HOST:FILE")
        else:
            file = part
        found[kind].append(file.split(":")[-1].strip())
    return found["stagein"], found["stageout"]


def _tasks(text: str) -> tuple[int, int, int]:
    """First, last and step of an array."""
    found = _TASKS.fullmatch(text)
    first = int(found[1]) if found else 0
    last, step = (int(found[2] or first), int(found[3] or 1)) if found else (0, 0)
    if not found or step < 1 or last < first:
        raise _wrong("t", text, "FIRST[-LAST[:STEP]], with LAST not before FIRST")
    if (last - first) // step >= MOST_TASKS:
        raise ToolError(f"condor_qsub: -t {text}: more than {MOST_TASKS} tasks; condor_submit with max_materialize has "
                        "more")
    return first, last, step


def _local(path: str) -> str:
    """A file of ``[HOST:]FILE``."""
    host, colon, file = path.partition(":")
    return file if colon and "/" not in host else path


def _files(job: QsubJob, task: str) -> list[str]:
    options = job.options
    out, error = (_path(job, _local(options[name])) if options.get(name) else "" for name in "oe")
    joined = options.get("j", "n").lower()
    if not set(joined) <= set("eony"):
        raise _wrong("j", options["j"], "eo, oe, n, y")
    if joined != "n" and ("y" in joined or {"e", "o"} <= set(joined)):
        out = error = out or error or f"{job.name}.o$(Cluster)"
    out, error = out or f"{job.name}.o$(Cluster)", error or f"{job.name}.e$(Cluster)"
    lines = [f"{which} = {path if task.lstrip('.') in path or path == os.devnull else path + task}"
             for which, path in (("output", out), ("error", error))]
    return lines + ([f"input = {_path(job, _local(options['i']))}"] if options.get("i") else [])


def _environment(job: QsubJob, tasks: tuple[int, int, int] | None) -> list[str]:
    words = []
    for part in filter(None, job.options.get("v", "").split(",")):
        name, equals, value = part.strip().partition("=")
        if not _NAME.fullmatch(name):
            raise _wrong("v", part, "NAME or NAME=VALUE")
        if not equals:
            if name not in job.variables:
                raise ToolError(f"condor_qsub: -v {name}: there is no such variable here; -v {name}=VALUE sets it")
            value = job.variables[name]
        words.append(f"{name}={_quoted_value(value)}")
    if tasks is not None:
        first, last, step = tasks
        words += ["SGE_TASK_ID=$(task)", "PBS_ARRAYID=$(task)", f"SGE_TASK_FIRST={first}", f"SGE_TASK_LAST={last}",
                  f"SGE_TASK_STEPSIZE={step}"]
    return ([f'environment = "{" ".join(words)}"'] if words else []) + (["getenv = true"] if "V" in job.options else [])


def _quoted_value(value: str) -> str:
    return _quoted(value) if value else "''"


def _date(text: str, now_s: float) -> int:
    """The second that ``[[[[CC]YY]MM]DD]hhmm[.SS]`` names; without a day it is the next time of that kind."""
    found = _DATE.fullmatch(text)
    if found is None:
        raise _wrong("a", text, "[[[[CC]YY]MM]DD]hhmm[.SS]")
    digits, now = found[1] or "", time.localtime(now_s)
    fields = [int(digits[max(0, end - 2):end]) for end in range(len(digits), 0, -2)]  # DD, MM, YY, CC
    day, month, year = (fields + [None] * 3)[:3] if fields else (None, None, None)
    century = fields[3] if len(fields) > 3 else now.tm_year // 100
    hour, minute, second = int(found[5]), int(found[6]), int(found[7] or 0)
    whole_year = century * 100 + year if year is not None else now.tm_year
    if hour > 23 or minute > 59 or second > 60 or not 1 <= (day or 1) <= 31 or not 1 <= (month or 1) <= 12:
        raise _wrong("a", text, "[[[[CC]YY]MM]DD]hhmm[.SS], a time that there is")

    def at(later: int) -> float:
        """So many days, months or years later, whichever is not said."""
        parts = [whole_year + (later if month is not None and year is None else 0),
                 (month or now.tm_mon) + (later if day is not None and month is None else 0),
                 (day or now.tm_mday) + (later if day is None else 0)]
        return time.mktime((parts[0], parts[1], parts[2], hour, minute, second, 0, 0, -1))

    when_s = at(0)
    return int(when_s if when_s >= now_s or year is not None else at(1))


def _size_bytes(option: str, text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise _wrong("l", f"{option}={text}", f"{option}=NUMBER, with Kb, Mb, Gb or Tb behind it or in bytes")
    return int(found[1]) << _UNITS[found[2].lower()]


def _count(option: str, text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 100_000:
        raise _wrong("l", f"{option}={text}", f"{option}=NUMBER")
    return int(text)


def _seconds(option: str, text: str) -> int:
    found = _SPAN.fullmatch(text)
    if found is None:
        raise _wrong("l", f"{option}={text}", f"{option}=[[HH:]MM:]SS")
    return int(found[1] or 0) * 3600 + int(found[2] or 0) * 60 + int(found[3])


def _is(attribute: str, text: str) -> str:
    word = text.strip('"')
    if not _WORD.fullmatch(word):
        raise _wrong("l", f"{attribute}={text}", "one word")
    return f'(TARGET.{attribute} == "{word}")'


_RESOURCES: dict[str, Callable[[str], str]] = {
    "arch": lambda text: _is("Arch", text),
    "opsys": lambda text: _is("OpSys", text),
    "host": lambda text: _is("Machine", text),
    "file": lambda text: f"request_disk = {-(-_size_bytes('file', text) // 1024)}",
    "mem": lambda text: f"request_memory = {-(-_size_bytes('mem', text) // (1 << 20))}",
    "pmem": lambda text: f"request_memory = {-(-_size_bytes('pmem', text) // (1 << 20))}",
    "procs": lambda text: f"request_cpus = {_count('procs', text)}",
    "ncpus": lambda text: f"request_cpus = {_count('ncpus', text)}",
    "walltime": lambda text: f"allowed_job_duration = {_seconds('walltime', text)}",
}


def _resources(text: str) -> list[str]:
    lines = []
    for part in filter(None, text.split(",")):
        name, equals, value = part.strip().partition("=")
        if name == "nodes" and equals:
            lines += _nodes(value)
        elif name in _RESOURCES and equals:
            lines.append(_RESOURCES[name](value))
        else:
            known = ", ".join(sorted([*_RESOURCES, "nodes"]))
            raise ToolError(f"condor_qsub: -l {part}: it is none of {known}, with a value")
    return lines


def _nodes(text: str) -> list[str]:
    """One node: ``1:ppn=4:gpus=1``, or a host in place of the number."""
    node, *properties = text.split(":")
    if "+" in text or (node.isdecimal() and int(node) != 1):
        raise ToolError(f"condor_qsub: -l nodes={text}: a job on several nodes is one of the parallel universe "
                        "(machine_count), which condor_submit has")
    lines = [] if node == "1" else [_is("Machine", node)]
    for each in properties:
        name, equals, value = each.partition("=")
        if not equals or name not in ("ppn", "gpus"):
            raise ToolError(f"condor_qsub: -l nodes={text}: machines have no property {each}; -l host=NAME asks for "
                            "one machine")
        lines.append(f"request_{'cpus' if name == 'ppn' else 'gpus'} = {_count(name, value)}")
    return lines


def _mail(text: str) -> list[str]:
    if "b" in text:
        raise ToolError(f"condor_qsub: -m {text}: no mail is sent when a job begins; its event log tells of it")
    if not text or not set(text) <= set("aens"):
        raise _wrong("m", text, "a, e or n")
    return [f"notification = {'Never' if 'n' in text else 'Complete' if 'e' in text else 'Error'}"]


def _rerun(text: str) -> list[str]:
    if text.lower() not in ("y", "n"):
        raise _wrong("r", text, "y or n")
    return [f"periodic_remove = JobStatus == {int(JobStatus.IDLE)} && NumJobStarts > 0"] if text.lower() == "n" else []


def _priority(text: str) -> list[str]:
    if not re.fullmatch(r"[+-]?\d{1,9}", text):
        raise _wrong("p", text, "a whole number")
    return [f"priority = {int(text)}"]


def _one_word(option: str, command: str) -> Callable[[str], list[str]]:
    def add(text: str) -> list[str]:
        if not all(_WORD.fullmatch(each) for each in text.split(",")):
            raise _wrong(option, text, "one word")
        return [f"{command} = {text}"]

    return add


_SIMPLE: dict[str, Callable[[str], list[str]]] = {
    "A": _one_word("A", "accounting_group"),
    "h": lambda _: ["hold = true"],
    "m": _mail,
    "M": _one_word("M", "notify_user"),
    "p": _priority,
    "r": _rerun,
}
