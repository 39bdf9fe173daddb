"""The pool's commands in a job: one of the local universe reaches the schedd, one that is confined does not."""

from __future__ import annotations

import shlex

import pytest

from tests.harness.commands import program_of
from tests.harness.readable_python import python_for_all
from tests.harness.user_pool import UserPool, user_pool


@pytest.mark.parametrize(("universe", "reaches"), [("local", True), ("vanilla", False)])
def test_condor_q_in_a_job(universe: str, reaches: bool) -> None:
    with user_pool() as pool:
        out, err = asked(pool, universe)
        assert out.split() == (["yes"] if reaches else []), err
        assert ("Can't find address of local schedd" in err) is not reaches


def asked(pool: UserPool, universe: str) -> tuple[str, str]:
    """What condor_q says in a job about that job."""
    script = pool.work / "ask"
    tool = shlex.join([*python_for_all().words, "-c", program_of("condor_q"), "condor_q"])
    script.write_text(f'#!/bin/sh\n{tool} "$1" -af Mine\n')
    script.chmod(0o755)
    pool.submit(f"universe = {universe}\nexecutable = {script}\narguments = $(Cluster)\ngetenv = true\n"
                f"+Mine = \"yes\"\noutput = {pool.work}/out\nerror = {pool.work}/err\nlog = {pool.work}/log\nqueue\n")
    pool.run("condor_wait", "-wait", "90", str(pool.work / "log"))
    return (pool.work / "out").read_text(), (pool.work / "err").read_text()
