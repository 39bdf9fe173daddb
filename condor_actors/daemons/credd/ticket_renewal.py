"""One renewal of a Kerberos ticket: kinit -R on a cache of its own, in a folder that is gone afterwards.

Theory: it runs on a worker.  A ticket names the realm whose server kinit asks, and a user can make one of any realm,
so what kinit reads may be written against it.  It sees the ticket alone, in a folder of its own, of the daemon's
environment nothing, and none of the folders with the pool's sockets, keys and other users' credentials.  A ticket that
cannot be renewed now counts until its end, and is tried again at half of what is left of it; one that has ended is
worth nothing.  What is said of a failure is kinit's last line, which names principals and servers and never holds a
key.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import attrs

from condor_actors.actors.workers import touching
from condor_actors.cores.credd.credentials import MOST_SECRET_BYTES, CredentialRefused
from condor_actors.cores.credd.tickets import Ticket, read_cache, secret_of, stored_cache
from condor_actors.cores.credd.token_lives import Failed, Received
from condor_actors.daemons.credd.token_request import Answered
from condor_actors.machine.native.programs import NativeProgramMissing
from condor_actors.machine.run.confinement import shut_in

__all__ = ["Renewer", "renew_ticket"]

DEADLINE_S = 20.0
MOST_SAID = 300
SYSTEMS = "/etc/krb5.conf"
LIMITS = ("as=1073741824", "core=0", "cpu=20", f"fsize={16 * MOST_SECRET_BYTES}", "nofile=256")
"""Of kinit."""


@attrs.frozen(kw_only=True)
class Renewer:
    """With what tickets are renewed.

    Attributes:
        kinit: the program.
        is_there: whether it can be run.
        configuration: a krb5.conf; empty: the system's.
        folder: in which caches lie while they are renewed.
        hidden: folders that kinit does not see.
    """

    kinit: str
    is_there: bool
    configuration: str
    folder: Path
    hidden: tuple[str, ...] = ()

    def check(self) -> None:
        """Whether tickets can be renewed at all.

        Raises:
            CredentialRefused: the program is not there.
        """
        if not self.is_there:
            raise CredentialRefused("denied", "Kerberos tickets are not kept here: nothing renews them, since there is "
                                              f"no program {self.kinit} (CREDD_KINIT); an administrator installs it "
                                              "(Debian's package krb5-user) and runs condor_reconfig")

    def clear(self) -> None:
        """Remove what a daemon that was killed has left, and make the folder.  Blocks.

        Raises:
            OSError: that cannot be done.
        """
        if self.folder.is_symlink() or self.folder.exists():
            shutil.rmtree(self.folder)
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.folder.mkdir(mode=0o700)

    def command(self, folder: str, cache: str) -> list[str]:
        """What renews the ticket of a cache in a folder of its own."""
        return shut_in([self.kinit, "-R", "-c", f"FILE:{cache}"], hidden=self.hidden, shown=folder, limits=LIMITS,
                       needed=[each for each in (self.kinit, self.configuration, SYSTEMS) if each])

    @property
    def environment(self) -> Mapping[str, str]:
        """Of kinit."""
        own = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
        return {**own, "KRB5_CONFIG": self.configuration} if self.configuration else own


def renew_ticket(renewer: Renewer, packed: str, now_s: float) -> Answered:
    """A ticket that counts: a renewed one where that is due and can be had, else the same.

    Args:
        renewer: with what.
        packed: the ticket, as `secret_of` has it.
        now_s: seconds since 1970.
    """
    try:
        ticket = read_cache(stored_cache(packed), now_s)
    except CredentialRefused as refused:
        return Answered(Failed(refused.text, is_final=True))
    old = Received(packed, ticket.ends_s - now_s)
    if not ticket.wants_renewal(now_s):
        return Answered(old)
    try:
        fresh = _renewed(renewer, ticket, now_s)
    except OSError as error:
        return Answered(old, problem=f"{error.filename or renewer.kinit}: {error.strerror}")
    except (NativeProgramMissing, _NotRenewed) as error:
        return Answered(old, problem=str(error))
    secret = secret_of(fresh)
    return Answered(Received(secret.token, fresh.ends_s - now_s), secret.token)


class _NotRenewed(Exception):
    """Why there is no newer ticket."""


def _renewed(renewer: Renewer, ticket: Ticket, now_s: float) -> Ticket:
    """What kinit makes of a ticket.

    Raises:
        OSError: it cannot be run.
        _NotRenewed: it has made none.
    """
    touching(renewer.kinit)
    with tempfile.TemporaryDirectory(dir=renewer.folder) as folder:
        path = f"{folder}/cache"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(ticket.cache)
        try:
            done = subprocess.run(renewer.command(folder, path), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, env=dict(renewer.environment), cwd=folder,
                                  timeout=DEADLINE_S, start_new_session=True, check=False)
        except subprocess.TimeoutExpired:
            raise _NotRenewed(f"{renewer.kinit} has not ended within {DEADLINE_S:g} s") from None
        if done.returncode != 0:
            raise _NotRenewed(_last_line(done.stderr) or f"{renewer.kinit} has ended with status {done.returncode}")
        with open(path, "rb") as file:
            data = file.read(MOST_SECRET_BYTES + 1)
    try:
        fresh = read_cache(data, now_s)
    except CredentialRefused as refused:
        raise _NotRenewed(f"what {renewer.kinit} has made cannot be used: {refused.text}") from None
    if fresh.principal != ticket.principal:
        raise _NotRenewed(f"{renewer.kinit} has made a ticket of {fresh.principal}")
    return fresh


def _last_line(said: bytes) -> str:
    lines = said.decode("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return "".join(each if each.isprintable() else "?" for each in last)[:MOST_SAID]
