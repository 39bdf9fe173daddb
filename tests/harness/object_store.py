"""A real S3 server (moto) by TLS on loopback."""

from __future__ import annotations

import re
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from condor_actors.cores.object_store import AccessKeys, signed_url
from condor_actors.wire.certificates.authority import PoolFiles, create_pool

__all__ = ["Store", "object_store"]

KEYS = AccessKeys(key_id="administrator", secret="whatever")  # noqa: S106 - of no other server


@attrs.define
class Store:
    """A running server.

    Attributes:
        where: ``localhost:PORT``.
        authorities: the file with the certificate that vouches for it.
        requests: the lines of its log.
    """

    where: str
    authorities: Path
    requests: list[str] = attrs.field(factory=list)

    def ask(self, method: str, path: str, data: bytes | None = None) -> bytes | None:
        """Ask it for a bucket, or for an object with some key; None: there is no such thing."""
        context = ssl.create_default_context(cafile=str(self.authorities))
        url = f"https://{self.where}/{path}"
        if "/" in path:
            url = signed_url(f"s3://{self.where}/{path}", method, KEYS, time.time(), 600)
        request = urllib.request.Request(url, data=data, method=method,  # noqa: S310
                                         headers={"Content-Type": "application/octet-stream"})
        try:
            with urllib.request.urlopen(request, timeout=60, context=context) as answer:  # noqa: S310
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            error.close()
            return None


@contextmanager
def object_store(folder: Path) -> Iterator[Store]:
    """Start one; its certificate is made in ``folder``."""
    authority = PoolFiles.below(folder / "authority")
    create_pool(authority, "the store", ["localhost"])
    server = subprocess.Popen(
        [sys.executable, "-u", "-c", "from moto.server import main; main()", "-H", "127.0.0.1", "-p", "0",
         "-c", str(authority.host), "-k", str(authority.host_key)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    lines = iter(server.stderr)
    try:
        found = next(match for line in lines if (match := re.search(r"https://127\.0\.0\.1:(\d+)", line)))
        store = Store(f"localhost:{found.group(1)}", authority.ca)
        reading = threading.Thread(target=lambda: store.requests.extend(lines), daemon=True)
        reading.start()
        yield store
    finally:
        server.kill()
        server.wait()
    reading.join()
    server.stderr.close()
