"""Files that a configuration names, and that are none: a FIFO that nobody writes, a device without end, a folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from condor_actors.wire.certificates.credentials import BadCredentials, Credentials
from condor_actors.wire.http_room import tls_context
from condor_actors.wire.idtokens.revoked_tokens import kept_revocations
from condor_actors.wire.idtokens.signed_token import BadToken
from condor_actors.wire.partners.partner_store import BadPartners, read_partners
from condor_actors.written_text import read_plain

READERS: dict[str, tuple[Callable[[Path], object], type[Exception]]] = {
    "a certificate": (lambda path: Credentials.load(path, path, path), BadCredentials),
    "revoked tokens": (kept_revocations, BadToken),
    "partners": (read_partners, BadPartners),
    "a page's certificate": (lambda path: tls_context("WEB_CERTIFICATE", str(path), str(path)), OSError),
    "any": (read_plain, OSError),
}


@pytest.fixture(params=["FIFO", "endless", "folder"])
def none(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """What is no file."""
    path = tmp_path / "named"
    if request.param == "FIFO":
        os.mkfifo(path)
    elif request.param == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    return path


@pytest.mark.parametrize("what", READERS)
@pytest.mark.timeout(30)
def test_what_is_no_file_is_refused_at_once(what: str, none: Path) -> None:
    read, error = READERS[what]
    with pytest.raises(error) as caught:
        read(none)
    assert str(none) in str(caught.value)
    assert any(word in str(caught.value) for word in ("a FIFO", "more than", "directory"))


def test_an_empty_device_is_an_empty_file() -> None:
    assert read_plain("/dev/null") == b""
