"""A job in a user's own pool, where nothing but its user's rights keeps it apart from the daemons."""

from __future__ import annotations

from tests.harness.user_pool import UserPool, user_pool

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
    with user_pool("MAX_LOST_RUNS = 2") as pool:
        cluster = pool.submit(f"executable = {killer(pool)}\nlog = job.log\nqueue")
        pool.until_status(f"{cluster}.0", 5)
        (job,) = pool.jobs(str(cluster))
        assert "MAX_LOST_RUNS" in job["HoldReason"]
