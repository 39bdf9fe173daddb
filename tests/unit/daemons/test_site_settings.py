"""Programs of the site as the configuration has them, and what is said of values that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.config import Config, ConfigError, load_config
from condor_actors.cores.site_programs.programs import Mode, Publish
from condor_actors.daemons.site_settings import site_settings

WHOLE = """
STARTD_CRON_JOBLIST = health, Temp health
STARTD_CRON_HEALTH_EXECUTABLE = /opt/health
STARTD_CRON_HEALTH_MODE = oneshot
STARTD_CRON_HEALTH_PREFIX = Site_
STARTD_CRON_HEALTH_SLOTS = 1, 2
STARTD_CRON_HEALTH_RECONFIG_RERUN = true
STARTD_CRON_temp_EXECUTABLE = /opt/temp
STARTD_CRON_temp_PERIOD = 5m
STARTD_CRON_temp_ARGS = "one 'two words'"
STARTD_CRON_temp_ENV = A=1;B = b c
STARTD_CRON_temp_CWD = /var/tmp
STARTD_CRON_temp_KILL = true
STARTD_CRON_temp_JOB_LOAD = 0.05
STARTD_CRON_temp_CONDITION = Cpus > 1
STARTD_CRON_temp_RECONFIG = true
STARTD_CRON_AUTOPUBLISH = IF_CHANGED
STARTD_CRON_CONFIG_VAL = /usr/bin/condor_config_val
"""


def config_of(tmp_path: Path, text: str) -> Config:
    file = tmp_path / "condor_config"
    file.write_text(text)
    return load_config(subsystem="STARTD", environ={"CONDOR_CONFIG": str(file)}, reads_user_file=False)


def test_all_that_can_be_said(tmp_path: Path) -> None:
    found = site_settings(config_of(tmp_path, WHOLE), "STARTD_CRON", {"CONDOR_CONFIG": "/c", "SECRET": "x"})
    health, temp = found.programs
    assert (found.publish, found.most_load, found.logs_failures) == (Publish.IF_CHANGED, 0.1, False)
    assert (health.name, health.mode, health.period_s, health.prefix, health.slots, health.run_again) == (
        "health", Mode.ONE_SHOT, 0.0, "Site_", {1, 2}, True)
    assert (temp.name, temp.mode, temp.period_s, temp.arguments, temp.directory) == (
        "Temp", Mode.PERIODIC, 300.0, ("one", "two words"), "/var/tmp")
    assert (temp.kill, temp.load, temp.hang_up) == (True, 0.05, True)
    assert dict(temp.environment) == {
        "A": "1", "B": " b c", "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/", "LANG": "C.UTF-8",
        "CONDOR_CONFIG": "/c", "STARTD_CRON_INTERFACE_VERSION": "1", "STARTD_CRON_NAME": "STARTD_CRON",
        "STARTD_CRON_CONFIG_VAL": "/usr/bin/condor_config_val"}
    assert str(temp.condition) == "Cpus > 1"


@pytest.mark.parametrize(("line", "said"), [
    ("STARTD_CRON_X_EXECUTABLE =", "STARTD_CRON_JOBLIST: x has no program (STARTD_CRON_X_EXECUTABLE)"),
    ("STARTD_CRON_X_EXECUTABLE = bin/x", "bin/x is no absolute path"),
    ("STARTD_CRON_X_CWD = tmp", "tmp is no absolute path"),
    ("STARTD_CRON_X_PERIOD =", "STARTD_CRON_X_PERIOD: it is not set"),
    ("STARTD_CRON_X_PERIOD = 5d", "5d is no period"),
    ("STARTD_CRON_X_PERIOD = 0", "0 is no period"),
    ("STARTD_CRON_X_PERIOD = 99999999h", "is no period"),
    ("BENCHMARKS_JOBLIST = mips x", "BENCHMARKS_JOBLIST: x is one of STARTD_CRON_JOBLIST too"),
    ("BENCHMARKS_JOBLIST = mips y", "y has no program (BENCHMARKS_Y_EXECUTABLE)"),
    ("BENCHMARKS_JOBLIST = y\nBENCHMARKS_Y_EXECUTABLE = /y\nBENCHMARKS_Y_MODE = OneShot",
     "a benchmark runs when RUNBENCHMARKS says so"),
    ("STARTD_CRON_X_MODE = Daily", "Daily is no mode"),
    ("STARTD_CRON_X_PREFIX = a-b", "a-b cannot begin the name of an attribute"),
    ("STARTD_CRON_X_SLOTS = slot1", "slot1 is no number of a slot"),
    ("STARTD_CRON_X_ARGS = \"one 'two\"", "Unbalanced quote"),
    ("STARTD_CRON_X_ENV = A", "'A' is no variable"),
    ("STARTD_CRON_X_KILL = perhaps", "STARTD_CRON_X_KILL = perhaps is not possible"),
    ("STARTD_CRON_JOBLIST = x y/z", "'y/z' is no name of a program"),
    ("STARTD_CRON_AUTOPUBLISH = Sometimes", "Sometimes is not possible"),
])  # fmt: skip
def test_what_cannot_be_used_is_told_with_its_place(tmp_path: Path, line: str, said: str) -> None:
    config = config_of(tmp_path, "STARTD_CRON_JOBLIST = x\nSTARTD_CRON_X_EXECUTABLE = /x\nSTARTD_CRON_X_PERIOD = 60\n"
                       + line + "\n")
    with pytest.raises(ConfigError) as error:
        site_settings(config, "STARTD_CRON", {})
    assert said in str(error.value)
    assert "condor_config" in str(error.value)


def test_a_period_may_be_an_expression(tmp_path: Path) -> None:
    config = config_of(tmp_path, "use FEATURE : StartdCronPeriodic(t, 15*60, /opt/t, a b)\n"
                       "use FEATURE : PeriodicCronHook(SCHEDD_CRON, s, 1h, /opt/s)\n"
                       "use FEATURE : ScheddCronContinuous(c, /opt/c, x)\n")
    (found,) = site_settings(config, "STARTD_CRON", {}).programs
    assert (found.period_s, found.executable, found.arguments) == (900.0, "/opt/t", ("a", "b"))
    first, second = site_settings(config, "SCHEDD_CRON", {}).programs
    assert {each.name: (each.period_s, each.mode) for each in (first, second)} == {
        "s": (3600.0, Mode.PERIODIC), "c": (10.0, Mode.WAIT_FOR_EXIT)}


def test_benchmarks_of_the_site_run_on_demand(tmp_path: Path) -> None:
    config = config_of(tmp_path, "BENCHMARKS_JOBLIST = mips Stream\nBENCHMARKS_STREAM_EXECUTABLE = /opt/stream\n"
                       "BENCHMARKS_STREAM_PREFIX = Stream\nSTARTD_CRON_JOBLIST = disk\n"
                       "STARTD_CRON_DISK_EXECUTABLE = /opt/disk\nSTARTD_CRON_DISK_MODE = OnDemand\n")
    disk, stream = site_settings(config, "STARTD_CRON", {}).programs
    assert (disk.name, disk.mode, disk.benchmark, disk.load) == ("disk", Mode.ON_DEMAND, False, 0.01)
    assert (stream.name, stream.mode, stream.benchmark, stream.load, stream.prefix) == (
        "Stream", Mode.ON_DEMAND, True, 1.0, "Stream")
    assert dict(stream.environment)["BENCHMARKS_NAME"] == "BENCHMARKS"


def test_nothing_is_on_demand_at_a_schedd(tmp_path: Path) -> None:
    config = config_of(tmp_path, "SCHEDD_CRON_JOBLIST = x\nSCHEDD_CRON_X_EXECUTABLE = /x\n"
                       "SCHEDD_CRON_X_MODE = OnDemand\n")
    with pytest.raises(ConfigError, match="which a schedd does not"):
        site_settings(config, "SCHEDD_CRON", {})
