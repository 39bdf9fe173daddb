"""A daemon's settings as a frozen value: each field names the parameter it takes its value from.

@attrs.frozen(kw_only=True)
class NegotiatorSettings:
    interval_s: float = setting("NEGOTIATOR_INTERVAL")
    collector_host: str = setting("COLLECTOR_HOST")

settings = config.settings(NegotiatorSettings)
"""

from __future__ import annotations

from typing import Any

__all__ = ["PARAMETER", "setting"]

PARAMETER = "condor_parameter"


def setting(name: str) -> Any:
    """A field that takes the typed value of the parameter ``name``; undefined gives None."""
    import attrs

    return attrs.field(metadata={PARAMETER: name})
