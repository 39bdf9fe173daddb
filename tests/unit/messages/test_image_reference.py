"""Names of images in registries."""

from __future__ import annotations

import pytest

from condor_actors.messages.references.image_reference import (
    BadReference,
    ImageReference,
    Registry,
    check_proxy,
    is_loopback,
    mirrors_of,
    registry_for,
)

DIGEST = "sha256:" + "0a" * 32


@pytest.mark.parametrize(("text", "registry", "name", "tag", "digest"), [
    ("docker://debian", "docker.io", "library/debian", "latest", ""),
    ("docker://debian:12", "docker.io", "library/debian", "12", ""),
    ("docker://group/tool:v1.0", "docker.io", "group/tool", "v1.0", ""),
    ("docker://registry.example.org/a/b/c", "registry.example.org", "a/b/c", "latest", ""),
    ("docker://localhost/tool", "localhost", "tool", "latest", ""),
    ("docker://127.0.0.1:5000/tool:x", "127.0.0.1:5000", "tool", "x", ""),
    ("docker://[::1]:5000/tool", "[::1]:5000", "tool", "latest", ""),
    (f"docker://host:1/tool:x@{DIGEST}", "host:1", "tool", "x", DIGEST),
])
def test_a_name_is_read(text: str, registry: str, name: str, tag: str, digest: str) -> None:
    assert ImageReference.read(text) == ImageReference(registry=registry, name=name, tag=tag, digest=digest)


@pytest.mark.parametrize("text", [
    "docker:debian", "docker://", "docker:///etc/passwd", "docker://host:1/../../x", "docker://Debian", "docker://a b",
    "docker://debian:", "docker://debian:a/b", "docker://debian@sha256:12", "docker://debian@md5:" + "0" * 32,
    "docker://user:secret@host/x", "docker://host:1/x?y", "docker://host:1/x#y", "docker://h:1/x\n", "docker://-h:1/x",
    "docker://host:1/" + "a" * 2000,
])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(BadReference):
        ImageReference.read(text)


def test_an_administrators_list_says_which_registries() -> None:
    allowed = ("*.example.org", "http://plain.example:5000", "http://*.loose.example")
    assert registry_for("a.example.org", allowed) == Registry(host="a.example.org")
    assert registry_for("plain.example:5000", allowed) == Registry(host="plain.example:5000", plain=True)
    assert registry_for("b.loose.example", allowed) == Registry(host="b.loose.example")
    assert registry_for("example.org", allowed) is None
    assert registry_for("docker.io", ("*",)) == Registry(host="registry-1.docker.io")
    assert registry_for("localhost:5000", ("*",)) == Registry(host="localhost:5000", plain=True)
    assert registry_for("localhost:5000", ()) is None


def test_mirrors_and_proxies() -> None:
    mirrors = ("docker.io=mirror.example:1/hub", "docker.io=http://near.example", "other=far.example")
    assert mirrors_of("docker.io", mirrors) == (
        Registry(host="mirror.example:1", prefix="hub/"), Registry(host="near.example", plain=True))
    for bad in ("docker.io", "=host", "docker.io=", "docker.io=user@host", "docker.io=host/../x"):
        with pytest.raises(BadReference):
            mirrors_of("", (bad,))
    check_proxy("")
    check_proxy("http://proxy.example:3128")
    for bad in ("proxy:3128", "https://proxy", "http://name:secret@proxy:1", "http://proxy/path"):
        with pytest.raises(BadReference):
            check_proxy(bad)


def test_this_machine_is_known_by_its_names() -> None:
    assert all(map(is_loopback, ("localhost", "LOCALHOST:5", "x.localhost:1", "127.8.9.1:80", "[::1]:5", "[::1]")))
    assert not any(map(is_loopback, ("example.org", "10.0.0.1", "127.0.0.1.example.org", "[::2]:5", "")))
