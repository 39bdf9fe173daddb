"""Fetches a container image from a registry and unpacks it, as the job's account, in a process of its own.

Theory: :mod:`.registry` asks, :mod:`.unpack` puts the layers into the folder, one after another; a layer lies in a
file without a name while it is fetched, so that whatever kills this process, nothing of it is left.  The process is
told what to do over standard input and answers over standard error, like that of :mod:`.unpack`.  A mirror is asked
first, and the registry itself for what no mirror has, or has not with that digest.

====== ==========================================================
status what it means
====== ==========================================================
0      the report is the digest, or what the image says of itself
1      the image cannot be used: no machine can do better
2      it may be had elsewhere: nobody answers here, or the disk has no room
====== ==========================================================
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import socket
import ssl
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import attrs

from condor_actors.machine.containers import sif
from condor_actors.machine.containers.image_tree import BadImage, NoRoom, TooLong, Tree
from condor_actors.machine.containers.registry import Blob, Repository, Unreachable
from condor_actors.machine.containers.unpack import (
    Budget,
    ImageFacts,
    account_of,
    apply_layer,
    carry_out,
    facts_of,
    understood,
)
from condor_actors.machine.run.users import Account
from condor_actors.messages.references.image_reference import Registry

__all__ = ["ELSEWHERE", "PullOrder", "pull", "resolve", "trusted"]

BAD, ELSEWHERE = 1, 2
FULL = (errno.ENOSPC, errno.EDQUOT)
Found = TypeVar("Found")


@attrs.frozen(kw_only=True)
class PullOrder:
    """What one process is to do.

    Attributes:
        name: of the image in its registry.
        places: mirrors and, last, the registry.
        tag: to be resolved; empty: fetch ``digest``.
        folder: the number of the open empty folder to unpack into; -1: none.
        account: whom it becomes; None: it is that account already.
        limit_bytes, room_bytes: what an image may have, and what the disk has.
        most_s: more is given up.
        authorities: a file with more authorities that vouch for servers; empty: the machine's own only.
        proxy: ``http://host:port``; empty: none.
        login: what the registry is shown, as a header has it; mirrors are not.
    """

    name: str
    places: tuple[Registry, ...]
    tag: str
    digest: str
    folder: int
    account: Account | None
    limit_bytes: int
    room_bytes: int
    most_s: float
    authorities: str = ""
    proxy: str = ""
    login: str = attrs.field(default="", repr=False)

    def encode(self) -> bytes:
        """As it goes through the pipe."""
        return json.dumps(attrs.asdict(self)).encode()


def _decode(data: bytes) -> PullOrder:
    said = json.loads(data)
    return PullOrder(**said | {"account": account_of(said["account"]),
                               "places": tuple(Registry(**each) for each in said["places"])})


def resolve(repositories: Sequence[Repository], tag: str) -> str:
    """The digest that a tag means.

    Raises:
        BadImage: there is none. Unreachable: nobody says.
    """
    return _first(repositories, lambda repository: repository.resolve(tag))


def pull(repositories: Sequence[Repository], digest: str, folder: int, most_bytes: int) -> ImageFacts:
    """Fetch the image with a digest into an open empty folder.

    Raises:
        BadImage: it cannot be used. Unreachable: it cannot be had. OSError: the disk.
    """
    budget = Budget(most_bytes)
    with understood(), contextlib.closing(Tree(folder)) as tree:
        manifest = _first(repositories, lambda repository: repository.manifest(digest))
        configuration = json.loads(_first(repositories, lambda repository: repository.small(manifest.configuration)))
        enter: tuple[str, ...] = ()
        for layer in manifest.layers:
            if _add(repositories, layer, folder, tree, budget):
                enter = sif.ENTER
        return attrs.evolve(facts_of(configuration, budget), enter=enter)


def _add(repositories: Sequence[Repository], layer: Blob, folder: int, tree: Tree, budget: Budget) -> bool:
    """Fetch one layer and unpack it; whether it was a whole image of Apptainer's."""
    left = budget.left_bytes - budget.used_bytes
    if layer.size_bytes > left:
        raise NoRoom(f"its layer {layer.digest} has {layer.size_bytes >> 20:,} MB, and there is room for "
                     f"{left >> 20:,} MB (CONTAINER_IMAGE_LIMIT, or the disk)")
    with _nameless(folder) as file:

        def fetch(repository: Repository) -> None:
            os.ftruncate(file, 0)
            repository.fetch(layer, file)

        _first(repositories, fetch)
        os.lseek(file, 0, os.SEEK_SET)
        with os.fdopen(file, "rb", closefd=False) as stream:
            if sif.is_sif(stream):
                sif.unpack_sif(stream, tree, budget)
                return True
            apply_layer(stream, tree, budget)
            return False


@contextlib.contextmanager
def _nameless(folder: int) -> Iterator[int]:
    """A file on the disk of the folder that nobody finds there."""
    name = f".condor_layer_{secrets.token_hex(8)}"
    file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        os.unlink(name, dir_fd=folder)
        yield file
    finally:
        os.close(file)


def _first(repositories: Sequence[Repository], ask: Callable[[Repository], Found]) -> Found:
    """The answer of the first that has one; else why the last has none."""
    for repository in repositories[:-1]:
        with contextlib.suppress(BadImage, Unreachable):
            return ask(repository)
    return ask(repositories[-1])


# ---- the process


def trusted(authorities: str) -> ssl.SSLContext:
    """The machine's authorities that vouch for servers, and those of a file; empty: no more.

    Raises:
        Unreachable: the file cannot be used.
    """
    context = ssl.create_default_context()
    if authorities:
        try:
            context.load_verify_locations(authorities)
        except OSError as error:
            raise Unreachable(f"AUTH_SSL_CLIENT_CAFILE {authorities} cannot be used: {error}") from None
    return context


def _work(order: PullOrder, context: ssl.SSLContext) -> bytes:
    last = order.places[-1]
    repositories = [Repository(place, order.name, context, proxy=order.proxy,
                               given=order.login if place is last else "") for place in order.places]
    if order.tag:
        with understood():
            return resolve(repositories, order.tag).encode()
    return pull(repositories, order.digest, order.folder, min(order.limit_bytes, order.room_bytes)).encode()


def main() -> int:
    """Carry out the order on standard input."""
    order = _decode(sys.stdin.buffer.read())
    try:
        context = trusted(order.authorities)
        sif.load()
        "".encode("idna")  # what the library would look for on the disk later, where the account may see nothing
        socket.getaddrinfo("localhost", None)
        carry_out(order.account, order.most_s, lambda: _work(order, context))
    except (BadImage, Unreachable, OSError) as error:
        os.write(sys.stderr.fileno(), str(error).encode(errors="replace")[:2000])
        crowded = isinstance(error, NoRoom) and order.room_bytes < order.limit_bytes
        full = isinstance(error, OSError) and error.errno in FULL
        return ELSEWHERE if crowded or full or isinstance(error, (Unreachable, TooLong)) else BAD
    return 0


if __name__ == "__main__":
    sys.exit(main())
