"""A session bus of its own, with a desktop on it that says what the test wants: Mutter's idle monitor, a screen saver.

``python -m tests.harness.desktop BUS`` is the desktop; it takes its orders, a line each, from standard input:
``idle MILLISECONDS`` (as of now; it grows by itself), ``touch`` (someone is there), ``wake`` (the screen saver ends).
"""

from __future__ import annotations

import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jeepney import (
    DBusAddress,
    Message,
    MessageType,
    message_bus,
    new_error,
    new_method_call,
    new_method_return,
    new_signal,
)
from jeepney.io.blocking import DBusConnection, open_dbus_connection
from jeepney.low_level import HeaderFields

MUTTER, SAVER = "org.gnome.Mutter.IdleMonitor", "org.freedesktop.ScreenSaver"
BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={path}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/>
</policy></busconfig>"""


def why_not() -> str:
    """Why there can be no bus here; empty: there can."""
    return "" if shutil.which("dbus-daemon") else "dbus-daemon is not installed"


class PlayedDesktop:
    """A desktop process; see the module."""

    def __init__(self, path: str, *services: str) -> None:
        self.path = path
        self._process = subprocess.Popen([sys.executable, "-m", "tests.harness.desktop", path, *services],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.hear("ready")

    def tell(self, order: str) -> None:
        """Give an order, and wait until it is carried out."""
        assert self._process.stdin is not None
        self._process.stdin.write(order + "\n")
        self._process.stdin.flush()
        self.hear("done")

    def hear(self, word: str) -> None:
        """Wait for a word of it (``watched``: someone wants to hear of the next activity)."""
        assert self._process.stdout is not None
        while (line := self._process.stdout.readline().strip()) != word:
            assert line, f"the desktop ended before it said {word!r}"

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def session_bus() -> Iterator[str]:
    """The socket of a bus for a test."""
    folder = Path(tempfile.mkdtemp(prefix="condor-bus-"))
    folder.chmod(0o755)
    path = str(folder / "bus")
    (folder / "bus.conf").write_text(BUS.format(path=path))
    bus = subprocess.Popen(["dbus-daemon", f"--config-file={folder / 'bus.conf'}", "--nofork", "--print-address=1"],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert bus.stdout is not None
    assert bus.stdout.readline()
    try:
        yield path
    finally:
        bus.terminate()
        bus.wait()
        bus.stdout.close()
        shutil.rmtree(folder)


class _Desktop:
    def __init__(self, bus: DBusConnection, services: list[str]) -> None:
        self.bus = bus
        self.services = services
        self.touched_s = time.monotonic()
        self.watches = 0
        for name in services:
            bus.send_and_get_reply(new_method_call(message_bus, "RequestName", "su", (name, 4)))

    def asked(self, message: Message) -> None:
        """A method call of a client."""
        if message.header.message_type is not MessageType.method_call:
            return
        member = message.header.fields[HeaderFields.member]
        idle_ms = int((time.monotonic() - self.touched_s) * 1000)
        if member == "GetIdletime":
            self.bus.send(new_method_return(message, "t", (idle_ms,)))
        elif member == "AddUserActiveWatch":
            self.watches += 1
            self.bus.send(new_method_return(message, "u", (self.watches,)))
            print("watched", flush=True)
        elif member == "GetSessionIdleTime":
            self.bus.send(new_method_return(message, "u", (idle_ms // 1000,)))
        else:
            self.bus.send(new_error(message, "org.freedesktop.DBus.Error.UnknownMethod", "s", (member,)))

    def ordered(self, order: str) -> None:
        """A line of the test."""
        word, _, value = order.partition(" ")
        if word == "idle":
            self.touched_s = time.monotonic() - int(value) / 1000.0
        elif word == "touch":
            self.touched_s = time.monotonic()
            for number in range(1, self.watches + 1):
                self._signal("/org/gnome/Mutter/IdleMonitor/Core", MUTTER, "WatchFired", "u", number)
        elif word == "wake":
            self._signal("/org/freedesktop/ScreenSaver", SAVER, "ActiveChanged", "b", False)
        print("done", flush=True)

    def _signal(self, path: str, interface: str, member: str, signature: str, value: int) -> None:
        self.bus.send(new_signal(DBusAddress(path, interface=interface), member, signature, (value,)))


def play(path: str, services: list[str]) -> None:
    """Be the desktop until standard input ends."""
    bus = open_dbus_connection(f"unix:path={path}")
    desktop = _Desktop(bus, services or [MUTTER])
    print("ready", flush=True)
    selector = selectors.DefaultSelector()
    selector.register(bus.sock, selectors.EVENT_READ)
    selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is bus.sock:
                desktop.asked(bus.receive())
                while (another := bus.parser.get_next_message()) is not None:  # what came in the same packet
                    desktop.asked(another)
                continue
            text = os.read(sys.stdin.fileno(), 4096).decode()
            if not text:
                return
            for order in text.splitlines():
                desktop.ordered(order)


if __name__ == "__main__":
    play(sys.argv[1], sys.argv[2:])
