"""The image of a run's job: found, or unpacked as the job's account, before the job begins.

Theory: :mod:`condor_actors.machine.containers.unpack` is the program; it belongs to the run like the job's own
processes.  What it has made becomes the pool's own and is kept for the owner's next runs; two runs that need it at once
unpack it once.  A folder is used where it is: in the scratch directory when it was transferred, else where the job
says, as far as the job's account can see it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import stat
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from twisted.python.failure import Failure

from condor_actors.cores.starter import job_run as jr
from condor_actors.machine.containers import unpack
from condor_actors.machine.containers.image_store import Image
from condor_actors.machine.containers.unpack import REPORT_BYTES, ImageFacts, UnpackOrder
from condor_actors.machine.privilege.helper import process_helper
from condor_actors.machine.run.launch import Ended, LaunchPlan
from condor_actors.machine.run.process_tree import MARK
from condor_actors.machine.run.users import open_as
from condor_actors.messages.codes import HoldCode
from condor_actors.messages.manifest import FileEntry

if TYPE_CHECKING:
    from condor_actors.cores.starter.container_spec import ContainerSpec
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["ContainerImage", "without_image"]

UNPACKED = ".condor_image"
MEMORY_BYTES = 4 << 30
OPEN_FILES = 1024
BLOCK_BYTES = 1 << 20
PROGRAM = "import sys; sys.path[:] = {path!r}; import runpy; runpy.run_module({name!r}, run_name='__main__')"
"""It finds its modules where this process does."""


def without_image(entries: tuple[FileEntry, ...], spec: ContainerSpec | None) -> tuple[FileEntry, ...]:
    """The entries but for an image in a tar file, which is unpacked from where it was received."""
    if spec is None:
        return entries
    return tuple(entry for entry in entries if entry.path != spec.name or entry.kind != "file" or entry.url)


class ContainerImage:
    """Finds or makes the image of one run.

    Args:
        starter: whose run it is; it has its sandbox.
        spec: of the image.
        entries: of the manifest.
        done: called when the image is there; what fails is told to the starter's core.
    """

    def __init__(self, starter: Starter, spec: ContainerSpec, entries: Sequence[FileEntry],
                 done: Callable[[], None]) -> None:
        self._starter = starter
        self._spec = spec
        self._done = done
        self._entry = next((entry for entry in entries if entry.path == spec.name), None)
        self._below = any(entry.path.startswith(f"{spec.name}/") for entry in entries)
        self._owner, self._digest = starter.held.owner, ""
        self._said, self._unpacking = b"", False

    def find(self) -> None:
        """Begin."""
        starter = self._starter
        starter.context.defer_to_turn(starter.held.in_thread(self._look), self._looked)

    def _look(self) -> str:
        """What kind of image it is; ``tar`` with a digest, or ``folder`` (blocks)."""
        edges, sandbox = self._starter.edges, self._starter.sandbox
        if not edges.containers():
            raise OSError("this machine cannot run jobs in images: its kernel gives it no namespaces or no overlays")
        edges.images.load()
        if sandbox is None:
            raise OSError(errno.ENOENT, "the run is over")
        if self._below or (self._entry is not None and self._entry.kind == "directory"):
            self._starter.held.image = Image(path=os.path.join(sandbox.path, self._spec.name))
            return "folder"
        if self._entry is not None:
            content = self._entry.inline
            self._digest = self._entry.digest if content is None else hashlib.sha256(content).hexdigest()
            return "tar"
        return self._look_here()

    def _look_here(self) -> str:
        """An image that was not transferred: what the job's account can see of it."""
        path, account = self._spec.image, self._starter.account or self._starter.edges.host.own_account
        if not path.startswith("/"):
            raise unpack.BadImage("it did not come with the input files, and is no absolute path")
        if os.geteuid() == 0:
            raise unpack.BadImage("this starter keeps root's rights and opens no image in their name: "
                                  "let it be transferred (transfer_container)")
        descriptor = open_as(account, path, os.O_RDONLY)
        try:
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                self._starter.held.image = Image(path=path)
                return "folder"
            digest = hashlib.sha256()
            while block := os.read(descriptor, BLOCK_BYTES):
                digest.update(block)
            self._digest = digest.hexdigest()
            return "tar"
        finally:
            os.close(descriptor)

    def _looked(self, kind: Any) -> None:
        if isinstance(kind, Failure):
            self._refuse(kind.value)
        elif kind == "folder":
            self._done()
        else:
            self._use()

    def _use(self) -> None:
        """The image of the digest: from the store, or unpacked."""
        starter, images = self._starter, self._starter.edges.images
        if not self._alive():
            return
        starter.held.image = images.find(self._owner, self._digest, starter.run_id)
        if starter.held.image is not None:
            self._done()
        elif images.begin(self._owner, self._digest, starter.context.as_turn(self._use)):
            self._unpacking = True
            starter.held.unpacks = self._digest
            try:
                self._unpack()
            except (OSError, unpack.BadImage) as error:
                self._refuse(error)

    def _alive(self) -> bool:
        starter = self._starter
        return starter.sandbox is not None and starter.core.state is jr.StarterState.PREPARING

    def _refuse(self, error: object) -> None:
        self._settled()
        if self._alive():
            where = self._starter.claim.slot_name
            self._starter.decide(jr.PrepareFailed(
                f"Error from {where}: Cannot use container image {self._spec.image}: {error}",
                HoldCode.INVALID_DOCKER_IMAGE))

    def _settled(self) -> None:
        if self._unpacking:
            self._unpacking = False
            self._starter.held.settle_image()

    # ---- unpacking

    def _archive(self) -> BinaryIO:
        """The tar file, open.

        Raises:
            OSError: it cannot be opened.
        """
        entry, starter = self._entry, self._starter
        if entry is None:
            account = starter.account or starter.edges.host.own_account
            return os.fdopen(open_as(account, self._spec.image, os.O_RDONLY), "rb")
        if entry.inline is None:
            return starter.held.blobs.open(entry.digest)
        stream = os.fdopen(os.memfd_create("image", os.MFD_CLOEXEC), "w+b")
        stream.write(entry.inline)
        stream.flush()
        return stream

    def _unpack(self) -> None:
        sandbox = self._starter.sandbox
        assert sandbox is not None
        target = os.path.join(sandbox.path, UNPACKED)
        with sandbox.rights():
            os.mkdir(target)
            os.chmod(target, 0o777)  # in a folder that nobody else enters
        with contextlib.ExitStack() as opened:
            archive = opened.enter_context(self._archive())
            folder = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            opened.callback(os.close, folder)
            self._start(archive.fileno(), folder)

    def _room_bytes(self, folder: int) -> int:
        disk = os.fstatvfs(folder)
        return min(disk.f_bavail * disk.f_frsize, self._starter.edges.settings.image_limit_bytes)

    def _start(self, archive: int, folder: int) -> None:
        starter = self._starter
        edges, claim = starter.edges, starter.claim
        order = UnpackOrder(
            archive=archive, folder=folder, account=starter.account, most_bytes=self._room_bytes(folder),
            most_s=edges.settings.run.fetch_s).encode()
        code = PROGRAM.format(path=sys.path, name=unpack.__name__)
        reading, asking = os.pipe2(os.O_CLOEXEC)
        telling, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        processes = starter.processes = starter.held.processes = edges.processes_for(claim, starter.run_id)
        over = starter.context.as_turn(self._unpacked)

        def ended(how: Ended) -> None:
            processes.leader_ended()
            self._said = _told(telling)
            over(how.exit_code == 0, f"unpacking it ended by signal {how.exit_signal}" if how.exit_signal >= 0 else "")

        def failed(reason: str) -> None:
            processes.leader_ended()
            os.close(telling)
            over(False, reason)

        try:
            os.write(asking, order)
            launched = edges.launcher.launch(LaunchPlan(
                program=sys.executable, arguments=("-I", "-c", code), directory="/",
                environment={MARK: f"{edges.root.path}:{starter.run_id}"}, stdin=reading, stdout=edges.host.null,
                account=None if os.geteuid() == 0 else starter.account, keep=(archive, folder), stderr=writing,
                cgroups=claim.cgroup.directories if claim.cgroup is not None else (),
                limits={"core": "0", "nofile": str(OPEN_FILES), "as": str(MEMORY_BYTES)}), lambda: None, failed, ended)
            processes.leader(launched.pid)
        except BaseException:
            os.close(telling)
            raise
        finally:
            for descriptor in (reading, asking, writing):
                os.close(descriptor)

    def _unpacked(self, well: bool, reason: str) -> None:
        if not self._alive():
            self._settled()
        elif not well:
            said = "".join(each if each.isprintable() else " " for each in self._said.decode(errors="replace"))
            self._refuse(reason or said.strip()[:2000] or "it cannot be unpacked")
        else:
            starter = self._starter
            starter.context.defer_to_turn(starter.held.in_thread(self._keep), self._kept)

    def _keep(self) -> Image:
        """What was unpacked becomes the pool's own, and is kept (blocks)."""
        starter = self._starter
        said = json.loads(self._said)
        facts = ImageFacts(environment=tuple(said["environment"]), entrypoint=tuple(said["entrypoint"]),
                           size_bytes=int(said["size_bytes"]))
        if starter.sandbox is None:
            raise OSError(errno.ENOENT, "the run is over")
        path, account = os.path.join(starter.sandbox.path, UNPACKED), starter.account
        if account is not None:
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                helper = process_helper()
                if helper is not None:
                    helper.take(account.uid, folder)
                else:
                    _take(folder)
            finally:
                os.close(folder)
        return starter.edges.images.place(path, self._owner, self._digest, facts)

    def _kept(self, image: Any) -> None:
        if isinstance(image, Failure):
            self._refuse(image.value)
            return
        starter = self._starter
        gone = starter.edges.images.add(image, starter.run_id)
        starter.edges.remove_folders(gone)
        starter.held.image = image
        if not self._alive():
            starter.held.drop_image()
        self._settled()
        if self._alive():
            self._done()


def _take(folder: int) -> None:
    """Make everything in a folder root's, whose this process is."""
    for _, folders, files, here in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
        for name in (*folders, *files):
            os.chown(name, 0, 0, dir_fd=here, follow_symlinks=False)
    os.fchown(folder, 0, 0)


def _told(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, REPORT_BYTES)
    except BlockingIOError:
        return b""
    finally:
        os.close(descriptor)
