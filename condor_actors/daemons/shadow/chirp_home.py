"""What a run asks of its home by chirp, done one after the other.

Theory: :class:`~condor_actors.cores.shadow.chirp_rights.HomeRights` decides; here files are touched by a worker, events
written, and attributes asked of the schedd, who answers when they are committed.  One call of a run is done at a time,
so an execute machine that asks for much waits for itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from twisted.python.failure import Failure

from condor_actors.classads import ClassAd, ClassAdSyntaxError, parse_expression, unparse
from condor_actors.cores.chirp_protocol import ChirpError
from condor_actors.cores.shadow.chirp_rights import FILE_VERBS, MOST_WAITING, ChirpLimits, HomeRights
from condor_actors.cores.shadow.shadow_events import ShadowState
from condor_actors.daemons.shadow.chirp_files import ChirpFiles
from condor_actors.daemons.shadow.host_messages import SHADOW_HOST, AskSchedd
from condor_actors.messages.codes import JobEventType
from condor_actors.messages.envelope import Delivery, Done, Refused
from condor_actors.messages.run import ChirpCall, ChirpResult
from condor_actors.messages.shadow_host import SetJobAttributes
from condor_actors.userlog.paths import log_paths

if TYPE_CHECKING:
    from condor_actors.daemons.shadow.shadow import Shadow

__all__ = ["ChirpHome"]

COMMIT_PATIENCE_S = 40.0
UNDEFINED_TEXT = b"UNDEFINED"
MOST_INFO = 128


class ChirpHome:
    """The calls of one run.

    Args:
        shadow: whose run it is; limits: the administrator's.
        as_root: the shadow has root's rights.
    """

    def __init__(self, shadow: Shadow, limits: ChirpLimits, *, as_root: bool) -> None:
        job = shadow.core.job
        self._shadow = shadow
        self._rights = HomeRights(job, limits, as_root=as_root)
        self._files = ChirpFiles(job.get_str("Iwd", "/nonexistent"), self._rights.folders, as_root=as_root)
        self._waiting: deque[Delivery] = deque()
        self._busy = self._over = False

    def receive(self, delivery: Delivery) -> None:
        """A call of the starter."""
        call: ChirpCall = delivery.message
        context, core = self._shadow.context, self._shadow.core
        if call.run_id != core.order.run_id or core.state is ShadowState.ENDED or self._over:
            context.reply(delivery, Refused(code="invalid", text=f"run {call.run_id} is over, or another's"))
        elif len(self._waiting) >= MOST_WAITING:
            context.reply(delivery, Refused(code="busy", text=f"{MOST_WAITING} calls wait"))
        else:
            self._waiting.append(delivery)
            self._next()

    def close(self) -> None:
        """The run is over, or its shadow: let go of the files, when nobody uses them any more."""
        self._over = True
        self._waiting.clear()
        if not self._busy:
            self._files.close_all()

    def _next(self) -> None:
        while self._waiting and not self._busy:
            delivery = self._waiting.popleft()
            call: ChirpCall = delivery.message
            refusal = self._rights.refusal(call, self._shadow.context.now_s())
            if refusal is not None:
                self._shadow.context.reply(delivery, ChirpResult(value=refusal))
                continue
            self._busy = True
            if call.verb in FILE_VERBS:
                work = self._shadow.edges.in_thread(self._files.do, call)
                work.addBoth(self._let_go)
                self._shadow.context.defer_to_turn(work, partial(self._done, delivery))
            else:
                _JOB_VERBS[call.verb](self, delivery, call)

    def _let_go(self, result: Any) -> Any:
        """Whatever has become of the actor, what is open is closed at its end."""
        if self._over:
            self._files.close_all()
        return result

    def _done(self, delivery: Delivery, result: Any) -> None:
        self._busy = False
        if isinstance(result, Failure):
            result.trap(OSError)
            self._shadow.context.log.warn("chirp of {run}: {error}", run=self._shadow.core.order.run_id,
                                          error=result.getErrorMessage())
            result = ChirpResult(value=ChirpError.OFFLINE)
        self._shadow.context.reply(delivery, result)
        self._next()

    # ---- the job

    def _get(self, delivery: Delivery, call: ChirpCall) -> None:
        found = self._shadow.core.job.expression(call.path)
        data = unparse(found).encode() if found is not None else UNDEFINED_TEXT
        self._done(delivery, ChirpResult(value=len(data), data=data))

    def _set(self, delivery: Delivery, call: ChirpCall) -> None:
        values = ClassAd()
        try:
            values[call.path] = parse_expression(call.other)
        except (ClassAdSyntaxError, ValueError):
            self._done(delivery, ChirpResult(value=ChirpError.INVALID_REQUEST))
            return
        self._ask_for(delivery, values, delayed=False)

    def _set_delayed(self, delivery: Delivery, call: ChirpCall) -> None:
        try:
            values = ClassAd.from_bytes(call.data)
        except ClassAdSyntaxError:
            self._done(delivery, ChirpResult(value=ChirpError.INVALID_REQUEST))
            return
        self._ask_for(delivery, values, delayed=True)

    def _ask_for(self, delivery: Delivery, values: ClassAd, *, delayed: bool) -> None:
        shadow, text = self._shadow, values.to_bytes()
        refusal = self._rights.attributes_refusal(tuple(values), len(text), shadow.context.now_s(), delayed=delayed)
        if refusal is not None:
            self._done(delivery, ChirpResult(value=refusal))
            return

        def answered(answer: Delivery) -> None:
            message = answer.message
            if isinstance(message, Done):
                shadow.core.job.update(values)
                self._done(delivery, ChirpResult(value=0))
            elif isinstance(message, Refused) and message.code in ("denied", "invalid"):
                self._done(delivery, ChirpResult(value=ChirpError.NOT_AUTHORIZED))
            else:
                self._done(delivery, Refused(code="busy", text="the schedd does not answer"))

        shadow.context.ask(SHADOW_HOST, AskSchedd(SetJobAttributes(
            run_id=shadow.core.order.run_id, attributes=text)), timeout_s=COMMIT_PATIENCE_S, then=answered)

    def _log(self, delivery: Delivery, call: ChirpCall) -> None:
        shadow = self._shadow
        text = "".join(letter if letter.isprintable() else " " for letter in call.data.decode(errors="replace"))
        shadow.write_event(JobEventType.GENERIC, {"Info": text[:MOST_INFO]})
        written = shadow.context.as_turn(lambda: self._done(delivery, ChirpResult(value=0)))
        shadow.edges.logs.when_written(log_paths(shadow.core.job), written)


_JOB_VERBS: dict[str, Callable[[ChirpHome, Delivery, ChirpCall], None]] = {
    "get_job_attr": ChirpHome._get, "set_job_attr": ChirpHome._set, "set_delayed": ChirpHome._set_delayed,
    "ulog": ChirpHome._log,
}
