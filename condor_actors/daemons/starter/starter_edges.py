"""What the starter host and its runs need of this machine.

Theory: these are the process's, not an actor's, and outlive any actor that is built anew: the stores, the launcher,
and what each run holds here (:class:`~condor_actors.daemons.starter.run_resources.RunResources`).
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from condor_actors.actors.workers import InWorker, at_once
from condor_actors.classads import Expr
from condor_actors.config.settings import setting
from condor_actors.cores.starter.disk_bound import DiskSettings
from condor_actors.cores.starter.hooks import HookSettings
from condor_actors.cores.starter.run_account import DomainTrust
from condor_actors.cores.starter.run_spec import BadJob, RunSettings, RunSpec
from condor_actors.cores.trace_spans import TellSpan
from condor_actors.daemons.starter.chirp_service import ChirpService
from condor_actors.daemons.starter.container_launch import isolation_of
from condor_actors.daemons.starter.disk_watch import DiskWatch
from condor_actors.daemons.starter.run_resources import RunResources
from condor_actors.machine.containers.checked_places import BY_NAME
from condor_actors.machine.containers.image_store import ImageStore
from condor_actors.machine.containers.probe import containers_work
from condor_actors.machine.run.cgroups import Cgroups, DyingGroups, JobCgroup
from condor_actors.machine.run.confinement import NAMESPACES, reachable
from condor_actors.machine.run.launch import Launcher, LaunchPlan
from condor_actors.machine.run.plugin_query import PluginQuery
from condor_actors.machine.run.run_host import RunHost
from condor_actors.machine.run.run_processes import RunProcesses
from condor_actors.machine.run.sandbox import Sandbox
from condor_actors.machine.run.users import Account, with_group
from condor_actors.machine.standard.library_cache import LibraryCache
from condor_actors.messages.codec import MalformedMessage, decode_parts, encode_parts
from condor_actors.messages.envelope import Address
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.references.image_reference import Registry, check_proxy, mirrors_of, registry_for
from condor_actors.messages.run import ActivateClaim
from condor_actors.transfer.manifest import BadManifest, check_manifest
from condor_actors.transfer.owned_blobs import OwnedBlobs
from condor_actors.transfer.service import BulkService

if TYPE_CHECKING:
    from condor_actors.daemons.starter.claim_registry import ActiveClaim

__all__ = ["LOOPBACK", "RegistrySettings", "StarterEdges", "StarterSettings"]

MANIFEST_LIMIT = 1000
SHARED_MEMORY, MESSAGE_QUEUES = "/dev/shm", "/dev/mqueue"
LOOPBACK = "127.0.0.1"
REMOVED_TOGETHER_S = 0.1


@attrs.frozen(kw_only=True)
class Volume:
    """A folder or file of the machine that is seen in images (DOCKER_MOUNT_VOLUMES).

    Attributes:
        source, target: its path here, and there.
        condition: which jobs see it; None: all.
    """

    source: str
    target: str
    read_only: bool = False
    condition: Expr | None = None


@attrs.frozen(kw_only=True)
class RegistrySettings:
    """Where images may be fetched from.

    Attributes:
        allowed: CONTAINER_REGISTRIES; mirrors: CONTAINER_REGISTRY_MIRRORS; proxy: CONTAINER_REGISTRY_PROXY.
        most_s: CONTAINER_IMAGE_TIME.
    """

    allowed: tuple[str, ...] = ("*",)
    mirrors: tuple[str, ...] = ()
    proxy: str = ""
    most_s: float = setting("CONTAINER_IMAGE_TIME")

    def places(self, name: str) -> tuple[Registry, ...]:
        """Whom to ask for what is in the registry with this name: its mirrors, and last the registry.

        Raises:
            BadReference: the proxy or a mirror cannot be used.
            ValueError: it may not be asked.
        """
        check_proxy(self.proxy)
        registry = registry_for(name, self.allowed)
        if registry is None:
            raise ValueError(f"this machine fetches images from {', '.join(self.allowed) or 'no registry'} only "
                             "(CONTAINER_REGISTRIES)")
        return (*mirrors_of(name, self.mirrors), registry)


@attrs.frozen(kw_only=True)
class StarterSettings:
    """What a reconfiguration may change.

    Attributes:
        run: of every run.
        memory_policy: CGROUP_MEMORY_LIMIT_POLICY.
        allow_owner: whether jobs may run as their owners (STARTER_ALLOW_RUNAS_OWNER); trust: of which domain.
        disk: how much disk runs may use.
        private_folders, private_memory: what is a run's alone.
        confine: the parts of JOB_CONFINEMENT that are in force; read_only: JOB_READ_ONLY.
        namespaces: whether jobs may have any.
        hide_devices: whether jobs cannot open others' devices (STARTER_HIDE_GPU_DEVICES).
        image_limit_bytes: CONTAINER_IMAGE_LIMIT; registries: where images are fetched from.
        volumes: what the administrator mounts in images.
        hooks: programs of the site around runs; wrapper: the one that starts each job (USER_JOB_WRAPPER); empty: none.
        hidden: the pool's own folders, which a job does not see unless it has its owner's account.
    """

    run: RunSettings
    memory_policy: str
    hide_devices: bool
    allow_owner: bool = False
    trust: DomainTrust = attrs.field(factory=DomainTrust)
    disk: DiskSettings = attrs.field(factory=DiskSettings)
    private_folders: tuple[str, ...] = ()
    private_memory: bool = False
    confine: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    namespaces: bool = True
    hidden: tuple[str, ...] = ()
    image_limit_bytes: int = 20 << 30
    hooks: HookSettings = attrs.field(factory=HookSettings)
    wrapper: str = ""
    registries: RegistrySettings = attrs.field(factory=RegistrySettings)
    volumes: tuple[Volume, ...] = ()


def _unrecorded(starter: Any) -> None:
    """A run is over, and no record of it is kept."""


@attrs.define(eq=False, kw_only=True)
class StarterEdges:
    """What starters touch, and what they share: claims, settings, the machine.

    Attributes:
        reactor: timers and descriptors; in_thread: runs a function where it does not hold the actors up.
        elsewhere: runs one that touches files outside of EXECUTE, and gives it up when they do not answer.
        log: of the process.
        host: this machine; root: the directory of all sandboxes; cgroups: None where none are used.
        libraries: contents of files that runs of the standard universe have read; None: none are kept.
        store: content that runs have fetched; bulk: transfers; launcher: starts programs.
        startd: where the startd listens; node: where shadows reach this process.
        settings: the configuration's.
        slot_account: as whom jobs of a slot run.
        own_hosts: the names of this machine.
        service_ports: at which address ports lead to the services of jobs, and the least and the greatest (0: any).
        runs: what each run holds, by run id.
        images: unpacked ones; containers: whether jobs can run in them here (blocks).
        chirp: where jobs reach their starters.
        disk: watches what runs write below EXECUTE.
        plugins: what transfers files by other URLs than those of http and https.
        leaving: directories that are being removed; dying_groups: control groups likewise.
        at_rest: called when the last run is gone, while the process ends; None: it does not.
        tell_span: takes the spans of jobs' traces; None: there are none.
        run_over: hears of the end of each run, from its starter.
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
    elsewhere: InWorker = at_once
    own_hosts: Callable[[], tuple[str, ...]] = tuple
    service_ports: Callable[[], tuple[str, int, int]] = lambda: (LOOPBACK, 0, 0)
    manifest_limit: int = MANIFEST_LIMIT
    runs: dict[str, RunResources] = attrs.field(factory=dict)
    libraries: LibraryCache | None = None
    images: ImageStore = attrs.field(default=attrs.Factory(lambda self: ImageStore(self.root.path, 0), takes_self=True))
    containers: Callable[[], bool] = containers_work
    chirp: ChirpService = attrs.field(default=attrs.Factory(lambda self: ChirpService(self.reactor, self.log),
                                                            takes_self=True))
    disk: DiskWatch = attrs.field(default=attrs.Factory(DiskWatch, takes_self=True))
    plugins: PluginQuery = attrs.field(default=attrs.Factory(lambda self: PluginQuery(self.log, self.in_thread),
                                                             takes_self=True))
    leaving: dict[str, Deferred[None]] = attrs.field(factory=dict)
    dying_groups: DyingGroups = attrs.field(default=attrs.Factory(lambda self: DyingGroups(self.reactor),
                                                                  takes_self=True))
    at_rest: Callable[[], None] | None = None
    tell_span: TellSpan | None = None
    run_over: Callable[[Any], None] = _unrecorded
    _to_remove: list[Sandbox] = attrs.field(factory=list, init=False)

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
                self.dying_groups.drop(self.cgroups.group(name))
        else:
            self.host.kill_marked(f"{self.root.path}:")
        for path in self.root.leftovers():
            self.host.remove_tree(path)

    def group_of(self, slot_name: str) -> JobCgroup | None:
        """The control group of a slot, for its next claim; None: none are used."""
        if self.cgroups is None:
            return None
        return self.dying_groups.spared(self.cgroups.group(slot_name.partition("@")[0]))

    def sweep_directories(self) -> None:
        """Remove directories that no run uses."""
        used = set(self.leaving) | {held.sandbox.path for held in self.runs.values() if held.sandbox is not None}
        for path in self.root.leftovers(used):
            self.host.remove_tree(path)

    def remove(self, sandbox: Sandbox) -> None:
        """Take a scratch directory away beside the reactor, with others that end now: the disk's journal may hold an
        ``rmdir`` up for long, and a thread costs more than the directory."""
        self.leaving[sandbox.path] = Deferred()
        self._to_remove.append(sandbox)
        if len(self._to_remove) == 1:
            self.reactor.callLater(REMOVED_TOGETHER_S, self._remove_together)

    def _remove_together(self) -> None:
        sandboxes, self._to_remove = self._to_remove, []

        def removed(results: Any) -> None:
            for number, sandbox in enumerate(sandboxes):
                result = results if isinstance(results, Failure) else results[number]
                if result is not True:
                    self.log.warn("{path} cannot be removed yet: {why}", path=sandbox.path, why=result)
                self.leaving.pop(sandbox.path).callback(None)

        self.in_thread(lambda: [_removed(sandbox) for sandbox in sandboxes]).addBoth(removed)

    def remove_folders(self, paths: Sequence[str]) -> None:
        """Take folders away that nobody uses any more, beside the reactor."""
        if paths:
            self.in_thread(lambda: [self.host.remove_tree(path) for path in paths]).addErrback(
                lambda why: self.log.warn("{paths} cannot be removed: {why}", paths=paths, why=why.value))

    # ---- processes

    def processes_for(self, claim: ActiveClaim, run_id: str) -> RunProcesses:
        """The processes of a run to be started."""
        return self.host.processes(claim.cgroup, f"{self.root.path}:{run_id}", self._leaders)

    def _leaders(self) -> list[int]:
        return [held.processes.pid for held in self.runs.values() if held.processes is not None and held.processes.pid]

    def expect(self, owner: str) -> None:
        """Jobs of a user (``alice@dom``) may come: have the user database asked in time."""
        if self.settings.allow_owner and self.host.may_change_user():
            with contextlib.suppress(OSError):
                self.host.account(owner.partition("@")[0])

    def account_for(self, spec: RunSpec, claim: ActiveClaim) -> Account | None:
        """As whom a run is run, and with which of the account's groups; None: as this process's user.

        Raises:
            OSError: the slot's account cannot be used.
            BadJob: it is not in the group that the job is to have.
        """
        account = self._account_of(spec, claim) if self.host.may_change_user() else None
        if not spec.primary_group:
            return account
        try:
            found = with_group(account or self.host.own_account, spec.primary_group)
        except LookupError as error:
            raise BadJob(f"Error from {claim.slot_name}: {error} (primary_unix_group)") from None
        if account is None and found.primary != os.getegid():
            raise BadJob(f"Error from {claim.slot_name}: this machine runs every job as {found.name}, with the group "
                         "of the pool's own processes, and cannot take another one (primary_unix_group)")
        return found if account is not None else None

    def _account_of(self, spec: RunSpec, claim: ActiveClaim) -> Account:
        settings = self.settings
        if settings.allow_owner and spec.run_as_owner is not False:
            if settings.trust.covers(spec.domain, claim.hosts, self.own_hosts()):
                account = self.host.account(spec.owner)
                if account is not None and account.uid != 0:
                    return attrs.evolve(account, is_owners=True)
            elif spec.domain == settings.trust.domain:
                self.log.info("{owner}@{domain} is no user of this machine on the word of {hosts}, which is not in "
                              "that domain (TRUST_UID_DOMAIN)", owner=spec.owner, domain=spec.domain,
                              hosts=", ".join(claim.hosts) or "this machine")
        return self.slot_account(claim.slot_name)

    def isolation(self, spec: RunSpec) -> tuple[str, ...]:
        """Namespaces of an ordinary job; empty: it shares all with the machine."""
        if spec.container is not None:
            return isolation_of(spec)
        settings, allowed = self.settings, self.host.mount_isolation
        if not allowed or not settings.namespaces:
            return ()
        found = [NAMESPACES[part] for part in settings.confine if part in NAMESPACES]
        if settings.private_memory:
            found.append("ipc")
        if not spec.networking:
            found.append("net")
        if found or settings.private_folders or spec.own_folders or set(settings.confine) & {"read_only", "sandboxes"}:
            found.append("mount")
        return ("user", *found) if found and "user" in allowed else tuple(found)

    def make_places(self, sandbox: Sandbox, spec: RunSpec) -> None:
        """Make the private folders of a run (MOUNT_UNDER_SCRATCH), while nobody else is in its scratch directory.

        Raises:
            OSError: see :meth:`Sandbox.private`.
        """
        if spec.container is None and self.isolation(spec) and (self.settings.private_folders or spec.own_folders):
            directory = sandbox.path if spec.transfers else spec.iwd
            self._private(sandbox, spec, (sandbox.path, directory, os.path.join(sandbox.path, spec.program)))

    def _private(self, sandbox: Sandbox, spec: RunSpec, needed: Collection[str]) -> list[tuple[str, str]]:
        """The folders that a run has of its own: of the settings' choice and the job's.

        A job may have any folder so: its processes get no more rights by what they execute, whatever that finds there.

        Raises:
            OSError: one that the job wants cannot be had.
        """
        made = sandbox.private((*self.settings.private_folders, *spec.own_folders), needed)
        for wanted in spec.own_folders:
            place = f"{os.path.realpath(wanted)}/"
            if not any(place.startswith(f"{target}/") for _, target in made):
                raise OSError(f"the job cannot have a {wanted} of its own (mount_under_scratch): it is no folder of "
                              "this machine, or the job's own files are in it")
        return list(made)

    def confined(self, plan: LaunchPlan, spec: RunSpec, sandbox: Sandbox, devices: Sequence[str] = (),
                 more: Sequence[str] = ()) -> LaunchPlan:
        """The launch of an ordinary job, shut in as far as the settings want and the machine allows.

        Of ``devices``, which are others', it can open none; what ``more`` names it sees as it sees its program.  It has
        folders of its own (MOUNT_UNDER_SCRATCH), memory to share of its own (MOUNT_PRIVATE_DEV_SHM), and sees of the
        rest what JOB_CONFINEMENT leaves.

        Raises:
            OSError: see :meth:`Sandbox.private`; or the job wants no network, and the machine cannot take it away.
        """
        settings, isolate = self.settings, self.isolation(spec)
        if not spec.networking and "net" not in isolate:
            raise OSError("this machine cannot run a job without a network")
        if spec.own_folders and not isolate:
            raise OSError("this machine cannot give a job folders of its own (mount_under_scratch)")
        if not isolate:
            return attrs.evolve(plan, filter=self.filter_of(isolate))
        needed = (sandbox.path, plan.directory, plan.program, *more)
        binds = self._private(sandbox, spec, needed) if settings.private_folders or spec.own_folders else []
        hide: tuple[str, ...] = ()
        if "sandboxes" in settings.confine:  # whatever the job names as its program or its directory
            hide = (self.root.path,)
            binds.insert(0, (sandbox.path, sandbox.path))
        if self.hides_pool(plan.account):  # daemons would take it for a user of this machine
            hide += reachable(settings.hidden, needed if plan.account is None else (sandbox.path, *more))
        shared = (SHARED_MEMORY,) if settings.private_memory and os.path.isdir(SHARED_MEMORY) else ()
        if settings.private_memory and os.path.isdir(MESSAGE_QUEUES):  # the machine's; its own it finds by name
            hide += (MESSAGE_QUEUES,)
        shut: tuple[str, ...] = ()
        if "read_only" in settings.confine:
            own = () if self.host.may_change_user() else (self.host.own_account.home,)
            shut = reachable(settings.read_only, own if spec.transfers else (*own, *needed))
            if self.root.path not in hide:
                binds.insert(0, (sandbox.path, sandbox.path))
        masked = devices if "mount" in isolate and settings.hide_devices else ()
        checked = {source: BY_NAME for source, _ in binds}  # what a run before has left there may be a link
        return attrs.evolve(plan, isolate=isolate, binds=binds, checked=checked, tmpfs=shared, read_only=shut,
                            hide=hide, shut_devices=masked, filter=self.filter_of(isolate))

    def hides_pool(self, account: Account | None) -> bool:
        """Whether the pool's own folders are none of a job's, which has this account."""
        return "sandboxes" in self.settings.confine and not (account is not None and account.is_owners)

    def is_pools(self, place: str, account: Account | None) -> bool:
        """Whether a folder is, lies in, or has in it what a job with a slot's account does not see: scratch directories
        of others, and the pool's own folders."""
        if account is None or not self.hides_pool(account):
            return False
        real = f"{os.path.realpath(place).rstrip('/')}/"
        return any(real.startswith(own) or own.startswith(real) for each in (self.root.path, *self.settings.hidden)
                   if (own := f"{os.path.realpath(each)}/"))

    def filter_of(self, isolate: Sequence[str]) -> str:
        """The filter of system calls: among its own processes a job may trace."""
        if "system_calls" not in self.settings.confine:
            return ""
        return "job-traceable" if "pid" in isolate else "job"

    def limits(self, spec: RunSpec, claim: ActiveClaim, account: Account) -> dict[str, str]:
        """What the kernel limits for each process of a job, and the number of them where no control group does."""
        found = {"core": "0" if spec.core_kib is None else str(spec.core_kib * 1024),
                 "nofile": self.host.open_files_limit()}
        if spec.stack_bytes is not None:
            most = resource.getrlimit(resource.RLIMIT_STACK)[1]
            found["stack"] = (f"{spec.stack_bytes}:unlimited" if most == resource.RLIM_INFINITY else
                              f"{min(spec.stack_bytes, most)}:{most}")
        processes = self.settings.run.max_processes
        if processes and (claim.cgroup is None or not claim.cgroup.counts_processes):
            found["nproc"] = self.host.process_limit(account, processes)
        return found

    # ---- manifests

    @staticmethod
    def read_manifest(blobs: OwnedBlobs, digest: str) -> tuple[FileEntry, ...]:
        """A manifest that came as a blob.

        Raises:
            BadManifest: it is none.
        """
        try:
            entries = decode_parts(FileEntry, blobs.read(digest))
        except MalformedMessage as error:
            raise BadManifest(f"the manifest cannot be read: {error}") from None
        check_manifest(entries)
        return entries

    @staticmethod
    def write_manifest(blobs: OwnedBlobs, entries: tuple[FileEntry, ...]) -> str:
        """Keep a manifest as a blob; its digest."""
        return blobs.put_bytes(encode_parts(entries))


def _removed(sandbox: Sandbox) -> bool | Exception:
    """Whether it is gone, or why not: one that resists does not keep the others."""
    try:
        return sandbox.remove()
    except Exception as error:  # noqa: BLE001 - said in the log; a sweep tries again
        return error
