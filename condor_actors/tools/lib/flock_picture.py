"""The flow of jobs between pools as a picture (SVG): this pool in the middle, its partners around it.

An arrow leads from the pool whose jobs they are to the pool that ran them; the more hours, the wider.  Colours follow
the reader's light or dark theme.  The text is the same for the same figures, and needs nothing from elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from condor_actors.tools.lib.flock_report import Flow

__all__ = ["flow_picture"]

BOX_WIDTH, BOX_HEIGHT = 190.0, 44.0
LEAST_RADIUS, ROOM = 230.0, 66.0
"""How far partners are from the middle, and how much of the circle each of them takes at least."""
WIDER = 130.0
"""How much wider than high the circle is, since boxes are."""
BESIDE, LABEL = 9.0, (14.0, 24.0)
"""How far the arrows of the two directions are from the line between the two pools, and the hours from their arrow: up
or down, and how much more sideways."""
THINNEST, WIDEST = 1.5, 10.0
STYLE = """
:root{--ink:#1b1b1b;--soft:#5c5c5c;--box:#eef2f7;--page:#fff;--out:#1f5fa8;--in:#b6501e}
@media (prefers-color-scheme:dark){:root{--ink:#e8e8e8;--soft:#a8a8a8;--box:#262b33;--page:#161616;--out:#79aeea;
--in:#ec9a6c}}
svg{background:var(--page)} text{font:13px system-ui,sans-serif;fill:var(--ink);text-anchor:middle}
text.soft{font-size:11px;fill:var(--soft)} text.hours{font-size:12px;paint-order:stroke;stroke:var(--page);
stroke-width:4px}
rect{fill:var(--box);stroke:var(--soft)} .out{stroke:var(--out);fill:var(--out)} .in{stroke:var(--in);fill:var(--in)}
.unknown{stroke:var(--soft);stroke-dasharray:3 5}
"""


def flow_picture(own: str, flows: Sequence[tuple[str, Flow, Flow | str]]) -> str:
    """The picture.

    Args:
        own: what this pool is called.
        flows: for each partner its name, what it had of this pool, and what this pool had of it, or why nobody knows.
    """
    radius = max(LEAST_RADIUS, ROOM * len(flows) / math.tau)
    width, height = 2 * (radius + WIDER) + BOX_WIDTH + 20.0, 2 * radius + BOX_HEIGHT + 20.0
    middle = width / 2, height / 2
    most = max((flow.hours for _, *both in flows for flow in both if isinstance(flow, Flow)), default=0.0)
    arrows, boxes = [], [_box(middle, own, "this pool")]
    for number, (name, lent, borrowed) in enumerate(flows):
        angle = math.tau * number / len(flows) - math.pi / 2
        at = middle[0] + (radius + WIDER) * math.cos(angle), middle[1] + radius * math.sin(angle)
        arrows += _arrow(at, middle, lent.hours, most, "in")
        if isinstance(borrowed, Flow):
            arrows += _arrow(middle, at, borrowed.hours, most, "out")
            now = f"{lent.slots:g} lent now, {borrowed.slots:g} borrowed"
        else:
            arrows.append(f'<line class="unknown" {_ends(middle, at)}/>')
            now = f"{lent.slots:g} lent now, borrowed: not known"
        boxes.append(_box(at, name, now))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}">',
        f"<title>Jobs between {escape(own)} and its partners, in hours by slot weight</title>",
        f"<style>{STYLE}</style>", *arrows, *boxes, "</svg>", ""])


Point = tuple[float, float]


def _box(at: Point, name: str, below: str) -> str:
    x, y = at
    return (f'<rect x="{x - BOX_WIDTH / 2:.1f}" y="{y - BOX_HEIGHT / 2:.1f}" width="{BOX_WIDTH:.0f}" '
            f'height="{BOX_HEIGHT:.0f}" rx="6"/>'
            f'<text x="{x:.1f}" y="{y - 2:.1f}">{escape(name)}</text>'
            f'<text class="soft" x="{x:.1f}" y="{y + 14:.1f}">{escape(below)}</text>')


def _ends(begin: Point, end: Point) -> str:
    return f'x1="{begin[0]:.1f}" y1="{begin[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'


def _arrow(begin: Point, end: Point, hours: float, most: float, way: str) -> list[str]:
    """From one pool to another, on the right of the line between them, with its hours; none without hours."""
    if hours <= 0.0:
        return []
    length = math.dist(begin, end)
    along = (end[0] - begin[0]) / length, (end[1] - begin[1]) / length
    aside = -along[1], along[0]

    def on(part: float, beside: float = BESIDE) -> Point:
        return begin[0] + along[0] * part + aside[0] * beside, begin[1] + along[1] * part + aside[1] * beside

    wide = max(THINNEST, WIDEST * math.sqrt(hours / most))
    free = _to_edge(along)  # from the middle of a box to its edge
    head = 7.0 + wide
    tip, neck = on(length - free), on(length - free - head)
    text = on(length / 2, BESIDE + wide / 2 + LABEL[0] + LABEL[1] * abs(aside[0]))
    across = -along[1] * head * 0.55, along[0] * head * 0.55
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in (
        tip, (neck[0] + across[0], neck[1] + across[1]), (neck[0] - across[0], neck[1] - across[1])))
    return [f'<line class="{way}" {_ends(on(free), neck)} stroke-width="{wide:.1f}"/>',
            f'<polygon class="{way}" points="{corners}"/>',
            f'<text class="hours" x="{text[0]:.1f}" y="{text[1] + 4:.1f}">{hours:,.2f} h</text>']


def _to_edge(along: Point) -> float:
    """How far it is from the middle of a box to its edge, in a direction."""
    sides = ((BOX_WIDTH / 2, along[0]), (BOX_HEIGHT / 2, along[1]))
    return min(half / abs(part) for half, part in sides if abs(part) > 1e-9) + 4.0
