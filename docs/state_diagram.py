"""Diagrams of states, drawn from what the live tables do.

A machine of the policy is put at every place and given every event, under every mixture of the policy's answers; each
change of place seen is an arrow, labelled with the events that caused it.  Runs are walked: from
where they begin, every event is given to them in every state that is reached.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

from condor_actors.cores.startd import slot_states
from condor_actors.cores.startd.owner_policy import SlotStateMachine
from condor_actors.cores.state_table import event_key

Place = Any
WIDTH, HEIGHT = 150, 38
WHERE = {
    "Owner/Idle": (0, 1), "Unclaimed/Idle": (1, 1), "Unclaimed/Benchmarking": (1, 0), "Matched/Idle": (1, 2),
    "Claimed/Idle": (2, 2), "Claimed/Busy": (2, 1), "Claimed/Suspended": (2, 0), "Claimed/Retiring": (3, 1),
    "Preempting/Vacating": (4, 1), "Preempting/Killing": (4, 2), "Drained/Retiring": (2, 3), "Drained/Idle": (1, 3),
}
STARTER = {
    "preparing": (0, 1), "deferred": (0, 0), "starting": (1, 1), "running": (2, 1), "stopping": (2, 0),
    "killing": (3, 0),
    "clearing": (3, 1), "saving": (2, 2), "ended": (4, 1), "gone": (4, 2),
}
SHADOW = {
    "preparing": (0, 0), "activating": (1, 0), "sending": (2, 0), "waiting": (2, 1), "running": (3, 0),
    "apart": (2, 2), "bringing": (4, 0), "ended": (4, 2),
}
GRID = {
    "looking": (0, 1), "preparing": (0, 0), "submitting": (1, 0), "queued": (2, 0), "running": (3, 0),
    "bringing": (4, 0), "cancelling": (2, 2), "ended": (4, 2),
}
HOST = {"starting": (0, 0), "spare": (1, 0), "ready": (2, 0), "lost": (2, 1), "gone": (1, 1)}


def title(place: Place) -> str:
    """``Claimed/Busy``."""
    return "/".join(part.value for part in place)


def _samples() -> Iterator[Any]:
    flags = ("is_owner", "suspend", "resume", "preempt", "kill", "want_suspend", "want_vacate", "benchmark")
    for values in itertools.product((False, True), repeat=len(flags)):
        for retirement_s in (0.0, 600.0):
            yield slot_states.PolicyEvaluation(retirement_s=retirement_s, **dict(zip(flags, values, strict=True)))
    yield slot_states.Matched("user")
    yield slot_states.Released("given up")
    for kind in (
        slot_states.Claimed,
        slot_states.RunStarted,
        slot_states.RunFinished,
        slot_states.ClaimCleared,
        slot_states.MachineEmptied,
        slot_states.DrainCancelled,
    ):
        yield kind()
    for how in ("retire", "vacate", "kill"):
        yield slot_states.EvictRequested("the policy", how)
        yield slot_states.DrainRequested(how)
    for what in ("match", "retire", "vacate", "kill"):
        yield slot_states.TimerExpired(what)


def arrows() -> dict[tuple[str, str], list[str]]:
    """{(from, to): names of the events that lead there}."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    looks = [slot_states.PolicyEvaluation(is_owner=owner, want_vacate=vacate, retirement_s=retirement_s)
             for owner in (False, True) for vacate in (False, True) for retirement_s in (0.0, 600.0)]
    events = list(_samples())
    for place, look, event, draining in itertools.product(slot_states.SLOT_STATES, looks, events, (False, True)):
        machine = SlotStateMachine(place, evaluation=look, draining=draining, job_began_s=1.0)
        machine.handle(event, 10.0)
        if machine.slot_state != place:
            found.setdefault((title(place), title(machine.slot_state)), {})[type(event).__name__] = None
    return {pair: list(names) for pair, names in found.items()}


def walk(runs: Iterable[Any], events: Iterable[Any]) -> Iterator[tuple[Any, Any, Any]]:
    """(state before, event, run after) of every event given to every run that can be reached."""
    level, known, samples = list(runs), set[Any](), tuple(events)
    while level:
        following = []
        for run, event in itertools.product(level, samples):
            after = copy.copy(run)
            for name in ("attributes", "events"):  # what a run adds to; all else it replaces
                if hasattr(run, name):
                    setattr(after, name, getattr(run, name).copy())
            after.handle(event, 10.0)
            yield run.state, event, after
            mark = _mark(after)
            if mark not in known:
                known.add(mark)
                following.append(after)
        level = following


def walked(runs: Iterable[Any], events: Iterable[Any]) -> dict[tuple[str, str], list[str]]:
    """{(from, to): names of the events that lead there} of runs, from where they begin."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for before, event, after in walk(runs, events):
        if after.state is not before:
            key = event_key(event)
            name = key if isinstance(key, str) else key.__name__
            found.setdefault((before.value, after.state.value), {})[name] = None
    return {pair: list(names) for pair, names in found.items()}


def _mark(run: Any) -> tuple[Any, ...]:
    """What of a run decides about its ways: two runs of the same mark need not both be walked."""
    what = id(getattr(run, "spec", None) or getattr(run, "job", None))
    return (what, run.state, *(bool(getattr(run, name, None)) for name in (
        "began", "checkpointing", "claim_over", "closing", "connected", "exited", "home", "stopping", "suspended",
        "waits_for_inputs", "wish", "owner", "address")))


def _point(name: str, where: Mapping[str, tuple[int, int]]) -> tuple[float, float]:
    column, row = where[name]
    return 95 + column * 205, 40 + row * 105


def svg() -> str:
    """The diagram of a slot; hovering over an arrow tells its events, pale ones are those of draining."""
    shown = {pair: names for pair, names in arrows().items()
             if names != ["ClaimCleared"] or not pair[0].startswith("Claimed")}  # a starter host that died
    return draw(shown, WHERE, "places of a slot and the events between them", pale="Drained")


def draw(found: Mapping[tuple[str, str], list[str]], where: Mapping[str, tuple[int, int]], label: str,
         pale: str = "\n") -> str:
    """A diagram as inline SVG; hovering over an arrow tells its events."""
    height = 85 + 105 * max(row for _, row in where.values())
    lines = [f'<svg viewBox="0 0 1020 {height}" font-family="sans-serif" font-size="12" role="img" '
             f'aria-label="{escape(label)}">',
             '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
             'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>']
    for (start, end), names in sorted(found.items()):
        colour = "#ccc" if pale in start + end else "#666"
        (x1, y1), (x2, y2) = _point(start, where), _point(end, where)
        length = max(1.0, ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5)
        bend = 18 if start < end else -18
        cx, cy = (x1 + x2) / 2 - (y2 - y1) / length * bend, (y1 + y2) / 2 + (x2 - x1) / length * abs(bend)
        reach = min(WIDTH / 2 / max(abs(x2 - cx), 1e-6), HEIGHT / 2 / max(abs(y2 - cy), 1e-6))
        tip_x, tip_y = x2 + (cx - x2) * min(reach, 1.0), y2 + (cy - y2) * min(reach, 1.0)
        words = escape(f"{start} → {end}: {', '.join(names)}")
        lines.append(f'<path d="M{x1:.0f},{y1:.0f} Q{cx:.0f},{cy:.0f} {tip_x:.0f},{tip_y:.0f}" fill="none" '
                     f'stroke="{colour}" marker-end="url(#tip)"><title>{words}</title></path>')
    for name in where:
        x, y = _point(name, where)
        lines.append(f'<rect x="{x - WIDTH / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="6" '
                     'fill="#eef4fb" stroke="#345"/>')
        lines.append(f'<text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle">{escape(name)}</text>')
    return "\n".join([*lines, "</svg>"])
