"""What a newcomer reads who has made a mistake: the place, what was meant, and what to do."""

from __future__ import annotations

import pytest

from tests.pool_fixture import PersonalPool, until

HUGE_MB = 1 << 20
MANY = "executable = /bin/true\nconcurrency_limits = lic:4000000000\nqueue\n"


@pytest.mark.parametrize(("line", "told"), [
    ("universe = vanila", ("I don't know about the 'vanila' universe; did you mean vanilla?", "t.sub, line 2")),
    ("universe = qqqqqq", ("expected one of container, docker, grid, local, parallel, scheduler, standard, vanilla.",
                           "t.sub, line 2")),
    ("quue 3", ("on Line 2 of t.sub: 'quue 3': expected NAME = VALUE or queue; did you mean queue?",)),
    ("request_memry = 4GB", ("did you mean request_memory?", "t.sub, line 2")),
])
def test_a_mistake_is_named_with_its_line(pool: PersonalPool, line: str, told: tuple[str, ...]) -> None:
    (pool.work / "t.sub").write_text(f"executable = /bin/true\n{line}\nqueue\n")
    done = pool.tool("condor_submit", "t.sub")
    assert done.returncode == 1
    assert [each for each in told if each not in done.stderr] == []


def test_what_no_machine_has_is_said_at_submit(pool: PersonalPool) -> None:
    description = f"executable = /bin/true\nrequest_memory = {HUGE_MB}MB\nqueue\n"
    done = pool.tool("condor_submit", stdin=description)
    assert done.returncode == 0
    assert f"no slot of the pool has request_cpus = 1 and request_memory = {HUGE_MB} MB now" in done.stderr
    pool.run("condor_rm", done.stdout.rsplit("cluster ", 1)[1].strip().rstrip("."))


def test_a_concurrency_limit_that_a_job_can_never_have(pool: PersonalPool) -> None:
    job = f"{pool.submit(MANY)}.0"
    told = "the job asks for 4,000,000,000 of the concurrency limit lic, which is "
    until(lambda: told in pool.run("condor_q", "-better-analyze", job), "the reason")
    pool.run("condor_rm", job)


def test_the_owners_page_fits_a_screen(pool: PersonalPool) -> None:
    lines = pool.run("condor_owner", "status").splitlines()
    assert len(lines) > 5
    assert [line for line in lines if len(line) > 79] == []
