"""``Placementd`` and ``DAGMan``: this pool has neither, and each says so."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple, NoReturn

from condor_actors.compat.classad2 import ClassAd
from condor_actors.compat.errors import NotSupported

NO_PLACEMENT = "this pool has no placement daemon; condor_token_create and condor_token_fetch give tokens"
NO_DAGMAN = "a running workflow is not changed from here; htcondor dag halt, resume and throttle change it"


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
    """A client of a running workflow; its orders are refused."""

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
        self._dag_id = dag_id

    @property
    def dag_id(self) -> int:
        """The cluster of the workflow's job."""
        return self._dag_id

    def halt(self, reason: str | None = None, pause: bool | None = None) -> tuple[bool, str]:
        """Refused: a running workflow is not changed from here."""
        _refuse(NO_DAGMAN)

    def resume(self) -> tuple[bool, str]:
        """Refused: a running workflow is not changed from here."""
        _refuse(NO_DAGMAN)

    def throttle(self, **kwargs: Any) -> ClassAd | str:
        """Refused: a running workflow is not changed from here."""
        _refuse(NO_DAGMAN)
