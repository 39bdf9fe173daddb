"""Two ends of one executor know each other, and nobody else."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest

from condor_actors.master_worker.credentials import Credentials, make, write_private
from condor_actors.master_worker.worker import NAME


def worker_context(secret: bytes, folder: Path) -> ssl.SSLContext:
    path = folder / "secret"
    path.unlink(missing_ok=True)
    write_private(str(path), secret, None)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(path)
    context.load_cert_chain(path)
    return context


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, name: str = NAME) -> bytes:
    """What the client reads of the server, when both are content."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (client.wrap_bio(down, up, server_hostname=name), server.wrap_bio(up, down, server_side=True))
    done = [False, False]
    for _ in range(6):
        for number, end in enumerate(ends):
            if not done[number]:
                try:
                    end.do_handshake()
                    done[number] = True
                except ssl.SSLWantReadError:
                    pass
    assert done == [True, True]
    ends[1].write(b"hello")
    return ends[0].read(5)


@pytest.fixture(scope="module")
def own() -> Credentials:
    return make()


def test_a_worker_with_the_secret_is_let_in(own: Credentials, tmp_path: Path) -> None:
    assert shake_hands(own.context, worker_context(own.secret, tmp_path)) == b"hello"


def test_nobody_without_the_secret_is(own: Credentials, tmp_path: Path) -> None:
    stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    stranger.check_hostname = False
    stranger.verify_mode = ssl.CERT_NONE
    with pytest.raises(ssl.SSLError, match="peer did not return a certificate"):
        shake_hands(own.context, stranger)
    with pytest.raises(ssl.SSLError, match="verify failed"):
        shake_hands(own.context, worker_context(make().secret, tmp_path))


def test_a_worker_cannot_pose_as_the_master(own: Credentials, tmp_path: Path) -> None:
    posing = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context = worker_context(own.secret, tmp_path)
    posing.load_cert_chain(tmp_path / "secret")
    with pytest.raises(ssl.SSLError, match="purpose"):
        shake_hands(posing, context, "worker")


def test_the_secret_is_its_owners_alone(own: Credentials, tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_private(str(path), own.secret, None)
    assert os.stat(path).st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        write_private(str(path), b"", None)
    assert own.secret.count(b"PRIVATE KEY") == 2
    assert b"PRIVATE" not in repr(own).encode()
