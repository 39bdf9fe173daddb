"""The zone in whose time this machine shows dates."""

from __future__ import annotations

import os
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

__all__ = ["local_zone"]

LOCALTIME = "/etc/localtime"


def local_zone() -> tzinfo:
    """By the variable ``TZ`` (a name as ``Europe/Berlin``), else by /etc/localtime.

    A ``TZ`` that is a rule of its own (``CET-1CEST``) gives the present difference to UTC, all the year.
    """
    name = os.environ.get("TZ", "").removeprefix(":")
    try:
        if name:
            return ZoneInfo(name)
        with open(LOCALTIME, "rb") as file:
            return ZoneInfo.from_file(file, key=None)
    except (OSError, ValueError, LookupError):
        return (datetime.now().astimezone().tzinfo or UTC) if name else UTC
