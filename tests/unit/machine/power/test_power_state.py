"""The pool's own program that puts a machine to sleep.  No machine sleeps here: its files and programs are others."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from condor_actors.machine.power import power_state
from condor_actors.machine.power.power_state import METHODS, Machine, main

SYSTEMCTL = """#!/bin/sh
echo "$@" >> {folder}/orders
if [ -e {folder}/refuse ]; then echo "Access denied" >&2; exit 1; fi
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """One without systemd, whose kernel can do S3 and S4; its clocks say that it slept whenever they are looked at."""
    (tmp_path / "state").write_text("freeze mem disk\n")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    looks = iter(range(0, 1000, 60))
    return Machine(state=tmp_path / "state", systemd=tmp_path / "systemd", asleep_s=lambda: next(looks), begins_s=0.0)


@pytest.fixture
def systemd(machine: Machine, tmp_path: Path) -> Machine:
    """The same with systemd, which refuses when a file ``refuse`` is there."""
    machine.systemd.mkdir()
    program = tmp_path / "bin" / "systemctl"
    program.write_text(SYSTEMCTL.format(folder=tmp_path))
    program.chmod(0o755)
    return machine


def test_it_says_what_the_machine_can_do(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ad"], machine) == 0
    assert capsys.readouterr().out == 'HibernationSupportedStates = "S3,S4"\nHibernationMethod = "/sys"\n'
    machine.state.write_text("freeze standby\n")
    assert main(["ad"], machine) == 0
    assert capsys.readouterr().out == 'HibernationSupportedStates = ""\nHibernationMethod = "NONE"\n'
    machine.state.unlink()
    assert main(["-method", "/sys", "ad"], machine) == 0
    assert 'HibernationMethod = "NONE"' in capsys.readouterr().out


def test_systemd_is_preferred_and_can_switch_off(systemd: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    systemd.state.write_text("mem\n")
    assert main(["ad"], systemd) == 0
    assert capsys.readouterr().out == 'HibernationSupportedStates = "S3,S5"\nHibernationMethod = "systemctl"\n'
    assert main(["-method", "/sys", "ad"], systemd) == 0
    assert 'HibernationSupportedStates = "S3"' in capsys.readouterr().out
    assert main(["set", "S4"], systemd) == 1
    assert "cannot be put into S4; it can into S3, S5" in capsys.readouterr().err


def test_the_kernel_is_written_its_own_word(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["set", "S4"], machine) == 0
    assert machine.state.read_text() == "disk"
    assert main(["set", "S3"], machine) == 1, "the file names another state now"
    machine.state.write_text("mem disk")
    assert main(["set", "S3"], machine) == 0
    assert machine.state.read_text() == "mem"
    gone = attrs.evolve(machine, state=machine.state.parent / "none" / "state")
    assert "No such file" in METHODS["/sys"].put(gone, "S3")
    assert capsys.readouterr().out == ""


def test_systemd_is_ordered_and_the_clocks_tell_that_the_machine_slept(
        systemd: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["set", "S3"], systemd) == 0
    assert main(["set", "S5"], systemd) == 0
    assert (tmp_path / "orders").read_text().split() == ["suspend", "poweroff"]
    awake = attrs.evolve(systemd, asleep_s=lambda: 5.0)
    assert main(["set", "S4"], awake) == 1
    assert "hibernate was accepted, and after 0 s the machine is awake" in capsys.readouterr().err
    (tmp_path / "refuse").touch()
    assert main(["set", "S3"], systemd) == 1
    assert "systemctl suspend: Access denied" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["set"], ["put", "S3"], ["ad", "S3"], ["-method", "pm-utils", "ad"]])
def test_other_words_are_refused(machine: Machine, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words, machine) == 64
    assert capsys.readouterr().err


def test_this_machine_says_for_how_long_it_has_slept() -> None:
    assert power_state._asleep_s() >= -0.001
