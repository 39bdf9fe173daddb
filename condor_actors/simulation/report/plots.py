"""Line charts as SVG text: no library, no network, the same text for the same data.

A chart follows the page's light or dark colours through CSS variables (``--ink``, ``--grid``, ``--s0`` …), which
:data:`STYLE` defines.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape

import attrs

__all__ = ["STYLE", "Chart", "Series", "draw", "standalone"]

STYLE = """
:root{--ink:#1b1b1b;--soft:#5c5c5c;--grid:#dcdcdc;--page:#fff;--s0:#1f5fa8;--s1:#b6501e;--s2:#2b7a3b;--s3:#8a3f92;
--s4:#111}
@media (prefers-color-scheme:dark){:root{--ink:#e8e8e8;--soft:#a8a8a8;--grid:#3a3a3a;--page:#161616;--s0:#79aeea;
--s1:#ec9a6c;--s2:#7fcb8e;--s3:#d39adb;--s4:#eee}}
svg text{font:11px system-ui,sans-serif;fill:var(--soft)} svg .title{font-size:12px;fill:var(--ink)}
svg .frame{stroke:var(--soft);fill:none} svg .grid{stroke:var(--grid)} svg .mark{stroke:var(--ink);stroke-dasharray:1 3}
"""
LIGHT = dict(re.findall(r"(--\w+):(#\w+)", STYLE.split("@media", maxsplit=1)[0]))
LEFT, RIGHT, TOP, BOTTOM = 60.0, 12.0, 42.0, 40.0
COLOURS = 5
DASHES = {"solid": "", "dashed": "6 4", "dotted": "2 3"}


@attrs.frozen(kw_only=True)
class Series:
    """One line.

    Attributes:
        name: in the legend; points: (x, y), those that are not finite are left out.
        colour: number of a colour; line: ``solid``, ``dashed`` or ``dotted``.
        band: half the width of a band around the line, for each point.
    """

    name: str
    points: Sequence[tuple[float, float]]
    colour: int = 0
    line: str = "solid"
    band: Sequence[float] = ()


@attrs.frozen(kw_only=True)
class Chart:
    """One chart.

    Attributes:
        title, x, y: texts; series: the lines.
        x_ticks: (value, label); empty: chosen here.
        marks: published values as horizontal lines: (y, label).
        log_y, log_x: logarithmic axes; top: the end of the y axis; None: from the data.
        width, height: in pixels.
    """

    title: str
    x: str
    y: str
    series: Sequence[Series]
    x_ticks: Sequence[tuple[float, str]] = ()
    marks: Sequence[tuple[float, str]] = ()
    log_y: bool = False
    log_x: bool = False
    top: float | None = None
    width: int = 640
    height: int = 300


def _nice(low: float, high: float, count: int = 5) -> list[float]:
    """Round values between two others."""
    span = high - low
    if span <= 0:
        return [low]
    raw = span / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * each for each in (1, 2, 2.5, 5, 10) if power * each >= raw * 0.999)
    first = math.ceil(low / step - 1e-9) * step
    return [first + number * step for number in range(int((high - first) / step + 1e-6) + 1)]


def _decades(low: float, high: float) -> list[float]:
    return [10.0 ** power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def _number(value: float) -> str:
    if value and abs(value) < 0.01:
        return f"{value:.0e}"
    return f"{value:,.10g}" if abs(value) < 1e6 else f"{value:.0e}"


@attrs.frozen
class _Axis:
    """From values to pixels."""

    low: float
    high: float
    begin: float
    end: float
    log: bool

    def at(self, value: float) -> float:
        """Where a value is."""
        if self.log:
            part = math.log10(max(value, self.low) / self.low) / max(1e-12, math.log10(self.high / self.low))
        else:
            part = (value - self.low) / max(1e-12, self.high - self.low)
        return self.begin + min(1.0, max(0.0, part)) * (self.end - self.begin)


def _points(chart: Chart, series: Series) -> list[tuple[float, float, float]]:
    found = []
    for number, (x, y) in enumerate(series.points):
        if math.isfinite(x) and math.isfinite(y) and (y > 0 or not chart.log_y) and (x > 0 or not chart.log_x):
            half = series.band[number] if number < len(series.band) else 0.0
            found.append((x, y, half if math.isfinite(half) else 0.0))
    return found


def _axes(chart: Chart, drawn: list[list[tuple[float, float, float]]]) -> tuple[_Axis, _Axis]:
    xs = [point[0] for line in drawn for point in line] + [value for value, _ in chart.x_ticks]
    ys = [point[1] + point[2] for line in drawn for point in line] + [value for value, _ in chart.marks]
    low_x, high_x = (min(xs), max(xs)) if xs else (0.0, 1.0)
    high_y = chart.top if chart.top is not None else max([*ys, 1e-9])
    low_y = 0.0
    if chart.log_y:
        least = min([point[1] for line in drawn for point in line], default=0.1)
        low_y, high_y = 10.0 ** math.floor(math.log10(least)), 10.0 ** math.ceil(math.log10(high_y) - 1e-9)
    elif chart.top is None:
        high_y *= 1.05
    x_axis = _Axis(low_x, high_x if high_x > low_x else low_x + 1.0, LEFT, chart.width - RIGHT, chart.log_x)
    y_axis = _Axis(low_y, high_y if high_y > low_y else low_y + 1.0, chart.height - BOTTOM, TOP, chart.log_y)
    return x_axis, y_axis


def _frame(chart: Chart, x_axis: _Axis, y_axis: _Axis) -> list[str]:
    out = []
    bottom, right = chart.height - BOTTOM, chart.width - RIGHT
    ticks = _decades(y_axis.low, y_axis.high) if chart.log_y else _nice(y_axis.low, y_axis.high)
    for value in ticks:
        y = y_axis.at(value)
        out.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_number(value)}</text>')
    automatic = _decades(x_axis.low, x_axis.high) if chart.log_x else _nice(x_axis.low, x_axis.high, 8)
    for value, label in chart.x_ticks or [(each, _number(each)) for each in automatic]:
        x = x_axis.at(value)
        out.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>')
        out.append(f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{escape(label)}</text>')
    for value, label in chart.marks:
        y = y_axis.at(value)
        out.append(f'<line class="mark" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        out.append(f'<text x="{right - 4}" y="{y - 4:.1f}" text-anchor="end">{escape(label)}</text>')
    out.append(f'<rect class="frame" x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{bottom - TOP}"/>')
    out.append(f'<text class="title" x="{LEFT}" y="15">{escape(chart.title)}</text>')
    out.append(f'<text x="{(LEFT + right) / 2}" y="{chart.height - 10}" text-anchor="middle">{escape(chart.x)}</text>')
    out.append(f'<text transform="translate(12 {(TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">'
               f'{escape(chart.y)}</text>')
    return out


def _legend(chart: Chart) -> list[str]:
    out = []
    x = LEFT
    for series in (each for each in chart.series if each.name):
        out.append(f'<line x1="{x:.0f}" x2="{x + 18:.0f}" y1="29" y2="29" stroke="var(--s{series.colour % COLOURS})" '
                   f'stroke-width="2" stroke-dasharray="{DASHES[series.line]}"/>'
                   f'<text x="{x + 22:.0f}" y="33">{escape(series.name)}</text>')
        x += 38.0 + 7.0 * len(series.name)
    return out


def draw(chart: Chart) -> str:
    """The chart as an ``svg`` element."""
    drawn = [_points(chart, series) for series in chart.series]
    x_axis, y_axis = _axes(chart, drawn)
    out = [f'<svg viewBox="0 0 {chart.width} {chart.height}" width="100%" role="img" '
           f'aria-label="{escape(chart.title)}" xmlns="http://www.w3.org/2000/svg">', *_frame(chart, x_axis, y_axis)]
    for series, points in zip(chart.series, drawn, strict=True):
        colour = f"var(--s{series.colour % COLOURS})"
        if any(point[2] for point in points):
            upper = [f"{x_axis.at(x):.1f},{y_axis.at(y + half):.1f}" for x, y, half in points]
            floor = 1e-12 if chart.log_y else 0.0
            lower = [f"{x_axis.at(x):.1f},{y_axis.at(max(floor, y - half)):.1f}" for x, y, half in reversed(points)]
            out.append(f'<polygon points="{" ".join(upper + lower)}" fill="{colour}" opacity="0.15"/>')
        text = " ".join(f"{x_axis.at(x):.1f},{y_axis.at(y):.1f}" for x, y, _ in points)
        dash = f' stroke-dasharray="{DASHES[series.line]}"' if series.line != "solid" else ""
        out.append(f'<polyline points="{text}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>')
        if len(points) <= 12:
            out += [f'<circle cx="{x_axis.at(x):.1f}" cy="{y_axis.at(y):.1f}" r="2.4" fill="{colour}"/>'
                    for x, y, _ in points]
    return "\n".join([*out, *_legend(chart), "</svg>"])


def standalone(svg: str) -> str:
    """A drawn chart as a file of its own, on white, with plain colours for viewers that know no CSS variables."""
    head, rest = svg.split(">", maxsplit=1)
    rules = STYLE[STYLE.index("svg text"):]
    text = f'{head}><style>{rules}</style><rect width="100%" height="100%" fill="var(--page)"/>{rest}\n'
    return re.sub(r"var\((--\w+)\)", lambda name: LIGHT[name[1]], text)
