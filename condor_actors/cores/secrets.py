"""How a secret that someone shows is held against the one that is known."""

from __future__ import annotations

import hmac

__all__ = ["matches"]


def matches(secret: str, shown: str) -> bool:
    """Tell whether ``shown`` is the secret, in a time that does not say how much of it is right.

    Args:
        secret: the one that is known; an empty one matches nothing.
        shown: what the other side sent.
    """
    return bool(secret) and hmac.compare_digest(secret.encode(), shown.encode())
