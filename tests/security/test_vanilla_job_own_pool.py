"""A job in a user's own pool, where nothing but its user's rights keeps it apart from the daemons."""

from __future__ import annotations

from tests.harness.user_pool import UserPool, user_pool
from tests.pool_fixture import until

KILLER = """#!/bin/sh
pid=$$
while [ "$pid" -gt 1 ]; do
    if grep -q starter-host "/proc/$pid/cmdline" 2>/dev/null; then kill -KILL "$pid"; fi
    pid=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$pid/status")
done
exec sleep 1000
"""


def killer(pool: UserPool) -> str:
    program = pool.work / "killer.sh"
    program.write_text(KILLER)
    program.chmod(0o755)
    return program.name


def test_a_job_that_kills_its_starter_host_is_held_in_the_end() -> None:
    """And ``condor_personal stop`` (in user_pool) leaves no process of it."""
    with user_pool("MAX_LOST_RUNS = 2\nUSE_PID_NAMESPACES = false") as pool:
        cluster = pool.submit(f"executable = {killer(pool)}\nlog = job.log\nqueue")
        pool.until_status(f"{cluster}.0", 5)
        (job,) = pool.jobs(str(cluster))
        assert "MAX_LOST_RUNS" in job["HoldReason"]


def test_a_job_does_not_reach_the_processes_of_its_pool() -> None:
    """Where the kernel lets users make namespaces; where not, the log says so once."""
    with user_pool("MAX_LOST_RUNS = 2") as pool:
        text = f"#!/bin/sh\ntimeout 5 sh {pool.work}/killer.sh\nls -d /proc/[0-9]* | wc -l\nid -u\nexit 7\n"
        killer(pool)
        (pool.work / "looks.sh").write_text(text)
        (pool.work / "looks.sh").chmod(0o755)
        address = pool.dir / "run" / "starter-host.address"
        until(address.exists, "the starter host listens")
        before = address.read_text()
        pool.submit("executable = looks.sh\noutput = seen\nlog = job.log\nqueue")
        pool.wait()
        log = (pool.dir / "log" / "StarterHostLog").read_text()
        if "the kernel gives this user no namespaces" in log:
            assert log.count("the kernel gives this user no namespaces") == 1
            return
        processes, uid = (pool.work / "seen").read_text().split()
        assert int(processes) < 10
        assert int(uid) == pool.dir.stat().st_uid
        assert "return value 7" in (pool.work / "job.log").read_text()
        assert address.read_text() == before
