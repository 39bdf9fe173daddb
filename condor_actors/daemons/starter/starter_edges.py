"""What the starter host and its runs need of this machine.

Theory: these are the process's, not an actor's, and outlive any actor that is built anew: the stores, the launcher,
and what each run holds here (:class:`~condor_actors.daemons.starter.run_resources.RunResources`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from condor_actors.cores.starter.run_spec import RunSettings, RunSpec
from condor_actors.daemons.starter.run_resources import RunResources
from condor_actors.machine.run.cgroups import Cgroups
from condor_actors.machine.run.launch import Launcher
from condor_actors.machine.run.run_host import RunHost
from condor_actors.machine.run.run_processes import RunProcesses
from condor_actors.machine.run.sandbox import Sandbox
from condor_actors.machine.run.users import Account
from condor_actors.messages.codec import MalformedMessage, decode_parts, encode_parts
from condor_actors.messages.envelope import Address
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.run import ActivateClaim
from condor_actors.transfer.manifest import BadManifest, check_manifest
from condor_actors.transfer.service import BulkService

if TYPE_CHECKING:
    from condor_actors.daemons.starter.claim_registry import ActiveClaim

__all__ = ["StarterEdges", "StarterSettings"]

MANIFEST_LIMIT = 1000
SHARED_MEMORY = "/dev/shm"


@attrs.frozen(kw_only=True)
class StarterSettings:
    """What a reconfiguration may change.

    Attributes:
        run: of every run.
        memory_policy: CGROUP_MEMORY_LIMIT_POLICY.
        allow_owner: whether jobs may run as their owners (STARTER_ALLOW_RUNAS_OWNER).
        enforce_disk: whether a run may use no more disk than it asked for.
        private_folders, private_memory: what is a run's alone.
    """

    run: RunSettings
    memory_policy: str
    allow_owner: bool = False
    enforce_disk: bool = False
    private_folders: tuple[str, ...] = ()
    private_memory: bool = False


@attrs.define(eq=False, kw_only=True)
class StarterEdges:
    """What starters touch, and what they share: claims, settings, the machine.

    Attributes:
        reactor: timers and descriptors; in_thread: runs a function where it does not hold the actors up.
        log: of the process.
        host: this machine; root: the directory of all sandboxes; cgroups: None where none are used.
        store: content that runs have fetched; bulk: transfers; launcher: starts programs.
        startd: where the startd listens; node: where shadows reach this process.
        settings: the configuration's.
        slot_account: as whom jobs of a slot run.
        own_hosts: the names of this machine.
        runs: what each run holds, by run id.
        leaving: directories that are being removed.
        at_rest: called when the last run is gone, while the process ends; None: it does not.
    """

    reactor: Any
    in_thread: Callable[..., Deferred[Any]]
    log: Logger
    host: RunHost
    root: Any
    cgroups: Cgroups | None
    store: Any
    bulk: BulkService
    launcher: Launcher
    startd: Address
    node: Callable[[], str]
    settings: StarterSettings
    slot_account: Callable[[str], Account]
    own_hosts: Callable[[], tuple[str, ...]] = tuple
    manifest_limit: int = MANIFEST_LIMIT
    runs: dict[str, RunResources] = attrs.field(factory=dict)
    leaving: dict[str, Deferred[None]] = attrs.field(factory=dict)
    at_rest: Callable[[], None] | None = None

    def hold(self, message: ActivateClaim, claim: ActiveClaim, shadow: Address) -> RunResources:
        """Begin the record of a run."""
        held = self.runs[message.run_id] = RunResources(
            edges=self, run_id=message.run_id, claim_id=message.claim_id, secret=message.secret,
            owner=claim.owner, hosts=claim.hosts, shadow=shadow, key=message.transfer_key)
        return held

    # ---- sandboxes

    def sweep(self) -> None:
        """Remove what an earlier host of this EXECUTE has left: processes, groups, directories."""
        if self.cgroups is not None:
            for name in self.cgroups.names():
                group = self.cgroups.group(name)
                group.kill()
                group.remove()
        else:
            self.host.kill_marked(f"{self.root.path}:")
        for path in self.root.leftovers():
            self.host.remove_tree(path)

    def sweep_directories(self) -> None:
        """Remove directories that no run uses."""
        used = set(self.leaving) | {held.sandbox.path for held in self.runs.values() if held.sandbox is not None}
        for path in self.root.leftovers(used):
            self.host.remove_tree(path)

    def remove(self, sandbox: Sandbox) -> None:
        """Take a scratch directory away beside the reactor: the disk's journal may hold an ``rmdir`` up for long."""
        def removed(result: Any) -> None:
            del self.leaving[sandbox.path]
            if result is not True:
                self.log.warn("{path} cannot be removed yet: {why}", path=sandbox.path, why=result)

        removing = self.in_thread(sandbox.remove)
        self.leaving[sandbox.path] = removing
        removing.addBoth(removed)

    # ---- processes

    def processes_for(self, claim: ActiveClaim, run_id: str) -> RunProcesses:
        """The processes of a run to be started."""
        return self.host.processes(claim.cgroup, f"{self.root.path}:{run_id}", self._leaders)

    def _leaders(self) -> list[int]:
        return [held.processes.pid for held in self.runs.values() if held.processes is not None and held.processes.pid]

    def account_for(self, spec: RunSpec, slot_name: str) -> Account | None:
        """As whom a run is run; None: as this process's user.

        Raises:
            OSError: the slot's account cannot be used.
        """
        if not self.host.may_change_user():
            return None
        settings = self.settings
        if settings.allow_owner and spec.run_as_owner is not False and spec.domain == settings.run.uid_domain:
            account = self.host.account(spec.owner)
            if account is not None and account.uid != 0:
                return account
        return self.slot_account(slot_name)

    @property
    def isolation(self) -> tuple[str, ...]:
        """Namespaces of ordinary jobs: for folders and shared memory that are theirs alone and go when they do."""
        settings = self.settings
        allowed = self.host.mount_isolation
        if not settings.private_memory:
            allowed = tuple(name for name in allowed if name != "ipc")
        return allowed if settings.private_memory or settings.private_folders else ()

    def own_places(self, sandbox: Sandbox, needed: Collection[str],
                   ) -> tuple[Sequence[tuple[str, str]], Sequence[str]]:
        """Private folders of a run (MOUNT_UNDER_SCRATCH), and its memory to share (MOUNT_PRIVATE_DEV_SHM).

        Raises:
            OSError: see :meth:`Sandbox.private`.
        """
        if not self.isolation:
            return (), ()
        settings = self.settings
        shared = (SHARED_MEMORY,) if settings.private_memory and os.path.isdir(SHARED_MEMORY) else ()
        return sandbox.private(settings.private_folders, needed), shared

    # ---- manifests

    def read_manifest(self, digest: str) -> tuple[FileEntry, ...]:
        """A manifest that came as a blob.

        Raises:
            BadManifest: it is none.
        """
        try:
            entries = decode_parts(FileEntry, self.store.read(digest))
        except MalformedMessage as error:
            raise BadManifest(f"the manifest cannot be read: {error}") from None
        check_manifest(entries)
        return entries

    def write_manifest(self, entries: tuple[FileEntry, ...]) -> str:
        """Keep a manifest as a blob; its digest."""
        return str(self.store.put_bytes(encode_parts(entries)))
