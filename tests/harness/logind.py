"""A real logind on a bus of its own: in a private /run, with a stand-in for the part of systemd that it calls.

logind asks systemd to start a scope per session and waits until that job is done; ``python -m tests.harness.logind
BUS`` says that it is, and starts nothing.  All else (sessions, seats, hints, their signals) is logind's own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jeepney import DBusAddress, MessageType, message_bus, new_method_call, new_method_return, new_signal
from jeepney.io.blocking import DBusConnection, open_dbus_connection
from jeepney.low_level import HeaderFields

LOGIND = "/lib/systemd/systemd-logind"
SYSTEMD = "org.freedesktop.systemd1"
MANAGER = DBusAddress("/org/freedesktop/login1", bus_name="org.freedesktop.login1",
                      interface="org.freedesktop.login1.Manager")
BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path={path}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/>
</policy></busconfig>"""
PRIVATE_RUN = ("mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system /run/systemd/seats /run/systemd/users "
               f"/run/systemd/sessions /run/systemd/inhibit /run/user /run/udev && exec {LOGIND}")


def why_not() -> str:
    """Why a real logind cannot run here; empty: it can."""
    if os.geteuid() != 0:
        return "needs root"
    for program in (LOGIND, "dbus-daemon", "unshare"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return ""


class RealLogind:
    """Sessions to make, change and end."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.bus = open_dbus_connection(f"unix:path={path}", enable_fds=True)
        self._fifos: dict[str, Any] = {}
        self._leaders: list[subprocess.Popen[bytes]] = []

    def _call(self, to: DBusAddress, method: str, signature: str | None = None, body: tuple[Any, ...] = ()) -> Any:
        answer = self.bus.send_and_get_reply(new_method_call(to, method, signature, body), timeout=20)
        if answer.header.message_type is MessageType.error:
            raise AssertionError(f"{method}: {answer.header.fields[HeaderFields.error_name]}: {answer.body}")
        return answer.body

    def log_in(self, kind: str = "wayland", *, uid: int = 0, tty: str = "", remote_host: str = "", seat: str = "",
               vt: int = 0) -> str:
        """A new session; its name."""
        leader = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        self._leaders.append(leader)
        body = (uid, leader.pid, "test", kind, "user", "", seat, vt, tty, "", bool(remote_host), "", remote_host, [])
        name, _, _, fifo, *_ = self._call(MANAGER, "CreateSession", "uusssssussbssa(sv)", body)
        self._fifos[name] = fifo
        return str(name)

    def tell(self, session: str, method: str, value: bool) -> None:
        """``SetIdleHint`` or ``SetLockedHint``, as the desktop does."""
        path = self._call(MANAGER, "GetSession", "s", (session,))[0]
        self._call(DBusAddress(path, bus_name="org.freedesktop.login1", interface="org.freedesktop.login1.Session"),
                   method, "b", (value,))

    def log_out(self, session: str) -> None:
        """End a session: its leader dies and lets go of the pipe that holds it open."""
        self._fifos.pop(session).close()

    def close(self) -> None:
        for fifo in self._fifos.values():
            fifo.close()
        for leader in self._leaders:
            leader.kill()
            leader.wait()
        self.bus.close()


@contextmanager
def real_logind() -> Iterator[RealLogind]:
    """One for a test."""
    folder = Path(tempfile.mkdtemp(prefix="condor-bus-"))
    path = str(folder / "bus")
    (folder / "bus.conf").write_text(BUS.format(path=path))
    bus = subprocess.Popen(["dbus-daemon", f"--config-file={folder / 'bus.conf'}", "--nofork", "--print-address=1"],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert bus.stdout is not None
    assert bus.stdout.readline()
    environment = {**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={path}"}
    systemd = subprocess.Popen([sys.executable, "-m", "tests.harness.logind", path], stdout=subprocess.PIPE)
    assert systemd.stdout is not None
    assert systemd.stdout.readline()
    logind = subprocess.Popen(["unshare", "-m", "--propagation", "private", "sh", "-c", PRIVATE_RUN], env=environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    made = RealLogind(path)
    try:
        _until_owned(made.bus)
        yield made
    finally:
        made.close()
        for each in (logind, systemd, bus):
            each.terminate()
            each.wait()
        for pipe in (systemd.stdout, bus.stdout):
            pipe.close()
        shutil.rmtree(folder)


def _until_owned(bus: DBusConnection) -> None:
    """Until logind has its name."""
    from tests.pool_fixture import until

    ask = new_method_call(message_bus, "NameHasOwner", "s", ("org.freedesktop.login1",))
    until(lambda: bus.send_and_get_reply(ask, timeout=10).body[0] or None, "logind is on the bus")


def stand_in_for_systemd(path: str) -> None:
    """Say yes to everything, and that every job is done."""
    bus = open_dbus_connection(f"unix:path={path}")
    bus.send_and_get_reply(new_method_call(message_bus, "RequestName", "su", (SYSTEMD, 4)))
    print("ready", flush=True)
    manager = DBusAddress("/org/freedesktop/systemd1", interface=f"{SYSTEMD}.Manager")
    number = 0
    while True:
        message = bus.receive()
        if message.header.message_type is not MessageType.method_call:
            continue
        member = message.header.fields[HeaderFields.member]
        if member in ("StartTransientUnit", "StartUnit", "StopUnit"):
            number += 1
            job = f"/org/freedesktop/systemd1/job/{number}"
            bus.send(new_method_return(message, "o", (job,)))
            bus.send(new_signal(manager, "JobRemoved", "uoss", (number, job, message.body[0], "done")))
        elif member == "Get":
            bus.send(new_method_return(message, "v", (("s", "inactive"),)))
        else:
            bus.send(new_method_return(message))
        if member == "Abandon":
            unit = message.header.fields[HeaderFields.path].rpartition("/")[2].replace("_2d", "-").replace("_2e", ".")
            bus.send(new_signal(manager, "UnitRemoved", "so", (unit, "/org/freedesktop/systemd1/unit/gone")))


if __name__ == "__main__":
    stand_in_for_systemd(sys.argv[1])
