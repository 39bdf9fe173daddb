"""The audit log: one line for each act of others, accepted or refused, in ``$(LOG)/<Name>AuditLog``.

A line is a date and fields ``name=value``; a value with anything but letters, digits and ``.:@/_+-`` in it is a JSON
string in ASCII, so that no name of anybody's can end a line or begin a field::

    2026-11-23T03:41:07.512Z daemon=schedd act=hold-jobs object="ids=12.0 reason=x" result=ok detail="1 of 1" \\
        who=alice@cs.example uid=1000 via=local from=pid:4711 right=WRITE

``right`` is the level that the message needs.

``result`` is ``ok``, ``denied`` or the code of a refusal, ``told`` for what needs no answer.  Of one sender a bounded
number is written, fewer of what is refused; the next line of his says how many were left out (``left_out=…``), or one
of its own when nothing follows.

Lines are written by a thread, which also syncs them, those of a tenth of a second together: nothing waits for the disk.
A line is handed over when the answer leaves, so what was answered is in the log unless machine or process dies
within that moment; a process that is asked to end writes all there is.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from condor_actors.config import Config
from condor_actors.messages.audited_actions import AUDITED_ACTIONS, audited_action_of
from condor_actors.messages.codec import message_class
from condor_actors.messages.envelope import Delivery, Identity, Refused
from condor_actors.services.telemetry.logs import log_name
from condor_actors.store.audit_file import AuditFile, audit_line

__all__ = ["AuditLog", "open_audit_log"]

WAITING_LINES = 10_000
SENDERS = 4_096
LEFT_OUT_S = 10.0
TOGETHER_S = 0.1
"""Lines that come within this time are written and synced together."""


@attrs.frozen
class Allowance:
    """How many lines a sender may leave: so many at once, so many a second from then on."""

    at_once: float
    per_second: float


ACCEPTED, REFUSED = Allowance(2_000.0, 50.0), Allowance(20.0, 0.5)


@attrs.define
class _Account:
    """What a sender has left of an allowance, and what of his was left out."""

    left: float
    seen_s: float
    left_out: int = 0


class AuditLog:
    """Writes what is witnessed; see the module.

    Args:
        path: the file.
        daemon: whose.
        max_bytes: the size at which it is put aside; 0: never.
        keep: how many that were put aside stay.
        wall_clock, clock: seconds.
    """

    def __init__(self, path: Path, daemon: str, *, max_bytes: int, keep: int,
                 wall_clock: Callable[[], float] = time.time, clock: Callable[[], float] = time.monotonic) -> None:
        self._daemon = daemon
        self._wall_clock, self._clock = wall_clock, clock
        self._accounts: dict[tuple[str, bool], _Account] = {}
        self._lines: queue.Queue[str | None] = queue.Queue(WAITING_LINES)
        self._ends = threading.Event()
        self._lost = 0
        self._told_s = clock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = AuditFile(path, max_bytes=max_bytes, keep=keep)
        self._thread = threading.Thread(target=self._write_all, name="audit log", daemon=True)
        self._thread.start()

    # ---- what is seen

    def sees(self, delivery: Delivery) -> bool:
        """See :class:`~condor_actors.actors.witness.Witness`."""
        return getattr(delivery.message, "KIND", "") in AUDITED_ACTIONS

    def answered(self, delivery: Delivery, answer: Any) -> None:
        """See :class:`~condor_actors.actors.witness.Witness`."""
        audited = audited_action_of(delivery.message)
        if audited is None:
            return
        result, detail = _result(answer)
        self._note(delivery.identity, delivery.sender.node, type(delivery.message).LEVEL, *audited, result, detail)

    def refused_at_door(self, node: str, identity: Identity, kind: str, refusal: Refused) -> None:
        """See :class:`~condor_actors.actors.witness.Witness`."""
        if refusal.code != "denied" and kind not in AUDITED_ACTIONS:
            return
        cls = message_class(kind, 1)
        audited = AUDITED_ACTIONS.get(kind)
        action = kind if cls is not None else "unknown"
        if audited is not None:
            action = audited.action.replace("{", "").replace("}", "")
        self._note(identity, node, getattr(cls, "LEVEL", "none"), action, "", refusal.code, refusal.text)

    def event(self, action: str, who: str, *, object_: str = "", result: str = "ok", detail: str = "") -> None:
        """Something that is no message: a login at the manhole, say."""
        self._note(Identity(name=who, method="self"), "", "none", action, object_, result, detail)

    def _note(self, identity: Identity, node: str, right: str, action: str, what: str, result: str,
              detail: str) -> None:
        sender = f"{identity.name} {identity.host} {identity.uid}"
        left_out = self._allowed(sender, result in ("ok", "told"))
        if left_out is None:
            return
        where = identity.address or (f"pid:{identity.pid}" if identity.pid else node)
        self._hand_over(audit_line(
            self._wall_clock(), daemon=self._daemon, act=action, object=what, result=result, detail=detail,
            who=identity.name, uid=identity.uid, host=identity.host, via=identity.method, roles=",".join(
                sorted(identity.roles)), **{"from": where}, right=right, left_out=left_out or None))

    def _allowed(self, sender: str, accepted: bool) -> int | None:
        """None when a line of the sender is one too many, else how many were left out before it."""
        allowance, now_s = ACCEPTED if accepted else REFUSED, self._clock()
        if now_s - self._told_s > LEFT_OUT_S:
            self._tell_left_out()
        key = (sender, accepted)
        account = self._accounts.get(key)
        if account is None:
            if len(self._accounts) >= SENDERS:
                self._tell_left_out()
                self._accounts.clear()
            account = self._accounts[key] = _Account(allowance.at_once, now_s)
        account.left = min(allowance.at_once, account.left + (now_s - account.seen_s) * allowance.per_second)
        account.seen_s = now_s
        if account.left < 1.0:
            account.left_out += 1
            return None
        account.left -= 1.0
        left_out, account.left_out = account.left_out, 0
        return left_out

    def _tell_left_out(self) -> None:
        """What was left out of those who have fallen silent."""
        self._told_s = now_s = self._clock()
        for (sender, accepted), account in self._accounts.items():
            if account.left_out and now_s - account.seen_s > LEFT_OUT_S:
                count, account.left_out = account.left_out, 0
                self._hand_over(audit_line(
                    self._wall_clock(), daemon=self._daemon, act="left-out", result="ok" if accepted else "refused",
                    who=sender.partition(" ")[0], left_out=count))

    # ---- the file

    def _hand_over(self, line: str) -> None:
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self._lost += 1

    def _write_all(self) -> None:
        is_over = False
        while not is_over:
            lines = [self._lines.get()]
            if lines[0] is not None:
                self._ends.wait(TOGETHER_S)
            while len(lines) < 1_000 and not self._lines.empty():
                lines.append(self._lines.get_nowait())
            is_over = lines[-1] is None
            lost, self._lost = self._lost, 0
            text = "".join(f"{line}\n" for line in lines if line is not None)
            if lost:
                text += audit_line(self._wall_clock(), daemon=self._daemon, act="left-out", left_out=lost) + "\n"
            try:
                self._file.append(text.encode())
            except OSError:
                self._lost += lost + text.count("\n")  # said once there is room again

    def close(self) -> None:
        """Write what there is."""
        for account in self._accounts.values():
            account.seen_s = -LEFT_OUT_S - self._clock()
        self._tell_left_out()
        self._lines.put(None)
        self._ends.set()
        self._thread.join(timeout=10.0)


def _result(answer: Any) -> tuple[str, str]:
    if answer is None:
        return "told", ""
    if isinstance(answer, Refused):
        return answer.code, answer.text
    results = getattr(answer, "results", None)
    if results is None:
        reason = getattr(answer, "reason", "") if type(answer).__name__.endswith("Refused") else ""
        return ("refused", reason) if reason else ("ok", "")
    count = getattr(answer, "count", 0)
    names = [getattr(each[-1], "name", "") for each in results]
    result = "ok" if count or not names else "denied" if "PERMISSION_DENIED" in names else "refused"
    others = sorted({name.lower() for name in names if name and name != "SUCCESS"})
    return result, f"{count} done" + (f", else {', '.join(others)}" if others else "")


def open_audit_log(config: Config, daemon: str) -> AuditLog | None:
    """The audit log of a daemon; None where ``<SUBSYS>_AUDIT_LOG`` is ``none``.

    Raises:
        OSError: it cannot be written.
    """
    subsystem = daemon.upper().replace("-", "_")
    own = config.text(f"{subsystem}_AUDIT_LOG")
    if own is not None and own.lower() == "none":
        return None
    path = Path(own) if own else config.path("LOG") / log_name(daemon).replace("Log", "AuditLog")
    return AuditLog(path, daemon, max_bytes=config.size(f"MAX_{subsystem}_AUDIT_LOG"),
                    keep=config.integer(f"MAX_NUM_{subsystem}_AUDIT_LOG"))
