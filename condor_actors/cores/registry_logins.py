"""What a user is known as at registries of images: the files that ``docker login`` and ``podman login`` write.

Theory: the file says for each registry a name and a password, or a token that stands for them.  It stays on the submit
machine: its user's shadow reads it and shows it to the registry, and what goes to the machine that runs the job is what
the registry gave for it, which opens one image.

========================= ===========================================================================
key of ``auths``          what it is for
========================= ===========================================================================
``HOST[:PORT]/a/b``       the image a/b there, and what is below it; the longest that fits counts
``HOST[:PORT]``           the registry; ``https://HOST``, ``https://HOST/v1/`` and ``/v2/`` mean the same
``https://index.docker.io/v1/`` Docker Hub
========================= ===========================================================================
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator, Mapping

from condor_actors import records
from condor_actors.messages.references.image_reference import ImageReference
from condor_actors.patterns import late

__all__ = ["LOGIN_FILE", "MOST_BYTES", "BadLogins", "Login", "login_files", "login_for"]

LOGIN_FILE = "ContainerLoginFile"
"""The attribute with the file that has the login for the job's image."""
MOST_BYTES = 256 * 1024
HALF_LETTER = late("[\ud800-\udfff]")
HUB, HUB_HOSTS = "docker.io", ("docker.io", "index.docker.io", "registry-1.docker.io")


class BadLogins(ValueError):
    """No login can be read; the text says why."""


@records.frozen(kw_only=True)
class Login:
    """One user at one registry: a name and a password, or a token instead of the password.

    Attributes:
        user: the name; empty: the token says it.
        password, identity_token: one of them is not empty.
    """

    user: str
    password: str = records.field(default="", repr=False)
    identity_token: str = records.field(default="", repr=False)

    @property
    def basic(self) -> str:
        """As it stands in a header."""

        import base64

        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()


def login_files(environment: Mapping[str, str]) -> Iterator[str]:
    """Where a user's logins may lie, the likeliest first."""
    get = environment.get
    if get("REGISTRY_AUTH_FILE"):
        yield environment["REGISTRY_AUTH_FILE"]
    if get("DOCKER_CONFIG"):
        yield f"{environment['DOCKER_CONFIG']}/config.json"
    if get("HOME"):
        yield f"{environment['HOME']}/.docker/config.json"
        yield f"{environment['HOME']}/.config/containers/auth.json"
        yield f"{environment['HOME']}/.apptainer/docker-config.json"
    if get("XDG_RUNTIME_DIR"):
        yield f"{environment['XDG_RUNTIME_DIR']}/containers/auth.json"


def login_for(content: bytes, reference: ImageReference) -> Login | None:
    """The login for an image; None: the file has none.

    Raises:
        BadLogins: it cannot be read, or another program keeps it.
    """

    import json

    try:
        said = json.loads(content)
        auths, helpers = dict(said.get("auths") or {}), dict(said.get("credHelpers") or {})
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise BadLogins("it is no file of docker login or podman login") from None
    wanted = list(_names(reference))
    by_place = {_place(key): value for key, value in auths.items()}
    for name in wanted:
        if name in by_place:
            found = _login(by_place[name])
            if found is not None:
                return found
    keeper = next((helpers[name] for name in wanted if name in helpers), None)
    if keeper is None and any(name in by_place for name in wanted):
        keeper = said.get("credsStore")
    if keeper:
        raise BadLogins(f"the login for {reference.registry} is kept by docker-credential-{str(keeper)[:50]}, which is "
                        "not started here; podman login writes it into a file")
    return None


def _names(reference: ImageReference) -> Iterator[str]:
    """Keys that an image's login may have, the longest first."""
    parts = reference.name.split("/")
    for count in range(len(parts), 0, -1):
        yield f"{reference.registry}/{'/'.join(parts[:count])}"
    yield reference.registry


def _place(key: str) -> str:
    """A key without what means nothing."""
    bare = key.removeprefix("https://").removeprefix("http://").rstrip("/")
    for version in ("/v1", "/v2"):
        bare = bare.removesuffix(version)
    host, slash, rest = bare.partition("/")
    host = HUB if host.lower() in HUB_HOSTS else host.lower()
    return f"{host}{slash}{rest}"


def _login(said: object) -> Login | None:
    import base64

    if not isinstance(said, dict):
        return None
    token, packed = said.get("identitytoken"), said.get("auth")
    user, password = said.get("username"), said.get("password")
    if isinstance(packed, str) and packed:
        try:
            user, _, password = base64.b64decode(packed, validate=True).decode().rstrip("\0").partition(":")
        except (binascii.Error, ValueError):
            raise BadLogins("the auth of a registry is not BASE64 of NAME:PASSWORD") from None
    name = user if isinstance(user, str) else ""
    if any(isinstance(each, str) and HALF_LETTER.search(each) for each in (name, password, token)):
        raise BadLogins("a name, password or token in it has half of a letter, such as \\ud800, and no bytes")
    if isinstance(token, str) and token:
        return Login(user=name, identity_token=token)
    return Login(user=name, password=password) if name and isinstance(password, str) and password else None
