"""Pools to be attacked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from condor_actors.wire.tokens import Token, TokenStore
from tests.harness.namespaces import Machine, Wire, a_wire
from tests.harness.root_helper import POOL, Helper
from tests.harness.web_page import a_browser
from tests.pool_fixture import fresh_folder, until


@attrs.frozen
class AttackedPool:
    """A pool of real daemons on machines of their own, and a machine whose administrator is not to be trusted."""

    wire: Wire
    manager: Machine
    submit: Machine
    evil: Machine
    _firsts: list[Token] = attrs.field(factory=list, init=False)

    def token(self, roles: str = "master,schedd,startd") -> str:
        """A join token, such as condor_pool has made the first one."""
        if not self._firsts:
            self._firsts.append(Token.parse(self.manager.run("condor_pool", "token")))
        folder = self.manager.dir / "spool" / "tokens"
        owner = folder.stat()
        made = TokenStore(folder).issue(self._firsts[0].address, self._firsts[0].ca_fingerprint, roles=roles.split(","))
        for path in folder.glob(f"{made.token_id}*"):
            os.chown(path, owner.st_uid, owner.st_gid)
        return made.text()

    @property
    def collector(self) -> str:
        """The collector's node."""
        return f"<{self.manager.address}:9618>"

    def node(self, machine: Machine, daemon: str) -> str:
        """The public node of a daemon."""
        return (machine.dir / "run" / f"{daemon}.address").read_text().split()[0]


@pytest.fixture(scope="module")
def attacked() -> Iterator[AttackedPool]:
    """One for all tests of a module."""
    with a_wire() as wire:
        manager = wire.manager()
        submit = wire.member(manager, "submit", "master,schedd")
        until((submit.dir / "run" / "schedd.address").exists, "the schedd to listen")
        yield AttackedPool(wire, manager, submit, wire.machine("evil"))


@pytest.fixture
def wire() -> Iterator[Wire]:
    """A wire to hang machines on."""
    with a_wire() as made:
        yield made


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium; each test opens windows of its own."""
    with a_browser() as made:
        yield made


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of the pool's account that everybody can enter."""
    with fresh_folder() as path:
        os.chown(path, POOL, POOL)
        yield path


@pytest.fixture
def helper(folder: Path) -> Iterator[Helper]:
    """The helper that stays root, of a daemon that may use this folder."""
    with Helper("--folder", str(folder)) as made:
        yield made
