"""One parser after the other: inputs, what came of them, and where a finding is kept."""

from __future__ import annotations

import hashlib
import resource
import signal
import time
import zlib
from pathlib import Path
from random import Random
from types import FrameType

import attrs

from tests.fuzz.parsers.mutator import mutated
from tests.fuzz.parsers.targets import TARGETS

__all__ = ["CORPUS", "Result", "fuzz", "try_input"]

CORPUS = Path(__file__).parent / "corpus"
SLOW_S = 5.0
"""Processor time that an input of 200 kB may take."""

MORE_BYTES = 512 << 20
"""What one input may add to the memory of the process."""


class TooSlow(BaseException):
    """An input took too long; no parser catches it."""


@attrs.define
class Result:
    """How many inputs were tried, and what was found: (where it is kept, what happened)."""

    inputs: int = 0
    findings: list[tuple[Path, str]] = attrs.field(factory=list)


def _alarm(number: int, frame: FrameType | None) -> None:
    raise TooSlow


def try_input(name: str, data: bytes) -> str:
    """What is wrong with how a parser takes an input; empty: nothing."""
    target = TARGETS[name]
    before = signal.signal(signal.SIGVTALRM, _alarm)
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.setitimer(signal.ITIMER_VIRTUAL, SLOW_S)
    try:
        target.call(data)
    except target.declared:
        pass
    except TooSlow:
        return f"more than {SLOW_S:g} s of processor time"
    except Exception as error:  # noqa: BLE001 - whatever it is, it was not declared
        return f"{type(error).__name__}: {error}"[:300]
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_kib) * 1024
    return f"{more >> 20} MiB of memory" if more > MORE_BYTES else ""


def fuzz(name: str, seed: int, *, seconds: float = 0.0, inputs: int = 0) -> Result:
    """Try inputs for a time, or so many of them.  The n-th input of a seed is always the same.

    Args:
        name: of the parser.
        seed: of the mutator.
        seconds: of processor time; 0: as many inputs as said.
        inputs: how many.
    """
    random = Random(zlib.crc32(f"{name} {seed}".encode()))
    kept = sorted((CORPUS / name).glob("*")) if (CORPUS / name).is_dir() else []
    seeds = [*TARGETS[name].seeds(), *[path.read_bytes() for path in kept]]
    result, seen = Result(), set[str]()
    end_s = time.process_time() + seconds
    while result.inputs < inputs or (seconds and time.process_time() < end_s):
        result.inputs += 1
        data = mutated(seeds, random)
        wrong = try_input(name, data)
        if wrong and wrong.partition(":")[0] not in seen:
            seen.add(wrong.partition(":")[0])
            path = CORPUS / name / hashlib.sha256(data).hexdigest()[:16]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            result.findings.append((path, wrong))
    return result
