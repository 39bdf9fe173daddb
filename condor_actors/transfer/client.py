"""The side of a bulk connection that dials: gives blobs to a peer and fetches blobs from it.

Theory: all transfers with one node share a few connections, each busy with one transfer at a time; whatever waits
takes the next free one. What several transfers give to one node goes there once: all but the first wait for that one,
and are told then that the node has it. A connection that breaks costs only what was under way in a block: the
transfer goes on from its offset over the next one, until it is done, refused, or has failed :data:`ATTEMPTS` times
without a byte moving.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from typing import Any

import zstandard
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IDelayedCall, IProtocol, IReactorTime, IStreamClientEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.logger import Logger
from twisted.python.failure import Failure

from condor_actors.actors.workers import InWorker, NoAnswer, at_once, open_plain
from condor_actors.transfer import streams
from condor_actors.transfer.blob_store import BlobError, BlobStore
from condor_actors.transfer.blob_transfer import Transfer
from condor_actors.transfer.sending import FileSender
from condor_actors.transfer.sinks import FileSink, MemorySink
from condor_actors.transfer.streams import BadStream, FrameReader, Packer, frame

CONNECTIONS_PER_NODE = 3
ATTEMPTS = 6
IDLE_S = 60.0
_DONE = Failure(ConnectionDone())


class BulkClient:
    """Transfers with any number of nodes.

    Args:
        clock: timers.
        endpoint: makes the endpoint of a node (``PostOffice.endpoint``).
        is_local: whether a node is this machine, where compression never pays.
        in_worker: runs what waits for a disk: making files, syncing them, reading beginnings.
    """

    def __init__(self, clock: IReactorTime, endpoint: Callable[[str], IStreamClientEndpoint],
                 log: Logger | None = None, in_worker: InWorker = at_once) -> None:
        self.clock = clock
        self.in_worker = in_worker
        self.log = log or Logger("condor.transfer")
        self.endpoint = endpoint
        self._nodes: dict[str, _Node] = {}

    def put(self, node: str, key: str, digest: str, size_bytes: int, source: str) -> Deferred[None]:
        """Give the content of the file ``source`` to ``node``, unless it has it.

        Fires with None, or fails with :class:`TransferError`; cancel it to give up.
        """
        return self._start(node, Transfer(key, digest, size_bytes, source, None))

    def fetch(self, node: str, key: str, digest: str, size_bytes: int, store: BlobStore) -> Deferred[None]:
        """Get a blob from ``node`` into ``store``; continues what an earlier attempt left there."""
        transfer = Transfer(key, digest, size_bytes, None, None)
        if digest in store:
            transfer.succeed()
            return transfer.result
        try:
            partial = store.begin(digest, size_bytes)
        except (BlobError, OSError) as error:
            transfer.fail("full", str(error))
            return transfer.result
        transfer.sink = partial
        if partial.is_begun:
            self._begin_when(partial.read_back, node, transfer, lambda _: None)
            return transfer.result
        return self._start(node, transfer)

    def fetch_file(self, node: str, key: str, digest: str, size_bytes: int, target: str,
                   mode: int = 0o644) -> Deferred[None]:
        """Get a blob from ``node`` into a file, replaced at once when all is there."""
        transfer = Transfer(key, digest, size_bytes, None, None)

        def take(sink: FileSink) -> None:
            if transfer.over:
                sink.close()
            transfer.sink = sink

        self._begin_when(lambda: FileSink(target, digest, size_bytes, mode), node, transfer, take, target)
        return transfer.result

    def _begin_when(self, ready: Callable[[], Any], node: str, transfer: Transfer, take: Callable[[Any], None],
                    place: str = "") -> None:
        """Begin a transfer when a worker has done something for it."""

        def begin(result: Any) -> None:
            take(result)
            if not transfer.over:
                self._start(node, transfer)

        def failed(failure: Failure) -> None:
            if isinstance(failure.value, NoAnswer) and failure.value.late is not None:
                failure.value.late.addCallback(lambda late: None if isinstance(late, Exception) else take(late))
            transfer.fail_here(failure.value, place)

        self.in_worker(ready).addCallbacks(begin, failed)

    def fetch_bytes(self, node: str, key: str, digest: str, limit_bytes: int) -> Deferred[bytes]:
        """Get a blob whose size is not known beforehand; fires with its content."""
        transfer = Transfer(key, digest, -1, None, None)
        sink = transfer.sink = MemorySink(digest, limit_bytes)
        return self._start(node, transfer).addCallback(lambda _: bytes(sink.data))

    def _start(self, node: str, transfer: Transfer) -> Deferred[None]:
        known = self._nodes.get(node)
        if known is None:
            known = self._nodes[node] = _Node(self, node)
        known.add(transfer)
        return transfer.result

    def stop(self) -> None:
        """Give everything up."""
        for node in self._nodes.values():
            node.stop()


class _Node:
    """The connections with one node and the transfers that wait for one."""

    def __init__(self, client: BulkClient, name: str) -> None:
        self.client = client
        self.name = name
        self.waiting: deque[Transfer] = deque()
        self.idle: list[ClientConnection] = []
        self.busy: set[ClientConnection] = set()
        self._behind: dict[str, list[Transfer]] = {}
        """By the digest of what is being given: who else gives it, and waits."""
        self._dialling = 0
        self._failures = 0
        self._retry: IDelayedCall | None = None
        self._stopped = False

    def add(self, transfer: Transfer) -> None:
        self.waiting.append(transfer)
        self.serve()

    def serve(self) -> None:
        while self.idle and (transfer := self._next()) is not None:
            connection = self.idle.pop()
            self.busy.add(connection)
            connection.begin(transfer)
        connections = len(self.busy) + len(self.idle) + self._dialling
        if len(self.waiting) > self._dialling and connections < CONNECTIONS_PER_NODE and self._retry is None:
            self._dial()

    def _next(self) -> Transfer | None:
        """Who has the next free connection."""
        while self.waiting:
            transfer = self.waiting.popleft()
            if transfer.over:
                continue
            if not transfer.gives:
                return transfer
            if transfer.digest not in self._behind:
                self._behind[transfer.digest] = []
                return transfer
            self._behind[transfer.digest].append(transfer)
        return None

    def ended(self, transfer: Transfer) -> None:
        """A transfer has no connection any longer: who waited for what it gave is next."""
        if transfer.gives:
            self.waiting.extendleft(reversed(self._behind.pop(transfer.digest, [])))

    def _dial(self) -> None:
        if self._stopped:
            return
        self._dialling += 1
        try:
            connecting = self.client.endpoint(self.name).connect(_ConnectionFactory(self))
        except (ValueError, OSError) as error:
            self._dialling -= 1
            self._fail_all(str(error))
            return
        connecting.addCallbacks(self._connected, self._not_connected)

    def _connected(self, protocol: IProtocol) -> None:
        self._dialling -= 1

    def ready(self, connection: ClientConnection) -> None:
        """A connection (new or done with a transfer) is free."""
        self.busy.discard(connection)
        self.idle.append(connection)
        self.serve()

    def _not_connected(self, failure: Failure) -> None:
        self._dialling -= 1
        self._failures += 1
        if self._failures >= ATTEMPTS and not self.busy:
            self._failures = 0
            self._fail_all(f"nobody answers at {self.name}: {failure.getErrorMessage()}")
        else:
            self._rest()

    def _rest(self) -> None:
        if self._retry is None and not self._stopped:
            delay_s = min(10.0, 0.1 * 2.0**self._failures)
            self._retry = self.client.clock.callLater(delay_s, self._again)

    def _again(self) -> None:
        self._retry = None
        self.serve()

    def _fail_all(self, text: str) -> None:
        waiting, self.waiting = self.waiting, deque()
        for behind in self._behind.values():
            waiting.extend(behind)
            behind.clear()
        for transfer in waiting:
            transfer.fail("unreachable", text)

    def moved(self) -> None:
        """Bytes arrived: the node is well."""
        self._failures = 0

    def lost(self, connection: ClientConnection, transfer: Transfer | None, reason: str) -> None:
        """A connection broke, perhaps during a transfer."""
        self.busy.discard(connection)
        if connection in self.idle:
            self.idle.remove(connection)
        if transfer is not None:
            self.ended(transfer)
        if transfer is not None and not transfer.over:
            transfer.failures = 0 if connection.moved else transfer.failures + 1
            if transfer.failures >= ATTEMPTS or self._stopped:
                transfer.fail("unreachable", f"{self.name}: {reason}")
            else:
                self.waiting.appendleft(transfer)
                self._failures += 1
                self._rest()
                return
        self.serve()

    def stop(self) -> None:
        self._stopped = True
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        self._fail_all("the process is stopping")
        for connection in (*self.busy, *self.idle):
            connection.abort("the process is stopping")


class _ConnectionFactory(Factory):
    noisy = False

    def __init__(self, node: _Node) -> None:
        self._node = node

    def buildProtocol(self, addr: object) -> ClientConnection:  # noqa: N802 - Twisted's
        return ClientConnection(self._node)


class ClientConnection(Protocol):
    """One connection; busy with one transfer at a time.

    Attributes:
        moved: whether bytes of the present transfer moved over it.
    """

    def __init__(self, node: _Node) -> None:
        self.moved = False
        self._node = node
        self._clock = node.client.clock
        self._reader = FrameReader()
        self._transfer: Transfer | None = None
        self._sender: FileSender | None = None
        self._packer = Packer(local=node.name.startswith(("unix:", "<127.", "<[::1]")))
        self._decompressor = zstandard.ZstdDecompressor()
        self._timer: IDelayedCall | None = None
        self._reason = ""
        self._receiving = False

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's
        """Say what the connection is for."""
        assert self.transport is not None
        self.transport.write(streams.BULK_LINE)
        self._wait(IDLE_S)
        self._node.ready(self)

    def begin(self, transfer: Transfer) -> None:
        """Take a transfer."""
        assert self.transport is not None
        self._transfer, transfer.connection = transfer, self
        self.moved = self._receiving = False
        self._wait(streams.SILENCE_S)
        if transfer.sink is not None:
            request = frame(streams.GET, transfer.key, transfer.digest, transfer.sink.offset)
        else:
            request = frame(streams.PUT, transfer.key, transfer.digest, transfer.size_bytes)
        self.transport.write(request)

    # ---- what comes

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        """Answers and blocks."""
        try:
            for letter, payload in self._reader.feed(data):
                self._frame(letter, payload)
        except ValueError as error:
            self.abort(str(error))

    def _frame(self, letter: int, payload: bytes) -> None:
        transfer = self._transfer
        if transfer is None:
            raise BadStream("an answer without a question")
        self._wait(streams.SILENCE_S)
        if letter in (streams.DATA, streams.ZDATA):
            self._block(transfer, letter, payload)
            return
        fields = streams.fields_of(letter, payload)
        if letter == streams.NO:
            self._refused(transfer, *fields)
        elif transfer.sink is not None and letter == streams.HEAD:
            self._head(transfer, fields[0])
        elif transfer.sink is not None and letter == streams.END and self._receiving:
            self._fetched(transfer)
        elif transfer.sink is None and letter == streams.SEND and self._sender is None:
            self._send(transfer, fields[0])
        elif transfer.sink is None and letter == streams.HAVE:
            transfer.succeed()
            self._free()
        else:
            raise BadStream(f"frame {letter:#x} in the wrong place")

    def _head(self, transfer: Transfer, size: int) -> None:
        if transfer.size_bytes >= 0 and size != transfer.size_bytes:
            transfer.fail("changed", f"{transfer.size_bytes} bytes were announced, {size} are there")
            self.abort("a file changed its size")
        self._receiving = True

    def _block(self, transfer: Transfer, letter: int, payload: bytes) -> None:
        if transfer.sink is None or not self._receiving:
            raise BadStream("a block that nobody asked for")
        if transfer.over:
            return
        content = streams.unpack_block(letter, payload, self._decompressor)
        self.moved = True
        self._node.moved()
        try:
            transfer.sink.write(content)
        except BlobError as error:
            transfer.fail("changed", str(error))
            self.abort("the blocks are not what was announced")
        except OSError as error:
            transfer.fail("local", str(error), error.errno or 0)
            self.abort("the blocks cannot be kept")

    def _fetched(self, transfer: Transfer) -> None:
        if not transfer.over:
            transfer.commit(self._node.client.in_worker)
        self._free()

    def _refused(self, transfer: Transfer, code: str, text: str) -> None:
        transfer.fail(code, text)
        if self._sender is not None:
            self.abort("the rest is not wanted")
        else:
            self._free()

    def _free(self) -> None:
        transfer, self._transfer = self._transfer, None
        if transfer is not None:
            transfer.connection = None
            self._node.ended(transfer)
        self._wait(IDLE_S)
        self._node.ready(self)

    # ---- what goes

    def _send(self, transfer: Transfer, offset: int) -> None:
        assert transfer.source is not None
        try:
            stream = os.fdopen(open_plain(transfer.source), "rb")  # its owner may have put a pipe in its place
            stream.seek(offset)
        except OSError as error:
            transfer.fail("local", f"{transfer.source}: {error.strerror}")
            self.abort("a file cannot be read")
            return
        self._sender = FileSender(self.transport, stream, self._packer, self._clock, done=self._sent,
                                  moved=self._progress)
        self._sender.start()

    def _progress(self, count: int) -> None:
        self.moved = True
        self._wait(streams.SILENCE_S)

    def _sent(self, error: Exception | None) -> None:
        self._sender = None
        if error is not None and self._transfer is not None:
            self._transfer.fail("local", str(error))
            self.abort("a file cannot be read")

    # ---- life

    def _wait(self, span_s: float) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.reset(span_s)
        else:
            self._timer = self._clock.callLater(span_s, self._too_long)

    def _too_long(self) -> None:
        self._timer = None
        self.abort(f"nothing moved for {streams.SILENCE_S:g} s" if self._transfer is not None else "idle")

    def abort(self, reason: str) -> None:
        """Cut the connection."""
        self._reason = self._reason or reason
        transport: Any = self.transport
        if transport is not None:
            transport.abortConnection()

    def connectionLost(self, reason: Failure = _DONE) -> None:  # noqa: N802
        """Let the transfer go on elsewhere."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        if self._sender is not None:
            self._sender.cancel()
            self._sender = None
        transfer, self._transfer = self._transfer, None
        if transfer is not None:
            transfer.connection = None
        self._node.lost(self, transfer, self._reason or reason.getErrorMessage())
