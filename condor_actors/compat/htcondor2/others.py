"""``Placementd``, which this pool has not and which says so, and ``DAGMan``."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from condor_actors.compat.classad2 import ClassAd
from condor_actors.compat.errors import NotSupported
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.nouns.dag import halt_dag, limit_dag, resume_dag
from condor_actors.wire.blocking import WireError

NO_PLACEMENT = "this pool has no placement daemon; condor_token_create and condor_token_fetch give tokens"
NO_PAUSE = "a workflow is not frozen; halt without pause begins nothing new, and condor_hold stops its program"
THROTTLES = {"max_nodes": "jobs", "max_idle": "idle", "max_pre": "pre", "max_hold": "hold", "max_post": "post",
             "max_submits": "submits"}


def _refuse(reason: str) -> NoReturn:
    raise NotSupported(reason)


class Placementd:
    """A client of a placement daemon; its questions are refused."""

    def __init__(self, location: ClassAd | None = None) -> None:
        self._location = location

    def userLogin(self, username: str, authorizations: str, project: str | None = None,
                  requester: str | None = None) -> ClassAd:
        """Refused: there is no placement daemon."""
        _refuse(NO_PLACEMENT)

    def queryUsers(self, username: str | None = None) -> list[ClassAd]:
        """Refused: there is no placement daemon."""
        _refuse(NO_PLACEMENT)

    def queryTokens(self, username: str | None = None, valid_only: bool = False,
                    token_id: str | None = None) -> list[ClassAd]:
        """Refused: there is no placement daemon."""
        _refuse(NO_PLACEMENT)

    def queryAuthorizations(self, username: str | None = None) -> list[ClassAd]:
        """Refused: there is no placement daemon."""
        _refuse(NO_PLACEMENT)


class DAGMan:
    """A client of a workflow of this machine's schedd."""

    class Command(enum.IntEnum):
        """What a workflow can be told."""

        HALT = 1
        RESUME = 2
        SET_THROTTLES = 3

    class Failure(enum.IntEnum):
        """Why it was not."""

        OPEN_SOCKET = 1
        SEND_PAYLOAD = 2
        GET_RESULT = 3
        NO_ID = 4
        CONNECT_SCHEDD = 5
        GET_CONTACT = 6
        DENIED = 7

    class ContactInfo(NamedTuple):
        """Where a workflow is."""

        addr: str
        secret: str

    def __init__(self, dag_id: int) -> None:
        if not isinstance(dag_id, int):
            raise TypeError("dag_id must be an integer")
        self._dag_id = dag_id

    @property
    def dag_id(self) -> int:
        """The cluster of the workflow's job."""
        return self._dag_id

    def halt(self, reason: str | None = None, pause: bool | None = None) -> tuple[bool, str]:
        """Have it begin nothing new; whether it will, and a sentence."""
        if pause:
            return False, NO_PAUSE
        return self._done(lambda: halt_dag(str(self._dag_id), reason or ""), "Halted")

    def resume(self) -> tuple[bool, str]:
        """Have it go on; whether it will, and a sentence."""
        return self._done(lambda: resume_dag(str(self._dag_id)), "Resumed")

    def throttle(self, **kwargs: Any) -> ClassAd | str:
        """Change its limits (max_nodes, max_idle, max_pre, max_hold, max_post, max_submits).

        Returns:
            All of them, or why they cannot be changed.
        """
        wanted = {name: kwargs[word] for word, name in THROTTLES.items() if kwargs.get(word) is not None}
        try:
            values = limit_dag(str(self._dag_id), wanted)
        except (ToolError, WireError) as error:
            return str(error)
        return ClassAd(values)

    def _done(self, act: Callable[[], None], word: str) -> tuple[bool, str]:
        try:
            act()
        except (ToolError, WireError, OSError) as error:
            return False, str(error)
        return True, f"{word} DAG {self._dag_id}"
