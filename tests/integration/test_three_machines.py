"""From nothing to a pool of three machines, as the README says: three network namespaces, one token each."""

from __future__ import annotations

import pytest

from tests.harness.namespaces import NEED_NAMESPACES, Wire
from tests.pool_fixture import ToolFailed

pytestmark = NEED_NAMESPACES


def test_three_machines_become_a_pool_with_tokens(wire: Wire) -> None:
    _, submit, execute = wire.trio()
    (submit.work / "input").write_text("only here\n")
    submit.submit("""
        executable = /bin/sh
        transfer_executable = false
        arguments = "-c 'cat input; uname -n; echo made > product'"
        transfer_input_files = input
        should_transfer_files = YES
        requirements = Machine == "execute.trio"
        output = out.$(Process)
        error = err.$(Process)
        log = job.log
        queue 2
    """)
    submit.wait()
    assert [(submit.work / f"out.{n}").read_text() for n in range(2)] == ["only here\nexecute.trio\n"] * 2
    assert (submit.work / "product").read_text() == "made\n"
    seen = execute.run("condor_status", "-schedd", "-af", "Name").split()
    assert any("submit.trio" in name for name in seen)


def test_a_token_is_good_once_and_strangers_stay_out(wire: Wire) -> None:
    manager, first, second = wire.manager(), wire.machine("first"), wire.machine("second")
    token = manager.run("condor_pool", "token").strip()
    first.run("condor_pool", "join", token)
    with pytest.raises(ToolFailed, match="token"):
        second.run("condor_pool", "join", token)
    (second.dir / "config.d" / "x.config").write_text(f"COLLECTOR_HOST = {manager.address}:9618\n")
    with pytest.raises(ToolFailed):
        second.run("condor_status", "-pool", f"{manager.address}:9618")
