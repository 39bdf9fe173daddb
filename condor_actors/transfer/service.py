"""The side of a bulk connection that was dialled: serves and takes blobs for holders of a transfer key.

Theory: the protocol knows nothing of jobs.  A daemon opens a :class:`Grant` under a random key when a run begins and
closes it when the run is over; the key travels in the run's own messages.  A grant says which digests may be read
(from where), which may be written (into which store), and how much.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import attrs
import zstandard
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.protocol import Protocol
from twisted.logger import Logger
from twisted.python.failure import Failure

from condor_actors.actors.workers import InWorker, at_once
from condor_actors.messages.envelope import Identity
from condor_actors.transfer import streams
from condor_actors.transfer.beneath import needs_regular, open_at_once
from condor_actors.transfer.blob_store import BlobError, BlobStore, Partial
from condor_actors.transfer.owned_blobs import OwnedBlobs
from condor_actors.transfer.sending import FileSender
from condor_actors.transfer.streams import BadStream, FrameReader, Packer, frame

_DONE = Failure(ConnectionDone())
REQUESTS_WAITING = 10_000


@attrs.define(kw_only=True)
class Grant:
    """What one transfer key allows.

    Attributes:
        store: where blobs are read from and written to; None: nothing may be written.
        sources: further digests that may be read, and the files that have the content; opener: opens one of these with
            the rights of its owner, by then maybe another file: its content is held against the digest.
        readable: digests that may be read from ``store``.
        writable: digests that may be written; None: any.
        max_bytes: how much may be written in all.
        stored: called with a digest when its blob came in.
        read_bytes, written_bytes: how much has moved.
    """

    store: BlobStore | OwnedBlobs | None = None
    sources: Mapping[str, str] = attrs.field(factory=dict)
    opener: Callable[[str], int] = open_at_once
    readable: frozenset[str] = frozenset()
    writable: frozenset[str] | None = frozenset()
    max_bytes: int = 1 << 62
    stored: Callable[[str], None] | None = None
    written_bytes: int = 0
    read_bytes: int = 0


class BulkService:
    """The grants of a process and the connections that use them.

    Give :meth:`connection` to the post office: ``office.services[streams.BULK_LINE] = service.connection``.

    ``in_worker`` reads the beginnings that earlier attempts left.
    """

    def __init__(self, clock: IReactorTime, log: Logger | None = None, in_worker: InWorker = at_once) -> None:
        self.clock = clock
        self.in_worker = in_worker
        self.log = log or Logger("condor.transfer")
        self._grants: dict[str, Grant] = {}
        self.connections: set[BulkConnection] = set()

    def open(self, key: str, grant: Grant) -> None:
        """Let the holder of ``key`` do what ``grant`` allows."""
        self._grants[key] = grant

    def close(self, key: str) -> None:
        """Forget a key; transfers under way are cut off at their next frame."""
        self._grants.pop(key, None)

    def grant(self, key: str) -> Grant | None:
        """The grant of a key, compared in constant time."""
        found = self._grants.get(key)
        for known, grant in self._grants.items() if found is not None else ():
            if hmac.compare_digest(known.encode(), key.encode()):
                return grant
        return None

    def connection(self, identity: Identity) -> BulkConnection:
        """The protocol of a connection that came in."""
        return BulkConnection(self, identity)

    def stop(self) -> None:
        """Cut every connection."""
        for connection in tuple(self.connections):
            connection.abort("the process is stopping")


class BulkConnection(Protocol):
    """One connection: requests are served in their order."""

    def __init__(self, service: BulkService, identity: Identity) -> None:
        self._service = service
        self._identity = identity
        self._reader = FrameReader()
        self._requests: list[tuple[int, tuple[Any, ...]]] = []
        self._sender: FileSender | None = None
        self._partial: Partial | None = None
        self._grant: Grant | None = None
        self._key = ""
        self._refusing = False
        self._decompressor = zstandard.ZstdDecompressor()
        self._packer = Packer(local=identity.method == "local")
        self._silence: IDelayedCall | None = None

    # ---- bytes

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's
        """Know it, so that it can be cut."""
        self._service.connections.add(self)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        """Requests, and the blocks of what is being put."""
        self._alive()
        try:
            for letter, payload in self._reader.feed(data):
                self._frame(letter, payload)
        except ValueError as error:
            self.abort(str(error))

    def _frame(self, letter: int, payload: bytes) -> None:
        if letter in (streams.DATA, streams.ZDATA):
            self._block(letter, payload)
        elif letter in (streams.GET, streams.PUT):
            if len(self._requests) >= REQUESTS_WAITING:
                raise BadStream("too many requests at once")
            self._requests.append((letter, streams.fields_of(letter, payload)))
            self._next_request()
        elif letter == streams.END:
            self._end_of_put()
        else:
            raise BadStream(f"frame {letter:#x} from the side that asks")

    def _next_request(self) -> None:
        while self._requests and self._sender is None and self._partial is None and not self._refusing:
            letter, (key, digest, number) = self._requests.pop(0)
            grant = self._service.grant(key)
            if grant is None:
                self._no("denied", "no such transfer key; the run is over")
            elif letter == streams.GET:
                self._get(grant, digest, number)
            else:
                self._put(grant, key, digest, number)
        self._alive()

    def _no(self, code: str, text: str) -> None:
        self._write(frame(streams.NO, code, text))

    def _write(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(data)

    # ---- get

    def _get(self, grant: Grant, digest: str, offset: int) -> None:
        try:
            stream = self._open(grant, digest)
            size = stream.seek(0, 2)
        except (BlobError, OSError) as error:
            self._no("not-found", str(error))
            return
        def moved(count: int) -> None:
            grant.read_bytes += count
            self._alive()

        stream.seek(min(offset, size))
        self._write(frame(streams.HEAD, size))
        self._sender = FileSender(self.transport, stream, self._packer, self._service.clock, done=self._sent,
                                  moved=moved)
        self._sender.start()

    def _open(self, grant: Grant, digest: str) -> BinaryIO:
        source = grant.sources.get(digest)
        if source is not None:
            descriptor = grant.opener(source)
            try:
                needs_regular(descriptor, source)
                return open(descriptor, "rb")
            except BaseException:
                os.close(descriptor)
                raise
        if grant.store is None or digest not in grant.readable:
            raise BlobError(f"blob {digest[:16]}… is not this run's")
        return grant.store.open(digest)

    def _sent(self, error: Exception | None) -> None:
        self._sender = None
        if error is not None:
            self.abort(f"a file could not be read: {error}")
            return
        self._next_request()

    # ---- put

    def _put(self, grant: Grant, key: str, digest: str, size: int) -> None:
        if grant.store is None or (grant.writable is not None and digest not in grant.writable):
            self._no("denied", f"blob {digest[:16]}… is not wanted")
        elif digest in grant.store:
            self._write(frame(streams.HAVE))
            if grant.stored is not None:
                grant.stored(digest)
        elif grant.written_bytes + size > grant.max_bytes:
            self._no("changed", f"more than the {grant.max_bytes} bytes allowed to this run")
        else:
            try:
                partial = grant.store.begin(digest, size)
            except (BlobError, OSError) as error:
                self._no("full", str(error))
                return
            self._partial, self._grant, self._key = partial, grant, key
            if partial.is_begun:
                self._service.in_worker(partial.read_back).addBoth(self._read_back, partial)
            else:
                self._write(frame(streams.SEND, partial.offset))

    def _read_back(self, result: object, partial: Partial) -> None:
        """The beginning that an earlier attempt left was read: send the rest."""
        if self._partial is not partial:
            partial.close()  # the connection was lost meanwhile
        elif isinstance(result, Failure):
            partial.discard()
            self._partial = None
            self._no("full", result.getErrorMessage())
            self._next_request()
        else:
            self._write(frame(streams.SEND, partial.offset))
            self._alive()

    def _block(self, letter: int, payload: bytes) -> None:
        if self._refusing:
            return
        if self._partial is None or self._grant is None:
            raise BadStream("a block that nobody asked for")
        if self._service.grant(self._key) is not self._grant:
            self._refuse_rest("denied", "the run is over")
            return
        content = streams.unpack_block(letter, payload, self._decompressor)
        try:
            self._partial.write(content)
            self._grant.written_bytes += len(content)
        except (BlobError, OSError) as error:
            self._partial.discard()
            self._refuse_rest("full", str(error))

    def _refuse_rest(self, code: str, text: str) -> None:
        """Say no, and pass over what is under way; a beginning that filled the disk is not left there."""
        assert self._partial is not None
        self._partial.close()
        self._partial, self._refusing = None, True
        self._no(code, text)

    def _end_of_put(self) -> None:
        if self._refusing:
            self._refusing = False
            self._next_request()
            return
        partial, grant = self._partial, self._grant
        if partial is None or grant is None:
            raise BadStream("an end without a beginning")
        self._partial = self._grant = None
        try:
            partial.commit()
        except (BlobError, OSError) as error:
            partial.close()
            self._no("changed" if isinstance(error, BlobError) else "full", str(error))
        else:
            self._write(frame(streams.HAVE))
            if grant.stored is not None:
                grant.stored(partial.digest)
        self._next_request()

    # ---- life

    def _alive(self) -> None:
        reads_back = self._partial is not None and self._partial.is_begun
        busy = self._sender is not None or (self._partial is not None and not reads_back)
        if self._silence is not None and self._silence.active():
            if busy:
                self._silence.reset(streams.SILENCE_S)
            else:
                self._silence.cancel()
                self._silence = None
        elif busy:
            self._silence = self._service.clock.callLater(streams.SILENCE_S, self._silent)

    def _silent(self) -> None:
        self._silence = None
        self.abort(f"nothing moved for {streams.SILENCE_S:g} s")

    def abort(self, reason: str) -> None:
        """Cut the connection."""
        self._service.log.info("bulk connection of {who} cut: {reason}", who=self._identity.name, reason=reason)
        transport: Any = self.transport
        if transport is not None:
            transport.abortConnection()

    def connectionLost(self, reason: Failure = _DONE) -> None:  # noqa: N802
        """Leave what came for a later attempt."""
        self._service.connections.discard(self)
        if self._silence is not None and self._silence.active():
            self._silence.cancel()
        if self._sender is not None:
            self._sender.cancel()
        if self._partial is not None and not self._partial.is_begun:
            self._partial.close()
        self._partial = self._sender = None
