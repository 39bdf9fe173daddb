"""The process that fetches an image: what its status says, and what it leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from condor_actors.machine.containers import pull
from condor_actors.machine.containers.pull import PullOrder
from condor_actors.messages.references.image_reference import Registry
from tests.harness.registry import Hostile, hostile_registry, made_image
from tests.pool_fixture import small_file_system, until
from tests.unit.machine.containers.test_registry import layer

MIB = 1 << 20


@pytest.fixture
def registry() -> Iterator[Hostile]:
    with hostile_registry() as made:
        yield made


def started(registry: Hostile, digest: str, target: Path, *, most_s: float = 60.0, room: int = 64 * MIB,
            limit: int = 64 * MIB) -> subprocess.Popen[bytes]:
    target.mkdir(exist_ok=True)
    folder = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    order = PullOrder(name="tool", places=(Registry(host=registry.host, plain=True),), tag="", digest=digest,
                      folder=folder, account=None, limit_bytes=limit, room_bytes=room, most_s=most_s)
    process = subprocess.Popen([sys.executable, "-m", pull.__name__], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, pass_fds=(folder,))
    os.close(folder)
    assert process.stdin is not None
    process.stdin.write(order.encode())
    process.stdin.close()
    process.stdin = None
    return process


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    said = process.communicate(timeout=120)[1].decode()
    return process.returncode, said


def test_it_reports_what_the_image_says(registry: Hostile, tmp_path: Path) -> None:
    image = registry.has("x", made_image(layer(a=b"a"), environment=("A=1",)))
    status, said = ended(started(registry, image.digest, tmp_path / "root"))
    assert (status, json.loads(said)["environment"]) == (0, ["A=1"])


def test_what_comes_too_slowly_is_given_up(registry: Hostile, tmp_path: Path) -> None:
    image = registry.has("x", made_image(layer(a=b"a")))
    over = threading.Event()

    def silent(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "10240")
        request.end_headers()
        request.wfile.write(b"x")
        over.wait(120)

    registry.answers[json.loads(image.manifest)["layers"][0]["digest"]] = silent
    try:
        assert ended(started(registry, image.digest, tmp_path / "root", most_s=3)) == (2, "it takes more than 3 s")
    finally:
        over.set()


def test_a_machine_without_room_is_to_blame_and_an_image_that_is_too_large_is_not(
        registry: Hostile, tmp_path: Path) -> None:
    image = registry.has("x", made_image(layer(a=bytes(4 * MIB))))
    status, said = ended(started(registry, image.digest, tmp_path / "less", room=MIB))
    assert (status, "room for" in said) == (2, True)
    status, said = ended(started(registry, image.digest, tmp_path / "limit", limit=MIB))
    assert (status, "room for" in said) == (1, True)


def test_a_disk_that_fills_up_meanwhile(registry: Hostile) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    image = registry.has("x", made_image(layer(a=os.urandom(6 * MIB))))
    with small_file_system("8m") as folder:
        status, said = ended(started(registry, image.digest, folder / "root"))
    assert (status, "No space left" in said) == (2, True)


def test_killed_it_leaves_no_file_that_is_not_the_images(registry: Hostile, tmp_path: Path) -> None:
    image = registry.has("x", made_image(layer(a=b"a"), layer(b=b"b")))
    last, over = json.loads(image.manifest)["layers"][1]["digest"], threading.Event()

    def waits(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "10240")
        request.end_headers()
        over.wait(120)

    registry.answers[last] = waits
    process = started(registry, image.digest, tmp_path / "root")
    until(lambda: registry.count(last), "the last layer asked for")
    process.kill()
    process.communicate()
    over.set()
    assert os.listdir(tmp_path / "root") == ["a"]
