"""condor_status: what the collector knows of the pool.

**Source**: the manual, condor_status.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

from condor_actors import records
from condor_actors.classads import ClassAd, is_true, parse_expression, quote
from condor_actors.messages.advertise import AdKind, AdsPage, QueryAds
from condor_actors.tools.lib.command import ToolError, run
from condor_actors.tools.lib.contact import COLLECTOR, collector, dial, load, refused
from condor_actors.tools.lib.flags import ALWAYS_SHORT, LIST, NO_DEBUG, Flag, Given
from condor_actors.tools.printing import ad_output
from condor_actors.wire.blocking import Client, WireError

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any

    from condor_actors.config import Config
    from condor_actors.tools.printing.status_columns import Column

WHOLE_ADS = "what a daemon says of itself is always complete"
FLAGS = (
    Flag("help", 1), Flag("version", 4), Flag("debug", 2, colon=True, idle=NO_DEBUG), Flag("diagnose", 3),
    Flag("why", 2), *ad_output.flags(json=1, limit=2, constraint=3),
    Flag("aaf", 3, LIST, colon=True), Flag("pool", 1, 1), Flag("sort", 2, 1), Flag("totals", 1),
    Flag("wide", 1, colon=True, idle="lines are never cut"), Flag("expert", 1, idle=ALWAYS_SHORT),
    Flag("compact", 3), Flag("nocompact", 5), Flag("available", 2, alias="avail"),
    Flag("claimed", 2), Flag("run", 1), Flag("state", 4), Flag("server", 2), Flag("startd", 4), Flag("slots", 2),
    Flag("schedd", 2), Flag("submitters", 3), Flag("collector", 3), Flag("master", 1), Flag("negotiator", 1),
    Flag("accounting", 4), Flag("generic", 2), Flag("any", 2), Flag("absent", 2), Flag("offline", 2),
    Flag("subsystem", 4, 1), Flag("direct", 3, 1), Flag("name", 3, 1), Flag("owner", 2),
    Flag("ads", 2, 1), Flag("target", 2, 1), Flag("merge", 3, 1),
    Flag("statistics", 5, 1, idle=WHOLE_ADS), Flag("snapshot", 3, idle=WHOLE_ADS),
    Flag("java", 1), Flag("vm", 2), Flag("gpus", 2),
    Flag("annex", 2, 1, refused="-constraint 'AnnexName == \"NAME\"' selects the machines of an annex"),
    Flag("cod", 3, refused="there are no claims on demand; condor_reserve keeps slots for a user"),
    Flag("defrag", 3, refused="the defrag daemon sends no ad; -constraint Draining shows the machines that it drains"),
    Flag("grid", 3, refused="other batch systems have no ads here; condor_q -grid shows the jobs that are in them"),
    Flag("license", 3, refused="there are no ads of licenses; concurrency limits count them (condor_config_val "
                               "-negotiator NAME_LIMIT)"),
    Flag("storage", 3, refused="machines do not advertise network storage; -constraint selects by any attribute"),
    Flag("broken", 3, refused="slots are not marked as broken; -state shows what each of them does"),
    Flag("healthy", 3, colon=True, refused="machines do not rate their health; -constraint selects by any attribute"),
    Flag("lvm", 2, refused="disk space is not kept apart by logical volumes; -af Name Disk shows what each slot has"),
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
    "absent": "Absent =?= true", "offline": "Offline =?= true", "java": "HasJava =?= true", "vm": "HasVM =?= true",
    "gpus": "(TotalSlotGPUs ?: 0) > 0",
}


@records.define
class Question(ad_output.AdQuestion):
    """The command line, understood."""

    view: str = "normal"
    kind: AdKind = AdKind.SLOT
    wanted: list[str] = records.Factory(list)
    appended: tuple[str, tuple[str, ...]] = ("", ())
    sorts: list[str] = records.Factory(list)
    pool: str = ""
    direct: str = ""
    file: str = ""
    target: str = ""
    merge: str = ""
    is_compact: bool = False
    is_totals: bool = False
    is_any: bool = False
    is_diagnosis: bool = False
    is_why: bool = False

    def projection(self) -> tuple[str, ...]:
        """Attributes to ask for; empty: all."""
        from condor_actors.tools.printing.formats import AutoFormat
        from condor_actors.tools.printing.status_columns import CLOCK, COMPACT, VIEWS
        from condor_actors.tools.status_totals import TOTALS

        asked = self.names()
        if self.sorts or self.target or self.merge or self.form == "table":
            return ()
        if self.form in ad_output.WHOLE:
            return self.attributes
        names: set[str] = {"Name", "Machine", "SlotID", "DSlotID", "MyType"}
        if asked is not None:
            return tuple(sorted(names | set(asked)))
        for column in COMPACT if self.is_compact else VIEWS.get(self.view, VIEWS["any"]):
            names |= set(column.names)
        if self.appended[1]:
            names |= AutoFormat.of(*self.appended).projection()
        total = TOTALS.get(self.view)
        return tuple(sorted(names | set(CLOCK) | set(total.names if total is not None else ())))

    def constraint(self) -> str:
        """Everything that an ad must satisfy, as one expression."""
        return self.conjunction(" || ".join(_named(name) for name in self.wanted))


def _named(name: str) -> str:
    """An expression that is true of the ads that a word of the command line names."""
    text = quote(name)
    if "@" in name:
        return f'Name == {text} || (regexp(strcat("^", {text}, "\\\\."), Name))'
    return f'Name == {text} || Machine == {text} || (regexp(strcat("^", {text}, "\\\\."), Machine ?: Name))'


def main() -> int:
    """Entry of ``condor_status``."""
    return run(FLAGS, "condor_status", lambda given: _answer(understand(given)))


def understand(given: Sequence[Given]) -> Question:
    """The question that a command line asks.

    Raises:
        ToolError: it makes no sense.
    """
    question = Question()
    for item in given:
        value = item.values[0] if item.values else ""
        name = item.name
        if not name or name == "name":
            question.wanted.append(value)
        elif question.take(item):
            continue
        elif name == "aaf":
            question.appended = (item.qualifier, item.values)
        else:
            _more(question, name, value)
    return question


def _more(question: Question, name: str, value: str) -> None:
    """The flags that choose the query and the daemon that answers it."""
    if name == "subsystem":
        name = SUBSYSTEMS.get(value.lower(), "")
        if not name:
            raise ToolError(f"Error: unknown subsystem {value}; expected one of {', '.join(sorted(SUBSYSTEMS))}")
    if name == "owner":
        question.view, question.kind = "owner", AdKind.STARTD
    elif name in KINDS:
        question.view, question.kind = name, KINDS[name]
    elif name in VIEW_CONSTRAINTS:
        question.view = "run" if name in ("run", "claimed") else "normal"
        question.constraints.append(VIEW_CONSTRAINTS[name])
    elif name in ("state", "server", "normal", "slots"):
        question.view = "normal" if name == "slots" else name
    elif name == "any":
        question.view, question.is_any = "any", True
    elif name in ("compact", "nocompact"):
        question.is_compact = name == "compact"
    elif name == "totals":
        question.is_totals = True
    elif name == "sort":
        question.sorts.append(ad_output.checked(value))
    elif name == "diagnose":
        question.is_diagnosis = True
    elif name == "why":
        question.is_why = True
    elif name in ("pool", "direct", "target", "merge"):
        setattr(question, name, value)
    elif name == "ads":
        question.file = value


# ---- ads


def _answer(question: Question) -> int:
    projection = question.projection()
    if question.is_diagnosis:
        print(f"Query kind: {question.kind.value}\nConstraint: {question.constraint() or 'true'}\n"
              f"Projection: {' '.join(projection) or '(all)'}")
        return 0
    if question.is_why:
        return ad_output.write(_why(question))
    ads = _sorted(question, _found(question, projection))
    if question.merge:
        return ad_output.write(_merged(question, ads, _sorted(question, ad_output.ads_of_file(question.merge))))
    return ad_output.write(_printed(question, ads))


def _why(question: Question) -> Iterator[str]:
    """Of each machine asked for, why it runs nothing or no more than it does."""
    from condor_actors.tools.analysis.plain_answers import machine_answer

    if not question.wanted:
        raise ToolError("Error: -why needs the name of a machine: condor_status -why NAME")
    machines: dict[str, list[ClassAd]] = {}
    for ad in _found(question, ()):
        machines.setdefault(ad.get_str("Machine") or ad.get_str("Name"), []).append(ad)
    if not machines:
        raise ToolError(f"Error: the collector knows no machine {' '.join(question.wanted)}: no startd there has said "
                        "anything lately.  condor_status -absent shows those that were there; condor_who on the "
                        "machine says what runs.")
    import textwrap

    for slots in machines.values():
        yield textwrap.fill(machine_answer(load(), slots, question.pool), 100, break_long_words=False,
                            break_on_hyphens=False) + "\n"


def _printed(question: Question, ads: list[ClassAd]) -> Iterable[str]:
    targets = ad_output.ads_of_file(question.target, "target ad file") if question.target else [None]
    rows = question.rows(ads, when_empty="[\n]\n", target=targets[0] if targets else None)
    return _table(question, ads) if rows is None else rows


def _merged(question: Question, ads: list[ClassAd], earlier: list[ClassAd]) -> Iterator[str]:
    """The ads of a query beside those of a file: what is new, what is in both, what is gone."""
    key = _key_of(question)
    now, then = {key(ad) for ad in ads}, {key(ad) for ad in earlier}
    parts = {
        "new": [ad for ad in ads if key(ad) not in then],
        "both": [ad for ad in ads if key(ad) in then],
        "gone": [ad for ad in earlier if key(ad) not in now],
    }
    if question.form == "json":
        texts = [f'"{name}": {"".join(_printed(question, part))}'.rstrip("\n") for name, part in parts.items()]
        yield "{\n" + ",\n".join(texts) + "\n}\n"
        return
    heads = {"new": f"not in {question.merge}", "both": f"also in {question.merge}",
             "gone": f"in {question.merge} only"}  # fmt: skip
    for name, part in parts.items():
        yield f"-- {len(part)} ads {heads[name]}\n"
        yield from _printed(question, part)


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
    """A line to the daemon that is asked: the collector, or with ``-direct`` a daemon itself."""

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
    ads = list(ad_output.fitting(ad_output.ads_of_file(question.file), question.constraint()))
    return ads[:question.limit] if question.limit else ads


def _sorted(question: Question, ads: list[ClassAd]) -> list[ClassAd]:
    return sorted(ads, key=_key_of(question))


def _key_of(question: Question) -> Callable[[ClassAd], tuple[Any, ...]]:
    """What ads are sorted by, and told apart by when they are merged."""
    if question.sorts:
        expressions = [parse_expression(text) for text in question.sorts]
        return lambda ad: tuple(_order(expression.evaluate(ad)) for expression in expressions)
    if question.kind is AdKind.SLOT:
        return lambda ad: (ad.get_str("Machine").lower(), ad.get_int("SlotID"), ad.get_int("DSlotID"),
                           ad.get_str("Name").lower())
    return lambda ad: (ad.get_str("MyType").lower(), ad.get_str("Name").lower())


def _order(value: object) -> tuple[int, float, str]:
    if isinstance(value, (bool, int, float)):
        return 1, float(value), ""
    return (2, 0.0, value.lower()) if isinstance(value, str) else (0, 0.0, "")


# ---- output


def _table(question: Question, ads: list[ClassAd]) -> Iterator[str]:
    from condor_actors.tools.printing.status_columns import COMPACT, VIEWS, compact_row, sensors_of, table
    from condor_actors.tools.status_totals import TOTALS, totals

    total = TOTALS.get("normal" if question.is_compact else question.view)
    if question.form == "table":
        from condor_actors.tools.printing.tables import PrintTable

        custom: PrintTable = ad_output.understood(lambda: PrintTable.read(question.table_file))
        ads = custom.chosen(ads)
        if not question.is_totals:
            yield from ad_output.understood(lambda: custom.lines(ads, below_heads="\n"))
        if total is not None and custom.has_summary:
            yield totals(ads, total, average_last=question.view == "run")
        return
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
    if total is not None:
        yield totals(ads, total, average_last=question.view == "run")


def _appended(question: Question) -> list[Column]:
    from condor_actors.tools.printing.formats import AutoFormat
    from condor_actors.tools.printing.status_columns import Column

    qualifier, names = question.appended
    columns = []
    for name in names:
        one = AutoFormat.of(qualifier, (name,))
        columns.append(Column(name, 0, lambda ad, one=one: one.texts(ad)[0], (name,)))  # type: ignore[misc]
    return columns


if __name__ == "__main__":
    sys.exit(main())
