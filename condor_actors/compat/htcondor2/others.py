"""``Credd``, ``CredCheck``, ``Placementd`` and ``DAGMan``: this pool has none of them, and each says so."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple, NoReturn

from condor_actors.compat.classad2 import ClassAd
from condor_actors.compat.errors import NotSupported
from condor_actors.compat.htcondor2.enums import CredType

NO_CREDENTIALS = "this pool keeps no credentials of users; jobs find tokens and keys among their input files"
NO_PLACEMENT = "this pool has no placement daemon; condor_token_create and condor_token_fetch give tokens"
NO_DAGMAN = "a running workflow is not changed from here; condor_hold, condor_release and condor_rm act on its job"


def _refuse(reason: str) -> NoReturn:
    raise NotSupported(reason)


class CredCheck:
    """What a check of credentials found."""

    def __init__(self, services: str, url_or_error: str | None) -> None:
        self._services = services
        self._url_or_error = url_or_error

    @property
    def present(self) -> bool:
        """Whether all are there."""
        return self._url_or_error is None

    @property
    def url(self) -> str | None:
        """Where they can be had."""
        return self._url_or_error if self._url_or_error and self._url_or_error.startswith("http") else None

    @property
    def error(self) -> str | None:
        """Why they cannot be had."""
        return None if self.url else self._url_or_error

    @property
    def services(self) -> str:
        """Of which services."""
        return self._services

    def __bool__(self) -> bool:
        return self.present

    def __str__(self) -> str:
        return self._url_or_error or ""


class Credd:
    """A client of a daemon that keeps users' credentials; its questions are refused."""

    def __init__(self, location: ClassAd | None = None) -> None:
        self._location = location

    def add_password(self, password: str, user: str | None = None) -> None:
        """Refused: no credentials are kept."""
        _refuse(NO_CREDENTIALS)

    def delete_password(self, user: str | None = None) -> bool:
        """Refused: no credentials are kept."""
        _refuse(NO_CREDENTIALS)

    def query_password(self, user: str | None = None) -> bool:
        """Refused: no credentials are kept."""
        _refuse(NO_CREDENTIALS)

    def add_user_cred(self, credtype: CredType, credential: bytes, user: str | None = None) -> None:
        """Refused: no credentials are kept."""
        _refuse(NO_CREDENTIALS)

    def delete_user_cred(self, credtype: CredType, user: str | None = None) -> None:
        """Refused: no credentials are kept."""
        _refuse(NO_CREDENTIALS)

    def query_user_cred(self, credtype: CredType, user: str | None = None) -> str:
        """Refused: no credentials are kept."""
        _refuse(NO_CREDENTIALS)

    def add_user_service_cred(self, credtype: CredType, credential: bytes, service: str, handle: str | None = None,
                              user: str | None = None, refresh: bool | None = None) -> None:
        """Refused: no credentials are kept."""
        _refuse(NO_CREDENTIALS)

    def delete_user_service_cred(self, credtype: CredType, service: str, handle: str | None = None,
                                 user: str | None = None) -> None:
        """Refused: no credentials are kept."""
        _refuse(NO_CREDENTIALS)

    def query_user_service_cred(self, credtype: CredType, service: str, handle: str | None = None,
                                user: str | None = None) -> str:
        """Refused: no credentials are kept."""
        _refuse(NO_CREDENTIALS)

    def check_user_service_creds(self, credtype: CredType, serviceAds: list[ClassAd],
                                 user: str | None = None) -> CredCheck:
        """Refused: no credentials are kept."""
        _refuse(NO_CREDENTIALS)

    def get_oauth2_credential(self, service: str, handle: str, user: str | None = None) -> str:
        """Refused: no credentials are kept."""
        _refuse(NO_CREDENTIALS)


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
