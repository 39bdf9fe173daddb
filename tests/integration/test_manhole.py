"""The manhole, entered with the ordinary ssh."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import attrs
import pytest
import pytest_twisted
from twisted.internet import reactor
from twisted.internet.threads import deferToThread

from condor_actors.actors import Actor, ActorSystem, NoPost
from condor_actors.config import load_config
from condor_actors.messages.envelope import Address, Done
from condor_actors.services.telemetry.manhole import View, open_manhole

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="there is no ssh")


class Core:
    def story(self, key: str) -> tuple[tuple[float, str], ...]:
        return ((1.0, f"{key} was born"), (2.0, "it grew"))


class Keeper(Actor):
    def __init__(self) -> None:
        self.core = Core()


@attrs.define
class FakeDaemon:
    system: ActorSystem
    name: str = "schedd"


@pytest.fixture
def place() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="ca"))
    (path / "run").mkdir()
    yield path
    shutil.rmtree(path)


@pytest.fixture
def daemon() -> Iterator[Any]:
    system = ActorSystem(clock=reactor, wall_clock=lambda: 0.0, post=NoPost(), authorize=lambda *_: True,
                         random=Random(1))
    system.spawn("keeper", Keeper)
    yield FakeDaemon(system)
    system.stop()


def keypair(path: Path) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path.with_suffix(".pub").read_text()


@pytest.mark.parametrize("kind", ["unix", "loopback"])
@pytest_twisted.ensureDeferred
async def test_expressions_by_ssh(place: Path, daemon: Any, kind: str) -> None:
    text = f"LOCAL_DIR = {place}\nRUN = {place}/run\nETC = {place}\nMANHOLE = {kind}\n"
    (place / "condor_config").write_text(text)
    (place / "manhole_keys").write_text("# the admins\n" + keypair(place / "good"))
    keypair(place / "bad")
    config = load_config(files=[place / "condor_config"], environ={})
    manhole = open_manhole(config, "schedd", daemon, reactor)

    def condor_manhole(key: str, expression: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "condor_actors.tools.admin.manhole", "-i", str(place / key), "schedd", expression],
            env={**os.environ, "CONDOR_CONFIG": str(place / "condor_config"), "HOME": str(place)},
            capture_output=True, text=True, timeout=60, check=False,
        )

    try:
        done = await deferToThread(condor_manhole, "good", "actors()")
        assert done.returncode == 0, done
        assert "keeper  Keeper" in done.stdout
        done = await deferToThread(condor_manhole, "good", "story('12.0')")
        assert "12.0 was born" in done.stdout
        done = await deferToThread(condor_manhole, "good", "core('nobody')")
        assert done.returncode == 1
        assert "there is no actor 'nobody'" in done.stderr
        done = await deferToThread(condor_manhole, "bad", "actors()")
        assert done.returncode == 255
        assert "keeper" not in done.stdout
        if kind == "unix":
            assert (place / "run" / "schedd.manhole.sock").stat().st_mode & 0o777 == 0o600
    finally:
        await manhole.stop()
    done = await deferToThread(condor_manhole, "good", "actors()")
    assert done.returncode == 1
    assert "is not open" in done.stderr


def test_what_the_prompt_sees(daemon: Any) -> None:
    view = View(daemon, load_config(files=[], environ={}), None)
    names = view.namespace()
    assert "actors()" in repr(names["help"]())
    assert names["story"]("x") == "1.0  x was born\n2.0  it grew"
    assert view.evaluate("1 / 0") == ("ZeroDivisionError: division by zero", False)
    daemon.system.tell(Address("", "keeper"), Done())
    assert "keeper" in repr(names["mailboxes"]())
    daemon.system.stop_actor("keeper")
    assert repr(names["mailboxes"]()) == "nothing waits"
