"""What a startd grants, checked in one place before anything at home believes it.

Theory: an execute machine is trusted with the jobs that it runs, and with nothing else.  What it says in a grant goes a
long way: names into the logs that jobs share and into the environments of a gang's other nodes, the node of its starter
host into the order that sends the owner's files there.  So a grant counts only if all of it is about the machine that
was asked, and if its names are words: without blanks, quotes, commas and control characters.  A claim id begins with
the address of its startd: one that began with another's would be taken when that one grants it.
"""

from __future__ import annotations

from condor_actors.classads import ClassAd, ClassAdSyntaxError
from condor_actors.cores.flocking import foreign_slot
from condor_actors.cores.rights import host_of
from condor_actors.cores.schedd.queue_operations import SaveClaim
from condor_actors.messages.claim import ClaimGranted
from condor_actors.messages.realm import abroad, node_abroad, parted, realm_of_host

__all__ = ["MOST_AD_BYTES", "BadGrant", "CheckedGrant"]

MOST_AD_BYTES = 100_000
"""Of a slot's ad, which travels to a shadow in one message with the job's."""
MOST_NAME_CHARACTERS = 300
MOST_SECRET_CHARACTERS = 500
MOST_LEASE_S = 10 * 365 * 86400.0
NAMES = ("Name", "Machine", "MyAddress", "StartdIpAddr")
"""Attributes of a slot that name it or its machine."""
_NEVER = frozenset(",;'\"\\ ")


class BadGrant(ValueError):
    """A grant that is not to be believed: says which part of it."""


class CheckedGrant:
    """A grant that may be believed.

    Args:
        message: what the startd says; slot_name: the slot that was asked for; startd: the node that was asked, as this
            pool calls it.

    Attributes:
        starter_node: as this pool calls it; slot_ad: with names as this pool has them.

    Raises:
        BadGrant: it may not.
    """

    def __init__(self, message: ClaimGranted, slot_name: str, startd: str) -> None:
        self._message, self._startd = message, startd
        self._host = host_of(startd)
        self._machine = _machine(slot_name)
        realm = realm_of_host(self._host)
        for what, name in (("claim id", message.claim_id), ("slot name", message.slot_name),
                           ("starter's node", message.starter_node)):
            _check_word(what, name)
        if not 0 < len(message.secret) <= MOST_SECRET_CHARACTERS:
            raise BadGrant(f"its secret has {len(message.secret)} characters, not 1 to {MOST_SECRET_CHARACTERS}")
        if not 0.0 < message.lease_s <= MOST_LEASE_S:
            raise BadGrant(f"its lease of {message.lease_s} s is none")
        if _machine(message.slot_name) != self._machine:
            raise BadGrant(f"it is for {message.slot_name}, which is no slot of {self._machine}")
        maker = message.claim_id.partition("#")[0]
        if maker.startswith("<") and host_of(node_abroad(maker, realm)) != self._host:
            raise BadGrant(f"its claim id is {message.claim_id}, of another machine than {self._host}")
        self.starter_node = node_abroad(message.starter_node, realm)
        if host_of(self.starter_node) != self._host:
            raise BadGrant(f"its starter is at {message.starter_node}, another machine than {self._host}")
        if len(message.slot_ad) > MOST_AD_BYTES:
            raise BadGrant(f"the slot's ad has {len(message.slot_ad)} bytes, more than {MOST_AD_BYTES}")
        try:
            ad = ClassAd.from_bytes(message.slot_ad)
            self._check_names(ad, realm)
            self.slot_ad = foreign_slot(message.slot_ad, realm)
        except ClassAdSyntaxError as error:
            raise BadGrant(f"the slot's ad is none: {error}") from None

    def row(self, submitter: str, owner: str) -> SaveClaim:
        """The claim as it is kept: charged to the submitter, and for jobs of the owner."""
        granted = self._message
        return SaveClaim(granted.claim_id, granted.secret, self._startd, self.starter_node,
                         abroad(granted.slot_name, realm_of_host(self._host)), self.slot_ad, submitter,
                         granted.lease_s, owner)

    def _check_names(self, ad: ClassAd, realm: str) -> None:
        """The slot says of itself that it is of the machine that was asked."""
        for attribute in NAMES:
            value = ad.find(attribute.lower())
            if value is None:
                continue
            if not isinstance(value, str):
                raise BadGrant(f"the slot's {attribute} is no string")
            _check_word(f"slot's {attribute}", value)
            if attribute == "Name" and _machine(value) != self._machine:
                raise BadGrant(f"the slot calls itself {value}, which is no slot of {self._machine}")
            if attribute == "Machine" and value.lower() not in (self._machine, parted(self._host)[0].lower()):
                raise BadGrant(f"the slot says that its machine is {value}, another one than {self._machine}")
            if attribute.endswith(("Address", "Addr")) and host_of(node_abroad(value, realm)) != self._host:
                raise BadGrant(f"the slot's {attribute} is {value}, another machine than {self._host}")


def _machine(slot_name: str) -> str:
    """The machine's part of a slot's name."""
    return slot_name.rpartition("@")[2].lower()


def _check_word(what: str, text: str) -> None:
    """Refuse what could be more than one word in a log, a list or an environment."""
    if not 0 < len(text) <= MOST_NAME_CHARACTERS:
        raise BadGrant(f"its {what} has {len(text)} characters, not 1 to {MOST_NAME_CHARACTERS}")
    if not text.isprintable() or not _NEVER.isdisjoint(text):
        raise BadGrant(f"its {what} {text!r} has blanks, quotes, commas or control characters")
