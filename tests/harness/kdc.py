"""A real Kerberos server (MIT's krb5kdc) on loopback, of a realm that a test makes."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import textwrap
from pathlib import Path
from types import TracebackType

import pytest

from tests.pool_fixture import until

REALM = "POOL.TEST"
PASSWORD = "a password of the test's"
SERVICE = "host/files.pool.test"
USER = f"alice@{REALM}"
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit", "klist")


class Kdc:
    """The server, its realm with a user and a service, and the tickets that it gives.

    Args:
        folder: for its database and configuration; every user can enter it.
    """

    def __init__(self, folder: Path) -> None:
        missing = [name for name in _PROGRAMS if shutil.which(name, path=self._path()) is None]
        if missing:
            pytest.skip(f"not installed: {', '.join(missing)} (krb5-kdc, krb5-admin-server, krb5-user)")
        self.folder = folder
        self.configuration = folder / "krb5.conf"
        self._private = folder / "kdc"
        self._private.mkdir(mode=0o700)
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            self.port = listening.getsockname()[1]
        self.configuration.write_text(textwrap.dedent(f"""\
            [libdefaults]
                default_realm = {REALM}
                dns_lookup_kdc = false
                dns_lookup_realm = false
                dns_canonicalize_hostname = false
                rdns = false
                udp_preference_limit = 1
            [realms]
                {REALM} = {{
                    kdc = 127.0.0.1:{self.port}
                }}
        """))
        profile = self._private / "kdc.conf"
        profile.write_text(textwrap.dedent(f"""\
            [kdcdefaults]
                kdc_listen = 127.0.0.1:{self.port}
                kdc_tcp_listen = 127.0.0.1:{self.port}
            [realms]
                {REALM} = {{
                    database_name = {self._private}/principal
                    key_stash_file = {self._private}/stash
                    acl_file = {self._private}/acl
                    max_life = 1d
                    max_renewable_life = 7d
                    supported_enctypes = aes256-cts-hmac-sha1-96:normal
                }}
            [logging]
                kdc = FILE:{self._private}/log
        """))
        self.environment = {**os.environ, "PATH": self._path(), "KRB5_CONFIG": str(self.configuration), "LC_ALL": "C",
                            "KRB5_KDC_PROFILE": str(profile)}
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def _path() -> str:
        return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"

    def __enter__(self) -> Kdc:
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "of the database")
        for name, *key in (("alice", "-pw", PASSWORD), (SERVICE, "-randkey")):
            self._run("kadmin.local", "-r", REALM, "addprinc", *key, name)
        self._process = subprocess.Popen(["krb5kdc", "-n", "-r", REALM], env=self.environment,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until(self._answers, "the Kerberos server")
        except AssertionError:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """No ticket is given or renewed from now on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _answers(self) -> bool:
        with socket.socket() as asking:
            return asking.connect_ex(("127.0.0.1", self.port)) == 0

    def _run(self, *words: str, stdin: str = "") -> str:
        done = subprocess.run(words, env=self.environment, input=stdin, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def ticket(self, name: str, *, life_s: int, renewable_s: int = 0) -> Path:
        """The file of a credential cache with a fresh ticket of the user."""
        path = self.folder / name
        more = ("-r", f"{renewable_s}s") if renewable_s else ()
        self._run("kinit", "-f", "-l", f"{life_s}s", *more, "-c", f"FILE:{path}", USER, stdin=f"{PASSWORD}\n")
        return path

    def with_service(self, cache: Path) -> None:
        """Have a ticket of the service in the cache too."""
        self._run("kvno", "-c", f"FILE:{cache}", SERVICE)
