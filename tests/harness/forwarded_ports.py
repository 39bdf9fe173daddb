"""condor_ssh_to_job -L at work, for as long as a test talks to the job's ports."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.pool_fixture import Host

__all__ = ["DEADLINE_S", "forwarded"]

DEADLINE_S = 60.0


@contextmanager
def forwarded(host: Host, *words: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """The tool at work, and the ports here."""
    tool = subprocess.Popen(host.command("condor_ssh_to_job", *words), cwd=host.work, env=host.environment, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    guard = threading.Timer(DEADLINE_S, tool.kill)
    guard.start()
    try:
        assert tool.stderr is not None
        ports = []
        for _ in range(words.count("-L")):
            line = tool.stderr.readline()
            found = re.match(r"Port (\d+) of 127\.0\.0\.1 is port \d+ of job \d+\.\d+; Ctrl-C ends it\.$", line)
            assert found, line
            ports.append(int(found.group(1)))
        yield tool, ports
    finally:
        guard.cancel()
        tool.kill()
        tool.wait()
        if tool.stderr is not None:
            tool.stderr.close()
