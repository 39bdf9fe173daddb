"""What every daemon's command line understands."""

from __future__ import annotations

from typing import Any

from twisted.python import usage


class DaemonOptions(usage.Options):
    """``--local-name`` picks this instance's parameters (``NAME.PARAMETER``) where a machine runs several."""

    optParameters: list[list[Any]] = [
        ["local-name", "l", None, "the name of this instance in the configuration (NAME.PARAMETER)"],
    ]
