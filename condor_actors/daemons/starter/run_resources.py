"""What one run holds of this machine, and how it is let go, however the run ends.

Theory: a starter writes down here what it takes: its sandbox, its processes, its grant, its streams and shells.  The
record is the process's, not the actor's: when the actor crashes, the starter host kills and frees by it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall

from condor_actors.cores.rights import is_fetched, is_shadow_of
from condor_actors.machine.containers.checked_places import CheckedPlaces
from condor_actors.machine.containers.image_store import Image
from condor_actors.machine.run.run_processes import RunProcesses
from condor_actors.machine.run.sandbox import Sandbox
from condor_actors.messages.envelope import Address, Identity
from condor_actors.transfer.owned_blobs import OwnedBlobs
from condor_actors.transfer.service import Grant

if TYPE_CHECKING:
    from condor_actors.daemons.starter.interactive.visits import Visits
    from condor_actors.daemons.starter.run_chirp import RunChirp
    from condor_actors.daemons.starter.run_streams import RunStreams
    from condor_actors.daemons.starter.starter_edges import StarterEdges

__all__ = ["RunResources"]


@attrs.define(eq=False, kw_only=True)
class RunResources:
    """Holds the sandbox, processes, grant, streams and shells of one run until they are released.

    Attributes:
        edges: of the process.
        run_id, claim_id, secret: the run and where it is.
        owner, hosts: as in OpenClaim.
        shadow: who is told of its end.
        key: of the transfers; granted: whether they are open.
        sandbox: its directory.
        processes: its processes, as long as there may be any: a claim's control group is the next run's afterwards.
        work: what a thread does with the sandbox now.
        deadline: of the transfer plugin that works for it now.
        places: what it names outside of its directory, as it was looked at.
        directory: the job's, where it was found, if an image has it.
        image: its root directory's; unpacks: the digest of one that it is unpacking.
        streams: of a standard-universe job; visits: shells beside the job, connections to its ports; chirp: what it
            says to its home.
    """

    edges: StarterEdges
    run_id: str
    claim_id: str
    secret: str
    owner: str
    hosts: tuple[str, ...]
    shadow: Address
    key: str = ""
    granted: bool = False
    sandbox: Sandbox | None = None
    processes: RunProcesses | None = None
    work: Deferred[Any] | None = None
    deadline: IDelayedCall | None = None
    places: CheckedPlaces = attrs.field(factory=CheckedPlaces)
    directory: str = ""
    image: Image | None = None
    unpacks: str = ""
    streams: RunStreams | None = None
    visits: Visits | None = None
    chirp: RunChirp | None = None

    @property
    def blobs(self) -> OwnedBlobs:
        """The blobs that the run may have: what its owner's shadows on that schedd's machine have brought."""
        blobs: OwnedBlobs = self.edges.store.of(self.identity)
        return blobs

    @property
    def identity(self) -> str:
        """Whose run it is, on whose word: what is kept for the next run with the same is for nobody else."""
        return f"{self.owner} {' '.join(sorted(self.hosts))}"

    def may_be_told_by(self, identity: Identity, node: str) -> bool:
        """Tell whether the peer may say something about the run: this process, or a shadow of its owner; of a fetched
        job its machine's startd.

        Args:
            identity, node: of the peer.
        """
        if is_fetched(self.owner):
            return identity.method == "self" or node == self.edges.startd.node
        return identity.method == "self" or is_shadow_of(identity, self.owner, self.hosts)

    def grant(self) -> Grant | None:
        """The open grant."""
        return self.edges.bulk.grant(self.key) if self.granted else None

    def open_grant(self, grant: Grant) -> None:
        """Let the shadow fetch or bring what the grant says."""
        if self.key:
            self.edges.bulk.open(self.key, grant)
            self.granted = True

    def close_grant(self) -> None:
        """No more transfers."""
        if self.granted:
            self.edges.bulk.close(self.key)
            self.granted = False

    def use_key(self, key: str) -> None:
        """The shadow has another key from now on; what is granted stays granted."""
        grant = self.grant()
        self.close_grant()
        self.key = key
        if self.streams is not None:
            self.streams.key = key
        if grant is not None:
            self.open_grant(grant)

    def kill(self) -> int:
        """Kill what is left of the run's processes; how many there were."""
        if self.processes is None:
            return 0
        left = self.processes.kill()
        if not left:
            self.processes = None
        return left

    def in_thread(self, function: Callable[[], Any]) -> Deferred[Any]:
        """Work on the sandbox that would hold all runs of this machine up: beside the reactor."""
        work = self.work = self.edges.in_thread(function)

        def done(result: Any) -> Any:
            self.work = None
            return result

        return work.addBoth(done)

    def end_deadline(self) -> None:
        """The plugin has ended, or its run."""
        deadline, self.deadline = self.deadline, None
        if deadline is not None and deadline.active():
            deadline.cancel()

    def remove_sandbox(self) -> None:
        """Take the directory away, once every reader and writer of it has finished."""
        sandbox, self.sandbox = self.sandbox, None
        if sandbox is None:
            return
        if self.work is None:
            self.edges.remove(sandbox)
        else:
            self.work.addBoth(lambda _: self.edges.remove(sandbox))

    def close_places(self) -> None:
        """Nothing outside of its directory is the run's, once nobody reads there."""
        if self.work is None:
            self.places.close()
        else:
            self.work.addBoth(lambda _: self.places.close())

    def drop_image(self) -> None:
        """The run needs its image no more."""
        image, self.image = self.image, None
        if image is not None and image.owner:
            self.edges.remove_folders(self.edges.images.release(image, self.run_id))

    def settle_image(self) -> None:
        """Who waits for an image that this run was unpacking looks again."""
        digest, self.unpacks = self.unpacks, ""
        if digest:
            self.edges.images.finished(self.owner, digest)

    def let_job_go(self, number: int) -> None:
        """The program shall hear a signal, whatever shells and tools are beside it."""
        if self.visits is not None:
            self.visits.let_job_go(number)

    def release(self) -> None:
        """Let go of everything; the record is no more."""
        self.edges.runs.pop(self.run_id, None)
        with contextlib.ExitStack() as last:  # each of these is tried, whatever becomes of the others
            last.callback(self.remove_sandbox)
            last.callback(self.close_places)
            last.callback(self.edges.disk.end, self.run_id)
            last.callback(self.drop_image)
            last.callback(self.settle_image)
            last.callback(self.edges.store.unpin, self.run_id)
            last.callback(self.close_grant)
            last.callback(self.end_deadline)
            if self.chirp is not None:
                last.callback(self.chirp.close)
            if self.visits is not None:
                last.callback(self.visits.close_all)
            if self.streams is not None:
                last.callback(self.streams.close)
