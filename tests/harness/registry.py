"""Registries on loopback: Debian's own, and one that says what a test tells it to."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import http.server
import json
import shutil
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.pool_fixture import until

__all__ = ["Hostile", "Image", "digest_of", "hostile_registry", "made_image", "push", "real_registry"]

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
CONFIGURATION = "application/vnd.oci.image.config.v1+json"


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@attrs.frozen
class Image:
    """A manifest and what it names."""

    manifest: bytes
    blobs: dict[str, bytes]

    @property
    def digest(self) -> str:
        return digest_of(self.manifest)


def made_image(*layers: bytes, environment: tuple[str, ...] = ("PATH=/bin", "FROM_IMAGE=yes"),
               entrypoint: tuple[str, ...] = ()) -> Image:
    """An image of these layers."""
    configuration = json.dumps({
        "architecture": "amd64", "os": "linux",
        "config": {"Env": list(environment), "Entrypoint": list(entrypoint) or None},
        "rootfs": {"type": "layers", "diff_ids": [digest_of(layer) for layer in layers]}}).encode()

    def named(content: bytes, kind: str) -> dict[str, Any]:
        return {"mediaType": kind, "digest": digest_of(content), "size": len(content)}

    manifest = json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": named(configuration, CONFIGURATION),
                           "layers": [named(layer, LAYER) for layer in layers]}).encode()
    return Image(manifest, {digest_of(each): each for each in (configuration, *layers)})


def _asked(url: str, method: str, data: bytes | None = None, kind: str = "application/octet-stream") -> Any:
    request = urllib.request.Request(url, data=data, method=method, headers={"Content-Type": kind})  # noqa: S310
    return urllib.request.urlopen(request, timeout=60)  # noqa: S310


def push(host: str, name: str, tag: str, image: Image) -> None:
    """Bring an image into a registry."""
    for digest, content in image.blobs.items():
        with _asked(f"http://{host}/v2/{name}/blobs/uploads/", "POST", b"") as answer:
            place = answer.headers["Location"]
        joint = "&" if "?" in place else "?"
        _asked(f"{place}{joint}digest={digest}", "PUT", content).close()
    _asked(f"http://{host}/v2/{name}/manifests/{tag}", "PUT", image.manifest, MANIFEST).close()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def localhost_certificate(folder: Path) -> dict[str, str]:
    """A certificate of ``localhost``'s own, ``certificate.pem``, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
            .sign(key, hashes.SHA256()))
    (folder / "certificate.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    return {"certificate": str(folder / "certificate.pem"), "key": str(folder / "key.pem")}


@contextlib.contextmanager
def real_registry(folder: Path, *, tls: bool = False, auth: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Debian's registry, as ``host:port``; with TLS by a certificate of ``localhost``, ``certificate.pem``.

    ``auth``: whom it lets in, as in its configuration; nothing can be pushed then but what is in the folder already.
    """
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("needs docker-registry")
    host = f"127.0.0.1:{_free_port()}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "registry.yml").write_text(json.dumps({
        "version": 0.1, "log": {"level": "error"},
        "http": {"addr": host} | ({"tls": localhost_certificate(folder)} if tls else {}),
        **({"auth": dict(auth)} if auth else {}),
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}}}))
    with (folder / "registry.log").open("wb") as log:
        process = subprocess.Popen([program, "serve", str(folder / "registry.yml")], stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log)

    def answers() -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(host.rpartition(":")[2]))):
            return True
        return False

    try:
        until(answers, "the registry's first answer")
        yield host
    finally:
        process.kill()
        process.wait()


@attrs.define(eq=False)
class Hostile:
    """A registry whose answers a test can replace.

    Attributes:
        host: ``host:port``.
        tags, images: what it has; answers: what it says instead, by the end of a path.
        asked: paths, with the header Range or Authorization where there was one.
    """

    host: str
    tags: dict[str, bytes] = attrs.field(factory=dict)
    blobs: dict[str, bytes] = attrs.field(factory=dict)
    answers: dict[str, Callable[[http.server.BaseHTTPRequestHandler], None]] = attrs.field(factory=dict)
    asked: list[tuple[str, str]] = attrs.field(factory=list)

    def has(self, tag: str, image: Image) -> Image:
        """It has this image."""
        self.tags[tag] = self.tags[image.digest] = image.manifest
        self.blobs |= image.blobs
        return image

    def count(self, end: str) -> int:
        """How often a path with this end was asked for."""
        return sum(path.endswith(end) for path, _ in self.asked)


@contextlib.contextmanager
def hostile_registry() -> Iterator[Hostile]:
    """One that listens."""
    registry = Hostile("")

    class Answers(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *words: object) -> None:
            """Says nothing."""

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            registry.asked.append((path, self.headers.get("Range") or self.headers.get("Authorization") or ""))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                for end, answer in registry.answers.items():
                    if path.endswith(end):
                        answer(self)
                        return
                last = path.rpartition("/")[2]
                content = registry.tags.get(last) if "/manifests/" in path else registry.blobs.get(last)
                if content is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    registry.host = f"127.0.0.1:{server.server_address[1]}"
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
