"""The folders of an image that is being unpacked: no name and no link of a layer leads out of them."""

from __future__ import annotations

import os

__all__ = ["BadImage", "FOLDER", "MOST_LINKS", "MOST_PARTS", "NoRoom", "TooLong", "Tree", "parts_of"]

MOST_PARTS = 256
MOST_LINKS = 40
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class BadImage(Exception):
    """The file is no image that can be used; the text says why."""


class NoRoom(BadImage):
    """It is larger than what there is room for."""


class TooLong(BadImage):
    """It takes longer than it may."""


def parts_of(name: str) -> list[str]:
    """A member's name as parts below the root.

    Raises:
        BadImage: it leads upwards, or is no name.
    """
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in name or len(parts) > MOST_PARTS:
        raise BadImage(f"it has an entry called {name[:200]!r}")
    return parts


class Tree:
    """The folder that becomes the root; every path is followed inside it."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._last: tuple[tuple[str, ...], int] | None = None

    def close(self) -> None:
        if self._last is not None:
            os.close(self._last[1])
            self._last = None

    def folder(self, parts: list[str]) -> int:
        """A folder, made where it is not there; the descriptor is kept until the next one is asked for."""
        if self._last is not None and self._last[0] == tuple(parts):
            return self._last[1]
        opened = self._walk(parts)
        self.close()
        self._last = (tuple(parts), opened)
        return opened

    def _walk(self, wanted: list[str]) -> int:
        left, way, links = list(reversed(wanted)), [os.dup(self._top)], 0
        try:
            while left:
                part = left.pop()
                if part == "..":
                    if len(way) > 1:
                        os.close(way.pop())
                    continue
                try:
                    target = os.readlink(part, dir_fd=way[-1])
                except FileNotFoundError:
                    os.mkdir(part, 0o755, dir_fd=way[-1])
                except OSError:
                    pass  # no link
                else:
                    links += 1
                    if links > MOST_LINKS:
                        raise BadImage(f"links lead round in a circle at {'/'.join(wanted)[:200]!r}")
                    if target.startswith("/"):
                        while len(way) > 1:
                            os.close(way.pop())
                    left += [each for each in reversed(target.split("/")) if each not in ("", ".")]
                    continue
                if len(way) > MOST_PARTS:
                    raise BadImage("its folders are too deep")
                way.append(os.open(part, FOLDER, dir_fd=way[-1]))
            return way.pop()
        finally:
            for each in way:
                os.close(each)

    def clear(self, parts: list[str]) -> None:
        """Remove what has this name, whatever it is."""
        self.close()
        _remove(self.folder(parts[:-1]), parts[-1])
        self.close()

    def empty(self, parts: list[str]) -> None:
        """Remove what is in a folder."""
        here = self.folder(parts)
        for name in os.listdir(here):
            _remove(here, name)
        self.close()


def _remove(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
        return
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):
        pass
    here = os.open(name, FOLDER, dir_fd=folder)
    try:
        for each in os.listdir(here):
            _remove(here, each)
    finally:
        os.close(here)
    os.rmdir(name, dir_fd=folder)
