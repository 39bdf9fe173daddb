"""Every daemon that starts where its disk is full: it says whose disk that is, and its master tries again."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pool_fixture import small_file_system

DAEMONS = ("collector", "negotiator", "schedd", "startd", "credd", "defrag", "gateway", "rooster", "web",
             "ckpt_server", "master")


def fill(folder: Path) -> Path:
    """Leave no room in a file system; the file that takes it."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)
    return filler


def started(name: str, config: Path) -> subprocess.Popen[str]:
    clean = {each: value for each, value in os.environ.items() if "CONDOR" not in each.upper()}
    return subprocess.Popen([sys.executable, "-m", "condor_actors.services", name], cwd="/",
                            env={**clean, "CONDOR_CONFIG": str(config)}, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True, start_new_session=True)


def ends(processes: dict[str, subprocess.Popen[str]]) -> dict[str, tuple[int, str]]:
    """With what they end that cannot begin."""
    found = {}
    for name, process in processes.items():
        try:
            _, said = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            said = process.communicate()[1] + "\nit went on"
        found[name] = process.returncode, said
    return found


@pytest.fixture(scope="module")
def on_full_disks() -> Iterator[dict[str, tuple[int, str]]]:
    """What each says that starts where there is no room."""
    with small_file_system("1m") as folder:
        config = folder / "condor_config"
        config.write_text(f"LOCAL_DIR = {folder}\nCOLLECTOR_HOST = 127.0.0.1:1\nNETWORK_INTERFACE = 127.0.0.1\n")
        for name in ("log", "spool", "run", "run/tickets", "execute", "etc"):
            (folder / name).mkdir()
        fill(folder)
        found = ends({name: started(name, config) for name in DAEMONS})
        yield {name: (status, said.replace(str(folder), "FOLDER")) for name, (status, said) in found.items()}


@pytest.mark.parametrize("name", DAEMONS)
def test_a_full_disk_at_the_start(on_full_disks: dict[str, tuple[int, str]], name: str) -> None:
    status, said = on_full_disks[name]
    assert "Traceback" not in said
    assert status == 1, "its master tries again"
    if name == "credd":
        assert "FOLDER/spool/credentials.db: cannot open the credentials database: database or disk is full" in said
    else:
        assert said.startswith(f"condor-{name}: no space is left: ")
        assert "make room" in said
