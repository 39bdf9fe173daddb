"""What the shadows of one host share: files, logs, transfers."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

import attrs
from twisted.internet.defer import Deferred

from condor_actors.actors.workers import InWorker
from condor_actors.cores.shadow.chirp_rights import ChirpLimits
from condor_actors.cores.trace_spans import TellSpan
from condor_actors.daemons.shadow.checkpoints.kept_lists import KeptLists
from condor_actors.daemons.shadow.checkpoints.removal import CheckpointRemover
from condor_actors.daemons.shadow.input_files import FileCache
from condor_actors.userlog.writer import UserLogs

__all__ = ["Bulk", "RegistryAccess", "ShadowEdges"]


class Bulk(Protocol):
    """What a shadow needs of the bulk transfers (``transfer.client.BulkClient``)."""

    def put(self, node: str, key: str, digest: str, size_bytes: int, source: str) -> Deferred[None]:
        """Give a file's content to a node."""

    def fetch_file(self, node: str, key: str, digest: str, size_bytes: int, target: str,
                   mode: int = 0o644) -> Deferred[None]:
        """Get a file from a node."""

    def fetch_bytes(self, node: str, key: str, digest: str, limit_bytes: int) -> Deferred[bytes]:
        """Get a content from a node into memory."""


@attrs.frozen(kw_only=True)
class RegistryAccess:
    """How registries of images are reached from here.

    Attributes:
        allowed: CONTAINER_REGISTRIES; proxy: CONTAINER_REGISTRY_PROXY; authorities: AUTH_SSL_CLIENT_CAFILE.
    """

    allowed: tuple[str, ...] = ("*",)
    proxy: str = ""
    authorities: str = ""


@attrs.frozen(kw_only=True)
class ShadowEdges:
    """What all shadows of a host share.

    Attributes:
        logs: user logs.
        cache: digests of files.
        bulk: bulk transfers.
        kept_folder: where evicted runs of a job leave files for the next.
        lists: of a job's checkpoints at a URL; remover: has those removed that nobody needs.
        domain: the file system domain of this machine.
        in_thread: runs what touches the owner's files.
        owner_uid: whose jobs these are; root's are run by a process that may be nobody's.
        chirp: what jobs may do here while they run.
        credd: the node of this machine's credential daemon; registries: how they are reached.
        tell_span: takes the spans of jobs' traces; None: there are none.
    """

    logs: UserLogs
    cache: FileCache
    bulk: Bulk
    kept_folder: Callable[[str], str]
    lists: Callable[[str], KeptLists]
    remover: CheckpointRemover
    domain: str
    in_thread: InWorker
    owner_uid: int = attrs.field(factory=os.getuid)
    chirp: ChirpLimits = attrs.field(factory=ChirpLimits)
    credd: str = "unix:/nonexistent"
    registries: RegistryAccess = attrs.field(factory=RegistryAccess)
    tell_span: TellSpan | None = None
