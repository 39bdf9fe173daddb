"""`Submit`: a submit description in Python's hands."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence

import attrs

from condor_actors.api.settings import config_or_defaults
from condor_actors.classads import ClassAd
from condor_actors.submit import Description, Environment, Options
from condor_actors.submit.queue_statement import Mode, QueueStatement, load_items, split_row
from condor_actors.tools.lib.submission import environment

BY_PYTHON = 2
"""JobSubmitMethod of jobs that a program queues."""
SEPARATOR = "\x1f"

Item = str | Mapping[str, object] | Sequence[object]
Value = str | int | float | bool | os.PathLike[str]


class Submit(MutableMapping[str, str]):
    """A submit description: its commands by name, whatever their case, and its queue statement.

    Use::

        condor.Submit("executable = /bin/sleep\\narguments = $(time)\\nqueue time in (1, 2, 3)")
        condor.Submit({"executable": "/bin/sleep", "arguments": 60}, queue="5")
        condor.Submit(executable="/bin/sleep", arguments="60", log="sleep.log")
        condor.Submit.from_file("sleep.sub")

    Args:
        description: the text of a description, or its commands; ``if``, ``include`` and ``use`` are carried out at
            once.  What stands behind the first queue statement (more commands, more queue statements) is kept and
            submitted too.
        queue: what stands behind the word ``queue``, in place of the description's own; ``"5"``, ``"x in (a, b)"``.
        commands: further commands; attributes of one's own have names that are no identifiers in Python
            (``**{"+Project": '"sky"'}``).

    Raises:
        SubmitError: a text that is no description, with its line.
        TypeError: a value that is no text, number, truth value or path.
    """

    def __init__(self, description: str | Mapping[str, Value] | None = None, *, queue: str | None = None,
                 **commands: Value) -> None:
        self._commands: dict[str, tuple[str, str]] = {}
        self._queue: str | None = None
        self._rest = ""
        self.source = ""
        self.method = BY_PYTHON
        if isinstance(description, str):
            self._read(description, "")
        elif isinstance(description, Mapping):
            self._take(description)
        elif description is not None:
            raise TypeError(f"a description is text or a mapping, not {type(description).__name__}")
        self._take(commands)
        if queue is not None:
            self.queue = queue

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], **commands: Value) -> Submit:
        """A description from a file, as condor_submit reads it.

        Args:
            path: the file.
            commands: put over those of the file.

        Raises:
            OSError: it cannot be read.
            SubmitError: it is no description.
        """
        submit = cls()
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            submit._read(file.read(), os.fspath(path))
        submit._take(commands)
        return submit

    def _read(self, text: str, source: str) -> None:
        reading = Description(environment(config_or_defaults()), lambda: 0)
        self._queue, self._rest = reading.read_commands(text, source)
        self.source = source
        for key, value in reading.scope.assigned.items():
            self._commands[key] = (reading.scope.spellings.get(key, key), value)

    def _take(self, commands: Mapping[str, Value]) -> None:
        for name, value in commands.items():
            if name.lower() == "queue":
                raise ValueError("a queue statement is no command; it is given as queue=")
            self[name] = value  # type: ignore[assignment]  # numbers and paths become text

    # -- the mapping

    def __getitem__(self, name: str) -> str:
        return self._commands[_key(name)][1]

    def __setitem__(self, name: str, value: str) -> None:
        if not isinstance(name, str):
            raise TypeError("a command's name is text")
        if not isinstance(value, (str, int, float, os.PathLike)):
            raise TypeError(f"{name}: a value is text, a number, a truth value or a path, not {type(value).__name__}")
        text = os.fspath(value) if isinstance(value, os.PathLike) else str(value)
        shown = "MY." + name[1:] if name.startswith("+") else name
        self._commands[_key(name)] = (self._commands.get(_key(name), (shown, ""))[0], text)

    def __delitem__(self, name: str) -> None:
        del self._commands[_key(name)]

    def __iter__(self) -> Iterator[str]:
        return iter([shown for shown, _ in self._commands.values()])

    def __len__(self) -> int:
        return len(self._commands)

    def __str__(self) -> str:
        lines = [f"{name} = {value}" if "\n" not in value else f"{name} @=end\n{value}\n@end"
                 for name, value in self._commands.values()]
        return "\n".join([*lines, f"queue {self._queue or ''}".rstrip(), *([self._rest] if self._rest else [])]) + "\n"

    def __repr__(self) -> str:
        return f"Submit({str(self)!r})"

    def copy(self) -> Submit:
        """The same commands and queue statement, to be changed apart."""
        other = Submit()
        other._commands = dict(self._commands)
        other._queue, other._rest, other.source, other.method = self._queue, self._rest, self.source, self.method
        return other

    # -- the queue statement

    @property
    def queue(self) -> str:
        """What stands behind the word ``queue``; setting it also drops what stood behind that statement."""
        return self._queue or ""

    @queue.setter
    def queue(self, arguments: str) -> None:
        if not isinstance(arguments, str):
            raise TypeError("queue is what stands behind that word: text")
        word, _, rest = arguments.strip().partition(" ")
        self._queue, self._rest = (rest.strip() if word.lower() == "queue" else arguments.strip()), ""

    def expand(self, name: str) -> str:
        """The value of a command, with its macros replaced.

        Raises:
            KeyError: there is no such command.
            SubmitError: macros that contain one another.
        """
        described = self._described(lambda: 0)
        return described.scope.expand(self[name])

    def itemdata(self, queue: str | None = None) -> list[dict[str, str]] | None:
        """The items that the queue statement stands for, as `Schedd.submit` takes them.

        Args:
            queue: another queue statement's arguments.

        Returns:
            a mapping of the statement's variables for each item; None: the statement has no items.

        Raises:
            SubmitError: it is no queue statement, or its items cannot be read.
        """
        described = self._described(lambda: 0)
        statement = described.statement(self.queue if queue is None else queue)
        if statement.mode is Mode.NONE:
            return None
        items = load_items(statement, described.world.files)[statement.slice]
        names = statement.variables
        return [dict(zip(names, split_row(item, len(names)), strict=True)) for item in items]

    # -- jobs

    def jobs(self, *, count: int | None = None, items: Iterable[Item] | None = None) -> Iterator[ClassAd]:
        """The ads of the jobs that a submission would queue, as cluster 1; nothing is queued.

        Args:
            count, items: as for `Schedd.submit`.

        Raises:
            SubmitError: the description cannot become jobs.
        """
        numbers = iter(range(1, 1_000_000))
        for cluster in self.read(lambda: next(numbers), count=count, items=items).clusters:
            common = ClassAd.from_bytes(cluster.ad)
            for proc, text in enumerate(cluster.procs):
                ad = ClassAd.from_bytes(text)
                ad.parent = common
                ad["ProcId"] = proc
                yield ad.flat()

    def read(self, reserve: Callable[[], int], *, count: int | None = None, items: Iterable[Item] | None = None,
             spool: bool = False) -> Description:
        """Make all jobs, as `Schedd.submit` does before it sends any.

        Args:
            reserve: gives the number of a new cluster.
            count, items, spool: as for `Schedd.submit`.

        Returns:
            the description, with its clusters.

        Raises:
            SubmitError: it cannot become jobs.
        """
        described = self._described(reserve, spool=spool)
        own = described.statement(self.queue)
        if count is None and items is None:
            described.queue(own)
            if self._rest:
                described.go_on(self._rest)
            return described
        if count is not None and (isinstance(count, bool) or count < 0):
            raise ValueError(f"count is a number of jobs for each item, not {count!r}")
        statement = own if items is None else _statement(items, own)
        described.queue(attrs.evolve(statement, count=own.count if count is None else count))
        return described

    def _described(self, reserve: Callable[[], int], *, spool: bool = False) -> Description:
        """A reading of the commands, before any queue statement."""
        world: Environment = environment(config_or_defaults(), submit_method=self.method)
        described = Description(world, reserve, Options(assignments=tuple(self._commands.values()), spool=spool))
        described.read_commands("", self.source)
        return described


def _key(name: str) -> str:
    key = name.lower()
    return "my." + key[1:] if key.startswith("+") else key


def _statement(items: Iterable[Item], own: QueueStatement) -> QueueStatement:
    """A queue statement over items that a program gives.

    Raises:
        ValueError: items that do not fit one another, or that would not stay one item.
    """
    rows: list[str] = []
    names: tuple[str, ...] = own.variables or ("Item",)
    for number, item in enumerate(items):
        if isinstance(item, Mapping):
            if not number:
                names = tuple(item)
            values = [str(item[name]) for name in names if name in item]
            if len(values) != len(names):
                raise ValueError(f"item {number} lacks one of {', '.join(names)}, which the first one has")
        elif isinstance(item, str):
            rows.append(_clean(item))
            continue
        else:
            values = [str(value) for value in item]
        rows.append(SEPARATOR.join(_clean(value, SEPARATOR) for value in values))
    return QueueStatement(variables=names, mode=Mode.FROM, items=tuple(rows))


def _clean(text: str, *forbidden: str) -> str:
    if any(each in text for each in ("\n", *forbidden)):
        raise ValueError(f"{text!r}: an item has no line ends and no unit separators")
    return text.strip()
