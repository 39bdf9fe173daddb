"""Removes the checkpoints of jobs that have left the queue: the schedd orders it until it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from condor_actors.classads import ClassAd
from condor_actors.daemons.shadow.checkpoints.kept_lists import lists_of
from condor_actors.messages.shadow_host import Notice, NoticesWritten

if TYPE_CHECKING:
    from condor_actors.actors import Actor
    from condor_actors.daemons.shadow.shadow_host import HostEdges, HostRecord

__all__ = ["OrderedRemovals"]

AGAIN_S, MOST_AGAIN_S, FOR_S = 10.0, 3600.0, 2 * 86400.0
"""What cannot be removed is tried again, less and less often, for so long."""
REMOVE = "remove"


class OrderedRemovals:
    """The orders of one shadow host.

    Args:
        host: its actor; edges, record: what that has.
    """

    def __init__(self, host: Actor, edges: HostEdges, record: HostRecord) -> None:
        self._host, self._edges, self._record = host, edges, record

    def go_on(self) -> None:
        """After a crash of the actor: what was under way is begun anew."""
        removing, self._record.removing = self._record.removing, {}
        for notice in removing.values():
            self.order(notice)

    def order(self, notice: Notice) -> None:
        """The job has left the queue: its checkpoints go, now or some time later."""
        record = self._record
        if notice.notice_id in record.removing:
            return
        record.removing[notice.notice_id] = notice
        job = f"{notice.cluster}.{notice.proc}"
        if record.owner:
            done = self._edges.remover.remove(ClassAd.from_bytes(notice.ad), lists_of(record.spool, job).folder,
                                              all_of_them=True)
            self._host.context.defer_to_turn(done, lambda why: self._over(notice, job, why))
        else:
            self._over(notice, job, record.problem or "the shadow host has no owner")

    def again(self, key: tuple[Any, ...]) -> None:
        """A while has passed."""
        due = self._record.removing.pop(key[1], None) if key[0] == REMOVE else None
        if due is not None:
            self.order(due)

    def _over(self, notice: Notice, job: str, why: str) -> None:
        """They are removed, or it is tried again, for some time."""
        context = self._host.context
        age_s = context.now_s() - notice.when_s
        if why and age_s < FOR_S:
            context.log.warn("the checkpoints of {job} stay at their destination, for now: {why}", job=job, why=why)
            context.set_timer((REMOVE, notice.notice_id), min(max(age_s, AGAIN_S), MOST_AGAIN_S))
            return
        if why:
            context.log.error("the checkpoints of {job} stay at their destination, and the lists of them in {folder}: "
                              "{why}", job=job, folder=str(lists_of(self._record.spool, job).folder), why=why)
        self._record.removing.pop(notice.notice_id, None)
        context.tell(self._edges.schedd, NoticesWritten(notice_ids=(notice.notice_id,)))
