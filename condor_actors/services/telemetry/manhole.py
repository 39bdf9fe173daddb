"""A door into a living daemon for its admin: SSH to a Python prompt that sees actors, mailboxes and cores.

Theory: a visitor has every right of the daemon, so the door is closed unless ``MANHOLE`` opens it, opens only on
a UNIX socket (readable by the daemon's own account) or on loopback, and admits only the public keys listed in
``MANHOLE_AUTHORIZED_KEYS``, read anew at each login.  ``condor_manhole DAEMON`` connects with the ordinary ``ssh``;
with a command it evaluates one expression and ends, without it gives a prompt.

===================  ==========================================================================
name at the prompt   what it shows
===================  ==========================================================================
``actors()``         every actor: class, turns, restarts, timers, open questions
``mailboxes()``      the actors that have messages waiting
``links()``          every connection with another process
``actor(name)``      an actor itself
``core(name)``       the core in it
``story(key)``       what made a job, claim, slot or daemon what it is
``daemon``           the daemon; ``system``: its actors; ``config``: its configuration
``help()``           this table
===================  ==========================================================================
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from twisted.conch import manhole_ssh
from twisted.conch.error import ValidPublicKey
from twisted.conch.insults import insults
from twisted.conch.manhole import ColoredManhole
from twisted.conch.ssh.keys import BadKeyError, Key
from twisted.cred.checkers import ICredentialsChecker
from twisted.cred.credentials import ISSHPrivateKey
from twisted.cred.error import UnauthorizedLogin
from twisted.cred.portal import Portal
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.error import ProcessDone, ProcessTerminated
from twisted.internet.interfaces import IListeningPort
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from condor_actors.actors import Daemon
from condor_actors.config import Config
from condor_actors.own_files import replace_own
from condor_actors.services.telemetry.audit import AuditLog
from condor_actors.wire.acceptor import BACKLOG, UnixDoor
from condor_actors.written_text import read_plain

log = Logger("condor.manhole")
HELP = (__doc__ or "").partition("\n\n")[2].partition("\n\n")[2]


class Text(str):
    """A text that a prompt shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> Text:
    """Rows in columns."""
    cells = [list(heads), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return Text("\n".join(lines))


class View:
    """What the prompt can see of one daemon."""

    def __init__(self, daemon: Daemon, config: Config, post: Any) -> None:
        self._daemon = daemon
        self._config = config
        self._post = post

    def namespace(self) -> dict[str, Any]:
        """The names of the prompt."""
        return {
            "actors": self.actors, "mailboxes": self.mailboxes, "links": self.links, "actor": self.actor,
            "core": self.core, "story": self.story, "help": self.help, "daemon": self._daemon,
            "system": self._daemon.system, "config": self._config,
        }

    def actors(self) -> Text:
        """Every actor."""
        heads = ("name", "class", "parent", "turns", "waiting", "restarts", "timers", "questions")
        return table(heads, (
            (each.name, each.kind, each.parent, each.turns, each.waiting, each.restarts, each.timers, each.questions)
            for each in self._daemon.system.inspect()
        ))

    def mailboxes(self) -> Text:
        """The actors that have messages waiting."""
        waiting = [each for each in self._daemon.system.inspect() if each.waiting]
        if not waiting:
            return Text("nothing waits")
        return table(("name", "waiting", "limit"), ((each.name, each.waiting, each.inbox_limit) for each in waiting))

    def links(self) -> Text:
        """Every connection with another process."""
        if self._post is None:
            return Text("this daemon has no post office")
        rows = ((link.node, link.identity.name, link.peer.process if link.peer else "", link.received, link.sent,
                 len(link.unsent), len(link.under_way)) for link in self._post.links())
        return table(("node", "identity", "process", "received", "sent", "unsent", "unacknowledged"), rows)

    def actor(self, name: str) -> Any:
        """An actor itself."""
        found = self._daemon.system.actor(name)
        if found is None:
            raise LookupError(f"there is no actor {name!r}; actors() shows all")
        return found

    def core(self, name: str) -> Any:
        """The core in an actor."""
        found = getattr(self.actor(name), "core", None)
        if found is None:
            raise LookupError(f"the actor {name!r} has no core")
        return found

    def story(self, key: Any) -> Text:
        """What made ``key`` what it is, as the actors and cores tell it."""
        lines: list[str] = []
        for status in self._daemon.system.inspect():
            actor = self._daemon.system.actor(status.name)
            for teller in (actor, getattr(actor, "core", None)):
                tell = getattr(teller, "story", None)
                if tell is None:
                    continue
                with contextlib.suppress(KeyError, LookupError):
                    lines += [_line(event) for event in tell(key)]
                break
        return Text("\n".join(lines) or f"nothing is known of {key!r}")

    def help(self) -> Text:
        """The table of names."""
        return Text(HELP.strip())

    def evaluate(self, expression: str) -> tuple[str, bool]:
        """The text of an expression's value, and whether there was one."""
        try:
            value = eval(expression, self.namespace())  # noqa: S307 - that is what a manhole is for
        except Exception as error:  # noqa: BLE001 - the door: whatever the admin typed
            return f"{type(error).__name__}: {error}", False
        return repr(value), True


def _line(event: object) -> str:
    return "  ".join(map(str, event)) if isinstance(event, tuple) else str(event)


# ---- SSH


@implementer(ICredentialsChecker)
class KeysFile:
    """Admits who has the private half of a key in a file: one public key in a line, read anew each time."""

    credentialInterfaces = (ISSHPrivateKey,)  # noqa: N815 - Twisted's

    def __init__(self, path: Path, audit: AuditLog | None = None) -> None:
        self._path = path
        self._audit = audit

    def requestAvatarId(self, credentials: Any) -> Deferred[bytes | tuple[()]]:  # noqa: N802 - Twisted's
        """The name given, when the key and its signature are good; who has a key may use any name."""
        try:
            key = Key.fromString(credentials.blob)
            if key not in self.keys():
                self._note(credentials, key, "denied")
                return fail(UnauthorizedLogin())
            if not credentials.signature:
                return fail(ValidPublicKey())  # so far: the client is to sign now
            if not key.verify(credentials.signature, credentials.sigData):
                return fail(UnauthorizedLogin())
        except BadKeyError:
            return fail(UnauthorizedLogin())
        log.info("{name} has entered the manhole with the key {key}", name=credentials.username,
                 key=key.fingerprint())
        self._note(credentials, key, "ok")
        name: bytes | tuple[()] = credentials.username
        return succeed(name)

    def _note(self, credentials: Any, key: Key, result: str) -> None:
        if self._audit is not None:
            self._audit.event("manhole-login", credentials.username.decode("utf-8", "replace"),
                              object_=f"key={key.fingerprint()}", result=result)

    def keys(self) -> list[Key]:
        """The keys of the file."""
        try:
            lines = read_plain(self._path).splitlines()
        except OSError as error:
            log.warn("nobody can log in: {error}", error=error)  # noqa: G010 - Twisted's name
            return []
        keys = []
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.startswith(b"#"):
                try:
                    keys.append(Key.fromString(line))
                except BadKeyError as error:
                    log.warn("{path}, line {number}: {error}",  # noqa: G010
                             path=self._path, number=number, error=error)
        return keys


class _NoProcess:
    """The transport that SSH wants of a command that is no process."""

    def write(self, data: bytes) -> None:
        """Nobody reads."""

    def closeStdin(self) -> None:  # noqa: N802 - Twisted's
        """Nothing is open."""

    def signalProcess(self, name: str) -> None:  # noqa: N802
        """Nothing runs."""

    def loseConnection(self) -> None:  # noqa: N802
        """Nothing is open."""


class _Session(manhole_ssh.TerminalSession):
    """A session that can also evaluate one expression."""

    view: View

    def execCommand(self, proto: Any, cmd: bytes) -> None:  # noqa: N802 - Twisted's
        """Evaluate and end."""
        text, worked = self.view.evaluate(cmd.decode(errors="replace"))
        proto.makeConnection(_NoProcess())
        (proto.outReceived if worked else proto.errReceived)(text.encode() + b"\n")
        proto.processEnded(Failure(ProcessDone(0) if worked else ProcessTerminated(exitCode=1)))

    def windowChanged(self, newWindowSize: object) -> None:  # noqa: N802, N803
        """The prompt does not mind."""

    def eofReceived(self) -> None:  # noqa: N802
        """The prompt does not mind."""


@attrs.define
class Manhole:
    """An open manhole."""

    port: IListeningPort
    address_file: Path

    def stop(self) -> Deferred[None]:
        """Close it."""
        self.address_file.unlink(missing_ok=True)
        closing = self.port.stopListening()
        return closing if closing is not None else succeed(None)


def host_key(path: Path) -> Key:
    """The daemon's own SSH key, made at the first time; its public half is in ``<path>.pub``."""
    if not path.exists():
        from condor_actors.durable import write_whole

        fresh = ed25519.Ed25519PrivateKey.generate()
        pem = fresh.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH,
                                  serialization.NoEncryption())
        write_whole(path.with_name(path.name + ".pub"), Key(fresh).public().toString("OPENSSH") + b"\n")
        write_whole(path, pem, 0o600)
    key: Key = Key.fromFile(str(path))
    return key


def open_manhole(config: Config, name: str, daemon: Daemon, reactor: Any, post: Any = None,
                 audit: AuditLog | None = None) -> Manhole:
    """Open the manhole of the daemon ``name`` as ``MANHOLE`` says.

    Raises:
        OSError: the socket or its directory cannot be made.
    """
    run = config.path("RUN")
    view = View(daemon, config, post)
    key = host_key(run / "manhole_key")
    realm: Any = manhole_ssh.TerminalRealm()
    realm.sessionFactory = type("Session", (_Session,), {"view": view})
    realm.chainedProtocolFactory = lambda: insults.ServerProtocol(ColoredManhole, view.namespace())
    portal = Portal(realm, [KeysFile(config.path("MANHOLE_AUTHORIZED_KEYS"), audit)])
    factory: Any = manhole_ssh.ConchFactory(portal)
    kind = key.sshType()
    factory.publicKeys, factory.privateKeys = {kind: key.public()}, {kind: key}
    address_file = run / f"{name}.manhole"
    if config.text("MANHOLE") == "loopback":
        port: Any = reactor.listenTCP(0, factory, interface="127.0.0.1")
        where = f"127.0.0.1:{port.getHost().port}"
    else:
        path = run / f"{name}.manhole.sock"
        path.unlink(missing_ok=True)
        port = UnixDoor(os.fsencode(path), factory, BACKLOG, 0o600, reactor)
        port.startListening()
        where = f"unix:{path}"
    replace_own(address_file, f"{where}\n".encode())
    log.info("the manhole is open at {where}", where=where)
    return Manhole(port, address_file)
