"""An SQLite file with a versioned schema: opened durably, migrated step by step.

Theory: ``schema/<name>_<NNN>.sql`` are the steps of one schema, applied in order; ``PRAGMA user_version`` says how many
a file has seen.  A step and its version number are one transaction, so a crash in the middle of an upgrade leaves the
file at a whole step.  A file that is newer than this program is refused: an old program never writes to it.

The writer runs on the reactor thread (WAL, ``synchronous=FULL``: a commit is on the disk when it returns); a reader is
a second, read-only connection that a worker thread may keep for as long as it likes without stopping the writer.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import ClassVar

from condor_actors.actors.supervision import StoreUnavailable

STEP = re.compile(r"(?P<name>[a-z_]+)_(?P<number>\d{3})\.sql\Z")
BUSY_TIMEOUT_S = 10.0
ROOM_BYTES = 256 * 1024
"""What has to be free for a full folder to count as one with room again."""
UNAVAILABLE = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_BUSY", "SQLITE_NOMEM")
"""What SQLite calls a disk that takes nothing; all else is a mistake of ours."""


NO_ROOM = ("SQLITE_FULL", "SQLITE_IOERR")
NO_ROOM_NUMBERS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
"""What ends by itself, or when someone sees to the disk; not: rights that are missing, or a damaged file."""


class StoreError(Exception):
    """A database that cannot be opened or used: names the file and what to do.

    Attributes:
        is_passing: the disk takes nothing now; it may later.
    """

    def __init__(self, text: str, *, is_passing: bool = False) -> None:
        self.is_passing = is_passing
        super().__init__(text)


def schema_steps(name: str) -> tuple[str, ...]:
    """The SQL of each step of the schema ``name``, first to last.

    Raises:
        StoreError: there is no such schema, or a step is missing.
    """
    found: dict[int, str] = {}
    for entry in resources.files("condor_actors.store").joinpath("schema").iterdir():
        match = STEP.match(entry.name)
        if match is not None and match["name"] == name:
            found[int(match["number"])] = entry.read_text("utf-8")
    if not found or sorted(found) != list(range(1, len(found) + 1)):
        raise StoreError(f"schema {name!r}: the steps {sorted(found)} are not 1 to N without a gap")
    return tuple(found[number] for number in sorted(found))


def takes_nothing(error: OSError | sqlite3.Error) -> bool:
    """Whether it is for want of room, or for a disk that is read-only or fails."""
    if isinstance(error, sqlite3.Error):
        return (getattr(error, "sqlite_errorname", None) or "").startswith(NO_ROOM)
    return error.errno in NO_ROOM_NUMBERS


def disk_fails(path: Path) -> bool:
    """Whether a file cannot be read because of its disk."""
    try:
        with path.open("rb") as file:
            file.read(4096)
    except OSError as error:
        return error.errno in NO_ROOM_NUMBERS
    return False


def has_room(folder: Path) -> None:
    """Write something into a folder, and remove it.

    Raises:
        OSError: the folder takes nothing.
    """
    path = folder / f".room.{os.getpid()}"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, ROOM_BYTES)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    finally:
        path.unlink(missing_ok=True)


def make_private(path: Path) -> None:
    """Create the file, or take it from others: it holds secrets of claims, and SQLite gives its rights to the journal.

    Raises:
        OSError: it cannot be created.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


class Database:
    """One writer on an SQLite file.

    Args:
        path: the file; made when it does not exist, its folder too.
        schema: which schema it has.
        up_to: stop at this step (upgrade tests make old files with it); default: the newest.

    Raises:
        StoreError: the file cannot be opened, is damaged, or comes from a newer program.
    """

    def __init__(self, path: Path, schema: str, *, up_to: int | None = None) -> None:
        self.path = path
        steps = schema_steps(schema)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            make_private(path)
            self.connection = sqlite3.connect(path, isolation_level=None, timeout=BUSY_TIMEOUT_S,
                                              cached_statements=256)
            self._settle_pragmas()
            self._migrate(steps if up_to is None else steps[:up_to], newest=len(steps))
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{path}: cannot open the {schema} database: {error}; check the disk, the rights of its "
                             f"folder, or restore the file from a copy", is_passing=takes_nothing(error)) from error

    def _settle_pragmas(self) -> None:
        run = self.connection.execute
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        run("PRAGMA foreign_keys = ON")
        run("PRAGMA temp_store = MEMORY")
        run("PRAGMA wal_autocheckpoint = 2000")
        run("PRAGMA journal_size_limit = 67108864")

    def _migrate(self, steps: tuple[str, ...], newest: int) -> None:
        (version,) = self.connection.execute("PRAGMA user_version").fetchone()
        if version > newest:
            raise StoreError(f"{self.path}: made by a newer version (schema {version}, this program knows {newest}); "
                             "start that version again")
        for number in range(version, len(steps)):
            self.connection.executescript(
                f"BEGIN IMMEDIATE;\n{steps[number]}\nPRAGMA user_version = {number + 1};\nCOMMIT;"
            )

    @property
    def version(self) -> int:
        """How many steps of the schema the file has seen."""
        (version,) = self.connection.execute("PRAGMA user_version").fetchone()
        return int(version)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing: commits at the end, rolls back when the block raises.

        Raises:
            StoreUnavailable: the disk takes nothing now.
        """
        connection = self.connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorname.startswith(UNAVAILABLE):
                raise StoreUnavailable(str(error)) from error
            raise

    def reader(self) -> sqlite3.Connection:
        """A read-only connection for another thread; its user closes it."""
        return sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None,
                               timeout=BUSY_TIMEOUT_S, check_same_thread=False)

    def close(self) -> None:
        """Give the file back; what was committed is there."""
        self.connection.close()


class Store:
    """What a daemon keeps in one database; a subclass says which schema, and knows its tables.

    Args:
        path: of the file; made when it does not exist.
        patient: on a disk that takes nothing the file is opened later, when something is to be stored.

    Attributes:
        problem: why the file is not open (see ``patient``); empty: it is.

    Raises:
        StoreError: the file cannot be used.
    """

    schema: ClassVar[str]
    database: Database
    problem = ""

    def __init__(self, path: Path, *, patient: bool = False) -> None:
        self._path = path
        try:
            self.database = Database(path, self.schema)
        except StoreError as error:
            if not (patient and error.is_passing):
                raise
            self.problem = str(error)

    def open(self) -> None:
        """Open what could not be opened at first; nothing otherwise.

        Raises:
            StoreUnavailable: it still cannot.
        """
        if not self.problem:
            return
        try:
            self.database = Database(self._path, self.schema)
        except StoreError as error:
            self.problem = str(error)
            raise StoreUnavailable(self.problem) from error
        self.problem = ""

    def close(self) -> None:
        """Give the file back."""
        if not self.problem:
            self.database.close()
