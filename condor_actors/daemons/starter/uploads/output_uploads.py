"""Sends the outputs of a finished run that go to URLs, one after another, as the job's account.

Theory: :mod:`condor_actors.machine.run.url_send` is the program.  Where a file goes is in the job's ad
(:mod:`condor_actors.cores.output_destinations`).  For an object store the shadow signs when the file is to go: the
keys stay with it, and no signature grows old while a job runs.  What failed and may go better another time is tried
again after a while; what failed for good holds the job.  Transfer plugins
(:mod:`condor_actors.daemons.starter.plugin_transfers`) take theirs last.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from condor_actors.cores.object_store import is_object
from condor_actors.cores.output_destinations import MOST_SENT
from condor_actors.cores.starter import job_run as jr
from condor_actors.cores.transfer_plugins import Plugin
from condor_actors.daemons.starter.own_program import ProgramEnd, run_own_program
from condor_actors.daemons.starter.plugin_transfers import PluginTransfers, plugins_of
from condor_actors.daemons.starter.url_inputs import MEMORY_BYTES, OPEN_FILES, why_failed
from condor_actors.machine.run import url_send
from condor_actors.machine.run.url_client import TRY_AGAIN
from condor_actors.machine.run.url_send import SendOrder
from condor_actors.messages.codes import plugin_subcode
from condor_actors.messages.envelope import Refused
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.references.urls import shown_url
from condor_actors.messages.run import MOST_SIGNED, SignUploads, UploadsSigned

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["OutputUploads"]

AGAIN_S = (2.0, 10.0, 30.0, 60.0)
"""After the first, second … failure of a file."""
ANSWER_S = 60.0
ASK_AGAIN_S = 2.0
SIGNED_FOR_S = 3600.0
"""A file that is not under way by then has its URL signed anew."""
TIMER = "upload"


class OutputUploads:
    """Sends them.

    Args:
        starter: whose run it is.
        entries: all outputs of the run; those that go home are handed to ``done``.
        sources: digest to path, for those that are not in their entries.
        places: path in the sandbox's manifest to the file's path here.
        done: called when all others are where they belong.
        failed: called with the reason and HoldReasonSubCode when one will never be.
        url_of: the URL of an entry's path; None: as the job's ad says of its outputs.
        checkpoint: the number of the checkpoint that they are; 0: they are outputs.

    Attributes:
        home: those that have no URL.
    """

    def __init__(self, starter: Starter, entries: Sequence[FileEntry], sources: Mapping[str, str],
                 places: Mapping[str, str], done: Callable[[list[FileEntry]], None],
                 failed: Callable[[str, int], None], *, url_of: Callable[[str], str] | None = None,
                 checkpoint: int = 0) -> None:
        self._starter, self._sources, self._places = starter, sources, places
        self._done, self._failed, self._checkpoint = done, failed, checkpoint
        url_of = url_of or starter.spec.urls.of
        self.home: list[FileEntry] = []
        self._left: deque[tuple[FileEntry, str]] = deque()
        for entry in entries:
            url = url_of(entry.path)
            if not url:
                self.home.append(entry)
            elif entry.kind != "directory":
                self._left.append((entry, url))
        self._signed: dict[str, str] = {}
        self._signed_s = 0.0
        self._failures = 0
        self._taken: list[tuple[Plugin, str, str]] = []
        self._begun = self._busy = self._over = False

    def begin(self) -> None:
        """It is known which plugins the machine has: send the first."""
        plugins, left = plugins_of(self._starter), self._left
        self._begun = True
        self._left = deque()
        for entry, url in left:
            plugin = None if is_object(url) else plugins.of(url)
            if plugin is not None and entry.kind == "file":
                self._taken.append((plugin, url, self._places[entry.path]))
            elif is_object(url) or plugins.knows(url):
                self._left.append((entry, url))
            else:
                self._give_up(f"{entry.path} cannot be sent to {shown_url(url)}: this machine sends to "
                              f"{', '.join(plugins.methods)} only")
                return
        self.go_on()

    def go_on(self) -> None:
        """Send the next one, or have more URLs signed."""
        if self._busy or self._over or not self._begun or not self._wanted():
            return
        if not self._left:
            self._take()
            return
        entry, url = self._left[0]
        if entry.kind == "link":
            self._give_up(f"{entry.path} is a link inside a folder, which cannot be sent to {shown_url(url)}")
        elif len(self._left) > MOST_SENT:
            self._give_up(f"{len(self._left)} files are to be sent to URLs, more than {MOST_SENT}")
        elif is_object(url) and (entry.path not in self._signed
                                 or self._starter.context.now_s() - self._signed_s > SIGNED_FOR_S):
            self._ask()
        else:
            try:
                self._send(entry, self._signed.get(entry.path, url))
            except OSError as error:
                self._give_up(f"{entry.path} cannot be sent to {shown_url(url)}: {error}")

    def stop(self) -> None:
        """Nobody wants the outputs any more."""
        if not self._over:
            self._starter.held.kill()
            self._give_up("the run was given up before all its output was sent")

    def _wanted(self) -> bool:
        starter = self._starter
        return starter.sandbox is not None and starter.core.state is jr.StarterState.CLEARING

    def _take(self) -> None:
        """Have the plugins take theirs; then all is done."""
        self._busy = True
        if len(self._taken) > MOST_SENT:
            self._give_up(f"{len(self._taken)} files are to be sent to URLs, more than {MOST_SENT}")
            return
        PluginTransfers(self._starter, self._taken, upload=True, wanted=lambda: self._wanted() and not self._over,
                        done=self._were_taken).go_on()

    def _were_taken(self, reason: str, status: int) -> None:
        if reason:
            what = "a file of the checkpoint" if self._checkpoint else "an output"
            self._give_up(f"{what} cannot be sent to {reason}", plugin_subcode(status))
        else:
            self._over = True
            self._done(self.home)

    def _give_up(self, reason: str, subcode: int = 0) -> None:
        self._over = True
        if self._wanted():
            self._failed(reason, subcode)

    # ---- signatures

    def _ask(self) -> None:
        starter = self._starter
        if not starter.core.connected:  # a shadow that is back has us go on; meanwhile the lease may run out
            starter.context.set_timer(TIMER, ASK_AGAIN_S)
            return
        self._busy = True
        paths = tuple(entry.path for entry, url in self._left if is_object(url))[:MOST_SIGNED]
        starter.context.ask(starter.shadow, SignUploads(
            run_id=starter.run_id, paths=paths, checkpoint=self._checkpoint), timeout_s=ANSWER_S,
                            then=lambda answer: self._answered(paths, answer.message))

    def _answered(self, paths: Sequence[str], answer: Any) -> None:
        self._busy = False
        if isinstance(answer, UploadsSigned) and not answer.problem and len(answer.urls) == len(paths):
            self._signed_s = self._starter.context.now_s()
            self._signed = dict(zip(paths, answer.urls, strict=True))
            self.go_on()
        elif isinstance(answer, UploadsSigned):
            self._give_up(answer.problem or "the submit machine has other outputs in mind")
        elif isinstance(answer, Refused) and answer.code not in ("busy", "internal"):
            self._give_up(f"the submit machine signs no URL: {answer.text}")
        else:
            self._starter.context.set_timer(TIMER, ASK_AGAIN_S)

    # ---- one file

    def _send(self, entry: FileEntry, url: str) -> None:
        """Start the program for one file.

        Raises:
            OSError: the file cannot be opened, or the program not started.
        """
        starter = self._starter
        run, source = starter.edges.settings.run, self._open(entry)
        try:
            order = SendOrder(url=url, source=source, size_bytes=os.fstat(source).st_size, account=starter.account,
                              most_s=run.fetch_s, authorities=run.authorities)
            run_own_program(starter, url_send.__name__, order.encode(), (source,),
                            lambda end: self._ended(end, shown_url(url)),
                            limits={"nofile": str(OPEN_FILES), "as": str(MEMORY_BYTES), "fsize": "0"})
        finally:
            os.close(source)
        self._busy = True

    def _open(self, entry: FileEntry) -> int:
        if entry.inline is None:
            sandbox = self._starter.sandbox
            assert sandbox is not None
            return sandbox.open_own(self._sources[entry.digest])
        copy = os.memfd_create("output", os.MFD_CLOEXEC)
        os.write(copy, entry.inline)
        return copy

    def _ended(self, end: ProgramEnd, shown: str) -> None:
        self._busy = False
        starter, reason = self._starter, why_failed(end, shown)
        if self._over or not self._wanted():
            return
        if not reason:
            self._failures = 0
            self._signed.pop(self._left.popleft()[0].path, None)
            self.go_on()
        elif end.status in (TRY_AGAIN, -1) and self._failures < len(AGAIN_S):
            starter.context.log.info("run {run}: {path} is sent again: {reason}", run=starter.run_id,
                                     path=self._left[0][0].path, reason=reason)
            starter.context.set_timer(TIMER, AGAIN_S[self._failures])
            self._failures += 1
            self._signed.clear()  # it may be its signature
        else:
            self._give_up(f"{self._left[0][0].path} cannot be sent to {reason}")
