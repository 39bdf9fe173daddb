"""The folder of a run that is handed to another batch system: inputs, script, and what the script writes down.

Theory: everything here runs in a worker, as the job's owner, and may be done twice: a crash in between leaves nothing
that the next attempt would trip over.  ``prepared`` is made when all the rest is on the disk.  Outputs are copied home,
and stay until the schedd has committed the end of the run.

``GRIDMANAGER_FOLDER`` may be one folder for all owners, and the names of runs are no secret: what lies under such a
name is believed, and its script handed to Slurm, only where the owner made it and nobody else can write or rename it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from condor_actors.actors.workers import open_plain, touching
from condor_actors.classads import ClassAd
from condor_actors.cores.output_destinations import OutputUrls
from condor_actors.cores.shadow.grid_events import FolderRecord
from condor_actors.cores.shadow.slurm_jobs import FENCE, make_script, read_record
from condor_actors.cores.starter.run_spec import RunSpec
from condor_actors.daemons.shadow.file_trouble import FileTrouble
from condor_actors.daemons.shadow.input_files import EXECUTABLE, STDIN, input_paths
from condor_actors.daemons.shadow.output_files import STDERR, STDOUT, OutputPlaces, write_whole
from condor_actors.durable import open_beside, sync_folder
from condor_actors.machine.run.tree_removal import remove_tree
from condor_actors.messages.references.urls import travels_as_url
from condor_actors.transfer.manifest import BadManifest

__all__ = ["bring_home", "prepare", "record_batch_id", "record_of", "remove", "withdraw"]

MOST_BYTES = 64 * 1024
BLOCK_BYTES = 1 << 20
_FILES = ("prepared", "batch_id", "began", "end", "death", "said")
INPUTS = ".inputs"


def _unsafe(folder: str, why: str) -> FileTrouble:
    return FileTrouble(f"the folder {folder} of the job is not safe: {why} (GRIDMANAGER_FOLDER: a folder of each "
                       "owner's own, or one for all with the sticky bit, mode 1777)")


def _check_place(folder: str) -> None:
    """Nobody else can rename what is in the folder of all runs.

    Raises:
        FileTrouble: another user can.
    """
    above = os.path.dirname(folder)
    facts = os.stat(above)
    if facts.st_uid not in (os.geteuid(), 0):
        raise _unsafe(folder, f"{above} belongs to the user id {facts.st_uid}")
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not facts.st_mode & stat.S_ISVTX:
        raise _unsafe(folder, f"others can rename what is in {above}, whose mode is {stat.S_IMODE(facts.st_mode):o}")


def _is_ours(folder: str) -> bool:
    """Whether the folder of a run was made by its owner, and nobody else can write there; of none, false.

    Raises:
        FileTrouble: something else is in its place.
    """
    try:
        facts = os.lstat(folder)
    except FileNotFoundError:
        return False
    if not stat.S_ISDIR(facts.st_mode):
        raise _unsafe(folder, "something else is in its place")
    if facts.st_uid != os.geteuid():
        raise _unsafe(folder, f"it belongs to the user id {facts.st_uid}")
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _unsafe(folder, f"others can write there, for its mode is {stat.S_IMODE(facts.st_mode):o}")
    return True


def prepare(folder: str, job: ClassAd, spec: RunSpec) -> bool:
    """Make the folder of a run; False: it is there already, from before a crash.

    Raises:
        FileTrouble: an input cannot be read, or the folder not be written.
    """
    try:
        touching(folder)
        os.makedirs(os.path.dirname(folder), 0o700, exist_ok=True)
        _check_place(folder)
        if _is_ours(folder) and os.path.exists(f"{folder}/prepared"):
            return False
        remove_tree(folder)
        os.mkdir(folder, 0o700)
        if spec.transfers:
            os.mkdir(f"{folder}/sandbox", 0o700)
            _put_inputs(folder, job)
        script = make_script(spec, folder, {
            "_CONDOR_SCRATCH_DIR": f"{folder}/sandbox" if spec.transfers else spec.iwd,
            "_CONDOR_JOB_IWD": f"{folder}/sandbox" if spec.transfers else spec.iwd, "CONDOR_ID": spec.job_id})
        write_whole(f"{folder}/script", script.encode(errors="surrogateescape"), 0o700)
        write_whole(f"{folder}/prepared", b"")
    except OSError as error:
        raise FileTrouble(f"cannot prepare {error.filename or folder}: (errno {error.errno}) {error.strerror}",
                          error.errno or 0) from None
    return True


def _put_inputs(folder: str, job: ClassAd) -> None:
    names: list[str] = []
    if OutputUrls(job):
        raise FileTrouble("cannot send output to a URL: nobody does that for a job in another batch system; let the "
                          "job do it")
    for source, path in input_paths(job):
        if travels_as_url(source):
            raise FileTrouble(f"cannot take input {source} along: nobody fetches URLs for a job in another batch "
                              "system; let the job do that")
        place = os.path.join(f"{folder}/sandbox", path)
        what = "cannot read executable" if path == EXECUTABLE else "cannot read input file"
        try:
            if os.path.isdir(source):
                _copy_tree(source, place)
                names += [path] if path else os.listdir(source)
            else:
                os.makedirs(os.path.dirname(place), exist_ok=True)
                _copy(source, place, 0o700 if path == EXECUTABLE else None)
                names.append(path)
        except OSError as error:
            raise FileTrouble(f"{what} {source}: (errno {error.errno}) {error.strerror}", error.errno or 0) from None
    write_whole(f"{folder}/{INPUTS}", "\0".join(_stamp(f"{folder}/sandbox", name) for name in names).encode(
        errors="surrogateescape"))


def _stamp(sandbox: str, name: str) -> str:
    """A name at the top of the sandbox, and when its content was last changed."""
    top = name.split("/", maxsplit=1)[0]
    return f"{top}\n{os.stat(os.path.join(sandbox, top)).st_mtime_ns}"


def _copy(source: str, place: str, mode: int | None) -> None:
    """Copy a file, waiting for nobody; it takes its place when it is whole."""
    with os.fdopen(open_plain(source), "rb") as incoming:
        facts = os.fstat(incoming.fileno())
        stream, fresh = open_beside(place, "copy")
        with stream:
            try:
                while block := incoming.read(BLOCK_BYTES):
                    touching(source)
                    stream.write(block)
                stream.flush()
                os.fchmod(stream.fileno(), stat.S_IMODE(facts.st_mode) & 0o777 if mode is None else mode)
                os.fdatasync(stream.fileno())
                os.rename(fresh, place)
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(fresh)
                raise
    sync_folder(os.path.dirname(place))


def _copy_tree(source: str, place: str) -> None:
    """Copy a folder with what is in it; links stay links, and what is neither file nor folder is left out."""
    waiting = [(source, place)]
    while waiting:
        source, place = waiting.pop()
        touching(source)
        os.makedirs(place, exist_ok=True)
        with os.scandir(source) as entries:
            for entry in entries:
                target = os.path.join(place, entry.name)
                if entry.is_symlink():
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(target)
                    os.symlink(os.readlink(entry.path), target)
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, target))
                elif entry.is_file(follow_symlinks=False):
                    _copy(entry.path, target, None)


def _write_through(source: str, target: str) -> None:
    """Write a file into a device or a pipe, which nothing replaces."""
    with os.fdopen(open_plain(source), "rb") as incoming, \
            os.fdopen(os.open(target, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY), "wb", 0) as outgoing:
        while block := incoming.read(BLOCK_BYTES):
            touching(target)
            while block:
                written = outgoing.write(block)
                if written is None:
                    raise BlockingIOError(errno.EAGAIN, "nobody reads it", target)
                block = block[written:]


# ---- while it lasts


def record_of(folder: str) -> FolderRecord:
    """What the folder says; nothing if it is not there or belongs to another user."""
    files: dict[str, str] = {}
    try:
        if not _is_ours(folder):
            return FolderRecord()
        _check_place(folder)
    except FileTrouble:
        return FolderRecord()
    with contextlib.suppress(OSError):
        os.listdir(folder)  # has a network file system look again
    for name in _FILES:
        with contextlib.suppress(OSError), os.fdopen(open_plain(f"{folder}/{name}"), "rb") as stream:
            if name == "said":
                stream.seek(max(0, os.fstat(stream.fileno()).st_size - 1000))
            files[name] = stream.read(MOST_BYTES).decode(errors="replace")
    return read_record(files, _claim(folder))


def _claim(folder: str) -> str:
    try:
        return os.readlink(f"{folder}/claim")
    except OSError:
        return ""


def record_batch_id(folder: str, batch_id: str, when_s: float) -> None:
    """Keep the number that the batch system answered, and when it did."""
    with contextlib.suppress(FileTrouble):  # its name finds it too
        write_whole(f"{folder}/batch_id", f"{batch_id} {int(when_s)}".encode())


def withdraw(folder: str) -> str:
    """Let no job of the run begin any more; which one has before, empty: none."""
    touching(folder)
    try:
        if not _is_ours(folder):
            return ""
    except FileTrouble:
        return ""
    with contextlib.suppress(OSError):
        os.symlink(FENCE, f"{folder}/claim")
    found = _claim(folder)
    return "" if found == FENCE else found


def remove(folder: str) -> None:
    """The run is settled.  A script that begins later finds no folder, and ends."""
    withdraw(folder)
    with contextlib.suppress(FileTrouble, OSError):
        if _is_ours(folder):
            remove_tree(folder)


# ---- the end


def bring_home(folder: str, job: ClassAd, spec: RunSpec, status: int) -> None:
    """Copy the outputs of the program to their places.

    Raises:
        FileTrouble: one is missing, or cannot be written.
    """
    if not spec.transfers:
        return
    sandbox, places = f"{folder}/sandbox", OutputPlaces(job)
    wanted = () if spec.when == "NEVER" or (spec.when == "ON_SUCCESS" and status != spec.success_code) else _outputs(
        folder, spec)
    streams = [name for name, path in ((STDOUT, spec.stdout), (STDERR, spec.stderr)) if path == name]
    for name in (*streams, *wanted):
        source = os.path.join(sandbox, name)
        try:
            touching(source)
            place = places.of(name if name in streams or spec.keeps_paths else os.path.basename(name))
            if place is None:
                continue
            if places.directory:
                os.makedirs(places.directory, 0o700, exist_ok=True)
            if not os.path.lexists(source):
                raise FileTrouble(f"the job has left no output file {name}", 2)
            _bring(source, place, sandbox)
        except BadManifest as error:
            raise FileTrouble(f"cannot bring output {name}: {error}") from None
        except OSError as error:
            raise FileTrouble(f"cannot write output file {error.filename or name}: (errno {error.errno}) "
                              f"{error.strerror}", error.errno or 0) from None


def _bring(source: str, place: str, sandbox: str) -> None:
    if not os.path.realpath(source).startswith(f"{os.path.realpath(sandbox)}/"):
        raise FileTrouble(f"cannot bring output {os.path.relpath(source, sandbox)}: on its "
                          "way is a link that leads out of the job's folder")
    if os.path.isdir(source):
        _copy_tree(source, place)
        return
    os.makedirs(os.path.dirname(place), exist_ok=True)
    target = os.path.realpath(place)
    if os.path.exists(target) and not os.path.isfile(target):  # a device, or a pipe: nothing takes its place
        _write_through(source, target)
        return
    _copy(source, target, None)


def _outputs(folder: str, spec: RunSpec) -> tuple[str, ...]:
    """The files that are brought besides output and error: those named, or all that are new or changed at the top."""
    if spec.outputs is not None:
        return tuple(os.path.normpath(name) for name in spec.outputs)
    sandbox = f"{folder}/sandbox"
    with open(f"{folder}/{INPUTS}", "rb") as stream:
        known = set(stream.read().decode(errors="surrogateescape").split("\0"))
    ours = {EXECUTABLE, STDIN, STDOUT, STDERR}
    return tuple(sorted(
        name for name in os.listdir(sandbox)
        if name not in ours and not os.path.isdir(f"{sandbox}/{name}") and _fresh(sandbox, name, known)))


def _fresh(sandbox: str, name: str, known: set[str]) -> bool:
    with contextlib.suppress(OSError):
        return _stamp(sandbox, name) not in known
    return True
