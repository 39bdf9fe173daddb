"""The curves of ``docs/scaling.md`` from the JSON lines that ``condor_simulate scale --out`` wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from condor_actors.simulation.report.plots import Chart, Series, draw, standalone

__all__ = ["read_lines", "write_charts"]

Line = Mapping[str, Any]


def read_lines(path: Path) -> tuple[list[Line], list[Line]]:
    """The measurements of whole pools, and of the negotiator alone; of equal sizes the last one counts.

    Raises:
        ValueError: a line is no measurement. OSError: the file cannot be read.
    """
    pools: dict[tuple[int, int], Line] = {}
    cycles: dict[tuple[int, int], Line] = {}
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            line = json.loads(text)
            (pools if "run_s" in line else cycles)[line["machines"], line["kinds"]] = line
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{path}, line {number}: no measurement of condor_simulate scale") from None
    return [pools[key] for key in sorted(pools)], [cycles[key] for key in sorted(cycles)]


def _by_kinds(lines: Sequence[Line], name: str, factor: float = 1.0) -> list[Series]:
    kinds = sorted({line["kinds"] for line in lines})
    return [Series(name=f"{each:,} {'kind' if each == 1 else 'kinds'}", colour=number % 4,
                   line="solid" if number < 4 else "dashed",
                   points=[(line["machines"], line[name] * factor) for line in lines if line["kinds"] == each])
            for number, each in enumerate(kinds)]


def write_charts(source: Path, folder: Path) -> list[Path]:
    """Write ``scaling-*.svg``; returns what was written.

    Raises:
        ValueError, OSError: see :func:`read_lines`.
    """
    pools, cycles = read_lines(source)
    charts: dict[str, Chart] = {}
    if cycles:
        charts["cycle"] = Chart(title="A cycle that gives every machine", x="machines", y="processor seconds",
                                log_x=True, log_y=True, series=_by_kinds(cycles, "cycle_s"))
        charts["again"] = Chart(title="A cycle that gives a hundred slots that came free", x="machines",
                                y="processor seconds", log_x=True, log_y=True, series=_by_kinds(cycles, "again_s"))
        one = [line for line in cycles if line["kinds"] == min(each["kinds"] for each in cycles)]
        charts["negotiator-memory"] = Chart(
            title="The negotiator's memory, and its time to learn all ads", x="machines", y="MiB; ms", log_x=True,
            log_y=True, series=[
                Series(name="MiB", points=[(line["machines"], line["memory_mib"]) for line in one]),
                Series(name="ms to learn", points=[(line["machines"], 1e3 * line["learn_s"]) for line in one],
                       colour=1, line="dashed")])
    if pools:
        few = [line for line in pools if line["completed"]]
        charts["pool"] = Chart(
            title="Processor time per completed job, by part", x="machines", y="ms per job", log_x=True, series=[
                Series(name=part, colour=number, points=[
                    (line["machines"], 1e3 * line[f"{part}_s"] / line["completed"]) for line in few])
                for number, part in enumerate(("negotiator", "schedd", "startd"))])
        charts["events"] = Chart(title="Simulated events per processor second", x="machines", y="events/s", log_x=True,
                                 series=[Series(name="", points=[
                                     (line["machines"], line["events"] / line["run_s"]) for line in pools])])
    written = []
    for name, chart in charts.items():
        path = folder / f"scaling-{name}.svg"
        path.write_text(standalone(draw(chart)), encoding="utf-8")
        written.append(path)
    return written
