"""condor_submit: queue the jobs of a submit description.

Standard output has ``Submitting job(s)``, a dot a job, and ``N job(s) submitted to cluster C.``; standard error stays
empty when all went well.  Nothing is queued unless the whole description is right, and a number is printed only after
its jobs are on disk.

**Source**: the manual, condor_submit.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from condor_actors import records
from condor_actors.classads import quote
from condor_actors.submit import Cluster, Description, Options, SubmitError
from condor_actors.tools.lib.command import ToolError, Words, run
from condor_actors.tools.lib.contact import load
from condor_actors.tools.lib.flags import MANY, NO_DEBUG, Flag, Given
from condor_actors.tools.lib.submission import Submission, environment, make_logs
from condor_actors.wire.blocking import WireError
from condor_actors.written_text import MOST_BYTES, read_written, written_text

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from condor_actors.config import Config
    from condor_actors.tools.lib.contact import Schedd

FLAGS = (
    Flag("verbose"),
    Flag("terse", 3),
    Flag("disable"),
    Flag("dry-run", 3, 1, colon=True),
    Flag("debug", 2, idle=NO_DEBUG),
    Flag("dump", 2, 1),
    Flag("append", 1, 1),
    Flag("address", 2, 1),
    Flag("allow-crlf-script", 2),
    Flag("batch-name", 1, 1),
    Flag("batch-id", 7, 1),
    Flag("capabilities", 3, refused="a schedd takes what this condor_submit writes; what it refuses it says when it is "
                                    "asked to take it"),
    Flag("factory", 2),
    Flag("file", 2, 1),
    Flag("help"),
    Flag("interactive"),
    Flag("maxjobs", 3, 1),
    Flag("name", 1, 1),
    Flag("password", 3, 1, idle="nobody is known by a password"),
    Flag("pool", 2, 1),
    Flag("queue", 1, MANY),
    Flag("remote", 1, 1),
    Flag("single-cluster", 3),
    Flag("spool", 1),
    Flag("unused", 1),
    Flag("version", 4),
)


@records.define
class Call:
    """The command line, understood."""

    file: str = ""
    is_bare: bool = False
    is_terse: bool = False
    is_verbose: bool = False
    dry_run: str = ""
    is_full: bool = False
    dump: str = ""
    unused: bool = False
    name: str = ""
    pool: str = ""
    address: str = ""
    options: Options = records.Factory(Options)


def main() -> int:
    """Entry of ``condor_submit``."""
    return run(FLAGS, "condor_submit", _answer, words=Words(
        unknown="\nERROR: Unrecognized option: {word}\n{usage}", failure="\nERROR: {text}",
        missing="\nERROR: {word} requires another argument\n{usage}"))  # fmt: skip


def _answer(given: Sequence[Given]) -> int:
    try:
        return _submit(_call(given))
    except WireError as error:
        return _fail(f"the schedd does not answer ({error})")
    except KeyboardInterrupt:
        return _fail("interrupted")


def _submit(call: Call) -> int:
    try:
        text, source = ("", "") if call.is_bare else _read(call.file)
    except OSError as error:
        return _fail(f"Failed to open command file ({call.file}) ({error.strerror})")
    config = load("SUBMIT")
    if call.dry_run or call.dump:
        return _without_schedd(call, config, text, source)
    from condor_actors.tools.lib.contact import schedd

    with schedd(config, name=call.name, pool=call.pool, address=call.address) as there:
        if _lacks_files(config, there) and not (call.options.spool or call.options.disable):
            return _fail(f"the schedd {there.name} is on {there.machine}, which lacks the files of this machine.\n"
                         f"    condor_submit -spool -name {there.name} sends them along, and condor_transfer_data "
                         f"-name {there.name} fetches the results.\n    Where the machines share their files, "
                         "FILESYSTEM_DOMAIN says so; -disable submits all the same.")
        if not call.is_terse and not call.is_verbose:
            print("Submitting job(s)", end="", flush=True)
        submission = Submission(there, lambda: schedd(config, name=call.name, pool=call.pool, address=call.address),
                                spool=call.options.spool)
        description = Description(environment(config), submission.reserve, call.options)
        try:
            clusters = description.read(text, source)
        except SubmitError as error:
            return _submit_error(error, description)
        _warn(description, call, config)
        if not clusters and not call.is_terse:
            sys.stdout.flush()
            name = source or "(stdin)"
            print(f'\nWARNING: "{name}" has only empty "queue" commands -- no jobs queued', file=sys.stderr)
        status = _Report(call, submission).queue(clusters)
        from condor_actors.tools.jobs.pool_size import too_large

        for sentence in too_large(config, clusters, call.pool):
            print(f"\nWARNING: {sentence}", file=sys.stderr)
        return status


def _lacks_files(config: Config, there: Schedd) -> bool:
    """Whether a schedd is on another machine, and no file system is known to be shared."""
    own = config.full_hostname.lower()
    domain = (config.text("FILESYSTEM_DOMAIN") or "").lower()
    return bool(there.machine) and there.machine.lower() != own and domain in ("", own)


class _Report:
    """Sends clusters to a schedd and says on standard output what became of them, as the manual has it."""

    def __init__(self, call: Call, submission: Submission) -> None:
        self._call = call
        self._submission = submission

    def queue(self, clusters: list[Cluster]) -> int:
        """Send everything."""
        call = self._call
        if call.is_verbose:
            print("".join(_verbose(cluster) for cluster in clusters), end="")
        elif not call.is_terse:
            print("." * sum(1 if cluster.is_factory else len(cluster.procs) for cluster in clusters))
        if call.options.spool:
            from condor_actors.tools.lib.spooling import spool_inputs

            for number, cluster in enumerate(clusters):
                self._submission.send(clusters[number : number + 1], clusters[:number])
                spool_inputs(self._submission.there, cluster.cluster_id, cluster.ad, cluster.procs)
                self._report(cluster)
        else:
            self._submission.send(clusters)
            if not (call.name or call.pool or call.address):
                make_logs(clusters)
            for cluster in clusters:
                self._report(cluster)
        sys.stdout.flush()
        if call.options.interactive:
            from condor_actors.tools.lib.visits.interactive_job import enter_job

            return enter_job(self._submission.there, clusters[0].cluster_id)
        return 0

    def _report(self, cluster: Cluster) -> None:
        last = len(cluster.procs) - 1
        if self._call.is_terse:
            print(f"{cluster.cluster_id}.0 - {cluster.cluster_id}.{last}")
        elif not self._call.is_verbose:
            print(f"{last + 1} job(s) submitted to cluster {cluster.cluster_id}.")


def _without_schedd(call: Call, config: Config, text: str, source: str) -> int:
    """``-dry-run`` and ``-dump``: the ads go to a file."""
    numbers = iter(range(1, 1_000_000))
    target = call.dry_run or call.dump
    if not call.is_terse:
        print("Dry-Run job(s)" if call.dry_run else "Storing job ClassAd(s)", end="", flush=True)
    description = Description(environment(config), lambda: next(numbers), call.options)
    try:
        clusters = description.read(text, source)
    except SubmitError as error:
        return _submit_error(error, description)
    _warn(description, call, config)
    body = "".join(_dry(cluster, call.is_full) if call.dry_run else _dumped(cluster) for cluster in clusters)
    jobs = sum(len(cluster.procs) for cluster in clusters)
    if target == "-":
        print("\n" + body, end="")
    else:
        try:
            with open(target, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(body)
        except OSError as error:
            return _fail(f"Failed to open file -dry-run output file ({error.strerror})")
        if not call.is_terse:
            print("." * jobs)
    for cluster in clusters:
        if call.is_terse:
            print(f"{cluster.cluster_id}.0 - {cluster.cluster_id}.{len(cluster.procs) - 1}")
        else:
            done = "dry-run to" if call.dry_run else "stored in"
            print(f"{len(cluster.procs)} job(s) {done} cluster {cluster.cluster_id}.")
    return 0


def _ads(cluster: Cluster) -> Iterator[tuple[int, str]]:
    """Each job's number and whole ad in long form."""
    from condor_actors.classads import ClassAd
    from condor_actors.tools.printing.formats import projected

    common = ClassAd.from_bytes(cluster.ad)
    for number, text in enumerate(cluster.procs):
        ad = ClassAd.from_bytes(text)
        ad.parent = common
        ad["ProcId"] = number
        yield number, projected(ad.flat(), ()).to_text()


def _verbose(cluster: Cluster) -> str:
    return "".join(f"\n** Proc {cluster.cluster_id}.{number}:\n{text}" for number, text in _ads(cluster)) + "\n"


def _dumped(cluster: Cluster) -> str:
    return "".join(f"{text}\n" for _, text in _ads(cluster))


def _dry(cluster: Cluster, is_full: bool) -> str:
    """The first job whole, of each other what differs or all; ``Name=value`` lines, an empty line behind each."""
    from condor_actors.classads import ClassAd

    out = []
    for number, text in _ads(cluster):
        if number and not is_full:
            text = f"ProcId = {number}\n" + ClassAd.from_bytes(cluster.procs[number]).to_text()
        out.append("".join(line.replace(" = ", "=", 1) + "\n" for line in text.splitlines()) + "\n")
    return "".join(out)


def _read(path: str) -> tuple[str, str]:
    """The description and its name for messages."""
    if path in ("", "-"):
        return written_text(sys.stdin.buffer.read(MOST_BYTES + 1), path), ""
    return read_written(path), path


def _call(given: Sequence[Given]) -> Call:
    call = Call()
    assignments: list[tuple[str, str]] = []
    appended: list[str] = []
    changes: dict[str, object] = {}
    for item in given:
        value = item.values[0] if item.values else ""
        if not item.name:
            _operand(call, value, assignments)
        elif item.name == "append":
            word, _, rest = value.strip().partition(" ")
            if word.lower() == "queue":
                changes["queue"] = rest
            else:
                appended.append(value)
        elif item.name == "queue":
            changes["queue"] = " ".join(item.values)
        elif item.name == "maxjobs":
            if not value.lstrip("-").isdecimal():
                raise ToolError(f"-maxjobs {value}: expected a number of jobs")
            changes["max_jobs"] = max(int(value), 0)
        elif item.name == "batch-name":
            changes["batch_name"] = value
        elif item.name == "batch-id":
            appended.append("MY.JobBatchId = " + (value if value.startswith('"') else quote(value)))
        elif item.name in ("spool", "interactive", "disable", "factory"):
            changes[item.name] = True
        elif item.name == "allow-crlf-script":
            changes["allow_crlf"] = True
        elif item.name == "single-cluster":
            changes["single_cluster"] = True
        else:
            _outer_flag(call, item.name, value, item.qualifier, changes)
    call.is_bare = not call.file and ("queue" in changes or "interactive" in changes)
    if call.file == "-" and not call.is_terse:
        call.is_verbose = True
    call.options = Options(assignments=tuple(assignments), appended=tuple(appended), **changes)  # type: ignore[arg-type]  # checked above
    return call


def _operand(call: Call, word: str, assignments: list[tuple[str, str]]) -> None:
    name, equals, value = word.partition("=")
    name = name.strip()
    if equals and name.lstrip("+").replace(".", "_").isidentifier():
        assignments.append((name, value.strip()))
        return
    if call.file:
        raise ToolError(f"only one submit description can be given: {call.file} or {word}?")
    call.file = word


def _outer_flag(call: Call, name: str, value: str, qualifier: str, changes: dict[str, object]) -> None:
    if name == "terse":
        call.is_terse, call.is_verbose = True, False
    elif name == "verbose":
        call.is_verbose, call.is_terse = True, False
    elif name == "file":
        call.file = value
    elif name in ("dry-run", "dump"):
        setattr(call, name.replace("-", "_"), value)
        changes["refuses"] = False
        call.is_full = "full" in qualifier.split(",")
    elif name == "unused":
        call.unused = True
    elif name == "name":
        call.name = value
    elif name == "remote":
        call.name = value
        changes["spool"] = True
    elif name == "pool":
        call.pool = value
    elif name == "address":
        call.address = value


def _warn(description: Description, call: Call, config: Config) -> None:
    for sentence in description.warnings:
        print(f"\nWARNING: {sentence}", file=sys.stderr)
    wanted = config.boolean("WARN_ON_UNUSED_SUBMIT_FILE_MACROS")
    if wanted != call.unused:
        for sentence in description.unused():
            print(f"\nWARNING: {sentence}", file=sys.stderr)


def _submit_error(error: SubmitError, description: Description) -> int:
    if error.parsing:
        file = error.file or "<stdin>"
        return _fail(
            f"on Line {error.line} of {file}: {error.problem}\n\n"
            f"ERROR: Failed to parse command file (line {error.line})."
        )
    notes = (description.blamed(error), error.remedy)
    return _fail("\n".join([error.problem, *(f"    {note}" for note in notes if note)]))


def _fail(text: str) -> int:
    sys.stdout.flush()
    print(f"\nERROR: {text}", file=sys.stderr)
    return 1



if __name__ == "__main__":
    sys.exit(main())
