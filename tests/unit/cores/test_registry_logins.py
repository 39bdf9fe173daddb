"""Which login of a user's file is for which image."""

from __future__ import annotations

import base64
import json

import pytest

from condor_actors.cores.registry_logins import BadLogins, Login, login_files, login_for
from condor_actors.messages.references.image_reference import ImageReference


def auth(user: str, password: str = "word") -> dict[str, str]:
    return {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()}


FILE = json.dumps({"auths": {
    "https://index.docker.io/v1/": auth("hub"), "registry.example:5000": auth("all", "with:colon"),
    "registry.example:5000/group": auth("group"), "registry.example:5000/group/inner": auth("inner"),
    "https://old.example/v2/": auth("old"), "empty.example": {},
    "token.example": {**auth("me", ""), "identitytoken": "refresh"}, "plain.example": {
        "username": "bob", "password": "pass"},
    "helped.example": {}}, "credHelpers": {"helped.example": "secretservice"}}).encode()


@pytest.mark.parametrize(("image", "login"), [
    ("debian", Login(user="hub", password="word")), ("alice/tool", Login(user="hub", password="word")),
    ("registry.example:5000/tool", Login(user="all", password="with:colon")),
    ("registry.example:5000/group/tool:1", Login(user="group", password="word")),
    ("registry.example:5000/group/inner/tool", Login(user="inner", password="word")),
    ("registry.example:5000/group/inner", Login(user="inner", password="word")),
    ("registry.example:5000/groups/tool", Login(user="all", password="with:colon")),
    ("registry.example/tool", None), ("old.example/x", Login(user="old", password="word")), ("empty.example/x", None),
    ("token.example/x", Login(user="me", identity_token="refresh")),
    ("plain.example/x", Login(user="bob", password="pass")),
    ("evil.example/registry.example", None),
])
def test_the_longest_key_that_fits(image: str, login: Login | None) -> None:
    assert login_for(FILE, ImageReference.read(f"docker://{image}")) == login


@pytest.mark.parametrize(("content", "problem"), [
    (FILE, "kept by docker-credential-secretservice"), (b"[]", "no file of docker login"), (b"{", "no file of docker"),
    (b'{"auths": 7}', "no file of docker login"), (b"[" * 100_000, "no file of docker login"),
    (b'{"auths": {"helped.example": {"auth": "!"}}}', "not BASE64"),
    (b'{"auths": {"helped.example": {"auth": "/w=="}}}', "not BASE64"),
    (b'{"auths": {"helped.example": {"username": "a", "password": "\\udc00"}}}', "half of a letter"),
    (b'{"auths": {"helped.example": {"username": "\\ud800", "identitytoken": "x"}}}', "half of a letter"),
    (b'{"auths": {"helped.example": {}}, "credsStore": "pass"}', "docker-credential-pass"),
])
def test_a_login_that_cannot_be_read(content: bytes, problem: str) -> None:
    with pytest.raises(BadLogins, match=problem):
        login_for(content, ImageReference.read("docker://helped.example/x"))


def test_a_login_is_not_shown_where_it_is_printed() -> None:
    assert "secret" not in repr(Login(user="me", password="secret", identity_token="secret"))


def test_where_logins_lie() -> None:
    environment = {"HOME": "/h", "DOCKER_CONFIG": "/d", "REGISTRY_AUTH_FILE": "/r", "XDG_RUNTIME_DIR": "/x"}
    found = list(login_files(environment))
    assert found[:3] == ["/r", "/d/config.json", "/h/.docker/config.json"]
    assert found[-1] == "/x/containers/auth.json"
