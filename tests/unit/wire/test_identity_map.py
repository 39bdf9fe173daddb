"""CERTIFICATE_MAPFILE: which name here someone has who proved another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from condor_actors.config import ConfigError, load_config
from condor_actors.messages.envelope import Identity
from condor_actors.wire.identity_map import BadMapping, IdentityMap, proved_name

USER = Identity(name="alice@desk1.physics", method="tls", roles=frozenset({"user"}), host="desk1.physics")
MACHINE = Identity(name="condor@physics", method="tls", roles=frozenset({"schedd"}), host="desk1.physics")
SHADOW = Identity(name="shadow:alice@desk1.physics", method="tls", roles=frozenset({"shadow"}), host="desk1.physics")
TOKEN = Identity(name="robot@physics", method="token", roles=frozenset({"user"}))
LOCAL = Identity(name="daily@here", method="local", uid=1000)


def config_of(folder: Path, text: str, **more: str) -> Any:
    (folder / "names").write_text(text)
    lines = {"UID_DOMAIN": "here", "CERTIFICATE_MAPFILE": str(folder / "names"), **more}
    (folder / "condor_config").write_text("".join(f"{name} = {value}\n" for name, value in lines.items()))
    return load_config(files=[folder / "condor_config"], environ={})


def name(folder: Path, text: str, identity: Identity, **more: str) -> str:
    return IdentityMap.of(config_of(folder, text, **more)).name_here(identity)


def test_what_is_proved() -> None:
    assert [proved_name(each) for each in (USER, MACHINE, TOKEN, LOCAL)] == [
        "alice@desk1.physics", "/O=physics/CN=desk1.physics", "robot@physics", "daily"]


def test_the_first_rule_that_fits_counts(tmp_path: Path) -> None:
    text = r"""
    # method  proved  here
    SSL       "^alice@desk1\.physics$"        al@here
    SSL       /^(.*)@DESK[0-9]+\.physics$/i   \1
    SSL       "^/O=physics/CN=(.*)\.physics$" condor@\1
    TOKEN     /^robot@physics$/               nightly@here
    fs        ^daily$                         reports
    """
    assert name(tmp_path, text, USER) == "al@here"
    assert name(tmp_path, text, Identity(name="bob@desk22.physics", method="tls", roles=USER.roles,
                                         host="desk22.physics")) == "bob@here"
    assert name(tmp_path, text, MACHINE) == "condor@desk1"
    assert name(tmp_path, text, TOKEN) == "nightly@here"
    assert name(tmp_path, text, LOCAL) == "reports@here"


def test_who_fits_none_keeps_his_name(tmp_path: Path) -> None:
    text = 'SSL "^bob@" bob@here\nKERBEROS "(.*)" x@here\n'
    for each in (USER, MACHINE, TOKEN, LOCAL, SHADOW):
        assert name(tmp_path, text, each) == ""
    assert name(tmp_path, "* (.*) root@here", SHADOW) == "", "a shadow is what its schedd says"


def test_keys_that_are_no_patterns(tmp_path: Path) -> None:
    text = 'SSL alice@desk1.physics al@here\nSSL "alice.desk1.physics" no@here\nIDTOKENS /^ro/ yes@here\n'
    more = {"CERTIFICATE_MAPFILE_ASSUME_HASH_KEYS": "True"}
    assert name(tmp_path, text, USER, **more) == "al@here"
    assert name(tmp_path, text.replace("alice@", "lice@"), USER, **more) == ""
    assert name(tmp_path, text, TOKEN, **more) == "yes@here"


@pytest.mark.parametrize(("text", "line", "problem"), [
    ("\nSSL alice\n", 2, "fewer words"),
    ("SSL /(/ x@here", 1, "no regular expression"),
    ('SSL "(" x@here', 1, "no regular expression"),
    ("# fine\n\nSLL alice x@here", 3, "no method"),
    ("SSL alice x@here y@here", 1, "one name"),
    ('SSL "" x@here', 1, "no empty name"),
])
def test_a_bad_line_is_told_with_its_place(tmp_path: Path, text: str, line: int, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        IdentityMap.of(config_of(tmp_path, text))
    assert caught.value.line == line
    assert str(tmp_path / "names") in str(caught.value)


def test_files_within_files(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a").write_text("SSL ^alice@ a@here\n")
    (tmp_path / "more" / "b").write_text("SSL ^bob@ b@here\n")
    assert name(tmp_path, "@include more\nSSL .* last@here", USER) == "a@here"
    with pytest.raises(ConfigError, match="circles"):
        name(tmp_path, "@include names", USER)
    with pytest.raises(ConfigError, match="cannot read"):
        name(tmp_path, "@include nothing", USER)


@pytest.mark.parametrize("here", ["*@here", "a@b@c", "shadow:alice@here", "a/b"])
def test_a_mapping_to_no_name_lets_nobody_in(tmp_path: Path, here: str) -> None:
    with pytest.raises(BadMapping):
        name(tmp_path, f"SSL .* {here}", USER)


def test_patterns_take_no_time(tmp_path: Path) -> None:
    """However a stranger calls himself: the engine does not go back."""
    long = Identity(name="a" * 5000 + "!@x", method="tls", roles=USER.roles, host="x")
    assert name(tmp_path, r"SSL ^(a+)+$ x@here", long) == ""
