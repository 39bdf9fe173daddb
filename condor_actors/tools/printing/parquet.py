"""Ads as a table in a Parquet file, for DuckDB, pandas, Spark and their like.

Theory: a Parquet file has one type for each column, and which types the attributes of many jobs have is known only
after the last job.  So the ads go through a file without a name first, while the types are gathered; then they are read
back and written, a group of rows at a time.  Memory does not grow with the number of ads.

An attribute is a column of what it evaluates to in its ad.

=============================  ====================================================
values                         type of the column
=============================  ====================================================
all booleans                   boolean
all integers                   64-bit integer
numbers                        64-bit real
anything else, or of two kinds  text; what is no string is written as a ClassAd value
undefined, error, absent       null
=============================  ====================================================

Requirements and Rank are about machines, so they are the text of their expressions.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import IO, Any

from condor_actors.classads import ERROR, UNDEFINED, ClassAd, unparse
from condor_actors.tools.lib.command import ToolError

__all__ = ["write_parquet"]

GROUP_ROWS = 10_000
"""Rows that are written together, and so are in memory together."""
ALWAYS = {"clusterid": "ClusterId", "procid": "ProcId", "owner": "Owner"}
"""Columns of a file of whole ads, also when it has no row: a table without columns is none."""
OF_MACHINES = frozenset({"requirements", "rank"})
LENGTH_BYTES = 4


def write_parquet(path: str, ads: Iterable[ClassAd], attributes: Sequence[str] = ()) -> int:
    """Write ads into a new Parquet file.

    Args:
        path: the file; it must not be there.
        ads: in the order of the rows.
        attributes: the only columns, in their order; none: every attribute that an ad has, by name.

    Returns:
        How many rows it has.

    Raises:
        ToolError: pyarrow is not installed, the file is there or cannot be written.
    """
    arrow = _arrow()
    try:
        out: IO[bytes] = open(path, "xb")  # noqa: SIM115 - it is closed before it is removed
    except FileExistsError:
        raise ToolError(f"Error: -parquet writes a new file, and {path} is there") from None
    except OSError as error:
        raise ToolError(f"Error: Can't write {path}: {error.strerror}") from None
    try:
        with out, tempfile.TemporaryFile(dir=os.path.dirname(path) or ".") as spool:
            columns = _Columns(attributes)
            count = 0
            for ad in ads:
                _put(spool, ad)
                columns.learn(ad)
                count += 1
            spool.seek(0)
            _write(arrow, out, columns, _taken(spool))
    except OSError as error:
        _forget(path)
        raise ToolError(f"Error: Can't write {path}: {error.strerror or error}") from None
    except BaseException:
        _forget(path)
        raise
    return count


def _arrow() -> Any:
    try:
        importlib.import_module("pyarrow.parquet")
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise ToolError(f"Error: -parquet needs the Python package pyarrow ({error}); install it with: pip install "
                        "'condor-actors[parquet]'") from None


def _forget(path: str) -> None:
    """Half a file would be taken for a whole one."""
    with suppress(OSError):
        os.unlink(path)


def _put(spool: IO[bytes], ad: ClassAd) -> None:
    text = ad.to_bytes()
    spool.write(len(text).to_bytes(LENGTH_BYTES, "big") + text)


def _taken(spool: IO[bytes]) -> Iterator[ClassAd]:
    while head := spool.read(LENGTH_BYTES):
        yield ClassAd.from_bytes(spool.read(int.from_bytes(head, "big")))


class _Columns:
    """What is known of the columns: ``kinds`` (``bool``, ``int``, ``float``, ``str``) and ``names`` by lower-case name.

    Args:
        wanted: the only ones; none: all.
    """

    def __init__(self, wanted: Sequence[str]) -> None:
        self._is_open = not wanted
        self.names: dict[str, str] = {name.lower(): name for name in wanted} or dict(ALWAYS)
        self.kinds: dict[str, str] = {"clusterid": "int", "procid": "int"} if self._is_open else {}

    def learn(self, ad: ClassAd) -> None:
        """One more ad."""
        for name in ad if self._is_open else tuple(self.names.values()):
            key = name.lower()
            self.names.setdefault(key, name)
            value = _value(ad, key)
            if value is not None:
                kind = type(value).__name__
                before = self.kinds.get(key, kind)
                both = {before, kind}
                self.kinds[key] = kind if before == kind else "float" if both == {"int", "float"} else "str"

    def ordered(self) -> list[str]:
        """Keys in the order of the columns."""
        return sorted(self.names) if self._is_open else list(self.names)


def _value(ad: ClassAd, key: str) -> Any:
    """None, a bool, int, float or str."""
    if key in OF_MACHINES:
        expression = ad.expression(key)
        return None if expression is None else unparse(expression)
    value: Any = ad.evaluate(key)
    if value is UNDEFINED or value is ERROR or value is None:
        return None
    return value if isinstance(value, bool | int | float | str) else unparse(value)


def _cell(value: Any, kind: str) -> Any:
    """A value as its column wants it."""
    if value is None or kind in ("bool", "int"):
        return value
    if kind == "float":
        return float(value)
    text = value if isinstance(value, str) else unparse(value)
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")  # Parquet's texts are UTF-8


def _write(arrow: Any, out: IO[bytes], columns: _Columns, ads: Iterator[ClassAd]) -> None:
    types = {"bool": arrow.bool_(), "int": arrow.int64(), "float": arrow.float64(), "str": arrow.string()}
    keys = columns.ordered()
    kinds = {key: columns.kinds.get(key, "str") for key in keys}
    schema = arrow.schema([(columns.names[key], types[kinds[key]]) for key in keys])
    with arrow.parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        cells: dict[str, list[Any]] = {key: [] for key in keys}
        rows = 0
        for ad in ads:
            for key in keys:
                cells[key].append(_cell(_value(ad, key), kinds[key]))
            rows += 1
            if rows == GROUP_ROWS:
                writer.write_table(_table(arrow, schema, cells))
                cells, rows = {key: [] for key in keys}, 0
        if rows:
            writer.write_table(_table(arrow, schema, cells))


def _table(arrow: Any, schema: Any, cells: dict[str, list[Any]]) -> Any:
    return arrow.table(list(cells.values()), schema=schema)
