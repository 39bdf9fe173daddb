"""condor_top: what a daemon is busy with.

Asks the daemon itself twice; turns of its actors stand where HTCondor's daemons have commands and timers.

**Source**: the manual, condor_top.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence

import attrs
from rich.text import Text

from condor_actors.classads import ClassAd, quote
from condor_actors.config import Config
from condor_actors.messages.admin import DaemonStatistics, QueryStatistics
from condor_actors.messages.advertise import AdKind
from condor_actors.tools.lib.command import ToolError, Words, run
from condor_actors.tools.lib.contact import ADMIN, dial, load, local_node, query, refused, unreachable
from condor_actors.tools.lib.flags import Flag, Given
from condor_actors.tools.live.daemon_statistics import COLUMN_SETS, COLUMNS, health, process, table
from condor_actors.tools.live.screen import Screen
from condor_actors.tools.printing import ad_output
from condor_actors.tools.printing.terminal import untamed
from condor_actors.wire.blocking import Client, Unreachable, WireError, connect

KINDS = {"schedd": AdKind.SCHEDD, "startd": AdKind.STARTD, "collector": AdKind.COLLECTOR,
         "negotiator": AdKind.NEGOTIATOR, "master": AdKind.MASTER}
"""In the order in which one is chosen of those that run here."""
TYPES = {"Collector": "collector", "DaemonMaster": "master", "Negotiator": "negotiator", "Scheduler": "schedd",
         "Machine": "startd"}
FLAGS = (
    Flag("help", 1), Flag("h", 1, alias="help"), Flag("version", 1), Flag("live", 1),
    Flag("history", 3, refused="no ads of daemons are kept; -l shows what goes on now"),
    Flag("pool", 1, 1), Flag("name", 1, 1), Flag("delay", 1, 1), Flag("columns", 2, 1, alias="columnset"),
    Flag("sort", 2, 1), Flag("attrs", 1, 1), Flag("collector", 3), Flag("negotiator", 3), Flag("master", 2),
    Flag("schedd", 2), Flag("startd", 2),
)  # fmt: skip
LETTERS = {"l": "live", "p": "pool", "n": "name", "d": "delay", "c": "columns", "s": "sort"}
LONGEST_S = 7 * 86400


@attrs.define
class Call:
    """The command line, understood."""

    kind: str = ""
    pool: str = ""
    name: str = ""
    delay_s: float = 0.0
    columns: str = "default"
    sort: str = ""
    attributes: tuple[str, ...] = ()
    is_live: bool = False
    files: list[str] = attrs.Factory(list)


def main() -> int:
    """Entry of ``condor_top``."""
    words = [_long(word) for word in sys.argv[1:]]
    split = [part for word in words for part in (
        word.split("=", 1) if word.startswith(("-attrs=", "--attrs=")) else [word])]
    return run(FLAGS, "condor_top", _top, arguments=split, words=Words.of("condor_top"))


def _long(word: str) -> str:
    """HTCondor's letters are options of their own, not shortened words."""
    if word == "-H":
        return "-history"
    return f"-{LETTERS[word[1:]]}" if word[:1] == "-" and word[1:] in LETTERS else word


def _top(given: Sequence[Given]) -> int:
    call = Call()
    for item in given:
        _take(call, item)
    if call.files:
        if len(call.files) != 2:
            raise ToolError("Error: Bad arguments or more/less than 2 files passed:\n" + " ".join(call.files))
        return _of_files(call)
    try:
        return _of_daemon(call, load())
    except KeyboardInterrupt:
        print()
        return 0


def _take(call: Call, item: Given) -> None:
    value = item.values[0] if item.values else ""
    if not item.name:
        call.files.append(value)
    elif item.name in KINDS:
        call.kind = item.name
    elif item.name == "live":
        call.is_live = True
    elif item.name == "delay":
        if not value.isdecimal() or not 0 < int(value[:9]) <= LONGEST_S:
            raise ToolError(f"Error: {item.word} {value}: expected a number of seconds from 1 to {LONGEST_S}")
        call.delay_s = float(value)
    elif item.name == "columnset":
        call.columns = _one_of(item.word, value, COLUMN_SETS)
    elif item.name == "sort":
        call.sort = _one_of(item.word, value, COLUMNS)
    elif item.name == "attrs":
        call.attributes = tuple(each.strip() for each in value.split(",") if each.strip())
    else:
        setattr(call, item.name, value)


def _one_of(word: str, value: str, choices: Iterable[str]) -> str:
    for each in choices:
        if each.lower() == value.lower():
            return each
    raise ToolError(f"Error: {word} {value}: expected one of {', '.join(choices)}")


def _sort_of(call: Call) -> str:
    return call.sort or ("InstRate" if call.columns == "count" else "InstRt")


def _of_files(call: Call) -> int:
    ads = []
    for path in call.files:
        found = list(ad_output.ads_of_file(path))
        if not found:
            raise ToolError(f"Error: {path} does not contain any (valid) ClassAds")
        ads.append(found[0])
    old, new = sorted(ads, key=lambda ad: ad.get_float("MyCurrentTime"))
    for line in (*health(old, new), *table(old, new, COLUMN_SETS[call.columns], _sort_of(call), call.attributes)):
        print(line)
    return 0


# ---- asking


def _kind_here(config: Config) -> str:
    listed = [word.lower() for word in config.list_of("DAEMON_LIST")]
    return next((kind for kind in KINDS if kind in listed), "schedd")


def _line_to(config: Config, call: Call, kind: str) -> tuple[str, Client]:
    """The daemon's name, and a line to it."""
    if not call.name and not call.pool:
        try:
            return config.full_hostname, connect(local_node(config, kind))
        except Unreachable:
            pass
        except WireError as error:
            raise ToolError(unreachable(f"the {kind} of this machine", error)) from None
    name = quote(call.name)
    constraint = f"Name == {name} || Machine == {name}" if call.name else ""
    ads = query(config, KINDS[kind], constraint, ("Name", "MyAddress", "Machine"), pool=call.pool)
    if not ads:
        raise ToolError(f"Error: Did not receive any {kind.capitalize()} ads from Collector "
                        f"{call.pool or config.text('COLLECTOR_HOST')}")
    here = [ad for ad in ads if ad.get_str("Machine") == config.full_hostname] or ads
    if len(here) > 1:
        print(f"Warning: Received {len(here)} {kind.capitalize()} ads from Collector "
              f"{call.pool or config.text('COLLECTOR_HOST')}\nConsider specifying a daemon name with -n NAME.",
              file=sys.stderr)
    found = here[0].get_str("Name")
    return found, dial(config, here[0].get_str("MyAddress"), f"the {kind} {found}")


def _asked(client: Client) -> ClassAd:
    try:
        answer = client.ask(ADMIN, QueryStatistics())
    except WireError as error:
        raise ToolError(refused(error)) from None
    assert isinstance(answer, DaemonStatistics)
    return ClassAd.from_bytes(answer.ad)


def _of_daemon(call: Call, config: Config) -> int:
    kind = call.kind or _kind_here(config)
    delay_s = call.delay_s or float(config.seconds("STATISTICS_WINDOW_QUANTUM"))
    host, client = _line_to(config, call, kind)
    with client:
        old = _asked(client)
        name, head = old.get_str("Name") or host, kind.capitalize()
        if call.is_live and sys.stdout.isatty():
            return _live(call, head, name, client, delay_s, old)
        for line in process(head, name, old):
            print(line)
        sys.stdout.flush()
        with Screen(is_whole=False) as screen:
            _count_down(screen, delay_s)
        new = _asked(client)
        for line in (*health(old, new), *table(old, new, COLUMN_SETS[call.columns], _sort_of(call), call.attributes)):
            print(line)
    return 0


def _count_down(screen: Screen, delay_s: float) -> None:
    """Wait, and show for how long."""
    end_s = time.monotonic() + delay_s
    while (left_s := end_s - time.monotonic()) > 0:
        if sys.stderr.isatty():
            untamed(sys.stderr).write(f"\rUpdating ClassAd in {int(left_s) + 1:>5} s")
            sys.stderr.flush()
        screen.wait((), min(left_s, 1.0))
    if sys.stderr.isatty():
        untamed(sys.stderr).write("\r\n")


def _live(call: Call, head: str, name: str, client: Client, delay_s: float, old: ClassAd) -> int:
    """The same again and again; ``q`` ends it, the letters c and s turn to the next set of columns and column."""
    sets, columns = list(COLUMN_SETS), call.columns
    sort = _sort_of(call)
    new, body = old, [f"The first figures come after {delay_s:g} s."]
    with Screen() as screen:
        due_s = time.monotonic() + delay_s
        while True:
            left_s = due_s - time.monotonic()
            if left_s <= 0:
                old, new = new, _asked(client)
                due_s, left_s = time.monotonic() + delay_s, delay_s
            if new is not old:
                body = [*health(old, new), *table(old, new, COLUMN_SETS[columns], sort, call.attributes)]
            foot = f"next in {left_s:.0f} s   q quit   c columns ({columns})   s sort by ({sort})   space now"
            width, height = screen.size
            lines = [*process(head, name, new), *body][: max(height - 1, 1)]
            lines += [""] * (height - 1 - len(lines)) + [foot]
            screen.show(Text("\n".join(line[:width] for line in lines), no_wrap=True, end=""))
            for key in screen.wait((), min(max(left_s, 0.0), 1.0)):
                if key in ("q", "Q", "escape", "closed"):
                    return 0
                if key == "c":
                    columns = sets[(sets.index(columns) + 1) % len(sets)]
                    sort = sort if sort in COLUMN_SETS[columns] else COLUMN_SETS[columns][0]
                elif key == "s":
                    shown_columns = COLUMN_SETS[columns]
                    sort = shown_columns[(shown_columns.index(sort) + 1) % len(shown_columns)] if (
                        sort in shown_columns) else shown_columns[0]
                elif key == " ":
                    due_s = 0.0


if __name__ == "__main__":
    sys.exit(main())
