"""Ports of a running job, brought to this machine: the user's side of condor_ssh_to_job -L.

Theory: one loop waits for the schedd, for new connections and for those that are open.  Of each connection a window of
bytes may be on its way in either direction, so that neither a slow reader here nor one there fills anybody's memory.
"""

from __future__ import annotations

import selectors
import socket
import sys
import uuid
from collections.abc import Sequence
from contextlib import ExitStack

import attrs

from condor_actors.classads import ClassAd
from condor_actors.messages.codes import JobStatus
from condor_actors.messages.interactive import PORT_WINDOW_BYTES, ConnectToPort, PortData
from condor_actors.messages.queue import QueryJobs
from condor_actors.numerals import numeral
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.contact import QUEUE, Schedd
from condor_actors.tools.lib.visits.job_shell import MORE_S, NotRunning
from condor_actors.wire.blocking import LinkLost, RequestRefused, TimedOut

__all__ = ["Forward", "forward", "parse_forward"]

BLOCK_BYTES = 16 * 1024
BACKLOG = 16
OF_THE_JOB = ("localhost", "127.0.0.1", "[::1]", "::1")
"""How people name the machine that the job runs on."""
OVER = ("invalid", "not-found")
"""Refusals after which no connection can be had any more."""


@attrs.frozen
class Forward:
    """A port here and the port of the job that it stands for.

    Attributes:
        address, port: where this machine listens; port 0: any that is free.
        job_port: a TCP port at which the job listens.
    """

    address: str
    port: int
    job_port: int


def parse_forward(text: str) -> Forward:
    """What ``-L`` says: ``8888``, ``8000:8888``, ``8000:localhost:8888`` or ``ADDRESS:8000:localhost:8888``.

    Raises:
        ToolError: it says something else.
    """
    parts = _parts(text)
    if len(parts) in (1, 2):
        parts = ["127.0.0.1", parts[0], "localhost", parts[-1]]
    elif len(parts) == 3:
        parts = ["127.0.0.1", *parts]
    port, job_port = (numeral(part, 5) for part in (parts[1], parts[-1])) if len(parts) == 4 else (None, None)
    if port is None or not job_port or max(port, job_port) > 65535:
        raise ToolError(f"condor_ssh_to_job: -L {text}: expected PORT, PORT:JOBPORT or "
                        "[ADDRESS:]PORT:localhost:JOBPORT")
    if parts[2].lower() not in OF_THE_JOB:
        raise ToolError(f"condor_ssh_to_job: -L {text}: only ports at which the job itself listens are reached: write "
                        f"localhost in place of {parts[2]}")
    return Forward(parts[0].strip("[]"), port, job_port)


def _parts(text: str) -> list[str]:
    """The parts between colons; an address of IPv6 is in brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == ":" and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def forward(there: Schedd, job: tuple[int, int], forwards: Sequence[Forward]) -> int:
    """Bring ports of a job here until it ends or the user interrupts.

    Raises:
        NotRunning: the job does not run.
        ToolError: there is no such job, it has ended, or a port here cannot be had.
    """
    name = f"{job[0]}.{job[1]}"
    ads = there.ask(QueryJobs(ids=(job,), projection=("JobStatus",), limit=1)).ads
    if not ads:
        raise ToolError(f"Job {name} not found")
    if ClassAd.from_bytes(ads[0]).get_int("JobStatus") != JobStatus.RUNNING:
        raise NotRunning(f"Job {name} is not running")
    with ExitStack() as held:
        forwarder = _Forwarder(there, job)
        held.callback(forwarder.close)
        for each in forwards:
            port = forwarder.listen(each)
            print(f"Port {port} of {each.address} is port {each.job_port} of job {name}; Ctrl-C ends it.",
                  file=sys.stderr, flush=True)
        return forwarder.serve()


class _Forwarder:
    """The loop.

    Args:
        there: the schedd.
        job: cluster and proc.
    """

    def __init__(self, there: Schedd, job: tuple[int, int]) -> None:
        self._there, self._job = there, job
        self._selector = selectors.DefaultSelector()
        self._selector.register(there.client, selectors.EVENT_READ, self._heard)
        self._listeners: list[socket.socket] = []
        self._connections: dict[str, _Connection] = {}

    def listen(self, wanted: Forward) -> int:
        """Listen here; the port."""
        family = socket.AF_INET6 if ":" in wanted.address else socket.AF_INET
        try:
            listener = socket.create_server((wanted.address, wanted.port), family=family, backlog=BACKLOG)
        except (OSError, UnicodeError) as error:
            raise ToolError(f"condor_ssh_to_job: port {wanted.port} of {wanted.address}: "
                            f"{getattr(error, 'strerror', None) or error}") from None
        listener.setblocking(False)
        self._listeners.append(listener)
        self._selector.register(listener, selectors.EVENT_READ, lambda _: self._accept(listener, wanted))
        return int(listener.getsockname()[1])

    def serve(self) -> int:
        """Carry bytes until the job is over."""
        while True:
            for key, events in self._selector.select():
                key.data(events)

    def close(self) -> None:
        """Leave nothing open."""
        for connection in list(self._connections.values()):
            self.drop(connection, is_told=False)
        for listener in self._listeners:
            listener.close()
        self._selector.close()

    def _accept(self, listener: socket.socket, wanted: Forward) -> None:
        try:
            accepted, _ = listener.accept()
        except OSError:
            return  # it has gone again
        accepted.setblocking(False)
        name = uuid.uuid4().hex
        connection = _Connection(self, name, accepted)
        self._connections[name] = connection
        try:
            self._there.ask(ConnectToPort(cluster_id=self._job[0], proc_id=self._job[1], shell_id=name,
                                          port=wanted.job_port))
        except RequestRefused as error:
            self.drop(connection, is_told=True)
            if error.code in OVER:
                raise ToolError(str(error)) from None
            print(f"condor_ssh_to_job: port {wanted.job_port}: {error}", file=sys.stderr)
            return
        self.wait_for(connection)
        if self._there.client.pending():  # what came behind the answer
            self._heard(0)

    def _heard(self, _events: int) -> None:
        """Messages of the schedd."""
        is_first = True
        while is_first or self._there.client.pending():
            is_first = False
            try:
                message = self._there.client.receive(MORE_S)
            except TimedOut:
                return
            except LinkLost:
                raise ToolError("The connection to the schedd was lost.") from None
            connection = self._connections.get(getattr(message, "shell_id", ""))
            if connection is not None and isinstance(message, PortData):
                if message.reason:
                    print(f"condor_ssh_to_job: {message.reason}", file=sys.stderr)
                connection.take(message)

    def tell(self, message: PortData) -> None:
        """To the other side."""
        self._there.client.tell(QUEUE, message)

    def wait_for(self, connection: _Connection) -> None:
        """For what a connection waits now."""
        events = connection.events()
        known = connection.socket in self._selector.get_map()
        if events and known:
            self._selector.modify(connection.socket, events, connection.ready)
        elif events:
            self._selector.register(connection.socket, events, connection.ready)
        elif known:
            self._selector.unregister(connection.socket)

    def drop(self, connection: _Connection, *, is_told: bool) -> None:
        """A connection is over."""
        if self._connections.pop(connection.name, None) is None:
            return
        if connection.socket in self._selector.get_map():
            self._selector.unregister(connection.socket)
        connection.socket.close()
        if not is_told:
            self.tell(PortData(shell_id=connection.name, is_closed=True))


class _Connection:
    """One connection of a program here."""

    def __init__(self, forwarder: _Forwarder, name: str, accepted: socket.socket) -> None:
        self._forwarder, self.name, self.socket = forwarder, name, accepted
        self._to_write = bytearray()
        self._on_the_way = 0
        self._reads, self._writes, self._is_over = True, True, False

    def events(self) -> int:
        """What can be done when the socket is ready."""
        reads = self._reads and not self._is_over and self._on_the_way < PORT_WINDOW_BYTES
        return (selectors.EVENT_READ if reads else 0) | (selectors.EVENT_WRITE if self._to_write else 0)

    def take(self, message: PortData) -> None:
        """From the job."""
        self._on_the_way = max(0, self._on_the_way - max(0, message.taken))
        self._to_write += message.data
        self._writes = self._writes and not message.has_ended
        self._is_over = self._is_over or message.is_closed
        if len(self._to_write) > 2 * PORT_WINDOW_BYTES:
            self._forwarder.drop(self, is_told=self._is_over)
            return
        self.ready(selectors.EVENT_WRITE)

    def ready(self, events: int) -> None:
        """The socket can be written or read."""
        try:
            if events & selectors.EVENT_WRITE:
                self._write()
            if events & selectors.EVENT_READ and self.events() & selectors.EVENT_READ:
                self._read()
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self._forwarder.drop(self, is_told=self._is_over)
            return
        if self._is_over and not self._to_write:
            self._forwarder.drop(self, is_told=True)
        else:
            self._forwarder.wait_for(self)

    def _write(self) -> None:
        if self._to_write:
            count = self.socket.send(self._to_write)
            del self._to_write[:count]
            if not self._is_over:
                self._forwarder.tell(PortData(shell_id=self.name, taken=count))
        if not self._to_write and not self._writes:
            self.socket.shutdown(socket.SHUT_WR)

    def _read(self) -> None:
        data = self.socket.recv(BLOCK_BYTES)
        self._reads = bool(data)
        self._on_the_way += len(data)
        self._forwarder.tell(PortData(shell_id=self.name, data=data, has_ended=not data))


