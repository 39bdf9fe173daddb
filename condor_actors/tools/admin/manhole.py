"""``condor_manhole DAEMON [EXPRESSION]``: look into a living daemon.

Theory: the daemon speaks SSH on a UNIX socket or on loopback; the ordinary ``ssh`` with the admin's own keys is the
client, and this command its ProxyCommand.
"""

from __future__ import annotations

import hashlib
import os
import select
import shutil
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from condor_actors.addresses import split_address
from condor_actors.tools.lib.command import framed, help_of, reminder_of


@framed
def main(words: Sequence[str] | None = None) -> int:
    """Entry of ``condor_manhole``; the exit status."""
    words = list(sys.argv[1:] if words is None else words)
    if words[:1] == ["--relay"] and len(words) == 2:
        return relay(words[1])
    key = ""
    if words[:1] == ["-i"] and len(words) > 1:
        key, words = words[1], words[2:]
    if not words or words[0] in ("-h", "-help", "--help"):
        print(help_of("condor_manhole"))
        return 0 if words else 1
    if words[0].startswith("-"):
        sys.stderr.write(f"condor_manhole: {words[0]} is no option\n{reminder_of('condor_manhole')}\n")
        return 1
    ssh = shutil.which("ssh")
    if ssh is None:
        sys.stderr.write("condor_manhole: there is no ssh; install openssh-client\n")
        return 1
    try:
        command = ssh_command(ssh, words[0], " ".join(words[1:]), key)
    except LookupError as error:
        sys.stderr.write(f"condor_manhole: {error}\n")
        return 1
    os.execv(ssh, command)


def ssh_command(ssh: str, daemon: str, expression: str, key: str) -> list[str]:
    """The command line of ``ssh``.

    Raises:
        LookupError: the daemon's manhole is not open.
    """
    from condor_actors.config import ConfigError, load_config

    try:
        config = load_config(subsystem="TOOL")
    except ConfigError as error:
        raise LookupError(str(error)) from None
    run = config.path("RUN")
    try:
        where = (run / f"{daemon}.manhole").read_text().strip()
    except OSError:
        raise LookupError(f"the manhole of {daemon!r} is not open; set MANHOLE = unix and restart it") from None
    known = _known_hosts(run)
    proxy = f"{sys.executable} -m condor_actors.tools.admin.manhole --relay {where}"
    options = {"ProxyCommand": proxy, "HostKeyAlias": "condor-manhole", "UserKnownHostsFile": str(known),
               "GlobalKnownHostsFile": "/dev/null", "StrictHostKeyChecking": "yes",
               "PreferredAuthentications": "publickey", "LogLevel": "ERROR"}
    command = [ssh, *(f"-o{name}={value}" for name, value in options.items())]
    if key:
        command += ["-i", key, "-oIdentitiesOnly=yes"]
    command += ["admin@condor-manhole"]
    return [*command, expression] if expression else [command[0], "-t", *command[1:]]


def _known_hosts(run: Path) -> Path:
    """A known-hosts file with the daemons' key; the public key itself when ours cannot be written."""
    public = (run / "manhole_key.pub").read_text().strip()
    home = Path(os.path.expanduser("~/.condor"))
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    known = home / f"manhole_known_hosts.{hashlib.sha256(str(run).encode()).hexdigest()[:12]}"
    known.write_text(f"condor-manhole {public}\n")
    return known


def relay(where: str) -> int:
    """Join standard input and output with the daemon's socket."""
    if where.startswith("unix:"):
        connected = socket.socket(socket.AF_UNIX)
        target: str | tuple[str, int] = where[5:]
    else:
        host, port = split_address(where)
        connected = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        target = (host, port or 0)
    try:
        connected.connect(target)
    except OSError as error:
        sys.stderr.write(f"condor_manhole: {where}: {error.strerror}\n")
        return 1
    inputs: list[Any] = [connected, sys.stdin]
    while True:
        readable, _, _ = select.select(inputs, [], [])
        if connected in readable:
            data = connected.recv(65536)
            if not data:
                return 0
            os.write(1, data)
        if sys.stdin in readable:
            data = os.read(0, 65536)
            if data:
                connected.sendall(data)
            else:
                inputs.remove(sys.stdin)
                connected.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    sys.exit(main())
