"""A joined machine that does not play by the rules: its certificate and key in hands that write their own messages.

It runs in a process of its own, on a machine of its own (:func:`intrude`), and knows of the pool what such a machine
would: its own files and the addresses of others.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import attrs

from condor_actors.classads import ClassAd
from condor_actors.durable import write_whole
from condor_actors.messages.advertise import AdKind, InvalidateAd, UpdateAd
from condor_actors.messages.envelope import Done
from condor_actors.wire import joining
from condor_actors.wire.blocking import Client, RequestRefused, WireError, connect
from condor_actors.wire.certificates.authority import PoolFiles, key_pem, lend_proxy, make_key, make_request
from condor_actors.wire.certificates.tool_credentials import ToolCredentials
from condor_actors.wire.frames import ENROL_LINE
from condor_actors.wire.nodes import tls_node
from condor_actors.wire.tokens import Token
from tests.harness.namespaces import Machine

REPOSITORY = Path(__file__).parents[2]


@attrs.define
class Intruder:
    """The files of one enrolled machine, and what can be done with them."""

    files: PoolFiles

    @classmethod
    def enrolled(cls, token: str, *hosts: str) -> Intruder:
        """A machine that joined under these names."""
        parsed = Token.parse(token)
        node = tls_node(parsed.address)
        files = PoolFiles.below(Path(f"stolen-{parsed.token_id}"))
        key = make_key()
        with socket.create_connection((node.host, node.port), timeout=20) as plain:
            connection = joining._handshake(plain, node)
            asked = {"token_id": parsed.token_id, "secret": parsed.secret, "hosts": hosts,
                     "request": make_request(key, "evil").decode()}
            connection.sendall(ENROL_LINE + json.dumps(asked).encode() + b"\n")
            answer = joining.read_answer(joining._line(connection, node), parsed.address)
        for path, data in ((files.host_key, key_pem(key)), (files.ca, answer.ca), (files.host, answer.certificate)):
            write_whole(path, data, 0o600)
        return cls(files)

    def client(self, node: str) -> Client:
        """A line to a daemon, as this machine."""
        return connect(node, ToolCredentials(certificate=str(self.files.host), key=str(self.files.host_key),
                                             ca=str(self.files.ca)))

    def client_as(self, node: str, identity: str) -> Client:
        """A line to a daemon with a proxy that this machine signed: ``user:alice@host`` …"""
        own = self.files.credentials()
        assert own is not None
        lent = lend_proxy(own, identity)
        chain, key = Path("proxy.crt"), Path("proxy.key")
        chain.write_bytes(lent.chain)
        key.write_bytes(lent.key)
        return connect(node, ToolCredentials(certificate=str(chain), key=str(key), ca=str(self.files.ca)))

    def advertise(self, node: str, kind: AdKind, **attributes: Any) -> str:
        """What the collector says to an ad."""
        with self.client(node) as client:
            return said(client, "collector", UpdateAd(ad_kind=kind, ad=ClassAd(attributes).to_bytes()))

    def withdraw(self, node: str, kind: AdKind, name: str) -> str:
        """What the collector says to the wish to take back an ad."""
        with self.client(node) as client:
            return said(client, "collector", InvalidateAd(ad_kind=kind, names=(name,)))


def said(client: Client, actor: str, message: Any) -> str:
    """The answer of an actor in one word or sentence: ``Done``, or why not."""
    try:
        answer = client.ask(actor, message, timeout_s=20.0)
    except RequestRefused as error:
        return f"{error.code}: {error}"
    return "Done" if isinstance(answer, Done) else type(answer).__name__


def tried(attempt: Any) -> str:
    """``in`` when something worked, or why it did not."""
    try:
        attempt()
    except WireError as error:
        return f"{type(error).__name__}: {error}"
    return "in"


def intrude(machine: Machine, code: str, **known: Any) -> Any:
    """Run code on a machine, with the names of this module and ``known``; what its ``result`` was in the end."""
    script = "\n".join((
        "import json", "from tests.security.intruder import *", f"known = json.loads({json.dumps(json.dumps(known))})",
        "globals().update(known)", "result = None", textwrap.dedent(code), "print('\\n' + json.dumps(result))"))
    done = subprocess.run(machine.command("python", "-c", script), cwd=machine.work, text=True, capture_output=True,
                          env={**machine.environment, "PYTHONPATH": os.fspath(REPOSITORY)}, check=False, timeout=120)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{machine.wire.logs()}"
    return json.loads(done.stdout.splitlines()[-1])
