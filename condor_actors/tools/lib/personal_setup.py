"""What a personal pool is made of on the disk: folders, a configuration, certificates of its own."""

from __future__ import annotations

import os
import random
import shutil
import socket
from pathlib import Path
from typing import Final

from condor_actors import records
from condor_actors.addresses import split_address
from condor_actors.config import Config, ConfigError, load_config, own_home
from condor_actors.own_files import stranger_in

__all__ = ["PersonalFiles", "Setup", "SetupError", "default_folder"]

DAEMONS: Final = ("COLLECTOR", "NEGOTIATOR", "SCHEDD", "STARTD")
MOST_SLOTS: Final = 10_000
LOWEST_PORT: Final = 20_000
PORTS_TRIED: Final = 50


class SetupError(Exception):
    """A pool that cannot be set up there; one sentence for the user."""


@records.frozen
class PersonalFiles:
    """Where a personal pool keeps what."""

    folder: Path

    @property
    def config(self) -> Path:
        """The configuration that the tools are pointed at."""
        return self.folder / "condor_config"

    @property
    def run(self) -> Path:
        """Sockets and the master's record."""
        return self.folder / "run"

    @property
    def log(self) -> Path:
        """The daemons' logs."""
        return self.folder / "log"

    @property
    def record(self) -> Path:
        """The master's record of its daemons."""
        return self.run / "master.children"

    @property
    def lock(self) -> Path:
        """Held by the process that starts or stops the pool."""
        return self.folder / ".lock"

    @property
    def page(self) -> str:
        """The address of the pool's page; empty when it has none now."""
        try:
            return (self.run / "web.url").read_text().strip()
        except OSError:
            return ""

    def socket(self, daemon: str) -> str:
        """A daemon's node for tools."""
        return f"unix:{self.run}/{daemon}.sock"

    def check_whose(self) -> None:
        """Refuse a folder where another user can set the configuration or redirect our files.

        Raises:
            SetupError: whose it is, or who may write there.
        """
        problem = stranger_in(self.folder)
        if problem:
            raise SetupError(f"{problem}, and with it what a pool in {self.folder} does; choose a folder of your own "
                             "with --dir")

    def load(self) -> Config:
        """The pool's configuration as tools see it.

        Raises:
            ConfigError: it cannot be read.
        """
        return load_config(environ={**os.environ, "CONDOR_CONFIG": str(self.config)})


def default_folder() -> Path:
    """``~/.condor/personal`` of the caller."""
    home = own_home() or Path(os.environ.get("HOME", "/"))
    return home / ".condor/personal"


@records.frozen(kw_only=True)
class Setup:
    """Makes or renews the files of a personal pool.

    Attributes:
        files: where.
        slots: how many; None keeps what there was, or takes one per core (at least two).
        extra: a file of settings that go before everything else of the user's.
        inhabited: daemons of the pool live and are about to be taken up; what they go by stays.
    """

    files: PersonalFiles
    slots: int | None = None
    extra: Path | None = None
    inhabited: bool = False

    def make(self) -> None:
        """Bring the folder into shape; what is there already stays.

        Raises:
            SetupError: the folder cannot be used.
        """
        folder = self.files.folder
        if any(letter in str(folder) for letter in " \t\n,;"):
            raise SetupError(f"{folder} has a blank or a comma in its name; choose another folder with --dir")
        if self.slots is not None and not 1 <= self.slots <= MOST_SLOTS:
            raise SetupError(f"--slots {self.slots} is not possible; expected 1 to {MOST_SLOTS}")
        try:
            for name in ("", "log", "spool", "execute", "run", "config.d"):
                (folder / name).mkdir(mode=0o755, parents=True, exist_ok=True)
            self._configure()
            self._certify()
        except OSError as error:
            raise SetupError(f"cannot set up a pool in {folder}: {error}") from None

    def _configure(self) -> None:
        if self.extra is not None:
            try:
                shutil.copyfile(self.extra, self.files.folder / "config.d/10-given")
            except OSError as error:
                raise SetupError(f"cannot read {self.extra}: {error.strerror}") from None
        port, slots = self._before()
        text = CONFIG.format(
            folder=str(self.files.folder).replace("$", "$(DOLLAR)"),
            port=port if port and (self.inhabited or _is_free(port)) else free_port(),
            slots=(slots if self.inhabited else self.slots) or slots or max(os.cpu_count() or 1, 2),
        )
        fresh = self.files.config.with_name(".condor_config.new")
        fresh.write_text(text)
        fresh.replace(self.files.config)

    def _before(self) -> tuple[int, int]:
        """The collector's port and the number of slots of an earlier start; 0 where unknown."""
        if not self.files.config.exists():
            return 0, 0
        try:
            config = load_config(files=[self.files.config], environ={})
            _, port = split_address(config.text("COLLECTOR_HOST") or "")
            return port or 0, int(config.text("PERSONAL_SLOTS") or 0)
        except (ConfigError, ValueError):
            return 0, 0

    def _certify(self) -> None:
        """A certificate authority of the pool's own, and a certificate for this machine."""
        if (self.files.folder / "pool/host.crt").exists():
            return
        from condor_actors.wire.certificates.authority import PoolFiles, create_pool

        files = PoolFiles.below(self.files.folder / "pool")
        for path in (files.ca, files.ca_key, files.host, files.host_key):
            path.unlink(missing_ok=True)
        name = self.files.load().full_hostname
        hosts = dict.fromkeys((name, name.split(".")[0], "localhost", "127.0.0.1", "::1"))
        create_pool(files, "personal", tuple(hosts))


def free_port() -> int:
    """A port that is free now, and that the kernel gives to nobody who asks for any: the collector begins to listen
    there a while later, and again whenever it is started."""
    candidates = range(LOWEST_PORT, max(LOWEST_PORT + 1000, _lowest_ephemeral()))
    for port in random.SystemRandom().sample(candidates, min(PORTS_TRIED, len(candidates))):
        if _is_free(port):
            return port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        assert isinstance(port, int)
        return port


def _lowest_ephemeral() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 32768


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


CONFIG: Final = """\
# A personal pool, made by condor_personal and written anew at each start.
# Settings of your own belong into files below config.d/; they are read after this one.
PERSONAL_SLOTS = {slots}
LOCAL_DIR = {folder}
LOCAL_CONFIG_DIR = $(LOCAL_DIR)/config.d
LOCAL_CONFIG_FILE =
ETC = $(LOCAL_DIR)
POOL_CRL = $(LOCAL_DIR)/pool/revoked.crl

CONDOR_HOST = 127.0.0.1
COLLECTOR_HOST = $(CONDOR_HOST):{port}
NETWORK_INTERFACE = 127.0.0.1
DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD STARTD WEB

# The page: for this machine only, at a port that stays the same once it is chosen.
WEB_HTTP_PORT = 0
WEB_INTERFACE = 127.0.0.1

# One core each, whatever the machine has: a personal pool is for trying things out.
NUM_CPUS = $(PERSONAL_SLOTS)
NUM_SLOTS = $(PERSONAL_SLOTS)
START = True
SUSPEND = False
PREEMPT = False
KILL = False

# Nobody waits for a pool of one's own.
SHUTDOWN_GRACEFUL_TIMEOUT = 10
SHUTDOWN_FAST_TIMEOUT = 10
MASTER_BACKOFF_CONSTANT = 0
MASTER_BACKOFF_FACTOR = 1.5
MASTER_BACKOFF_CEILING = 10
MASTER_RECOVER_FACTOR = 3
CONDOR_ADMIN =
"""
