"""What Slurm runs for a machine of an annex, run by a shell with a stand-in for the daemons."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from condor_actors.machine.supervisor.process_marks import all_processes, environment_of
from condor_actors.tools.admin.annex_script import AnnexPlan, script_of
from tests.pool_fixture import until

STAND_IN = """#!/bin/sh
case "$*" in
    *services*) echo began > {folder}/began; exec {master} ;;
    *) cat > {folder}/token ;;
esac
"""
"""In the place of Python: it joins at once, and its master is a program of the test's."""


class Annex:
    """The script of an annex in ``folder``, and what it runs."""

    def __init__(self, folder: Path, master: str, lifetime_s: float) -> None:
        self.folder = folder
        (folder / "tokens").mkdir()
        (folder / "tokens/1").write_text("a token\n")
        (folder / "python").write_text(STAND_IN.format(folder=folder, master=master))
        (folder / "python").chmod(0o755)
        (folder / "script").write_text(script_of(AnnexPlan(
            name="a", folder=folder, python=str(folder / "python"), lifetime_s=lifetime_s)))
        self.mark = f"ANNEX_TEST={folder}"
        self.process = subprocess.Popen(["/bin/sh", str(folder / "script")], text=True, stderr=subprocess.PIPE,
                                        env={**os.environ, "ANNEX_TEST": str(folder), "TMPDIR": str(folder)})

    def left(self) -> list[int]:
        return [pid for pid in all_processes() if self.mark.encode() in environment_of(pid)]

    def check_is_gone(self) -> None:
        self.process.communicate(timeout=60)
        until(lambda: not self.left(), lambda: f"nothing runs any longer: {self.left()}")
        assert sorted(path.name for path in self.folder.iterdir()) == ["began", "python", "script", "token", "tokens"]
        assert (self.folder / "token").read_text() == "a token\n"
        assert not (self.folder / "tokens/1").exists()


def test_nothing_is_left_of_one_whose_daemons_end(tmp_path: Path) -> None:
    annex = Annex(tmp_path, "true", 1800.0)
    annex.check_is_gone()
    assert annex.process.returncode == 0


@pytest.mark.parametrize("told", [True, False])
def test_its_daemons_end_when_it_is_told_and_when_its_time_is_over(tmp_path: Path, told: bool) -> None:
    annex = Annex(tmp_path, "sleep 1000", 1800.0 if told else 21.0)
    until((tmp_path / "began").exists, "the daemons")
    if told:
        annex.process.send_signal(signal.SIGTERM)
    annex.check_is_gone()
    assert annex.process.returncode == 128 + signal.SIGTERM
