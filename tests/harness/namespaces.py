"""Machines of a pool as network namespaces of this one: they share nothing but a wire between them.

Each has an address, a host name, folders and a configuration of its own, and there is TLS between them as between real
ones.  Their daemons are run by a Python that every account can read: with CONDOR_IDS they drop root.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from condor_actors.machine.supervisor.process_titles import ROOM
from tests.harness.proc_files import proc_file
from tests.harness.readable_python import python_for_all
from tests.pool_fixture import UNMEASURED, Host, fresh_folder, until

__all__ = ["NEED_NAMESPACES", "Machine", "Wire", "ip", "a_wire", "mac_of"]

NEED_NAMESPACES = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None,
                       reason="needs root and iproute2 for network namespaces"),
]


def ip(*words: str) -> str:
    """Run iproute2's tool; what it prints."""
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


def mac_of(address: str) -> str:
    """The MAC address of the machine with an IPv4 address."""
    return ":".join(["02", "ca", *(f"{int(part):02x}" for part in address.split("."))])


NOTHING_PASSES = ("root", "tbf", "rate", "8bit", "burst", "1", "limit", "1")
"""A queue whose bucket is smaller than any packet: it drops them all, and the sender hears of nothing."""


class Wire:
    """A bridge in a namespace of its own, and the machines that hang on it.

    Args:
        folder: for the machines' folders.
        letter: tells it from others of the same test.
        cgroups: whether the machines see this one's control groups, as they see its files and processes.
        subnet: the first three numbers of the machines' addresses.
        router: the address and the MAC address of the wire's way out; none: there is none.

    Attributes:
        environment: of all that is run on machines that are made from now on, beside the usual.
        packages: where their daemons find this package; empty: where the tests do.
    """

    def __init__(self, folder: Path, letter: str = "", *, cgroups: bool = False, subnet: str = "10.88.7",
                 router: tuple[str, str] | None = None) -> None:
        self.folder = folder
        self.cgroups = cgroups
        self.subnet = subnet
        self.router = router
        self.environment: dict[str, str] = {}
        self.packages = ""
        self.tag = f"ca{os.getpid() % 100000}{letter}"
        self.hub = f"{self.tag}hub"
        self.machines: list[Machine] = []
        self.guests: list[Machine] = []
        ip("netns", "add", self.hub)
        ip("-n", self.hub, "link", "add", "br0", "type", "bridge")
        ip("-n", self.hub, "link", "set", "br0", "up")

    def machine(self, name: str, config: str = "") -> Machine:
        """One more host on the wire."""
        made = Machine(self, name, len(self.machines) + 1, config)
        self.machines.append(made)
        return made

    def manager(self, name: str = "manager", config: str = "", pool: str = "trio") -> Machine:
        """One more host, the central manager of a new pool."""
        made = self.machine(name, config)
        made.run("condor_pool", "create", "--name", pool, "--interface", made.address)
        made.start()
        until((made.dir / "run" / "collector.address").exists, "the collector to listen")
        return made

    def member(self, manager: Machine, name: str, roles: str, config: str = "", outside: Wire | None = None) -> Machine:
        """One more host, which joins the pool with a token; ``outside`` is another wire on which it hangs."""
        made = self.machine(name, config)
        if outside is not None:
            made.plug_in(outside)
        hosts = ("--host", made.outside) if outside is not None else ()
        made.run("condor_pool", "join", manager.run("condor_pool", "token", "--roles", roles).strip(), *hosts)
        made.start()
        return made

    def trio(self) -> tuple[Machine, Machine, Machine]:
        """A pool of a manager, a machine to submit from, and one more to execute on."""
        manager = self.manager()
        submit = self.member(manager, "submit", "master,schedd")
        execute = self.member(manager, "execute", "master,startd")
        until(lambda: {"manager.trio", "execute.trio"} <= set(manager.run("condor_status", "-af", "Machine").split()),
              "both execute machines in the collector")
        until((submit.dir / "run" / "schedd.address").exists, "the schedd to listen")
        return manager, submit, execute

    @contextmanager
    def cut(self, guest: Machine) -> Iterator[None]:
        """Meanwhile nothing gets from a guest of this wire to the others, and nobody is told."""
        port = f"{guest.wire.tag}y{self.guests.index(guest)}"
        ip("-n", self.hub, "link", "set", port, "nomaster")
        try:
            yield
        finally:
            ip("-n", self.hub, "link", "set", port, "master", "br0")

    @contextmanager
    def slow(self, guest: Machine, rate: str) -> Iterator[None]:
        """Meanwhile a guest of this wire gets no more from the others than a rate of tc's, such as ``16mbit``."""
        port = f"{guest.wire.tag}y{self.guests.index(guest)}"
        words = ["tc", "-n", self.hub, "qdisc"]
        subprocess.run([*words, "replace", "dev", port, "root", "tbf", "rate", rate, "burst", "64k",
                        "latency", "200ms"], check=True, capture_output=True)
        try:
            yield
        finally:
            subprocess.run([*words, "del", "dev", port, "root"], check=True, capture_output=True)

    def logs(self, lines: int = 12) -> str:
        """The ends of all machines' logs."""
        return "\n".join(f"=== {machine.name}\n{machine.logs(lines)}" for machine in self.machines)

    def close(self) -> None:
        """Stop everything and take the namespaces away."""
        for machine in self.machines:
            machine.stop()
        for machine in self.machines:
            until(lambda left=machine: not left.pids(), lambda left=machine: f"no process left of {left.processes()}")
            subprocess.run(["ip", "netns", "del", machine.namespace], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "del", self.hub], check=False, capture_output=True)


class Machine(Host):
    """A host: namespaces for network and host name, folders and configuration of its own."""

    is_ours = True

    def __init__(self, wire: Wire, name: str, number: int, config: str) -> None:
        folder = wire.folder / name
        super().__init__(folder, folder / "work")
        self.wire = wire
        self.name = name
        self.address = f"{wire.subnet}.{number}"
        self.outside = ""
        self.namespace = f"{wire.tag}{name}"
        inner, outer = self._inner, self._outer = f"{wire.tag}i{number}", f"{wire.tag}o{number}"
        ip("netns", "add", self.namespace)
        ip("link", "add", inner, "address", mac_of(self.address), "netns", self.namespace, "type", "veth",
           "peer", "name", outer, "netns", wire.hub)
        ip("-n", wire.hub, "link", "set", outer, "master", "br0", "up")
        ip("-n", self.namespace, "addr", "add", f"{self.address}/24", "dev", inner)
        ip("-n", self.namespace, "link", "set", inner, "up")
        ip("-n", self.namespace, "link", "set", "lo", "up")
        if wire.router is not None:
            address, mac = wire.router
            ip("-n", self.namespace, "neigh", "add", address, "lladdr", mac, "dev", inner, "nud", "permanent")
            ip("-n", self.namespace, "route", "add", "default", "via", address)
        local = folder / "config.d"
        local.mkdir()
        (local / "zz.config").write_text(config)  # what condor_pool writes comes before it
        (folder / "condor_config").write_text(
            f"LOCAL_DIR = {folder}\nETC = {folder}/etc\nLOCAL_CONFIG_DIR = {local}\n"
            f"NUM_CPUS = 2\nMEMORY = 512\nUID_DOMAIN = trio\nFILESYSTEM_DOMAIN = $(FULL_HOSTNAME)\n{UNMEASURED}"
        )
        self.environment |= {**wire.environment, "CONDOR_CONFIG": str(folder / "condor_config")}
        self.packages = wire.packages
        self.master: subprocess.Popen[bytes] | None = None

    def plug_in(self, other: Wire) -> None:
        """Hang the machine on another wire as well; nothing is forwarded between the two."""
        self.outside = f"10.99.0.{len(other.guests) + 1}"
        inner, outer = f"{self.wire.tag}x{len(other.guests)}", f"{self.wire.tag}y{len(other.guests)}"
        ip("link", "add", inner, "netns", self.namespace, "type", "veth", "peer", "name", outer, "netns", other.hub)
        ip("-n", other.hub, "link", "set", outer, "master", "br0", "up")
        ip("-n", self.namespace, "addr", "add", f"{self.outside}/24", "dev", inner)
        ip("-n", self.namespace, "link", "set", inner, "up")
        other.guests.append(self)

    def command(self, *words: str) -> list[str]:
        """The command line that runs ``words`` on this machine."""
        enter = ["nsenter", f"--net=/run/netns/{self.namespace}"] if self.wire.cgroups else \
            ["ip", "netns", "exec", self.namespace]
        return [*enter, "unshare", "--uts", "sh", "-c",
                f'hostname {self.name}.trio && exec "$@"', "sh", *super().command(*words)]

    def pids(self) -> list[int]:
        """Every process that runs on this machine."""
        return [int(word) for word in ip("netns", "pids", self.namespace).split()]

    def processes(self) -> list[str]:
        """The command lines of :meth:`pids`."""
        return [proc_file(pid, "cmdline").decode(errors="replace").replace("\0", " ") for pid in self.pids()]

    def start(self) -> None:
        """Start the master in the foreground of a process of ours."""
        python = python_for_all().words_with(self.packages)
        command = self.command(*python, "-m", "condor_actors.services", "master", *ROOM)
        self.master = subprocess.Popen(command, env=self.environment, cwd=self.work, start_new_session=True,
                                       stdin=subprocess.DEVNULL)

    def cut(self, *, hears: bool = False, speaks: bool = False) -> None:
        """Have what is sent to or from this machine vanish on the way: connections stay, half-open.

        Args:
            hears, speaks: what goes on as before; both: nothing is cut any more.
        """
        for namespace, device, passes in ((self.wire.hub, self._outer, hears), (self.namespace, self._inner, speaks)):
            words = ["tc", "-n", namespace, "qdisc"]
            if passes:
                subprocess.run([*words, "del", "dev", device, "root"], check=False, capture_output=True)
            else:
                subprocess.run([*words, "replace", "dev", device, *NOTHING_PASSES], check=True, capture_output=True)

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


@contextmanager
def a_wire(letter: str = "", *, cgroups: bool = False, subnet: str = "10.88.7",
           router: tuple[str, str] | None = None) -> Iterator[Wire]:
    """A wire without machines yet; they and it are gone afterwards (for the arguments see :class:`Wire`)."""
    with fresh_folder() as folder:
        made = Wire(folder, letter, cgroups=cgroups, subnet=subnet, router=router)
        try:
            yield made
        finally:
            made.close()
