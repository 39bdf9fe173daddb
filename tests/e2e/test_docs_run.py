"""What README and the administration page tell a newcomer to type works as it stands, on a machine that has nothing."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.commands import program_of
from tests.harness.namespaces import NEED_NAMESPACES, Machine, Wire, a_wire
from tests.harness.readable_python import python_for_all
from tests.harness.user_pool import UserPool, user_pool
from tests.pool_fixture import BIN, PersonalPool, fresh_folder, open_to_jobs, until

ROOT = Path(__file__).resolve().parents[2]
BARE = """
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs {folder}/layers
for place in /etc /var; do
    layers={folder}/layers$place
    mkdir -p $layers/upper $layers/work
    mount -t overlay overlay -o lowerdir=$place,upperdir=$layers/upper,workdir=$layers/work $place
done
rm -rf /etc/condor /var/lib/condor
own=$(getent passwd "$(id -u)" | cut -d : -f 6)/.condor
[ ! -d "$own" ] || mount -t tmpfs tmpfs "$own"
hostname {name}.trio
touch {folder}/ready
exec sleep 100000
"""


def blocks(page: str, language: str = "") -> list[str]:
    """The code of a page, block by block."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


def lines_of(machine: str) -> Iterator[str]:
    """The commands that the administration page has typed at ``machine``."""
    for block in blocks("docs/administration.md"):
        for line in block.splitlines():
            prompt, dollar, command = line.partition("$ ")
            if dollar and prompt == machine:
                yield command.strip()


class Bare(Machine):
    """A machine without configuration, account or folders of a pool; all of its commands see the same file system."""

    def __init__(self, wire: Wire, name: str, number: int) -> None:
        super().__init__(wire, name, number, "")
        del self.environment["CONDOR_CONFIG"]
        layers = wire.folder / name
        (layers / "layers").mkdir()
        self._room = subprocess.Popen(
            ["ip", "netns", "exec", self.namespace, "unshare", "--mount", "--uts", "--pid", "--fork",
             "--kill-child", "--mount-proc", "sh", "-c", BARE.format(folder=layers, name=name)],
            env=self.environment)
        until((layers / "ready").exists, "the bare machine")
        self._first = Path(f"/proc/{self._room.pid}/task/{self._room.pid}/children").read_text().split()[0]

    def command(self, *words: str) -> list[str]:
        """The command line that runs ``words`` there."""
        program = str(BIN / words[0]) if (BIN / words[0]).exists() else words[0]
        return ["nsenter", f"--target={self._first}", "--mount", "--uts", "--net", "--pid", "sh", "-c",
                f'cd {self.work} && exec "$@"', "sh", program, *words[1:]]

    def type(self, line: str) -> str:
        """A line as root types it."""
        return self.run("sh", "-c", line)

    def stop(self) -> None:
        """Stop the master, then the machine."""
        self.tool("condor_off", "-master", "-fast")
        until(lambda: set(self.pids()) == {self._room.pid, int(self._first)}, "the end of the machine's daemons")
        self._room.kill()
        self._room.wait()

    def logs(self, lines: int = 12) -> str:
        """The ends of the daemons' logs, for failures."""
        return self.tool("sh", "-c", f"tail -n {lines} /var/lib/condor/log/*").stdout


@pytest.fixture
def bare() -> Iterator[tuple[Bare, Bare]]:
    """Two machines that have nothing but the programs."""
    with a_wire() as wire:
        machines = Bare(wire, "cm", 1), Bare(wire, "new", 2)
        wire.machines += machines
        yield machines


@pytest.mark.root
@pytest.mark.skipif(NEED_NAMESPACES[1].args[0], reason="needs root and iproute2 for network namespaces")
def test_the_administration_page_makes_a_pool_of_bare_machines(bare: tuple[Bare, Bare]) -> None:
    manager, newcomer = bare
    assert [line for line in lines_of("all") if line.startswith("useradd")] != []
    for machine in bare:
        machine.type(next(line for line in lines_of("all") if line.startswith("useradd")))
    token, typed = "", []
    for line in lines_of("cm"):
        typed.append(line)
        if line == "condor_status":
            break
        said = manager.type(line.replace("10.0.0.1", manager.address))
        token = said.strip() if line == "condor_pool token" else token
    assert typed[-1] == "condor_status"
    for line in lines_of("new"):
        newcomer.type(line.replace("TOKEN", token))
    until(lambda: {"cm.trio", "new.trio"} <= set(manager.run("condor_status", "-af", "Machine").split()),
          "both machines in condor_status")
    assert "new.trio" in manager.type("condor_status")
    manager.submit("executable = /usr/bin/uname\narguments = -n\ntransfer_executable = false\noutput = out\nlog = log\n"
                   'requirements = Machine == "new.trio"\nshould_transfer_files = YES\nqueue\n')
    manager.wait("log")
    assert (manager.work / "out").read_text() == "new.trio\n"


def flock_lines() -> list[tuple[str, str]]:
    """(machine, command) of each line that the flocking page has typed to get from nothing to lending."""
    page = (ROOT / "docs/flocking.md").read_text()
    part = page.partition("from nothing to lending")[2].partition("## Without gateways")[0]
    return re.findall(r"^ {8}([a-z-]+)\$ (.+)$", part, re.MULTILINE)


@pytest.mark.root
@pytest.mark.timeout(900)
@pytest.mark.skipif(NEED_NAMESPACES[1].args[0], reason="needs root and iproute2 for network namespaces")
def test_the_flocking_page_takes_two_departments_from_nothing_to_lending() -> None:
    with a_wire("m") as first, a_wire("p") as second, a_wire("z") as outside:
        machines = {}
        for wire, pool in ((first, "math"), (second, "physics")):
            for number, role in ((1, "cm"), (2, "gw")):
                machine = machines[f"{pool}-{role}"] = Bare(wire, f"{pool}-{role}", number)
                wire.machines.append(machine)
                machine.type(next(line for line in lines_of("all") if line.startswith("useradd")))
            machines[f"{pool}-gw"].plug_in(outside)
        follow(machines)
        math = machines["math-cm"]
        until(lambda: "reached: it has dialled" in math.type("condor_flock status"), "the gateways to meet")
        math.submit("executable = /usr/bin/uname\narguments = -n\ntransfer_executable = false\noutput = out\n"
                    'log = log\nrequirements = Machine == "physics-cm.trio"\nshould_transfer_files = YES\nqueue\n')
        math.wait("log")
        assert (math.work / "out").read_text() == "physics-cm.trio\n"


def follow(machines: dict[str, Bare]) -> None:
    """Type what the flocking page says, with the tokens, fingerprints and addresses that there are."""
    token = fingerprint = ""
    for name, line in flock_lines():
        machine, pool = machines[name], name.partition("-")[0]
        line = re.sub(r"condor1\.\S+", token, line)
        line = re.sub(r"--fingerprint \S+", f"--fingerprint {fingerprint}", line)
        for address, real in (("10.0.0.1", machines[f"{pool}-cm"].address),
                              ("10.0.0.9", machines[f"{pool}-gw"].address),
                              ("192.0.2.10", machines["math-gw"].outside)):
            line = line.replace(address, real)
        for other in machines.values():
            for invitation in other.work.glob("*.invitation"):
                if "<" in line and invitation.name in line and other is not machine:
                    (machine.work / invitation.name).write_text(invitation.read_text())
        done = machine.tool("sh", "-c", line)
        assert done.returncode == 0, f"{name}$ {line}\n{done.stdout}{done.stderr}"
        if "condor_pool token" in line:
            token = done.stdout.strip()
        elif "condor_flock invite" in line:
            fingerprint = done.stderr.strip().splitlines()[-1].strip()


def test_the_readme_runs_as_printed() -> None:
    personal, moving = (block for block in blocks("README.md", "sh") if "<<'END'" in block)
    with fresh_folder() as above:
        folder = above / "work"
        folder.mkdir()
        open_to_jobs(folder)
        environment = {name: value for name, value in os.environ.items() if "CONDOR" not in name.upper()}
        environment.update(HOME=str(folder), PATH=f"{BIN}:{environment['PATH']}",
                           CONDOR_PERSONAL=str(folder / "personal"))
        script = [line for line in (personal + moving).splitlines()
                  if not line.startswith(("make ", "export PATH"))]
        text = "\n".join(["set -e", *script, ""])
        for command in ("condor_personal start", "condor_personal env"):
            text = text.replace(command, f"{command} --dir {above}/p")
        try:
            done = subprocess.run(["bash", "-c", text], cwd=folder, env=environment, capture_output=True, text=True,
                                  timeout=240, check=False, stdin=subprocess.DEVNULL)
        finally:
            subprocess.run([str(BIN / "condor_personal"), "stop", "--dir", str(above / "p")], env=environment,
                           check=False, timeout=90, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [f"hello from {number}" in done.stdout for number in range(3)] == [True] * 3
    assert done.stdout.count("314159265358979323846") == 2


def test_the_page_for_programs_runs_as_printed() -> None:
    program = "\n".join(blocks("docs/python-api.md", "python"))
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=2)
        try:
            done = subprocess.run([sys.executable, "-c", program], cwd=pool.work, env=pool.environment, timeout=120,
                                  capture_output=True, text=True, check=False)
        finally:
            pool.stop()
    assert done.returncode == 0, done.stdout + done.stderr
    assert {"0 0", "1 3", "0 IDLE", "2 IDLE"} <= set(done.stdout.splitlines())


RECIPES = (
    ("2 by 3 is 6", "4 by 5 is 20", "6 by 7 is 42"), ("monday.csv 15", "tuesday.csv 15"),
    ("hello, alice", "hello, bob"), ("done after 3 steps",), ("job 0 has a licence", "job 2 has a licence"),
    ("prepare", "left", "right", "join"), ("1 jobs; 0 completed, 0 removed, 1 idle",),
)
"""What each recipe of the cookbook prints."""


def commands_of(pool: UserPool) -> Path:
    """A folder of commands that the pool's user can run."""
    folder = pool.folder / "bin"
    folder.mkdir()
    python = shlex.join(python_for_all().words)
    dagman = folder / "condor_dagman"
    for name in ("submit", "wait", "q", "submit_dag", "dagman"):
        more = f"-dagman {dagman}" if name == "submit_dag" else ""
        (folder / f"condor_{name}").write_text(
            f'#!/bin/sh\nexec {python} -c {shlex.quote(program_of(f"condor_{name}"))} condor_{name} {more} "$@"\n')
        (folder / f"condor_{name}").chmod(0o755)
    return folder


@pytest.mark.timeout(600)
def test_the_recipes_run_as_printed() -> None:
    """Each in a folder of its own, one after the other in one pool."""
    recipes = blocks("docs/cookbook.md", "sh")
    assert len(recipes) == len(RECIPES)
    with user_pool() as pool:
        environment = {**pool.environment, "PATH": f"{commands_of(pool)}:/usr/bin:/bin"}
        for number, (recipe, lines) in enumerate(zip(recipes, RECIPES, strict=True)):
            folder = pool.work / f"recipe{number}"
            folder.mkdir()
            open_to_jobs(folder)
            done = subprocess.run(pool.command("bash", "-ec", recipe), cwd=folder, env=environment, text=True,
                                  timeout=200, capture_output=True, stdin=subprocess.DEVNULL, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            for line in lines:
                assert line in done.stdout, done.stdout + done.stderr
