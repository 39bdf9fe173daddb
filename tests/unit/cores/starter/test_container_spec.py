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


def test_a_job_whose_every_run_asks_is_not_bound_by_an_earlier_one() -> None:
    ad = ClassAd({"ContainerImage": "docker://host:1/tool:x", "ContainerImageDigest": DIGEST,
                  "DockerPullPolicy": "Always"})
    spec = container_of(ad)
    assert spec is not None
    assert (spec.asks_always, spec.digest) == (True, "")
    ad["ContainerImage"] = f"docker://host:1/tool@{DIGEST}"
    spec = container_of(ad)
    assert spec is not None
    assert spec.digest == DIGEST


@pytest.mark.parametrize(("more", "by_entrypoint"), [({}, True), ({"DockerOverrideEntrypoint": True}, False)])
def test_a_job_of_the_docker_universe_is_started_by_the_entrypoint(
        more: dict[str, object], by_entrypoint: bool) -> None:
    spec = container_of(ClassAd({"WantDocker": True, "DockerImage": "host:1/tool", **more}))
    assert spec is not None
    assert spec.reference is not None
    assert (spec.reference.registry, spec.by_entrypoint) == ("host:1", by_entrypoint)


@pytest.mark.parametrize(("network", "shares"), [("", False), ("none", False), ("host", True)])
def test_a_job_that_serves_has_a_network_of_its_own_unless_it_wants_the_machines(network: str, shares: bool) -> None:
    ad = ClassAd({"ContainerImage": "tool.tar", "ContainerServiceNames": "web, db web", "web_ContainerPort": 80,
                  "db_ContainerPort": 5432})
    if network:
        ad["DockerNetworkType"] = network
    spec = container_of(ad)
    assert spec is not None
    assert (spec.services, spec.network) == ((("web", 80), ("db", 5432)), shares)


@pytest.mark.parametrize(("job", "problem"), [
    ({"ContainerServiceNames": "web"}, "the service web has no port"),
    ({"ContainerServiceNames": "web", "web_ContainerPort": 0}, "the service web has no port"),
    ({"ContainerServiceNames": "web", "web_ContainerPort": 65536}, "the service web has no port"),
    ({"ContainerServiceNames": "web", "web_ContainerPort": True}, "the service web has no port"),
    ({"ContainerServiceNames": "../x"}, "is no name of a service"),
    ({"ContainerServiceNames": " ".join(f"s{number}" for number in range(17))}, "17 services are too many"),
    ({"ContainerServiceNames": "a b", "a_ContainerPort": 1, "b_ContainerPort": 1}, "have the same port 1"),
])
def test_services_that_cannot_be(job: dict[str, object], problem: str) -> None:
    with pytest.raises(BadContainer, match=problem):
        container_of(ClassAd({"ContainerImage": "tool.tar", **job}))


@pytest.mark.parametrize(("job", "problem"), [
    ({"ContainerImage": "docker://host:1/../x"}, "names no image"),
    ({"ContainerImage": "https://host/x"}, "neither a path nor"),
    ({"ContainerImage": "oras://x"}, "has to name its registry"),
    ({"ContainerImage": "docker://tool", "ContainerImageDigest": "latest"}, "is no sha256"),
    ({"ContainerImage": "docker://tool", "ContainerImageDigest": 7}, "is no sha256"),
    ({"ContainerImage": f"docker://tool@{DIGEST}", "ContainerImageDigest": OTHER}, "is not that of its"),
    ({"WantDocker": True}, "DockerImage is no name"),
    ({"WantDocker": True, "DockerImage": "Tool"}, "names no image"),
])
def test_what_makes_no_sense_is_refused(job: dict[str, object], problem: str) -> None:
    with pytest.raises(BadContainer, match=problem):
        container_of(ClassAd(job))
