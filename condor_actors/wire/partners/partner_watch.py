"""What partners have revoked, fetched by the central manager, for all machines of the pool."""

from __future__ import annotations

from pathlib import Path

import attrs
from cryptography import x509

from condor_actors.actors import Actor
from condor_actors.messages.envelope import Address, Delivery, TimerFired
from condor_actors.messages.pool import QueryRevocations, Revocations
from condor_actors.messages.realm import node_abroad
from condor_actors.wire.enrolment import ACTOR, HOLD_S, known_lists
from condor_actors.wire.partners.partner_store import BadPartners, Partner, changed_partners, read_partners

__all__ = ["PartnerWatch"]

LOOK_S = 10.0
AGAIN_S = 60.0


class PartnerWatch(Actor):
    """Waits at each partner's central manager for news of what is revoked there.

    Args:
        path: the list of partners.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._asked: set[str] = set()

    def started(self) -> None:
        """Look who is a partner."""
        self.context.set_timer("look", 0.0)

    def receive(self, delivery: Delivery) -> None:
        """The timers: nobody else knows of this actor."""
        if not isinstance(delivery.message, TimerFired):
            return
        key = delivery.message.key
        if key == "look":
            self.context.set_timer("look", LOOK_S)
        else:
            self._asked.discard(key)
        for partner in self._partners():
            if partner.name not in self._asked:
                self._ask(partner)

    def _partners(self) -> tuple[Partner, ...]:
        try:
            return read_partners(self._path)
        except BadPartners as error:
            self.context.log.error("{error}", error=error)
            return ()

    def _ask(self, partner: Partner) -> None:
        self._asked.add(partner.name)
        known = known_lists(Revocations(crl=partner.crl))
        self.context.ask(Address(node_abroad(partner.central, partner.name), ACTOR), QueryRevocations(known=known),
                         timeout_s=HOLD_S + 60.0, then=lambda answer: self._answered(partner, answer))

    def _answered(self, partner: Partner, answer: Delivery) -> None:
        lists = answer.message
        if not isinstance(lists, Revocations) or not self._take(partner, lists.crl):
            self.context.set_timer(partner.name, AGAIN_S * self.context.random.uniform(0.8, 1.2))
        else:
            self.context.set_timer(partner.name, 1.0)

    def _take(self, partner: Partner, crl: bytes) -> bool:
        """Keep a partner's list of what is revoked; False: it is not signed by its authority, or cannot be kept."""
        if not crl or crl == partner.crl:
            return True
        try:
            authority = x509.load_pem_x509_certificate(partner.ca).public_key()
            if not x509.load_pem_x509_crl(crl).is_signature_valid(authority):  # type: ignore[arg-type]  # an EC key
                raise ValueError("it is not signed by that pool's authority")
            with changed_partners(self._path) as partners:
                if partners.get(partner.name, partner).ca == partner.ca and partner.name in partners:
                    partners[partner.name] = attrs.evolve(partners[partner.name], crl=crl)
        except (ValueError, OSError) as error:
            self.context.log.error("what the partner {name} has revoked cannot be kept: {error}", name=partner.name,
                                   error=error)
            return False
        return True
