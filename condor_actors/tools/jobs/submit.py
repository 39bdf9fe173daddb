"""condor_submit: queue the jobs of a submit description.

Standard output has ``Submitting job(s)``, a dot a job, and ``N job(s) submitted to cluster C.``; standard error stays
empty when all went well.  Nothing is queued unless the whole description is right, and a number is printed only after
its jobs are on disk.

**Source**: the manual, condor_submit.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from condor_actors.classads import quote
from condor_actors.submit import Cluster, Description, Environment, Options, SubmitError
from condor_actors.tools.lib.command import ToolError, Words, run
from condor_actors.tools.lib.contact import load
from condor_actors.tools.lib.flags import MANY, Flag, Given
from condor_actors.tools.pool.version import platform_line, version_line
from condor_actors.wire.blocking import AT_ONCE, LinkLost, RequestRefused, TimedOut, WireError

if TYPE_CHECKING:
    from condor_actors.config import Config
    from condor_actors.messages.submission import SubmitPage
    from condor_actors.tools.lib.contact import Schedd

PAGE_BYTES = 384 * 1024
MOST_NUMBERS = 1000
"""Cluster numbers that a schedd gives away at once."""
RETURN_S = 60.0
"""How long a schedd that went away during a submission is given to come back and say what became of it."""
FLAGS = (
    Flag("verbose"),
    Flag("terse", 3),
    Flag("disable"),
    Flag("dry-run", 3, 1, colon=True),
    Flag("debug", 2),
    Flag("dump", 2, 1),
    Flag("append", 1, 1),
    Flag("address", 2, 1),
    Flag("allow-crlf-script", 2),
    Flag("batch-name", 1, 1),
    Flag("batch-id", 7, 1),
    Flag("capabilities", 3),
    Flag("factory", 2),
    Flag("file", 2, 1),
    Flag("help"),
    Flag("interactive"),
    Flag("maxjobs", 3, 1),
    Flag("name", 1, 1),
    Flag("password", 3, 1),
    Flag("pool", 2, 1),
    Flag("queue", 1, MANY),
    Flag("remote", 1, 1),
    Flag("single-cluster", 3),
    Flag("spool", 1),
    Flag("unused", 1),
    Flag("version", 4),
)


@attrs.define
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
    options: Options = attrs.Factory(Options)


def main() -> int:
    """Entry of ``condor_submit``."""
    return run(FLAGS, USAGE, _answer, words=Words(
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
        if not call.is_terse and not call.is_verbose:
            print("Submitting job(s)", end="", flush=True)
        submission = _Submission(call, config, there)
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
        return submission.queue(clusters)


class _Submission:
    """Sends clusters to a schedd and says what became of them."""

    def __init__(self, call: Call, config: Config, there: Schedd) -> None:
        self._call = call
        self._config = config
        self._there = there
        self._numbers: deque[int] = deque()
        self._next_count = 1

    def reserve(self) -> int:
        """The number of a new cluster; a description that goes on to want more gets more and more at once."""
        from condor_actors.messages.submission import ClusterReserved, ReserveCluster

        if not self._numbers:
            answer: ClusterReserved = self._asked(ReserveCluster(count=self._next_count))
            self._numbers = deque(range(answer.cluster_id, answer.cluster_id + self._next_count))
            self._next_count = min(2 * self._next_count, MOST_NUMBERS)
        return self._numbers.popleft()

    def queue(self, clusters: list[Cluster]) -> int:
        """Send everything; report on standard output as the manual has it."""
        call = self._call
        if call.is_verbose:
            print("".join(_verbose(cluster) for cluster in clusters), end="")
        elif not call.is_terse:
            print("." * sum(len(cluster.procs) for cluster in clusters))
        if call.options.spool:
            from condor_actors.tools.lib.spooling import spool_inputs

            for number, cluster in enumerate(clusters):
                self._send(clusters[number : number + 1], clusters[:number])
                spool_inputs(self._there, cluster.cluster_id, cluster.ad, cluster.procs)
                self._report(cluster)
        else:
            self._send(clusters, [])
            for cluster in clusters:
                self._report(cluster)
        sys.stdout.flush()
        if call.options.interactive:
            from condor_actors.tools.lib.interactive import enter_job

            return enter_job(self._there, clusters[0].cluster_id)
        return 0

    def _report(self, cluster: Cluster) -> None:
        last = len(cluster.procs) - 1
        if self._call.is_terse:
            print(f"{cluster.cluster_id}.0 - {cluster.cluster_id}.{last}")
        elif not self._call.is_verbose:
            print(f"{last + 1} job(s) submitted to cluster {cluster.cluster_id}.")

    def _send(self, clusters: list[Cluster], before: list[Cluster]) -> None:
        """Send the pages of clusters, some on their way together.

        Raises:
            ToolError: one is refused, or the schedd went away; says which were queued.
        """
        queued = [cluster.cluster_id for cluster in before]
        problem = ""
        sent = [(cluster, page) for cluster in clusters for page in self._pages(cluster)]
        done = 0
        try:
            for (cluster, page), answer in zip(sent, self._there.ask_all(page for _, page in sent), strict=True):
                done += 1
                if isinstance(answer, RequestRefused):
                    problem = problem or f"Failed to queue the jobs.\nERROR: {answer}"
                elif page.last:
                    queued.append(cluster.cluster_id)
        except (LinkLost, TimedOut) as error:
            queued += [cluster.cluster_id for cluster, page in sent[done:done + AT_ONCE]
                       if page.last and self._was_queued(cluster.cluster_id)]
            if len(queued) == len(before) + len(clusters):
                return
            problem = problem or f"Failed to queue the jobs: {error}" + ("" if queued else "; nothing was queued")
        except WireError as error:
            problem = f"Failed to queue the jobs: the schedd does not answer ({error})"
        if problem:
            raise ToolError(f"{problem}\n(queued: cluster {ranges(queued)})" if queued else problem)

    def _pages(self, cluster: Cluster) -> Iterator[SubmitPage]:
        from condor_actors.messages.submission import SubmitPage

        pages = list(pages_of(cluster))
        first = 0
        for number, procs in enumerate(pages):
            yield SubmitPage(cluster_id=cluster.cluster_id, page=number, cluster_ad=cluster.ad if number == 0 else b"",
                             procs=procs, first_proc=first, last=number == len(pages) - 1,
                             spool=self._call.options.spool)
            first += len(procs)

    def _asked(self, message: Any) -> Any:

        try:
            return self._there.ask(message)
        except RequestRefused as error:
            raise ToolError(f"Failed to queue the jobs.\nERROR: {error}") from None
        except (LinkLost, TimedOut):
            raise
        except WireError as error:
            raise ToolError(f"Failed to queue the jobs: the schedd does not answer ({error})") from None

    def _was_queued(self, cluster_id: int) -> bool:
        """Whether a submission was committed though its answer got lost: ask the schedd when it is back.

        Raises:
            ToolError: it does not come back; the jobs may be queued or not.
        """
        from condor_actors.messages.queue import QueryJobs
        from condor_actors.tools.lib.contact import schedd

        call, deadline_s = self._call, time.monotonic() + RETURN_S
        while time.monotonic() < deadline_s:
            try:
                self._there = schedd(self._config, name=call.name, pool=call.pool, address=call.address)
                return any(
                    self._there.ask(QueryJobs(source=source, ids=((cluster_id, -1),), limit=1)).ads
                    for source in ("queue", "history")
                )
            except (ToolError, WireError):
                time.sleep(1.0)
        raise ToolError(
            f"The schedd went away while cluster {cluster_id} was submitted; "
            f"see with 'condor_q {cluster_id}' whether it is queued before you submit again"
        )


def ranges(numbers: Sequence[int]) -> str:
    """``1-3, 7`` for 1, 2, 3 and 7."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def pages_of(cluster: Cluster) -> Iterator[tuple[bytes, ...]]:
    """The procs of a cluster in pages that fit a message."""
    page: list[bytes] = []
    room = PAGE_BYTES - len(cluster.ad)
    for text in cluster.procs:
        if page and (room < len(text) + 5 or len(page) >= 50_000):
            yield tuple(page)
            page, room = [], PAGE_BYTES
        page.append(text)
        room -= len(text) + 5
    yield tuple(page)


def environment(config: Config, *, submit_method: int = 0) -> Environment:
    """The caller's world."""
    import pwd

    from condor_actors.tools.lib.submit_files import LocalFiles

    return Environment(
        cwd=os.getcwd(),
        environ=os.environ,
        user=pwd.getpwuid(os.getuid()).pw_name,
        now_s=int(time.time()),
        arch=config.needed_text("ARCH"),
        opsys=config.needed_text("OPSYS"),
        files=LocalFiles(),
        setting=config.text,
        version=version_line(),
        platform=platform_line(),
        automatic={
            name: config.text(name) or ""
            for name in ("OPSYSANDVER", "OPSYSVER", "OPSYSMAJORVER", "SPOOL", "FULL_HOSTNAME")
        },
        submit_method=submit_method,
    )


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
        return sys.stdin.buffer.read().decode("utf-8", "surrogateescape"), ""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read(), path


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
        elif item.name in ("spool", "interactive", "disable"):
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


USAGE = """Usage: condor_submit [options] [<attrib>=<value>] [- | <submit-file>]
    With no <submit-file>, the description is read from standard input.

    [options]
      -terse                     show job id ranges only
      -verbose                   show the whole ad of each job
      -append <line>             add a line before the first queue statement
      -queue <args>              a queue statement, for a description without one
      -batch-name <name>         name the batch of these jobs
      -maxjobs <n>               refuse a description of more jobs
      -single-cluster            refuse a description of several clusters
      -spool                     copy all input to the schedd; fetch results with condor_transfer_data
      -dry-run <file>            write the job ads to a file (- for standard output) and queue nothing
      -dump <file>               write whole job ads to a file and queue nothing
      -interactive               submit a job and open a shell in it
      -name <schedd>  -remote <schedd>  -pool <host>  -addr <address>
      -unused                    switch warnings about unused macros
      -allow-crlf-script         take scripts with DOS line ends
      -disable                   look at no files beforehand (but the executable)
      -debug -help -version"""

if __name__ == "__main__":
    sys.exit(main())
