"""Every command, with what happens to all of them: help, a reader that leaves, no pool to talk to."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.harness.commands import COMMANDS
from tests.pool_fixture import BIN


def run(name: str, *words: str, out: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(BIN / name), *words], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,
                          env={"PATH": os.environ["PATH"], "HOME": "/nonexistent",
                               "CONDOR_CONFIG": "/nonexistent/condor_config"},
                          text=True, check=False)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_says_how_it_is_called(name: str) -> None:
    done = run(name, "-help")
    assert name in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_reader_that_has_left_is_no_error_of_ours(name: str) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = run(name, "-help", out=write)
    finally:
        os.close(write)
    assert "Traceback" not in done.stderr
    assert "BrokenPipeError" not in done.stderr


@pytest.mark.parametrize("name", ["condor_q", "condor_status", "condor_rm", "condor_userprio", "condor_owner",
                                  "condor_reserve", "condor_drain", "condor_policy"])
def test_without_a_pool_the_reason_is_said(name: str) -> None:
    done = run(name, *{"condor_rm": ["1"], "condor_drain": ["here"]}.get(name, []))
    assert done.returncode != 0
    assert done.stderr
    assert "Traceback" not in done.stderr
