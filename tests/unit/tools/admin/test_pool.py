"""``condor_pool`` without a network: create, show, token, list, revoke, and what goes wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.tools.admin import pool
from condor_actors.wire.tokens import Token


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "config.d").mkdir()
    (tmp_path / "condor_config").write_text(
        f"LOCAL_DIR = {tmp_path}\nETC = {tmp_path}\nLOCAL_CONFIG_DIR = {tmp_path}/config.d\n"
        "COLLECTOR_HOST = cm.example:9618\n"
    )
    monkeypatch.setenv("CONDOR_CONFIG", str(tmp_path / "condor_config"))
    return tmp_path


def test_from_nothing_to_a_token(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pool.main(["create", "--name", "physics", "--host", "cm.example", "--interface", "10.0.0.1"]) == 0
    said = capsys.readouterr().out
    assert "physics" in said
    written = (place / "config.d" / "05-pool.config").read_text()
    assert "NETWORK_INTERFACE = 10.0.0.1" in written
    assert "TRUST_DOMAIN = physics" in written
    assert pool.main(["token", "--lifetime", "2h", "--roles", "startd"]) == 0
    out, err = capsys.readouterr()
    assert Token.parse(out).address == "<cm.example:9618>"
    assert "120 minutes" in err
    assert pool.main(["show"]) == 0
    assert "condor@physics" in capsys.readouterr().out
    assert pool.main(["list"]) == 0
    assert "good" in capsys.readouterr().out
    assert pool.main(["revoke", "cm.example"]) == 0
    assert pool.main(["list"]) == 0
    assert "revoked" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["frob"], "unknown command 'frob'"),
        (["token"], "condor_pool create"),
        (["show"], "belongs to no pool"),
        (["join"], "join takes the token"),
        (["join", "nonsense"], "begins with condor1."),
        (["create", "--frob"], "unknown option --frob"),
        (["create", "--name"], "--name needs a value"),
        *((["create", "--name", name], f"--name {name!r}: a pool's name is of small letters")
          for name in ("", "a b", "Physics", "département", "a@b", "-x", "x" * 64)),
        (["revoke"], "takes serial numbers"),
    ],
)
def test_what_goes_wrong_is_said(place: Path, capsys: pytest.CaptureFixture[str], words: list[str], text: str) -> None:
    assert pool.main(words) == 1
    out, err = capsys.readouterr()
    assert text in err
    assert not out


def test_a_second_pool_and_wrong_values(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pool.main(["create", "--no-config"]) == 0
    assert not list((place / "config.d").iterdir())
    assert pool.main(["create"]) == 1
    assert pool.main(["token", "--lifetime", "soon"]) == 1
    assert pool.main(["token", "--roles", "king"]) == 1
    assert pool.main(["join", "condor1.x"]) == 1
    assert pool.main([]) == 1
    assert pool.main(["--help"]) == 0
    assert "exists" in capsys.readouterr().err


def test_a_pool_on_loopback_says_so(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pool.main(["create"]) == 0
    assert "serves this machine only" in capsys.readouterr().out
    assert pool.main(["token"]) == 0
    assert "other machines cannot reach it" in capsys.readouterr().err


def test_what_a_machine_runs_is_what_was_asked_for_and_allowed() -> None:
    roles = ("master", "schedd", "startd")
    assert pool._wanted_daemons({}, roles) == ["SCHEDD", "STARTD"]
    assert pool._wanted_daemons({"execute": True}, roles) == ["STARTD"]
    assert pool._wanted_daemons({"execute": True, "submit": True}, roles) == ["SCHEDD", "STARTD"]
    with pytest.raises(pool.PoolToolError, match="does not allow a schedd"):
        pool._wanted_daemons({"submit": True}, ("master", "startd"))


def test_nothing_is_made_where_there_is_no_place_for_the_settings(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "condor_config").write_text(f"LOCAL_DIR = {place}\nETC = {place}\n")
    assert pool.main(["create", "--name", "physics"]) == 1
    assert "LOCAL_CONFIG_DIR is not set" in capsys.readouterr().err
    assert not (place / "pool").exists()
    assert pool.main(["create", "--name", "physics", "--no-config"]) == 0
