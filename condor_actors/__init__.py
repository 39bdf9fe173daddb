"""Condor: idle workstations as one pool for long jobs, as an actor system on Twisted.

What programs need of it is here by name (``import condor_actors as condor``; docs/python-api.md), and loaded when it
is first asked for: a command or daemon that asks for none of it pays nothing.
"""

TYPE_CHECKING = False  # so that ``typing`` is not loaded for it
if TYPE_CHECKING:
    from condor_actors.api import aio, tx
    from condor_actors.api.collector import Collector
    from condor_actors.api.credd import Credd, CredentialFacts, WantedToken
    from condor_actors.api.description import Submit
    from condor_actors.api.errors import CondorError, NotSupported, Refused
    from condor_actors.api.event_log import JobEvent, JobEventLog
    from condor_actors.api.negotiator import Negotiator
    from condor_actors.api.schedd import Changed, Schedd, Submitted, Transaction
    from condor_actors.api.settings import param, reload_config
    from condor_actors.api.startd import Startd
    from condor_actors.classads import (
        ERROR,
        UNDEFINED,
        AbsoluteTime,
        ClassAd,
        ClassAdSyntaxError,
        Expr,
        RelativeTime,
        as_expr,
        match_ads,
        parse_expression,
        quote,
    )
    from condor_actors.messages.advertise import AdKind
    from condor_actors.messages.codes import HoldCode, JobEventType, JobStatus
    from condor_actors.messages.queue import ActionResult, JobAction
    from condor_actors.submit import SubmitError

_HOMES = {
    "condor_actors.api.collector": ("Collector",),
    "condor_actors.api.credd": ("Credd", "CredentialFacts", "WantedToken"),
    "condor_actors.api.description": ("Submit",),
    "condor_actors.api.errors": ("CondorError", "NotSupported", "Refused"),
    "condor_actors.api.event_log": ("JobEvent", "JobEventLog"),
    "condor_actors.api.negotiator": ("Negotiator",),
    "condor_actors.api.schedd": ("Changed", "Schedd", "Submitted", "Transaction"),
    "condor_actors.api.settings": ("param", "reload_config"),
    "condor_actors.api.startd": ("Startd",),
    "condor_actors.classads": ("ERROR", "UNDEFINED", "AbsoluteTime", "ClassAd", "ClassAdSyntaxError", "Expr",
                               "RelativeTime", "as_expr", "match_ads", "parse_expression", "quote"),
    "condor_actors.messages.advertise": ("AdKind",),
    "condor_actors.messages.codes": ("HoldCode", "JobEventType", "JobStatus"),
    "condor_actors.messages.queue": ("ActionResult", "JobAction"),
    "condor_actors.submit": ("SubmitError",),
}
_FACES = ("aio", "tx")

__all__ = [
    "ERROR", "UNDEFINED", "AbsoluteTime", "ActionResult", "AdKind", "Changed", "ClassAd", "ClassAdSyntaxError",
    "Collector", "CondorError", "Credd", "CredentialFacts", "Expr", "HoldCode", "JobAction", "JobEvent", "JobEventLog",
    "JobEventType", "JobStatus", "Negotiator", "NotSupported", "Refused", "RelativeTime", "Schedd", "Startd", "Submit",
    "SubmitError", "Submitted", "Transaction", "WantedToken", "aio", "as_expr", "match_ads", "param",
    "parse_expression", "quote", "reload_config", "tx",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """A name of the API, from the module that has it."""
    home = "condor_actors.api" if name in _FACES else next((each for each, of in _HOMES.items() if name in of), "")
    if not home:  # so it is with each module of the package before it is loaded
        raise AttributeError(f"module 'condor_actors' has no attribute {name!r}")
    from importlib import import_module

    if name in _FACES:
        return import_module(f"{home}.{name}")
    found = globals()[name] = getattr(import_module(home), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
