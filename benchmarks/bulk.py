"""How fast blobs travel between two processes: ``python -m benchmarks.bulk``.

One large file, then many small ones, over a UNIX socket and over mutual TLS; each is hashed at both ends and written to
the receiver's store.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, ensureDeferred, gatherResults

from condor_actors.transfer import streams
from condor_actors.transfer.blob_store import BlobStore
from condor_actors.transfer.client import BulkClient
from condor_actors.transfer.manifest import digest_file
from condor_actors.transfer.service import BulkService, Grant
from condor_actors.wire.certificates.authority import PoolFiles, create_pool
from condor_actors.wire.post_office import PostOffice

LARGE_BYTES = 200_000_000
SMALL_FILES = 300
SMALL_BYTES = 40_000
KEY = "benchmark"


def _office(reactor: Any, name: str, folder: str) -> PostOffice:
    return PostOffice(reactor, random=random.Random(os.urandom(8)), process=name, uid_domain="here",
                      credentials=PoolFiles.below(folder).credentials())


def serve(folder: str, pipe: Connection) -> None:
    """The receiving process, until it is terminated."""
    from twisted.internet import reactor

    office = _office(reactor, "server", folder)
    service = BulkService(office.clock)
    service.open(KEY, Grant(store=BlobStore(f"{folder}/store"), writable=None))
    office.services[streams.BULK_LINE] = service.connection
    office.listen_unix(f"{folder}/socket")
    pipe.send(office.listen_tls("127.0.0.1", 0))
    reactor.run()  # type: ignore[attr-defined]


def _file(path: Path, size_bytes: int) -> tuple[str, int, str]:
    path.write_bytes(os.urandom(size_bytes))
    digest, size = digest_file(path)
    return digest, size, str(path)


async def measure(client: BulkClient, kind: str, node: str, folder: Path) -> None:
    """Print the two lines of one kind of socket."""
    large = _file(folder / f"large-{kind}", LARGE_BYTES)
    began_s, cpu_s = time.perf_counter(), time.process_time()
    await client.put(node, KEY, *large)
    span_s = time.perf_counter() - began_s
    spent_s = time.process_time() - cpu_s
    sys.stdout.write(f"{kind:6}{LARGE_BYTES / span_s / 1e6:10,.0f} MB/s, sender's CPU {spent_s:.2f} s"
                     f" for {LARGE_BYTES / 1e6:.0f} MB\n")
    small = [_file(folder / f"small-{kind}-{number}", SMALL_BYTES) for number in range(SMALL_FILES)]
    began_s, cpu_s = time.perf_counter(), time.process_time()
    await gatherResults([client.put(node, KEY, *each) for each in small])
    span_s = time.perf_counter() - began_s
    cpu_ms = (time.process_time() - cpu_s) / SMALL_FILES * 1e3
    sys.stdout.write(f"{kind:6}{SMALL_FILES / span_s:10,.0f} files/s of {SMALL_BYTES / 1e3:.0f} kB, sender's CPU"
                     f" {cpu_ms:.2f} ms each\n")


def main() -> int:
    """Print the table."""
    from twisted.internet import reactor

    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="ca") as folder:
        create_pool(PoolFiles.below(folder), "bench", ["localhost", "127.0.0.1"])
        ours, theirs = context.Pipe()
        server = context.Process(target=serve, args=(folder, theirs))
        server.start()
        nodes = {"unix": f"unix:{folder}/socket", "tls": ours.recv()}
        office = _office(reactor, "client", folder)
        client = BulkClient(office.clock, office.endpoint)

        async def run() -> None:
            for kind, node in nodes.items():
                await measure(client, kind, node, Path(folder))

        def finish(result: object) -> object:
            client.stop()
            reactor.stop()  # type: ignore[attr-defined]
            return result

        running: list[Deferred[None]] = []
        reactor.callWhenRunning(  # type: ignore[attr-defined]
            lambda: running.append(ensureDeferred(run()).addBoth(finish)))
        reactor.run()  # type: ignore[attr-defined]
        server.kill()
        server.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
