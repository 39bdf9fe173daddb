"""Has the checkpoints of jobs removed at their destination that nobody needs any more.

Theory: newer ones are enough, one was damaged, or the job has left the queue.  What removes them is a program of its
own (:mod:`condor_actors.machine.run.checkpoint_removal`), one at a time in a shadow host, with the owner's rights: what
runs at an administrator's word, and what a server says, never touches the host.  A list stays until its files are gone,
so a host that dies on the way leaves nothing behind that the next one does not find.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs
from twisted.internet.defer import Deferred, DeferredLock
from twisted.python.failure import Failure

from condor_actors.actors.workers import InWorker, touching
from condor_actors.classads import ClassAd
from condor_actors.classads.builtins.user_maps import UserMapError, read_rules
from condor_actors.config import Config
from condor_actors.cores.checkpoints.destination import url_below
from condor_actors.cores.checkpoints.manifest import BadCheckpoint, list_name
from condor_actors.daemons.shadow.checkpoints.kept_lists import ALL, UNUSED, KeptLists
from condor_actors.daemons.shadow.file_trouble import FileTrouble
from condor_actors.daemons.shadow.url_signer import UrlSigner
from condor_actors.durable import write_whole
from condor_actors.machine.run import checkpoint_removal
from condor_actors.machine.run.checkpoint_removal import ORDER, Removal, RemovalOrder
from condor_actors.machine.run.launch import Ended, Launcher, LaunchPlan
from condor_actors.written_text import read_plain

__all__ = ["CheckpointRemover", "RemovalSettings", "removal_program", "removal_settings"]

SAID = "removal.said"
JOB_AD = ".job.ad"
PROGRAM = "import sys; sys.path[:] = {path!r}; import runpy; sys.argv[1:] = [{order!r}]; " \
          "runpy.run_module({name!r}, run_name='__main__')"
MOST_SAID_BYTES = 2000
OURS = str(Path(__file__).parents[3] / "libexec")
MATCHED = "\\0"
"""In the map: the prefix of its line."""


@attrs.frozen(kw_only=True)
class RemovalSettings:
    """How they are removed.

    Attributes:
        map_file: CHECKPOINT_DESTINATION_MAPFILE; libexec: LIBEXEC.
        file_s: CHECKPOINT_CLEANUP_TIMEOUT.
        most: how many checkpoints of a job are in use (1 + DEFAULT_NUM_EXTRA_CHECKPOINTS).
        authorities: AUTH_SSL_CLIENT_CAFILE.
    """

    map_file: str
    libexec: str
    file_s: float
    most: int
    authorities: str


def removal_settings(config: Config) -> RemovalSettings:
    """What the configuration says."""
    return RemovalSettings(
        map_file=config.text("CHECKPOINT_DESTINATION_MAPFILE") or "", libexec=config.text("LIBEXEC") or "",
        file_s=config.seconds("CHECKPOINT_CLEANUP_TIMEOUT"), most=1 + config.integer("DEFAULT_NUM_EXTRA_CHECKPOINTS"),
        authorities=config.text("AUTH_SSL_CLIENT_CAFILE") or "")


def removal_program(settings: RemovalSettings, url: str) -> list[str]:
    """The program that removes what is at a URL, with its first arguments; none: no line of the map is for it.  The
    longest prefix counts.  Blocks.

    Raises:
        FileTrouble: the map cannot be read.
    """
    touching(settings.map_file)
    try:
        rules = [rule for _, rule in read_rules(read_plain(settings.map_file).decode())]
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError, UserMapError) as error:
        line = f", line {error.line}" if isinstance(error, UserMapError) else ""
        raise FileTrouble(f"CHECKPOINT_DESTINATION_MAPFILE {settings.map_file}{line}: {error}") from None
    rule = max((rule for rule in rules if url.startswith(rule.user)), key=lambda rule: len(rule.user), default=None)
    if rule is None:
        return []
    words = [word.strip().replace(MATCHED, rule.user) for word in rule.groups.split(",") if word.strip()]
    if not words:
        return []
    program = os.path.join(settings.libexec, words[0])
    return [program if os.path.exists(program) else os.path.join(OURS, words[0]), *words[1:]]


class CheckpointRemover:
    """Removes them, those of one job after those of another.

    Args:
        settings: how.
        launcher: starts the program.
        in_worker: runs what blocks.
        now_s: the time, for signed URLs.
    """

    def __init__(self, settings: RemovalSettings, launcher: Launcher, in_worker: InWorker,
                 now_s: Callable[[], float]) -> None:
        self.settings = settings
        self._launcher, self._in_worker, self._now_s = launcher, in_worker, now_s
        self._turn = DeferredLock()

    def remove(self, job: ClassAd, folder: Path, *, all_of_them: bool) -> Deferred[str]:
        """Remove those that are not used any more, or all, of a job that has left the queue.

        Returns:
            fires with why it could not be done, empty when it is done; never fails.
        """
        kinds = ALL if all_of_them else UNUSED
        done: Deferred[str] = self._turn.run(self._remove, job, folder, kinds)
        return done.addErrback(_why)

    def _remove(self, job: ClassAd, folder: Path, kinds: Sequence[str]) -> Deferred[str]:
        ready: Deferred[int] = self._in_worker(self._ready, job, folder, kinds)
        return ready.addCallback(lambda said: self._run(folder, said) if said >= 0 else "").addCallback(
            lambda why: self._in_worker(_tidy, folder, kinds, why))

    def _ready(self, job: ClassAd, folder: Path, kinds: Sequence[str]) -> int:
        """Write the order; a descriptor for what the program says, -1: there is nothing to remove."""
        lists, removals = KeptLists(folder), []
        program: list[str] = []
        signer = UrlSigner(job, self._now_s())
        for kind in kinds:
            for number in lists.numbers((kind,)):
                path = folder / list_name(number, kind)
                try:
                    listed = lists.read(number, kind)
                except BadCheckpoint:  # nobody can say what it was
                    path.unlink()
                    continue
                program = program or removal_program(self.settings, listed.base)
                files = [entry.path for entry in listed.entries if entry.kind == "file"] + [list_name(number)]
                urls = () if program else [signer.signed(url_below(listed.base, name), "DELETE") for name in files]
                removals.append(Removal(path=str(path), base=listed.base.rstrip("/"), files=files, urls=urls,
                                        failed=kind == "FAILURE"))
        if not removals:
            return -1
        write_whole(folder / JOB_AD, job.to_bytes(), 0o600)
        order = RemovalOrder(removals=removals, program=program, job_ad=str(folder / JOB_AD),
                             file_s=self.settings.file_s, authorities=self.settings.authorities)
        write_whole(folder / ORDER, order.encode(), 0o600)
        return os.open(folder / SAID, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def _run(self, folder: Path, said: int) -> Deferred[str]:
        over: Deferred[str] = Deferred()
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        plan = LaunchPlan(
            program=sys.executable, directory="/", stdin=null, stdout=null, stderr=said,
            arguments=("-I", "-c", PROGRAM.format(path=sys.path, order=str(folder / ORDER),
                                                  name=checkpoint_removal.__name__)),
            environment={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": os.environ.get("HOME", "/")})

        def ended(how: Ended) -> None:
            over.callback("" if how.exit_code == 0 else f"status {how.exit_code}" if how.exit_signal < 0 else
                          f"signal {how.exit_signal}")

        try:
            self._launcher.launch(plan, lambda: None, lambda failure: over.callback(failure.reason), ended)
        finally:
            os.close(null)
            os.close(said)
        return over


def _why(failure: Failure) -> str:
    return str(failure.value) or type(failure.value).__name__


def _tidy(folder: Path, kinds: Sequence[str], why: str) -> str:
    """What the program has said, where it failed; nothing of this module's is left."""
    said = ""
    if why:
        said = (folder / SAID).read_bytes()[-MOST_SAID_BYTES:].decode(errors="replace").strip()
    for name in (SAID, ORDER, JOB_AD):
        (folder / name).unlink(missing_ok=True)
    if not why and kinds is ALL and folder.exists():
        folder.rmdir()
    return f"{said or 'the program that removes them ended'}{'' if said else f' with {why}'}" if why else ""
