"""The diagram of a slot's states, drawn from what the live table does.

A machine of the policy is put at every place and given every event, under every mixture of the policy's answers; each
change of place seen is an arrow, labelled with the events that caused it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from html import escape
from typing import Any

from condor_actors.cores.startd import slot_states
from condor_actors.cores.startd.owner_policy import SlotStateMachine

Place = Any
WIDTH, HEIGHT = 150, 38
WHERE = {
    "Owner/Idle": (0, 1), "Unclaimed/Idle": (1, 1), "Unclaimed/Benchmarking": (1, 0), "Matched/Idle": (1, 2),
    "Claimed/Idle": (2, 2), "Claimed/Busy": (2, 1), "Claimed/Suspended": (2, 0), "Claimed/Retiring": (3, 1),
    "Preempting/Vacating": (4, 1), "Preempting/Killing": (4, 2), "Drained/Retiring": (2, 3), "Drained/Idle": (1, 3),
}


def title(place: Place) -> str:
    """``Claimed/Busy``."""
    return "/".join(part.value for part in place)


def _samples() -> Iterator[Any]:
    flags = ("is_owner", "suspend", "resume", "preempt", "kill", "want_suspend", "want_vacate", "benchmark")
    for values in itertools.product((False, True), repeat=len(flags)):
        for retirement_s in (0.0, 600.0):
            yield slot_states.PolicyEvaluation(retirement_s=retirement_s, **dict(zip(flags, values, strict=True)))
    yield slot_states.Matched("somebody")
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


def _point(name: str) -> tuple[float, float]:
    column, row = WHERE[name]
    return 95 + column * 205, 40 + row * 105


def svg() -> str:
    """The diagram as inline SVG; hovering over an arrow tells its events, pale ones are those of draining."""
    lines = ['<svg viewBox="0 0 1020 400" font-family="sans-serif" font-size="12" role="img" '
             'aria-label="places of a slot and the events between them">',
             '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
             'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>']
    for (start, end), names in sorted(arrows().items()):
        if names == ["ClaimCleared"] and start.startswith("Claimed"):
            continue  # a starter host that died; in the table below
        colour = "#ccc" if "Drained" in start + end else "#666"
        (x1, y1), (x2, y2) = _point(start), _point(end)
        length = max(1.0, ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5)
        bend = 18 if start < end else -18
        cx, cy = (x1 + x2) / 2 - (y2 - y1) / length * bend, (y1 + y2) / 2 + (x2 - x1) / length * abs(bend)
        reach = min(WIDTH / 2 / max(abs(x2 - cx), 1e-6), HEIGHT / 2 / max(abs(y2 - cy), 1e-6))
        tip_x, tip_y = x2 + (cx - x2) * min(reach, 1.0), y2 + (cy - y2) * min(reach, 1.0)
        label = escape(f"{start} → {end}: {', '.join(names)}")
        lines.append(f'<path d="M{x1:.0f},{y1:.0f} Q{cx:.0f},{cy:.0f} {tip_x:.0f},{tip_y:.0f}" fill="none" '
                     f'stroke="{colour}" marker-end="url(#tip)"><title>{label}</title></path>')
    for place in slot_states.SLOT_STATES:
        x, y = _point(title(place))
        lines.append(f'<rect x="{x - WIDTH / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="6" '
                     'fill="#eef4fb" stroke="#345"/>')
        lines.append(f'<text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle">{escape(title(place))}</text>')
    return "\n".join([*lines, "</svg>"])
