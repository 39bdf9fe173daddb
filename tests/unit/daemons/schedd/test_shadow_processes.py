"""What the schedd keeps of shadow hosts that are gone."""

from __future__ import annotations

import os
from pathlib import Path

from condor_actors.daemons.schedd.shadow_processes import forget_old_logs

NO_PROCESS = 2**22 + 1
"""Beyond the kernel's largest process id."""


def test_of_hosts_that_are_gone_the_last_logs_are_kept(tmp_path: Path) -> None:
    living = tmp_path / f"ShadowHostLog.{os.getpid()}"
    other = tmp_path / "ScheddLog"
    for path in (living, other):
        path.write_text("x")
        os.utime(path, (1, 1))
    for number in range(10):
        path = tmp_path / f"ShadowHostLog.{NO_PROCESS + number}{'.1' if number % 2 else ''}"
        path.write_text("x")
        os.utime(path, (100 + number, 100 + number))
    forget_old_logs(tmp_path, kept=3)
    assert {path.name for path in tmp_path.iterdir()} == {
        living.name, "ScheddLog", f"ShadowHostLog.{NO_PROCESS + 7}.1", f"ShadowHostLog.{NO_PROCESS + 8}",
        f"ShadowHostLog.{NO_PROCESS + 9}.1"}
