"""The second act of the demo: a program is checkpointed, makes way for a returning owner, and ends on another machine.

The pool has two machines (slots); the keyboard belongs to the first. Someone types there while the job runs: it is
suspended at once, leaves with a checkpoint a moment later, and goes on at the second from the very same instruction.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
DIGITS = 4500
WATCH_S = 300.0
ENDED = "\n005 ("
POLICY = """
# Two machines; someone sits at the first. Its keyboard is a file here, so that the demo can press a key.
NUM_SLOTS = 2
CONSOLE_DEVICES = ..{keyboard}
SLOTS_CONNECTED_TO_CONSOLE = 1
SLOTS_CONNECTED_TO_KEYBOARD = 0
POLLING_INTERVAL = 0.5
START = ConsoleIdle =?= undefined || ConsoleIdle > 30
IS_OWNER = ConsoleIdle < 30
WANT_SUSPEND = True
SUSPEND = ConsoleIdle < 2
CONTINUE = ConsoleIdle > 30
PREEMPT = Activity == "Suspended" && (time() - EnteredCurrentActivity) >= 2
WANT_VACATE = True
MACHINEMAXVACATETIME = 60
KILL = False
PERIODIC_CHECKPOINT = (time() - LastPeriodicCheckpoint) >= 5
"""
WORTH_SHOWING = ("000 (", "001 (", "003 (", "004 (", "005 (", "010 (", "\tSlotName", "\t(1) Job was checkpointed")


def find_python() -> str | None:
    """A Python that the job's user can read: what root submits runs as nobody."""
    for name in (sys.executable, "/usr/bin/python3"):
        path = Path(name).resolve()
        if path.exists() and (os.getuid() != 0 or _open_to_all(path)):
            return name
    return None


def _open_to_all(path: Path) -> bool:
    return bool(path.stat().st_mode & stat.S_IROTH) and all(
        folder.stat().st_mode & stat.S_IXOTH for folder in path.parents
    )


class Log:
    """The job's user log, shown as it grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shown = 0

    def show(self) -> str:
        """Print what is new; all of it is returned."""
        text = self.path.read_text() if self.path.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        for line in whole[self.shown :].splitlines():
            if line.startswith(WORTH_SHOWING):
                print(f"  {line.strip()}", flush=True)
        self.shown = len(whole)
        return text


def press_a_key(keyboard: Path) -> None:
    """The owner is here: the time of the last access is what the sensor reads."""
    os.utime(keyboard)


def watch(log: Log, words: str, keyboard: Path | None = None) -> None:
    """Show the log until it says so; with a keyboard, type meanwhile."""
    end = time.monotonic() + WATCH_S
    while words not in (text := log.show()):
        if ENDED in text:
            raise RuntimeError(f"the job ended before its log said {words!r}: this machine is too fast for {DIGITS} "
                               f"digits; see {log.path}")
        if time.monotonic() > end:
            raise TimeoutError(f"the job's log did not say {words!r} within {WATCH_S:g} s; see {log.path}")
        if keyboard is not None:
            press_a_key(keyboard)
        time.sleep(0.2)  # a display's refresh; nothing waits for it


def owner_returns(out: Path, keyboard: Path, python: str, tools: Path) -> str:
    """The story; what came out is returned."""
    log = Log(out / "digits.log")
    subprocess.run([tools / "condor_submit", "standard.sub", f"OUT={out}", f"PYTHON={python}", f"DIGITS={DIGITS}"],
                   cwd=HERE / "standard", check=True)
    watch(log, "001 (")
    subprocess.run([tools / "condor_checkpoint", "job", "1.0"], check=True)
    watch(log, "003 (")
    print("The owner of the first machine comes back and types.", flush=True)
    watch(log, "004 (", keyboard)
    print("The machine is the owner's; the job goes on at the other one.", flush=True)
    watch(log, ENDED)
    result = (out / "digits.txt").read_text()
    right = subprocess.run([sys.executable, str(HERE / "standard" / "digits.py"), str(DIGITS)],
                           capture_output=True, text=True, check=True).stdout
    lines = result.splitlines()
    print(f"{DIGITS} digits of pi: {lines[0]}…{lines[-1]}, {'all right' if result == right else 'WRONG'}", flush=True)
    if result != right:
        raise ValueError(f"{out / 'digits.txt'} differs from what the program prints when it is left alone")
    return result
