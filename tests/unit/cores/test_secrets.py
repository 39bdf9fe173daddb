"""Secrets of claims, and the right to ask for one."""

from __future__ import annotations

import pytest

from condor_actors.cores.secrets import matches


def test_who_knows_a_secret_shows_it() -> None:
    assert matches("secret", "secret")


@pytest.mark.parametrize(("secret", "shown"), [("secret", "secreT"), ("secret", "secre"), ("secret", "secrets")])
def test_who_guesses_is_refused(secret: str, shown: str) -> None:
    assert not matches(secret, shown)


@pytest.mark.parametrize(("secret", "shown"), [("secret", ""), ("", "secret"), ("", "")])
def test_what_has_no_secret_is_nobodys(secret: str, shown: str) -> None:
    assert not matches(secret, shown)
