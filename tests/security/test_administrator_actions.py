"""What an administrator does with the pool's files, through no daemon, cannot be done without a line about it."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from condor_actors.tools.admin.pool import main as condor_pool
from condor_actors.tools.pool.tokens import create as condor_token_create


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pool's authority and keys, and no daemon."""
    config = tmp_path / "condor_config"
    config.write_text(f"LOCAL_DIR = {tmp_path}\nETC = {tmp_path}/etc\nCOLLECTOR_HOST = manager.example:9618\n"
                      "TRUST_DOMAIN = here\nUID_DOMAIN = users\n")
    monkeypatch.setenv("CONDOR_CONFIG", str(config))
    assert condor_pool(["create", "--name", "here", "--host", "manager.example", "--no-config"]) == 0
    return tmp_path


def lines(pool: Path) -> list[str]:
    log = pool / "log" / "ToolAuditLog"
    return log.read_text().splitlines() if log.exists() else []


def token_create(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["condor_token_create", *words])
    return condor_token_create()


def test_each_leaves_a_line_without_a_secret(pool: Path, capsys: pytest.CaptureFixture[str],
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    assert condor_pool(["token", "--roles", "startd", "--lifetime", "2h"]) == 0
    join = capsys.readouterr().out.split()[-1]
    assert condor_pool(["revoke", "manager.example"]) == 0
    assert token_create(monkeypatch, "-identity", "alice@users", "-authz", "READ", "-lifetime", "60") == 0
    token = capsys.readouterr().out.split()[-1]
    made, revoked, created = lines(pool)
    for line in (made, revoked, created):
        assert re.match(r"\d{4}-\d\d-\d\dT[\d:.]+Z daemon=tool act=", line)
        assert f"from=pid:{os.getpid()}" in line
        assert "@users" in line
    assert 'act=issue-join-token object="roles=startd lifetime_s=7200 stay_s=0"' in made
    assert "act=revoke-certificates object=" in revoked
    assert "manager.example" in revoked
    assert "act=create-token" in created
    for word in ("identity=alice@users", "levels=READ", "lifetime_s=60", "id="):
        assert word in created
    for secret in (join, token, token.rpartition(".")[2], join[-20:]):
        assert secret not in "\n".join(lines(pool))
    assert (pool / "log" / "ToolAuditLog").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("kind", ["link", "second name", "fifo", "folder"])
def test_a_log_that_leads_elsewhere(pool: Path, kind: str, capsys: pytest.CaptureFixture[str],
                                    monkeypatch: pytest.MonkeyPatch) -> None:
    """The action is not done, and nothing is written there."""
    log, victim = pool / "log" / "ToolAuditLog", pool / "victim"
    log.parent.mkdir(exist_ok=True)
    victim.write_text("victim")
    if kind == "link":
        log.symlink_to(victim)
    elif kind == "second name":
        os.link(victim, log)
    elif kind == "fifo":
        os.mkfifo(log)
    else:
        log.mkdir()
    assert condor_pool(["token"]) == 1
    assert condor_pool(["revoke", "manager.example"]) == 1
    assert token_create(monkeypatch, "-identity", "alice@users") == 1
    assert "eyJ" not in capsys.readouterr().out
    assert victim.read_text() == "victim"
    capsys.readouterr()
    assert condor_pool(["list"]) == 0
    assert "revoked" not in capsys.readouterr().out


def test_no_log_where_none_is_wanted(pool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_CONDOR_TOOL_AUDIT_LOG", "none")
    assert condor_pool(["token"]) == 0
    assert lines(pool) == []
