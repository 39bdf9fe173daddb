"""The watch on terminals, on plain files in their place: the kernel tells of reads of both."""

from __future__ import annotations

from pathlib import Path

import pytest
from twisted.internet.testing import MemoryReactorClock

from condor_actors.machine.sensors.terminals import REST_S, TerminalWatch


@pytest.mark.parametrize("again", [False, True])
def test_a_terminal_that_is_made_anew_while_its_watch_rests(tmp_path: Path, again: bool) -> None:
    (tmp_path / "pts").mkdir()
    terminal = tmp_path / "pts" / "0"
    terminal.write_text("typed")
    touched: list[str] = []
    reactor = MemoryReactorClock()
    watch = TerminalWatch(touched.append, str(tmp_path))
    watch.start(reactor)
    try:
        terminal.read_text()
        watch.doRead()
        terminal.unlink()
        terminal.write_text("typed by the next")
        watch.doRead()
        terminal.read_text()
        watch.doRead()
        assert touched == ["tty:pts/0"] * 2
        if not again:
            return  # who stops finds no timer that it does not know
        reactor.advance(REST_S)
        reactor.advance(REST_S)
        terminal.read_text()
        watch.doRead()
        assert touched == ["tty:pts/0"] * 3
    finally:
        watch.stop()
        assert not reactor.getDelayedCalls()
