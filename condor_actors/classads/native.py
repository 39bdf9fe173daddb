"""The C core of the language (native/classads), where it is built.

Without it, or with ``CONDOR_CLASSADS=python`` in the environment, Python does everything, to the same effect: the two
are held against each other by tests.
"""

from __future__ import annotations

import os
import time

from condor_actors.classads.values import ERROR, UNDEFINED, AbsoluteTime, ListValue, RelativeTime

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any, Final

    from condor_actors.classads.builtins.registry import Builtin


def _load() -> Any:
    if os.environ.get("CONDOR_CLASSADS") == "python":
        return None
    try:
        from condor_actors.classads import _core  # type: ignore[attr-defined]  # a C module
    except ImportError:
        return None
    return _core


core: Final = _load()
"""The extension module, None where there is none."""
if core is not None:
    core.set_constants(UNDEFINED, ERROR)


def connect(ad: type, deleted: object) -> None:
    """Hand the core what it needs of the Python side.

    Args:
        ad: The type of ads.
        deleted: What an ad keeps for a name that hides one of its parent's.
    """
    if core is None:
        return
    from condor_actors.classads.evaluation.budget import Exhausted
    from condor_actors.classads.evaluation.operators import BINARY, UNARY
    from condor_actors.classads.language.python_nodes import late

    core.setup(
        ad=ad,
        list_value=ListValue,
        absolute_time=AbsoluteTime,
        relative_time=RelativeTime,
        deleted=deleted,
        binary=BINARY,
        unary=UNARY,
        resolve=_resolve,
        deep=late["deep"],
        plain=late["plain"],
        match_scope=_match_scope,
        exhausted=Exhausted,
        clock=time.time,
        time_module=vars(time),
    )


def _match_scope(ad: Any, state: Any) -> Any:
    from condor_actors.classads.evaluation.state import match_scope

    return match_scope(ad, state)


def _resolve(name: str, arguments: int) -> tuple[str, Any] | None:
    """What a call stands for: how it takes its arguments, and the function; None when there is no such call."""
    from condor_actors.classads.builtins.calls import TABLE

    found: Builtin | None = TABLE.get(name)
    if found is None or not found.least <= arguments <= found.most:
        return None
    return found.kind, found.apply
