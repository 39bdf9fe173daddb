"""``Credd`` and ``CredCheck``: credentials of services, kept by the credential daemon."""

from __future__ import annotations

from collections.abc import Iterator

from condor_actors.api import credd
from condor_actors.api.errors import Refused
from condor_actors.compat.classad2 import ClassAd
from condor_actors.compat.errors import NotSupported, as_theirs
from condor_actors.compat.htcondor2.enums import CredType
from condor_actors.cores.credd.credentials import NO_PASSWORDS
from condor_actors.messages.credentials import KRB


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
    """A client of the credential daemon: this machine's, or the one at a location's ``MyAddress``."""

    def __init__(self, location: ClassAd | None = None) -> None:
        if location is not None and not isinstance(location, ClassAd):
            raise TypeError("location must be a ClassAd")
        self._credd = credd.Credd("" if location is None else str(location["MyAddress"]))

    def add_password(self, password: str, user: str | None = None) -> None:
        """Refused: passwords are stored for Windows only."""
        raise NotSupported(NO_PASSWORDS)

    def delete_password(self, user: str | None = None) -> bool:
        """Refused: passwords are stored for Windows only."""
        raise NotSupported(NO_PASSWORDS)

    def query_password(self, user: str | None = None) -> bool:
        """Refused: passwords are stored for Windows only."""
        raise NotSupported(NO_PASSWORDS)

    def add_user_cred(self, credtype: CredType, credential: bytes, user: str | None = None) -> None:
        """Store a Kerberos credential cache; passwords are refused."""
        _only_kerberos(credtype)
        if not credential:
            raise ValueError("credential may not be empty")
        if user is not None:
            raise NotSupported("a user stores his own credentials only")
        with as_theirs():
            self._credd.store(KRB, bytes(credential))

    def delete_user_cred(self, credtype: CredType, user: str | None = None) -> None:
        """Delete the Kerberos ticket; that there is none is no error."""
        _only_kerberos(credtype)
        self._forget(KRB, "", user)

    def query_user_cred(self, credtype: CredType, user: str | None = None) -> str | None:
        """When the Kerberos ticket was stored, seconds since 1970 as text; None: there is none."""
        _only_kerberos(credtype)
        with as_theirs():
            known = self._credd.credentials(user or "")
        return next((str(int(one.stored_s)) for one in known if one.service == KRB), None)

    def add_user_service_cred(self, credtype: CredType, credential: bytes, service: str, handle: str | None = None,
                              user: str | None = None, refresh: bool | None = None) -> None:
        """Store a token of a service; ``refresh`` False: it is an access token."""
        _only_oauth(credtype)
        if not credential:
            raise ValueError("credential may not be empty")
        if user is not None:
            raise NotSupported("a user stores his own credentials only")
        with as_theirs():
            self._credd.store(service, bytes(credential), handle=handle or "", is_access_token=refresh is False)

    def delete_user_service_cred(self, credtype: CredType, service: str, handle: str | None = None,
                                 user: str | None = None) -> None:
        """Delete a token of a service; that there is none is no error."""
        _only_oauth(credtype)
        self._forget(service, handle or "", user)

    def _forget(self, service: str, handle: str, user: str | None) -> None:
        with as_theirs():
            try:
                self._credd.delete(service, handle=handle, user=user or "")
            except Refused as refused:
                if refused.code != "not-found":
                    raise

    def query_user_service_cred(self, credtype: CredType, service: str | None, handle: str | None = None,
                                user: str | None = None) -> str | None:
        """An ad, as text, with the time at which each token was stored under the name of its file; None: there is none.
        """
        _only_oauth(credtype)
        with as_theirs():
            known = self._credd.credentials(user or "")
        found = [one for one in known
                 if not service or (one.service, one.handle) == (service.lower(), handle or one.handle)]
        if not found:
            return None
        files = [(f"{one.service}_{one.handle}" if one.handle else one.service, one.stored_s) for one in found]
        return "".join([f"fully_qualified_user = \"{found[0].user}\"\n",
                        *(f"'{file}.use' = {int(stored_s)}\n" for file, stored_s in files)])

    def check_user_service_creds(self, credtype: CredType, serviceAds: list[ClassAd],
                                 user: str | None = None) -> CredCheck:
        """Whether jobs could have the tokens that ads describe (Service, Handle, Scopes, Audience)."""
        _only_oauth(credtype)
        if user is not None:
            raise NotSupported("a user asks for his own credentials only")
        wanted = list(_wanted(serviceAds))
        names = ",".join(map(str, wanted))
        with as_theirs():
            try:
                self._credd.check(*wanted)
            except Refused as refused:
                return CredCheck(names, str(refused))
        return CredCheck(names, None)

    def get_oauth2_credential(self, service: str, handle: str, user: str | None = None) -> str:
        """What a job's file of a service would hold now."""
        if user is not None:
            raise NotSupported("a user gets his own credentials only")
        with as_theirs():
            return self._credd.token(service, handle=handle or "").decode()


def _wanted(ads: list[ClassAd]) -> Iterator[credd.WantedToken]:
    for ad in ads:
        if not isinstance(ad, ClassAd):
            raise TypeError("service must be of type classad.ClassAd")
        if ad.get("Service") is None:
            raise ValueError("request has no 'Service' attribute")
        said = {field: str(ad.get(name) or "") for field, name in
                (("service", "Service"), ("handle", "Handle"), ("scopes", "Scopes"), ("audience", "Audience"))}
        yield credd.WantedToken(**said)


def _only_kerberos(credtype: CredType) -> None:
    if credtype == CredType.Password:
        raise NotSupported(NO_PASSWORDS)
    if credtype != CredType.Kerberos:
        raise NotSupported("a token of a service is stored by add_user_service_cred")


def _only_oauth(credtype: CredType) -> None:
    if credtype != CredType.OAuth:
        raise ValueError("invalid credtype")
