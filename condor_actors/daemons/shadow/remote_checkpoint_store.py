"""What a shadow has at the checkpoint server: its job's last image, so that SPOOL need not keep it.

Theory: the server holds copies.  Each checkpoint goes there as soon as it is safe at home; when a run is over and the
server has the last one, the copy at home goes, and the journals, which only make sense here, stay.  The next run
fetches it back when home has none that is good: but only the very one that the queue remembers, because the journals
belong to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from condor_actors.classads import ClassAd
from condor_actors.machine.standard.checkpoint_folder import CheckpointFolder
from condor_actors.machine.standard.checkpoint_keeping import ask_server
from condor_actors.transfer.image_pieces import ImageList

if TYPE_CHECKING:
    from condor_actors.daemons.shadow.standard_shadow import StandardEdges

__all__ = ["RemoteCheckpointStore"]


class RemoteCheckpointStore:
    """Sends a job's checkpoint to the checkpoint server, fetches it and removes it.

    Args:
        edges: the shadow's; folder: of the job; name: ``cluster.proc``; job: its ad, as it was when the run began.
    """

    def __init__(self, edges: StandardEdges, folder: CheckpointFolder, name: str, job: ClassAd) -> None:
        self._edges = edges
        self._folder = folder
        self._name = name
        self._job = job.get_str("GlobalJobId") or name
        self._known = job.get_str("LastCkptDigest")
        self._asked = False
        self._storing = False
        self._wanted: ImageList | None = None
        self._stored = ""
        self._over = False
        self._settled = False
        self.log = Logger("condor.shadow")

    @property
    def may_have_it(self) -> bool:
        """Whether it is worth asking the server for the last checkpoint; it is asked once."""
        return bool(self._known) and not self._asked and self._edges.server() is not None

    def fetch(self) -> Deferred[Any]:
        """Bring the last checkpoint home, if the server has the very one."""
        self._asked = True
        endpoint = self._edges.server()
        assert endpoint is not None
        fetching = ask_server(self._edges.reactor, endpoint, self._job, "fetch", self._folder)
        return fetching.addBoth(self._fetched)

    def _fetched(self, result: Any) -> None:
        if isinstance(result, Failure):
            self.log.info("{job}: no checkpoint from the server: {why}", job=self._name, why=result.getErrorMessage())
        elif all(pieces.digest != self._known for pieces in self._folder.lists()):
            self.log.warn("{job}: the server has another checkpoint than the last one", job=self._name)
            self._folder.drop_images()
        else:
            self._stored = self._known

    def store(self, pieces: ImageList) -> None:
        """A checkpoint is at home: give the server a copy, the newest if several come at once."""
        self._wanted = pieces
        if not self._storing:
            self._store()

    def _store(self) -> None:
        endpoint, pieces = self._edges.server(), self._wanted
        if endpoint is None or pieces is None:
            return
        self._storing, self._wanted = True, None

        def stored(result: Any) -> None:
            self._storing = False
            if isinstance(result, Failure):
                self.log.info("{job}: the checkpoint server does not keep it: {why}", job=self._name,
                              why=result.getErrorMessage())
            else:
                self._stored = pieces.digest
            if self._wanted is not None:
                self._store()
            elif self._over:
                self.keep_only_there()

        ask_server(self._edges.reactor, endpoint, self._job, "store", self._folder, pieces).addBoth(stored)

    def keep_only_there(self) -> None:
        """The run is over: what the server has need not be here as well."""
        self._over = True
        newest = next(iter(self._folder.lists()), None)
        used = self._settled and self._name in self._edges.active  # the job's next run has begun meanwhile
        self._settled = True
        if self._stored and newest is not None and newest.digest == self._stored and not used:
            self._folder.drop_images()

    def forget(self) -> None:
        """The program has ended."""
        endpoint = self._edges.server()
        if endpoint is not None and (self._stored or self._known):
            dropping = ask_server(self._edges.reactor, endpoint, self._job, "drop", self._folder)
            dropping.addErrback(lambda failure: self.log.info("{job}: {why}", job=self._name,
                                                              why=failure.getErrorMessage()))
