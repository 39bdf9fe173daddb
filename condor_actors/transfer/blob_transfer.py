"""One blob on its way between two machines, whatever connections it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from condor_actors.actors.workers import InWorker, NoAnswer
from condor_actors.transfer.blob_store import BlobError
from condor_actors.transfer.sinks import Sink

if TYPE_CHECKING:
    from condor_actors.transfer.client import ClientConnection

__all__ = ["Transfer", "TransferError"]


class TransferError(Exception):
    """A transfer that failed for good.

    Attributes:
        code: ``denied not-found full changed unreachable local``.
        number: the errno of what could not be read or written here; 0: it was something else.
    """

    def __init__(self, code: str, text: str, number: int = 0) -> None:
        super().__init__(text)
        self.code = code
        self.number = number


class Transfer:
    """One blob on its way; a negative size is not known beforehand."""

    def __init__(self, key: str, digest: str, size_bytes: int, source: str | None, sink: Sink | None) -> None:
        self.key = key
        self.digest = digest
        self.size_bytes = size_bytes
        self.source = source
        self.sink = sink
        self.failures = 0
        self.result: Deferred[None] = Deferred(lambda _: self.cancel())
        self.over = False
        self.is_committing = False
        self.connection: ClientConnection | None = None

    @property
    def gives(self) -> bool:
        """Whether the content goes to the other machine."""
        return self.source is not None

    def cancel(self) -> None:
        """The one who wanted it gave up."""
        self.over = True
        self._close()
        if self.connection is not None:
            self.connection.abort("a transfer was cancelled")

    def succeed(self) -> None:
        """It is done."""
        if not self.over:
            self.over = True
            self.result.callback(None)

    def fail(self, code: str, text: str, number: int = 0) -> None:
        """It failed for good; ``number``: the errno of what happened here."""
        if not self.over:
            self.over = True
            self._close()
            self.result.errback(TransferError(code, text, number))

    def fail_here(self, error: BaseException | None, place: str = "") -> None:
        """It failed for what happened on this machine."""
        if isinstance(error, BlobError):
            self.fail("changed", str(error))
            return
        number = getattr(error, "errno", None) or 0
        reason = getattr(error, "strerror", None) or str(error)
        self.fail("local", f"{place}: {reason}" if place else str(error), number)

    def _close(self) -> None:
        """Let go of what came; who puts it into its place just now does that afterwards."""
        if self.sink is not None and not self.is_committing:
            self.sink.close()

    def commit(self, in_worker: InWorker) -> None:
        """All is here: put it into its place, and tell."""
        sink = self.sink
        assert sink is not None
        self.is_committing = True

        def done(result: object) -> None:
            self.is_committing = False
            if not isinstance(result, Failure):
                self.succeed()
                return
            error = result.value
            late = error.late if isinstance(error, NoAnswer) else None
            if late is not None:
                self.is_committing = True  # by a thread that has not come back
                late.addCallback(lambda _: sink.close())
            elif self.over:
                sink.close()
            self.fail_here(error)

        in_worker(sink.commit).addBoth(done)
