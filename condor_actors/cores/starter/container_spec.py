"""What a job says of the image that is its root directory."""

from __future__ import annotations

import posixpath

import attrs

from condor_actors.classads import ClassAd

__all__ = ["BadContainer", "ContainerSpec", "container_of"]

NETWORKS = ("", "host", "none")


class BadContainer(ValueError):
    """The job wants an image in a way that cannot be had; the text is the hold reason."""


@attrs.frozen(kw_only=True)
class ContainerSpec:
    """The job's image.

    Attributes:
        image: as the job names it: a path here or at home.
        name: what it is called where it was transferred.
        target: where the scratch directory is seen in it; empty: where it is on the machine.
        network: whether it has the machine's network.
    """

    image: str
    name: str
    target: str = ""
    network: bool = True


def container_of(job: ClassAd) -> ContainerSpec | None:
    """The image of a job; None: it has none.

    Raises:
        BadContainer: it cannot be had.
    """
    image = job.evaluate("ContainerImage")
    if job.get_bool("WantDocker") or job.get_bool("WantDockerImage"):
        raise BadContainer("nothing here fetches images from registries: bring the image as a tar file "
                           "(docker save IMAGE > image.tar; container_image = image.tar)")
    if not job.get_bool("WantContainer") and not isinstance(image, str):
        return None
    if not isinstance(image, str) or not image.rstrip("/") or "\0" in image or "://" in image:
        raise BadContainer(f"the job's ContainerImage is no path: {job.expression('ContainerImage')}")
    target = job.get_str("ContainerTargetDir")
    if target and (not target.startswith("/") or posixpath.normpath(target) != target or target == "/"):
        raise BadContainer(f"container_target_dir = {target[:200]} is no absolute path of a folder")
    network = job.get_str("DockerNetworkType").lower()
    if network not in NETWORKS:
        raise BadContainer(f"docker_network_type = {network[:100]} is neither host nor none")
    bare = image.rstrip("/")
    return ContainerSpec(image=bare, name=posixpath.basename(bare), target=target, network=network != "none")
