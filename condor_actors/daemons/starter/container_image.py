"""The image of a run's job: found, or fetched and unpacked as the job's account, before the job begins.

Theory: :mod:`condor_actors.machine.containers.unpack` is the program, for an image of a registry
:mod:`condor_actors.machine.containers.pull`; they belong to the run like the job's own processes.  A registry is
asked once what a name means; the job's ad keeps the answer, so that a job that moves runs the same image.
What it has made becomes the pool's own and is kept for the owner's next runs; two runs that need it at once
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
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from twisted.python.failure import Failure

from condor_actors.actors.workers import touching
from condor_actors.cores.starter import job_run as jr
from condor_actors.daemons.starter.own_program import ProgramEnd, room_bytes, run_own_program, sentence
from condor_actors.machine.containers import image_tree, pull, unpack
from condor_actors.machine.containers.image_store import Image
from condor_actors.machine.containers.pull import PullOrder
from condor_actors.machine.containers.unpack import ImageFacts, UnpackOrder
from condor_actors.machine.privilege.helper import process_helper
from condor_actors.machine.run.sandbox import UNPACKED
from condor_actors.messages.codes import HoldCode
from condor_actors.messages.credentials import FetchImageLogin, ImageLogin
from condor_actors.messages.envelope import Delivery, Refused
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.references.image_reference import DIGEST, BadReference, ImageReference

if TYPE_CHECKING:
    from condor_actors.cores.starter.container_spec import ContainerSpec
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["ContainerImage", "without_image"]

BLOCK_BYTES = 1 << 20
LOGIN_S = 200.0
"""How long the submit machine may take to ask a registry what a login is worth."""
LOGIN_FRESH_S = 30.0


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
        done: called when the image is there, with its digest when it is a registry's; what fails is told to the
            starter's core.
    """

    def __init__(self, starter: Starter, spec: ContainerSpec, entries: Sequence[FileEntry],
                 done: Callable[[str], None]) -> None:
        self._starter = starter
        self._spec = spec
        self._done = done
        self._entry = next((entry for entry in entries if entry.path == spec.name), None)
        self._below = any(entry.path.startswith(f"{spec.name}/") for entry in entries)
        self._owner, self._digest = starter.held.owner, ""
        self._said, self._unpacking = b"", False
        self._login, self._login_s = "", 0.0
        self._here = ""
        """The real path of a tar file that was not transferred."""
        self._since_s = 0.0
        """What the name means counts that was learned since then."""

    def find(self) -> None:
        """Begin."""
        starter = self._starter
        starter.context.defer_to_turn(starter.held.in_thread(self._look), self._looked)

    def _look(self) -> str:
        """What kind of image it is: ``registry``, ``tar`` with a digest, ``folder``, or ``here``: it did not come with
        the inputs (blocks)."""
        edges, sandbox = self._starter.edges, self._starter.sandbox
        if not edges.containers():
            raise OSError("this machine cannot run jobs in images: its kernel gives it no namespaces or no overlays")
        edges.images.load()
        if sandbox is None:
            raise OSError(errno.ENOENT, "the run is over")
        self._look_at_directory()
        if self._spec.reference is not None:
            return "registry"
        if self._below or (self._entry is not None and self._entry.kind == "directory"):
            folder = os.path.join(sandbox.path, self._spec.name)
            with sandbox.rights():
                self._starter.held.places.look_at(folder)
            self._starter.held.image = Image(path=folder)
            return "folder"
        if self._entry is not None:
            content = self._entry.inline
            self._digest = self._entry.digest if content is None else hashlib.sha256(content).hexdigest()
            return "tar"
        return "here"

    def _look_at_directory(self) -> None:
        """The job's directory, seen in the image if its files stay there, is none of the pool's (blocks)."""
        run = self._starter
        if run.spec.transfers:
            return
        real = run.held.places.open_folder(run.account or run.edges.host.own_account, run.spec.iwd)
        if run.edges.is_pools(real, run.account):
            raise image_tree.BadImage("its job's directory is the pool's own, or the pool's own folders are in it")
        run.held.directory = real

    def _look_here(self) -> str:
        """An image that was not transferred: what the job's account can see of it (blocks).  It is read to its end, and
        a file with holes may have one that is far away."""
        path, account = self._spec.image, self._starter.account or self._starter.edges.host.own_account
        if not path.startswith("/"):
            raise image_tree.BadImage("it did not come with the input files, and is no absolute path")
        if os.geteuid() == 0:
            raise image_tree.BadImage("this starter keeps root's rights and opens no image in their name: "
                                  "let it be transferred (transfer_container)")
        touching(path)
        real, descriptor = self._starter.held.places.open(account, path, os.O_RDONLY)
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            if self._starter.edges.is_pools(real, self._starter.account):
                raise image_tree.BadImage("the pool's own folders are in it, or it is in them")
            self._starter.held.image = Image(path=real)
            return "folder"
        if not stat.S_ISREG(mode):
            raise image_tree.BadImage("it is no folder and no plain file")
        self._digest, self._here = self._digest_of(descriptor, path), real
        return "tar"

    def _digest_of(self, descriptor: int, path: str) -> str:
        """The digest of an image here, for as long as the run wants it.

        Raises:
            BadImage: it is larger than an unpacked one may be.
            OSError: it cannot be read, or not in the time that an input has to be fetched.
        """
        settings = self._starter.edges.settings
        left, end_s = settings.image_limit_bytes, time.monotonic() + settings.run.fetch_s
        if os.fstat(descriptor).st_size > left:
            raise image_tree.BadImage(f"it has more than the {left >> 20:,} MB that an image may have "
                                      "(CONTAINER_IMAGE_LIMIT)")
        digest = hashlib.sha256()
        while left >= 0 and (block := os.read(descriptor, BLOCK_BYTES)):
            touching(path)
            if not self._alive():
                raise OSError(errno.ENOENT, "the run is over")
            if time.monotonic() > end_s:
                raise OSError(errno.ETIMEDOUT, f"it was not read in {settings.run.fetch_s:g} s")
            digest.update(block)
            left -= len(block)
        return digest.hexdigest()

    def _looked(self, kind: Any) -> None:
        if isinstance(kind, Failure):
            self._refuse(kind.value)
        elif kind == "here":
            self._starter.context.defer_to_turn(self._starter.edges.elsewhere(self._look_here), self._looked)
        elif kind == "folder":
            self._done("")
        elif kind == "registry":
            self._ask_registry()
        else:
            self._use()

    def _use(self) -> None:
        """The image of the digest: from the store, or unpacked."""
        starter, images = self._starter, self._starter.edges.images
        if not self._alive():
            return
        starter.held.image = images.find(self._owner, self._digest, starter.run_id)
        if starter.held.image is not None:
            self._done(self._digest if self._spec.reference is not None else "")
        elif images.begin(self._owner, self._digest, starter.context.as_turn(self._use)):
            self._unpacking = True
            starter.held.unpacks = self._digest
            if self._spec.reference is None:
                self._try(self._unpack)
            else:
                self._with_login(self._pull)

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except (OSError, ValueError, image_tree.BadImage) as error:
            own_fault = self._spec.reference is None or isinstance(error, ValueError)
            self._refuse(error, elsewhere=not own_fault or isinstance(error, BadReference))

    def _alive(self) -> bool:
        starter = self._starter
        return starter.sandbox is not None and starter.core.state is jr.StarterState.PREPARING

    def _refuse(self, error: object, *, elsewhere: bool = False) -> None:
        """There will be no image, here or anywhere."""
        self._settled()
        if self._alive():
            self._starter.decide(jr.PrepareFailed(
                f"Error from {self._starter.claim.slot_name}: Cannot use container image {self._spec.image}: {error}",
                0 if elsewhere else HoldCode.INVALID_DOCKER_IMAGE))

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
            here = os.fdopen(starter.held.places.take(self._here), "rb")
            here.seek(0)
            return here
        if entry.inline is None:
            return starter.held.blobs.open(entry.digest)
        stream = os.fdopen(os.memfd_create("image", os.MFD_CLOEXEC), "w+b")
        stream.write(entry.inline)
        stream.flush()
        return stream

    @contextlib.contextmanager
    def _folder(self) -> Iterator[int]:
        """An open empty folder that the job's account may fill.

        Raises:
            OSError: it cannot be made.
        """
        sandbox = self._starter.sandbox
        assert sandbox is not None
        target = os.path.join(sandbox.path, UNPACKED)
        with sandbox.rights():
            os.mkdir(target)
            os.chmod(target, 0o777)  # in a folder that nobody else enters
        folder = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            yield folder
        finally:
            os.close(folder)

    def _unpack(self) -> None:
        settings = self._starter.edges.settings
        with self._archive() as archive, self._folder() as folder:
            order = UnpackOrder(
                archive=archive.fileno(), folder=folder, account=self._starter.account,
                most_bytes=min(room_bytes(folder), settings.image_limit_bytes), most_s=settings.run.fetch_s)
            run_own_program(self._starter, unpack.__name__, order.encode(), (archive.fileno(), folder),
                              self._unpacked)

    # ---- registries

    def _ask_registry(self) -> None:
        """Which image the name means: the job knows, or another run has asked lately, or the registry is asked."""
        starter, spec, images = self._starter, self._spec, self._starter.edges.images
        if not self._alive() or spec.reference is None:
            return
        now_s = starter.context.now_s()
        self._since_s = self._since_s or (now_s if spec.asks_always else 1.0)
        self._digest = spec.digest or images.meaning(self._owner, spec.image, now_s, self._since_s)
        if self._digest:
            self._use()
        elif images.begin(self._owner, spec.image, starter.context.as_turn(self._ask_registry)):
            self._unpacking = True
            starter.held.unpacks = spec.image
            self._with_login(self._resolve)

    def _with_login(self, then: Callable[[], None]) -> None:
        """Go on with what the job's owner is known as at the registry, where the job wants that shown."""
        starter = self._starter
        is_fresh = self._login_s > 0 and starter.context.now_s() - self._login_s < LOGIN_FRESH_S
        if not self._spec.shows_login or is_fresh:
            self._try(then)
            return

        def answered(answer: Delivery) -> None:
            message: Any = answer.message
            if not self._alive():
                self._settled()
            elif isinstance(message, ImageLogin):
                self._login, self._login_s = message.authorization, starter.context.now_s()
                self._try(then)
            else:
                known = isinstance(message, Refused) and message.code not in ("busy", "internal")
                text = getattr(message, "text", "") or getattr(message, "reason", "")
                self._refuse(f"its owner's login: {text}", elsewhere=not known)

        starter.context.ask(starter.shadow, FetchImageLogin(run_id=starter.run_id), timeout_s=LOGIN_S, then=answered)

    def _resolve(self) -> None:
        reference = self._spec.reference
        assert reference is not None
        order = self._order(reference, tag=reference.tag)
        run_own_program(self._starter, pull.__name__, order.encode(), (), self._resolved)

    def _resolved(self, end: ProgramEnd) -> None:
        if not self._alive():
            self._settled()
        elif end.status != 0:
            self._refuse(end.reason or sentence(end.said), elsewhere=end.status in (pull.ELSEWHERE, -1))
        else:
            found = sentence(end.said)
            if not DIGEST.match(found):
                self._refuse(f"its registry was asked, and {found[:200]!r} came back")
                return
            self._digest = found
            self._starter.edges.images.learn(self._owner, self._spec.image, found, self._starter.context.now_s())
            self._settled()
            self._use()

    def _order(self, reference: ImageReference, *, tag: str = "", folder: int = -1) -> PullOrder:
        """What the puller is told.

        Raises:
            BadReference: this machine's settings cannot be used.
            ValueError: the registry may not be asked.
        """
        settings = self._starter.edges.settings
        places = settings.registries.places(reference.registry)
        return PullOrder(
            name=reference.name, places=places, tag=tag, digest=self._digest, folder=folder,
            account=self._starter.account, limit_bytes=settings.image_limit_bytes,
            room_bytes=room_bytes(folder) if folder >= 0 else 0, most_s=settings.registries.most_s,
            authorities=settings.run.authorities, proxy=settings.registries.proxy, login=self._login)

    def _pull(self) -> None:
        reference = self._spec.reference
        assert reference is not None
        with self._folder() as folder:
            order = self._order(reference, folder=folder)
            run_own_program(self._starter, pull.__name__, order.encode(), (folder,), self._unpacked)

    # ---- keeping

    def _unpacked(self, end: ProgramEnd) -> None:
        if not self._alive():
            self._settled()
        elif end.status != 0:
            elsewhere = self._spec.reference is not None and end.status in (pull.ELSEWHERE, -1)
            self._refuse(end.reason or sentence(end.said) or "it cannot be unpacked", elsewhere=elsewhere)
        else:
            self._said = end.said
            starter = self._starter
            starter.context.defer_to_turn(starter.held.in_thread(self._keep), self._kept)

    def _keep(self) -> Image:
        """What was unpacked becomes the pool's own, and is kept (blocks)."""
        starter = self._starter
        said = json.loads(self._said)
        facts = ImageFacts(environment=tuple(said["environment"]), entrypoint=tuple(said["entrypoint"]),
                           enter=tuple(said["enter"]), size_bytes=int(said["size_bytes"]))
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
            self._done(self._digest if self._spec.reference is not None else "")


def _take(folder: int) -> None:
    """Make everything in a folder root's, whose this process is."""
    for _, folders, files, here in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
        for name in (*folders, *files):
            os.chown(name, 0, 0, dir_fd=here, follow_symlinks=False)
    os.fchown(folder, 0, 0)
