"""What a native session does for the program of a standard-universe job: its files, environment and limits."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING

from condor_actors.classads import ClassAd
from condor_actors.cores.shadow.standard_run import (
    HomeFailed,
    StandardRun,
)
from condor_actors.cores.starter.run_spec import NULL, BadJob, read_spec
from condor_actors.machine.native.image import ImageDamaged, read_image
from condor_actors.machine.native.shadow import Task
from condor_actors.machine.standard.checkpoint_folder import CheckpointFolder, GoodImage
from condor_actors.messages.codes import HoldCode

if TYPE_CHECKING:
    from condor_actors.daemons.shadow.standard_shadow import StandardEdges

__all__ = ["Unusable", "make_task"]

INCREMENTS_FROM = 64 << 20
"""Bytes of a whole checkpoint from which on increments to it pay: a smaller one travels as the pieces that changed.  A
checkpoint server keeps whole ones."""


class Unusable(Exception):
    """The job cannot be run as it is."""

    def __init__(self, reason: str, code: int, subcode: int) -> None:
        super().__init__(reason)
        self.event = HomeFailed(reason, code, subcode)


def make_task(core: StandardRun, folder: CheckpointFolder, good: GoodImage | None, edges: StandardEdges,
              opened: list[int]) -> Task:
    """What the native session is to do for the program of a run.

    Args:
        core: the run.
        folder: the checkpoints of its job; good: the one that it goes on from.
        edges: what shadows of this universe share.
        opened: gets the descriptors that were opened for it; the caller closes them.

    Raises:
        Unusable: the job cannot be run as it is.
    """
    job = core.job
    try:
        spec = read_spec(job)
    except BadJob as error:
        raise Unusable(str(error), HoldCode.FAILED_TO_CREATE_PROCESS, 0) from None
    try:
        folder.make()
    except OSError as error:
        raise Unusable(f"{folder.path}: {error.strerror}", HoldCode.UNABLE_TO_OPEN_OUTPUT,
                        error.errno or 0) from None
    identity = edges.identity()
    environment = {**edges.environment, "_CONDOR_JOB_IWD": spec.iwd,
                   "_CONDOR_SLOT": core.order.slot_name.partition("@")[0], **spec.environment}
    return Task(
        program=spec.program, arguments=[spec.program, *spec.arguments], environment=environment,
        directory=spec.iwd, image=folder.image, journal_from_start=True,
        standard_fds=_standard_files(job, good, opened, identity),
        libraries=[folder for folder in edges.list_of("STANDARD_LIBRARY_FOLDERS")
                   if folder.startswith("/") and ":" not in folder],
        identity=identity, job_root=job.get_str("JobRoot") or None,
        increments=0 if edges.server() else INCREMENTS_FROM)


def _standard_files(job: ClassAd, good: GoodImage | None, opened: list[int],
                    identity: tuple[int, int] | None) -> tuple[int, int, int]:
    """Open them as the owner; a program that goes on finds them where it left them."""
    iwd = job.get_str("Iwd", "/")
    positions = _positions(good)
    found: dict[str, int] = {}

    def opening(number: int, attribute: str, code: int, flags: int) -> int:
        name = job.get_str(attribute) or NULL
        path = os.path.join(iwd, name)
        if number and path in found:
            return found[path]
        try:
            descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOCTTY, 0o644)
        except OSError as error:
            raise Unusable(f"{path}: {error.strerror}", code, error.errno or 0) from None
        opened.append(descriptor)
        if number:
            found[path] = descriptor
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            if identity is not None and number:
                os.fchown(descriptor, *identity)
            os.lseek(descriptor, positions.get(number, 0), os.SEEK_SET)
        return descriptor

    if not os.path.isdir(iwd):
        raise Unusable(f"{iwd}: no such directory", HoldCode.IWD_ERROR, errno.ENOENT)
    output = os.O_WRONLY | os.O_CREAT | (0 if good is not None else os.O_TRUNC)
    return (opening(0, "In", HoldCode.UNABLE_TO_OPEN_INPUT, os.O_RDONLY),
            opening(1, "Out", HoldCode.UNABLE_TO_OPEN_OUTPUT, output),
            opening(2, "Err", HoldCode.UNABLE_TO_OPEN_OUTPUT, output))


def _positions(good: GoodImage | None) -> dict[int, int]:
    """How far the standard files had been read and written when the checkpoint was taken."""
    if good is None:
        return {}
    with contextlib.suppress(ImageDamaged, OSError):
        image = read_image(good.newest)
        return {int(file.path.removeprefix("number ")): file.offset for file in image.files
                if file.kind == "standard" and file.path.startswith("number ")}
    return {}
