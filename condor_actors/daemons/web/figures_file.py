"""Keeps the figures over restarts: one small file, written whole every few minutes and at the end.

A file that cannot be read, or is none, is put aside and said so; one that cannot be written costs the points since the
last that could.
"""

from __future__ import annotations

import json
from pathlib import Path

from twisted.logger import Logger

from condor_actors.cores.web.figures import Figures
from condor_actors.durable import fresh_name

__all__ = ["SAVE_S", "FiguresFile"]

SAVE_S = 300.0
LARGEST = 8 * 1024 * 1024


class FiguresFile:
    """The file of the figures.

    Args:
        path: where it is.
        log: for what goes wrong.
    """

    def __init__(self, path: Path, log: Logger) -> None:
        self._path = path
        self._log = log

    def load(self, figures: Figures) -> None:
        """Take over what is there."""
        try:
            if self._path.stat().st_size > LARGEST:
                raise ValueError(f"it has more than {LARGEST} bytes")
            figures.restore(json.loads(self._path.read_bytes()))
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError, RecursionError) as error:
            self._log.warn("the figures in {path} cannot be used: {error}; they begin anew", path=str(self._path),
                           error=error)
            figures.__init__()  # type: ignore[misc]  # half of it may have been taken over
            try:
                self._path.replace(self._path.with_suffix(".bad"))
            except OSError:
                return

    def save(self, figures: Figures) -> None:
        """Write it."""
        fresh = self._path.with_name(fresh_name(self._path.name))
        try:
            fresh.write_text(json.dumps(figures.saved(), separators=(",", ":")))
            fresh.replace(self._path)
        except OSError as error:
            self._log.warn("the figures cannot be kept in {path}: {error}", path=str(self._path), error=error)
            fresh.unlink(missing_ok=True)
