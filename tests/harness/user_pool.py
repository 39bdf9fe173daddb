"""A personal pool of an ordinary user: of the user who runs the tests, or where that is root of a user made for it."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from condor_actors.machine.native.programs import launcher_path
from condor_actors.tools.lib.personal_setup import free_port
from condor_actors.wire.certificates.authority import PoolFiles, create_pool
from tests.harness.commands import COMMANDS, program_of
from tests.harness.federation import introduce
from tests.harness.readable_python import python_for_all
from tests.pool_fixture import PersonalPool, fresh_folder


class UserPool(PersonalPool):
    """Everything in it is that user's.

    Args:
        shut: daemons are refused namespaces, as by a kernel that gives users none.
    """

    is_ours = False

    def __init__(self, folder: Path, user: str, *, config: str = "", shut: bool = False) -> None:
        self.user = user
        self.shut = shut
        super().__init__(folder, config=config)

    def command(self, *words: str) -> list[str]:
        """As that user, by a Python that he can read."""
        shut = []
        if self.shut and words[0] == "condor_personal":
            launcher = shutil.copy(launcher_path(), self.folder)  # where that user can read it
            shut = [launcher, "--filter", "job", "--"]
        if not self.user:
            return [*shut, *super().command(*words)]
        own = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--init-groups", *shut, "/usr/bin/env",
               f"HOME={self.folder}", f"USER={self.user}"]
        tool = [*python_for_all().words, "-c", program_of(words[0])] if words[0] in COMMANDS else []
        return [*own, *tool, *words]


@contextmanager
def ordinary_user() -> Iterator[str]:
    """A user made for the tests, where they are root's; else nobody's name: who runs them is ordinary enough."""
    if os.geteuid() != 0:
        yield ""
        return
    if shutil.which("useradd") is None or shutil.which("setpriv") is None:
        pytest.skip("needs useradd and setpriv to be an ordinary user")
    user = f"condor-test-{secrets.token_hex(4)}"
    subprocess.run(["useradd", "--no-create-home", "--shell", "/bin/sh", user], check=True)
    try:
        yield user
    finally:
        subprocess.run(["userdel", "--force", user], capture_output=True, check=False)


@contextmanager
def user_pool(config: str = "", *, shut: bool = False) -> Iterator[UserPool]:
    """A pool, stopped in the end."""
    with ordinary_user() as user, fresh_folder() as folder:
        if user:
            shutil.chown(folder, user, user)
        pool = UserPool(folder, user, config=config, shut=shut)
        try:
            yield pool
        finally:
            pool.stop()


@contextmanager
def two_pools(home_config: str, away_config: str) -> Iterator[tuple[UserPool, UserPool]]:
    """Two pools of one user under one authority, each with its own central manager."""
    with ordinary_user() as user, fresh_folder() as folder:
        pools: list[UserPool] = []
        try:
            for name, config in (("home", home_config), ("away", away_config)):
                (folder / name / "p").mkdir(parents=True)
                if pools:
                    shutil.copytree(pools[0].dir / "pool", folder / name / "p/pool")
                if user:
                    subprocess.run(["chown", "-R", f"{user}:{user}", str(folder / name)], check=True)
                pools.append(UserPool(folder / name, user, config=config))
            yield pools[0], pools[1]
        finally:
            for pool in pools:
                pool.stop()


@contextmanager
def lending_pools(away_config: str) -> Iterator[tuple[UserPool, UserPool]]:
    """Two pools of one user, ``home`` and ``away``, each with an authority and a gateway of its own.

    Home sends jobs, and its gateway is dialled.  Neither runs any on its own machine.
    """
    with ordinary_user() as user, fresh_folder() as folder:
        pools: list[UserPool] = []
        try:
            for name, config in (("home", "FLOCK_TO = away\n"), ("away", f"FLOCK_FROM = home\n{away_config}")):
                files = folder / name / "p/pool"
                files.mkdir(parents=True)
                own = (socket.getfqdn(), socket.gethostname(), "localhost", "127.0.0.1", "::1")
                create_pool(PoolFiles.below(files), name, tuple(dict.fromkeys(own)))
                if user:
                    subprocess.run(["chown", "-R", f"{user}:{user}", str(folder / name)], check=True)
                port = free_port()
                pools.append(UserPool(folder / name, user, config=(
                    "DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD STARTD GATEWAY\nSTART = false\n"
                    f"GATEWAY_PORT = {port}\nGATEWAY_HOST = 127.0.0.1:{port}\nNEGOTIATOR_INTERVAL = 5\n{config}")))
            home, away = pools
            introduce(away, home)
            introduce(home, away, "--gateway", "none")
            yield home, away
        finally:
            for pool in pools:
                pool.stop()
