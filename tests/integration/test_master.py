"""The master with real daemons: deaths, its own death, commands, mail, refusals."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.masters import DEADLINE_S, MailServer, Master, tool, until_gone
from tests.pool_fixture import PersonalPool, fresh_folder, until


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Master]:
    made = Master(tmp_path)
    yield made
    made.end()


def test_a_killed_daemon_is_started_again_at_once(master: Master) -> None:
    master.start()
    before = master.pids()
    os.kill(before["SCHEDD"], signal.SIGKILL)
    master.hear("STATUS=SCHEDD died of signal 9")
    master.hear("STATUS=SCHEDD is up")
    after = master.pids()
    assert after["SCHEDD"] != before["SCHEDD"]
    assert after["COLLECTOR"] == before["COLLECTOR"]


def test_daemons_outlive_a_killed_master_and_the_next_one_keeps_them(master: Master) -> None:
    master.start()
    before = master.pids()
    master.kill()
    master.start()
    assert master.pids() == before
    # It hears of their ends although they are not its children.
    os.kill(before["SCHEDD"], signal.SIGKILL)
    master.hear("STATUS=SCHEDD ended")
    master.hear("STATUS=SCHEDD is up")
    assert master.pids()["COLLECTOR"] == before["COLLECTOR"]


def test_a_daemon_that_the_record_misses_is_found_by_its_mark(master: Master) -> None:
    master.start()
    before = master.pids()
    master.kill()
    (master.folder / "run/master.children").unlink()
    master.start()
    assert master.pids() == before


def test_a_record_of_other_processes_is_not_believed(master: Master) -> None:
    master.start()
    before = master.pids()
    master.kill()
    for pid in before.values():
        os.kill(pid, signal.SIGKILL)
        until_gone(pid)
    record = master.folder / "run/master.children"
    record.write_text(record.read_text().replace(str(before["SCHEDD"]), str(os.getpid())))
    master.start()
    assert master.pids()["SCHEDD"] not in (before["SCHEDD"], os.getpid())


def test_a_second_master_of_the_same_folder_is_refused(master: Master) -> None:
    master.start()
    first = master.process
    assert first is not None
    master.spawn()
    assert master.process is not None
    assert master.process.wait(DEADLINE_S) == 44
    master.process = first
    assert first.poll() is None


def test_off_on_and_restart(master: Master) -> None:
    master.start()
    before = master.pids()
    done = tool("off", "-daemon", "schedd", config=master.config)
    assert done.stdout == 'Sent "Kill-Daemon" command for "SCHEDD" to local master\n'
    until_gone(before["SCHEDD"])
    tool("on", "-schedd", config=master.config)
    master.hear("STATUS=SCHEDD is up")
    done = tool("restart", "-fast", "-daemon", "collector", config=master.config)
    until_gone(before["COLLECTOR"])
    master.hear("STATUS=COLLECTOR is up")
    done = tool("off", "-daemon", "sched", config=master.config, expect=1)
    assert "did you mean SCHEDD?" in done.stderr


def test_restart_of_everything_keeps_the_masters_process_id(master: Master) -> None:
    master.start()
    before = master.pids()
    assert tool("restart", config=master.config).stdout == 'Sent "Restart" command to local master\n'
    for pid in before.values():
        until_gone(pid)
    master.hear("READY=1")
    assert not set(before.values()) & set(master.pids().values())
    assert master.process is not None
    assert master.process.poll() is None


def test_off_with_the_master_ends_it_all(master: Master) -> None:
    master.start()
    tool("off", "-master", config=master.config)
    assert master.process is not None
    assert master.process.wait(DEADLINE_S) == 0
    assert not (master.folder / "run/master.sock").exists()


def test_reconfig_follows_the_list_and_refuses_what_is_wrong(master: Master) -> None:
    master.start()
    before = master.pids()
    text = master.config.read_text()
    master.config.write_text(text.replace("COLLECTOR SCHEDD", "COLLECTOR SCHEDDD"))
    done = tool("reconfig", config=master.config, expect=1)
    assert "did you mean SCHEDD?" in done.stderr
    assert master.pids() == before
    master.config.write_text(text + "SCHEDD_INTERVAL = soon\n")
    done = tool("reconfig", config=master.config, expect=1)
    assert f"{master.config}, line 9: SCHEDD_INTERVAL = soon is not possible; expected a number of" in done.stderr
    assert master.pids() == before
    master.config.write_text(text.replace("COLLECTOR SCHEDD", "COLLECTOR"))
    tool("reconfig", config=master.config)
    until_gone(before["SCHEDD"])
    master.config.write_text(text)
    tool("reconfig", config=master.config)
    master.hear("STATUS=SCHEDD is up")


@pytest.mark.parametrize(("line", "words"), [
    ("SCHEDD_INTERVAL = soon", "SCHEDD_INTERVAL = soon is not possible; expected a number of"),
    ("NETWORK_INTERFACE = nowhere9", "NETWORK_INTERFACE: no interface fits; this machine has"),
    ("if", ""),
])
def test_a_restart_with_a_broken_configuration_is_refused(master: Master, line: str, words: str) -> None:
    master.start()
    before = master.pids()
    text = master.config.read_text()
    master.config.write_text(text + line + "\n")
    for arguments in ((), ("-daemon", "schedd")):
        done = tool("restart", *arguments, config=master.config, expect=1)
        assert f"{master.config}, line 9: {words}" in done.stderr
    assert master.pids() == before
    master.config.write_text(text)
    assert "Alive" in tool("who", "-daemons", config=master.config).stdout
    tool("restart", "-fast", "-daemon", "schedd", config=master.config)
    until_gone(before["SCHEDD"])
    master.hear("STATUS=SCHEDD is up")


def test_a_bad_value_is_refused_before_anything_listens(tmp_path: Path) -> None:
    master = Master(tmp_path, settings="MASTER_BACKOFF_FACTOR = twice")
    try:
        done = tool("master", config=master.config, expect=44)
        assert f"{master.config}, line 8: MASTER_BACKOFF_FACTOR = twice is not possible" in done.stderr
        assert "expected a number from 1 to 100" in done.stderr
        assert not (tmp_path / "run").exists()
    finally:
        master.end()


def test_the_admin_gets_mail_with_the_last_lines_of_the_log(tmp_path: Path) -> None:
    server = MailServer()
    smtp = f"SMTP_SERVER = 127.0.0.1:{server.port}\nMAIL_FROM = condor@example.org"
    master = Master(tmp_path, settings=f"CONDOR_ADMIN = boss@example.org\n{smtp}")
    try:
        master.start()
        pid = master.pids()["SCHEDD"]
        os.kill(pid, signal.SIGSEGV)
        assert server.came.wait(DEADLINE_S), master.log()
        (mail,) = server.mails
        assert "To: boss@example.org" in mail
        assert "Subject: [Condor] SCHEDD on" in mail
        assert f"(process {pid}) died of signal 11" in mail
        assert "condor-schedd listens at" in mail
    finally:
        server.close()
        master.end()


def test_an_smtp_server_that_is_dead_stops_nothing(tmp_path: Path) -> None:
    master = Master(tmp_path, settings="CONDOR_ADMIN = boss@example.org\nSMTP_SERVER = 127.0.0.1:1")
    try:
        master.start()
        os.kill(master.pids()["SCHEDD"], signal.SIGKILL)
        master.hear("STATUS=SCHEDD is up")
    finally:
        master.end()


def test_a_daemon_whose_configuration_is_wrong_is_not_started_for_ever(tmp_path: Path) -> None:
    # What only the schedd's environment says is not seen by the master.
    bad = "SCHEDD_ENVIRONMENT = _CONDOR_MAX_JOBS_RUNNING=many"
    master = Master(tmp_path, settings=f"MASTER_BACKOFF_CONSTANT = 1000\n{bad}")
    try:
        master.spawn()
        master.hear("STATUS=SCHEDD exited with status 44")
        text = master.config.read_text()
        master.config.write_text(text.replace("=many", "=10"))
        tool("reconfig", config=master.config)
        master.hear("STATUS=SCHEDD is up")
        master.hear("READY=1")
    finally:
        master.end()


def test_a_daemon_whose_port_is_taken_is_tried_until_it_is_free() -> None:
    """The master's log says what is in the way, and where that was said."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    with fresh_folder() as folder:
        pool = PersonalPool(folder, config=f"SCHEDD_PORT = {port}\nMASTER_BACKOFF_CEILING = 5\n")
        try:
            pool.run("condor_off", "-daemon", "schedd")
            until(lambda: "schedd" not in pool.daemons(), "the schedd's end")
            with socket.create_server(("127.0.0.1", port)):
                pool.run("condor_on", "-daemon", "schedd")
                log = pool.dir / "log" / "MasterLog"
                until(lambda: "SCHEDD is started again in" in log.read_text(), "the master has tried it twice")
            said = next(line for line in log.read_text().splitlines() if "exited with status 44" in line)
            assert "SCHEDD_PORT: cannot listen" in said
            assert f"port {port}: another program has it, which 'ss -ltnp' names" in said
            until(lambda: pool.tool("condor_q").returncode == 0, "the schedd's answer")
        finally:
            pool.stop()


def test_condor_master_goes_to_the_background_once_the_master_listens(tmp_path: Path) -> None:
    master = Master(tmp_path)
    try:
        tool("master", config=master.config)
        assert (tmp_path / "run/master.sock").exists()
        pid = int((tmp_path / "run/master.address").read_text().split()[-1])
        tool("off", "-master", "-fast", config=master.config)
        until_gone(pid)
    finally:
        master.end()


def test_two_schedds_side_by_side(tmp_path: Path) -> None:
    own = "\n".join(f"SCHEDD.EAST.{name} = $(LOCAL_DIR)/{name.lower()}.east" for name in ("RUN", "SPOOL", "LOG"))
    settings = f"EAST = $(SCHEDD)\nEAST_ARGS = -local-name east\n{own}\nSCHEDD.EAST.SCHEDD_NAME = east"
    master = Master(tmp_path, settings=settings, daemons="COLLECTOR SCHEDD EAST")
    try:
        master.start()
        assert set(master.pids()) == {"COLLECTOR", "SCHEDD", "EAST"}
        assert (tmp_path / "run.east/schedd.sock").exists()
        before = master.pids()
        tool("restart", "-daemon", "east", config=master.config)
        until_gone(before["EAST"])
        master.hear("STATUS=EAST is up")
        assert master.pids()["SCHEDD"] == before["SCHEDD"]
        os.kill(master.pids()["SCHEDD"], signal.SIGKILL)
        master.hear("STATUS=SCHEDD is up")
    finally:
        master.end()


def test_a_daemon_may_stop_itself_for_good(tmp_path: Path) -> None:
    settings = "SCHEDD.DAEMON_SHUTDOWN = true\nSCHEDD.UPDATE_INTERVAL = 1"
    master = Master(tmp_path, settings=settings)
    try:
        master.start()
        pid = master.pids()["SCHEDD"]
        until_gone(pid)
        tool("reconfig", config=master.config)
        assert "SCHEDD" not in master.pids()
        assert "does not want to be started again" in master.log()
    finally:
        master.end()
