"""condor_status: what the collector knows of the pool.

**Source**: the manual, condor_status.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from condor_actors.classads import ClassAd, ClassAdSyntaxError, is_true, parse_expression, quote
from condor_actors.classads.text_form import iter_long, old_to_new
from condor_actors.messages.advertise import AdKind, AdsPage, QueryAds
from condor_actors.tools.contact import COLLECTOR, ToolError, collector, dial, load, refused
from condor_actors.tools.flags import MANY, Flag, Given, MissingValue, UnknownFlag, parse
from condor_actors.wire.blocking import Client, WireError

if TYPE_CHECKING:
    from condor_actors.config import Config
    from condor_actors.tools.status_columns import Column

FLAGS = (
    Flag("help", 1), Flag("version", 4), Flag("debug", 2, colon=True), Flag("diagnose", 3),
    Flag("long", 1, colon=True), Flag("xml", 1), Flag("json", 1, colon=True), Flag("attributes", 3, 1),
    Flag("autoformat", 5, MANY, colon=True, alias="af"), Flag("af", 2, MANY, colon=True),
    Flag("aaf", 3, MANY, colon=True), Flag("format", 1, 2), Flag("constraint", 3, 1), Flag("pool", 1, 1),
    Flag("limit", 3, 1), Flag("sort", 3, 1), Flag("totals", 1), Flag("wide", 1, colon=True), Flag("expert", 1),
    Flag("compact", 3), Flag("nocompact", 9), Flag("avail", 3, alias="avail"), Flag("available", 3, alias="avail"),
    Flag("claimed", 2), Flag("run", 2), Flag("state", 5), Flag("server", 2), Flag("startd", 5), Flag("slots", 2),
    Flag("schedd", 2), Flag("submitters", 3), Flag("collector", 3), Flag("master", 1), Flag("negotiator", 1),
    Flag("accounting", 4), Flag("generic", 3), Flag("any", 2), Flag("absent", 3), Flag("offline", 3),
    Flag("subsystem", 4, 1), Flag("direct", 3, 1), Flag("name", 3, 1), Flag("owner", 2),
    Flag("ads", 3, 1), Flag("target", 2, 1),
    Flag("statistics", 5, 1), Flag("snapshot", 3),
    *(Flag(name, len(name), takes, alias="unsupported") for name, takes in (
        ("annex", 1), ("cod", 0), ("defrag", 0), ("grid", 0), ("java", 0), ("license", 0), ("storage", 0), ("vm", 0),
        ("broken", 0), ("healthy", 0), ("lvm", 0), ("gpus", 0), ("merge", 1), ("print-format", 1))),
)
KINDS = {
    "schedd": AdKind.SCHEDD, "submitters": AdKind.SUBMITTER, "collector": AdKind.COLLECTOR, "master": AdKind.MASTER,
    "negotiator": AdKind.NEGOTIATOR, "startd": AdKind.STARTD, "accounting": AdKind.ACCOUNTING,
    "generic": AdKind.GENERIC,
}
KINDS_OF_DAEMONS = (AdKind.SCHEDD, AdKind.MASTER, AdKind.NEGOTIATOR)
DIRECT = "advertiser"
"""The actor that answers for a daemon itself."""
SUBSYSTEMS = {
    "collector": "collector", "negotiator": "negotiator", "master": "master", "daemonmaster": "master",
    "schedd": "schedd", "scheduler": "schedd", "startd": "normal", "machine": "normal", "submitter": "submitters",
}
VIEW_CONSTRAINTS = {
    "avail": 'State == "Unclaimed" && Cpus > 0', "claimed": 'State == "Claimed"', "run": 'State == "Claimed"',
    "absent": "Absent =?= true", "offline": "Offline =?= true",
}
USAGE = """Usage: condor_status [query] [display] [name ...]
  query:    -avail -claimed -run -state -server -startd -schedd -submitters -collector -master -negotiator
            -accounting -owner -any -absent -constraint EXPR -pool HOST -direct HOST -ads FILE -limit N
  display:  -compact -totals -long -json -xml -attributes A,B -af[:jlhVrTY,tng] ATTR... -format FMT ATTR -sort EXPR"""


@attrs.define
class Question:
    """The command line, understood."""

    view: str = "normal"
    kind: AdKind = AdKind.SLOT
    constraints: list[str] = attrs.Factory(list)
    names: list[str] = attrs.Factory(list)
    form: str = ""
    attributes: tuple[str, ...] = ()
    af: tuple[str, tuple[str, ...]] = ("", ())
    appended: tuple[str, tuple[str, ...]] = ("", ())
    formats: list[tuple[str, str]] = attrs.Factory(list)
    sorts: list[str] = attrs.Factory(list)
    pool: str = ""
    direct: str = ""
    file: str = ""
    target: str = ""
    limit: int = 0
    is_compact: bool = False
    is_totals: bool = False
    is_any: bool = False
    is_diagnosis: bool = False

    def projection(self) -> tuple[str, ...]:
        """Attributes to ask for; empty: all."""
        from condor_actors.tools.print_formats import AutoFormat, Format
        from condor_actors.tools.status_columns import CLOCK, COMPACT, VIEWS
        from condor_actors.tools.status_totals import TOTALS

        if self.form in ("long", "json", "xml") or self.sorts or self.target:
            return self.attributes if not (self.sorts or self.target) else ()
        names: set[str] = {"Name", "Machine", "SlotID", "DSlotID", "MyType"}
        if self.form == "af":
            return tuple(sorted(names | set(AutoFormat.of(*self.af).projection())))
        if self.form == "format":
            return tuple(sorted(names | {name for each in self.formats for name in Format.of(*each).field.names()}))
        for column in COMPACT if self.is_compact else VIEWS.get(self.view, VIEWS["any"]):
            names |= set(column.names)
        if self.appended[1]:
            names |= set(AutoFormat.of(*self.appended).projection())
        total = TOTALS.get(self.view)
        return tuple(sorted(names | set(CLOCK) | set(total.names if total is not None else ())))

    def constraint(self) -> str:
        """Everything that an ad must satisfy, as one expression."""
        parts = [f"({each})" for each in self.constraints]
        if self.names:
            parts.append("(" + " || ".join(_named(name) for name in self.names) + ")")
        return " && ".join(parts)


def _named(name: str) -> str:
    """An expression that is true of the ads that a word of the command line names."""
    text = quote(name)
    if "@" in name:
        return f'Name == {text} || (regexp(strcat("^", {text}, "\\\\."), Name))'
    return f'Name == {text} || Machine == {text} || (regexp(strcat("^", {text}, "\\\\."), Machine ?: Name))'


def main() -> int:
    """Entry of ``condor_status``."""
    try:
        given = parse(sys.argv[1:], FLAGS)
        names = {item.name for item in given}
        if "help" in names:
            print(USAGE)
            return 0
        if "version" in names:
            from condor_actors.tools.version import platform_line, version_line

            print(f"{version_line()}\n{platform_line()}")
            return 0
        return _answer(understand(given))
    except UnknownFlag as error:
        print(f"Error: unrecognized argument {error.word}\n{USAGE}", file=sys.stderr)
    except MissingValue as error:
        print(f"Error: Argument {error.word} requires {'two parameters' if error.flag.takes == 2 else 'a parameter'}",
              file=sys.stderr)
    except ToolError as error:
        print(error.text, file=sys.stderr)
        return error.status
    except BrokenPipeError:
        sys.stderr.close()
    return 1


def understand(given: Sequence[Given]) -> Question:
    """The question that a command line asks.

    :raises ToolError: it makes no sense.
    """
    question = Question()
    for item in given:
        value = item.values[0] if item.values else ""
        name = item.name
        if not name or name == "name":
            question.names.append(value)
        elif name == "unsupported":
            raise ToolError(f"Error: {item.word} is not supported: the pool has no ads or formats of this kind")
        elif name == "constraint":
            question.constraints.append(_checked(value))
        elif name in ("long", "json", "xml"):
            question.form = name
        elif name == "attributes":
            question.attributes += tuple(each for each in value.replace(",", " ").split() if each)
        elif name == "af":
            question.form, question.af = "af", (item.qualifier, item.values)
        elif name == "aaf":
            question.appended = (item.qualifier, item.values)
        elif name == "format":
            question.form = "format"
            question.formats.append((item.values[0], item.values[1]))
        else:
            _more(question, name, value)
    return question


def _more(question: Question, name: str, value: str) -> None:
    """The flags that choose what is asked and of whom."""
    if name == "subsystem":
        name = SUBSYSTEMS.get(value.lower(), "")
        if not name:
            raise ToolError(f"Error: unknown subsystem {value}; expected one of {', '.join(sorted(SUBSYSTEMS))}")
    if name == "owner":
        question.view, question.kind = "owner", AdKind.STARTD
    elif name in KINDS:
        question.view, question.kind = name, KINDS[name]
    elif name in ("run", "claimed", "avail", "absent", "offline"):
        question.view = "run" if name in ("run", "claimed") else "normal"
        question.constraints.append(VIEW_CONSTRAINTS[name])
    elif name in ("state", "server", "normal", "slots"):
        question.view = "normal" if name == "slots" else name
    elif name == "any":
        question.view, question.is_any = "any", True
    elif name == "compact":
        question.is_compact = True
    elif name == "totals":
        question.is_totals = True
    elif name == "sort":
        question.sorts.append(_checked(value))
    elif name == "limit":
        if not value.isdigit():
            raise ToolError(f"Error: -limit takes a number, not {value!r}")
        question.limit = int(value)
    elif name == "diagnose":
        question.is_diagnosis = True
    elif name in ("pool", "direct", "target"):
        setattr(question, name, value)
    elif name == "ads":
        question.file = value


def _checked(text: str) -> str:
    """An expression of the command line in the new form."""
    text = old_to_new(text)
    try:
        parse_expression(text)
    except ClassAdSyntaxError as error:
        raise ToolError(f"Error: couldn't parse the expression '{text}': {error.reason}") from None
    return text


# ---- ads


def _answer(question: Question) -> int:
    from condor_actors.tools.print_formats import FormatError

    try:
        projection = question.projection()
        if question.is_diagnosis:
            print(f"Query kind: {question.kind.value}\nConstraint: {question.constraint() or 'true'}\n"
                  f"Projection: {' '.join(projection) or '(all)'}")
            return 0
        ads = _found(question, projection)
        sys.stdout.writelines(_lines(question, _sorted(question, ads)))
    except FormatError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    sys.stdout.flush()
    return 0


def _found(question: Question, projection: tuple[str, ...]) -> list[ClassAd]:
    if question.file:
        return _from_file(question)
    config = load()
    with _line_to(question, config) as (client, actor):
        ads: list[ClassAd] = []
        if actor == DIRECT and question.kind in KINDS_OF_DAEMONS:
            return _own_ad(client, question)
        for kind in list(AdKind) if question.is_any else [question.kind]:
            ads += _pages(client, actor, kind, question, projection)
    return ads[:question.limit] if question.limit else ads


def _pages(client: Client, actor: str, kind: AdKind, question: Question,
           projection: tuple[str, ...]) -> Iterator[ClassAd]:
    cursor = ""
    limit = 0 if question.sorts else question.limit
    got = 0
    while True:
        try:
            page = client.ask(actor, QueryAds(ad_kind=kind, constraint=question.constraint(), projection=projection,
                                              limit=limit, cursor=cursor))
        except WireError as error:
            raise ToolError(refused(error)) from None
        assert isinstance(page, AdsPage)
        for text in page.ads:
            yield ClassAd.from_bytes(text)
        got += len(page.ads)
        cursor = page.cursor
        if not cursor or (limit and got >= limit):
            return


class _line_to:  # noqa: N801 - a context manager used as a function
    """A line to whoever is asked: the collector, or with ``-direct`` a daemon itself."""

    def __init__(self, question: Question, config: Config) -> None:
        self._client, self._actor = _dialled(question, config)

    def __enter__(self) -> tuple[Client, str]:
        return self._client, self._actor

    def __exit__(self, *_: object) -> None:
        self._client.close()


def _dialled(question: Question, config: Config) -> tuple[Client, str]:
    client = collector(config, pool=question.pool)
    if not question.direct:
        return client, COLLECTOR
    kind = question.kind if question.kind in KINDS_OF_DAEMONS else AdKind.SLOT
    with client:
        try:
            page = client.ask(COLLECTOR, QueryAds(ad_kind=kind, constraint=_named(question.direct), limit=1,
                                                  projection=("Name", "MyAddress")))
        except WireError as error:
            raise ToolError(refused(error)) from None
    who = f"{question.view if kind is not AdKind.SLOT else 'startd'} on {question.direct}"
    if not page.ads:
        raise ToolError(f"Error: Failed to locate {who}")
    return dial(config, ClassAd.from_bytes(page.ads[0]).get_str("MyAddress"), who), DIRECT


def _own_ad(client: Client, question: Question) -> list[ClassAd]:
    """The ad of the daemon that was asked directly, where it has no advertiser."""
    from condor_actors.messages.admin import Ping

    try:
        ad = ClassAd.from_bytes(client.ask("admin", Ping()).ad)
    except WireError as error:
        raise ToolError(refused(error)) from None
    constraint = parse_expression(question.constraint()) if question.constraints else None
    return [ad] if constraint is None or is_true(constraint.evaluate(ad)) else []


def _from_file(question: Question) -> list[ClassAd]:
    constraint = parse_expression(question.constraint()) if question.constraint() else None
    try:
        with open(question.file, encoding="utf-8", errors="surrogateescape") as file:
            ads = [ad for ad in iter_long(file) if constraint is None or is_true(constraint.evaluate(ad))]
    except OSError as error:
        raise ToolError(f"Error: can't open {question.file}: {error.strerror}") from None
    except ClassAdSyntaxError as error:
        raise ToolError(f"Error: {question.file}: {error}") from None
    return ads[:question.limit] if question.limit else ads


def _sorted(question: Question, ads: list[ClassAd]) -> list[ClassAd]:
    if question.sorts:
        for text in reversed(question.sorts):
            expression = parse_expression(text)
            ads.sort(key=lambda ad: _order(expression.evaluate(ad)))
        return ads
    if question.kind is AdKind.SLOT:
        ads.sort(key=lambda ad: (ad.get_str("Machine").lower(), ad.get_int("SlotID"), ad.get_int("DSlotID"),
                                 ad.get_str("Name").lower()))
    else:
        ads.sort(key=lambda ad: (ad.get_str("MyType").lower(), ad.get_str("Name").lower()))
    return ads


def _order(value: object) -> tuple[int, float, str]:
    if isinstance(value, (bool, int, float)):
        return 1, float(value), ""
    return (2, 0.0, value.lower()) if isinstance(value, str) else (0, 0.0, "")


# ---- output


def _lines(question: Question, ads: list[ClassAd]) -> Iterable[str]:
    from condor_actors.tools.print_formats import AutoFormat, Format, json_rows, long_rows, xml_rows

    if question.form == "af":
        return AutoFormat.of(*question.af).rows(ads)
    if question.form == "format":
        forms = [Format.of(*each) for each in question.formats]
        return ("".join(form.text(ad) for form in forms) for ad in ads)
    if question.form == "long":
        return long_rows(ads, question.attributes)
    if question.form == "json":
        return json_rows(ads, question.attributes, when_empty="[\n]\n")
    if question.form == "xml":
        return xml_rows(ads, question.attributes)
    return _table(question, ads)


def _table(question: Question, ads: list[ClassAd]) -> Iterator[str]:
    from condor_actors.tools.status_columns import COMPACT, VIEWS, compact_row, sensors_of, table
    from condor_actors.tools.status_totals import TOTALS, totals

    columns: Sequence[Column] = VIEWS.get(question.view, VIEWS["any"])
    rows = ads
    if question.view == "owner":
        rows = [sensor for ad in ads for sensor in sensors_of(ad)]
    if question.is_compact and question.kind is AdKind.SLOT:
        machines: dict[str, list[ClassAd]] = {}
        for ad in ads:
            machines.setdefault(ad.get_str("Machine"), []).append(ad)
        rows, columns = [compact_row(each) for each in machines.values()], COMPACT
    if not question.is_totals:
        yield from table(rows, [*columns, *_appended(question)])
    total = TOTALS.get("normal" if question.is_compact else question.view)
    if total is not None:
        yield totals(ads, total, average_last=question.view == "run")


def _appended(question: Question) -> list[Column]:
    from condor_actors.tools.print_formats import AutoFormat
    from condor_actors.tools.status_columns import Column

    qualifier, names = question.appended
    columns = []
    for name in names:
        one = AutoFormat.of(qualifier, (name,))
        columns.append(Column(name, 0, lambda ad, one=one: one.texts(ad)[0], (name,)))  # type: ignore[misc]
    return columns


if __name__ == "__main__":
    sys.exit(main())
