"""Which requests for tokens are approved without anybody: those of new daemons, from some networks, for a time.

Theory: a rule approves a request from its network that asks for the identity ``condor`` of this pool, and for nothing
but levels of :data:`LEVELS`: to advertise.  Nobody gets a person's name by a rule, nor a token without a limit, nor any
level that changes something of others.  Users of the central manager have all of its addresses, so requests from there
wait for a person whatever the rules say.  Rules are in memory alone: a restart forgets them, and so does
``condor_reconfig``.

Source: the manual, condor_token_request_auto_approve.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from ipaddress import ip_address

import attrs

from condor_actors.messages.tokens import TokenRequest
from condor_actors.wire.idtokens.signed_token import BadToken
from condor_actors.wire.peer_patterns import Network, parse_network

__all__ = ["ApprovalRules", "Rule", "is_of_this_machine"]

USER = "condor"
LEVELS = frozenset({"ADVERTISE_SCHEDD", "ADVERTISE_STARTD", "ADVERTISE_MASTER"})
BEFORE_S = 60.0
"""How long before a rule a request may have come that it still approves."""
MOST_RULES = 64


@attrs.frozen
class Rule:
    """Requests from ``network`` that came between two times, seconds since 1970."""

    network: Network
    from_s: float
    until_s: float


@attrs.define(eq=False)
class ApprovalRules:
    """The rules of a process.

    Attributes:
        issuer: the pool, whose ``condor`` may be asked for.
        longest_s: the longest life of a rule.
        is_own: whether an address is one of this machine.
        rules: those that were made.
    """

    issuer: str
    longest_s: float = 3600.0
    is_own: Callable[[str], bool] = attrs.field(factory=lambda: is_of_this_machine)
    rules: list[Rule] = attrs.field(factory=list)

    def add(self, netblock: str, life_s: float, now_s: float) -> Rule:
        """Make one; what is longer than the longest is cut.

        Raises:
            BadToken: there is no such network, or no time in it.
        """
        try:
            network = parse_network(netblock)
        except ValueError as error:
            raise BadToken(str(error)) from None
        if not life_s > 0.0:
            raise BadToken("a rule needs a lifetime above 0 seconds")
        self.rules = [each for each in self.rules if each.until_s > now_s]
        if len(self.rules) >= MOST_RULES:
            raise BadToken(f"{MOST_RULES} rules are in force; condor_reconfig forgets them")
        rule = Rule(network, now_s - BEFORE_S, now_s + min(life_s, self.longest_s))
        self.rules.append(rule)
        return rule

    def approving(self, request: TokenRequest, now_s: float) -> Rule | None:
        """The rule that approves a request now; None: a person has to."""
        if request.identity != f"{USER}@{self.issuer}" or not request.levels or not LEVELS.issuperset(request.levels):
            return None
        try:
            address = ip_address(request.address.partition("%")[0])
        except ValueError:
            return None
        address = getattr(address, "ipv4_mapped", None) or address
        for rule in self.rules:
            if address in rule.network and rule.from_s <= request.asked_s <= now_s <= rule.until_s:
                return None if self.is_own(str(address)) else rule
        return None


def is_of_this_machine(address: str) -> bool:
    """Whether a process of this machine could have connected from ``address``."""
    found = ip_address(address)
    if found.is_loopback:
        return True
    with socket.socket(socket.AF_INET6 if found.version == 6 else socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True
