"""What a job says of the image that is its root directory."""

from __future__ import annotations

import posixpath

import attrs

from condor_actors.classads import UNDEFINED, ClassAd
from condor_actors.cores.job_images import BadService, asks_always, services_of
from condor_actors.messages.references.image_reference import (
    DIGEST,
    IMAGE_DIGEST,
    OF_APPTAINER,
    SCHEME,
    BadReference,
    ImageReference,
)

__all__ = ["BadContainer", "ContainerSpec", "container_of"]

NETWORKS = ("", "host", "none")


class BadContainer(ValueError):
    """The job wants an image in a way that cannot be had; the text is the hold reason."""


@attrs.frozen(kw_only=True)
class ContainerSpec:
    """The job's image.

    Attributes:
        image: as the job names it: a path here or at home, or ``docker://…``.
        name: what it is called where it was transferred.
        reference: the image of a registry; None: it is a file or a folder.
        shows_login: whether its owner's login is shown to the registry (docker_send_credentials).
        asks_always: whether the registry is asked at each run what the name means (docker_pull_policy = always).
        digest: which one that is, where the job knows (ContainerImageDigest); empty: what its name means now.
        target: where the scratch directory is seen in it; empty: where it is on the machine.
        network: whether it has the machine's network.
        services: ports at which it serves, by name; the machine's lead there.
        by_entrypoint: its program is started by the image's entrypoint, where that has one (docker universe).
    """

    image: str
    name: str
    target: str = ""
    network: bool = True
    services: tuple[tuple[str, int], ...] = ()
    by_entrypoint: bool = False
    reference: ImageReference | None = None
    shows_login: bool = False
    asks_always: bool = False
    digest: str = ""


def container_of(job: ClassAd) -> ContainerSpec | None:
    """The image of a job; None: it has none.

    Raises:
        BadContainer: it cannot be had.
    """
    image, by_docker = job.evaluate("ContainerImage"), job.get_bool("WantDocker")
    if by_docker:
        image = job.evaluate("DockerImage")
        if not isinstance(image, str) or not image:
            raise BadContainer(f"the job's DockerImage is no name of an image: {job.expression('DockerImage')}")
        image = image if image.startswith(SCHEME) else f"{SCHEME}{image}"
    elif not job.get_bool("WantContainer") and not isinstance(image, str):
        return None
    if not isinstance(image, str) or not image.rstrip("/") or "\0" in image or (
            "://" in image and not image.startswith((SCHEME, OF_APPTAINER))):
        raise BadContainer("the job's ContainerImage is neither a path nor docker://NAME nor oras://HOST/NAME: "
                           f"{job.expression('ContainerImage')}")
    target = job.get_str("ContainerTargetDir")
    if target and (not target.startswith("/") or posixpath.normpath(target) != target or target == "/"):
        raise BadContainer(f"container_target_dir = {target[:200]} is no absolute path of a folder")
    network = job.get_str("DockerNetworkType").lower()
    if network not in NETWORKS:
        raise BadContainer(f"docker_network_type = {network[:100]} is neither host nor none")
    try:
        services = services_of(job)
    except BadService as error:
        raise BadContainer(f"the job's ports cannot be forwarded: {error}") from None
    # who serves at a port of his choice needs a network of his own: others on the machine serve at it too
    shares = network == "host" if services else network != "none"
    if image.startswith((SCHEME, OF_APPTAINER)):
        found = _of_registry(job, image, target)
        by_entrypoint = by_docker and not job.get_bool("DockerOverrideEntrypoint")
        return attrs.evolve(found, by_entrypoint=by_entrypoint, network=shares, services=services)
    bare = image.rstrip("/")
    return ContainerSpec(image=bare, name=posixpath.basename(bare), target=target, network=shares, services=services)


def _of_registry(job: ClassAd, image: str, target: str) -> ContainerSpec:
    try:
        reference = ImageReference.read(image)
    except BadReference as error:
        raise BadContainer(f"the job's ContainerImage names no image: {error}") from None
    digest = job.evaluate(IMAGE_DIGEST)
    if digest is not UNDEFINED and not (isinstance(digest, str) and DIGEST.match(digest)):
        raise BadContainer(f"the job's {IMAGE_DIGEST} is no sha256:DIGEST: {job.expression(IMAGE_DIGEST)}")
    always = asks_always(job)
    known = digest if isinstance(digest, str) and not always else ""
    if known and reference.digest and known != reference.digest:
        raise BadContainer(f"the job's {IMAGE_DIGEST} is not that of its ContainerImage: {known}")
    return ContainerSpec(image=image, name="", target=target, reference=reference,
                         shows_login=job.get_bool("DockerSendCredentials"), asks_always=always,
                         digest=reference.digest or known)
