"""condor_userprio: who has which priority and usage, and what administrators set of it.

**Source**: the manual, condor_userprio.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence

from condor_actors import records
from condor_actors.classads import ClassAd, ClassAdSyntaxError, Expr, is_true, parse_expression, quote
from condor_actors.classads.forms.long_form import old_to_new
from condor_actors.messages.negotiate import QueryPriorities, SetPriority
from condor_actors.tools.lib.command import ToolError, reminder_of, run
from condor_actors.tools.lib.contact import NEGOTIATOR, load, negotiator, query, refused
from condor_actors.tools.lib.flags import LIST, NO_DEBUG, Flag, Given
from condor_actors.wire.blocking import WireError
from condor_actors.written_text import open_written

DAY_S = 86400.0
FOR_A_WHILE = ("setceiling", "setfloor", "setfactor")

NO_NUMBERS = "groups have names and no numbers; -hierarchical and -grouporder sort by name"
FLAGS = (
    Flag("help", 1), Flag("version", 4), Flag("debug", 2, colon=True, idle=NO_DEBUG), Flag("pool", 2, 1),
    Flag("name", 1, 1), Flag("inputfile", 2, 1), Flag("af", 2, LIST, colon=True),
    Flag("autoformat", 5, LIST, colon=True, alias="af"), Flag("constraint", 4, 1), Flag("long", 1),
    Flag("setprio", 4, 2), Flag("setfactor", 4, 2), Flag("setaccum", 4, 2), Flag("setbegin", 4, 2),
    Flag("setlast", 4, 2), Flag("setceiling", 4, 2), Flag("setfloor", 5, 2), Flag("resetusage", 6, 1),
    Flag("resetall", 6), Flag("delete", 3, 1), Flag("getreslist", 2, 1), Flag("activefrom", 3, 3), Flag("allusers", 4),
    Flag("all", 3), Flag("usage", 1), Flag("priority", 4), Flag("most", 1), Flag("flat", 2), Flag("hierarchical", 1),
    Flag("grouporder", 6), Flag("quotas", 1), Flag("surplus", 2), Flag("collector", 3), Flag("negotiator", 3),
    Flag("grouprollup", 6, refused="the line of a group is its own use alone; -af Name WeightedResourcesUsed has the "
                                   "figures to add"),
    Flag("legacy", 2), Flag("modular", 2), Flag("order", 2, refused=NO_NUMBERS),
    Flag("groupid", 6, refused=NO_NUMBERS), Flag("sortkey", 2, refused=NO_NUMBERS),
    Flag("duration", 2, 1), Flag("cancelceilinglease", 7, 1), Flag("cancelfloorlease", 8, 1),
    Flag("cancelfactorlease", 8, 1),
)


@records.frozen
class Edit:
    """An option that sets something: the message's word, and what is printed afterwards."""

    what: str
    said: str
    takes_value: bool = True


EDITS = {
    "setprio": Edit("priority", "The priority of {user} was set to {value:f}"),
    "setfactor": Edit("factor", "The priority factor of {user} was set to {value:f}"),
    "setaccum": Edit("usage", "The Accumulated Usage of {user} was set to {value:f}"),
    "setbegin": Edit("begin", "The Begin Usage Time of {user} was set to {value:.0f}"),
    "setlast": Edit("last", "The Last Usage Time of {user} was set to {value:.0f}"),
    "setceiling": Edit("ceiling", "The ceiling of {user} was set to {value:.0f}"),
    "setfloor": Edit("floor", "The floor of {user} was set to {value:.0f}"),
    "cancelceilinglease": Edit("cancel-ceiling", "The ceiling of {user} is what it was before", takes_value=False),
    "cancelfloorlease": Edit("cancel-floor", "The floor of {user} is what it was before", takes_value=False),
    "cancelfactorlease": Edit("cancel-factor", "The priority factor of {user} is what it was before",
                              takes_value=False),
    "resetusage": Edit("reset", "The accumulated usage of {user} was reset", takes_value=False),
    "delete": Edit("delete", "The accountant record named {user} was deleted", takes_value=False),
    "resetall": Edit("reset-all", "The accumulated usage was reset for all users", takes_value=False),
}


@records.frozen
class Column:
    """One column: its heading in two lines, its width, the cell of an ad, and that of the last line."""

    key: str
    heads: tuple[str, str]
    width: int
    text: Callable[[ClassAd, float], str]
    total: Callable[[Sequence[ClassAd]], str] = lambda ads: ""


def _real(name: str, decimals: int, scale: float = 1.0) -> Callable[[ClassAd, float], str]:
    return lambda ad, now_s: f"{ad.get_float(name) / scale:.{decimals}f}"


def _sum(name: str, decimals: int, scale: float = 1.0) -> Callable[[Sequence[ClassAd]], str]:
    return lambda ads: f"{sum(ad.get_float(name) for ad in ads) / scale:.{decimals}f}"


def _moment(name: str) -> Callable[[ClassAd, float], str]:
    def text(ad: ClassAd, now_s: float) -> str:
        when_s = ad.get_int(name)
        return time.strftime("%_m/%d/%Y %H:%M", time.localtime(when_s)) if when_s else ""

    return text


def _last_usage(ad: ClassAd, now_s: float) -> str:
    if ad.get_int("ResourcesUsed"):
        return "<now>"
    when_s = ad.get_int("LastUsageTime")
    if not when_s:
        return "" if not ad.get_float("WeightedAccumulatedUsage") else "999+23:59"
    span_s = max(0, int(now_s) - when_s)
    return f"{span_s // 86400}+{span_s // 3600 % 24:02}:{span_s // 60 % 60:02}"


def _bound(name: str) -> Callable[[ClassAd, float], str]:
    def text(ad: ClassAd, now_s: float) -> str:
        value = ad.get_float(name, -1.0)
        return f"{value:.0f}" if value >= 0 else ""

    return text


COLUMNS = (
    Column("quota", ("Effective", "Quota"), 9, _bound("EffectiveQuota")),
    Column("quota", ("Config", "Quota"), 9, _bound("ConfigQuota")),
    Column("surplus", ("Use", "Surplus"), 7, lambda ad, now_s: ad.get_str("SurplusPolicy")),
    Column("priority", ("Effective", "Priority"), 12, _real("Priority", 2)),
    Column("real", ("Real", "Priority"), 8, _real("RealPriority", 2)),
    Column("factor", ("Priority", "Factor"), 9, _real("PriorityFactor", 2)),
    Column("used", ("Wghted", "In Use"), 6, _real("WeightedResourcesUsed", 0), _sum("WeightedResourcesUsed", 0)),
    Column("usage", ("Total Usage", "(wghted-hrs)"), 12, _real("WeightedAccumulatedUsage", 2, 3600.0),
           _sum("WeightedAccumulatedUsage", 2, 3600.0)),
    Column("begin", ("Usage", "Start Time"), 16, _moment("BeginUsageTime")),
    Column("last", ("Last", "Usage Time"), 16, _moment("LastUsageTime")),
    Column("since", ("Time Since", "Last Usage"), 10, _last_usage),
    Column("requested", ("Weighted", "Requested"), 10, _real("Requested", 0), _sum("Requested", 0)),
    Column("floor", ("Submitter", "Floor"), 9, _bound("Floor")),
    Column("ceiling", ("Submitter", "Ceiling"), 9, _bound("Ceiling")),
)
OF_GROUPS = frozenset({"quota", "surplus", "used", "usage", "requested"})
"""Columns that mean something for an accounting group."""
SETS = {
    "most": frozenset({"quota", "surplus", "priority", "factor", "used", "usage", "since", "requested", "floor",
                       "ceiling"}),
    "priority": frozenset({"priority", "real", "factor"}),
    "usage": frozenset({"used", "usage", "begin", "last"}),
    "quotas": frozenset({"quota", "surplus", "requested"}),
    "all": frozenset(column.key for column in COLUMNS),
}


def main() -> int:
    """Entry of ``condor_userprio``."""
    return run(FLAGS, "condor_userprio", _answer)


def _answer(given: Sequence[Given]) -> int:
    edits = [item for item in given if item.name in EDITS]
    if len(edits) > 1:
        raise ToolError(f"{edits[1].word}: only one thing can be set at a time\n{reminder_of('condor_userprio')}")
    if not edits:
        _duration_s(given, None)
    return _edit(given, edits[0]) if edits else _show(given)


def _value(given: Sequence[Given], name: str) -> str:
    return next((item.values[0] for item in given if item.name == name and item.values), "")


def _edit(given: Sequence[Given], item: Given) -> int:
    edit = EDITS[item.name]
    user = item.values[0] if item.values else ""
    value = 0.0
    if edit.takes_value:
        try:
            value = float(item.values[1])
        except ValueError:
            raise ToolError(f"Error: {item.word} takes a number, not {item.values[1]!r}") from None
    if item.name not in ("resetall",) and "@" not in user and "." not in user:
        raise ToolError(f"condor_userprio: You must specify the full name of the submitter, user@domain, not {user!r}")
    duration_s = _duration_s(given, item)
    with negotiator(load(), name=_value(given, "name"), pool=_value(given, "pool")) as client:
        try:
            client.ask(NEGOTIATOR, SetPriority(submitter=user, what=edit.what, value=value, duration_s=duration_s))
        except WireError as error:
            raise ToolError(refused(error)) from None
    print(edit.said.format(user=user, value=value) + (f" for {duration_s:g} seconds" if duration_s else ""))
    return 0


def _duration_s(given: Sequence[Given], item: Given | None) -> float:
    """For how long what ``item`` sets is so; 0: until it is set again."""
    text = _value(given, "duration")
    if not text:
        return 0.0
    if item is None or item.name not in FOR_A_WHILE:
        raise ToolError(f"Error: -duration goes with {', '.join(f'-{name}' for name in FOR_A_WHILE)}")
    try:
        duration_s = float(text)
    except ValueError:
        duration_s = 0.0
    if not 0.0 < duration_s < float("inf"):
        raise ToolError(f"Error: -duration takes a number of seconds above 0, not {text!r}")
    return duration_s


# ---- showing


def _show(given: Sequence[Given]) -> int:
    names = {item.name for item in given}
    users = {item.values[0] for item in given if not item.name}
    who = _value(given, "getreslist")
    if who:
        return _resources(given, who)
    file = _value(given, "inputfile")
    if file:
        ads = _from_file(file)
    elif "collector" in names and "negotiator" not in names:
        ads = _published(_value(given, "pool"))
    else:
        ads = _asked(given)
    now_s = time.time()
    constraint = _constraint(_value(given, "constraint"))
    since_s = _since(given, names, now_s)
    ads = [
        ad for ad in ads
        if (not users or ad.get_str("Name") in users) and (constraint is None or is_true(constraint.evaluate(ad)))
        and (users or _is_active(ad, since_s))
    ]
    ads = _ordered(ads, names)
    if {"legacy", "modular"} <= set(names):
        raise ToolError("Error: -legacy and -modular are two forms of -long")
    if "long" in names and "legacy" in names:
        sys.stdout.writelines(_numbered(ads))
        return 0
    if "long" in names or "af" in names:
        from condor_actors.tools.printing.formats import FormatError, Row, long_rows

        options = [("af", item.qualifier, item.values) for item in given if item.name == "af"]
        try:
            rows = Row.of(options).rows(ads) if options else long_rows(ads)
            sys.stdout.writelines(rows)
        except FormatError as error:
            raise ToolError(f"Error: {error}") from None
        return 0
    sys.stdout.write(table(ads, _chosen(names), now_s))
    return 0


def _ordered(ads: list[ClassAd], names: set[str]) -> list[ClassAd]:
    """The lines as ``-flat``, ``-grouporder`` or ``-hierarchical`` want them."""
    if "flat" in names:
        return [ad for ad in ads if not ad.get_bool("IsAccountingGroup")]
    if "grouporder" in names:
        return sorted(ads, key=lambda ad: (not ad.get_bool("IsAccountingGroup"), ad.get_str("Name").count(".")
                                           if ad.get_bool("IsAccountingGroup") else 0, ad.get_str("Name").lower()))
    if "hierarchical" in names:
        return sorted(ads, key=_place_in_tree)
    return ads


def _place_in_tree(ad: ClassAd) -> tuple[list[str], bool, str]:
    """A group stands before its submitters, and these before its subgroups."""
    name = ad.get_str("Name").lower()
    is_group = ad.get_bool("IsAccountingGroup")
    group = name if is_group else name.partition("@")[0].rpartition(".")[0]
    return group.split(".") if group not in ("", "<none>") else [], not is_group, name


def _numbered(ads: Sequence[ClassAd]) -> Iterator[str]:
    """All ads as one, each attribute with the number of its ad behind its name."""
    for number, ad in enumerate(ads, 1):
        for line in ad.to_text().splitlines():
            name, _, value = line.partition(" = ")
            yield f"{name}{number} = {value}\n"


def _published(pool: str) -> list[ClassAd]:
    """What the negotiator has told the collector."""
    from condor_actors.messages.advertise import AdKind

    return query(load(), AdKind.ACCOUNTING, pool=pool)


def _constraint(text: str) -> Expr | None:
    if not text:
        return None
    try:
        return parse_expression(old_to_new(text))
    except ClassAdSyntaxError as error:
        raise ToolError(f"Error:  could not parse constraint {text}: {error.reason}") from None


def _asked(given: Sequence[Given]) -> list[ClassAd]:
    ads: list[ClassAd] = []
    cursor = ""
    with negotiator(load(), name=_value(given, "name"), pool=_value(given, "pool")) as client:
        while True:
            try:
                page = client.ask(NEGOTIATOR, QueryPriorities(cursor=cursor))
            except WireError as error:
                raise ToolError(refused(error)) from None
            ads += [ClassAd.from_bytes(text) for text in page.ads]
            cursor = page.cursor
            if not cursor:
                return ads


def _from_file(path: str) -> list[ClassAd]:
    from condor_actors.classads.forms.long_form import iter_long

    try:
        with open(open_written(path), encoding="utf-8", errors="surrogateescape") as file:
            return list(iter_long(file))
    except OSError as error:
        raise ToolError(f"Can't open file of userprio ads: {path}: {error.strerror}") from None


def _since(given: Sequence[Given], names: set[str], now_s: float) -> float:
    """Users that used nothing since then are not shown."""
    if "allusers" in names:
        return -1.0
    for item in given:
        if item.name == "activefrom":
            try:
                month, day, year = (int(value) for value in item.values)
                return time.mktime((year, month, day, 0, 0, 0, 0, 0, -1))
            except (ValueError, OverflowError):
                raise ToolError(f"Error: -activefrom takes MONTH DAY YEAR, not {' '.join(item.values)}") from None
    return now_s - DAY_S


def _is_active(ad: ClassAd, since_s: float) -> bool:
    return (since_s < 0 or ad.get_bool("IsAccountingGroup") or ad.get_int("ResourcesUsed") > 0
            or ad.get_int("LastUsageTime") >= since_s or ad.get_float("Requested") > 0)


def _chosen(names: set[str]) -> list[Column]:
    keys: set[str] = set()
    for name in names & SETS.keys():
        keys |= SETS[name]
    if "surplus" in names:
        keys |= SETS["quotas"]
    return [column for column in COLUMNS if column.key in (keys or SETS["most"])]


def table(ads: Sequence[ClassAd], columns: Sequence[Column], now_s: float) -> str:
    """The report: two lines of headings, a line a user, the sums."""
    if not any(ad.get_float("ConfigQuota", -1.0) >= 0 for ad in ads):
        columns = [column for column in columns if column.key not in ("quota", "surplus")] or list(columns)
    users = [ad for ad in ads if not ad.get_bool("IsAccountingGroup")]
    count = f"Number of users: {len(users)}"
    width = max(18, len(count), *(len(ad.get_str("Name")) for ad in ads)) if ads else max(18, len(count))
    updated_s = max((ad.get_int("LastUpdate") for ad in ads), default=int(now_s))
    rule = "-" * width + "".join(" " + "-" * column.width for column in columns)
    lines = [f"Last Priority Update: {time.strftime('%_m/%d %H:%M', time.localtime(updated_s))}"]
    for line, name in enumerate(("", "User Name")):
        lines.append((name.ljust(width) + "".join(" " + c.heads[line].center(c.width) for c in columns)).rstrip())
    lines.append(rule)
    for ad in ads:
        group = ad.get_bool("IsAccountingGroup")
        cells = "".join(
            " " + ("" if group and column.key not in OF_GROUPS else column.text(ad, now_s)).rjust(column.width)
            for column in columns
        )
        lines.append((ad.get_str("Name").ljust(width) + cells).rstrip())
    lines.append(rule)
    sums = "".join(" " + column.total(users).rjust(column.width) for column in columns)
    lines.append((count.ljust(width) + sums).rstrip())
    return "\n".join(lines) + "\n"


def _resources(given: Sequence[Given], user: str) -> int:
    """The slots that a user has now."""
    from condor_actors.messages.advertise import AdKind

    text = quote(user)
    slots = query(load(), AdKind.SLOT, f'State == "Claimed" && (AccountingGroup ?: RemoteUser) == {text}',
                  ("Name", "EnteredCurrentState"), pool=_value(given, "pool"))
    print("Resource Name                            Start Time\n-------------                            ----------")
    for ad in slots:
        when = time.strftime("%_m/%d/%Y %H:%M", time.localtime(ad.get_int("EnteredCurrentState")))
        print(f"{ad.get_str('Name'):<40} {when}")
    print(f"-------------\nNumber of Resources Used: {len(slots)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
