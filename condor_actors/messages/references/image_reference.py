"""Names of images in registries: ``docker://[HOST[:PORT]/]NAME[:TAG][@DIGEST]``, and which registries may be asked.

Theory: the submit side refuses a name that cannot be one, the execute side reads it again, and both by this one place.
A name without a host is Docker Hub's, one without a tag means ``latest``.  Nothing else of the name is changed, since
it is shown to people as they wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence

from condor_actors import records
from condor_actors.patterns import late

__all__ = ["DIGEST", "IMAGE_DIGEST", "OF_APPTAINER", "SCHEME", "BadReference", "ImageReference", "Registry",
           "check_proxy", "is_loopback", "mirrors_of", "registry_for"]

SCHEME, OF_APPTAINER = "docker://", "oras://"
"""Of an image of layers, and of a SIF file; both are fetched from a registry in the same way."""
IMAGE_DIGEST = "ContainerImageDigest"
"""The job's attribute that says what the name of its image meant when the job first had it."""
DEFAULT_REGISTRY, DEFAULT_FOLDER, DEFAULT_TAG = "docker.io", "library/", "latest"
DEFAULT_HOST = "registry-1.docker.io"
"""The host that answers for the default registry."""
MOST_LETTERS = 1000
DIGEST = late(r"sha256:[0-9a-f]{64}\Z")
_HOST = late(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?\Z")
_NAME = late(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*\Z")
_TAG = late(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")


class BadReference(ValueError):
    """It names no image of a registry; the text says why."""


@records.frozen(kw_only=True)
class ImageReference:
    """One image of a registry.

    Attributes:
        registry: ``host`` or ``host:port``; name: of the repository there.
        tag: ``latest`` where none is named; digest: ``sha256:…``, which counts before the tag; empty: none.
    """

    registry: str
    name: str
    tag: str = DEFAULT_TAG
    digest: str = ""

    @classmethod
    def read(cls, text: str) -> ImageReference:
        """Read ``docker://…`` or ``oras://…``.

        Raises:
            BadReference: it is no such name.
        """
        named = text
        if text.startswith(OF_APPTAINER):
            text = SCHEME + text.removeprefix(OF_APPTAINER)
        if not text.startswith(SCHEME) or len(text) > MOST_LETTERS:
            raise BadReference(f"{text[:200]} is no docker://[HOST[:PORT]/]NAME[:TAG][@sha256:DIGEST]")
        rest, at, digest = text.removeprefix(SCHEME).partition("@")
        if at and not DIGEST.match(digest):
            raise BadReference(f"{digest[:200]} is no digest: that is sha256: and 64 digits of 0-9 and a-f")
        host, slash, name = rest.partition("/")
        if not slash or not ("." in host or ":" in host or host == "localhost"):
            if named != text:
                raise BadReference(f"{named[:200]} has to name its registry: oras://HOST[:PORT]/NAME[:TAG]")
            host, name = DEFAULT_REGISTRY, rest
        name, colon, tag = name.partition(":")
        if host == DEFAULT_REGISTRY and "/" not in name:
            name = DEFAULT_FOLDER + name
        if not _HOST.match(host):
            raise BadReference(f"{host[:200]} is no HOST or HOST:PORT of a registry")
        if not _NAME.match(name):
            raise BadReference(f"{name[:200]!r} is no name of an image: small letters, digits, and . _ - / between")
        if colon and not _TAG.match(tag):
            raise BadReference(f"{tag[:200]!r} is no tag: letters, digits, and . _ -, at most 128")
        return cls(registry=host.lower(), name=name, tag=tag or DEFAULT_TAG, digest=digest)


@records.frozen(kw_only=True)
class Registry:
    """Where an image may be fetched from.

    Attributes:
        host: ``host`` or ``host:port`` to connect to; prefix: before the names there, empty or with a slash at its end.
        plain: whether http may be used.
    """

    host: str
    prefix: str = ""
    plain: bool = False


def is_loopback(host: str) -> bool:
    """Whether ``host`` or ``host:port`` is this machine, by its name alone."""

    import ipaddress

    bare = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if bare.lower().rstrip(".") == "localhost" or bare.lower().endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False


def registry_for(name: str, allowed: Sequence[str]) -> Registry | None:
    """A registry by its name in references; None: an administrator's list (CONTAINER_REGISTRIES) does not have it."""

    import fnmatch

    for each in allowed:
        pattern = each.removeprefix("http://").removeprefix("https://").rstrip("/").lower()
        if fnmatch.fnmatchcase(name, pattern):
            plain = is_loopback(name) or (each.startswith("http://") and "*" not in pattern)
            return Registry(host=DEFAULT_HOST if name == DEFAULT_REGISTRY else name, plain=plain)
    return None


def mirrors_of(name: str, mirrors: Sequence[str]) -> tuple[Registry, ...]:
    """The mirrors of a registry in a list of ``REGISTRY=[http://]HOST[:PORT][/FOLDER]`` (CONTAINER_REGISTRY_MIRRORS).

    Raises:
        BadReference: one of them cannot be read.
    """
    found = []
    for each in mirrors:
        registry, equals, where = each.partition("=")
        place = where.removeprefix("http://").removeprefix("https://").strip("/")
        host, slash, folder = place.partition("/")
        if not equals or not registry or not _HOST.match(host) or (slash and not _NAME.match(folder)):
            raise BadReference(f"{each[:200]} is no REGISTRY=HOST[:PORT][/FOLDER] (CONTAINER_REGISTRY_MIRRORS)")
        if registry.lower() == name:
            found.append(Registry(host=host.lower(), prefix=f"{folder}/" if folder else "",
                                  plain=where.startswith("http://") or is_loopback(host)))
    return tuple(found)


def check_proxy(text: str) -> None:
    """Look whether ``http://HOST:PORT`` can be a proxy.

    Raises:
        BadReference: it cannot.
    """
    if text and not (text.startswith("http://") and _HOST.match(text.removeprefix("http://").rstrip("/"))):
        raise BadReference("CONTAINER_REGISTRY_PROXY is no http://HOST:PORT; a name and a password cannot be in it, "
                           "since any job could read them")
