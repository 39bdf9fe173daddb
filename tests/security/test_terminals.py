"""What other people named does nothing on the terminal of who looks at it: tools on a real pseudo-terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from condor_actors.tools.printing.terminal import shown

EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[8mhidden\x9b31m\u202egnp"
CONFIG = "LOCAL_DIR = {folder}\nCONDOR_HOST = 127.0.0.1\n"


def on_terminal(command: list[str], environment: dict[str, str]) -> bytes:
    """What a command writes to the terminal that is its standard output and error."""
    leader, follower = pty.openpty()
    with subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environment) as running:
        os.close(follower)
        pieces = []
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:  # nobody has the other end any more
                break
            if not piece:
                break
            pieces.append(piece)
        running.wait()
    os.close(leader)
    return b"".join(pieces)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    config = tmp_path / "condor_config"
    config.write_text(CONFIG.format(folder=tmp_path))
    return {**os.environ, "CONDOR_CONFIG": str(config), "PYTHONUTF8": "1"}


def ads(tmp_path: Path) -> str:
    """A queue in which someone's job has such a name wherever there can be one."""
    path = tmp_path / "ads"
    names = "".join(f'{name} = "{EVIL}"\n' for name in ("Cmd", "Args", "JobBatchName", "HoldReason", "JobDescription"))
    path.write_text(f'MyType = "Job"\nClusterId = 1\nProcId = 0\nOwner = "eve"\nUser = "eve@dom"\nJobStatus = 5\n'
                    f"QDate = 1700000000\nJobUniverse = 5\n{names}\n", newline="")
    return str(path)


@pytest.mark.parametrize("words", [
    ("-nobatch",), (), ("-hold",), ("-long",), ("-af", "Cmd", "HoldReason"), ("-format", "%s", "Args"), ("-json",),
    ("-xml",),
])
def test_a_jobs_name_does_nothing(tmp_path: Path, environment: dict[str, str], words: tuple[str, ...]) -> None:
    tool = str(Path(sys.executable).with_name("condor_q"))
    said = on_terminal([tool, "-jobads", ads(tmp_path), *words], environment)
    text = said.decode()
    assert text.strip()
    assert not set(text.replace("\r\n", "\n")) & set("\x1b\x07\x9b\u202e\r"), text
    piped = subprocess.run([tool, "-jobads", ads(tmp_path), "-af", "Args"], env=environment, capture_output=True,
                           check=True)
    assert piped.stdout.decode().rstrip("\n") == EVIL


def test_nor_does_what_is_said_on_standard_error(environment: dict[str, str]) -> None:
    tool = str(Path(sys.executable).with_name("condor_q"))
    said = on_terminal([tool, "-jobads", f"/nonexistent/{EVIL}"], environment).decode()
    assert "\\x1b[2J" in said
    assert "\x1b" not in said


def test_what_is_left_as_it_is() -> None:
    assert shown("a\tb\r\nc \x1b[4mhead\x1b[0m ä ☃") == "a\tb\r\nc \x1b[4mhead\x1b[0m ä ☃"
    assert shown("\x1b[31m\x7f, over\rwritten") == "\\x1b[31m\\x7f, over\\rwritten"
