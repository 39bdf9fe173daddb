"""Runs the cells of HTCondor's Python tutorials with the compatible modules, against a personal pool.

    python -m tests.conformance.compat.tutorials FOLDER

FOLDER holds the notebooks (``docs/apis/python-bindings/tutorials`` of HTCondor's sources, which are not part of this
tree).  A cell counts as equal when it runs to its end, or raises what the notebook itself shows that it raises, or what
its text announces (exercises that the reader has to solve raise until they are solved).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.pool_fixture import PersonalPool

RUN = """
import ast, json, sys, threading, traceback
from condor_actors.compat import classad, classad2, htcondor, htcondor2
for name in ("classad", "classad2", "htcondor", "htcondor2"):
    sys.modules[name] = globals()[name]
names = {"__name__": "__main__"}
for number, text in enumerate(json.load(open(sys.argv[1]))):
    result = "ok"
    try:
        tree = ast.parse(text)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "cell", "exec"), names)
        if last is not None:
            repr(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
    except BaseException as error:
        result = f"{type(error).__name__}: {error}"
    print(json.dumps([number, result]), file=sys.stderr, flush=True)
"""


def cells(notebook: Path) -> Iterator[tuple[str, str]]:
    """The text of each cell of code, and the name of the exception that the notebook shows for it (mostly none)."""
    for cell in json.loads(notebook.read_text())["cells"]:
        if cell["cell_type"] == "code":
            raised = [output["ename"] for output in cell.get("outputs", []) if output["output_type"] == "error"]
            yield "".join(cell["source"]), raised[0] if raised else ""


def run(notebook: Path) -> list[tuple[str, str, str]]:
    """Text, expected exception and result of each cell."""
    found = list(cells(notebook))
    with tempfile.TemporaryDirectory(prefix="condor-tutorial-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "cells").write_text(json.dumps([text for text, _ in found]))
        pool = PersonalPool(folder, slots=4)
        try:
            done = subprocess.run([sys.executable, "-c", RUN, str(folder / "cells")], cwd=pool.work, check=False,
                                  env={**os.environ, **pool.environment}, capture_output=True, text=True, timeout=300)
        finally:
            subprocess.run([Path(sys.prefix) / "bin" / "condor_personal", "stop", "--dir", pool.dir], check=False,
                           env=pool.environment, capture_output=True)
    results: dict[int, Any] = {}
    for line in done.stderr.splitlines():
        if line.startswith("["):
            number, result = json.loads(line)
            results[number] = result
    return [(text, shown, results.get(number, "not reached")) for number, (text, shown) in enumerate(found)]


def main(folder: Path) -> None:
    """Print each cell that is not equal, and the share of those that are."""
    equal = total = 0
    for notebook in sorted(folder.glob("*.ipynb")):
        good, every = 0, 0
        for text, shown, result in run(notebook):
            every += 1
            if result.partition(":")[0] == (shown or "ok"):
                good += 1
            else:
                print(f"{notebook.stem}, {result}:\n    " + text.replace("\n", "\n    "))
        print(f"{notebook.stem}: {good} of {every}", flush=True)
        equal, total = equal + good, total + every
    print(f"in all: {equal} of {total}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
