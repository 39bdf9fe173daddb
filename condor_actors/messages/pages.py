"""Ads in pages that a message can hold, whatever ads there are.

Theory: ads are others' (users' jobs, machines), and an ad of which each part came in a message of its own may be larger
than any message.  So an ad that a page has no room for is the first of the next, and of one that no page has room for
the longest attributes are left out: nobody's ad keeps the others from being shown.
"""

from __future__ import annotations

from condor_actors.messages.codec import PAGE_BYTES

__all__ = ["LARGE_AD", "MOST_AD_BYTES", "AdPage", "shortened"]

MOST_AD_BYTES = 300 * 1024
"""Of a job's ad with that of its cluster, and of a daemon's: with what it is sent along with, it fits every message."""
LARGE_AD = f"the ad of a job has at most {MOST_AD_BYTES >> 10} KiB: give it long texts in files"
"""Why a job is refused that has more."""

SEPARATOR_BYTES = 8
"""What an ad takes in a message beside its text."""


def shortened(text: bytes) -> bytes:
    """An ad's text, a line for each attribute; of one that no page has room for, the shortest lines of it."""
    if len(text) <= PAGE_BYTES:
        return text
    lines = text.split(b"\n")
    kept, size = set(), 0
    for number in sorted(range(len(lines)), key=lambda each: len(lines[each])):
        size += len(lines[number]) + 1
        if size > PAGE_BYTES:
            break
        kept.add(number)
    return b"\n".join(line for number, line in enumerate(lines) if number in kept)


class AdPage:
    """A page that is being filled.

    Attributes:
        ads: what is in it.
        size: their bytes.
    """

    def __init__(self) -> None:
        self.ads: list[bytes] = []
        self.size = 0

    def add(self, text: bytes) -> bool:
        """Add an ad; False: there is no room for it, it belongs to the next page."""
        text = shortened(text)
        if self.ads and self.size + len(text) > PAGE_BYTES:
            return False
        self.ads.append(text)
        self.size += len(text) + SEPARATOR_BYTES
        return True

    @property
    def is_full(self) -> bool:
        """Whether nothing more goes in."""
        return self.size >= PAGE_BYTES
