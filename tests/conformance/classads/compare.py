"""Compare the engines on generated expressions: ``python -m tests.conformance.classads.compare [--calls] FIRST COUNT``.

One line of JSON for each difference, with the reason where it is a deliberate one. HTCondor's engine brings the
process down on some inputs; the seed at work is kept in the file that ``--progress`` names, so that the caller can go
on behind it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tests.conformance.classads.deliberate import reason
from tests.conformance.classads.engines import our_text, ours, their_text, theirs
from tests.conformance.classads.expressions import Generator
from tests.conformance.classads.functions import FunctionGenerator


def compare(seed: int) -> list[dict[str, object]]:
    """Compare one generated expression, its ads, and one damaged text.

    Args:
        seed: what to generate from.

    Returns:
        the differences.
    """
    found: list[dict[str, object]] = []
    generator = Generator(seed)
    expr, my = generator.expression(), generator.ad()
    target = generator.ad(target=True) if seed % 2 else None
    damaged = generator.damaged()
    for text in (expr, damaged):
        left, right = our_text(text), their_text(text)
        if left != right:
            found.append({"seed": seed, "parse": text, "ours": left, "theirs": right})
    if not found:
        left, right = ours(expr, my, target), theirs(expr, my, target)
        if left != right:
            found.append({"seed": seed, "expr": expr, "my": my, "target": target, "ours": left, "theirs": right})
    return found


def compare_call(seed: int) -> list[dict[str, object]]:
    """Compare one generated call of a function.

    Args:
        seed: What to generate from.

    Returns:
        The difference, if there is one.
    """
    generator = FunctionGenerator(seed)
    expr, my = generator.expression(), generator.ad()
    target = generator.ad(target=True) if seed % 2 else None
    left, right = ours(expr, my, target), theirs(expr, my, target)
    if left == right:
        return []
    return [{"seed": seed, "expr": expr, "my": my, "target": target, "ours": left, "theirs": right}]


def main() -> None:
    """Compare as many as the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--calls", action="store_true", help="calls of functions instead of whole expressions")
    parser.add_argument("--progress", type=Path, required=True)
    options = parser.parse_args()
    one = compare_call if options.calls else compare
    with options.progress.open("w", encoding="ascii") as progress:
        for seed in range(options.first, options.first + options.count):
            progress.seek(0)
            progress.write(f"{seed:12}")
            progress.flush()
            for difference in one(seed):
                print(json.dumps(difference | {"why": reason(difference)}), flush=True)


if __name__ == "__main__":
    main()
