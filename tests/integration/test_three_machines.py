"""From nothing to a pool of three machines, as the README says: three network namespaces, one token each."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pool_fixture import BIN, ToolFailed, fresh_folder, until

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None,
                       reason="needs root and iproute2 for network namespaces"),
]


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Wire:
    """A bridge in a namespace of its own, and the machines that hang on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tag = f"ca{os.getpid() % 100000}"
        self.hub = f"{self.tag}hub"
        self.machines: list[Machine] = []
        ip("netns", "add", self.hub)
        ip("-n", self.hub, "link", "add", "br0", "type", "bridge")
        ip("-n", self.hub, "link", "set", "br0", "up")

    def machine(self, name: str) -> Machine:
        """One more host on the wire."""
        made = Machine(self, name, len(self.machines) + 1)
        self.machines.append(made)
        return made

    def close(self) -> None:
        """Stop everything and take the namespaces away."""
        for machine in self.machines:
            machine.stop()
        for machine in self.machines:
            subprocess.run(["ip", "netns", "del", machine.namespace], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "del", self.hub], check=False, capture_output=True)


class Machine:
    """A host: namespaces for network and host name, folders and configuration of its own."""

    def __init__(self, wire: Wire, name: str, number: int) -> None:
        self.name = name
        self.address = f"10.88.7.{number}"
        self.namespace = f"{wire.tag}{name}"
        self.folder = wire.folder / name
        self.folder.mkdir()
        inner, outer = f"{wire.tag}i{number}", f"{wire.tag}o{number}"
        ip("netns", "add", self.namespace)
        ip("link", "add", inner, "netns", self.namespace, "type", "veth", "peer", "name", outer, "netns", wire.hub)
        ip("-n", wire.hub, "link", "set", outer, "master", "br0", "up")
        ip("-n", self.namespace, "addr", "add", f"{self.address}/24", "dev", inner)
        ip("-n", self.namespace, "link", "set", inner, "up")
        ip("-n", self.namespace, "link", "set", "lo", "up")
        self.config = self.folder / "condor_config"
        (self.folder / "config.d").mkdir()
        self.config.write_text(
            f"LOCAL_DIR = {self.folder}\nETC = {self.folder}/etc\nLOCAL_CONFIG_DIR = {self.folder}/config.d\n"
            "NUM_CPUS = 2\nMEMORY = 512\nUID_DOMAIN = trio\nFILESYSTEM_DOMAIN = $(FULL_HOSTNAME)\n"
        )
        self.master: subprocess.Popen[bytes] | None = None

    def command(self, *words: str) -> list[str]:
        """The command line that runs ``words`` on this machine."""
        return ["ip", "netns", "exec", self.namespace, "unshare", "--uts", "sh", "-c",
                f'hostname {self.name}.trio && exec "$@"', "sh", str(BIN / words[0]), *words[1:]]

    @property
    def environment(self) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if "CONDOR" not in name.upper()}
        return {**clean, "CONDOR_CONFIG": str(self.config)}

    def run(self, *words: str, stdin: str | None = None) -> str:
        """Run a tool here; its standard output."""
        done = subprocess.run(self.command(*words), env=self.environment, input=stdin, text=True, timeout=120,
                              capture_output=True, cwd=self.folder, check=False)
        if done.returncode:
            raise ToolFailed(f"{self.name}: {' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
                             f"\n{self.logs()}")
        return done.stdout

    def start(self) -> None:
        """Start the master in the foreground of a process of ours."""
        command = self.command("python", "-m", "condor_actors.services", "master")
        assert sys.executable
        self.master = subprocess.Popen(command, env=self.environment, cwd=self.folder, start_new_session=True,
                                       stdin=subprocess.DEVNULL)

    def stop(self) -> None:
        """Stop the master and, through it, its daemons."""
        if self.master is None:
            return
        self.master.send_signal(signal.SIGTERM)
        try:
            self.master.wait(60)
        except subprocess.TimeoutExpired:
            self.master.kill()
            raise

    def logs(self) -> str:
        """The ends of this machine's logs."""
        return "\n".join(f"--- {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-12:])
                         for path in sorted((self.folder / "log").glob("*Log*")))


@pytest.fixture
def wire() -> Iterator[Wire]:
    with fresh_folder() as folder:
        made = Wire(folder)
        yield made
        made.close()


def test_three_machines_become_a_pool_with_tokens(wire: Wire) -> None:
    manager, submit, execute = wire.machine("manager"), wire.machine("submit"), wire.machine("execute")
    manager.run("condor_pool", "create", "--name", "trio", "--interface", manager.address)
    manager.start()
    until((manager.folder / "run" / "collector.address").exists, "the collector to listen")
    for machine, roles in ((submit, "master,schedd"), (execute, "master,startd")):
        token = manager.run("condor_pool", "token", "--roles", roles).strip()
        machine.run("condor_pool", "join", token)
        machine.start()

    def machines() -> set[str]:
        return set(manager.run("condor_status", "-af", "Machine").split())

    until(lambda: {"manager.trio", "execute.trio"} <= machines(), "both execute machines in the collector")
    until((submit.folder / "run" / "schedd.address").exists, "the schedd to listen")
    (submit.folder / "input").write_text("only here\n")
    submit.run("condor_submit", stdin="""
        executable = /bin/sh
        transfer_executable = false
        arguments = "-c 'cat input; uname -n; echo made > product'"
        transfer_input_files = input
        should_transfer_files = YES
        requirements = Machine == "execute.trio"
        output = out.$(Process)
        error = err.$(Process)
        log = job.log
        queue 2
    """)
    submit.run("condor_wait", "-wait", "90", "job.log")
    assert [(submit.folder / f"out.{n}").read_text() for n in range(2)] == ["only here\nexecute.trio\n"] * 2
    assert (submit.folder / "product").read_text() == "made\n"
    seen = execute.run("condor_status", "-schedd", "-af", "Name").split()
    assert any("submit.trio" in name for name in seen)


def test_a_token_is_good_once_and_strangers_stay_out(wire: Wire) -> None:
    manager, first, second = wire.machine("manager"), wire.machine("first"), wire.machine("second")
    manager.run("condor_pool", "create", "--name", "trio", "--interface", manager.address)
    manager.start()
    until((manager.folder / "run" / "collector.address").exists, "the collector to listen")
    token = manager.run("condor_pool", "token").strip()
    first.run("condor_pool", "join", token)
    with pytest.raises(ToolFailed, match="token"):
        second.run("condor_pool", "join", token)
    (second.folder / "config.d" / "x.config").write_text(f"COLLECTOR_HOST = {manager.address}:9618\n")
    with pytest.raises(ToolFailed):
        second.run("condor_status", "-pool", f"{manager.address}:9618")
