"""What is said to make a circuit through gateways.  Imports little: the tools load it.

==================================  ===========================================  ===================================
first line                          second line                                  who says it to whom
==================================  ===========================================  ===================================
``condor circuit 1``                ``<host%pool:port>``                         a machine of a pool to its gateway
``condor circuit 1``                ``<host:port>``, in the names of the asked   a gateway to a partner's
``condor circuit-back 2``           the number of the circuit                    a gateway to a partner's that wanted
                                                                                 a circuit and cannot dial
``condor relayed 1``                the partner's name                           a gateway to a daemon of its own pool
==================================  ===========================================  ===================================

The answer is ``+``, or ``-`` and a reason.  After a ``+`` both sides take the connection out of TLS, and it is a bare
one: what follows is between the two true ends, which begin TLS of their own.

A gateway that brings a circuit says one bare newline before that: only then may the other pass on what the true end
says, since what came together with the ``+`` would be lost in its TLS.
"""

from __future__ import annotations

from condor_actors.addresses import is_ipv6
from condor_actors.messages.realm import MARK, is_realm
from condor_actors.wire.nodes import BadNode, TlsNode, parse_node

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "BACK_LINE", "MOST_BYTES", "NOBODY_THERE", "RELAYED_LINE", "CIRCUIT_LINE", "YES", "answer_of", "no",
    "other_version", "partner_of", "target_here", "words",
]

CIRCUIT_LINE = b"condor circuit 1\n"
BACK_LINE = b"condor circuit-back 2\n"
RELAYED_LINE = b"condor relayed 1\n"
YES = b"+\n"
NOBODY_THERE = "no daemon of this pool answers there"
"""What a partner hears of a machine that it may not reach, and of one that is not there: it learns nothing else from
it.  A gateway that cannot be asked itself does not say so."""
MOST_BYTES = 600
"""A second line, or an answer, that is longer is none."""


def words(line: bytes, text: str) -> bytes:
    """A first line and the second."""
    return line + text.encode() + b"\n"


def no(reason: str) -> bytes:
    """The answer that there is no circuit."""
    text = " ".join(reason.split())
    return b"-" + text.encode(errors="replace")[:MOST_BYTES - 2] + b"\n"


def answer_of(line: bytes) -> str:
    """Why there is no circuit; empty: here it begins."""
    if line == YES:
        return ""
    if not line.startswith(b"-"):
        return "it is no gateway"
    text = line[1:].decode(errors="replace").strip()
    return "".join(letter for letter in text if letter.isprintable()) or "no reason given"


def other_version(line: bytes, known: Iterable[bytes]) -> str:
    """What is answered to a first line that is known here in another version only; empty: in none.

    Args:
        line: as it came; known: the first lines of this process.
    """
    name, blank, version = line.strip().rpartition(b" ")
    if not blank or not version.isdigit():
        return ""
    ours = sorted({each.strip().decode() for each in known if each.rpartition(b" ")[0] == name})
    return f"this is another release: it speaks {', '.join(ours)}, and not {line.strip().decode()}" if ours else ""


def target_here(text: str) -> TlsNode:
    """The machine of this pool that a partner means.

    Raises:
        BadNode: it means none.
    """
    node = parse_node(text)
    if not isinstance(node, TlsNode) or node.realm or (MARK in node.host and not is_ipv6(node.host)):
        raise BadNode(f"{text[:100]!r} is no address of this pool")
    return node


def partner_of(text: str) -> tuple[str, str]:
    """The pool of a foreign node, and what that pool calls the node.

    Raises:
        BadNode: it is no foreign node.
    """
    node = parse_node(text)
    if not isinstance(node, TlsNode) or not is_realm(node.realm) or MARK in node.name:
        raise BadNode(f"{text[:100]!r} is no address in another pool")
    return node.realm, str(TlsNode(node.name, node.port))
