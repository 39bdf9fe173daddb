"""A certificate and its key, renewed together although they are two files.

Theory: two files cannot be replaced at once, and many processes of a machine read them.  So the new pair is first one
file (``host.next``), and that it is there is the renewal: readers take the pair from there.  The process that renews,
and no other, then writes the two files from it and removes it; it does so again when it starts, if a crash came
between.  A reader that met the new half of the pair beside the old one reads once more.
"""

from __future__ import annotations

from pathlib import Path

from condor_actors.durable import write_whole

BEGIN = b"-----BEGIN "


def renewed_file(certificate: Path) -> Path:
    """Where the renewed pair is until it is in its place."""
    return certificate.with_suffix(".next")


def split_pair(bundle: bytes) -> tuple[bytes, bytes]:
    """The certificates and the private key in a PEM text, each empty when there is none."""
    blocks = [BEGIN + part for part in bundle.split(BEGIN)[1:]]
    keys = [block for block in blocks if b"PRIVATE KEY-----" in block[:64]]
    return b"".join(block for block in blocks if block not in keys), b"".join(keys)


def keep_renewed(certificate: Path, key: Path, bundle: bytes) -> None:
    """Put a renewed pair into its place.

    Args:
        certificate: the file of the certificate.
        key: the file of its private key; the new files belong to its owner.
        bundle: the new certificates and their key, in PEM.

    Raises:
        OSError: it cannot be written.
    """
    fresh = renewed_file(certificate)
    write_whole(fresh, bundle, 0o600, owner_of=key)
    install_renewed(certificate, key)


def install_renewed(certificate: Path, key: Path) -> None:
    """Write the two files from a renewed pair, if there is one.

    Raises:
        OSError: they cannot be written.
    """
    fresh = renewed_file(certificate)
    if fresh.exists():
        chain, private = split_pair(fresh.read_bytes())
        write_whole(certificate, chain)
        write_whole(key, private, 0o600)
        fresh.unlink()
