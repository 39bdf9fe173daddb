"""Blobs over real connections: both ways, resumed, refused, hostile."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred, gatherResults
from twisted.internet.endpoints import UNIXClientEndpoint, connectProtocol
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from condor_actors.transfer import streams
from condor_actors.transfer.blob_store import BlobStore, Partial
from condor_actors.transfer.blob_transfer import TransferError
from condor_actors.transfer.client import BulkClient
from condor_actors.transfer.manifest import digest_bytes
from condor_actors.transfer.service import BulkService, Grant
from condor_actors.wire.certificates.credentials import Credentials
from tests.wire.conftest import Process
from tests.wire.raw import Raw

Make = Callable[..., Process]
KEY = "a-transfer-key"


class Ends:
    """A server with a store, and a client."""

    def __init__(self, server: Process, client: Process, node: str, directory: Path) -> None:
        self.node = node
        self.store = BlobStore(directory / "server")
        self.own = BlobStore(directory / "client")
        self.service = BulkService(server.office.clock)
        server.office.services[streams.BULK_LINE] = self.service.connection
        self.client = BulkClient(client.office.clock, client.office.endpoint)
        self.directory = directory

    def file(self, data: bytes, name: str = "f") -> tuple[str, int, str]:
        path = self.directory / name
        path.write_bytes(data)
        return digest_bytes(data), len(data), str(path)


@pytest.fixture(params=["unix", "tls"])
def ends(request: pytest.FixtureRequest, processes: Make, short_dir: Path, tmp_path: Path,
         credentials: Credentials) -> Iterator[Ends]:
    server, client = processes("server", credentials), processes("client", credentials)
    if request.param == "unix":
        server.office.listen_unix(str(short_dir / "s"))
        node = f"unix:{short_dir}/s"
    else:
        node = server.office.listen_tls("127.0.0.1", 0)
    both = Ends(server, client, node, tmp_path)
    yield both
    both.client.stop()
    both.service.stop()


@pytest_twisted.ensureDeferred
async def test_give_and_fetch(ends: Ends) -> None:
    data = os.urandom(3_000_000) + bytes(2_000_000)
    digest, size, path = ends.file(data)
    stored: list[str] = []
    ends.service.open(KEY, Grant(store=ends.store, writable=frozenset({digest}), stored=stored.append))
    await ends.client.put(ends.node, KEY, digest, size, path)
    assert ends.store.read(digest) == data
    assert stored == [digest]
    await ends.client.put(ends.node, KEY, digest, size, "/nonexistent: it has it already")
    ends.service.open(KEY, Grant(store=ends.store, readable=frozenset({digest})))
    await ends.client.fetch(ends.node, KEY, digest, size, ends.own)
    assert ends.own.read(digest) == data
    target = ends.directory / "out"
    await ends.client.fetch_file(ends.node, KEY, digest, size, str(target), 0o750)
    assert target.read_bytes() == data
    assert target.stat().st_mode & 0o777 == 0o750
    assert [path.name for path in ends.directory.iterdir() if path.name.startswith(".")] == []


@pytest_twisted.ensureDeferred
async def test_many_files_at_once_share_few_connections(ends: Ends) -> None:
    files = [ends.file(os.urandom(1000 * number), f"f{number}") for number in range(50)]
    ends.service.open(KEY, Grant(store=ends.store, writable=None))
    await gatherResults([ends.client.put(ends.node, KEY, *file) for file in files])
    assert all(digest in ends.store for digest, _, _ in files)
    assert 1 <= len(ends.service.connections) <= 3


@pytest_twisted.ensureDeferred
async def test_what_many_runs_give_at_once_goes_there_once(ends: Ends) -> None:
    """Twenty jobs that begin on one machine together, with one input."""
    digest, size, path = ends.file(os.urandom(3_000_000))
    small = ends.file(b"small" * 1000, "small")
    grants = [Grant(store=ends.store, writable=frozenset({digest})) for _ in range(20)]
    for number, grant in enumerate(grants):
        ends.service.open(f"{KEY}-{number}", grant)
    ends.service.open(KEY, Grant(store=ends.store, writable=None))
    puts = [ends.client.put(ends.node, f"{KEY}-{number}", digest, size, path) for number in range(len(grants))]
    await ends.client.put(ends.node, KEY, *small)
    await gatherResults(puts)
    assert sum(grant.written_bytes for grant in grants) == size


@pytest.mark.parametrize("way", ["gives-up", "refused"])
@pytest_twisted.ensureDeferred
async def test_who_waits_for_what_another_gives_gives_it_when_that_fails(ends: Ends, way: str) -> None:
    digest, size, path = ends.file(os.urandom(20_000_000))
    grants = [Grant(store=ends.store, writable=frozenset() if way == "refused" and not number else None)
              for number in range(4)]
    for number, grant in enumerate(grants):
        ends.service.open(f"{KEY}-{number}", grant)
    first, *others = (ends.client.put(ends.node, f"{KEY}-{number}", digest, size, path) for number in range(4))
    if way == "gives-up":
        while not grants[0].written_bytes:
            await deferLater(reactor, 0.0, lambda: None)
        first.cancel()
    with pytest.raises(CancelledError if way == "gives-up" else TransferError):
        await first
    await gatherResults(others)
    assert grants[1].written_bytes + grants[0].written_bytes >= size
    assert not grants[2].written_bytes
    assert not grants[3].written_bytes
    assert ends.store.read(digest) == Path(path).read_bytes()


@pytest_twisted.ensureDeferred
async def test_a_file_of_the_sandbox_is_served_from_where_it_is(ends: Ends) -> None:
    digest, size, path = ends.file(b"output" * 10_000)
    grant = Grant(sources={digest: path})
    ends.service.open(KEY, grant)
    await ends.client.fetch_file(ends.node, KEY, digest, size, str(ends.directory / "home"))
    assert (ends.directory / "home").read_bytes() == b"output" * 10_000
    assert grant.read_bytes == size


@pytest_twisted.ensureDeferred
async def test_without_the_right_nothing_moves(ends: Ends) -> None:
    digest, size, path = ends.file(b"x" * 1000)
    other = ends.store.put_bytes(b"secret")
    ends.service.open(KEY, Grant(store=ends.store, writable=frozenset({"0" * 64}), max_bytes=10))
    for key, code, wanted in (("wrong", "denied", digest), (KEY, "denied", digest)):
        with pytest.raises(TransferError) as caught:
            await ends.client.put(ends.node, key, wanted, size, path)
        assert caught.value.code == code
    with pytest.raises(TransferError) as caught:
        await ends.client.fetch(ends.node, KEY, other, 6, ends.own)
    assert caught.value.code == "not-found"
    ends.service.open(KEY, Grant(store=ends.store, writable=None, max_bytes=10))
    with pytest.raises(TransferError) as caught:
        await ends.client.put(ends.node, KEY, digest, size, path)
    assert caught.value.code == "changed"
    ends.service.close(KEY)
    with pytest.raises(TransferError):
        await ends.client.put(ends.node, KEY, digest, size, path)


@pytest_twisted.ensureDeferred
async def test_a_pipe_in_a_files_place_is_not_waited_for(ends: Ends) -> None:
    digest, size, path = ends.file(b"x" * 1000)
    os.unlink(path)
    os.mkfifo(path)
    ends.service.open(KEY, Grant(store=ends.store, writable=None))
    with pytest.raises(TransferError, match="not a regular file") as caught:
        await ends.client.put(ends.node, KEY, digest, size, path)
    assert caught.value.code == "local"


@pytest_twisted.ensureDeferred
async def test_a_file_that_changed_is_not_taken(ends: Ends) -> None:
    digest, size, path = ends.file(b"before" * 1000)
    Path(path).write_bytes(b"behind" * 1000)
    ends.service.open(KEY, Grant(store=ends.store, writable=None, sources={digest: path}))
    with pytest.raises(TransferError) as caught:
        await ends.client.put(ends.node, KEY, digest, size, path)
    assert caught.value.code == "changed"
    assert digest not in ends.store
    with pytest.raises(TransferError) as caught:
        await ends.client.fetch_file(ends.node, KEY, digest, size, str(ends.directory / "home"))
    assert caught.value.code == "changed"
    assert not (ends.directory / "home").exists()
    with pytest.raises(TransferError) as caught:
        await ends.client.fetch_file(ends.node, KEY, digest, size + 1, str(ends.directory / "home"))
    assert caught.value.code == "changed"
    again, size, path = ends.file(b"good", "g")
    await ends.client.put(ends.node, KEY, again, size, path)
    assert again in ends.store, "the connection serves on"


@pytest_twisted.ensureDeferred
async def test_a_cut_transfer_goes_on_from_where_it_was(ends: Ends) -> None:
    data = os.urandom(20_000_000)
    digest, size, path = ends.file(data)
    offsets: list[int] = []
    begin = ends.store.begin

    def watched(*arguments: Any, **options: Any) -> Any:
        partial = begin(*arguments, **options)
        offsets.append(os.fstat(partial._stream.fileno()).st_size if partial.is_begun else 0)
        if len(offsets) == 1:
            write = partial.write

            def cut(block: bytes) -> None:
                write(block)
                if partial.offset > 5_000_000 and ends.service.connections:
                    for connection in tuple(ends.service.connections):
                        connection.abort("a test")

            partial.write = cut
        return partial

    ends.store.begin = watched  # type: ignore[method-assign]
    ends.service.open(KEY, Grant(store=ends.store, writable=None))
    await ends.client.put(ends.node, KEY, digest, size, path)
    assert ends.store.read(digest) == data
    assert offsets[0] == 0
    assert offsets[1] > 5_000_000, "the second attempt did not begin at the beginning"


@pytest_twisted.ensureDeferred
async def test_nobody_there_is_said_after_some_attempts(ends: Ends) -> None:
    digest, size, path = ends.file(b"x")
    giving = ends.client.put("unix:/nonexistent/socket", KEY, digest, size, path)
    giving.cancel()
    with pytest.raises(CancelledError):
        await giving
    with pytest.raises(TransferError) as caught:
        await ends.client.put("nonsense", KEY, digest, size, path)
    assert caught.value.code == "unreachable"


@pytest.mark.parametrize(
    "hostile",
    [
        struct.pack(">IB", 1 << 30, streams.DATA),
        struct.pack(">IB", 3, streams.DATA) + b"abc",
        struct.pack(">IB", 3, streams.GET) + b"\xff\xff\xff",
        struct.pack(">IB", 0, 0xEE),
        streams.frame(streams.END),
        streams.frame(streams.GET, "k", "d", -1),
        streams.frame(streams.GET, "k", "d"),
        streams.frame(streams.PUT, b"k", "d", 1),
        streams.frame(streams.HEAD, 5),
    ],
)
@pytest_twisted.ensureDeferred
async def test_hostile_bytes_end_the_connection(processes: Make, short_dir: Path, tmp_path: Path,
                                                hostile: bytes) -> None:
    server = processes("server")
    service = BulkService(server.office.clock)
    service.open("k", Grant(store=BlobStore(tmp_path / "s"), writable=None))
    server.office.services[streams.BULK_LINE] = service.connection
    server.office.listen_unix(str(short_dir / "s"))
    raw = Raw(streams.BULK_LINE + hostile)
    await connectProtocol(UNIXClientEndpoint(reactor, str(short_dir / "s")), raw)
    raw.ended.addTimeout(60, reactor)
    await raw.ended
    assert not service.connections


def test_a_block_that_explodes_is_refused() -> None:
    import zstandard

    bomb = zstandard.ZstdCompressor().compress(bytes(100_000_000))
    with pytest.raises(streams.BadStream):
        streams.unpack_block(streams.ZDATA, bomb, zstandard.ZstdDecompressor())
    unsized = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(1000))
    with pytest.raises(streams.BadStream):
        streams.unpack_block(streams.ZDATA, unsized, zstandard.ZstdDecompressor())


def test_compression_is_used_where_it_pays() -> None:
    packer = streams.Packer(local=False)
    packer.sent(1_000_000, 0.1)  # a slow link
    assert packer.pack(bytes(100_000))[4] == streams.ZDATA
    packer.new_file()
    assert packer.pack(os.urandom(100_000))[4] == streams.DATA
    fast = streams.Packer(local=True)
    assert fast.pack(bytes(100_000))[4] == streams.DATA


@pytest_twisted.ensureDeferred
async def test_a_disk_that_fills_up_is_said_and_left_as_it_was(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    digest, size, path = ends.file(os.urandom(3_000_000))
    ends.service.open(KEY, Grant(store=ends.store, writable=frozenset({digest})))
    write = Partial.write

    def full(partial: Partial, data: bytes) -> None:
        if partial.offset > 1_000_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(partial, data)

    monkeypatch.setattr(Partial, "write", full)
    with pytest.raises(TransferError, match="No space left") as caught:
        await ends.client.put(ends.node, KEY, digest, size, path)
    assert caught.value.code == "full"
    assert not list((ends.store.directory / "partial").iterdir())
    monkeypatch.undo()
    await ends.client.put(ends.node, KEY, digest, size, path)
    assert digest in ends.store


class Slowly:
    """Workers whose work is done when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], Any], Deferred[Any]]] = []

    def __call__(self, function: Callable[[], Any]) -> Deferred[Any]:
        self.waiting.append((function, Deferred()))
        return self.waiting[-1][1]

    async def work(self) -> None:
        """Do the next piece, on a thread of its own."""
        while not self.waiting:
            await deferLater(reactor, 0.01)
        function, result = self.waiting.pop(0)
        await deferToThread(function).addBoth(result.callback)


@pytest_twisted.ensureDeferred
async def test_files_are_made_and_synced_by_workers(ends: Ends) -> None:
    digest, size, path = ends.file(b"output" * 10_000)
    ends.service.open(KEY, Grant(sources={digest: path}))
    slowly = ends.client.in_worker = Slowly()
    target = ends.directory / "home"
    fetching = ends.client.fetch_file(ends.node, KEY, digest, size, str(target))
    assert list(ends.directory.glob(".home*")) == []
    await slowly.work()
    while not slowly.waiting:
        await deferLater(reactor, 0.01)
    assert not fetching.called
    assert not target.exists()
    again = ends.client.fetch_file(ends.node, KEY, digest, size, str(ends.directory / "other"))
    await slowly.work()
    await fetching
    assert target.read_bytes() == b"output" * 10_000
    await slowly.work()
    await slowly.work()
    await again


@pytest_twisted.ensureDeferred
async def test_who_gives_up_while_workers_are_at_it_leaves_nothing_open(ends: Ends) -> None:
    digest, size, path = ends.file(b"output" * 10_000)
    ends.service.open(KEY, Grant(sources={digest: path}))
    slowly = ends.client.in_worker = Slowly()
    for pieces in (1, 2):
        fetching = ends.client.fetch_file(ends.node, KEY, digest, size, str(ends.directory / "home"))
        for _ in range(pieces - 1):
            await slowly.work()
            while not slowly.waiting:
                await deferLater(reactor, 0.01)
        fetching.cancel()
        with pytest.raises(CancelledError):
            await fetching
        await slowly.work()
        assert list(ends.directory.glob(".home*")) == []


@pytest_twisted.ensureDeferred
async def test_what_cannot_be_put_into_its_place_fails_here(ends: Ends) -> None:
    digest, size, path = ends.file(b"output" * 10_000)
    ends.service.open(KEY, Grant(sources={digest: path}))
    slowly = ends.client.in_worker = Slowly()
    target = ends.directory / "home"
    fetching = ends.client.fetch_file(ends.node, KEY, digest, size, str(target))
    await slowly.work()
    target.mkdir()
    await slowly.work()
    with pytest.raises(TransferError) as caught:
        await fetching
    assert (caught.value.code, caught.value.number) == ("local", errno.EISDIR)
    assert list(ends.directory.glob(".home*")) == []
    slowly.waiting.clear()
    lost = ends.client.fetch_file(ends.node, KEY, digest, size, str(ends.directory / "gone" / "x"))
    await slowly.work()
    with pytest.raises(TransferError, match="No such file") as caught:
        await lost
    assert caught.value.number == errno.ENOENT


@pytest_twisted.ensureDeferred
async def test_the_beginning_of_an_earlier_attempt_is_read_by_a_worker(ends: Ends) -> None:
    data = os.urandom(200_000)
    digest, size, path = ends.file(data)
    with ends.store.begin(digest, size) as begun:
        begun.write(data[:150_000])
    grant = Grant(store=ends.store, writable=None)
    ends.service.open(KEY, grant)
    slowly = ends.service.in_worker = Slowly()
    putting = ends.client.put(ends.node, KEY, digest, size, path)
    await slowly.work()
    await putting
    assert ends.store.read(digest) == data
    assert grant.written_bytes == 50_000


@pytest_twisted.ensureDeferred
async def test_a_connection_that_is_lost_while_a_beginning_is_read(ends: Ends) -> None:
    data = os.urandom(200_000)
    digest, size, path = ends.file(data)
    with ends.store.begin(digest, size) as begun:
        begun.write(data[:150_000])
    ends.service.open(KEY, Grant(store=ends.store, writable=None))
    slowly = ends.service.in_worker = Slowly()
    putting = ends.client.put(ends.node, KEY, digest, size, path)
    while not slowly.waiting:
        await deferLater(reactor, 0.01)
    ends.service.stop()
    while ends.service.connections:
        await deferLater(reactor, 0.01)
    await slowly.work()
    await slowly.work()
    await putting
    assert ends.store.read(digest) == data
