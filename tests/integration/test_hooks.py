"""Programs of the site around jobs, on a real pool: what they are told, what they change, and how they end."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until

CHOOSE = """#!/bin/sh
cat > ad.$1
id -un > who
echo prepared > made
cat <<'END'
Cmd = "/bin/sh"
Arguments = "-c 'cat made who; echo $CHOSEN'"
Environment = "CHOSEN=yes"
Other = 1
END
"""
FIRST = """#!/bin/sh
cat > {place}/first.ad
id -un > {place}/first.who
env > {place}/first.env
pwd > {place}/first.pwd
sleep 1000 > /dev/null 2>&1 &
echo $! > {place}/first.pid
echo 'Environment = "CHOSEN=early"'
"""
LAST = """#!/bin/sh
cat > {place}/last.ad
ls > {place}/last.ls
"""
UPDATE = """#!/bin/sh
cat > update.new && mv update.new update
"""
EXIT = """#!/bin/sh
cat > {place}/exit.$1.new && mv {place}/exit.$1.new {place}/exit.$1
"""
REFUSE = """#!/bin/sh
echo "the disk is not mounted" >&2
exit 7
"""
ELSEWHERE = """#!/bin/sh
if test -e {place}/ready; then exit 0; fi
echo x >> {place}/tries
echo 'HookStatusCode = 300'
"""
SLOW = """#!/bin/sh
touch {place}/slow.begun
sleep 1000
"""
WRAPPER = """#!/bin/sh
if test -n "$NEEDS_LICENCE" && ! test -e {place}/licence; then
    echo x >> {place}/wrapped
    echo "no licence server" > "$_CONDOR_WRAPPER_ERROR_FILE"
    exit 3
fi
export WRAPPED="$#"
exec "$@"
"""
CONFIG = """
USER_JOB_WRAPPER = {place}/wrapper
SITE_HOOK_PREPARE_JOB = {place}/choose
SITE_HOOK_PREPARE_JOB_ARGS = word
WATCH_HOOK_UPDATE_JOB_INFO = {place}/update
WATCH_HOOK_JOB_EXIT = {place}/exit
STARTER_INITIAL_UPDATE_INTERVAL = 1
STARTER_UPDATE_INTERVAL = 1
FIRST_HOOK_PREPARE_JOB_BEFORE_TRANSFER = {place}/first
FIRST_HOOK_PREPARE_JOB = {place}/last
NOTYET_HOOK_PREPARE_JOB_BEFORE_TRANSFER = {place}/refuse
NOTHERE_HOOK_PREPARE_JOB_BEFORE_TRANSFER = {place}/elsewhere
NEVER_HOOK_PREPARE_JOB_BEFORE_TRANSFER = {place}/slow
ABSENT_HOOK_PREPARE_JOB_BEFORE_TRANSFER = {place}/there-is-none
TOOLATE_HOOK_PREPARE_JOB_BEFORE_TRANSFER = {place}/slow
TOOLATE_HOOK_PREPARE_JOB_TIMEOUT = 1
REFUSE_HOOK_PREPARE_JOB = {place}/refuse
GONE_HOOK_PREPARE_JOB = {place}/there-is-none
ELSEWHERE_HOOK_PREPARE_JOB = {place}/elsewhere
SLOW_HOOK_PREPARE_JOB = {place}/slow
LATE_HOOK_PREPARE_JOB = {place}/slow
LATE_HOOK_PREPARE_JOB_TIMEOUT = 1
LATEEND_HOOK_JOB_EXIT = {place}/slow
LATEEND_HOOK_JOB_EXIT_TIMEOUT = 1
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        place = folder / "site"
        place.mkdir()
        place.chmod(0o777)
        for name, text in (("first", FIRST), ("last", LAST), ("choose", CHOOSE), ("update", UPDATE), ("exit", EXIT),
                           ("refuse", REFUSE),
                           ("elsewhere", ELSEWHERE), ("slow", SLOW), ("wrapper", WRAPPER)):
            (place / name).write_text(text.replace("{place}", str(place)))
            (place / name).chmod(0o755)
        made = PersonalPool(folder, slots=2, config=CONFIG.replace("{place}", str(place)) + "NEGOTIATOR_INTERVAL = 2\n")
        yield made
        made.stop()


def submit(pool: PersonalPool, name: str, keyword: str, script: str = "echo plain", more: str = "") -> int:
    return pool.submit(
        f"executable = /bin/sh\ntransfer_executable = false\narguments = \"-c '{script}'\"\n"
        f"should_transfer_files = YES\noutput = {name}.out\nerror = {name}.err\nlog = {name}.log\n"
        f"hook_keyword = {keyword}\n{more}\nqueue\n")


def reason(pool: PersonalPool, cluster: int) -> str:
    pool.until_status(f"{cluster}.0", 5)
    (ad,) = pool.jobs(str(cluster))
    assert ad["HoldReasonCode"] == 19
    return str(ad["HoldReason"])


def test_the_hook_before_the_start_chooses_the_program(pool: PersonalPool) -> None:
    submit(pool, "chosen", "site")
    pool.wait("chosen.log")
    first, user, third = (pool.work / "chosen.out").read_text().split()
    assert (first, third) == ("prepared", "yes")
    assert user != "root"
    assert "ClusterId = " in (pool.work / "ad.word").read_text(), "what it makes in the folder comes home with the rest"
    assert "Other of the hook SITE_HOOK_PREPARE_JOB have no effect" in (pool.dir / "log" / "StarterHostLog").read_text()


def test_the_hook_before_the_transfer_runs_first(pool: PersonalPool) -> None:
    """Its output changes what the next hook, and the program, are told; nothing of it is left."""
    place = pool.folder / "site"
    (pool.work / "brought").write_text("input\n")
    submit(pool, "early", "first", script="cat brought; echo $CHOSEN", more="transfer_input_files = brought")
    pool.wait("early.log")
    assert (pool.work / "early.out").read_text() == "input\nearly\n"
    assert "ClusterId = " in (place / "first.ad").read_text()
    assert (place / "first.pwd").read_text() == "/\n"
    assert "_CONDOR_SCRATCH_DIR" not in (place / "first.env").read_text(), "there is none yet"
    assert (place / "first.who").read_text() != "root\n"
    assert 'Environment = "CHOSEN=early"' in (place / "last.ad").read_text()
    assert "brought" in (place / "last.ls").read_text().split()
    assert not os.path.exists(f"/proc/{(place / 'first.pid').read_text().strip()}"), "what it began has ended"


def test_a_job_whose_hook_before_the_transfer_fails(pool: PersonalPool) -> None:
    """It is held, or tried elsewhere, as with the other one."""
    place = pool.folder / "site"
    assert "NOTYET_HOOK_PREPARE_JOB_BEFORE_TRANSFER failed with status 7: the disk is not mounted" in reason(
        pool, submit(pool, "notyet", "notyet"))
    assert "ABSENT_HOOK_PREPARE_JOB_BEFORE_TRANSFER cannot be run" in reason(pool, submit(pool, "absent", "absent"))
    assert "did not end within 1 s" in reason(pool, submit(pool, "toolate", "toolate"))
    submit(pool, "nothere", "nothere")
    until(lambda: (place / "tries").exists() and len((place / "tries").read_text().split()) >= 2, "it is tried again")
    (place / "ready").touch()
    pool.wait("nothere.log")
    assert (pool.work / "nothere.out").read_text() == "plain\n"
    for name in ("ready", "tries"):
        (place / name).unlink()


def test_a_job_is_removed_while_its_hook_before_the_transfer_runs(pool: PersonalPool) -> None:
    begun = pool.folder / "site" / "slow.begun"
    begun.unlink(missing_ok=True)
    cluster = submit(pool, "never", "never")
    until(begun.exists, "the hook runs")
    pool.run("condor_rm", str(cluster))
    until(lambda: "009 (" in (pool.work / "never.log").read_text(), "the job is gone")
    begun.unlink()


def test_one_that_fails_holds_the_job_with_its_text(pool: PersonalPool) -> None:
    assert "REFUSE_HOOK_PREPARE_JOB failed with status 7: the disk is not mounted" in reason(
        pool, submit(pool, "refused", "refuse"))
    assert "GONE_HOOK_PREPARE_JOB cannot be run" in reason(pool, submit(pool, "gone", "gone"))
    assert "did not end within 1 s" in reason(pool, submit(pool, "late", "late"))
    assert "plain" not in "".join(path.read_text() for path in pool.work.glob("refused.out"))


def test_the_wrapper_starts_each_job_in_its_place(pool: PersonalPool) -> None:
    pool.submit("executable = /bin/sh\narguments = \"-c 'echo $0 $WRAPPED; echo $1; exit 4' program 'two words'\"\n"
                "should_transfer_files = YES\noutput = wrapped.out\nlog = wrapped.log\nqueue\n")
    pool.wait("wrapped.log")
    assert (pool.work / "wrapped.out").read_text() == "program 5\ntwo words\n"
    assert "(return value 4)" in (pool.work / "wrapped.log").read_text()


def test_a_job_that_its_wrapper_did_not_start_is_run_again(pool: PersonalPool) -> None:
    """Whether the wrapper says so, or is not there."""
    place = pool.folder / "site"
    submit(pool, "licence", "none", more="environment = NEEDS_LICENCE=1")
    wrapped = place / "wrapped"
    until(lambda: wrapped.exists() and len(wrapped.read_text().split()) >= 2, "a second try")
    (place / "wrapper").rename(place / "away")
    log = pool.work / "licence.log"
    until(lambda: "wrapper: cannot be executed" in log.read_text(), lambda: f"a try without it: {log.read_text()}")
    (place / "licence").touch()
    (place / "away").rename(place / "wrapper")
    pool.wait("licence.log")
    assert (pool.work / "licence.out").read_text() == "plain\n"
    assert "USER_JOB_WRAPPER did not start the job: no licence server" in log.read_text()
    assert not (pool.work / ".job_wrapper_failure").exists()


def test_one_that_wants_the_job_elsewhere_leaves_it_idle(pool: PersonalPool) -> None:
    submit(pool, "elsewhere", "elsewhere")
    tries = pool.folder / "site" / "tries"
    until(lambda: tries.exists() and len(tries.read_text().split()) >= 2, "it is tried again")
    (pool.folder / "site" / "ready").touch()
    pool.wait("elsewhere.log")
    assert (pool.work / "elsewhere.out").read_text() == "plain\n"


def test_hooks_are_told_of_usage_and_of_the_end(pool: PersonalPool) -> None:
    submit(pool, "watched", "watch", "until test -e update; do sleep 0.1; done; cp update seen; exit 4")
    pool.wait("watched.log")
    seen = (pool.work / "seen").read_text()
    assert 'JobState = "Running"' in seen
    assert "RemoteUserCpu = " in seen
    told = (pool.folder / "site" / "exit.exit").read_text()
    assert "ExitCode = 4" in told
    assert "ExitBySignal = false" in told
    cluster = submit(pool, "removed", "watch", "echo begun; sleep 1000", "stream_output = true")
    until(lambda: (pool.work / "removed.out").exists() and (pool.work / "removed.out").read_text(), "it runs")
    pool.run("condor_rm", str(cluster))
    until((pool.folder / "site" / "exit.remove").exists, "the hook for its end")


def test_a_job_that_is_removed_takes_its_hook_along(pool: PersonalPool) -> None:
    begun = pool.folder / "site" / "slow.begun"
    begun.unlink(missing_ok=True)
    cluster = submit(pool, "slow", "slow")
    until(begun.exists, "the hook runs")
    pool.run("condor_rm", str(cluster))
    pool.until_status(f"{cluster}.0", 0)
    until(lambda: not any(command.endswith("/site/slow") for command in pool.processes().values()), "it is gone")


def test_one_at_the_end_that_does_not_end_is_not_waited_for_longer(pool: PersonalPool) -> None:
    submit(pool, "lateend", "lateend")
    pool.wait("lateend.log")
    assert (pool.work / "lateend.out").read_text() == "plain\n"
    assert os.path.exists(pool.folder / "site" / "slow.begun")
