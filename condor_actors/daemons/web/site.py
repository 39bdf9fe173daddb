"""The files of the page: read once, when the daemon starts; a request names one of them or nothing."""

from __future__ import annotations

import hashlib
from importlib import resources
from typing import Any

import attrs

from condor_actors.daemons.web.door import answer

__all__ = ["StaticFile", "static_files"]

KINDS = {"html": b"text/html; charset=utf-8", "css": b"text/css; charset=utf-8",
         "js": b"text/javascript; charset=utf-8", "svg": b"image/svg+xml"}


@attrs.frozen
class StaticFile:
    """One file: its kind, its bytes, and a name for just these bytes."""

    kind: bytes
    body: bytes
    tag: bytes

    def render(self, request: Any) -> bytes:
        """Answer with it, or say that the browser has it already."""
        request.setHeader(b"cache-control", b"no-cache")
        if request.setETag(self.tag):
            return b""
        return answer(request, self.kind, self.body)


def static_files() -> dict[bytes, StaticFile]:
    """By path; ``/`` is the page."""
    found: dict[bytes, StaticFile] = {}
    for item in resources.files("condor_actors.daemons.web").joinpath("static").iterdir():
        kind = KINDS.get(item.name.rpartition(".")[2])
        if kind is not None:
            body = item.read_bytes()
            tag = b'"%s"' % hashlib.sha256(body).hexdigest()[:32].encode()
            found[b"/" + item.name.encode()] = StaticFile(kind, body, tag)
    found[b"/"] = found.pop(b"/index.html")
    found[b"/favicon.ico"] = found[b"/icon.svg"]
    return found
