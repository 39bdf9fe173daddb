"""Services are forked as children of the one who asks, look as if they had been executed, and begin when told so."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from condor_actors.machine.supervisor.process_titles import ROOM

PRELUDE = """
import json, os, random, signal, sys, time
from condor_actors.machine.supervisor import fork_server
COMMAND = [sys.executable, "-P", "-m", "condor_actors.services", "visitor", "one word", ""]
born = fork_server.begin() if fork_server.possible() else None
if born is not None:
    def shown(name):
        with open(f"/proc/self/{name}", "rb") as file:
            return file.read().decode()
    print(json.dumps({
        "words": born, "argv": sys.argv[1:], "pid": os.getpid(), "parent": os.getppid(), "session": os.getsid(0),
        "folder": os.getcwd(), "variables": dict(os.environ), "cmdline": shown("cmdline"), "environ": shown("environ"),
        "descriptors": sorted(os.listdir("/proc/self/fd")), "random": random.random(),
    }), flush=True)
    if "FIRST_WAIT" in os.environ:
        signal.pause()
    sys.exit(7)
output = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
environment = {name: value for name, value in os.environ.items() if name != "WITHOUT"}
environment.update(OWN="value", CONDOR_CONFIG="/the/config")
server = fork_server.server()
def birth(**more):
    return server.birth(COMMAND, {**environment, **more}, output, "/")
"""


def driven(folder: Path, code: str) -> str:
    """What a driver prints that has a fork server as ``server``."""
    done = subprocess.run([sys.executable, "-P", "-c", PRELUDE + code, *ROOM], cwd=folder, capture_output=True,
                          text=True, timeout=60, check=False,
                          env={**os.environ, "WITHOUT": "gone in the child, which leaves room for others"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_forked_service_is_a_child_that_looks_executed(tmp_path: Path) -> None:
    said = json.loads(driven(tmp_path, """
one = birth()
begun_before_the_word = os.path.getsize("output")
one.go()
_, status = os.waitpid(one.pid, 0)
print(json.dumps({"me": os.getpid(), "pid": one.pid, "exit": os.waitstatus_to_exitcode(status),
                  "before": begun_before_the_word, "server": server._pid}))
fork_server.end()
"""))
    child = json.loads((tmp_path / "output").read_text())
    assert (said["exit"], said["before"], child["pid"], child["parent"]) == (7, 0, said["pid"], said["me"])
    assert (child["session"], child["folder"]) == (child["pid"], "/")
    assert child["words"] == child["argv"] == ["visitor", "one word", ""]
    words = child["cmdline"].rstrip("\0").split("\0")
    assert words == [sys.executable, "-P", "-m", "condor_actors.services", "visitor", "one word"]
    shown = [item for item in child["environ"].split("\0") if item]
    assert shown[0] == "CONDOR_CONFIG=/the/config"
    assert "OWN=value" in shown
    assert child["variables"]["OWN"] == "value"
    assert "WITHOUT" not in child["variables"]
    assert child["descriptors"] == ["0", "1", "2", "3"], "3: the listing itself"


def test_what_is_never_told_to_begin_ends(tmp_path: Path) -> None:
    assert driven(tmp_path, """
one = birth()
one._channel.close()
_, status = os.waitpid(one.pid, 0)
print(os.waitstatus_to_exitcode(status), os.path.getsize("output"))
""").split() == ["0", "0"]


def test_the_server_ends_with_its_parent_and_what_it_forked_goes_on(tmp_path: Path) -> None:
    server, child = map(int, driven(tmp_path, """
one = birth(FIRST_WAIT="")
one.go()
while not os.path.getsize("output"):
    time.sleep(0.01)
print(server._pid, one.pid, flush=True)
os._exit(0)
""").split())
    try:
        descriptor = os.pidfd_open(server)
    except ProcessLookupError:
        pass
    else:
        assert select.select([descriptor], [], [], 30)[0]
        os.close(descriptor)
    os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("trouble", ["os.kill(server._pid, signal.SIGKILL)", "os.kill(server._pid, signal.SIGSTOP)"])
def test_without_a_server_the_same_is_executed(tmp_path: Path, trouble: str) -> None:
    said = driven(tmp_path, f"""
{trouble}
fork_server.PATIENCE_S = 0.5
pid = fork_server.start([sys.executable, "-c", "print('executed')"], environment, output)
print(fork_server.server(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
""")
    assert said.split() == ["None", "0"]
    assert (tmp_path / "output").read_text() == "executed\n"


@pytest.mark.parametrize("more", [
    {"PYTHONPATH": "/x"}, {"LD_PRELOAD": "/x.so"}, {"LANG": "xx"}])
def test_what_acts_on_the_interpreter_needs_a_new_one(tmp_path: Path, more: dict[str, str]) -> None:
    assert driven(tmp_path, f"print(birth(**{more!r}), server is fork_server.server())").split() == ["None", "True"]


def test_a_longer_command_line_than_there_is_room_for_is_executed(tmp_path: Path) -> None:
    assert driven(tmp_path, 'COMMAND.append("x" * 70_000)\nprint(birth())').strip() == "None"


def test_an_environment_that_no_packet_holds_is_executed(tmp_path: Path) -> None:
    assert driven(tmp_path, 'print(birth(LONG="x" * 140_000), bool(fork_server.server()))').split() == ["None", "True"]


def test_random_numbers_are_nobody_elses(tmp_path: Path) -> None:
    driven(tmp_path, """
for _ in range(2):
    one = birth()
    one.go()
    os.waitpid(one.pid, 0)
""")
    first, second = map(json.loads, (tmp_path / "output").read_text().splitlines())
    assert first["random"] != second["random"]
