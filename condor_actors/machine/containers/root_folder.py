"""The layers over an image, and the places in it where something is mounted.

Theory: the launcher mounts and makes nothing but that, so each place has to be there.  What the image lacks is made in
the upper layer before the job begins; names are followed in the image as if it were the root.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

__all__ = ["LAYERS", "make_layers", "place_in"]

LAYERS = ".condor_root"
TEMPORARY = {"tmp": "/tmp", "vartmp": "/var/tmp"}  # noqa: S108
"""Folders of the run's own, beside the layers, and what they are in the image."""
MOST_LINKS = 40


def place_in(image: str, path: str) -> tuple[list[str], int]:
    """Where a path leads inside an image: its parts without links, and how many of them are there.

    Raises:
        OSError: links lead round in a circle, or a part of it is a file.
    """
    left = [part for part in reversed(path.split("/")) if part not in ("", ".")]
    found: list[str] = []
    there, links = 0, 0
    while left:
        part = left.pop()
        if part == "..":
            found = found[:-1]
            there = min(there, len(found))
            continue
        here = "/".join([image, *found, part])
        try:
            facts = os.lstat(here) if there == len(found) else None
        except (FileNotFoundError, NotADirectoryError):
            facts = None
        if facts is not None and stat.S_ISLNK(facts.st_mode):
            links += 1
            if links > MOST_LINKS:
                raise OSError(f"links of the image lead round in a circle at {path}")
            target = os.readlink(here)
            if target.startswith("/"):
                found, there = [], 0
            left += [each for each in reversed(target.split("/")) if each not in ("", ".")]
            continue
        found.append(part)
        there += facts is not None
    return found, there


def make_layers(folder: str, image: str, folders: Sequence[str], files: Sequence[str]) -> None:
    """Make the layers of a run in an empty folder.

    Args:
        folder: of the layers.
        image: the root directory of the image.
        folders, files: where something is mounted in it.

    Raises:
        OSError: the disk, or the image has something else there.
    """
    for name in ("upper", "work", "root", *TEMPORARY):
        os.makedirs(f"{folder}/{name}")
    os.chmod(f"{folder}/upper", 0o755)
    for name in TEMPORARY:
        os.chmod(f"{folder}/{name}", 0o1777)
    for name, covers in TEMPORARY.items():  # what is mounted below them is mounted in them
        for path in folders:
            if path.startswith(f"{covers}/"):
                os.makedirs(f"{folder}/{name}{path[len(covers):]}", exist_ok=True)
    for path, is_file in [*((each, False) for each in folders), *((each, True) for each in files)]:
        parts, there = place_in(image, path)
        if there == len(parts):
            continue
        own = f"{folder}/upper"
        for number, part in enumerate(parts):
            own += f"/{part}"
            if number == len(parts) - 1 and is_file:
                os.close(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
            elif not os.path.isdir(own):
                os.mkdir(own)
                os.chmod(own, 0o755)
