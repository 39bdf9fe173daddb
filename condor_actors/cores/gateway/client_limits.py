"""How much a gateway carries for whom, and what it refuses so that nobody suffers by another.

Theory: who asks for circuits is a *client*: a partner as a whole (its gateway speaks for it), or a machine or user of
this pool.  Of each client so many circuits may be in the making, and so many open; a partner's may not come faster
than so many each second either, because each costs both gateways and a machine here some milliseconds.  The
descriptors of the process are divided so that no client takes the last quarter of them.

===========  ==============================  ==========================================================
count        goes up                         goes down
===========  ==============================  ==========================================================
opening      :meth:`ask` says yes            :meth:`opened`, or :meth:`ended` before that
streams      :meth:`opened`                  :meth:`ended`
refused      :meth:`ask` says no             never
===========  ==============================  ==========================================================
"""

from __future__ import annotations

import attrs

from condor_actors.config.settings import setting

__all__ = ["GatewaySettings", "ClientLimits", "Traffic"]

BURST_S = 3.0
"""A partner may have saved up the circuits of so many seconds."""

TELL_S = 60.0
"""That a client's circuits are refused is told so often, not each time."""

RESERVED = 0.25
"""This part of all streams is for clients that have few."""

FEW = 16


@attrs.frozen(kw_only=True)
class GatewaySettings:
    """The parameters GATEWAY_…."""

    most_streams: int = setting("GATEWAY_MAX_STREAMS")
    most_opening: int = setting("GATEWAY_MAX_OPENING")
    most_per_s: float = setting("GATEWAY_MAX_RATE")


@attrs.define(eq=False)
class Account:
    """What one client has; see the table."""

    opening: int = 0
    streams: int = 0
    saved: float = -1.0
    counted_s: float = 0.0
    told_s: float = float("-inf")
    untold: int = 0


@attrs.define(eq=False)
class Traffic:
    """What goes between this pool and one partner, whichever of them asked for the circuits.

    Attributes:
        opening, streams: now.
        carried, refused: so far.
        bytes_out, bytes_in: to the partner and from it, of circuits that have ended.
    """

    opening: int = 0
    streams: int = 0
    carried: int = 0
    refused: int = 0
    bytes_out: int = 0
    bytes_in: int = 0


class ClientLimits:
    """The accounts of a gateway's clients.

    Args:
        settings: the limits of each client.
        room: how many streams the process can carry in all.

    Attributes:
        traffic: by partner.
    """

    def __init__(self, settings: GatewaySettings, room: int) -> None:
        self.settings = settings
        self.traffic: dict[str, Traffic] = {}
        self._accounts: dict[str, Account] = {}
        self._room = room
        self._streams = 0

    def between(self, realm: str) -> Traffic:
        """What goes between this pool and a partner."""
        return self.traffic.setdefault(realm, Traffic())

    def ask(self, client: str, realm: str, now_s: float) -> str:
        """A client asks for a circuit.

        Args:
            client: a partner, or a machine or user of this pool, whose name is not that of a pool.
            realm: the partner from which or to which it leads.
            now_s: any clock that goes on.

        Returns:
            Why it gets none; empty: it is in the making.
        """
        account = self._accounts.setdefault(client, Account())
        reason = self._objection(account, now_s, is_partner=client == realm)
        if reason:
            account.untold += 1
            self.between(realm).refused += 1
            return reason
        account.opening += 1
        self.between(realm).opening += 1
        self._streams += 1
        return ""

    def _objection(self, account: Account, now_s: float, *, is_partner: bool) -> str:
        settings, has = self.settings, account.opening + account.streams
        if is_partner and not self._within_rate(account, now_s):
            return f"more than {settings.most_per_s:g} circuits a second (GATEWAY_MAX_RATE)"
        if account.opening >= settings.most_opening:
            return f"{account.opening} circuits are in the making (GATEWAY_MAX_OPENING)"
        if has >= settings.most_streams:
            return f"{has} streams are carried (GATEWAY_MAX_STREAMS)"
        if self._streams >= self._room * (1.0 if has < FEW else 1.0 - RESERVED):
            return f"this gateway carries {self._streams} streams, which is all it can"
        return ""

    def _within_rate(self, account: Account, now_s: float) -> bool:
        most = max(1.0, self.settings.most_per_s * BURST_S)
        if account.saved < 0.0:
            account.saved = most
        else:
            account.saved = min(most, account.saved + (now_s - account.counted_s) * self.settings.most_per_s)
        account.counted_s = now_s
        if account.saved < 1.0:
            return False
        account.saved -= 1.0
        return True

    def opened(self, client: str, realm: str) -> None:
        """A circuit in the making is one."""
        for each in (self._accounts[client], self.between(realm)):
            each.opening -= 1
            each.streams += 1
        self.between(realm).carried += 1

    def ended(self, client: str, realm: str, *, was_open: bool, bytes_out: int = 0, bytes_in: int = 0) -> None:
        """A circuit has ended, or did not come about."""
        account, traffic = self._accounts[client], self.between(realm)
        for each in (account, traffic):
            each.streams -= was_open
            each.opening -= not was_open
        self._streams -= 1
        traffic.bytes_out += bytes_out
        traffic.bytes_in += bytes_in
        if client != realm and not account.opening + account.streams:
            del self._accounts[client]

    def to_tell(self, client: str, now_s: float) -> int:
        """How many refusals of a client's are to be told of now; 0: none."""
        account = self._accounts.get(client, Account())
        if not account.untold or now_s - account.told_s < TELL_S:
            return 0
        account.told_s, untold, account.untold = now_s, account.untold, 0
        return untold
