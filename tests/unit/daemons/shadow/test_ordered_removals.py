"""Checkpoints at a destination that cannot be removed: tried again, less and less often, for two days, and told of."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.defer import Deferred, succeed

from condor_actors.classads import ClassAd
from condor_actors.daemons.shadow.checkpoints import ordered_removals as removals
from condor_actors.messages.shadow_host import REMOVE_CHECKPOINTS, Notice, NoticesWritten

BEGAN_S = 1_000_000.0


class Host:
    """A shadow host's actor, the clock that its timers run on, and a destination that is out of order."""

    def __init__(self, spool: Path, mends_at_s: float) -> None:
        self.now = BEGAN_S
        self.mends_at_s = mends_at_s
        self.timers: dict[Any, float] = {}
        self.told: list[Any] = []
        self.lines: list[tuple[str, str]] = []
        self.tries: list[float] = []
        self.context = self.remover = self
        self.log = SimpleNamespace(warn=lambda text, **more: self.lines.append(("warn", text.format(**more))),
                                   error=lambda text, **more: self.lines.append(("error", text.format(**more))))
        self.schedd = "schedd"
        self.owner, self.problem, self.spool = "alice", "", spool
        self.removing: dict[str, Notice] = {}

    def now_s(self) -> float:
        return self.now

    def set_timer(self, key: Any, delay_s: float) -> None:
        self.timers[key] = self.now + delay_s

    def tell(self, to: Any, message: Any) -> None:
        self.told.append(message)

    def defer_to_turn(self, deferred: Deferred[str], then: Any) -> None:
        deferred.addCallback(then)

    def remove(self, job: ClassAd, folder: Path, *, all_of_them: bool) -> Deferred[str]:
        assert all_of_them
        self.tries.append(self.now)
        return succeed("" if self.now >= self.mends_at_s else "the store is down")


def run(host: Host, until_s: float) -> None:
    orders = removals.OrderedRemovals(host, host, host)  # type: ignore[arg-type]
    orders.order(Notice(notice_id="n1", cluster=1, proc=0, event=REMOVE_CHECKPOINTS, when_s=BEGAN_S,
                       ad=b""))
    while host.timers:
        key, due_s = min(host.timers.items(), key=lambda item: item[1])
        if due_s > until_s:
            return
        del host.timers[key]
        host.now = due_s
        orders.again(key)


@pytest.mark.parametrize("mends_after_s", [0.0, 100.0, 86_400.0])
def test_a_destination_that_comes_back_is_freed(mends_after_s: float, tmp_path: Path) -> None:
    host = Host(tmp_path, BEGAN_S + mends_after_s)
    run(host, BEGAN_S + removals.FOR_S)
    assert host.told == [NoticesWritten(notice_ids=("n1",))]
    assert not host.removing
    assert host.tries[-1] - BEGAN_S <= mends_after_s * 2 + removals.AGAIN_S
    assert host.tries[-1] - BEGAN_S <= mends_after_s + removals.MOST_AGAIN_S


def test_one_that_never_does_is_given_up_and_named(tmp_path: Path) -> None:
    host = Host(tmp_path, float("inf"))
    run(host, BEGAN_S + 10 * removals.FOR_S)
    assert not host.timers
    assert not host.removing
    assert host.told == [NoticesWritten(notice_ids=("n1",))], "the schedd orders it no more"
    assert len(host.tries) < 70, "hourly at last"
    assert removals.FOR_S <= host.tries[-1] - BEGAN_S <= removals.FOR_S + removals.MOST_AGAIN_S
    kind, text = host.lines[-1]
    assert (kind, "the store is down" in text, str(tmp_path) in text) == ("error", True, True)
    assert all(kind == "warn" and "1.0" in text for kind, text in host.lines[:-1])
