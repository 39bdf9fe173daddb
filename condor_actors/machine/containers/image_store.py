"""Unpacked images of this machine: each once for an owner, by digest, pruned by size.

Theory: an image is a folder below EXECUTE with a name nobody can guess, in one that nobody else can list: the launcher
has to reach it with the rights of a job's account, and jobs of others must not.  It is the pool's own, so no job
changes it.  One owner's image is never given to another: who has not brought a file has no right to what is in it.
Runs pin what they use; of the rest the least recently used goes first.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable

import attrs

from condor_actors.machine.containers.unpack import ImageFacts
from condor_actors.machine.run.tree_removal import remove_tree

__all__ = ["Image", "ImageStore"]

FOLDER = ".images"
FACTS, ROOT = "image.json", "root"
NAME_S = 300.0
"""How long a name is taken to mean what it meant: as a registry is asked for, not by each job of a cluster."""


@attrs.define(eq=False, kw_only=True)
class Image:
    """One unpacked image.

    Attributes:
        path: its root directory.
        facts: what it says of itself.
        owner, digest: whose it is, of which file; empty: it is not the store's.
        users: run ids.
    """

    path: str
    facts: ImageFacts = attrs.field(factory=ImageFacts)
    owner: str = ""
    digest: str = ""
    users: set[str] = attrs.field(factory=set)


class ImageStore:
    """The images below a folder.

    Args:
        execute: the directory of all sandboxes.
        quota_bytes: how much is kept that no run uses.
    """

    def __init__(self, execute: str, quota_bytes: int) -> None:
        self.path = os.path.join(execute, FOLDER)
        self.quota_bytes = quota_bytes
        self._images: dict[tuple[str, str], Image] = {}  # least recently used first
        self._waiting: dict[tuple[str, str], list[Callable[[], None]]] = {}
        self._names: dict[tuple[str, str], tuple[float, str]] = {}
        self._loaded = False

    def learn(self, owner: str, name: str, digest: str, now_s: float) -> None:
        """A name in a registry means this digest."""
        self._names = {key: found for key, found in self._names.items() if now_s - found[0] < NAME_S}
        self._names[owner, name] = (now_s, digest)

    def meaning(self, owner: str, name: str, now_s: float, since_s: float = 0.0) -> str:
        """The digest that a name meant lately, and not before ``since_s``; empty: it is to be asked for."""
        learned_s, digest = self._names.get((owner, name), (-NAME_S, ""))
        return digest if now_s - learned_s < NAME_S and learned_s >= since_s else ""

    def load(self) -> None:
        """Read what an earlier process has kept; what it has not finished goes.

        Raises:
            OSError: the folder cannot be made or read.
        """
        if self._loaded:
            return
        os.makedirs(self.path, mode=0o711, exist_ok=True)
        os.chmod(self.path, 0o711)
        found = []
        for entry in os.scandir(self.path):
            try:
                with open(os.path.join(entry.path, FACTS), encoding="utf-8") as stream:
                    said = json.load(stream)
                    used_s = os.fstat(stream.fileno()).st_mtime
                found.append((used_s, _image(os.path.join(entry.path, ROOT), said)))
            except (OSError, ValueError, KeyError, TypeError):
                remove_tree(entry.path)
        for _, image in sorted(found, key=lambda each: each[0]):
            self._images[image.owner, image.digest] = image
        self._loaded = True

    def find(self, owner: str, digest: str, run_id: str) -> Image | None:
        """An image of the owner's, pinned for a run."""
        image = self._images.pop((owner, digest), None)
        if image is not None:
            image.users.add(run_id)
            self._images[owner, digest] = image
        return image

    def begin(self, owner: str, digest: str, then: Callable[[], None]) -> bool:
        """Whether the caller must unpack; else ``then`` is called when another caller has, or has given up."""
        waiting = self._waiting.get((owner, digest))
        if waiting is None:
            self._waiting[owner, digest] = []
            return True
        waiting.append(then)
        return False

    def finished(self, owner: str, digest: str) -> None:
        """Unpacking is over, however; who waits looks again."""
        for then in self._waiting.pop((owner, digest), ()):
            then()

    def place(self, unpacked: str, owner: str, digest: str, facts: ImageFacts) -> Image:
        """Move an unpacked image into the store (blocks).

        Raises:
            OSError: the disk.
        """
        folder = os.path.join(self.path, secrets.token_hex(16))
        os.mkdir(folder, 0o711)
        os.chmod(folder, 0o711)
        path = os.path.join(folder, ROOT)
        os.rename(unpacked, path)
        os.chmod(path, 0o755)
        said = {"owner": owner, "digest": digest, **attrs.asdict(facts)}
        descriptor = os.open(os.path.join(folder, FACTS), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as stream:
            json.dump(said, stream)
        return Image(path=path, facts=facts, owner=owner, digest=digest)

    def add(self, image: Image, run_id: str) -> list[str]:
        """Know an image that was placed, pinned for a run; the folders that are to be removed now."""
        image.users.add(run_id)
        self._images[image.owner, image.digest] = image
        return self.prune()

    def prune(self) -> list[str]:
        """Forget what is too much; its folders."""
        total, gone = sum(image.facts.size_bytes for image in self._images.values()), []
        for key, image in list(self._images.items()):
            if total <= self.quota_bytes:
                break
            if not image.users:
                total -= image.facts.size_bytes
                del self._images[key]
                gone.append(os.path.dirname(image.path))
        return gone

    def release(self, image: Image, run_id: str) -> list[str]:
        """A run is over; the folders that are to be removed now."""
        image.users.discard(run_id)
        return self.prune()


def _image(path: str, said: dict[str, object]) -> Image:
    words = {name: tuple(str(each) for each in said[name])  # type: ignore[attr-defined]
             for name in ("environment", "entrypoint", "enter")}
    return Image(path=path, owner=str(said["owner"]), digest=str(said["digest"]),
                 facts=ImageFacts(size_bytes=int(str(said["size_bytes"])), **words))
