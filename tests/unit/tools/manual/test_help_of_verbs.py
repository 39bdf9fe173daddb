"""``-help`` behind each verb of each command prints text and succeeds."""

from __future__ import annotations

import sys

import pytest

from condor_actors.tools.manual.lookup import described
from condor_actors.tools.manual.sources import verbs_of
from tests.harness.commands import COMMANDS

VERBS = [(name, verb.name) for name in sorted(described()) for verb in verbs_of(name)]


@pytest.mark.parametrize(("name", "verb"), VERBS, ids=[f"{name} {verb}" for name, verb in VERBS])
def test_help_of_each_verb(name: str, verb: str, monkeypatch: pytest.MonkeyPatch,
                           capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", [name, *verb.split(), "-help"])
    monkeypatch.setenv("CONDOR_CONFIG", "/nonexistent/condor_config")
    try:
        status = COMMANDS[name].load()()
    except SystemExit as end:
        status = end.code
    said = capfd.readouterr()
    assert not status, said.err
    assert verb.split()[-1] in said.out + said.err


def test_there_are_verbs_to_try() -> None:
    assert len(VERBS) > 80
