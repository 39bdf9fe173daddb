"""Programs of the site around a job whose owner knows of them: what he leaves for them to read, to run and to say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pool_fixture import until
from tests.security.local_users import NEED_USERS, SharedPool, a_shared_pool

pytestmark = NEED_USERS

EXIT = """#!/bin/sh
cat > hooked
{ echo "argument $1"; id -un; echo "path $PATH"; } >> hooked
[ -e sneaked ] && echo sneaked >> hooked
exit 0
"""
TRAPS = """#!/bin/sh
printf 'Owner = "root"\\nForged = 1\\n' > forged
mv -f forged .job.ad
rm -f .machine.ad && mkfifo .machine.ad
for name in cat id sh echo; do printf '#!/bin/sh\\n/bin/touch sneaked\\n' > $name; chmod 755 $name; done
setsid /bin/sh -c 'while :; do echo more >> hooked; sleep 0.01; done' &
sleep 0.2
"""
JOB = """executable = {home}/{name}.sh
log = {name}.log
should_transfer_files = yes
{more}
queue
"""
SAID = {
    "no attribute": ("\x1b]0;title\x07\n012 (001.000.000) Job was held.\n...\n", "no attribute"),
    "more than it may": ("A = \"" + "x" * 70000 + "\"\n", "64 KiB"),
    "an expression without end": ("A = " + "(" * 30000 + "\n", "no attribute"),
    "a reason that is several lines": (
        'HookStatusCode = 7\nHookStatusMessage = "no\\n...\\n005 (001.000.000) \\033[2J"\n', "status 7"),
    "a status that is no number": ('HookStatusCode = "x"\nCmd = 5\nArguments = {1}\nEnvironment = [a = 1]\nsaid\n',
                                   "no attribute"),
}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedPool]:
    """One whose hooks are as simple as can be: one says what a file of the job has."""
    site = Path("/usr/local/lib") / f"condor-test-{tmp_path_factory.mktemp('hooks').parent.name}"
    site.mkdir(mode=0o755, parents=True)
    try:
        for name, text in (("exit", EXIT), ("prepare", "#!/bin/sh\ncat answer\n")):
            (site / name).write_text(text)
            (site / name).chmod(0o755)
        config = f"AFTER_HOOK_JOB_EXIT = {site}/exit\nBEFORE_HOOK_PREPARE_JOB = {site}/prepare\n"
        with a_shared_pool(config, slots=2, drops_root=True) as made:
            yield made
    finally:
        for path in site.iterdir():
            path.unlink()
        site.rmdir()


def submitted(pool: SharedPool, name: str, script: str, more: str) -> str:
    path = pool.mallory.home / f"{name}.sh"
    path.write_text(script)
    path.chmod(0o755)
    return f"{pool.submit_as(pool.mallory, JOB.format(home=pool.mallory.home, name=name, more=more))}.0"


def test_what_a_job_leaves_deceives_no_hook_after_it(pool: SharedPool) -> None:
    """An ad of its own making, a pipe in the place of another, programs with known names, a process that goes on."""
    job = submitted(pool, "traps", TRAPS, '+HookKeyword = "AFTER"\ntransfer_output_files = hooked')
    until(lambda: pool.status_of(job) in (0, 5), "the job to end")
    assert pool.status_of(job) == 0, pool.jobs(job)
    told = (pool.mallory.home / "hooked").read_text().splitlines()
    assert f'Owner = "{pool.mallory.name}"' in told
    assert told[-3:-1] == ["argument exit", pool.mallory.name]
    assert told[-1].startswith("path /")
    assert not {"Forged = 1", "sneaked", "more"} & set(told)


@pytest.mark.parametrize("what", SAID)
def test_what_a_hook_repeats_of_the_jobs_holds_the_job_and_forges_nothing(pool: SharedPool, what: str) -> None:
    text, said = SAID[what]
    name = f"said{list(SAID).index(what)}"
    (pool.mallory.home / "answer").write_text(text)
    job = submitted(pool, name, "#!/bin/sh\nexit 0\n", '+HookKeyword = "before"\ntransfer_input_files = answer')
    until(lambda: pool.status_of(job) in (0, 5), "the job to be held")
    (ad,) = pool.jobs(job)
    reason = str(ad["HoldReason"])
    assert (ad["HoldReasonCode"], said in reason) == (19, True), reason
    assert reason.isprintable()
    assert len(reason) < 1000
    log = (pool.mallory.home / f"{name}.log").read_text()
    assert log.count("\n012 (") == 1
    assert "\n005 (" not in log
    assert "\x1b" not in log
