"""What a job says of its image, as the execute side reads it: the ad is whatever its owner has made it."""

from __future__ import annotations

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.starter.container_spec import BadContainer, container_of

DIGEST, OTHER = ("sha256:" + digit * 64 for digit in "01")


def test_the_job_knows_which_image_its_name_meant() -> None:
    spec = container_of(ClassAd({"ContainerImage": "docker://host:1/tool:x", "ContainerImageDigest": DIGEST}))
    assert spec is not None
    assert spec.reference is not None
    assert (spec.reference.registry, spec.digest) == ("host:1", DIGEST)
    spec = container_of(ClassAd({"ContainerImage": f"docker://host:1/tool@{OTHER}"}))
    assert spec is not None
    assert spec.digest == OTHER


@pytest.mark.parametrize(("more", "by_entrypoint"), [({}, True), ({"DockerOverrideEntrypoint": True}, False)])
def test_a_job_of_the_docker_universe_is_started_by_the_entrypoint(
        more: dict[str, object], by_entrypoint: bool) -> None:
    spec = container_of(ClassAd({"WantDocker": True, "DockerImage": "host:1/tool", **more}))
    assert spec is not None
    assert spec.reference is not None
    assert (spec.reference.registry, spec.by_entrypoint) == ("host:1", by_entrypoint)


@pytest.mark.parametrize(("job", "problem"), [
    ({"ContainerImage": "docker://host:1/../x"}, "names no image"),
    ({"ContainerImage": "oras://host/x"}, "neither a path nor"),
    ({"ContainerImage": "docker://tool", "ContainerImageDigest": "latest"}, "is no sha256"),
    ({"ContainerImage": "docker://tool", "ContainerImageDigest": 7}, "is no sha256"),
    ({"ContainerImage": f"docker://tool@{DIGEST}", "ContainerImageDigest": OTHER}, "is not that of its"),
    ({"WantDocker": True}, "DockerImage is no name"),
    ({"WantDocker": True, "DockerImage": "Tool"}, "names no image"),
])
def test_what_makes_no_sense_is_refused(job: dict[str, object], problem: str) -> None:
    with pytest.raises(BadContainer, match=problem):
        container_of(ClassAd(job))
