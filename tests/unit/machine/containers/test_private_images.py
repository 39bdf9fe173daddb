"""Images that a registry gives to those alone who have a login: real registries, and one that lies."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import attrs
import pytest

from condor_actors.cores.registry_logins import Login
from condor_actors.machine.containers.image_tree import BadImage
from condor_actors.machine.containers.registry import Repository, Unreachable
from condor_actors.messages.references.image_reference import Registry
from tests.harness.registry import Hostile, hostile_registry, made_image, push, real_registry
from tests.harness.registry_logins import PASSWORD, USER, TokenServer, passwords, token_server

LOGIN = Login(user=USER, password=PASSWORD)
IMAGE = made_image(b"no tar, and nobody asks")


def repository(host: str, **more: object) -> Repository:
    return Repository(Registry(host=host, plain=True), "group/tool", ssl.create_default_context(),
                      sleep=lambda _: None, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a registry that has the image."""
    made = tmp_path_factory.mktemp("registry")
    with real_registry(made) as host:
        push(host, "group/tool", "x", IMAGE)
    return made


@attrs.frozen
class Tokens:
    host: str
    server: TokenServer


@pytest.fixture(scope="module")
def tokens(folder: Path) -> Iterator[Tokens]:
    with token_server(folder / "tokens") as server, real_registry(folder, auth=server.auth) as host:
        yield Tokens(host, server)


def test_a_registry_with_passwords_is_shown_the_login_itself(folder: Path) -> None:
    with real_registry(folder, auth=passwords(folder / "passwords")) as host:
        with pytest.raises(BadImage, match="after docker login or podman login, docker_send_credentials"):
            repository(host).resolve("x")
        shown = repository(host, login=LOGIN).authorized("x")
        assert shown == LOGIN.basic
        assert repository(host, given=shown).resolve("x") == IMAGE.digest
        with pytest.raises(BadImage, match=rf"does not give {host}/group/tool to alice \(it says 401\)"):
            repository(host, login=Login(user=USER, password="wrong")).authorized("x")
        with pytest.raises(BadImage, match=r"has no .* of that tag"):
            repository(host, login=LOGIN).authorized("y")


@pytest.mark.parametrize("by_token", [False, True])
def test_of_a_registry_with_tokens_the_machine_gets_one_for_the_image_alone(tokens: Tokens, by_token: bool) -> None:
    login = Login(user=USER, identity_token=tokens.server.refresh) if by_token else LOGIN
    tokens.server.asked.clear()
    shown = repository(tokens.host, login=login).authorized(IMAGE.digest)
    assert tokens.server.asked == [tokens.server.refresh if by_token else LOGIN.basic]
    assert shown.startswith("Bearer ")
    machine = repository(tokens.host, given=shown)
    assert machine.manifest(machine.resolve("x")).layers[0].size_bytes == len(b"no tar, and nobody asks")
    other = Repository(Registry(host=tokens.host, plain=True), "other/tool", ssl.create_default_context(), given=shown)
    with pytest.raises(Unreachable, match="is not taken"):
        other.resolve("x")
    assert len(tokens.server.asked) == 1


def test_without_a_login_or_with_a_wrong_one_there_is_no_token(tokens: Tokens) -> None:
    for more, said in (({}, "without a login"), ({"login": Login(user=USER, password="wrong")}, "to alice"),
                       ({"login": Login(user="", identity_token="wrong")}, "to the login")):
        with pytest.raises(BadImage, match=said):
            repository(tokens.host, **more).resolve("x")


@pytest.fixture
def hostile() -> Iterator[Hostile]:
    with hostile_registry() as made:
        yield made


def wanting(challenge: str) -> object:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(401)
        request.send_header("WWW-Authenticate", challenge)
        request.send_header("Content-Length", "0")
        request.end_headers()

    return answer


def test_a_login_goes_to_no_server_that_it_may_not_go_to(hostile: Hostile) -> None:
    hostile.answers["manifests/x"] = wanting(f'Bearer realm="http://{hostile.host}/token"')  # type: ignore[assignment]
    far = Repository(Registry(host="registry.example:1", plain=True), "tool", ssl.create_default_context(), login=LOGIN)
    assert far._schemes == ("https",)  # whatever the administrator allows for images that anybody may have
    with pytest.raises(BadImage, match="not followed"):
        far._token_for(f"http://{hostile.host}/token", "")
    with pytest.raises(BadImage, match="not followed"):
        far._token_for("http://registry.example:1/token", "")
    assert hostile.asked == []


def test_a_login_is_not_shown_to_where_a_redirect_leads(hostile: Hostile) -> None:
    with hostile_registry() as other:
        def guarded(request: BaseHTTPRequestHandler) -> None:
            if request.headers.get("Authorization") != LOGIN.basic:
                wanting('Basic realm="x"')(request)  # type: ignore[operator]
                return
            request.send_response(307)
            request.send_header("Location", f"http://{other.host}/v2/tool/manifests/x")
            request.send_header("Content-Length", "0")
            request.end_headers()

        hostile.answers["manifests/x"] = guarded
        other.has("x", IMAGE)
        assert repository(hostile.host, login=LOGIN).resolve("x") == IMAGE.digest
        assert other.asked == [("/v2/tool/manifests/x", "")]
