"""The description of the JSON API (OpenAPI 3.1), made from the same tables that read its parameters."""

from __future__ import annotations

import json
from typing import Any

from condor_actors.cores.web.dag_picture import NODE_STATES
from condor_actors.cores.web.picture import LOOKS
from condor_actors.cores.web.rows import COLUMNS
from condor_actors.daemons.web.actions import SESSION_HEADER
from condor_actors.daemons.web.bodies import BODIES
from condor_actors.daemons.web.json_api import PARAMETERS, Parameter
from condor_actors.messages.queue import ActionResult

__all__ = ["description", "encoded_description"]

NUMBER = {"type": "number"}
INTEGER = {"type": "integer"}
TEXT = {"type": "string"}
FLAG = {"type": "boolean"}
COUNTS = {"type": "object", "additionalProperties": INTEGER}


def _object(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _list(of: Any) -> dict[str, Any]:
    return {"type": "array", "items": of}


SUMMARY = _object(at=NUMBER, slots=COUNTS, cpus=COUNTS, jobs=COUNTS, version=INTEGER, whole=FLAG, problems=_list(TEXT),
                  schedds=_list(TEXT))
SLOT = _object(name=TEXT, machine=TEXT, look={"enum": list(LOOKS)}, state=TEXT, activity=TEXT, cpus=INTEGER,
               memory=INTEGER, load=NUMBER, idle=INTEGER, user=TEXT, job=TEXT, schedd=TEXT, since=INTEGER, system=TEXT,
               parent=FLAG, child=FLAG)
MACHINE = _object(machine=TEXT, system=TEXT, slots=INTEGER, cpus=INTEGER, memory=INTEGER, load=NUMBER, idle=INTEGER,
                  looks=COUNTS)
SOME = {"type": ["number", "null"]}
POINT = _object(at=NUMBER, running=SOME, owner=SOME, cpus=SOME, idle_jobs=SOME, running_jobs=SOME, held_jobs=SOME,
                ended=NUMBER, wait_ratio=SOME, leverage=SOME)
ROW = {"type": "array", "items": {"type": ["string", "number"]}, "minItems": len(COLUMNS), "maxItems": len(COLUMNS)}
NODE = _object(name=TEXT, state={"enum": list(NODE_STATES)}, level=INTEGER, row=INTEGER, job=TEXT)
DAG = {**_object(total=INTEGER, counts=COUNTS, nodes=_list(NODE), levels=_list(COUNTS),
                 edges=_list({**_list(INTEGER), "minItems": 2, "maxItems": 2})), "type": ["object", "null"]}
SESSION = _object(user=TEXT, levels=_list(TEXT), ends=NUMBER, refusal=TEXT)
DONE = _object(action=TEXT, count=INTEGER, text=TEXT, results=_list(_object(
    job=TEXT, result={"enum": [result.value for result in ActionResult]}, text=TEXT)))
ANSWERS: dict[str, tuple[str, dict[str, Any]]] = {
    "/api/summary": ("The pool in numbers", SUMMARY),
    "/api/pool": ("All slots", _object(slots=_list(SLOT), summary=SUMMARY)),
    "/api/machines": ("A line for each machine", _object(machines=_list(MACHINE))),
    "/api/figures": ("Utilisation, queue length, wait ratio and leverage over time", {
        "type": "object", "required": ["span", "width", "from", "to", "points"], "additionalProperties": False,
        "properties": {"span": TEXT, "width": NUMBER, "from": NUMBER, "to": NUMBER, "points": _list(POINT)}}),
    "/api/jobs": ("A page of the queue; each row has the columns in their order", _object(
        columns=_list(TEXT), rows=_list(ROW), offset=INTEGER, total=INTEGER, all=INTEGER, counts=COUNTS,
        version=INTEGER, whole=FLAG)),
    "/api/job": ("A job's story", _object(
        schedd=TEXT, id=TEXT, owner=TEXT, status=TEXT, left=FLAG,
        events=_list(_object(at=NUMBER, kind=TEXT, text=TEXT)),
        runs=_list(_object(number=INTEGER, host=TEXT, began=NUMBER, ended=NUMBER, how=TEXT)),
        attributes=_list({**_list(TEXT), "minItems": 2, "maxItems": 2}), dag=DAG)),
    "/api/session": ("Who is logged in; nobody where user is empty", SESSION),
    "/api/login": ("Log in with a token of the pool: sets the cookie, and answers the secret for the header", _object(
        **SESSION["properties"], secret=TEXT)),
    "/api/logout": ("Log out", SESSION),
    "/api/act": ("Hold, release, remove, suspend, continue, vacate or checkpoint jobs", DONE),
    "/api/priority": ("Give jobs a priority", DONE),
}
"""By path: what it is, and the shape of its answer."""

ERROR = {"description": "Why there is no answer",
         "content": {"application/json": {"schema": _object(error=TEXT)}}}


def _parameter(name: str, parameter: Parameter) -> dict[str, Any]:
    if parameter.low is not None:
        shape: dict[str, Any] = {"type": "integer", "minimum": parameter.low, "maximum": parameter.high}
    elif parameter.choices:
        shape = {"type": "string", "enum": list(parameter.choices)}
    else:
        shape = {"type": "string", "maxLength": parameter.longest}
    if parameter.default not in (None, ""):
        shape["default"] = parameter.default
    return {"name": name, "in": "query", "required": parameter.default is None, "description": parameter.doc,
            "schema": shape}


def _header(path: str) -> dict[str, Any]:
    return {"name": SESSION_HEADER, "in": "header", "required": path in BODIES,
            "description": "What the log-in answered as secret; any text in a log-in.",
            "schema": {"type": "string", "minLength": 1, "pattern": "^[A-Za-z0-9_-]+$"}}


def _operation(path: str, title: str, shape: dict[str, Any]) -> dict[str, Any]:
    parameters = [_parameter(name, parameter) for name, parameter in PARAMETERS.get(path, {}).items()]
    statuses = ["400", "401", "404", "405", "414", "421", "500", "503"]
    made: dict[str, Any] = {"summary": title, "operationId": path.rpartition("/")[2], "parameters": parameters}
    if path in BODIES or path == "/api/session":
        parameters.append(_header(path))
    if path in BODIES:
        statuses += ["403", "409", "415", "429", "502", "504"]
        fields = BODIES[path]
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": {
            "type": "object", "additionalProperties": False,
            "properties": {name: field.shape() for name, field in fields.items()},
            "required": [name for name, field in fields.items() if field.default is None]}}}}
    made["responses"] = {
        "200": {"description": title, "content": {"application/json": {"schema": shape}}},
        **dict.fromkeys(sorted(statuses), ERROR),
    }
    return made


def description() -> dict[str, Any]:
    """The whole description."""
    paths = {path: {"post" if path in BODIES else "get": _operation(path, title, shape)}
             for path, (title, shape) in ANSWERS.items()}
    return {"openapi": "3.1.0", "info": {"title": "Condor: the pool as a web page", "version": "1"}, "paths": paths}


def encoded_description() -> bytes:
    """It as it is served."""
    return json.dumps(description(), indent=1).encode() + b"\n"
