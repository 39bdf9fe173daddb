"""A file of a job that cannot be used, as the reason for its hold."""

from __future__ import annotations

import os

from condor_actors.actors.workers import NoAnswer

__all__ = ["FileTrouble", "file_trouble"]


class FileTrouble(Exception):
    """A file of the job that cannot be used: the reason for the hold, with its errno.

    Attributes:
        subcode: the errno, 0 when there is none.
    """

    def __init__(self, text: str, subcode: int = 0) -> None:
        super().__init__(text)
        self.subcode = subcode


def file_trouble(what: str, path: str, error: OSError) -> FileTrouble:
    """What the system says of a file, as the reason for a hold: ``what`` cannot be done to it."""
    text = error.strerror if isinstance(error, NoAnswer) else os.strerror(error.errno or 0)
    return FileTrouble(f"{what} {path}: (errno {error.errno}) {text}", error.errno or 0)
