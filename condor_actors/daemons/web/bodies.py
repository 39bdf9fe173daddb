"""What may be in the body of a POST: JSON, an object with the fields of a table, each of its kind."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import attrs

from condor_actors.cores.web.job_actions import ACTIONS, MOST_JOBS, MOST_PRIORITY, REASON_LETTERS
from condor_actors.daemons.web.json_api import BadQuestion
from condor_actors.wire.idtokens.signed_token import MAX_TOKEN_CHARACTERS

__all__ = ["BODIES", "Field", "read_body"]

NO_TEXT = re.compile("[\0\ud800-\udfff]")
"""What JSON can say and no message has."""


@attrs.frozen(kw_only=True)
class Field:
    """One field.

    Attributes:
        doc: for the description.
        kind: ``text``, ``number`` or ``list`` (of texts).
        default: when it is not given; None: it must be.
        choices: the only values of a text; empty: any.
        pattern: of a text, or of each in a list; empty: any.
        low, high: of a number, or of how many letters a text or texts a list has.
    """

    doc: str
    kind: str = "text"
    default: Any = None
    choices: tuple[str, ...] = ()
    pattern: str = ""
    low: int = 0
    high: int = 200

    def read(self, name: str, value: Any) -> Any:
        """The value that was given.

        Raises:
            BadQuestion: it is none.
        """
        if self.kind == "number":
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            if type(value) is not int or not self.low <= value <= self.high:
                raise BadQuestion(f"{name}: expected a number from {self.low} to {self.high}")
        elif self.kind == "list":
            if not isinstance(value, list) or not self.low <= len(value) <= self.high:
                raise BadQuestion(f"{name}: expected a list of {self.low} to {self.high} texts")
            for each in value:
                self._check_text(name, each)
        else:
            self._check_text(name, value)
            if not self.low <= len(value) <= self.high:
                raise BadQuestion(f"{name}: expected {self.low} to {self.high} letters")
        return value

    def _check_text(self, name: str, value: Any) -> None:
        if not isinstance(value, str):
            raise BadQuestion(f"{name}: expected a text")
        if NO_TEXT.search(value):
            raise BadQuestion(f"{name} has half of a letter, or a NUL")
        if self.choices and value not in self.choices:
            raise BadQuestion(f"{name}: expected one of {', '.join(self.choices)}")
        if self.pattern and not re.fullmatch(self.pattern, value):
            raise BadQuestion(f"{name}={value[:40]!r}: expected {self.doc}")

    def shape(self) -> dict[str, Any]:
        """Its JSON schema."""
        if self.kind == "number":
            return {"type": "integer", "minimum": self.low, "maximum": self.high, "description": self.doc}
        text: dict[str, Any] = {"type": "string"}
        if self.choices:
            text["enum"] = list(self.choices)
        if self.pattern:
            text["pattern"] = f"^{self.pattern}$"
        if self.kind == "list":
            return {"type": "array", "items": text, "minItems": self.low, "maxItems": self.high,
                    "description": self.doc}
        return {**text, "minLength": self.low, "maxLength": self.high, "description": self.doc}


_JOBS = {
    "schedd": Field(doc="The name of their schedd; may be left out where there is one.", default=""),
    "jobs": Field(doc="jobs like 12.0, or clusters like 12", kind="list", pattern=r"[0-9]{1,9}(\.[0-9]{1,9})?", low=1,
                  high=MOST_JOBS),
}
BODIES: dict[str, dict[str, Field]] = {
    "/api/login": {
        "token": Field(doc="A token of the pool, as condor_token_fetch prints it.", low=1, high=MAX_TOKEN_CHARACTERS),
    },
    "/api/logout": {},
    "/api/act": {
        **_JOBS,
        "action": Field(doc="What is done to them.", choices=ACTIONS),
        "reason": Field(doc="Why, for the job's ad and its log.", default="", high=REASON_LETTERS),
    },
    "/api/priority": {
        **_JOBS,
        "priority": Field(doc="Among the jobs of one user; jobs with a higher one run first.", kind="number",
                          low=-MOST_PRIORITY, high=MOST_PRIORITY),
    },
}
"""Every path that takes a POST, with the fields of its body."""


def read_body(path: str, body: bytes) -> dict[str, Any]:
    """The fields of a body.

    Raises:
        BadQuestion: it is no JSON, or a field is unknown, given twice, missing, or no value of its kind.
    """
    table: Mapping[str, Field] = BODIES[path]
    try:
        given = json.loads(body.decode("utf-8"), object_pairs_hook=_once)
    except BadQuestion:
        raise
    except (ValueError, RecursionError):
        raise BadQuestion("the body is no JSON") from None
    if not isinstance(given, dict):
        raise BadQuestion("the body is not an object")
    for name in given:
        if name not in table:
            raise BadQuestion(f"there is no field {name[:40]!r} here; expected {', '.join(table) or 'none'}")
    for name, field in table.items():
        if name not in given and field.default is None:
            raise BadQuestion(f"{name} is missing")
    return {name: field.read(name, given[name]) if name in given else field.default for name, field in table.items()}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BadQuestion("a field is given twice")
    return found
