"""Asking a registry that lies, breaks off, or leads somewhere else: over real connections."""

from __future__ import annotations

import gzip
import io
import json
import os
import ssl
import tarfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import zstandard

from condor_actors.machine.containers.image_tree import BadImage, NoRoom
from condor_actors.machine.containers.pull import pull, resolve
from condor_actors.machine.containers.registry import Repository, Unreachable
from condor_actors.messages.references.image_reference import Registry
from tests.harness.registry import INDEX, Hostile, Image, digest_of, hostile_registry, made_image, push, real_registry

MOST = 64 << 20
Answer = Callable[[BaseHTTPRequestHandler], None]


def layer(**files: bytes) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


@pytest.fixture
def registry() -> Iterator[Hostile]:
    with hostile_registry() as made:
        yield made


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def ask(registry: Hostile, waits: list[float]) -> Repository:
    return repository(registry.host, waits)


def repository(host: str, waits: list[float], *, proxy: str = "", plain: bool = True) -> Repository:
    return Repository(Registry(host=host, plain=plain), "tool", ssl.create_default_context(), proxy=proxy,
                      sleep=waits.append)


def unpacked(ask: Repository | list[Repository], digest: str, target: Path, most_bytes: int = MOST) -> Path:
    target.mkdir()
    folder = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    try:
        pull(ask if isinstance(ask, list) else [ask], digest, folder, most_bytes)
    finally:
        os.close(folder)
    return target


def says(code: int, content: bytes = b"", **headers: str) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(code)
        for name, value in {"Content_Length": str(len(content)), **headers}.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(content)

    return answer


def test_an_image_is_resolved_fetched_and_unpacked_layer_by_layer(
        registry: Hostile, ask: Repository, tmp_path: Path) -> None:
    image = registry.has("x", made_image(layer(a=b"below", b=b"kept"), gzip.compress(layer(a=b"above", c=b"new")),
                                            zstandard.compress(layer(d=b"of zstd"))))
    assert resolve([ask], "x") == image.digest
    root = unpacked(ask, image.digest, tmp_path / "root")
    assert {path.name: path.read_bytes() for path in root.iterdir()} == {
        "a": b"above", "b": b"kept", "c": b"new", "d": b"of zstd"}


def test_of_a_list_this_machines_image_is_taken(registry: Hostile, ask: Repository, tmp_path: Path) -> None:
    image = registry.has("ours", made_image(layer(a=b"ours")))
    names = {"x86_64": "amd64", "aarch64": "arm64"}
    here = names.get(os.uname().machine, os.uname().machine)
    entries = [{"digest": digest_of(b"other"), "size": 1, "platform": {"os": "windows", "architecture": here}},
               {"digest": image.digest, "size": len(image.manifest), "platform": {"os": "linux", "architecture": here}}]
    listed = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).encode()
    registry.tags["x"] = registry.tags[digest_of(listed)] = listed
    assert resolve([ask], "x") == digest_of(listed)
    assert (unpacked(ask, digest_of(listed), tmp_path / "root") / "a").read_bytes() == b"ours"
    strange = json.dumps({"schemaVersion": 2, "manifests": entries[:1]}).encode()
    registry.tags[digest_of(strange)] = strange
    with pytest.raises(BadImage, match=f"not there for linux/{here}, but for windows/{here}"):
        ask.manifest(digest_of(strange))


def test_another_digest_is_never_taken(registry: Hostile, ask: Repository, tmp_path: Path) -> None:
    image = registry.has("x", made_image(layer(a=b"right")))
    (name,) = (each for each in image.blobs if b"right" in image.blobs[each])
    registry.blobs[name] = image.blobs[name].replace(b"right", b"wrong")
    with pytest.raises(BadImage, match="gave something else for sha256:"):
        unpacked(ask, image.digest, tmp_path / "root")
    assert not list((tmp_path / "root").iterdir())
    registry.tags[image.digest] = image.manifest + b" "
    with pytest.raises(BadImage, match="gave something else"):
        ask.manifest(image.digest)


def endless(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Transfer-Encoding", "chunked")
    request.end_headers()
    for _ in range(1 << 20):
        request.wfile.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")


@pytest.mark.parametrize("what", ["manifests/x", "layer", "configuration"])
def test_an_endless_body_is_cut(registry: Hostile, ask: Repository, tmp_path: Path, what: str) -> None:
    image = registry.has("x", made_image(layer(a=b"a")))
    named = json.loads(image.manifest)
    end = {"layer": named["layers"][0]["digest"], "configuration": named["config"]["digest"]}.get(what, what)
    registry.answers[end] = endless
    with pytest.raises(BadImage, match=r"more than|larger than"):
        resolve([ask], "x") if what == "manifests/x" else unpacked(ask, image.digest, tmp_path / "root")


def test_a_layer_that_is_a_bomb_or_does_not_fit_is_refused(registry: Hostile, ask: Repository, tmp_path: Path) -> None:
    bomb = registry.has("bomb", made_image(gzip.compress(layer(zeros=bytes(16 << 20)))))
    assert sum(map(len, bomb.blobs.values())) < 1 << 20
    with pytest.raises(NoRoom, match="unpacked it has more than the 8 MB"):
        unpacked(ask, bomb.digest, tmp_path / "bomb", 8 << 20)
    large = registry.has("large", made_image(layer(zeros=bytes(16 << 20))))
    before = len(registry.asked)
    with pytest.raises(NoRoom, match=r"its layer .* has 16 MB, and there is room for 8 MB"):
        unpacked(ask, large.digest, tmp_path / "large", 8 << 20)
    assert not [path for path, _ in registry.asked[before:] if path.endswith(json.loads(
        large.manifest)["layers"][0]["digest"])]


def hostile_layer(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.type, member.linkname, member.devmajor, member.devminor = kind, link, 1, 3
        archive.addfile(member)
    return stream.getvalue()


def test_names_that_lead_out_devices_and_what_is_no_tar(registry: Hostile, ask: Repository, tmp_path: Path) -> None:
    for number, content in enumerate((hostile_layer("../out"), b"no tar", b"\x28\xb5\x2f\xfdzstd")):
        image = registry.has("x", made_image(content))
        with pytest.raises(BadImage, match=r"entry called '../out'|no tar file"):
            unpacked(ask, image.digest, tmp_path / str(number))
    image = registry.has("x", made_image(
        hostile_layer("null", tarfile.CHRTYPE), hostile_layer("up", tarfile.SYMTYPE, "../../.."),
        layer(**{"up/x": b"x"})))
    root = unpacked(ask, image.digest, tmp_path / "root")
    assert sorted(os.listdir(root)) == ["up", "x"]
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("target", [
    "file:///etc/passwd", "ftp://127.0.0.1/x", "http://other.example/x", "http://10.0.0.1/x",
    "http://name:secret@127.0.0.1/x", "gopher:x", "http://[", "http://127.0.0.1:0/"])
def test_a_redirect_elsewhere_is_not_followed(registry: Hostile, ask: Repository, target: str) -> None:
    registry.answers["manifests/x"] = says(307, Location=target)
    with pytest.raises(BadImage, match=r"not followed|no URL"):
        resolve([ask], "x")


def test_a_redirect_in_circles_ends(registry: Hostile, ask: Repository) -> None:
    registry.answers["manifests/x"] = says(307, Location="/v2/tool/manifests/x")
    with pytest.raises(BadImage, match="more than 5 times"):
        resolve([ask], "x")


def test_no_registry_elsewhere_leads_to_this_machine() -> None:
    far = Repository(Registry(host="registry.example"), "tool", ssl.create_default_context())
    for target in ("https://127.0.0.1/x", "https://localhost:5000/x", "http://registry.example/x", "https://[::1]/x"):
        with pytest.raises(BadImage, match="not followed"):
            far._next("https://registry.example/v2/tool/blobs/x", target)
    assert far._next("https://registry.example/v2/", "https://elsewhere.example/x") == "https://elsewhere.example/x"


def test_a_redirect_to_another_server_is_not_shown_the_token(
        registry: Hostile, ask: Repository, tmp_path: Path) -> None:
    image = registry.has("x", made_image(layer(a=b"far")))
    content = json.loads(image.manifest)["layers"][0]["digest"]
    with hostile_registry() as other:
        other.blobs[content] = image.blobs[content]

        def guarded(request: BaseHTTPRequestHandler) -> None:
            if request.headers.get("Authorization") != "Bearer word":
                realm = f'Bearer realm="http://{registry.host}/token",service="here",scope="ignored"'
                says(401, WWW_Authenticate=realm)(request)
            else:
                says(307, Location=f"http://{other.host}/{content}")(request)

        registry.answers |= {content: guarded, "/token": says(200, b'{"token": "word"}')}
        root = unpacked(ask, image.digest, tmp_path / "root")
        assert (root / "a").read_bytes() == b"far"
        assert other.asked == [(f"/{content}", "")]
    assert registry.count("/token") == 1


def test_who_wants_a_password_or_a_realm_elsewhere_is_refused(registry: Hostile, ask: Repository) -> None:
    for challenge, said in (('Basic realm="x"', "without a login"), ("", "without a login"),
                            ('Bearer realm="file:///etc/passwd"', "not followed"),
                            ('Bearer realm="http://other.example/"', "not followed")):
        registry.answers["manifests/x"] = says(401, WWW_Authenticate=challenge)
        with pytest.raises(BadImage, match=said):
            resolve([ask], "x")
    for code, said in ((403, "without a login"), (404, "has no .* tag or digest"), (400, "says 400")):
        registry.answers["manifests/x"] = says(code)
        with pytest.raises(BadImage, match=said):
            resolve([ask], "x")
    registry.answers["manifests/x"] = says(401, WWW_Authenticate=f'Bearer realm="http://{registry.host}/token"')
    for token in (b"{}", b"no", b'{"token": "a\\r\\nHost: x"}', b"[]"):
        registry.answers["/token"] = says(200, token)
        with pytest.raises(BadImage, match="cannot be read"):
            resolve([ask], "x")


def test_what_breaks_off_goes_on_where_it_broke(
        registry: Hostile, ask: Repository, waits: list[float], tmp_path: Path) -> None:
    image = registry.has("x", made_image(layer(a=os.urandom(300_000))))
    name = json.loads(image.manifest)["layers"][0]["digest"]
    content = image.blobs[name]

    def broken(request: BaseHTTPRequestHandler) -> None:
        begin = int((request.headers.get("Range") or "bytes=0-")[len("bytes="):-1])
        request.send_response(206 if begin else 200)
        request.send_header("Content-Length", str(len(content) - begin))
        if begin:
            request.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        request.end_headers()
        request.wfile.write(content[begin:begin + 120_000])
        request.close_connection = True

    registry.answers[name] = broken
    unpacked(ask, image.digest, tmp_path / "root")
    assert [said for path, said in registry.asked if path.endswith(name)] == ["", "bytes=120000-", "bytes=240000-"]
    assert waits == [1.0, 4.0]


def test_a_registry_that_is_away_is_tried_again_and_then_another_machine_may(
        registry: Hostile, ask: Repository, waits: list[float]) -> None:
    registry.answers["manifests/x"] = says(503, Retry_After="7")
    with pytest.raises(Unreachable, match="says 503"):
        resolve([ask], "x")
    assert waits == [7.0, 7.0]
    with hostile_registry() as gone:
        host = gone.host
    with pytest.raises(Unreachable, match="cannot be reached"):
        resolve([repository(host, waits)], "x")
    with pytest.raises(Unreachable, match="cannot be reached"):
        resolve([repository(registry.host, waits, plain=False)], "x")  # it speaks no TLS


def test_a_real_registry_by_tls_counts_only_with_a_certificate_that_is_vouched_for(
        waits: list[float], tmp_path: Path) -> None:
    image = made_image(layer(a=b"below"), gzip.compress(layer(a=b"above")))
    with real_registry(tmp_path) as plain:
        push(plain, "tool", "x", image)
    with real_registry(tmp_path, tls=True) as host:
        place = Registry(host=host.replace("127.0.0.1", "localhost"))
        context = ssl.create_default_context()
        with pytest.raises(Unreachable, match="certificate verify failed"):
            Repository(place, "tool", context, sleep=waits.append).resolve("x")
        context.load_verify_locations(tmp_path / "certificate.pem")
        ask = Repository(place, "tool", context)
        assert ask.resolve("x") == image.digest
        assert (unpacked(ask, image.digest, tmp_path / "root") / "a").read_bytes() == b"above"
        with pytest.raises(BadImage, match="has no localhost"):
            ask.resolve("none")


def test_a_mirror_is_asked_first_and_what_it_has_not_comes_from_the_registry(
        registry: Hostile, ask: Repository, waits: list[float], tmp_path: Path) -> None:
    image = registry.has("x", made_image(layer(a=b"a"), layer(b=b"b")))
    first, second = (each["digest"] for each in json.loads(image.manifest)["layers"])
    with hostile_registry() as mirror:
        mirror.has("x", Image(image.manifest, {first: image.blobs[first], second: b"wrong"}))
        both = [repository(mirror.host, waits), ask]
        assert resolve(both, "x") == image.digest
        root = unpacked(both, image.digest, tmp_path / "root")
    assert sorted(os.listdir(root)) == ["a", "b"]
    assert (registry.count(first), registry.count(second)) == (0, 1)


def test_a_proxy_is_asked_for_all_but_this_machine(registry: Hostile, waits: list[float]) -> None:
    registry.answers["manifests/x"] = says(200, b"{}")
    far = repository("registry.example:5000", waits, proxy=f"http://{registry.host}")
    assert resolve([far], "x") == digest_of(b"{}")
    assert registry.asked[-1][0] == "http://registry.example:5000/v2/tool/manifests/x"
    assert resolve([repository(registry.host, waits, proxy="http://127.0.0.1:9")], "x") == digest_of(b"{}")


@pytest.mark.parametrize("manifest", [
    b"[]", b"no", b"{}", b'{"schemaVersion": 1, "layers": []}',
    b'{"schemaVersion": 2, "layers": [{"digest": "x", "size": 1}]}',
    b'{"schemaVersion": 2, "layers": 5, "config": 7}', b'{"manifests": [7]}', b"[" * 5000,
    b'{"schemaVersion": 2, "layers": [{"digest": "sha256:' + b"0" * 64 + b'", "size": -1}]}',
])
def test_a_manifest_that_makes_no_sense_is_refused(
        registry: Hostile, ask: Repository, tmp_path: Path, manifest: bytes) -> None:
    registry.tags[digest_of(manifest)] = manifest
    with pytest.raises(BadImage):
        unpacked(ask, digest_of(manifest), tmp_path / "root")
