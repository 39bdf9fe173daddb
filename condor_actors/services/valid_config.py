"""The configuration of a daemon, read from its files and looked over before anyone acts on it."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from condor_actors.config import Config, load_config
from condor_actors.config.user_maps import user_maps
from condor_actors.services.world import bind_address, possible_ports
from condor_actors.wire.authorization import Authorization
from condor_actors.wire.identity_map import IdentityMap
from condor_actors.wire.idtokens.revoked_tokens import RevokedTokens
from condor_actors.wire.idtokens.signed_token import BadToken

__all__ = ["startable_config", "valid_config"]


def valid_config(name: str, local_name: str | None = None, environ: Mapping[str, str] | None = None) -> Config:
    """Read the files again for the daemon ``name``.

    Args:
        name: the service: ``schedd``, ``starter-host`` …
        local_name: of an instance.
        environ: in place of this process's environment.

    Raises:
        ConfigError: a value cannot be used.
    """
    config = load_config(subsystem=name.upper().replace("-", "_"), local_name=local_name, environ=environ)
    problems = config.problems()
    if problems:
        raise problems[0]
    Authorization(config)
    IdentityMap.of(config)
    _check_revocation(config)
    user_maps(config)
    return config


def _check_revocation(config: Config) -> None:
    name = "SEC_TOKEN_REVOCATION_EXPR"
    text = config.text(name) or ""
    try:
        RevokedTokens().also((), (text,) if text.strip() else ())
    except BadToken as error:
        raise config.unusable(name, str(error), "an expression over the claims of a token") from None


def startable_config(name: str, local_name: str | None = None, environ: Mapping[str, str] | None = None) -> Config:
    """As :func:`valid_config`; also that a daemon of this configuration would find where to listen and what to share.

    Raises:
        ConfigError: a value cannot be used, or not on this machine.
    """
    config = valid_config(name, local_name, environ)
    bind_address(config)
    possible_ports(config, name, Random(0))
    if name == "startd":
        from condor_actors.daemons.startd_settings import machine_share, slot_plans, slot_settings
        from condor_actors.machine.sensors.readings import HostReadings

        slot_settings(config)
        readings = HostReadings()
        slot_plans(config, machine_share(config, readings.facts(), readings.disk_free_kib("/")))
    return config
