"""A mkdocs hook: pages of state tables, made from the live tables of the cores while the site is built."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from condor_actors.cores.master import supervisor, supervisor_events
from condor_actors.cores.schedd import job_status, shadow_host_table
from condor_actors.cores.schedd.gangs import gang
from condor_actors.cores.shadow import grid_run_table, shadow_run_table, standard_run_table
from condor_actors.cores.site_programs import schedule
from condor_actors.cores.startd import hibernation, owner_policy
from condor_actors.cores.starter import job_run_table
from condor_actors.dag import node_table
from condor_actors.dag.dag_run import DAG_TABLE

sys.path.insert(0, str(Path(__file__).parent))
import run_samples  # noqa: E402  # neighbours of this hook
import state_diagram  # noqa: E402

MARK = "<!-- state tables -->"


def _name(step: Any) -> str:
    """How a step is shown: its own words for an ignored event, else its name."""
    why = getattr(step, "why", None)
    if why is not None:
        return f"*({why})*"
    return str(getattr(step, "__name__", step)).strip("_").replace("_", " ")


def _rows(header: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    titles = list(header)
    out = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    out += ["| " + " | ".join(cells) + " |" for cells in lines]
    return "\n".join(out)


def slot_table() -> str:
    """Every (place, event) of a slot and the step taken."""
    table: Mapping[Any, Any] = owner_policy.table()
    events = list(dict.fromkeys(event for _, event in table))
    places = list(dict.fromkeys(place for place, _ in table))
    header = ["event", *(f"{state.value} / {activity.value}" for state, activity in places)]
    return _rows(header, ([event.__name__, *(_name(table[place, event]) for place in places)] for event in events))


def run_table(table: Mapping[Any, Any]) -> str:
    """Every (state, event) of a run and the step taken."""
    events = list(dict.fromkeys(event for _, event in table))
    states = list(dict.fromkeys(state for state, _ in table))
    header = ["event", *(state.value for state in states)]
    return _rows(header, ([event if isinstance(event, str) else event.__name__,
                           *(_name(table[state, event]) for state in states)] for event in events))


def _arrow_list(found: Mapping[tuple[str, str], list[str]]) -> str:
    return _rows(("from", "to", "events"), ((a, b, ", ".join(names)) for (a, b), names in sorted(found.items())))


def _runs() -> str:
    """The tables of runs and of shadow hosts, each with its diagram."""
    text = ""
    for heading, table, runs, events, where in (
        ("A run at its starter", job_run_table.TABLE, run_samples.starters, run_samples.STARTER_EVENTS,
         state_diagram.STARTER),
        ("A run at its shadow", shadow_run_table.TABLE, run_samples.shadows, run_samples.SHADOW_EVENTS,
         state_diagram.SHADOW),
        ("A standard-universe run at its shadow", standard_run_table.TABLE, run_samples.standards,
         run_samples.STANDARD_EVENTS, state_diagram.SHADOW),
        ("A run in another batch system", grid_run_table.TABLE, run_samples.grids, run_samples.GRID_EVENTS,
         state_diagram.GRID),
        ("A shadow host", shadow_host_table.TABLE, run_samples.shadow_hosts, run_samples.HOST_EVENTS,
         state_diagram.HOST),
    ):
        found = state_diagram.walked(runs(), events)
        drawing = state_diagram.draw(found, where, f"states of {heading[0].lower()}{heading[1:]}")
        text += f"\n### {heading}\n\n{drawing}\n\n{_arrow_list(found)}\n\n{run_table(table)}\n"
    return text


def job_table() -> str:
    """Every (status, action) of a job: the step taken, or why none is."""
    header = ["action", *(status.name.lower().replace("_", " ") for status in job_status.JobStatus)]
    lines = []
    for action, row in job_status.ACTIONS.items():
        cells = []
        for status in job_status.JobStatus:
            result, step = row[status]
            cells.append(f"*({result.value})*" if step is job_status.Step.NOTHING else step.value)
        lines.append([action.value, *cells])
    return _rows(header, lines)


def dag_tables() -> str:
    """Every (state, event) of a DAG, of a node of one, and of a gang, and the step taken."""
    text = ""
    tables: tuple[tuple[str, Mapping[Any, Any]], ...] = (("A node of a DAG", node_table.TABLE), ("A DAG", DAG_TABLE),
                                                         ("A gang of a parallel job", gang.TABLE),
                                                         ("A program of the site", schedule.TABLE),
                                                         ("A machine that may sleep", hibernation.TABLE))
    for heading, table in tables:
        events = list(dict.fromkeys(event for _, event in table))
        states = list(dict.fromkeys(state for state, _ in table))
        header = ["event", *(state.name.lower() for state in states)]
        names = {event: event if isinstance(event, str) else event.__name__ for event in events}
        rows = ([names[event], *(_name(table[state, event]) for state in states)] for event in events)
        text += f"\n### {heading}\n\n{_rows(header, rows)}\n"
    return text


def daemon_table() -> str:
    """Every (state, event) of a daemon under its master and the step taken."""
    states = list(supervisor_events.State)
    events = list(dict.fromkeys(event for _, event in supervisor.TABLE))
    header = ["event", *(state.value for state in states)]
    steps = supervisor.TABLE
    return _rows(header, ([event, *(_name(steps[state, event]) for state in states)] for event in events))


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the tables where a page asks for them."""
    if MARK not in markdown:
        return markdown
    slot_arrows = state_diagram.arrows()
    text = f"### A slot\n\n{state_diagram.svg()}\n\n{_arrow_list(slot_arrows)}\n\n{slot_table()}\n"
    text += f"\n### A job\n\n{job_table()}\n{_runs()}"
    text += f"\n### A daemon under its master\n\n{daemon_table()}\n{dag_tables()}"
    return markdown.replace(MARK, text)
