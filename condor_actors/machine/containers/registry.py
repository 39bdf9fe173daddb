"""Asks a registry for an image, by the distribution protocol of the Open Container Initiative.

Theory: a registry, what stands between it and us, and any server it redirects to are hostile until what they sent has
the digest that was asked for.  Every answer is bounded: a manifest by its kind, a layer by the size that the manifest
says, a word by the seconds that it may take.  What breaks off goes on where it broke (Range) and is tried again; what
is refused is not.  A token that the registry's word leads to is shown to that registry only.  A user's name and
password are shown where the registry wants them, by https (or to this machine itself), and by his own process on the
submit machine alone: the machine that fetches the image has what was given for them.

=====================  ========================================================================================
what comes             what becomes of it
=====================  ========================================================================================
401 and a realm        a token is asked for there, once; with a name and password where there is a login
401, ``Basic``         the login itself, where there is one
another 401, 403       :class:`BadImage`: it takes a login, or another one
401 for what was given :class:`Unreachable`: it has run out, and the next run has another
404                    :class:`BadImage`: there is no such image
429, 5xx, no answer    tried again; then :class:`Unreachable`, which another machine may not find so
a redirect             to https; to http only where plain http is allowed; never to this machine from another
another digest, size   :class:`BadImage`
=====================  ========================================================================================
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import platform
import re
import ssl
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

import attrs

from condor_actors.cores.registry_logins import Login
from condor_actors.machine.containers.image_tree import BadImage
from condor_actors.messages.references.image_reference import DIGEST, Registry, is_loopback

__all__ = ["Blob", "Manifest", "Repository", "Unreachable"]

SILENCE_S = 60.0
WAITS_S = (1.0, 4.0)
"""Before the second and the third try of a word."""
MOST_WAIT_S = 30.0
PROGRESS_BYTES = 1 << 20
"""So much more of a layer, and its tries begin anew."""
MOST_REDIRECTS = 5
MOST_MANIFEST_BYTES = 4 << 20
MOST_TOKEN_BYTES = 64 << 10
MOST_LAYERS = 256
BLOCK_BYTES = 256 << 10
LISTS = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "ppc64le": "ppc64le", "s390x": "s390x",
                 "riscv64": "riscv64"}
FORM = "application/x-www-form-urlencoded"
_CHALLENGE = re.compile(r'(?<![A-Za-z])([A-Za-z]+)="([^"]*)"')
_OVER = (429, 500, 502, 503, 504)


class Unreachable(Exception):
    """The registry cannot be asked from here now; the text says why."""


@attrs.frozen(kw_only=True)
class Blob:
    """What a manifest says of a layer or a configuration."""

    digest: str
    size_bytes: int


@attrs.frozen(kw_only=True)
class Manifest:
    """An image for this machine: its layers, lowest first."""

    configuration: Blob
    layers: tuple[Blob, ...]


def _opener(context: ssl.SSLContext, proxy: str) -> urllib.request.OpenerDirector:
    """One that knows http and https, and nothing else that the library could do: a redirect is an answer."""
    opener = urllib.request.OpenerDirector()
    handlers: list[urllib.request.BaseHandler] = [
        urllib.request.HTTPHandler(), urllib.request.HTTPSHandler(context=context),
        urllib.request.HTTPErrorProcessor(), urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.UnknownHandler()]
    if proxy:
        handlers.append(urllib.request.ProxyHandler({"http": proxy, "https": proxy}))
    for each in handlers:
        opener.add_handler(each)
    opener.addheaders = [("User-Agent", "condor-starter")]
    return opener


class Repository:
    """One name in one registry.

    Args:
        registry: where it is; name: as the registry has it.
        context: whom https trusts; proxy: ``http://host:port``, which this machine itself is not asked through.
        sleep: waits before another try.
        login: of its user; given: what another process was given for one, as a header has it.
    """

    def __init__(self, registry: Registry, name: str, context: ssl.SSLContext, *, proxy: str = "",
                 sleep: Callable[[float], None] = time.sleep, login: Login | None = None, given: str = "") -> None:
        if login is not None or given:
            registry = attrs.evolve(registry, plain=registry.plain and is_loopback(registry.host))
        self._registry = registry
        self._login, self._given = login, given
        self._name = registry.prefix + name
        self._direct, self._proxied = _opener(context, ""), _opener(context, proxy)
        self._schemes: tuple[str, ...] = ("https", "http") if registry.plain else ("https",)
        self._authorization = given
        self._sleep = sleep

    @property
    def shown(self) -> str:
        """For people."""
        return f"{self._registry.host}/{self._name}"

    # ---- requests

    def resolve(self, tag: str) -> str:
        """The digest of what a tag means now.

        Raises:
            BadImage: there is none. Unreachable: nobody says.
        """
        return f"sha256:{hashlib.sha256(self._manifest_bytes(tag)).hexdigest()}"

    def authorized(self, reference: str) -> str:
        """What its user's login is worth for the image with this tag or digest, as a header has it; empty: nothing is
        asked for.

        Raises:
            BadImage: the login does not do. Unreachable: nobody says.
        """
        self._manifest_bytes(reference)
        return self._authorization

    def manifest(self, digest: str) -> Manifest:
        """The manifest with this digest, or that of this machine's platform in a list with it.

        Raises:
            BadImage: there is none that can be used here. Unreachable: nobody says.
        """
        said = self._checked(digest)
        if "manifests" in said:
            said = self._checked(_for_here(said))
        if said.get("schemaVersion") != 2 or "layers" not in said:
            raise BadImage(f"its manifest has the version {str(said.get('schemaVersion'))[:20]}; "
                           "manifests of version 2 with layers can be used")
        layers = tuple(_blob(each) for each in said["layers"])
        if len(layers) > MOST_LAYERS:
            raise BadImage(f"it has more than {MOST_LAYERS} layers")
        return Manifest(configuration=_blob(said["config"]), layers=layers)

    def fetch(self, blob: Blob, target: int) -> None:
        """Copy a blob into an open empty file.

        Raises:
            BadImage: it is not what the manifest says. Unreachable: it did not come.
            OSError: the disk.
        """
        digest, had, tries = hashlib.sha256(), 0, 0
        while True:
            before = had
            try:
                with self._ask(f"blobs/{blob.digest}", {"Range": f"bytes={had}-"} if had else {}) as answer:
                    if had and answer.status == 206:
                        _goes_on(answer, had)
                    else:
                        digest, had = hashlib.sha256(), 0
                    while block := answer.read(min(BLOCK_BYTES, blob.size_bytes - had + 1)):
                        if had + len(block) > blob.size_bytes:
                            raise BadImage(f"{blob.digest} is larger than the {blob.size_bytes:,} bytes that its "
                                           "manifest says")
                        digest.update(block)
                        _write(target, block, had)
                        had += len(block)
                if had == blob.size_bytes:
                    break
                reason = f"{self.shown}: {had:,} of {blob.size_bytes:,} bytes of {blob.digest} came"
            except _Broken as error:
                reason = str(error)
            tries = 0 if had - before >= PROGRESS_BYTES else tries + 1
            if tries > len(WAITS_S):
                raise Unreachable(reason)
            if tries:
                self._sleep(WAITS_S[tries - 1])
        if f"sha256:{digest.hexdigest()}" != blob.digest:
            raise BadImage(f"{self.shown} gave something else for {blob.digest}: sha256:{digest.hexdigest()}")

    def small(self, blob: Blob) -> bytes:
        """A configuration."""
        if blob.size_bytes > MOST_MANIFEST_BYTES:
            raise BadImage(f"its configuration has {blob.size_bytes:,} bytes")
        content = self._again(lambda: self._read(f"blobs/{blob.digest}", {}, MOST_MANIFEST_BYTES))
        _check(content, blob.digest, self.shown)
        return content

    # ---- manifests

    def _manifest_bytes(self, reference: str) -> bytes:
        accept = {"Accept": ", ".join((*LISTS, *MANIFESTS))}
        return self._again(lambda: self._read(f"manifests/{reference}", accept, MOST_MANIFEST_BYTES))

    def _checked(self, digest: str) -> dict[str, Any]:
        content = self._manifest_bytes(digest)
        _check(content, digest, self.shown)
        said = json.loads(content)
        if not isinstance(said, dict):
            raise BadImage("its manifest is no object")
        return said

    def _read(self, path: str, headers: dict[str, str], most_bytes: int) -> bytes:
        with self._ask(path, headers) as answer:
            return _bounded(answer, most_bytes, f"{self.shown}: its answer to {path[:100]}")

    def _again(self, ask: Callable[[], bytes]) -> bytes:
        for wait_s in WAITS_S:
            try:
                return ask()
            except _Broken as error:
                self._sleep(min(error.wait_s or wait_s, MOST_WAIT_S))
        try:
            return ask()
        except _Broken as error:
            raise Unreachable(str(error)) from None

    # ---- a question

    def _ask(self, path: str, headers: dict[str, str]) -> _Answer:
        """The answer to one request, from the last server of its redirects."""
        try:
            return self._asked(path, headers)
        except _Refused as refusal:
            if refusal.code == 401 and self._given:
                raise Unreachable(f"{self.shown}: what the submit machine was given for its user's login is not taken "
                                  "(any more)") from None
            if refusal.code != 401 or not refusal.challenge:
                raise BadImage(self._why(refusal)) from None
            self._authorization = self._authorization_for(refusal.challenge)
        try:
            return self._asked(path, headers)
        except _Refused as refusal:
            raise BadImage(self._why(refusal)) from None

    def _why(self, refusal: _Refused) -> str:
        if refusal.code == 404:
            return f"the registry has no {self.shown} of that tag or digest (it says 404)"
        if refusal.code in (401, 403):
            if self._login is not None:
                return (f"the registry does not give {self.shown} to {self._login.user or 'the login'} (it says "
                        f"{refusal.code})")
            return (f"the registry gives {self.shown} to nobody without a login, or has none (it says {refusal.code}); "
                    "after docker login or podman login, docker_send_credentials = true uses yours")
        return f"{self.shown}: the registry says {refusal.code} {refusal.reason}"

    def _asked(self, path: str, headers: dict[str, str]) -> _Answer:
        """By https, or by whatever has once answered where http may be used."""
        for scheme in self._schemes:
            try:
                answer = self._followed(f"{scheme}://{self._registry.host}/v2/{self._name}/{path}", headers)
            except _Broken:
                if scheme == self._schemes[-1]:
                    raise
            except _Refused:
                self._schemes = (scheme,)
                raise
            else:
                self._schemes = (scheme,)
                return answer
        raise AssertionError("there is always a scheme")

    def _followed(self, url: str, headers: dict[str, str]) -> _Answer:
        own = urllib.parse.urlsplit(url).netloc
        for _ in range(MOST_REDIRECTS):
            sent = dict(headers)
            if self._authorization and urllib.parse.urlsplit(url).netloc == own:
                sent["Authorization"] = self._authorization
            answer = self._open(url, sent)
            if answer.status not in (301, 302, 303, 307, 308):
                return answer
            with answer:
                url = self._next(url, answer.headers.get("Location") or "")
        raise BadImage(f"{self.shown}: the registry sends us on more than {MOST_REDIRECTS} times")

    def _next(self, url: str, location: str) -> str:
        """Where a registry's word leads.

        Raises:
            BadImage: nowhere that it may.
        """
        try:
            target = urllib.parse.urlsplit(urllib.parse.urljoin(url, location))
            host, port = target.hostname or "", target.port
        except ValueError:
            raise BadImage(f"{self.shown}: the registry sends us on to what is no URL") from None
        near, shown = is_loopback(f"[{host}]" if ":" in host else host), f"{target.scheme}://{target.netloc}"[:200]
        same = target.netloc.lower() == self._registry.host
        plain = self._registry.plain and (same or (near and is_loopback(self._registry.host)))
        fits = target.scheme == "https" or (target.scheme == "http" and plain and not url.startswith("https:"))
        if not host or port == 0 or target.username is not None or not fits or (
                near and not is_loopback(self._registry.host)) or re.search(r"[\x00-\x20\x7f]", location):
            raise BadImage(f"{self.shown}: the registry sends us on to {shown!r}, which is not followed")
        return target.geturl()

    def _open(self, url: str, headers: dict[str, str], form: bytes | None = None) -> _Answer:
        direct = is_loopback(urllib.parse.urlsplit(url).netloc)
        opener = self._direct if direct else self._proxied
        try:
            request = urllib.request.Request(url, data=form, headers=headers)  # noqa: S310 - https, or as plain says
            return _Answer(opener.open(request, timeout=SILENCE_S), self.shown)
        except urllib.error.HTTPError as error:
            if error.code in (301, 302, 303, 307, 308):
                return _Answer(error, self.shown)
            with error:
                if error.code in _OVER:
                    raise _Broken(f"{self.shown}: the registry says {error.code} {error.reason}",
                                  _seconds(error.headers.get("Retry-After"))) from None
                raise _Refused(error.code, str(error.reason)[:200],
                               str(error.headers.get("WWW-Authenticate") or "")) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            said = getattr(error, "reason", None) or error
            for each in (error, said):
                if isinstance(each, BaseException):
                    traceback.clear_frames(each.__traceback__)  # a proxy's answer is in one, and open
            raise _Broken(f"{urllib.parse.urlsplit(url).netloc} cannot be reached: {str(said)[:500]}") from None

    def _authorization_for(self, challenge: str) -> str:
        """What the registry wants to be shown: the login, or a token from the server that it names for that."""
        kind, _, rest = challenge.partition(" ")
        said = {name.lower(): value for name, value in _CHALLENGE.findall(rest)}
        if kind.lower() == "basic" and self._login is not None and self._login.password:
            return self._login.basic
        if kind.lower() != "bearer" or not said.get("realm"):
            raise BadImage(self._why(_Refused(401, "", "")))
        return f"Bearer {self._token_for(said['realm'], said.get('service', ''))}"

    def _token_for(self, realm: str, service: str) -> str:
        """A token that opens the image for reading."""
        asked = [("service", service)] if service else []
        asked.append(("scope", f"repository:{self._name}:pull"))
        url, login = self._next(f"{self._schemes[0]}://{self._registry.host}/", realm), self._login
        headers: dict[str, str] = {}
        form = None
        if login is not None and login.identity_token:
            asked += [("grant_type", "refresh_token"), ("client_id", "condor-shadow"),
                      ("refresh_token", login.identity_token)]
            headers["Content-Type"], form = FORM, urllib.parse.urlencode(asked).encode()
        else:
            url += ("&" if "?" in url else "?") + urllib.parse.urlencode(asked)
            if login is not None:
                headers["Authorization"] = login.basic

        def ask() -> bytes:
            with self._open(url, headers, form) as answer:
                return _bounded(answer, MOST_TOKEN_BYTES, f"{self.shown}: its token")

        try:
            found = json.loads(self._again(ask))
            token = found.get("token") or found.get("access_token")
        except _Refused as refusal:
            raise BadImage(self._why(refusal)) from None
        except (ValueError, AttributeError):
            token = None
        if not isinstance(token, str) or not re.fullmatch(r"[\x21-\x7e]+", token):
            raise BadImage(f"{self.shown}: the registry's word on who may fetch it cannot be read")
        return token


class _Broken(Exception):
    """No answer, or none that counts: it may be tried again."""

    def __init__(self, text: str, wait_s: float = 0.0) -> None:
        super().__init__(text)
        self.wait_s = wait_s


class _Refused(Exception):
    """An answer that will not change."""

    def __init__(self, code: int, reason: str, challenge: str) -> None:
        super().__init__(reason)
        self.code, self.reason, self.challenge = code, reason, challenge


class _Answer:
    """A response whose errors while it is read are those of the network."""

    def __init__(self, response: Any, shown: str) -> None:
        self._response = response
        self._shown = shown
        self.status = int(response.status)
        self.headers = response.headers

    def __enter__(self) -> _Answer:
        return self

    def __exit__(self, *error: object) -> None:
        self._response.close()

    def read(self, most_bytes: int) -> bytes:
        """The next bytes; none at the end, however it came."""
        try:
            return bytes(self._response.read1(most_bytes))
        except http.client.IncompleteRead as error:
            return bytes(error.partial)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _Broken(f"{self._shown}: it broke off: {error}") from None


def _bounded(answer: _Answer, most_bytes: int, what: str) -> bytes:
    expected, found = answer.headers.get("Content-Length"), bytearray()
    while block := answer.read(BLOCK_BYTES):
        found += block
        if len(found) > most_bytes:
            raise BadImage(f"{what} has more than {most_bytes:,} bytes")
    if expected is not None and expected.isdecimal() and int(expected) != len(found):
        raise _Broken(f"{what} broke off")
    return bytes(found)


def _goes_on(answer: _Answer, had: int) -> None:
    said = str(answer.headers.get("Content-Range") or "")
    if not said.startswith(f"bytes {had}-"):
        raise BadImage(f"asked for what comes behind byte {had:,}, the registry sends {said[:100]!r}")


def _write(target: int, block: bytes, offset: int) -> None:
    view = memoryview(block)
    while view:
        written = os.pwrite(target, view, offset)
        view, offset = view[written:], offset + written


def _check(content: bytes, digest: str, shown: str) -> None:
    found = f"sha256:{hashlib.sha256(content).hexdigest()}"
    if found != digest:
        raise BadImage(f"{shown} gave something else for {digest}: {found}")


def _blob(said: Any) -> Blob:
    digest, size = said["digest"], said["size"]
    if not isinstance(digest, str) or not DIGEST.match(digest):
        raise BadImage(f"it has a layer with the digest {str(digest)[:100]!r}; sha256 can be used")
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise BadImage(f"its layer {digest} has the size {str(size)[:20]}")
    return Blob(digest=digest, size_bytes=size)


def _for_here(said: dict[str, Any]) -> str:
    """The digest of this machine's image in a list."""
    here = ARCHITECTURES.get(platform.machine(), platform.machine())
    there = []
    for each in said["manifests"]:
        wanted = each.get("platform") or {}
        there.append(f"{wanted.get('os')}/{wanted.get('architecture')}"[:40])
        if wanted.get("os") == "linux" and wanted.get("architecture") == here:
            return _blob(each).digest
    raise BadImage(f"it is not there for linux/{here}, but for {', '.join(there[:20]) or 'nothing'}")


def _seconds(text: str | None) -> float:
    return float(text) if text is not None and text.isdecimal() and len(text) < 6 else 0.0
