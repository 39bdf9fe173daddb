"""A master with real daemons, watched through what it tells its parent."""

from __future__ import annotations

import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from condor_actors.machine.supervisor.process_marks import command_line, marked_processes
from condor_actors.machine.supervisor.process_titles import ROOM
from tests.pool_fixture import UNMEASURED

DEADLINE_S = 60.0
CLEAN = {name: value for name, value in os.environ.items() if "CONDOR" not in name.upper()}


def tool(name: str, *arguments: str, config: Path, expect: int = 0) -> subprocess.CompletedProcess[str]:
    """Run ``condor_NAME`` against a configuration."""
    done = subprocess.run(
        [Path(sys.executable).with_name(f"condor_{name}"), *arguments], env={**CLEAN, "CONDOR_CONFIG": str(config)},
        capture_output=True, text=True, timeout=DEADLINE_S, check=False, stdin=subprocess.DEVNULL,
    )
    assert done.returncode == expect, f"{name} {arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def until_gone(pid: int) -> None:
    """Wait for the end of a process."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        words = " ".join(command_line(pid))
        gone = bool(select.select([descriptor], [], [], DEADLINE_S)[0])
        if not gone:
            os.kill(pid, signal.SIGKILL)
        assert gone, f"process {pid} does not end: {words}"
    finally:
        os.close(descriptor)


class Master:
    """A master under test, in ``folder``."""

    def __init__(self, folder: Path, settings: str = "", daemons: str = "COLLECTOR SCHEDD") -> None:
        self.folder = folder
        self.config = folder / "condor_config"
        self.settings = settings
        self.daemons = daemons
        self.write()
        self.process: subprocess.Popen[bytes] | None = None
        self._channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._name = f"test-{secrets.token_hex(8)}"
        self._channel.bind("\0" + self._name)
        self._heard: list[str] = []

    def write(self) -> None:
        """Write the configuration."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.config.write_text(
            f"LOCAL_DIR = {self.folder}\nETC = $(LOCAL_DIR)\nCOLLECTOR_HOST = 127.0.0.1:{port}\n"
            f"DAEMON_LIST = MASTER {self.daemons}\nCONDOR_ADMIN =\nMASTER_BACKOFF_CONSTANT = 0\n{UNMEASURED}"
            f"{self.settings}\n"
        )

    def start(self) -> None:
        """Start the master, and wait until it is ready."""
        self.spawn()
        self.hear("READY=1")
        self._heard.clear()

    def spawn(self) -> None:
        """Start the master."""
        log = (self.folder / "stderr").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "condor_actors.services", "master", *ROOM], stdin=subprocess.DEVNULL,
            stdout=log, stderr=log, start_new_session=True,
            env={**CLEAN, "CONDOR_CONFIG": str(self.config), "NOTIFY_SOCKET": "@" + self._name},
        )
        log.close()

    def hear(self, line: str) -> None:
        """Wait until the master says ``line``."""
        end = time.monotonic() + DEADLINE_S
        while line not in self._heard:
            readable = select.select([self._channel.fileno()], [], [], max(end - time.monotonic(), 0))[0]
            assert readable, f"the master did not say {line!r}, but {self._heard}\n{self.log()}"
            self._heard += self._channel.recv(4096).decode().splitlines()
        self._heard.remove(line)

    def pids(self) -> dict[str, int]:
        """The daemons that the master keeps."""
        content = json.loads((self.folder / "run/master.children").read_text())
        return {name: entry["pid"] for name, entry in content.items()}

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Kill the master itself, and reap it."""
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(DEADLINE_S)

    def log(self) -> str:
        """What it logged."""
        path = self.folder / "log/MasterLog"
        logged = path.read_text() if path.exists() else ""
        return f"{logged}\n{(self.folder / 'stderr').read_text()}"

    def end(self) -> None:
        """Stop everything; nothing may be left."""
        if self.process is not None and self.process.poll() is None:
            self.kill(signal.SIGQUIT)
        self._channel.close()
        # What daemons themselves started ends when its link to them does.
        for pid in marked_processes(str(self.folder / "run/master.children")):
            until_gone(pid)


class MailServer:
    """An SMTP server that keeps what it gets."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.mails: list[str] = []
        self.came = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, connection.makefile("rw", newline="\r\n", encoding="utf-8") as lines:
                self._talk(lines)

    def _talk(self, lines: object) -> None:
        from typing import TextIO, cast

        stream = cast(TextIO, lines)

        def say(text: str) -> None:
            stream.write(text + "\n")
            stream.flush()

        say("220 here")
        for line in stream:
            word = line.split(" ")[0].strip().upper()
            if word == "DATA":
                say("354 go on")
                mail = []
                for text in stream:
                    if text.rstrip("\r\n") == ".":
                        break
                    mail.append(text.rstrip("\r\n"))
                self.mails.append("\n".join(mail))
                say("250 taken")
                self.came.set()
            elif word == "QUIT":
                say("221 bye")
                return
            else:
                say("250 fine")

    def pause(self) -> None:
        """Be dead for a while."""
        self.close()
        self._thread.join()

    def resume(self) -> None:
        """Listen again, where it did before."""
        self._socket = socket.create_server(("127.0.0.1", self.port))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
