"""What a manifest is made of: one entry for each file, directory and link that travels."""

from __future__ import annotations

from condor_actors import records
from condor_actors.messages.codec import FileName


@records.frozen(kw_only=True)
class FileEntry:
    """One file, directory or link of a manifest.

    Attributes:
        path: relative, ``/``-separated, inside the sandbox (or the output directory); no ``..``.
        kind: ``file``, ``directory`` or ``link``.
        mode: permission bits.
        size_bytes, digest: of a file: length and SHA-256 (hex).
        inline: the content itself when small, else None: fetch it by digest over bulk.
        target: of a link.
        url: fetch it from here at the execute side instead (http, https).
    """

    path: FileName
    kind: str = "file"
    mode: int = 0o644
    size_bytes: int = 0
    digest: str = ""
    inline: bytes | None = None
    target: FileName = ""
    url: str = ""
