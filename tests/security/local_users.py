"""Users of this machine, one of whom attacks: real accounts, and a pool that root runs for them.

What an attacker does runs in a process with his uid (:meth:`SharedPool.attack`), with what he could know or steal given
to it: a socket's path, the secret of a claim, a certificate of his own shadow host.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from condor_actors.wire.blocking import Client, RequestRefused, WireError, connect
from condor_actors.wire.certificates.authority import PoolFiles, lend_proxy
from condor_actors.wire.certificates.tool_credentials import ToolCredentials
from tests.harness.root_pool import CONFIG, readable_personal
from tests.pool_fixture import PersonalPool, ToolFailed, fresh_folder, until

__all__ = ["NEED_USERS", "Person", "SharedPool", "Stolen", "a_shared_pool", "said", "tls_client", "unix_client"]

REPOSITORY = Path(__file__).parents[2]
NEED_USERS = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make users and become them"),
    pytest.mark.skipif(shutil.which("useradd") is None, reason="there is no useradd"),
]


@attrs.frozen
class Person:
    """A user of this machine, with a folder of her own."""

    name: str
    uid: int
    gid: int
    home: Path

    def command(self, *words: str) -> list[str]:
        """A command line that runs ``words`` as this user."""
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", "--init-groups", *words]


@attrs.frozen
class Stolen:
    """The worst that may have leaked: the claim of a run, with its secret."""

    run_id: str
    claim_id: str
    secret: str
    starter_node: str


class SharedPool(PersonalPool):
    """A pool that root runs on this machine for several users.

    Attributes:
        alice: has jobs; mallory: attacks.
        drops_root: whether its daemons have a pool's account.
    """

    def __init__(self, folder: Path, alice: Person, mallory: Person, config: str = "", slots: int = 4, *,
                 drops_root: bool = False) -> None:
        self.alice, self.mallory = alice, mallory
        self.drops_root = drops_root
        super().__init__(folder, slots=slots, config=CONFIG + config if drops_root else config)

    def command(self, *words: str) -> list[str]:
        """As ever; daemons that drop root are run by a Python that every account can read."""
        if self.drops_root and words[0] == "condor_personal":
            return readable_personal(*words[1:])
        return super().command(*words)

    def tool_as(self, person: Person, *command: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a tool as a user, in her folder."""
        return subprocess.run(
            person.command(*self.command(*command)), cwd=person.home, input=stdin,
            env={**self.environment, "HOME": str(person.home), "USER": person.name, "LOGNAME": person.name},
            stdin=subprocess.DEVNULL if stdin is None else None, capture_output=True, text=True, timeout=180,
            check=False)

    def run_as(self, person: Person, *command: str, stdin: str | None = None) -> str:
        """Run a tool that must succeed, as a user."""
        done = self.tool_as(person, *command, stdin=stdin)
        if done.returncode != 0:
            said_it = f"{done.stdout}\n{done.stderr}\n{self.logs()}"
            raise ToolFailed(f"{' '.join(command)}: exit {done.returncode}\n{said_it}")
        return done.stdout

    def submit_as(self, person: Person, description: str, *arguments: str) -> int:
        """Submit a description as a user; the cluster."""
        text = self.run_as(person, "condor_submit", *arguments, stdin=description)
        return int(text.rsplit("cluster ", 1)[1].strip().rstrip("."))

    def attack(self, person: Person, code: str, **known: Any) -> Any:
        """Run code as a user, with the names of this module and ``known``; what its ``result`` was in the end."""
        script = "\n".join((
            "import json", "from tests.security.local_users import *",
            f"known = json.loads({json.dumps(json.dumps(known))})",
            "globals().update(known)", "result = None", textwrap.dedent(code), "print('\\n' + json.dumps(result))"))
        done = subprocess.run(
            person.command(sys.executable, "-c", script), cwd=person.home, text=True, capture_output=True,
            env={**self.environment, "PYTHONPATH": os.fspath(REPOSITORY), "HOME": str(person.home)}, check=False,
            timeout=120)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{self.logs()}"
        return json.loads(done.stdout.splitlines()[-1])

    def socket(self, daemon: str) -> str:
        """Where a daemon listens for users of this machine."""
        return f"unix:{self.dir}/run/{daemon}.sock"

    def stolen(self, job: str) -> Stolen:
        """The run of a job and its claim, out of the schedd's own file."""
        def look() -> Stolen | None:
            with sqlite3.connect(f"file:{self.dir}/spool/job_queue.sqlite?mode=ro", uri=True) as database:
                row = database.execute(
                    "SELECT r.run_id, c.claim_id, c.secret, c.starter_node FROM runs r JOIN claims c USING (claim_id)"
                    " WHERE r.cluster || '.' || r.proc = ?", (job,)).fetchone()
            return Stolen(*row) if row is not None else None

        return until(look, f"a run of {job}")

    def idle_claim(self, owner: Person) -> Stolen:
        """A claim of a user on which nothing runs."""
        def look() -> Stolen | None:
            with sqlite3.connect(f"file:{self.dir}/spool/job_queue.sqlite?mode=ro", uri=True) as database:
                row = database.execute(
                    "SELECT '', claim_id, secret, starter_node FROM claims WHERE owner LIKE ? AND claim_id NOT IN"
                    " (SELECT claim_id FROM runs)", (f"{owner.name}@%",)).fetchone()
            return Stolen(*row) if row is not None else None

        return until(look, f"an idle claim of {owner.name}")

    def certificate(self, person: Person, role: str = "shadow") -> dict[str, str]:
        """Paths of a proxy certificate as the pool gives it to the user's own processes, in his folder."""
        files = next(PoolFiles.below(path.parent) for path in self.dir.rglob("host.crt"))
        own = files.credentials()
        assert own is not None
        lent = lend_proxy(own, f"{role}:{person.name}@{own.identity().host}")
        paths = {}
        for name, data in (("certificate", lent.chain), ("key", lent.key), ("ca", lent.ca)):
            path = person.home / f"{role}.{name}"
            path.write_bytes(data)
            os.chown(path, person.uid, person.gid)
            paths[name] = str(path)
        return paths

    def pids_of(self, person: Person, marker: str) -> list[int]:
        """The processes of a user whose command line has ``marker``."""
        return [pid for pid, command in self.processes().items()
                if marker in command and Path(f"/proc/{pid}").stat().st_uid == person.uid]


@contextmanager
def a_person(name: str, folder: Path) -> Iterator[Person]:
    """An account of its own, for as long as the block lasts."""
    home = folder / name
    subprocess.run(["useradd", "-M", "-N", "-g", "nogroup", "-d", str(home), "-s", "/bin/sh", name], check=True,
                   capture_output=True)
    try:
        entry = pwd.getpwnam(name)
        home.mkdir()
        home.chmod(0o755)
        os.chown(home, entry.pw_uid, entry.pw_gid)
        yield Person(name, entry.pw_uid, entry.pw_gid, home)
    finally:
        subprocess.run(["userdel", "-f", name], check=False, capture_output=True)  # one of its processes may just end


@contextmanager
def a_shared_pool(config: str = "", *, slots: int = 4, drops_root: bool = False) -> Iterator[SharedPool]:
    """A pool that root starts, with two users of this machine; its daemons stay root, or become the account POOL."""
    mark = os.urandom(3).hex()
    with fresh_folder() as folder, a_person(f"ca{mark}", folder) as alice, a_person(f"cm{mark}", folder) as mallory:
        pool = SharedPool(folder, alice, mallory, config, slots, drops_root=drops_root)
        try:
            yield pool
        finally:
            pool.stop()


def unix_client(node: str) -> Client:
    """A line to a daemon of this machine."""
    return connect(node)


def tls_client(node: str, paths: dict[str, str]) -> Client:
    """A line to a daemon, with a certificate."""
    return connect(node, ToolCredentials(**paths))


def said(client: Client, actor: str, message: Any) -> str:
    """The answer of an actor: its kind, or the code and reason of a refusal."""
    try:
        return type(client.ask(actor, message, timeout_s=20.0)).__name__
    except RequestRefused as error:
        return f"{error.code}: {error}"
    except WireError as error:
        return f"{type(error).__name__}: {error}"
