"""As a starter would run it: another user, namespaces of its own, a root directory with nothing but the runtime."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from condor_actors.machine.native.programs import launcher_path, runtime_path
from condor_actors.machine.native.shadow import EventKind, Task
from condor_actors.messages.codes import CHECKPOINT_SIGNAL
from tests.native.chain import DEADLINE_S, MOVED, Chain

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
NOBODY = ["--uid", "65534", "--gid", "65534"]
PYTHON = "s = 0\nfor i in range(9000000): s += i % 7\nimport os; print(s, os.getuid(), os.path.exists('/etc/passwd'))"


class Confined(Chain):
    """A chain whose links run in an empty root directory."""

    def start(self, executable: str) -> None:
        root = self.folder / "root"
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        shutil.copyfile(executable, root / "program")
        (root / "program").chmod(0o555)
        ours, theirs = socket.socketpair()
        null = os.open("/dev/null", os.O_RDWR)
        proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
        task = Task(
            program=self.command[0],
            arguments=self.command,
            environment={"PATH": os.environ["PATH"]},
            directory=str(self.folder),
            image=str(self.image),
            standard_fds=(null, self.output, self.output),
        )
        with theirs:
            self.session = self.host.open(ours, task)
            channel = str(theirs.fileno())
            command = [launcher_path(), "--isolate", "pid,mount,net,ipc", "--root", str(root), *NOBODY]
            command += ["--keep-fd", channel, "--keep-fd", str(proc), "--", "/program", channel, str(proc), "family"]
            self.process = subprocess.Popen(command, pass_fds=(theirs.fileno(), proc), stdin=null, stdout=null)
        os.close(null)
        os.close(proc)


def test_a_program_moves_between_empty_roots(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    chain = Confined([sys.executable, "-c", PYTHON], tmp_path, seed=5)
    chain.start(runtime_path())
    links = 0
    while chain.process and chain.expect(EventKind.STARTED, EventKind.ENDED).kind is EventKind.STARTED:
        if chain.until(EventKind.ENDED, within_s=0.05):
            break
        if links == 3:
            chain.expect(EventKind.ENDED)
            break
        chain.host.vacate(chain.session)
        chain.process.send_signal(CHECKPOINT_SIGNAL)
        if chain.expect(EventKind.IMAGE, EventKind.ENDED).kind is EventKind.ENDED:
            break
        chain.expect(EventKind.ENDED)
        assert chain.process.wait(DEADLINE_S) == MOVED
        links += 1
        chain.start(str(chain.image))
    assert chain.process
    assert chain.process.wait(DEADLINE_S) == 0
    os.close(chain.output)
    total = sum(i % 7 for i in range(9000000))
    assert (tmp_path / "output").read_text() == f"{total} {os.getuid()} True\n"
    assert links >= 1
