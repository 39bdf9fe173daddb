"""Makes the files of a manifest.

Theory: a manifest that :func:`~condor_actors.transfer.manifest.check_manifest` has passed is carried out in order;
directories first get the mode that lets us fill them and their own mode at the end.  Nothing is followed: each file is
created new (or replaced by a rename), so a link that someone put there is replaced, not written through.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from condor_actors.messages.manifest import FileEntry
from condor_actors.transfer.blob_store import BlobError, BlobStore
from condor_actors.transfer.manifest import check_manifest


def lay_out(entries: Sequence[FileEntry], directory: str, store: BlobStore | None, *, share: bool = False,
            replace: bool = False) -> None:
    """Make every file, directory and link of a manifest below ``directory``.

    Args:
        entries: checked here again.
        directory: exists.
        store: has what does not ride inline; entries with a ``url`` are left out.
        share: files without write permission may be hard links into the store (the reader is another user).
        replace: replace what is there; else it is an error.

    Raises:
        BadManifest: an entry is not to be carried out.
        BlobError: a blob is not in the store, or was damaged.
        OSError: the file system refused; the error names the file.
    """
    check_manifest(entries)
    modes: list[tuple[str, int]] = []
    for entry in entries:
        target = os.path.join(directory, entry.path)
        if entry.kind == "directory":
            with contextlib.suppress(FileExistsError):
                os.mkdir(target, 0o700)
            modes.append((target, entry.mode))
            continue
        if entry.url:
            continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if replace:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(target)
        if entry.kind == "link":
            os.symlink(entry.target, target)
        else:
            _make_file(entry, target, store, share)
    for target, mode in reversed(modes):
        os.chmod(target, mode | 0o700)


def _make_file(entry: FileEntry, target: str, store: BlobStore | None, share: bool) -> None:
    if entry.inline is None:
        if store is None:
            raise BlobError(f"{entry.path}: its content did not come with the manifest")
        store.place(entry.digest, target, entry.mode, share=share)
        return
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, entry.mode)
    try:
        with open(descriptor, "wb", closefd=False) as stream:
            stream.write(entry.inline)
        os.fchmod(descriptor, entry.mode)
    finally:
        os.close(descriptor)
