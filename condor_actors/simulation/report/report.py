"""The report of the 1988 month: Table 1 and Figures 2 to 9 of the paper beside what the simulation gives.

One HTML file with everything in it.  The curves of the published figures are not legible in the scan that we have; what
the paper's text says of each of them is drawn as a mark or stands beside it.

Source: "Condor - A Hunter of Idle Workstations" (1988), section 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape

import attrs

from condor_actors.simulation.cores.month import POLICIES
from condor_actors.simulation.cores.months import Month
from condor_actors.simulation.cores.workload import DAY_S, PAPER_USERS
from condor_actors.simulation.report.measures import (
    BINS_H,
    Estimate,
    by_demand,
    checkpoint_rate,
    cumulative,
    estimate,
    leverage,
    mean_wait_ratio,
    month_numbers,
    quantile,
)
from condor_actors.simulation.report.plots import STYLE, Chart, Series, draw
from condor_actors.simulation.report.recorder import JobRecord, Record
from condor_actors.simulation.report.report_texts import (
    DIFFERENCES,
    HOW,
    METHOD,
    PAGE_STYLE,
    PAIRS,
    SATURATED,
    TABLE_ONE,
)

__all__ = ["Report", "page", "paper_report"]

HEAVY = frozenset(user.name for user in PAPER_USERS if user.heavy)
LIGHT = frozenset(user.name for user in PAPER_USERS if not user.heavy)
WEEK = ("Mon", "Tue", "Wed", "Thu", "Fri")
PUBLISHED = {user.name: (int(user.jobs), user.demand_s / 3600.0) for user in PAPER_USERS}
ROWS: tuple[tuple[str, str, str, int, float], ...] = (
    # what, measure, published, digits, factor
    ("Jobs completed", "completed", "918 submitted", 0, 1.0),
    ("Hours available for remote execution", "available_h", "12,438", 0, 1.0),
    ("Hours consumed", "consumed_h", "4,771", 0, 1.0),
    ("Local use, %", "local", "25", 1, 100.0),
    ("Use by owners and jobs together, %", "utilisation", "–", 1, 100.0),
    ("Hours with (almost) every station in use, %", "full", "“long periods”", 1, 100.0),
    ("Hours with more than 30 jobs in the system", "over_30", "“long periods”", 0, 1.0),
    ("Wait ratio of light users: mean over jobs", "light_wait", "“very small”", 3, 1.0),
    ("… months in which it is above 0.2, %", "light_waited", "–", 0, 100.0),
    ("Wait ratio of light users: all waiting per all service", "light_open_wait", "–", 3, 1.0),
    ("Light users' jobs that waited less than 10 minutes, %", "light_none", "“in most cases”", 1, 100.0),
    ("Wait ratio of the heavy user: mean over jobs", "heavy_wait", "“significantly more”", 2, 1.0),
    ("Wait ratio of the heavy user: all waiting per all service", "heavy_open_wait", "–", 2, 1.0),
    ("Moves because of owners", "moves_owner", "–", 0, 1.0),
    ("Moves because of priority", "moves_priority", "–", 0, 1.0),
    ("Checkpoints per hour of demand", "checkpoint_rate", "Figure 8", 3, 1.0),
    ("… jobs of less than 2 h", "checkpoint_rate_short", "higher", 3, 1.0),
    ("… jobs of 8 h and more", "checkpoint_rate_long", "lower", 3, 1.0),
    ("Leverage of all jobs", "leverage", "1,300", 0, 1.0),
    ("… jobs of less than 2 h", "leverage_short", "600", 0, 1.0),
    ("Owner waits for the job to stop: mean, s", "reaction_s", "looked every 30 s", 1, 1.0),
    ("… at worst, s", "reaction_worst_s", "30", 1, 1.0),
    ("Work done twice, h", "lost_h", "“very little, if any”", 2, 1.0),
)
PAIRED = (("Wait ratio of light users: mean over jobs", "light_wait", 3),
          ("Wait ratio of the heavy user: all waiting per all service", "heavy_open_wait", 3),
          ("Hours consumed", "consumed_h", 1), ("Moves because of priority", "moves_priority", 0),
          ("Moves because of owners", "moves_owner", 0), ("Leverage of all jobs", "leverage", 0))


@attrs.frozen(kw_only=True)
class Report:
    """What a report is made from.

    Attributes:
        paper, saturated: months under the two loads.
        command: what makes it; commit: of what.
        seeds_wanted: how many seeds per policy were asked for.
    """

    paper: Sequence[Month]
    saturated: Sequence[Month] = ()
    command: str = "condor_simulate paper-1988"
    commit: str = ""
    seeds_wanted: int = 30

    def records(self, policy: str, months: Sequence[Month] | None = None) -> list[Record]:
        """Of one policy, by seed."""
        chosen = self.paper if months is None else months
        return [month.record for month in sorted(chosen, key=lambda each: each.seed) if month.policy == policy]

    def policies(self) -> list[str]:
        """Those that there is anything of."""
        there = {month.policy for month in self.paper}
        return [policy for policy in POLICIES if policy in there]


def paper_report(report: Report) -> str:
    """The page.

    Raises:
        ValueError: there is no month in it.
    """
    if not report.paper:
        raise ValueError("a report needs at least one month")
    body = [
        "<h1>A month of Condor, 1988, again</h1>", METHOD.format(
            command=escape(report.command), commit=f" of commit {escape(report.commit)}" if report.commit else "",
            seeds=_seeds(report)),
        "<h2>Summary</h2>", _summary(report, report.paper), _pairs(report),
        "<h2>Table 1: profile of user service requests</h2>",
        TABLE_ONE, _table_one(report), *_figures(report)]
    if report.saturated:
        body += ["<h2>The heavy user wants everything</h2>", SATURATED, _summary(report, report.saturated, short=True)]
    body += ["<h2>Where we differ, and why</h2>", DIFFERENCES, "<h2>How it was made</h2>", HOW]
    return page("A month of Condor, 1988, again", body)


def page(title: str, body: Sequence[str]) -> str:
    """A whole page with everything in it."""
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<style>{STYLE}{PAGE_STYLE}</style></head><body>\n{chr(10).join(body)}\n</body></html>\n")


def _seeds(report: Report) -> str:
    counts = {policy: len(report.records(policy)) for policy in report.policies()}
    if len(set(counts.values())) == 1:
        count = next(iter(counts.values()))
        wanted = f" of the {report.seeds_wanted} that the command asks for" if count < report.seeds_wanted else ""
        return f"{count} seeds{wanted}"
    return "seeds: " + ", ".join(f"{policy} {count}" for policy, count in counts.items())


def _row(cells: Sequence[str], tag: str = "td") -> str:
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [_row(head, "th"), *(_row(row) for row in rows)]
    return '<div class="wide"><table>' + "\n".join(lines) + "</table></div>"


def _summary(report: Report, months: Sequence[Month], short: bool = False) -> str:
    policies = [policy for policy in POLICIES if any(month.policy == policy for month in months)]
    numbers = {policy: [month_numbers(record, HEAVY) for record in report.records(policy, months)]
               for policy in policies}
    wanted = {"available_h", "consumed_h", "utilisation", "light_wait", "light_waited", "light_open_wait", "light_none",
              "heavy_open_wait", "moves_priority", "full"}
    rows = []
    for what, name, published, digits, factor in ROWS:
        if short and name not in wanted:
            continue
        found = [estimate(each[name] * factor for each in numbers[policy]) for policy in policies]
        cells = [f"{each.mean:.{digits}f}" if name == "light_waited" else each.text(digits) for each in found]
        rows.append([escape(what), *([] if short else [published]), *cells])
    head = ["", *([] if short else ["published"]), *(f"{policy} ({len(numbers[policy])})" for policy in policies)]
    return _table(head, rows)


def _pairs(report: Report) -> str:
    """Differences from the first policy, month by month."""
    first, *others = report.policies()
    numbers = {(month.policy, month.seed): month_numbers(month.record, HEAVY) for month in report.paper}
    seeds = sorted(seed for policy, seed in numbers if policy == first)
    rows = [[what, *(estimate(numbers[policy, seed][name] - numbers[first, seed][name] for seed in seeds
                              if (policy, seed) in numbers).text(digits) for policy in others)]
            for what, name, digits in PAIRED]
    return PAIRS.format(first=first) + _table(["", *others], rows) if others else ""


def _table_one(report: Report) -> str:
    records = report.records(report.policies()[0])
    rows = []
    total_h = sum(jobs * demand for jobs, demand in PUBLISHED.values())
    total_jobs = sum(jobs for jobs, _ in PUBLISHED.values())

    def of(user: str, what: Callable[[Sequence[JobRecord]], float]) -> Estimate:
        return estimate(what([job for job in record.jobs if job.user == user or not user]) for record in records)

    for user, (jobs, demand_h) in {**PUBLISHED, "": (total_jobs, total_h / total_jobs)}.items():
        rows.append([
            user or "all", f"{jobs}", f"{100 * jobs / total_jobs:.0f}", f"{demand_h:.1f}", f"{jobs * demand_h:,.0f}",
            of(user, lambda found: float(len(found))).text(0),
            of(user, lambda found: sum(job.demand_s for job in found) / 3600.0 / max(1, len(found))).text(2),
            of(user, lambda found: quantile([job.demand_s / 3600.0 for job in found], 0.5)).text(2),
            of(user, lambda found: sum(job.demand_s for job in found) / 3600.0).text(0),
        ])
    return _table(["user", "remembered: jobs", "% of jobs", "mean demand, h", "total, h", "simulated: jobs",
                   "mean demand, h", "median, h", "total, h"], rows)


# ---- figures


def _figure(number: int, chart: Chart, published: str) -> str:
    return (f'<h2>Figure {number}: {escape(chart.title)}</h2><div class="pair"><figure>{draw(chart)}</figure>'
            f'<aside><b>Published:</b> {published}</aside></div>')


def _figures(report: Report) -> list[str]:
    first = report.records(report.policies()[0])[0]
    return [
        _figure(2, _demand(report), "the mean is about 5 h, the median less than 3 h: “shorter jobs were submitted "
                                    "more frequently than longer jobs”."),
        _figure(3, _queues(first, 0.0, first.length_s, "Queue length, one month (seed 1, Up-Down)"),
                "“the heavy user kept more than 30 jobs in the system for long periods”; jobs come in batches."),
        _figure(4, _waits(report),
                "light users: “in most cases … did not wait at all. Their wait ratio is very small”; the average is "
                "dominated by the heavy user, “who waited significantly more”."),
        _figure(5, _use(first, 0.0, first.length_s, "Utilization of remote resources, one month (seed 1, Up-Down)"),
                "local use stays low, 25 % on average; for long periods all workstations were in use. 12,438 hours "
                "were available, 4,771 were consumed."),
        _figure(6, _use(first, *_busiest_week(first), "Utilization for one week"),
                "local use from 20 % in the evenings and nights to 50 % for short peaks in the afternoons."),
        _figure(7, _queues(first, *_busiest_week(first), "Queue lengths for one week"),
                "sharp rises where batches arrive; much of the time the heavy user's queue was longer than the number "
                "of machines."),
        _figure(8, _rates(report), "“relatively steady over the range of service demands, with the exception of short "
                                   "jobs”; long jobs are moved less, for they end up where nobody is."),
        _figure(9, _leverages(report), "1,300 on average; jobs of less than 2 h about 600; longer jobs more."),
    ]


def _busiest_week(record: Record) -> tuple[float, float]:
    """Monday to Friday of the week with the most jobs in the system."""
    weeks = max(1, int(record.length_s / (7 * DAY_S)))
    loads = []
    for week in range(weeks):
        span = (week * 7 * DAY_S, min(record.length_s, (week * 7 + 5) * DAY_S))
        loads.append((sum(sum(each.queue.values()) for each in record.intervals
                          if span[0] <= each.begin_s < span[1]), span))
    return max(loads)[1]


def _ticks(begin_s: float, end_s: float) -> list[tuple[float, str]]:
    days = int((end_s - begin_s) / DAY_S)
    if days <= 7:
        return [(begin_s / DAY_S + day + 0.5, WEEK[day % 5] if days <= 5 else str(day + 1)) for day in range(days)]
    return [(begin_s / DAY_S + day, str(day + 1)) for day in range(0, days + 1, 3)]


def _over(record: Record, begin_s: float, end_s: float,
          what: Callable[[Mapping[str, int], float, float, float], float]) -> list[tuple[float, float]]:
    return [((each.begin_s + 1800.0) / DAY_S, what(each.queue, each.local_h, each.running_h, each.served_h))
            for each in record.intervals if begin_s <= each.begin_s < end_s]


def _queues(record: Record, begin_s: float, end_s: float, title: str) -> Chart:
    total = _over(record, begin_s, end_s, lambda queue, *_: float(sum(queue.values())))
    light = _over(record, begin_s, end_s, lambda queue, *_: float(sum(queue.get(user, 0) for user in LIGHT)))
    return Chart(title=title, x="day", y="jobs", x_ticks=_ticks(begin_s, end_s), marks=[(30.0, "30")], series=[
        Series(name="all users", points=total), Series(name="light users", points=light, colour=1, line="dotted")])


def _use(record: Record, begin_s: float, end_s: float, title: str) -> Chart:
    part = 100.0 / record.stations
    local = _over(record, begin_s, end_s, lambda queue, local_h, *_: local_h * part)
    system = _over(record, begin_s, end_s, lambda queue, local_h, running_h, served_h: (local_h + running_h) * part)
    return Chart(title=title, x="day", y="% of stations", x_ticks=_ticks(begin_s, end_s), marks=[(25.0, "25 %")],
                 top=100.0, series=[Series(name="owners and jobs", points=system),
                                    Series(name="owners", points=local, colour=1, line="dashed")])


def _demand(report: Report) -> Chart:
    hours = [0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 15.0, 18.0, 21.0, 24.0]
    curves = [cumulative(record, hours) for record in report.records(report.policies()[0])]
    found = [estimate(curve[number] for curve in curves) for number in range(len(hours))]
    series = Series(name="simulated", points=list(zip(hours, [each.mean for each in found], strict=True)),
                    band=[each.half for each in found])
    return Chart(title="Profile of service demand", x="service demand, hours", y="% of jobs that need less", top=100.0,
                 marks=[(50.0, "median: published below 3 h")], series=[series])


def _classes(report: Report, policy: str, measure: Callable[[Sequence[JobRecord]], float],
             users: frozenset[str] | None = None) -> tuple[list[tuple[float, float]], list[float]]:
    """Points and bands of a measure by class of demand; a class needs jobs in two months at least."""
    months = [by_demand(record, measure, users) for record in report.records(policy)]
    points, bands = [], []
    for number in range(len(BINS_H) - 1):
        found = estimate(month[number] for month in months)
        middle = (BINS_H[number] + min(BINS_H[number + 1], 32.0)) / 2.0
        points.append((middle, found.mean))
        bands.append(found.half if math.isfinite(found.half) else 0.0)
    return points, bands


def _waits(report: Report) -> Chart:
    series = []
    for number, policy in enumerate(report.policies()):
        for users, line in ((None, "solid"), (LIGHT, "dashed")):
            points, _ = _classes(report, policy, mean_wait_ratio, users)
            shown = [(x, max(y, 0.003)) for x, y in points if math.isfinite(y)]
            series.append(Series(name=policy if users is None else "", points=shown, colour=number, line=line))
    return Chart(title="Average wait ratio (solid: all jobs, dashed: light users)", x="service demand, hours",
                 y="wait ratio", log_y=True, series=series, marks=[(0.2, "0.2")], height=340)


def _rates(report: Report) -> Chart:
    series = []
    for number, policy in enumerate(report.policies()):
        points, bands = _classes(report, policy, checkpoint_rate)
        series.append(Series(name=policy, points=points, band=bands, colour=number))
    return Chart(title="Rate of checkpointing", x="service demand, hours", y="checkpoints per hour of demand",
                 series=series)


def _leverages(report: Report) -> Chart:
    series = []
    for number, policy in enumerate(report.policies()):
        points, bands = _classes(report, policy, leverage)
        series.append(Series(name=policy, points=points, band=bands, colour=number))
    return Chart(title="Remote execution leverage", x="service demand, hours", y="leverage", series=series,
                 marks=[(1300.0, "1300: published, all jobs"), (600.0, "600: published, below 2 h")])


