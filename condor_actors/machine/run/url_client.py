"""What programs have in common that speak to servers for a run: whose rights they have, whom they trust, how they end.

Theory: whatever a server says is parsed with the rights of the job and no others.  The starter host starts such a
module as a program by the launcher (in the claim's control group, with limits and hardly any environment), and writes
what it is to do into its standard input, so that no list of processes has the URL.  The program loads what it needs,
becomes the job's account for good, and only then opens a connection.  What went wrong comes as one sentence over its
standard error; its exit status says whether it may go better another time.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import sys
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from condor_actors.machine.run.users import Account
from condor_actors.messages.references.urls import FETCHED, scheme_of, shown_url

__all__ = [
    "AGENT", "BLOCK_BYTES", "MOST_REDIRECTS", "REASON_BYTES", "SILENCE_S", "TRY_AGAIN", "UrlFailed", "account_of",
    "carry_out", "may_follow",
]

SILENCE_S = 60.0
BLOCK_BYTES = 256 * 1024
REASON_BYTES = 2000
MOST_REDIRECTS = 10
AGENT = "condor-starter"
TRY_AGAIN = 75
"""The exit status that says so (EX_TEMPFAIL)."""


class UrlFailed(Exception):
    """What was to be done with the URL could not be done; the text says why.

    Attributes:
        temporary: it may go better another time.
    """

    def __init__(self, text: str, *, temporary: bool = False) -> None:
        super().__init__(text)
        self.temporary = temporary


class UrlOrder(Protocol):
    """What such a program is told."""

    @property
    def url(self) -> str:
        """Of the file."""

    @property
    def account(self) -> Account | None:
        """Whom it becomes; None: it is that account already."""

    @property
    def most_s(self) -> float:
        """How long it may take."""

    @property
    def authorities(self) -> str:
        """A file with more authorities that vouch for servers of https; empty: the machine's own only."""


Order = TypeVar("Order", bound=UrlOrder)


def account_of(fields: dict[str, Any] | None) -> Account | None:
    """The account of an order in JSON."""
    return None if fields is None else Account(**fields | {"groups": tuple(fields["groups"])})


def may_follow(url: str, target: str) -> bool:
    """Whether a server may send us on: to http and https only, and never from https to http."""
    return scheme_of(target) in FETCHED and (scheme_of(url), scheme_of(target)) != FETCHED[::-1]


def carry_out(order: Order, work: Callable[[Order, ssl.SSLContext], object]) -> int:
    """Become the order's account, and do the work in the time that there is.  Returns the exit status."""
    try:
        context = _trust(order.authorities)
        "".encode("idna")  # what the library would look for on the disk later
        socket.getaddrinfo("localhost", None)
        if order.account is not None and os.geteuid() == 0:
            _become(order.account)

        def too_long(number: int, frame: object) -> None:
            raise UrlFailed(f"{shown_url(order.url)}: it takes more than {order.most_s:g} s")

        signal.signal(signal.SIGALRM, too_long)
        signal.setitimer(signal.ITIMER_REAL, order.most_s)
        work(order, context)
    except UrlFailed as error:
        os.write(sys.stderr.fileno(), str(error).encode(errors="replace")[:REASON_BYTES])
        return TRY_AGAIN if error.temporary else 1
    return 0


def _trust(authorities: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if authorities:
        try:
            context.load_verify_locations(authorities)
        except (OSError, ssl.SSLError) as error:
            raise UrlFailed(f"AUTH_SSL_CLIENT_CAFILE {authorities} cannot be used: {error}") from None
    return context


def _become(account: Account) -> None:
    os.setgroups(account.groups or (account.gid,))
    os.setresgid(account.gid, account.gid, account.gid)
    os.setresuid(account.uid, account.uid, account.uid)
    with contextlib.suppress(PermissionError):
        os.setresuid(0, 0, 0)
        raise UrlFailed("the way back to root is open")
