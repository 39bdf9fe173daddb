"""The page's data as JSON; :mod:`.openapi` describes it, and the tests hold the one against the other.

Theory: each question is a function of the knowledge and of typed parameters.  A parameter that is not in its table,
comes twice or is not of its kind is refused by name; texts in the answers are data, never markup.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

import attrs
from twisted.internet.defer import Deferred

from condor_actors.classads import ClassAd
from condor_actors.cores.web import story
from condor_actors.cores.web.rows import COLUMNS, MOST_ROWS, STATES, View
from condor_actors.daemons.web.door import LATER, answer, refuse
from condor_actors.daemons.web.pool_watch import PoolKnowledge
from condor_actors.messages.envelope import Refused
from condor_actors.messages.watch import Story

__all__ = ["PARAMETERS", "BadQuestion", "JsonApi", "Parameter", "fail", "finish", "read_parameters"]

WAIT_S = 15.0
"""How long a question waits for a round of the pool before it is answered by what there is."""
MOST_NUMBER = 2**31 - 1


class BadQuestion(ValueError):
    """What is wrong with a question; becomes status 400."""


@attrs.frozen(kw_only=True)
class Parameter:
    """One parameter of a question.

    Attributes:
        doc: for the description.
        default: when it is not given.
        choices: its only values; empty: any.
        low, high: of a number; None: it is a text.
        longest: letters of a text.
    """

    doc: str
    default: Any = ""
    choices: tuple[str, ...] = ()
    low: int | None = None
    high: int = MOST_NUMBER
    longest: int = 200

    def read(self, name: str, text: str) -> Any:
        """The value that was given.

        Raises:
            BadQuestion: it is none.
        """
        if self.low is not None:
            digits = text.removeprefix("-")
            if not (digits.isascii() and digits.isdigit()) or len(text) > 11 or not self.low <= int(text) <= self.high:
                raise BadQuestion(f"{name}={text[:40]!r}: expected a number from {self.low} to {self.high}")
            return int(text)
        if self.choices and text not in self.choices:
            raise BadQuestion(f"{name}={text[:40]!r}: expected one of {', '.join(self.choices)}")
        if len(text) > self.longest:
            raise BadQuestion(f"{name} is too long: at most {self.longest} letters")
        return text


JOB = {
    "cluster": Parameter(doc="The job's cluster.", low=0, default=None),
    "proc": Parameter(doc="Its number in the cluster.", low=0, default=0),
    "schedd": Parameter(doc="The name of its schedd; may be left out where there is one."),
}
PARAMETERS: dict[str, dict[str, Parameter]] = {
    "/api/summary": {},
    "/api/pool": {},
    "/api/machines": {},
    "/api/figures": {
        "span": Parameter(doc="How far back.", default="day", choices=("hour", "day", "week", "month")),
    },
    "/api/jobs": {
        "status": Parameter(doc="Only jobs in this state.", choices=tuple(STATES.values())),
        "owner": Parameter(doc="Only this owner's jobs."),
        "search": Parameter(doc="Only jobs whose number, schedd, owner, host, batch or command contains this."),
        "sort": Parameter(doc="By which column.", default="id", choices=("id", *COLUMNS)),
        "order": Parameter(doc="Which way.", default="up", choices=("up", "down")),
        "offset": Parameter(doc="The first row.", default=0, low=0),
        "limit": Parameter(doc="How many rows.", default=50, low=1, high=MOST_ROWS),
    },
    "/api/job": JOB,
    "/api/session": {},
}
"""Every question, by path, with its parameters; one whose default is None must be given."""


def read_parameters(path: str, uri: bytes) -> dict[str, Any]:
    """The parameters of a question.

    Raises:
        BadQuestion: one is unknown, given twice, missing, or no value of its kind.
    """
    table = PARAMETERS[path]
    _, _, query = uri.partition(b"?")
    try:
        unquote_to_bytes(query.replace(b"+", b" ")).decode("utf-8")
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=20, errors="strict")
    except ValueError:
        raise BadQuestion("the parameters cannot be read: not UTF-8, or too many") from None
    found: dict[str, Any] = {}
    for name, text in pairs:
        if name not in table:
            raise BadQuestion(f"there is no parameter {name[:40]!r} here; expected {', '.join(table) or 'none'}")
        if name in found:
            raise BadQuestion(f"{name} is given twice")
        found[name] = table[name].read(name, text)
    for name, parameter in table.items():
        if name not in found and parameter.default is None:
            raise BadQuestion(f"{name} is missing")
    return {name: found.get(name, parameter.default) for name, parameter in table.items()}


class JsonApi:
    """Answers the questions of :data:`PARAMETERS`.

    Args:
        known: what is known.
        update_s: how often the pool is asked.
        figures: the points of a span.
        clock: the reactor.
    """

    def __init__(self, known: PoolKnowledge, update_s: Callable[[], float],
                 figures: Callable[[str], dict[str, Any]], clock: Any) -> None:
        self._known = known
        self._update_s = update_s
        self._figures = figures
        self._clock = clock
        self._questions: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "/api/summary": lambda asked: known.summary(),
            "/api/pool": lambda asked: {"slots": list(known.slots.slots.values()), "summary": known.summary()},
            "/api/machines": lambda asked: {"machines": known.slots.machines()},
            "/api/figures": lambda asked: figures(asked["span"]),
            "/api/jobs": self._jobs,
        }

    def render(self, path: str, request: Any) -> Any:
        """Answer a request for one of our paths."""
        request.setHeader(b"cache-control", b"no-store")
        try:
            asked = read_parameters(path, request.uri)
        except BadQuestion as error:
            return refuse(request, 400, str(error))
        gone: list[bool] = []
        request.notifyFinish().addErrback(lambda _: gone.append(True))
        if path == "/api/job":
            return self._job(request, asked, gone)
        fresh: Deferred[None] = Deferred()
        fresh.addTimeout(WAIT_S, self._clock)
        self._known.when_fresh(self._update_s(), lambda: _fire(fresh, None))

        def tell(_: Any) -> None:
            if not gone:
                finish(request, self._questions[path](asked))

        fresh.addBoth(tell)
        fresh.addErrback(lambda failure: None if gone else fail(request, 500, "this failed"))
        return LATER

    def _jobs(self, asked: dict[str, Any]) -> dict[str, Any]:
        view = View(status=asked["status"], owner=asked["owner"], search=asked["search"], sort=asked["sort"],
                    descending=asked["order"] == "down")
        page = self._known.rows.page(view, asked["offset"], asked["limit"])
        return {"columns": list(COLUMNS), "rows": page.rows, "offset": page.offset, "total": page.total,
                "all": len(self._known.rows), "counts": self._known.rows.counts, "version": self._known.rows.version,
                "whole": self._known.is_whole()}

    def _job(self, request: Any, asked: dict[str, Any], gone: list[bool]) -> Any:
        known = self._known
        schedd = asked["schedd"] or (next(iter(known.schedds)) if len(known.schedds) == 1 else "")
        if schedd not in known.schedds or known.ask_story is None:
            return refuse(request, 404, f"there is no schedd {schedd!r}" if schedd else "schedd is missing: there are "
                          f"{len(known.schedds)} of them")
        answered: Deferred[Any] = Deferred()
        answered.addTimeout(WAIT_S, self._clock)

        def told(message: Any) -> None:
            if gone:
                return
            if isinstance(message, Story):
                ad = ClassAd.from_bytes(message.ad)
                finish(request, story.job_story(schedd, ad, message.lines, message.has_left))
            elif isinstance(message, Refused) and message.code == "not-found":
                fail(request, 404, message.text)
            else:
                fail(request, 503, f"{schedd} does not answer")

        answered.addCallbacks(told, lambda _: None if gone else fail(request, 503, f"{schedd} does not answer"))
        answered.addErrback(lambda failure: None if gone else fail(request, 500, "this failed"))
        known.ask_story(schedd, asked["cluster"], asked["proc"],
                        lambda message: _fire(answered, message))
        return LATER


def _fire(deferred: Deferred[Any], value: Any) -> None:
    if not deferred.called:
        deferred.callback(value)


def finish(request: Any, data: dict[str, Any]) -> None:
    """Answer a request later than it came."""
    body = json.dumps(data, separators=(",", ":")).encode() + b"\n"
    request.write(answer(request, b"application/json", body))
    request.finish()


def fail(request: Any, status: int, text: str) -> None:
    """Say later why there is no answer."""
    request.write(refuse(request, status, text))
    request.finish()
