"""Runs programs of ours for a run, in its name: with its account, its control group, its mark.

Theory: such a program is a module: one of :mod:`condor_actors.machine.containers` that makes an image, or one that
fetches or sends a file (:mod:`condor_actors.machine.run.url_client`).  It is told what to do over standard input, so
that no list of processes has it, and what it says comes over standard error when it has ended.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from condor_actors.machine.containers.unpack import REPORT_BYTES
from condor_actors.machine.run.launch import Ended, LaunchFailure, LaunchPlan, input_of
from condor_actors.machine.run.process_tree import MARK

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["ProgramEnd", "launch_for", "room_bytes", "run_own_program", "sentence"]

MEMORY_BYTES = 1 << 30
OPEN_FILES = 1024
ORDER_BYTES = 32 * 1024
"""An order is never longer."""
PROGRAM = "import sys; sys.path[:] = {path!r}; import runpy; runpy.run_module({name!r}, run_name='__main__')"
"""It finds its modules where this process does."""


@attrs.frozen(kw_only=True)
class ProgramEnd:
    """How one has ended.

    Attributes:
        status: its exit status; -1: it has none.
        said: what it said.
        reason: why it has no status.
    """

    status: int
    said: bytes
    reason: str = ""


def run_own_program(starter: Starter, name: str, order: bytes, keep: Sequence[int],
                    over: Callable[[ProgramEnd], None], *, stdout: int | None = None,
                    limits: Mapping[str, str] | None = None) -> None:
    """Start one; ``over`` is called in a turn.

    Args:
        starter: whose run it is.
        name: of the module.
        order: what it reads; keep: open files that it gets; stdout: one more, None: it says nothing there.
        limits: of its process, besides or instead of the usual ones.

    Raises:
        OSError: it cannot be started.
    """
    edges, claim = starter.edges, starter.claim
    if len(order) > ORDER_BYTES:
        raise OSError("the order is too long: an image, a URL or the machine's settings for it")
    reading = input_of(order)
    telling, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        plan = LaunchPlan(
            program=sys.executable, arguments=("-I", "-c", PROGRAM.format(path=sys.path, name=name)), directory="/",
            environment={MARK: f"{edges.root.path}:{starter.run_id}"}, stdin=reading,
            stdout=edges.host.null if stdout is None else stdout,
            account=None if os.geteuid() == 0 else starter.account, keep=tuple(keep), stderr=writing,
            cgroups=claim.cgroup.directories if claim.cgroup is not None else (),
            limits={"core": "0", "nofile": str(OPEN_FILES), "as": str(MEMORY_BYTES)} | dict(limits or {}))
        launch_for(starter, plan, over, lambda: _told(telling))
    except BaseException:
        os.close(telling)
        raise
    finally:
        for descriptor in (reading, writing):
            os.close(descriptor)


def launch_for(starter: Starter, plan: LaunchPlan, over: Callable[[ProgramEnd], None],
               said: Callable[[], bytes] = bytes) -> None:
    """Start a program as one of the run's; ``over`` is called in a turn.

    Args:
        said: called once, when it has ended: what it said.

    Raises:
        OSError: it cannot be started.
    """
    edges = starter.edges
    processes = starter.processes = starter.held.processes = edges.processes_for(starter.claim, starter.run_id)
    told = starter.context.as_turn(over)

    def ended(how: Ended) -> None:
        processes.leader_ended()
        told(ProgramEnd(status=how.exit_code if how.exit_signal < 0 else -1, said=said(),
                        reason=f"its process ended by signal {how.exit_signal}" if how.exit_signal >= 0 else ""))

    def failed(failure: LaunchFailure) -> None:
        processes.leader_ended()
        said()
        told(ProgramEnd(status=-1, said=b"", reason=f"{failure}"))

    launched = edges.launcher.launch(plan, lambda: None, failed, ended)
    processes.leader(launched.pid)


def room_bytes(folder: int) -> int:
    """What the disk of an open folder has left."""
    disk = os.fstatvfs(folder)
    return disk.f_bavail * disk.f_frsize


def sentence(said: bytes) -> str:
    """What a program said, for people."""
    return "".join(each if each.isprintable() else " " for each in said.decode(errors="replace")).strip()[:2000]


def _told(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, REPORT_BYTES)
    except BlockingIOError:
        return b""
    finally:
        os.close(descriptor)
