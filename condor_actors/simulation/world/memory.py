"""What a simulation asks of Python's memory."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["unhurried_collector"]


@contextmanager
def unhurried_collector() -> Iterator[None]:
    """Python's cyclic collector runs seldom meanwhile: what a simulated pool makes mostly lives until its end."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
