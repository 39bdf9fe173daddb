"""A run at another schedd: submitted there with its input, let go once, followed, and its output fetched.

Theory: the run's folder has the numbers that were reserved for it there (``reserved``, each before its job is
submitted) and the claim, a link that names the one job that was, or is about to be, let go.  Only jobs of those numbers
that carry the run's name are the run's.  Whatever breaks off is done again from its beginning: a job that is there
already is found by its number, its input is sent again, and it is let go; any other waits forever for its input and
is removed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from condor_actors.actors.workers import NoAnswer, open_plain, touching
from condor_actors.classads import ClassAd
from condor_actors.cores.shadow import grid_events as gr
from condor_actors.cores.shadow.condor_jobs import (
    CONDOR,
    STDERR,
    STDOUT,
    RemoteJob,
    home_of,
    job_number,
    record_of,
    remote_ad,
    remote_problems,
)
from condor_actors.cores.shadow.slurm_jobs import FENCE, batch_name
from condor_actors.cores.starter.run_spec import BadJob, RunSpec
from condor_actors.daemons.shadow.file_trouble import FileTrouble
from condor_actors.daemons.shadow.grid import grid_folder
from condor_actors.daemons.shadow.grid.grid_manager import GridEdges
from condor_actors.daemons.shadow.grid.grid_resource import file_trouble, grid_spec, log_trouble
from condor_actors.daemons.shadow.output_files import OutputPlaces, write_whole
from condor_actors.durable import open_beside, sync_folder
from condor_actors.machine.grid.remote_schedd import Line, ScheddFailed
from condor_actors.messages.codes import HoldCode
from condor_actors.messages.references.grid_resources import schedd_of
from condor_actors.numerals import numeral
from condor_actors.transfer.manifest import BadManifest, check_path
from condor_actors.transfer.spool_files import inputs_of, sent_names

__all__ = ["CondorRun"]

MOST_NUMBERS = 1000
MOST_HELD_BYTES = 64 << 20
FileRow = tuple[str, int, int]


@attrs.frozen
class _Folder:
    """The run's own notes; everything here is called on a worker."""

    path: str

    def prepare(self) -> None:
        try:
            touching(self.path)
            os.makedirs(self.path, 0o700, exist_ok=True)
            write_whole(f"{self.path}/prepared", b"")
        except OSError as error:
            raise FileTrouble(f"cannot prepare {error.filename or self.path}: (errno {error.errno}) {error.strerror}",
                              error.errno or 0) from None

    def is_prepared(self) -> bool:
        touching(self.path)
        return os.path.exists(f"{self.path}/prepared")

    def numbers(self) -> list[int]:
        """The clusters that were reserved."""
        try:
            with os.fdopen(open_plain(f"{self.path}/reserved"), "rb") as stream:
                words = stream.read(MOST_NUMBERS * 12).decode(errors="replace").split()
        except FileNotFoundError:
            return []
        return [number for number in map(numeral, words) if number is not None][-MOST_NUMBERS:]

    def reserve(self, number: int) -> None:
        """Note a number before anything is submitted with it."""
        write_whole(f"{self.path}/reserved", "".join(f"{each}\n" for each in (*self.numbers(), number)).encode())

    def claim(self) -> str:
        touching(self.path)
        try:
            return os.readlink(f"{self.path}/claim")
        except OSError:
            return ""

    def make_claim(self, batch_id: str) -> None:
        """This one job is let go from now on.

        Raises:
            ScheddFailed: another has been, or none may any more.
        """
        touching(self.path)
        with contextlib.suppress(FileExistsError):
            os.symlink(batch_id, f"{self.path}/claim")
            sync_folder(self.path)
        if self.claim() != batch_id:
            raise ScheddFailed(f"job {batch_id} there is not to begin: {self.claim()} is", transient=True)


class CondorRun:
    """See :class:`~condor_actors.daemons.shadow.grid.grid_resource.GridResource`.

    Args:
        run_id: of the run; job: the job's ad.
        edges: of the grid manager.
        now_s: the clock.
    """

    kind = CONDOR

    def __init__(self, run_id: str, job: ClassAd, edges: GridEdges, now_s: Callable[[], float]) -> None:
        self._job = job
        self._edges = edges
        self._now_s = now_s
        self._name = batch_name(run_id, job)
        self._folder = _Folder(os.path.join(edges.folder, self._name))
        name, pool = schedd_of(job.evaluate("GridResource")) or ("", "")
        self._schedd = edges.schedds(name, pool, home_of(job))
        self._is_gone = False

    # ---- to the other schedd

    def prepare(self) -> Deferred[Any]:
        """Make the run's folder; the files are sent from where they are."""
        logs, job, folder = self._edges.logs, self._job, self._folder
        try:
            grid_spec(job)
            problem = remote_problems(job)
        except BadJob as error:
            problem = str(error)
        if problem:
            return succeed(gr.FilesFailed(problem, HoldCode.FAILED_TO_CREATE_PROCESS))

        def work() -> gr.FilesFailed | gr.Prepared:
            trouble = log_trouble(logs, job, HoldCode.UNABLE_TO_INIT_USER_LOG)
            if trouble is None:
                folder.prepare()
            return trouble or gr.Prepared()

        return self._edges.in_thread(work).addErrback(file_trouble, HoldCode.TRANSFER_INPUT_ERROR)

    def submit(self) -> Deferred[Any]:
        """Have the job there, with its input, and let it go."""
        now_s = float(int(self._now_s()))

        def failed(failure: Failure) -> gr.SubmitFailed | gr.FilesFailed:
            error = failure.value
            if isinstance(error, (ScheddFailed, NoAnswer)):
                return gr.SubmitFailed(str(error), transient=getattr(error, "transient", True))
            return file_trouble(failure, HoldCode.TRANSFER_INPUT_ERROR)

        return self._schedd.call(self._submit).addCallbacks(lambda batch_id: gr.Submitted(batch_id, now_s), failed)

    def _submit(self, line: Line) -> str:
        folder, job = self._folder, self._job
        found, claim = line.jobs(self._name, folder.numbers()), folder.claim()
        if claim == FENCE:
            raise ScheddFailed("the job was withdrawn", transient=True)
        claimed = job_number(claim)
        mine: RemoteJob | None = None
        if claimed is not None:
            mine = next((each for each in found if each.cluster == claimed[0]), None)
            if mine is None:
                raise ScheddFailed(f"the other schedd has no job {claim} in its queue", transient=True)
        elif found:
            mine = min(found, key=lambda each: each.cluster)
        if mine is None:
            number = line.reserve()
            folder.reserve(number)
            line.submit(number, remote_ad(job, self._name))
        else:
            number = mine.cluster
        line.remove([each.cluster for each in found if each.cluster != number], "another one was submitted for it")
        if mine is None or mine.waits_for_input:
            self._spool(line, number)
            folder.make_claim(f"{number}.0")
            line.let_go(number)
        return f"{number}.0"

    def _spool(self, line: Line, number: int) -> None:
        for source, name in inputs_of(self._job):
            try:
                line.spool(number, source, name)
            except NoAnswer:
                raise
            except OSError as error:
                raise FileTrouble(f"cannot read input file {source}: (errno {error.errno}) {error.strerror}",
                                  error.errno or 0) from None

    # ---- while it is there

    def look(self, batch_id: str) -> Deferred[Any]:
        """Ask for all jobs of the owner there; and in the history, for one that is not in the queue any more."""
        asked: Deferred[Any] = self._schedd.question.ask()

        def both(found: dict[str, tuple[RemoteJob, ...]]) -> Deferred[Any]:
            return self._schedd.call(self._found, found.get(self._name, ()))

        return asked.addCallback(both).addErrback(self._unavailable)

    def _found(self, line: Line, jobs: tuple[RemoteJob, ...]) -> gr.Looked:
        folder = self._folder
        claim = folder.claim()
        claimed = job_number(claim)
        queued = left = None
        if claimed is not None:
            queued = next((each for each in jobs if each.cluster == claimed[0]), None)
            if queued is None:  # it may have come since the queue was asked
                queued = next(iter(line.jobs(self._name, claimed[:1])), None)
            if queued is None:
                left = next(iter(line.jobs(self._name, claimed[:1], "history")), None)
        return gr.Looked(*record_of(folder.is_prepared(), claim, queued, left))

    def _unavailable(self, failure: Failure) -> Deferred[Any]:
        failure.trap(ScheddFailed, OSError)
        reason = str(failure.value)

        def notes() -> gr.FolderRecord:
            claim = self._folder.claim()
            return gr.FolderRecord(prepared=self._folder.is_prepared(), claim="" if claim == FENCE else claim)

        return self._edges.in_thread(notes).addCallbacks(
            lambda record: gr.Unavailable(reason, record), lambda _: gr.Unavailable(reason))

    def withdraw(self) -> Deferred[Any]:
        """Make the claim, so that no job of the run is let go."""
        return self._edges.in_thread(grid_folder.withdraw, self._folder.path).addCallbacks(
            gr.Withdrawn, lambda _: gr.Withdrawn("unknown"))

    def cancel(self) -> Deferred[Any]:
        """Have all jobs of the run removed; they are gone when the queue there has none of them."""
        work = self._edges.in_thread(grid_folder.withdraw, self._folder.path)
        work.addBoth(lambda _: self._schedd.call(self._remove, "its job was removed or held where it came from"))

        def gone(is_gone: bool) -> gr.Cancelled:
            self._is_gone = is_gone
            return gr.Cancelled(is_gone)

        return work.addCallbacks(gone, self._unavailable)

    def _remove(self, line: Line, reason: str) -> bool:
        numbers = self._folder.numbers()
        found = line.jobs(self._name, numbers)
        line.remove([each.cluster for each in found], reason)
        return not found or not line.jobs(self._name, numbers)

    # ---- home again

    def bring(self, status: int) -> Deferred[Any]:
        """Fetch the outputs to their places."""
        spec = grid_spec(self._job)

        def failed(failure: Failure) -> Any:
            error = failure.value
            if isinstance(error, ScheddFailed) and not error.transient:
                return gr.FilesFailed(str(error), HoldCode.TRANSFER_OUTPUT_ERROR)
            if isinstance(error, ScheddFailed):
                return gr.Unavailable(str(error))
            return file_trouble(failure, HoldCode.TRANSFER_OUTPUT_ERROR)

        return self._schedd.call(self._bring, spec, status).addCallbacks(lambda _: gr.Brought(), failed)

    def _bring(self, line: Line, spec: RunSpec, status: int) -> None:
        claimed = job_number(self._folder.claim())
        if claimed is None:
            raise FileTrouble("nobody knows any more which job there has the output")
        places = OutputPlaces(self._job)
        files = list(_outputs(line.files(claimed[0]), self._job, spec, status))
        most_mb = self._job.get_int("MaxTransferOutputMB", -1)
        if 0 <= most_mb << 20 < sum(size for _, size, _ in files):
            raise FileTrouble(f"the output has more than max_transfer_output_mb = {most_mb}")
        for name, size, mode in files:
            place = places.target(name)
            if place is None or places.stays_away(name):
                continue
            try:
                if places.directory or "/" in name:
                    os.makedirs(os.path.dirname(place), 0o700, exist_ok=True)
                _fetch(line, (claimed[0], name, size), place, 0o644 if name in (STDOUT, STDERR) else mode)
            except NoAnswer:
                raise
            except OSError as error:
                raise FileTrouble(f"cannot write output file {error.filename or place}: (errno {error.errno}) "
                                  f"{error.strerror}", error.errno or 0) from None

    def clean_up(self) -> Deferred[bool]:
        """Have the job out of the queue there, with its files, and remove the folder; nothing waits for that."""
        removed: Deferred[Any] = succeed(True)
        if not self._is_gone:
            removed = self._schedd.call(self._remove, "its output is home")

        def answered(result: Any) -> Any:
            if isinstance(result, Failure) and getattr(result.value, "transient", True):
                return False
            return self._edges.in_thread(grid_folder.remove, self._folder.path).addBoth(lambda _: True)

        return removed.addBoth(answered)


def _outputs(files: tuple[FileRow, ...], job: ClassAd, spec: RunSpec, status: int) -> Iterator[FileRow]:
    """The files of the spool that belong home: output, error, and those named, or all that were not sent there.

    Raises:
        FileTrouble: a name leads out of the job's folder.
    """
    is_wanted = not (spec.when == "NEVER" or (spec.when == "ON_SUCCESS" and status != spec.success_code))
    named = None if spec.outputs is None else {
        os.path.normpath(name) if spec.keeps_paths else os.path.basename(name.rstrip("/")) for name in spec.outputs}
    sent = sent_names(job)
    missing = set(named or ()) if is_wanted else set()
    for name, size, mode in files:
        try:
            check_path(name)
        except BadManifest as error:
            raise FileTrouble(f"the other schedd names an output that cannot be one: {error}") from None
        if size < 0:
            raise FileTrouble(f"the other schedd says that the output {name[:200]} has {size} bytes")
        if name in (STDOUT, STDERR):
            yield name, size, mode
        elif is_wanted and named is None:
            if "/" not in name and name not in sent:
                yield name, size, mode
        elif is_wanted and named is not None:
            wanted = next((each for each in named if name == each or name.startswith(f"{each}/")), None)
            if wanted is not None:
                missing.discard(wanted)
                yield name, size, mode
    if missing:
        raise FileTrouble(f"the job has left no output file {min(missing)}", 2)


def _fetch(line: Line, file: tuple[int, str, int], place: str, mode: int) -> None:
    """Fetch a file beside its place, and put it there when it is whole; a link there is not followed."""
    number, name, size = file
    if os.path.exists(place) and not (os.path.isfile(place) or os.path.islink(place)):
        # a device, or a pipe: nothing takes its place
        if size > MOST_HELD_BYTES:
            raise FileTrouble(f"the output {name[:200]} has {size} bytes, and {place} is no file that could take them")
        held = bytearray()
        line.fetch(number, name, size, held.extend)
        write_whole(place, bytes(held))
        return
    stream, fresh = open_beside(place, "fetched")
    with stream:
        try:
            line.fetch(number, name, size, stream.write)
            os.fchmod(stream.fileno(), mode & 0o777 | 0o600)
            os.fdatasync(stream.fileno())
            os.rename(fresh, place)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(fresh)
            raise
    sync_folder(os.path.dirname(place))
