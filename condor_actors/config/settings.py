"""A daemon's settings as a frozen value: each field names the parameter it takes its value from.

@attrs.frozen(kw_only=True)
class NegotiatorSettings:
    interval_s: float = setting("NEGOTIATOR_INTERVAL")
    collector_host: str = setting("COLLECTOR_HOST")

settings = config.settings(NegotiatorSettings)

Without a configuration, as in tests and simulations, such a field has the default of the parameter table.
"""

from __future__ import annotations

from functools import cache, partial

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any

__all__ = ["PARAMETER", "record_setting", "setting", "table_value"]

PARAMETER = "condor_parameter"


def setting(name: str) -> Any:
    """A field that takes the typed value of the parameter ``name``; undefined gives None."""
    import attrs

    return attrs.field(metadata={PARAMETER: name}, factory=partial(table_value, name))


def record_setting(name: str) -> Any:
    """The same field for a class of `condor_actors.records`."""
    from condor_actors import records

    return records.field(metadata={PARAMETER: name}, factory=partial(table_value, name))


@cache
def table_value(name: str) -> Any:
    """The typed default of a parameter; None when it has none.

    Raises:
        UnknownParameterError: the table has no such row.
        ValueError: the default refers to other parameters, so it needs a configuration.
    """
    from condor_actors.config.errors import UnknownParameterError
    from condor_actors.config.parameters import find_parameter
    from condor_actors.config.typed import convert

    row = find_parameter(name)
    if row is None:
        raise UnknownParameterError(name)
    if row.default is None:
        return None
    if "$" in row.default:
        raise ValueError(f"the default of {name} is {row.default}: only a configuration can say what that is")
    return convert(row, row.default)
