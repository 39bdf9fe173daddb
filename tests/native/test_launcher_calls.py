"""The launcher's filter lets through what the runtime itself calls: a call that it lacks fails in a pool alone."""

from __future__ import annotations

import re
from pathlib import Path

NATIVE = Path(__file__).resolve().parents[2] / "native"
CALLED = re.compile(r"\bSYSTEM\(__NR_(\w+)")
NAMED = re.compile(r"__NR_(\w+)")


def allowed() -> set[str]:
    """What stands in the launcher's list for the runtime, or is let through with conditions."""
    text = (NATIVE / "launcher" / "filter.c").read_text()
    begin = text.index("runtimes[] = {")
    return set(NAMED.findall(text[begin:text.index("void close_filter", begin)]))


def called() -> set[str]:
    return {name for path in (NATIVE / "runtime").rglob("*.[ch]") for name in CALLED.findall(path.read_text())}


def test_what_the_runtime_calls_is_let_through() -> None:
    assert len(called()) > 40
    assert called() - allowed() == set()
