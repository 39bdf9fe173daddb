"""Which path is what: the page's files, its data, their description, the stream of changes, what users may do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from condor_actors.daemons.web.actions import UserActions
from condor_actors.daemons.web.door import Route, answer
from condor_actors.daemons.web.json_api import PARAMETERS, JsonApi
from condor_actors.daemons.web.openapi import encoded_description
from condor_actors.daemons.web.site import static_files
from condor_actors.daemons.web.watchers import Watchers

__all__ = ["routes"]


def routes(api: JsonApi, watchers: Watchers, actions: UserActions) -> Callable[[bytes], Route | None]:
    """The table of all paths; nothing that is not in it is served."""
    table: dict[bytes, Route] = {path: file.render for path, file in static_files().items()}
    for path in PARAMETERS:
        table[path.encode()] = partial(api.render, path)
    table |= {path.encode(): route for path, route in actions.routes().items()}
    table[b"/api/events"] = watchers.render
    described = encoded_description()

    def describe(request: Any) -> bytes:
        return answer(request, b"application/json", described)

    table[b"/api/openapi.json"] = describe
    return table.get
