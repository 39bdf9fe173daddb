"""Removes checkpoints at their destination: a program that runs as their owner, on the submit machine.

Theory: the shadow host writes an order beside the lists of the checkpoints and starts this.  A file is removed by the
administrator's program for its destination (CHECKPOINT_DESTINATION_MAPFILE), which gets HTCondor's arguments, or by
``DELETE`` over http and https.  A list goes when all its files are gone, so that what was left is tried again; a file
that is not there any more is as good as removed.  What fails is said on standard error.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import attrs

from condor_actors.messages.references.urls import FETCHED, scheme_of, shown_url

__all__ = ["ORDER", "Removal", "RemovalFailed", "RemovalOrder", "remove_checkpoint"]

ORDER = "removal.json"
GONE = (404, 410)
SAID_CHARACTERS = 500


class RemovalFailed(Exception):
    """A checkpoint cannot be removed; the text says which file, and why."""


@attrs.frozen(kw_only=True)
class Removal:
    """One checkpoint.

    Attributes:
        path: of its list; base: the URL of its folder there, without a slash at its end.
        files: paths in that folder; urls: what to ``DELETE`` for each, none where a program removes them.
        failed: it was not whole: not all of it may be there.
    """

    path: str
    base: str
    files: Sequence[str]
    urls: Sequence[str] = ()
    failed: bool = False


@attrs.frozen(kw_only=True)
class RemovalOrder:
    """What one process is to do.

    Attributes:
        program: that removes a file, with its first arguments; empty: http and https are asked.
        job_ad: a file with the job's ad, for the program.
        file_s: how long one file may take.
        authorities: a file with more authorities that vouch for servers of https; empty: the machine's own only.
    """

    removals: Sequence[Removal]
    program: Sequence[str]
    job_ad: str
    file_s: float
    authorities: str

    def encode(self) -> bytes:
        """For the file."""
        return json.dumps(attrs.asdict(self)).encode()


def decode(data: bytes) -> RemovalOrder:
    """What :meth:`RemovalOrder.encode` has made."""
    fields = json.loads(data)
    return RemovalOrder(removals=[Removal(**each) for each in fields.pop("removals")], **fields)


def remove_checkpoint(order: RemovalOrder, removal: Removal) -> None:
    """Remove the files of one checkpoint, then its list.

    Raises:
        RemovalFailed: one could not be removed.
    """
    for place, path in enumerate(removal.files):
        if order.program:
            _by_program(order, removal, path)
        else:
            _by_http(order, removal.urls[place])
    Path(removal.path).unlink(missing_ok=True)


def _by_program(order: RemovalOrder, removal: Removal, path: str) -> None:
    words = [*order.program, "-from", removal.base, "-delete", path, "-jobad", order.job_ad]
    if removal.failed:
        words.append("-ignore-missing-files")
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,  # noqa: S603
                              stderr=subprocess.STDOUT, timeout=order.file_s, check=False)
    except subprocess.TimeoutExpired:
        raise RemovalFailed(f"{words[0]} took more than {order.file_s:g} s for {path} of {shown_url(removal.base)} "
                            "(CHECKPOINT_CLEANUP_TIMEOUT)") from None
    except OSError as error:
        raise RemovalFailed(f"{words[0]} cannot be started: {error.strerror}") from None
    if done.returncode:
        said = " ".join(done.stdout.decode(errors="replace").split())[-SAID_CHARACTERS:]
        raise RemovalFailed(f"{words[0]} ended with status {done.returncode} for {path} of {shown_url(removal.base)}"
                            f"{': ' if said else ''}{said}")


def _by_http(order: RemovalOrder, url: str) -> None:
    if scheme_of(url) not in FETCHED:
        raise RemovalFailed(f"no program of CHECKPOINT_DESTINATION_MAPFILE removes {shown_url(url)}")
    context = ssl.create_default_context()
    if order.authorities:
        context.load_verify_locations(order.authorities)
    asked = urllib.request.Request(url, method="DELETE")  # noqa: S310
    try:
        with urllib.request.urlopen(asked, timeout=order.file_s, context=context):  # noqa: S310
            pass
    except urllib.error.HTTPError as error:
        error.close()
        if error.code not in GONE:
            raise RemovalFailed(f"{shown_url(url)}: the server says {error.code} {error.reason}") from None
    except (OSError, ValueError) as error:
        raise RemovalFailed(f"{shown_url(url)}: {getattr(error, 'reason', error)}") from None


def main() -> int:
    """Carry out the order in the file that the first argument names."""
    try:
        order = decode(Path(sys.argv[1]).read_bytes())
        for removal in order.removals:
            remove_checkpoint(order, removal)
    except (RemovalFailed, OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
