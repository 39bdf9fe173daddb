"""What reaches the run of a standard-universe job over its streams.

Theory: connections are the reactor's, the run is its starter's.  So what a stream says becomes a turn of the starter,
which answers by a function that came with it; only the files of checkpoints, which the stream needs at once, are made
and dropped here.  When the run is over, or its starter crashes, everything that came in is cut.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from condor_actors.cores.secrets import matches
from condor_actors.cores.starter.checkpoint_guard import CheckpointGuard
from condor_actors.machine.standard.numbered_channel import FarNumbered

if TYPE_CHECKING:
    from condor_actors.daemons.starter.run_resources import RunResources
    from condor_actors.daemons.starter.standard_starter import StandardStarter
    from condor_actors.daemons.starter.starter_edges import StarterEdges
    from condor_actors.machine.standard.channel import FarChannel
    from condor_actors.machine.standard.execute_endpoint import ExecuteEndpoint

__all__ = ["RunStreams", "accept_stream"]


MOST_NUMBERED = 100_000
"""So many channels of a run's processes are remembered: later ones are relayed by the stream."""


class RunStreams:
    """Receives the streams of one standard-universe run.

    Args:
        starter: whose run it is; resources: what that holds.
        key: who shows it is the run's shadow.
        guard: of the run's checkpoints.
        lease_s: how long a stream may be without a connection.
    """

    def __init__(self, starter: StandardStarter, resources: RunResources, key: str, guard: CheckpointGuard,
                 lease_s: float) -> None:
        as_turn = starter.context.as_turn
        self.lease_s = lease_s
        self.key = key
        self.guard = guard
        self._resources = resources
        self._images = 0
        self._streams: list[ExecuteEndpoint] = []
        self._channels: list[FarChannel] = []
        self._numbered: dict[int, FarNumbered | None] = {}
        self._lines: dict[int, tuple[FarChannel, int]] = {}
        self._attach: Callable[..., None] = as_turn(starter.attached)
        self._channel: Callable[..., None] = as_turn(starter.channelled)
        self._spare: Callable[..., None] = as_turn(starter.spared)
        self.image_written: Callable[[], None] = as_turn(starter.image_written)
        self.image_sent: Callable[[], None] = as_turn(starter.image_sent)
        self.image_refused: Callable[[int], None] = as_turn(starter.image_refused)
        self.image_received: Callable[[str], None] = as_turn(starter.image_received)
        self._detached: Callable[..., None] = as_turn(starter.detached)

    def attached(self, stream: ExecuteEndpoint, answer: Callable[[str], None]) -> None:
        """The shadow's stream is here; ``answer(why not)``, empty when it is taken."""
        self._streams.append(stream)
        self._attach(stream, answer)

    def lasting_stream(self) -> ExecuteEndpoint | None:
        """The one that outlives its connections; None: there is none."""
        return next((stream for stream in self._streams if stream.lasts and not stream.over), None)

    def detached(self, stream: ExecuteEndpoint, reason: str) -> None:
        """A stream has ended."""
        if stream in self._streams:
            self._streams.remove(stream)
        if not self._streams:
            self._cut_numbered()
        self._detached(stream, reason)

    def channelled(self, channel: FarChannel, answer: Callable[[bool], None]) -> None:
        """The channel of the first process is here; ``answer(whether there is a use for it)``."""
        self._channels.append(channel)
        self._channel(channel, answer)

    def spared(self, channel: FarChannel, label: int, answer: Callable[[bool], None]) -> None:
        """The channel of a helper is here, before it is needed; ``answer(whether there is a use for it)``."""
        self._channels.append(channel)

        def taken(use: bool) -> None:
            self.channel_used(channel)
            answer(use)

        self._spare(channel, label, taken)

    def numbered(self, line: FarChannel, label: int, secret: bytes, received: int) -> None:
        """A connection is here for a numbered channel, which begins or goes on; ``line`` hears whether it does."""
        self._lines[label] = line, received
        if label in self._numbered:
            self._go_on(label)
            return
        try:
            if len(self._numbered) >= MOST_NUMBERED:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            channel = FarNumbered(line.reactor, secret, lambda: self._numbered_over(label))
        except OSError:
            del self._lines[label]
            line.refuse()
            return
        self._numbered[label] = channel

        def taken(use: bool) -> None:
            if not use:
                self._numbered[label] = None
                channel.cut()
            self._go_on(label)

        if label:
            self._spare(channel, label, taken)
        else:
            self._channel(channel, taken)

    def _go_on(self, label: int) -> None:
        """Over the connection that came last."""
        line, received = self._lines.pop(label, (None, 0))
        channel = self._numbered.get(label)
        if line is not None and channel is not None:
            line.go_on(channel, received)
        elif line is not None:
            line.refuse()

    def _numbered_over(self, label: int) -> None:
        """It stays known, so that none begins in its place."""
        self._numbered[label] = None

    def _cut_numbered(self) -> None:
        for channel in self._numbered.values():
            if channel is not None:
                channel.cut()

    def channel_used(self, channel: FarChannel) -> None:
        """A process, or the stream, has the channel: cutting it is not ours any more."""
        if channel in self._channels:
            self._channels.remove(channel)

    # ---- files of checkpoints

    def new_image(self) -> tuple[str, int]:
        """A file for a checkpoint: its path, and a descriptor of it.

        Raises:
            OSError: no space.
        """
        sandbox = self._resources.sandbox
        if sandbox is None:
            raise OSError(errno.ENOENT, "the run is over")
        self._images += 1
        path = os.path.join(sandbox.path, f"image.{self._images}")
        with sandbox.rights():
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700)
        return path, descriptor

    @staticmethod
    def drop_image(path: str) -> None:
        """The file of a checkpoint is not needed here any more."""
        with contextlib.suppress(OSError):
            os.unlink(path)

    def close(self) -> None:
        """The run is over."""
        streams, self._streams = self._streams, []
        channels, self._channels = self._channels, []
        for channel in channels:
            channel.cut()
        self._cut_numbered()
        for stream in streams:
            stream.cut("the run is over")


def accept_stream(edges: StarterEdges) -> Callable[[str, str], Any]:
    """Finds the run that a stream belongs to: the peer that knows its key is its shadow."""
    def accept(run_id: str, key: str) -> RunStreams | None:
        held = edges.runs.get(run_id)
        streams = held.streams if held is not None else None
        return streams if streams is not None and streams.key and matches(streams.key, key) else None

    return accept
