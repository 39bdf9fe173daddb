"""A machine whose certificate was stolen and revoked: its running links, those of jobs included, and its names."""

from __future__ import annotations

from tests.harness.namespaces import NEED_NAMESPACES, Wire
from tests.pool_fixture import until

pytestmark = NEED_NAMESPACES


def test_the_shadow_of_a_job_on_it_hangs_up(wire: Wire) -> None:
    """The machine itself will not: it hears no more of the pool, and would not care."""
    manager, submit, execute = wire.trio()
    submit.submit("""
        executable = /bin/sleep
        transfer_executable = false
        arguments = 1000
        requirements = Machine == "execute.trio"
        log = job.log
        queue
    """)
    submit.until_status("1.0", 2)
    manager.run("condor_pool", "revoke", "execute.trio")

    def logs(name: str) -> str:
        return "".join(path.read_text() for path in (submit.dir / "log").glob(name))

    until(lambda: "was revoked" in logs("ShadowHostLog*"), "the shadow host to cut the link", 60.0)
    until(lambda: "was revoked" in logs("ScheddLog*"), "the schedd to cut its link", 60.0)
    until(lambda: execute.tool("condor_status", "-pool", f"{manager.address}:9618").returncode != 0,
          "the collector to hear of it too", 30.0)
    until(lambda: "execute.trio" not in manager.run("condor_status", "-startd", "-af", "Machine"), "its ads to go",
          30.0)
