"""condor_watch: the pool on a terminal, as it goes on: jobs, slots, owners, transfers, checkpoints.

Where standard output is no terminal, one picture is printed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import attrs
from rich.text import Text

from condor_actors import accounts
from condor_actors.cores.web.rows import MOST_ROWS, View
from condor_actors.tools.lib.command import ToolError, Words, run
from condor_actors.tools.lib.contact import load
from condor_actors.tools.lib.flags import NO_DEBUG, Flag, Given
from condor_actors.tools.live.pool_questions import PoolNews, PoolQuestions
from condor_actors.tools.live.pool_views import VIEWS, Line, header, story_lines, tabled
from condor_actors.tools.live.screen import Screen

FLAGS = (
    Flag("help", 1), Flag("version", 1), Flag("debug", 1, idle=NO_DEBUG), Flag("pool", 1, 1), Flag("name", 1, 1),
    Flag("view", 2, 1), Flag("interval", 1, 1), Flag("mine", 1), Flag("once", 1),
)
NAMES = tuple(name for name, _, _ in VIEWS)
SORTS = ("id", "status", "owner", "entered", "moves", "memory")
NARROWEST = 60
PATIENCE_S = 60.0
HELP = ("1 2 3 4 5, tab   jobs, slots, owners, transfers, checkpoints", "up down pgup pgdn home end   move",
        "enter   what became of the job          escape   back", "/   show what contains a text; escape ends it",
        "s   sort jobs by the next column          r   the other way round", "m   my jobs, or everybody's",
        "space   ask the pool now          q   quit")


@attrs.define
class Place:
    """Where the viewer is.

    Attributes:
        view: which of :data:`VIEWS`.
        chosen, top: the line that is marked, and the first that is shown.
        sort, is_descending, is_mine, search: of the jobs.
        typing: the text that is being typed for `search`; None: none is.
        page: what is shown over the views: ``story``, ``help`` or nothing.
    """

    view: int = 0
    chosen: int = 0
    top: int = 0
    sort: int = 0
    is_descending: bool = False
    is_mine: bool = False
    search: str = ""
    typing: str | None = None
    page: str = ""


def main() -> int:
    """Entry of ``condor_watch``."""
    return run(FLAGS, "condor_watch", _watch, words=Words.of("condor_watch"))


def _watch(given: Sequence[Given]) -> int:
    place, pool, name, interval_s, is_once = Place(), "", "", 2.0, False
    for item in given:
        value = item.values[0] if item.values else ""
        if item.name == "pool":
            pool = value
        elif item.name == "name":
            name = value
        elif item.name == "mine":
            place.is_mine = True
        elif item.name == "once":
            is_once = True
        elif item.name == "view":
            if value not in NAMES:
                raise ToolError(f"Error: {item.word} {value}: expected one of {', '.join(NAMES)}")
            place.view = NAMES.index(value)
        elif item.name == "interval":
            interval_s = _interval(item.word, value)
        elif not item.name:
            raise ToolError(f"Error: condor_watch takes no {value!r}; -view shows {', '.join(NAMES)}")
    with PoolQuestions(load(), pool=pool, schedd=name, interval_s=interval_s) as questions:
        try:
            if is_once or not sys.stdout.isatty():
                return _once(questions, place)
            return _live(questions, place)
        except KeyboardInterrupt:
            return 0


def _interval(word: str, value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0.2 <= seconds <= 3600:
        raise ToolError(f"Error: {word} {value}: expected a number of seconds from 0.2 to 3600")
    return seconds


def _once(questions: PoolQuestions, place: Place) -> int:
    """One picture, and 1 where the pool could not be asked."""
    with Screen(is_whole=False) as screen:
        end_s = time.monotonic() + PATIENCE_S
        while not questions.news.at_s and time.monotonic() < end_s:
            screen.wait((questions.descriptor,), 1.0)
        width = max(screen.size[0], NARROWEST)
        with questions.news.lock:
            problems = dict(questions.news.problems)
            lines = _lines(questions.news, place, width, 10_000)
        for line in lines:
            print(line.plain.rstrip())
    for who, problem in problems.items():
        print(f"WARNING: {who}: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _live(questions: PoolQuestions, place: Place) -> int:
    with Screen() as screen:
        while True:
            width, height = screen.size
            with questions.news.lock:
                lines = _lines(questions.news, place, max(width, NARROWEST), height - 1)
                keyed = _view_lines(questions.news, place)
                foot = _foot(questions.news, place, width)
            lines += [Text("")] * (height - 1 - len(lines)) + [foot]
            screen.show(Text("\n", no_wrap=True, end="", overflow="crop").join(lines[:height]))
            for key in screen.wait((questions.descriptor,), 1.0):
                if key == "closed" or not _press(key, place, questions, keyed, max(height - 8, 1)):
                    return 0
            questions.forget()


# ---- what is shown


def _rows(news: PoolNews, place: Place) -> Any:
    """What the view is made of."""
    name = NAMES[place.view]
    if name == "jobs":
        view = View(owner=accounts.own_name() if place.is_mine else "", search=place.search, sort=SORTS[place.sort],
                    descending=place.is_descending)
        return news.queue.page(view, 0, MOST_ROWS).rows
    if name == "slots":
        return [news.slots.slots[each] for each in sorted(news.slots.slots)]
    if name == "owners":
        return news.slots.machines()
    return news.running


def _view_lines(news: PoolNews, place: Place) -> list[Line]:
    name, _, lines_of = VIEWS[place.view]
    lines = lines_of(_rows(news, place), time.time())
    if name == "jobs" or not place.search:
        return lines
    wanted = place.search.lower()
    return [line for line in lines if any(wanted in str(cell).lower() for cell in line.cells)]


def _lines(news: PoolNews, place: Place, width: int, height: int) -> list[Text]:
    if place.page == "help":
        return [Text(line) for line in HELP]
    if place.page == "story":
        told = story_lines(news.story, width) if news.story is not None else [Text("The schedd is being asked.")]
        place.top = min(place.top, max(len(told) - 1, 0))
        return told[place.top:place.top + height]
    found = header(news.queue.counts, news.slots.counts(), width)
    tabs = Text("      ")
    for number, name in enumerate(NAMES):
        tabs.append(f" {number + 1} {name} ", style="reverse" if number == place.view else "")
    tabs.truncate(width)
    found += [tabs, Text("")]
    lines = _view_lines(news, place)
    room = max(height - len(found) - 1, 1)
    place.chosen = min(max(place.chosen, 0), max(len(lines) - 1, 0))
    place.top = min(place.top, place.chosen, max(len(lines) - room, 0))
    place.top = max(place.top, place.chosen - room + 1, 0)
    part = lines[place.top:place.top + room]
    return found + tabled(VIEWS[place.view][1](), part, width, place.chosen - place.top)


def _foot(news: PoolNews, place: Place, width: int) -> Text:
    if place.typing is not None:
        return Text(f"/{place.typing}_")
    if news.problems:
        who, problem = next(iter(news.problems.items()))
        text = Text(f"{who}: {problem}", style="red")
    elif not news.at_s:
        text = Text("The pool is being asked.")
    else:
        parts = [time.strftime("%H:%M:%S", time.localtime(news.at_s)), "? help", "q quit"]
        parts += [f"/{place.search}"] if place.search else []
        if NAMES[place.view] == "jobs":
            parts.append(f"by {SORTS[place.sort]}{' down' if place.is_descending else ''}")
            parts += ["mine"] if place.is_mine else []
        text = Text("   ".join(parts), style="dim")
    text.truncate(width)
    return text


# ---- keys


def _press(key: str, place: Place, questions: PoolQuestions, lines: Sequence[Line], page: int) -> bool:
    """What a key does; False: it ends the program."""
    if place.typing is not None:
        _type(key, place)
        return True
    moves = {"up": -1, "k": -1, "down": 1, "j": 1, "pageup": -page, "pagedown": page, "home": -10**9, "end": 10**9}
    if key in moves:
        if place.page == "story":
            place.top = max(place.top + moves[key], 0)
        else:
            place.chosen = max(place.chosen + moves[key], 0)
    elif key in ("escape", "backspace", "left") and (place.page or place.search):
        if not place.page:
            place.search = ""
        place.page, place.top = "", 0
    elif key in ("q", "Q"):
        return False
    elif key in "12345" or key in ("tab", "backtab"):
        step = 1 if key == "tab" else -1
        place.view = int(key) - 1 if key.isdecimal() else (place.view + step) % len(VIEWS)
        place.chosen = place.top = 0
        place.page = ""
    elif key in ("enter", "right"):
        _open(place, questions, lines)
    else:
        _set(key, place, questions)
    return True


def _type(key: str, place: Place) -> None:
    assert place.typing is not None
    if key == "enter":
        place.search, place.typing, place.chosen = place.typing, None, 0
    elif key == "escape":
        place.typing = None
    elif key == "backspace":
        place.typing = place.typing[:-1]
    elif len(key) == 1 and key.isprintable():
        place.typing += key


def _open(place: Place, questions: PoolQuestions, lines: Sequence[Line]) -> None:
    """The story of the job that is marked."""
    if place.page or not lines or place.chosen >= len(lines):
        return
    key = lines[place.chosen].key
    if isinstance(key, tuple):
        place.page, place.top = "story", 0
        questions.ask_story(*key)


def _set(key: str, place: Place, questions: PoolQuestions) -> None:
    if key == "/":
        place.typing = ""
    elif key in ("?", "h"):
        place.page = "help"
    elif key == "s":
        place.sort = (place.sort + 1) % len(SORTS)
    elif key == "r":
        place.is_descending = not place.is_descending
    elif key == "m":
        place.is_mine = not place.is_mine
    elif key == " ":
        questions.now()


if __name__ == "__main__":
    sys.exit(main())
