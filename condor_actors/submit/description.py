"""A submit description, read from top to bottom.

Theory: a description is a little program.  Assignments change the commands; ``if``, ``include`` and ``use`` steer the
reading; ``queue`` takes the commands as they stand then and makes jobs of them.  Reading makes all jobs before any is
sent, so a mistake in the last line queues nothing.

Several queue statements fill one cluster, unless executable or universe changed in between.

**Source**: the manual, condor_submit and "HTCondor Job Description Language".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from condor_actors import records
from condor_actors.classads import ClassAdSyntaxError, Expr
from condor_actors.messages.codes import Universe
from condor_actors.patterns import late
from condor_actors.submit.build_context import BuildContext, parsed
from condor_actors.submit.clusters import Cluster, queue_jobs
from condor_actors.submit.environment import Environment
from condor_actors.submit.errors import MOST_QUOTED, SubmitError, printable
from condor_actors.submit.itemdata import Itemdata
from condor_actors.submit.keywords import is_known, nearest
from condor_actors.submit.lines import MOST_NESTED, Branch, Line, LineReader
from condor_actors.submit.macros import Scope, references, substitute_itself
from condor_actors.submit.maker import Maker
from condor_actors.submit.program import universe
from condor_actors.submit.queue_statement import QueueStatement, is_queue, load_items, parse_queue
from condor_actors.submit.refusals import place_of, refuse, told

MAX_INCLUDE_DEPTH = 8
PARALLEL_NODE = "#pArAlLeLnOdE#"
"""What $(Node) becomes: the schedd puts each node's number in its place."""
MAX_JOBS = 1_000_000
MAX_FACTORY_JOBS = 10_000_000
_ASSIGNMENT = late(r"(\+?[A-Za-z_][\w.]*)\s*=\s*(.*)\Z", "s")
_DIRECTIVE = late(r"(include|use|warning|error)\b\s*(.*?)\s*:\s*(.*)\Z", "is")
_DEFINED = late(r"defined(?:\s+(\S+))?\s*\Z", "i")
_VERSION = late(r"version\s*(>=|<=|==|!=|>|<)\s*([\d.]+)\s*\Z", "i")
_TEMPLATE = late(r"(\w+)(?:\(([^)]*)(?:\)|\Z))?")
_NUMBERS = late(r"(?<!\d)\d+(?:\.\d+)+")
_CONDITION = late(r"(if|elif|else|endif)(?=\s|$|\()\s*(.*)\Z", "i")


@records.frozen(kw_only=True)
class Options:
    """How the tool was called.

    Attributes:
        assignments: ``NAME=VALUE`` arguments, as if they stood at the beginning.
        appended: ``-append`` lines, as if they stood before the first queue statement.
        queue: ``-queue`` arguments; None: none.
        batch_name: ``-batch-name``, over whatever the description says.
        spool, interactive, allow_crlf: as the flags say; ``disable``: look at no files.
        max_jobs: 0: no limit.
        factory: whether the schedd makes the jobs as they are needed; None: where the description sets limits for that.
        single_cluster: refuse a second cluster.
        refuses: whether jobs that ask for what is not done are refused; else it is a warning.
    """

    assignments: tuple[tuple[str, str], ...] = ()
    appended: tuple[str, ...] = ()
    queue: str | None = None
    batch_name: str | None = None
    spool: bool = False
    interactive: bool = False
    allow_crlf: bool = False
    disable: bool = False
    max_jobs: int = 0
    factory: bool | None = None
    single_cluster: bool = False
    refuses: bool = True


class Description:
    """Reads a description and holds the clusters that come of it.

    Args:
        world: what the description may see.
        reserve: gives the number of a new cluster, called when the first job of one is made.
        options: how the tool was called.
    """

    def __init__(self, world: Environment, reserve: Callable[[], int], options: Options | None = None) -> None:
        self.world = world
        self.options = options if options is not None else Options()
        self.clusters: list[Cluster] = []
        self.warnings: list[str] = []
        self.scope = Scope(
            live={},
            defaults={},
            environ=world.environ,
            choose=_chosen if world.random is None else world.random.randrange,
            evaluate=evaluate_text,
            cwd=world.cwd,
        )
        self._reserve = reserve
        self._sheet = BuildContext(self.scope, world, self.warnings)
        self._maker = Maker(self._sheet)
        self._program: tuple[str, str] | None = None
        self._jobs = 0
        self._queued = False
        self._only_commands = False

    def read(self, text: str, source: str) -> list[Cluster]:
        """Read a whole description.

        Args:
            text: the description.
            source: its file name for messages; empty for standard input.

        Returns:
            the clusters, in order.

        Raises:
            SubmitError: naming file and line where there is one.
        """
        self._begin(source)
        self._read(LineReader(text, source or "<stdin>"), 0)
        if self.options.queue is not None:
            self._append()
            self._queue(Line("queue " + self.options.queue, 0), LineReader("", "-queue"))
        elif not self._queued:
            if not self.options.interactive:
                raise SubmitError(f'"{source or "(stdin)"}" doesn\'t contain any "queue" commands -- no jobs queued')
            self._append()
            self._queue(Line("queue", 0), LineReader("", ""))
        return self.clusters

    def read_commands(self, text: str, source: str) -> tuple[str | None, str]:
        """Read a description up to its first queue statement, and queue nothing.

        Returns:
            the statement's arguments (None: there is none) and the text behind it.

        Raises:
            SubmitError: as `read`.
        """
        self._begin(source)
        reader = LineReader(text, source or "<text>")
        self._only_commands = True
        try:
            self._read(reader, 0)
        except _QueueReached as reached:
            arguments = reached.line.text[len("queue"):].strip()
            if self.statement(arguments).open_list:
                arguments = "\n".join([arguments, *reader.raw_rows(reached.line.number), ")"])
            return arguments, reader.rest()
        finally:
            self._only_commands = False
        return None, ""

    def go_on(self, text: str) -> None:
        """Read what stands behind a queue statement that was queued.

        Raises:
            SubmitError: as `read`.
        """
        self._read(LineReader(text, "<text>"), 0)

    def statement(self, arguments: str) -> QueueStatement:
        """What the arguments of a queue statement mean; a list in parentheses may have several lines.

        Raises:
            SubmitError: they mean nothing.
        """
        first, _, rest = arguments.partition("\n")
        statement = parse_queue(self.scope.expand(first), evaluate_text)
        if statement.open_list and rest:
            statement = statement.with_rows(LineReader(rest, "").raw_rows(1))
        return statement

    def queue(self, statement: QueueStatement) -> list[Cluster]:
        """Make the jobs of a statement, with the commands as they stand.

        Raises:
            SubmitError: as `read`.
        """
        self._enqueue(statement, "queue", "", 0)
        return self.clusters

    def _begin(self, source: str) -> None:
        self._sheet.spool, self._sheet.interactive = self.options.spool, self.options.interactive
        self._sheet.trusts_files = self.options.disable or self.options.spool
        self._set_automatic(source)
        if self.options.allow_crlf:
            self.scope.live["allow_crlf_script"] = "true"
        for name, value in self.options.assignments:
            self._assign(name, value)

    def blamed(self, error: SubmitError) -> str:
        """Where the command that an error is about stands: ``file, line N: name = value``; empty when not known."""
        return place_of(error, self.scope)

    def unused(self) -> list[str]:
        """A sentence for each macro of the user's that nothing asked for: most likely a misspelled command."""
        sentences = []
        for key, value in self.scope.assigned.items():
            if key in self.scope.used or is_known(key):
                continue
            name = self.scope.spellings.get(key, key)
            file, line = self.scope.places.get(key, ("", 0))
            meant = nearest(key) if len(key) < MOST_QUOTED else ""
            hint = f" Did you mean {meant}?" if meant else ""
            name, value = printable(name, MOST_QUOTED), printable(value, MOST_QUOTED)
            place = f" ({file}, line {line})" if line else ""
            sentences.append(f"the line '{name} = {value}' was unused by condor_submit. Is it a typo?{hint}{place}")
        return sentences

    # -- reading

    def _read(self, reader: LineReader, depth: int) -> None:
        branches: list[Branch] = []
        for line in reader:
            self.scope.referenced |= references(line.text)  # conditions, queue lines and names of files too
            condition = None if line.block is not None else _CONDITION.match(line.text)
            if condition:
                self._branch(condition.group(1).lower(), condition.group(2), branches, line, reader)
            elif all(branch.taken for branch in branches):
                self._statement(line, reader, depth)
        if branches:
            raise _wrong("if without endif", branches[-1].line, reader)

    def _statement(self, line: Line, reader: LineReader, depth: int) -> None:
        if line.block is not None:
            self._assign(line.text, line.block, (reader.source, line.number))
            return
        if is_queue(line.text):
            if depth:
                raise _wrong("Queue statement not allowed in include file or command", line, reader)
            if self.options.queue is not None:
                raise _wrong("-queue was given, but the description has a queue statement of its own", line, reader)
            if not self._queued:
                self._append()
            self._queue(line, reader)
            return
        assignment = _ASSIGNMENT.match(line.text)
        if assignment:
            self._assign(assignment.group(1), assignment.group(2), (reader.source, line.number))
            return
        directive = _DIRECTIVE.match(line.text)
        if directive is None:
            first = line.text.split(None, 1)[0].lower() if line.text.strip() else ""
            import difflib

            meant = "; did you mean queue?" if difflib.get_close_matches(first, ("queue",), 1, 0.75) else ""
            raise _wrong(f"'{line.text.strip()[:80]}': expected NAME = VALUE or queue{meant}", line, reader)
        self._direct(directive.group(1).lower(), directive.group(2), directive.group(3), line, reader, depth)

    def _assign(self, name: str, value: str, place: tuple[str, int] = ("", 0)) -> None:
        if name.startswith("+"):
            name = "MY." + name[1:]
        key = name.lower()
        if key.startswith("my."):
            name = "MY." + name[3:]
        old = self.scope.assigned.get(key, "")
        self.scope.assigned[key] = substitute_itself(value, name, old) if "$(" in value else value
        self.scope.spellings[key] = name
        self.scope.places[key] = place
        self.scope.referenced |= references(value)

    def _append(self) -> None:
        for text in self.options.appended:
            found = _ASSIGNMENT.match(text.strip())
            if found is None:
                raise SubmitError(f"-append {text}: expected NAME = VALUE", parsing=True)
            self._assign(found.group(1), found.group(2))

    def _branch(
        self, word: str, condition: str, branches: list[Branch], line: Line, reader: LineReader
    ) -> None:
        if word == "if":
            if len(branches) >= MOST_NESTED:
                raise _wrong(f"more than {MOST_NESTED} ifs within one another", line, reader)
            outer = all(branch.taken for branch in branches)
            holds = outer and self._holds(condition, line, reader)
            branches.append(Branch(line, holds, holds or not outer))
            return
        if not branches:
            raise _wrong(f"{word} without if", line, reader)
        last = branches.pop()
        if word != "endif" and last.is_else:
            raise _wrong(f"{word} behind the else of the if in line {last.line.number}", line, reader)
        if word == "elif":
            holds = not last.done and self._holds(condition, line, reader)
            branches.append(Branch(last.line, holds, last.done or holds))
        elif word == "else":
            branches.append(Branch(last.line, not last.done, True, True))

    def _holds(self, condition: str, line: Line, reader: LineReader) -> bool:
        text = self.scope.expand(condition).strip()
        negated = text.startswith("!") and not text.startswith("!=")
        text = text[1:].strip() if negated else text
        defined = _DEFINED.match(text)
        version = _VERSION.match(text)
        if defined:
            name = defined.group(1) or ""
            holds = bool(name) and (self.scope.raw(name) is not None or self.world.setting(name) is not None)
        elif version:
            holds = _compare_versions(self.world.version, version.group(1), version.group(2))
        else:
            try:
                holds = self._sheet.truth("if", text)
            except SubmitError:
                raise _wrong(
                    f"if {condition}: expected true, false, a number, defined NAME or version >= X.Y",
                    line,
                    reader,
                ) from None
        return holds != negated

    def _direct(self, word: str, qualifier: str, rest: str, line: Line, reader: LineReader, depth: int) -> None:
        rest = self.scope.expand(rest).strip()
        if word == "warning":
            self.warnings.append(rest)
            return
        if word == "error":
            raise _wrong(rest, line, reader)
        if depth >= MAX_INCLUDE_DEPTH:
            raise _wrong(f"more than {MAX_INCLUDE_DEPTH} files include one another", line, reader)
        if word == "use":
            self._use(qualifier, rest, line, reader, depth)
            return
        try:
            if rest.endswith("|") or qualifier.lower().startswith("command"):
                text = self.world.files.run(rest.rstrip("|").strip())
            else:
                text = self.world.files.read_text(rest)
        except OSError as error:
            if "ifexist" in qualifier.lower():
                return
            raise _wrong(f"include {rest}: {error.strerror or error}", line, reader) from None
        self._read(LineReader(text, rest), depth + 1)

    def _use(self, category: str, names: str, line: Line, reader: LineReader, depth: int) -> None:
        if category.lower() not in ("template", "jobset", "submit"):
            raise _wrong(f"use {category}: expected TEMPLATE", line, reader)
        for name, arguments in _TEMPLATE.findall(names):
            body = self.world.setting(f"SUBMIT_TEMPLATE_{name}")
            if body is None:
                raise _wrong(f"there is no template {name}: SUBMIT_TEMPLATE_{name} is not configured", line, reader)
            for number, value in enumerate([arguments, *arguments.split(",")]):
                body = body.replace(f"$({number})", value.strip())
            self._read(LineReader(body, f"template {name}"), depth + 1)

    # -- queueing

    def _queue(self, line: Line, reader: LineReader) -> None:
        if self._only_commands:
            raise _QueueReached(line)
        self._queued = True
        if self.options.batch_name is not None:
            self._assign("batch_name", self.options.batch_name)
        place = {"file": reader.source, "line": line.number}
        statement = parse_queue(self.scope.expand(line.text[len("queue") :]), evaluate_text, **place)  # type: ignore[arg-type]  # one is a str, one an int
        if statement.open_list:
            statement = statement.with_rows(reader.raw_rows(line.number))
        self._enqueue(statement, line.text, reader.source, line.number)

    def _enqueue(self, statement: QueueStatement, text: str, source: str, number: int) -> None:
        items: Sequence[tuple[int, str]] = [(0, "")]
        if statement.variables:
            items = list(enumerate(load_items(statement, self.world.files, file=source, line=number)))[
                statement.slice
            ]
            if not items and statement.mode.value == "matching":
                self.warnings.append(f"{text}: nothing matches")
        total = len(items) * statement.count
        if total:
            self._refuse()
            self._sheet.is_factory = self._wants_factory()
            self._limit(total)
            if self._sheet.universe == Universe.PARALLEL:
                self.scope.live["node"] = PARALLEL_NODE
            elif self.scope.live.get("node") == PARALLEL_NODE:
                del self.scope.live["node"]
            cluster = self._cluster()
            queue_jobs(
                cluster,
                self._maker,
                Itemdata(self.scope, cluster.cluster_id, statement.variables, items, statement.count),
            )

    def _refuse(self) -> None:
        """What the jobs request without effect: refused, or told."""
        universe(self._sheet)
        for sentence in told(self.scope):
            self._sheet.warn(sentence)
        try:
            refuse(self.scope, self._sheet.universe)
        except SubmitError as error:
            if self.options.refuses:
                raise
            self._sheet.warn(f"a submission would be refused: {error.problem}")

    def _wants_factory(self) -> bool:
        """Whether the jobs are to be made as they are needed.

        Raises:
            SubmitError: they are, and cannot.
        """
        said = [name for name in ("max_materialize", "max_idle", "materialize_max_idle") if self._sheet.text(name)]
        wanted = bool(said) if self.options.factory is None else self.options.factory
        if not wanted:
            return False
        what = said[0] if said else "-factory"
        blamed = said[0] if said else ""
        if self.options.spool:
            raise SubmitError(f"{what}: the input files of jobs that are made as they are needed cannot be spooled. "
                              "Leave out -spool, or submit all jobs at once.", command=blamed)
        if self._sheet.universe == Universe.PARALLEL:
            raise SubmitError(f"{what}: the nodes of a parallel job are made at once. Leave {what} out.",
                              command=blamed)
        return True

    def _limit(self, more: int) -> None:
        self._jobs += more
        if 0 < self.options.max_jobs < self._jobs:
            raise SubmitError(f"Number of submitted jobs would exceed -maxjobs ({self.options.max_jobs})")
        most = MAX_FACTORY_JOBS if self._sheet.is_factory else MAX_JOBS
        if self._jobs > most:
            raise SubmitError(f"{self._jobs} jobs are more than the {most} that one description may queue")

    def _cluster(self) -> Cluster:
        program = (
            self.scope.assigned.get("executable", ""),
            self.scope.assigned.get("universe", ""),
        )
        if not self.clusters or program != self._program:
            if self.clusters and self.options.single_cluster:
                raise SubmitError("-single-cluster was given, but this description needs more than one cluster")
            self._program = program
            self.clusters.append(Cluster(self._reserve(), is_factory=self._sheet.is_factory))
        return self.clusters[-1]

    def _set_automatic(self, source: str) -> None:
        import time

        world, day = self.world, time.localtime(self.world.now_s)
        self.scope.defaults = {
            "arch": world.arch, "opsys": world.opsys, "islinux": "true", "iswindows": "false",
            "submit_file": source, "submit_time": str(world.now_s),
            "year": f"{day.tm_year:04}", "month": f"{day.tm_mon:02}", "day": f"{day.tm_mday:02}",
            **{name.lower(): value for name, value in world.automatic.items()},
        }  # fmt: skip


class _QueueReached(Exception):
    """The first queue statement, where only the commands are read."""

    def __init__(self, line: Line) -> None:
        super().__init__(line.text)
        self.line = line


def evaluate_text(text: str) -> object:
    """The value of an expression without attributes.

    Raises:
        ValueError: it is no expression.
    """
    try:
        tree = parsed(text)
    except ClassAdSyntaxError as error:
        raise ValueError(f"{text} is no expression: {error.reason}") from None
    return tree.evaluate() if isinstance(tree, Expr) else tree


def _wrong(problem: str, line: Line, reader: LineReader) -> SubmitError:
    return SubmitError(problem, file=reader.source, line=line.number, parsing=True)


def _chosen(*limits: int) -> int:
    from random import randrange

    return randrange(*limits)


def _compare_versions(version_line: str, relation: str, wanted: str) -> bool:
    found = _NUMBERS.search(version_line)
    ours = tuple(int(part) for part in (found.group(0) if found else "0").split("."))
    theirs = tuple(int(part) for part in wanted.strip(".").split("."))
    ours += (0,) * (len(theirs) - len(ours))
    theirs += (0,) * (len(ours) - len(theirs))
    return {
        ">=": ours >= theirs, "<=": ours <= theirs, "==": ours == theirs,
        "!=": ours != theirs, ">": ours > theirs, "<": ours < theirs,
    }[relation]  # fmt: skip
