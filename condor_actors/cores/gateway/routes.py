"""How a gateway reaches its partners' gateways, and which doors of its own pool partners may reach through it.

Theory: of two gateways one dials the other, or both do; the links tell which can.  A circuit to a partner begins with a
connection to its gateway, made in the direction in which one can be made:

================================  ==========================================================================
what is known of the partner      route
================================  ==========================================================================
a link that we dialled is up      :class:`Dial` its other end
a link that it dialled is up      :class:`AskBack`: it is asked, over the link, to dial
no link is up, an address is      :class:`Dial` all the same: the link may be a moment behind
nothing                           :class:`NoRoute`
================================  ==========================================================================

A partner may have several gateways.  What is known of them is tried in this order until one has a circuit; a route that
gave no answer is doubted, and comes after the others until it gives one again or its link is made anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from condor_actors.messages.pool import KnownPartner

__all__ = ["AskBack", "Dial", "NoRoute", "OwnHosts", "Route", "Routes"]

FRESH_S = 60.0
"""What the collector has said of the pool's machines is asked for again after this long."""

AGAIN_S = 2.0
"""A door that is not among them has it asked for again, but not more often than so."""


@attrs.frozen
class Dial:
    """Connect to the partner's gateway at ``node``."""

    node: str


@attrs.frozen
class AskBack:
    """Ask the gateway at the other end of the inbound link ``link`` to connect to us."""

    link: str


@attrs.frozen
class NoRoute:
    """There is none; ``reason`` says why."""

    reason: str


Route = Dial | AskBack | NoRoute


@attrs.define
class _Links:
    """The links of one partner: those that we dialled, and why others are down; those that it dialled; and routes that
    have given no answer."""

    dialled: list[str] = attrs.field(factory=list)
    inbound: list[str] = attrs.field(factory=list)
    problem: str = ""
    doubted: set[Route] = attrs.field(factory=set)


class Routes:
    """The partners of a gateway.

    Attributes:
        partners: by name.
    """

    def __init__(self) -> None:
        self.partners: dict[str, KnownPartner] = {}
        self._flocked: tuple[str, ...] = ()
        self._links: dict[str, _Links] = {}

    def configure(self, sources: Sequence[str], targets: Sequence[str]) -> None:
        """Take FLOCK_FROM and FLOCK_TO."""
        self._flocked = (*sources, *targets)

    def learn(self, partners: Iterable[KnownPartner]) -> tuple[frozenset[str], frozenset[str]]:
        """These are the partners now; returns the nodes of gateways to keep links to, and of those no longer."""
        before = {node for each in self.partners.values() for node in each.gateways}
        self.partners = {each.name: each for each in partners}
        after = {node for each in self.partners.values() for node in each.gateways}
        self._links = {name: links for name, links in self._links.items() if name in self.partners}
        return frozenset(after - before), frozenset(before - after)

    def objection(self, realm: str) -> str:
        """Why nothing is carried for a pool; empty: it is."""
        partner = self.partners.get(realm)
        if partner is None:
            return f"the pool {realm} is no partner of this one (condor_flock list)"
        if any(partner.is_called(word) or not any(each.is_called(word) for each in self.partners.values())
               for word in self._flocked):
            return ""  # an entry that names no partner is a pattern of hosts, which the daemons judge
        return f"the pool {realm} is in neither FLOCK_FROM nor FLOCK_TO of this gateway"

    # ---- links

    def realm_of(self, node: str) -> str:
        """The partner whose gateway a dialled node is; empty: none's."""
        return next((name for name, each in self.partners.items() if node in each.gateways), "")

    def up(self, realm: str, node: str) -> None:
        """A link that we dialled is up, and the other end takes us for what we are."""
        links = self._links.setdefault(realm, _Links())
        if node not in links.dialled:
            links.dialled.append(node)
        links.doubted.discard(Dial(node))
        links.problem = ""

    def announced(self, realm: str, node: str) -> None:
        """A partner's gateway has dialled us."""
        links = self._links.setdefault(realm, _Links())
        if node not in links.inbound:
            links.inbound.append(node)

    def down(self, node: str, reason: str) -> None:
        """A link is gone, or could not be made."""
        realm = self.realm_of(node)
        if realm:
            self._links.setdefault(realm, _Links()).problem = reason
        for links in self._links.values():
            links.doubted -= {Dial(node), AskBack(node)}
            for nodes in (links.dialled, links.inbound):
                if node in nodes:
                    nodes.remove(node)

    def route(self, realm: str) -> Route:
        """The circuit to a partner's gateway that is tried first."""
        return self.routes(realm)[0]

    def routes(self, realm: str) -> tuple[Route, ...]:
        """The circuits to a partner's gateways, in the order in which they are tried; at least one."""
        objection = self.objection(realm)
        if objection:
            return (NoRoute(objection),)
        links = self._links.get(realm, _Links())
        found: list[Route] = [Dial(node) for node in links.dialled]
        found += [AskBack(link) for link in reversed(links.inbound)]
        found += [Dial(node) for node in self.partners[realm].gateways if node not in links.dialled]
        if found:
            return tuple(sorted(found, key=lambda route: route in links.doubted))
        return (NoRoute(f"the gateway of {realm} has not dialled this one, and its invitation named no address to "
                        "dial"),)

    def tried(self, realm: str, route: Route, *, is_answered: bool) -> None:
        """A route was tried; record whether it was answered."""
        links = self._links.setdefault(realm, _Links())
        if is_answered:
            links.doubted.discard(route)
        else:
            links.doubted.add(route)

    def described(self, realm: str) -> tuple[bool, str]:
        """Whether a partner is reached, and how, or why not, for people."""
        route, links = self.route(realm), self._links.get(realm, _Links())
        if isinstance(route, NoRoute):
            return False, route.reason
        if isinstance(route, AskBack):
            return True, "it has dialled this gateway"
        if links.dialled:
            return True, f"this gateway has dialled {route.node}"
        return False, links.problem or f"{route.node} has not answered yet"


class OwnHosts:
    """The doors of this pool that partners may knock at: those that ads of its daemons name.

    A partner's gateway names the machine and the port to which it wants a circuit.  Without this it could have this
    gateway knock at any door of the network that it is in, or at one of a pool's machine that is nobody's business.
    """

    def __init__(self) -> None:
        self._doors: frozenset[tuple[str, int]] = frozenset()
        self._asked_s = float("-inf")

    def learn(self, doors: Iterable[tuple[str, int]]) -> None:
        """These are the hosts and ports of the pool's daemons."""
        self._doors = frozenset((host.lower(), port) for host, port in doors)

    def has(self, host: str, port: int) -> bool:
        """Whether a daemon of the pool is there, by what its ads say."""
        return (host.lower(), port) in self._doors

    def is_due(self, now_s: float, wanted: tuple[str, int] | None = None) -> bool:
        """Whether the collector is to be asked now; if so, it counts as asked.

        Args:
            now_s: any clock that goes on.
            wanted: a host and a port that may not be known; None: nobody has asked for one.
        """
        wait_s = AGAIN_S if wanted is not None and not self.has(*wanted) else FRESH_S
        if now_s - self._asked_s < wait_s:
            return False
        self._asked_s = now_s
        return True
