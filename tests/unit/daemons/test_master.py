"""The master on an in-memory network, with a machine that only pretends to start processes."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from condor_actors.classads import ClassAd
from condor_actors.config import Config, ConfigError, load_config
from condor_actors.daemons import collector
from condor_actors.daemons.master import Master, make_daemon
from condor_actors.machine.supervisor.master_host import EndedCall
from condor_actors.messages.admin import DaemonCommand, DaemonStarted, Reconfigure, Shutdown
from condor_actors.messages.advertise import AdKind, AdsPage, QueryAds
from condor_actors.messages.envelope import Address, Done, Refused
from tests.harness.local_post import LocalNetwork, Probe

MASTER = "<m:1>"
CM = "<cm:9618>"


class PretendedHost:
    """Keeps what the master asks for; ``end`` ends a process."""

    def __init__(self, living: Sequence[tuple[str, int, float]] = ()) -> None:
        self.living = tuple(living)
        self.started: list[str] = []
        self.signals: list[tuple[str, int]] = []
        self.said: list[str] = []
        self.finished: list[tuple[str, bool]] = []
        self.version = "1.0 a"
        self.full = False
        self.files: Config = load_config(files=[], environ={})
        self.broken = ""
        self._call: EndedCall | None = None

    def start(self, name: str, arguments: Sequence[str], environment: Mapping[str, str], errors: Path) -> int:
        if self.full:
            raise OSError("Resource temporarily unavailable")
        self.started.append(" ".join(arguments))
        return 100 + len(self.started)

    def configuration(self, kind: str, local_name: str | None, environment: Mapping[str, str]) -> Config:
        if kind == self.broken:
            raise ConfigError("SCHEDD_INTERVAL = soon is not possible", file="/etc/c", line=3, value="soon",
                              expected="a number of seconds")
        return self.files

    def adopt(self, kinds: Mapping[str, str]) -> tuple[tuple[str, int, float], ...]:
        return self.living

    def on_end(self, call: EndedCall) -> None:
        self._call = call

    def end(self, name: str, pid: int, code: int | None = None, number: int | None = None) -> None:
        assert self._call is not None
        self._call(name, pid, code, number)

    def signal(self, name: str, number: int) -> None:
        self.signals.append((name, number))

    def notify(self, text: str) -> None:
        self.said += text.splitlines()

    def installed_version(self) -> str:
        return self.version

    def finish(self, how: str, renew: bool) -> None:
        self.finished.append((how, renew))


@attrs.define
class Scene:
    """A master, its pretended host, and an admin's mailbox beside it."""

    net: LocalNetwork
    host: PretendedHost
    master: Master
    admin: Probe

    def say(self, message: Any) -> Any:
        """Tell the master something; what it answers, if anything."""
        self.admin.ask(Address(MASTER, "master"), message)
        self.net.run(0.5)
        return self.admin.answers[-1] if self.admin.answers else None

    def up(self, name: str, pid: int) -> None:
        """A daemon says that it listens."""
        self.master.system.tell(Address("", "master"), DaemonStarted(daemon=name.lower(), pid=pid, address="<m:9>"))
        self.net.run(0.1)


def scene(folder: Path, host: PretendedHost | None = None, **settings: str) -> Scene:
    net = LocalNetwork()
    cm = collector.make_daemon(load_config(files=[], environ={}), net.world(CM))
    net.adopt(CM, cm.system)
    cm.start()
    overrides = {"COLLECTOR_HOST": "cm:9618", "LOCAL_DIR": str(folder), "DAEMON_LIST": "MASTER SCHEDD STARTD",
                 "FULL_HOSTNAME": "m.example", **settings}
    host = host or PretendedHost()
    config = host.files = load_config(subsystem="MASTER", files=[], environ={}, overrides=overrides)
    master = make_daemon(config, attrs.evolve(net.world(MASTER), processes=host))
    net.adopt(MASTER, master.system)
    master.start()
    net.run(1.0)
    return Scene(net, host, master, net.probe(net.system("<admin:1>"), "admin"))


def test_it_is_ready_when_all_daemons_are_up(tmp_path: Path) -> None:
    set_up = scene(tmp_path)
    assert set_up.host.started == ["schedd", "startd"]
    set_up.up("SCHEDD", 101)
    assert "READY=1" not in set_up.host.said
    set_up.up("STARTD", 102)
    assert set_up.host.said[-2:] == ["READY=1", "STATUS=all daemons are up"]


def test_its_ad_is_in_the_collector(tmp_path: Path) -> None:
    set_up = scene(tmp_path)
    set_up.up("SCHEDD", 101)
    set_up.admin.ask(Address(CM, "collector"), QueryAds(ad_kind=AdKind.MASTER))
    set_up.net.run(1.0)
    page = set_up.admin.answers[-1]
    assert isinstance(page, AdsPage)
    (ad,) = [ClassAd.from_bytes(each) for each in page.ads]
    assert (ad.get_str("Name"), ad.get_str("SCHEDD_State"), ad.get_int("SCHEDD_Pid")) == ("m.example", "up", 101)
    assert ad.get_str("DaemonList") == "MASTER SCHEDD STARTD"


def test_a_newer_version_counts_once_it_stays(tmp_path: Path) -> None:
    set_up = scene(tmp_path)
    for name, pid in (("SCHEDD", 101), ("STARTD", 102)):
        set_up.up(name, pid)
    set_up.host.version = "1.1 half"
    set_up.net.run(300.0)
    assert not set_up.host.signals
    set_up.host.version = "1.1 whole"
    set_up.net.run(120.0)
    assert not set_up.host.signals
    set_up.net.run(120.0)
    assert set_up.host.signals == [("SCHEDD", signal.SIGTERM), ("STARTD", signal.SIGTERM)]
    set_up.host.end("SCHEDD", 101, 0)
    set_up.host.end("STARTD", 102, 0)
    set_up.net.run(1.0)
    assert set_up.host.finished == [("graceful", True)]


def test_a_newer_version_may_be_left_alone(tmp_path: Path) -> None:
    set_up = scene(tmp_path, MASTER_NEW_BINARY_RESTART="NEVER")
    set_up.host.version = "1.1"
    set_up.net.run(3600.0)
    assert not set_up.host.signals


def test_a_daemon_that_does_not_go_is_hurried_and_killed(tmp_path: Path) -> None:
    set_up = scene(tmp_path)
    assert isinstance(set_up.say(DaemonCommand(command="off", daemons=("startd",))), Done)
    set_up.net.run(1800.0)
    set_up.net.run(120.0)
    assert set_up.host.signals == [("STARTD", signal.SIGTERM), ("STARTD", signal.SIGQUIT), ("STARTD", signal.SIGKILL)]


def test_a_peaceful_end_is_said_not_signalled(tmp_path: Path) -> None:
    set_up = scene(tmp_path)
    schedd = set_up.net.probe(set_up.net.system(f"unix:{tmp_path}/run/schedd.sock"), "admin")
    set_up.up("SCHEDD", 101)
    set_up.say(DaemonCommand(command="off", daemons=("SCHEDD",), how="peaceful"))
    assert schedd.messages == [Shutdown(how="peaceful")]
    set_up.net.run(10_000.0)
    assert set_up.host.signals == []


def test_a_reconfig_reaches_daemons_that_are_just_starting_when_they_listen(tmp_path: Path) -> None:
    set_up = scene(tmp_path)
    schedd = set_up.net.probe(set_up.net.system(f"unix:{tmp_path}/run/schedd.sock"), "admin")
    set_up.say(DaemonCommand(command="reconfig", daemons=("SCHEDD",)))
    assert schedd.messages == []
    set_up.up("SCHEDD", 101)
    assert schedd.messages == [Reconfigure()]


def test_what_lives_is_taken_up(tmp_path: Path) -> None:
    set_up = scene(tmp_path, PretendedHost([("SCHEDD", 7, 1.0), ("NEGOTIATOR", 8, 1.0)]))
    assert set_up.host.started == ["startd"]
    assert set_up.host.signals == [("NEGOTIATOR", signal.SIGTERM)]


def test_a_machine_that_starts_nothing_now_may_later(tmp_path: Path) -> None:
    host = PretendedHost()
    host.full = True
    set_up = scene(tmp_path, host)
    assert host.started == []
    host.full = False
    set_up.net.run(60.0)
    assert sorted(host.started) == ["schedd", "startd"]


def test_instances_and_their_arguments(tmp_path: Path) -> None:
    set_up = scene(
        tmp_path, DAEMON_LIST="MASTER, SCHEDD, EAST, WEST", EAST_KIND="SCHEDD", WEST="$(SCHEDD)",
        WEST_ARGS="-local-name west",
    )
    assert set_up.host.started == ["schedd", "schedd --local-name east", "schedd --local-name west"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"DAEMON_LIST": "MASTER SHCEDD"}, "did you mean SCHEDD?"),
        ({"COLLECTOR_HOST": "cm:port"}, "expected host or host:port"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, settings: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match="Command Line") as caught:
        scene(tmp_path, None, **settings)
    assert words in str(caught.value)


def test_commands_that_cannot_be_are_refused(tmp_path: Path) -> None:
    set_up = scene(tmp_path)
    for command in (
        DaemonCommand(command="fly"),
        DaemonCommand(command="off", how="sadly"),
        DaemonCommand(command="off", daemons=("KBDD",)),
    ):
        assert isinstance(set_up.say(command), Refused)
    assert set_up.host.signals == []


def restartable(folder: Path) -> Scene:
    set_up = scene(folder)
    set_up.up("SCHEDD", 101)
    set_up.up("STARTD", 102)
    return set_up


def end_both(set_up: Scene) -> None:
    set_up.host.end("SCHEDD", 101, 0)
    set_up.host.end("STARTD", 102, 0)
    set_up.net.run(1.0)


@pytest.mark.parametrize("broken", ["master", "schedd"])
def test_a_restart_with_a_broken_configuration_stops_nothing(tmp_path: Path, broken: str) -> None:
    set_up = restartable(tmp_path)
    set_up.host.broken = broken
    answer = set_up.say(DaemonCommand(command="restart"))
    assert isinstance(answer, Refused)
    assert "/etc/c, line 3: SCHEDD_INTERVAL = soon is not possible; expected a number of seconds" in answer.text
    assert "everything goes on as it was" in answer.text
    assert set_up.host.signals == []
    assert set_up.host.finished == []


def test_one_daemon_starts_anew_whatever_another_would_refuse(tmp_path: Path) -> None:
    set_up = restartable(tmp_path)
    set_up.host.broken = "schedd"
    assert isinstance(set_up.say(DaemonCommand(command="restart", daemons=("SCHEDD",))), Refused)
    assert set_up.host.signals == []
    assert isinstance(set_up.say(DaemonCommand(command="restart", daemons=("STARTD",))), Done)
    assert set_up.host.signals == [("STARTD", signal.SIGTERM)]


def test_a_configuration_that_breaks_while_the_daemons_stop_is_waited_for(tmp_path: Path) -> None:
    set_up = restartable(tmp_path)
    assert isinstance(set_up.say(DaemonCommand(command="restart")), Done)
    set_up.host.broken = "master"
    end_both(set_up)
    assert set_up.host.finished == []
    set_up.host.broken = ""
    set_up.net.run(10.0)
    assert set_up.host.finished == [("graceful", True)]


def test_a_newer_version_waits_for_a_configuration_that_can_be_used(tmp_path: Path) -> None:
    set_up = restartable(tmp_path)
    set_up.host.version, set_up.host.broken = "1.1", "schedd"
    set_up.net.run(1000.0)
    assert set_up.host.signals == []
    set_up.host.broken = ""
    set_up.net.run(1000.0)
    assert set_up.host.signals[0] == ("SCHEDD", signal.SIGTERM)
