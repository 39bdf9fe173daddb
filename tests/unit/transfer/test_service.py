"""What a transfer key allows, and what it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from twisted.internet.testing import StringTransport

from condor_actors.messages.envelope import Identity
from condor_actors.transfer import streams
from condor_actors.transfer.blob_store import BlobStore
from condor_actors.transfer.manifest import digest_bytes
from condor_actors.transfer.service import BulkService, Grant
from tests.harness.clock import SteppingClock

KEY = "a-transfer-key"
DATA = b"an input" * 1000
DIGEST = digest_bytes(DATA)


class Bench:
    """A service, its store, and one connection that a test speaks on."""

    def __init__(self, folder: Path) -> None:
        self.clock = SteppingClock()
        self.service = BulkService(self.clock)
        self.store = BlobStore(folder)
        self.connection = self.service.connection(Identity(name="shadow:a@h", method="tls"))
        self.transport = StringTransport()
        self.connection.makeConnection(self.transport)

    def say(self, data: bytes) -> list[tuple[int, tuple[Any, ...]]]:
        """Send frames; the control frames that come back."""
        self.transport.clear()
        self.connection.dataReceived(data)
        self.clock.run(1.0)
        return [(letter, streams.fields_of(letter, payload))
                for letter, payload in streams.FrameReader().feed(self.transport.value()) if letter in streams.SHAPES]

    def refusal(self, data: bytes) -> str:
        ((letter, fields),) = self.say(data)
        assert letter == streams.NO, fields
        return str(fields[0])

    def close(self) -> None:
        self.connection.connectionLost()
        assert not self.clock.getDelayedCalls()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "store")


def block(data: bytes) -> bytes:
    return streams.HEADER.pack(len(data), streams.DATA) + data


def test_what_is_granted_moves(bench: Bench) -> None:
    stored: list[str] = []
    bench.service.open(KEY, Grant(store=bench.store, writable=frozenset({DIGEST}), readable=frozenset({DIGEST}),
                                  stored=stored.append))
    assert bench.say(streams.frame(streams.PUT, KEY, DIGEST, len(DATA))) == [(streams.SEND, (0,))]
    assert bench.say(block(DATA) + streams.frame(streams.END)) == [(streams.HAVE, ())]
    assert (bench.store.read(DIGEST), stored) == (DATA, [DIGEST])
    assert bench.say(streams.frame(streams.GET, KEY, DIGEST, 0))[0] == (streams.HEAD, (len(DATA),))
    bench.close()


def test_a_run_reads_its_own_blobs_only(bench: Bench) -> None:
    of_another = bench.store.put_bytes(b"of another run")
    bench.service.open(KEY, Grant(store=bench.store, readable=frozenset({DIGEST})))
    assert bench.refusal(streams.frame(streams.GET, KEY, of_another, 0)) == "not-found"
    bench.close()


def test_a_run_is_given_what_it_wants_only(bench: Bench) -> None:
    bench.service.open(KEY, Grant(store=bench.store, writable=frozenset({digest_bytes(b"wanted")})))
    assert bench.refusal(streams.frame(streams.PUT, KEY, DIGEST, len(DATA))) == "denied"
    assert bench.refusal(streams.frame(streams.PUT, "another-key", DIGEST, len(DATA))) == "denied"
    assert DIGEST not in bench.store
    bench.close()


def test_a_transfer_ends_with_its_run(bench: Bench) -> None:
    bench.service.open(KEY, Grant(store=bench.store, writable=None))
    assert bench.say(streams.frame(streams.PUT, KEY, DIGEST, len(DATA)))[0][0] == streams.SEND
    assert bench.say(block(DATA[:100])) == []
    bench.service.close(KEY)
    assert bench.refusal(block(DATA[100:])) == "denied"
    assert bench.say(streams.frame(streams.END)) == []
    assert DIGEST not in bench.store
    bench.close()


def test_no_more_than_is_allowed_is_written(bench: Bench) -> None:
    bench.service.open(KEY, Grant(store=bench.store, writable=None, max_bytes=len(DATA)))
    bench.say(streams.frame(streams.PUT, KEY, DIGEST, len(DATA)))
    assert bench.say(block(DATA) + streams.frame(streams.END)) == [(streams.HAVE, ())]
    assert bench.refusal(streams.frame(streams.PUT, KEY, digest_bytes(b"x"), 1)) == "changed"
    bench.close()
