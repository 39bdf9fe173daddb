"""Programs of the site on a real pool: what they print is in the ads, jobs require it, and nothing of them is left."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until

SENSOR = """#!/bin/sh
echo "Licences = `cat {place}/licences`"
echo "RunAs = \\"`id -un`\\""
echo "Variables = \\"`env | cut -d= -f1 | sort | tr '\\n' ' '`\\""
echo 'State = "Owner"'
echo 'this is no attribute'
echo "- all update:true"
echo "IsSecond = true"
echo "SlotId = 2"
echo "- two update:true"
"""
STREAM = """#!/bin/sh
while :; do echo "Beats = `cat {place}/licences`"; echo "- update:true"; sleep 1; done
"""
STONES = """#!/bin/sh
sleep 0.2
echo "Stones = 4711"
"""
QUEUE = """#!/bin/sh
echo 'SiteName = "Madison"'
echo 'Name = "other"'
echo '- update:true'
"""
CONFIG = """
STARTD_CRON_JOBLIST = sensor stream
STARTD_CRON_SENSOR_EXECUTABLE = {place}/sensor
STARTD_CRON_SENSOR_PERIOD = 1s
STARTD_CRON_SENSOR_ENV = MORE=1
STARTD_CRON_STREAM_EXECUTABLE = {place}/stream
STARTD_CRON_STREAM_MODE = WaitForExit
STARTD_CRON_STREAM_PERIOD = 5
STARTD_CRON_STREAM_PREFIX = Site_
STARTD_CRON_STREAM_CONDITION = Arch == $(ARCH)
STARTD_CRON_LOG_NON_ZERO_EXIT = true
BENCHMARKS_JOBLIST = stones
BENCHMARKS_STONES_EXECUTABLE = {place}/stones
RunBenchmarks = LastBenchmark == 0
STARTD_ATTRS = IsSecond
IsSecond = false
SCHEDD_CRON_JOBLIST = queue
SCHEDD_CRON_QUEUE_EXECUTABLE = {place}/queue
SCHEDD_CRON_QUEUE_MODE = OneShot
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        place = folder / "site"
        place.mkdir()
        for name, text in (("sensor", SENSOR), ("stream", STREAM), ("queue", QUEUE), ("stones", STONES)):
            (place / name).write_text(text.replace("{place}", str(place)))
            (place / name).chmod(0o755)
        (place / "licences").write_text("1\n")
        config = CONFIG.replace("{place}", str(place)).replace("$(ARCH)", '"$(ARCH)"')
        made = PersonalPool(folder, slots=2, config=config)
        yield made
        made.stop()


def shown(pool: PersonalPool, *names: str) -> list[str]:
    return pool.run("condor_status", "-sort", "SlotID", "-af:,", *names).splitlines()


def test_what_they_print_is_in_the_ads_and_jobs_require_it(pool: PersonalPool) -> None:
    until(lambda: shown(pool, "Licences", "Site_Beats") == ["1, 1", "1, 1"], lambda: str(shown(pool, "Licences")))
    until(lambda: shown(pool, "IsSecond") == ["false", "true"], "the ad for one slot is merged into that alone")
    assert shown(pool, "State") == ["Unclaimed"] * 2, "what the startd says itself is not overwritten"
    user, names = shown(pool, "RunAs", "Variables")[0].split(", ", 1)
    assert user == ("nobody" if os.geteuid() == 0 and not _has_condor() else user)
    assert user != "root"
    allowed = {"PATH", "HOME", "LANG", "CONDOR_CONFIG", "MORE", "STARTD_CRON_NAME", "STARTD_CRON_INTERFACE_VERSION",
               "PWD", "OLDPWD", "SHLVL", "_", "_CONDOR_RUN_MARK"}
    assert set(names.split()) <= allowed
    cluster = pool.submit("executable = /bin/true\ntransfer_executable = false\nshould_transfer_files = YES\n"
                          "requirements = Licences > 1\nlog = wants.log\nqueue\n")
    assert pool.status_of(f"{cluster}.0") == 1
    (pool.folder / "site" / "licences").write_text("2\n")
    pool.wait("wants.log")
    until(lambda: shown(pool, "Licences", "Site_Beats") == ["2, 2", "2, 2"], "the stream goes on")
    log = (pool.dir / "log" / "StartdLog").read_text()
    assert "programs of the site may not say State" in log
    assert "lines of its output are no attributes: 'this is no attribute'" in log


def _has_condor() -> bool:
    try:
        pwd.getpwnam("condor")
    except KeyError:
        return False
    return True


def test_the_schedds_ad_has_what_its_programs_print(pool: PersonalPool) -> None:
    until(lambda: pool.run("condor_status", "-schedd", "-af", "SiteName").strip() == "Madison", "the schedd's ad")
    assert pool.run("condor_status", "-schedd", "-af", "Name").strip() != "other"


def test_a_startd_that_is_killed_leaves_none_and_the_next_one_runs_them_again(pool: PersonalPool) -> None:
    def streams() -> list[int]:
        return [pid for pid, command in pool.processes().items() if command.endswith("/site/stream")]

    before = until(streams, "the stream runs")
    old = pool.kill("startd")
    pool.until_restarted("startd", old)
    until(lambda: streams() and not set(before) & set(streams()), "another stream, and not the old one")
    until(lambda: len(streams()) == 1, "one alone: a program that begins another looks for a moment like two")


def test_other_programs_after_reconfig_and_wrong_ones_are_refused(pool: PersonalPool) -> None:
    file = pool.dir / "config.d" / "10-given"
    text = file.read_text()
    file.write_text(text + "\nSTARTD_CRON_SENSOR_PERIOD = never\n")
    done = pool.tool("condor_reconfig", "-startd")
    assert done.returncode != 0
    assert "never is no period" in done.stdout + done.stderr
    file.write_text(text + "\nSTARTD_CRON_JOBLIST = stream\n")
    pool.run("condor_reconfig")
    until(lambda: shown(pool, "Licences", "IsSecond") == ["undefined, false"] * 2, lambda: str(shown(pool, "Licences")))


def test_a_benchmark_of_the_site_runs_when_the_machine_measures_its_speed(pool: PersonalPool) -> None:
    until(lambda: shown(pool, "Stones", "LastBenchmark > 0") == ["4711, true"] * 2, "it was measured")
