"""Credentials on disk: sealed, for their place only, with the key that belongs to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.cores.credd.credentials import ACCESS, Credential, DropCredentials, Name, SaveCredential
from condor_actors.store.credentials import CredentialStore
from condor_actors.store.database import StoreError
from condor_actors.store.sealing import BadSeal, Sealer, sealing_key

BOX = Name("alice@dom", "box", "h")


def credential(sealer: Sealer, secret: bytes) -> Credential:
    return Credential(name=BOX, form=ACCESS, scopes="read", audience="x", stored_s=5.5,
                      sealed=sealer.seal(secret, b"box of alice"))


def test_what_was_stored_is_there_again_and_not_in_the_file(tmp_path: Path) -> None:
    sealer = Sealer(sealing_key(tmp_path / "key"))
    store = CredentialStore(tmp_path / "db", sealer, tmp_path / "key")
    first, second = credential(sealer, b"the first secret"), credential(sealer, b"the second secret")
    store.commit([SaveCredential(first)])
    store.commit([SaveCredential(second)])
    store.close()
    again = CredentialStore(tmp_path / "db", Sealer(sealing_key(tmp_path / "key")), tmp_path / "key")
    assert again.load() == [second]
    assert sealer.open(again.load()[0].sealed, b"box of alice") == b"the second secret"
    again.commit([DropCredentials((BOX, Name("bob@dom", "box", "h")))])
    assert again.load() == []
    again.close()
    everything = b"".join(path.read_bytes() for path in tmp_path.glob("db*"))
    assert b"secret" not in everything
    assert second.sealed not in everything
    assert {oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()} == {"0o600"}


def test_a_seal_opens_in_its_place_only(tmp_path: Path) -> None:
    sealer = Sealer(bytes(32))
    sealed = sealer.seal(b"secret", b"alice")
    assert sealer.seal(b"secret", b"alice") != sealed
    for other, place in ((Sealer(bytes(31) + b"\1"), b"alice"), (sealer, b"bob")):
        with pytest.raises(BadSeal):
            other.open(sealed, place)
    for damaged in (b"", sealed[:11], sealed[:-1], sealed[:-1] + bytes([sealed[-1] ^ 1])):
        with pytest.raises(BadSeal):
            sealer.open(damaged, b"alice")


def test_a_database_with_another_key_is_refused(tmp_path: Path) -> None:
    CredentialStore(tmp_path / "db", Sealer(bytes(32)), tmp_path / "key").close()
    with pytest.raises(StoreError, match=r"not sealed with the key in .*key; put back"):
        CredentialStore(tmp_path / "db", Sealer(b"1" * 32), tmp_path / "key")


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    assert sealing_key(path) == sealing_key(path)
    path.chmod(0o640)
    with pytest.raises(OSError, match="chmod 600"):
        sealing_key(path)
    path.chmod(0o600)
    path.write_bytes(b"short")
    with pytest.raises(OSError, match="a key has 32"):
        sealing_key(path)
