"""Commands about tokens that get none: each says in a line why, and what to do, and fails."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until

NOBODY = 54_321
GONE = "condor_token_request_list shows those that wait for you"


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=1)
        try:
            yield made
        finally:
            made.stop()


@contextmanager
def asked(pool: PersonalPool, identity: str = "games@personal") -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A request that waits: its number, and who asks."""
    with subprocess.Popen(pool.command("condor_token_request", "-identity", identity, "-lifetime", "60"),
                          env=pool.environment, cwd=pool.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as asking:
        try:
            listed = until(lambda: pool.run("condor_token_request_list"), "the request")
            yield next(line.split('"')[1] for line in listed.splitlines() if line.startswith("RequestId")), asking
        finally:
            asking.kill()
            asking.communicate()
    until(lambda: pool.run("condor_token_request_list") == "", "nobody to ask any more")


def refused(pool: PersonalPool, *words: str, status: int = 1, stdin: str | None = None) -> str:
    """What a command says that fails."""
    done = pool.tool(*words, stdin=stdin)
    assert (done.returncode, "Traceback" in done.stderr) == (status, False), done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(("words", "said"), [
    ("condor_token_create", "-identity USER@DOMAIN"),
    ("condor_token_create -identity nodomain", "'nodomain' is no identity; expected user@domain"),
    ("condor_token_create -identity x@personal -authz NONSENSE", "NONSENSE is no authorization level"),
    ("condor_token_create -identity x@personal -key none", "there is no signing key 'none' here"),
    ("condor_token_create -identity x@personal -lifetime 0", "-lifetime 0: expected a number of seconds"),
    ("condor_token_fetch -authz NONSENSE", "NONSENSE is no authorization level"),
    ("condor_token_fetch -pool localhost:1", "nobody answers at <localhost:1>"),
    ("condor_token_request -pool localhost:1 -identity x@personal", "nobody answers at <localhost:1>"),
    ("condor_token_request -identity nodomain", "'nodomain' is no identity; expected user@domain"),
    ("condor_token_request -authz NONSENSE -identity x@personal", "NONSENSE is no authorization level"),
    ("condor_token_request_list -pool localhost:1", "nobody answers at <localhost:1>"),
    ("condor_token_request_approve -reqid 1234567 -yes", GONE),
    ("condor_token_request_approve -reqid three -yes", GONE),
    ("condor_token_request_auto_approve -netblock nowhere -lifetime 9", "nowhere is no network"),
    ("condor_token_request_auto_approve", "from where, and for how long?"),
    ("condor_token_revoke", "which tokens?"),
    ("condor_token_list -dir /nonexistent", "-dir /nonexistent: No such file"),
])
def test_what_makes_no_sense(pool: PersonalPool, words: str, said: str) -> None:
    assert said in refused(pool, *words.split())


def test_a_request_is_approved_once_and_by_its_number(pool: PersonalPool) -> None:
    with asked(pool) as (number, asking):
        for words in (("-yes",), ("-reqid", "", "-yes")):
            assert "which request?" in refused(pool, "condor_token_request_approve", *words)
        for answer in ("", "no\n", "YES\n"):
            said = refused(pool, "condor_token_request_approve", "-reqid", number, stdin=answer)
            assert said.endswith("Request was not approved.\n")
        assert asking.poll() is None
        pool.run("condor_token_request_approve", "-reqid", number, "-yes")
        token, _ = asking.communicate(timeout=60)
        assert asking.returncode == 0
        assert token.count(".") == 2
        assert GONE in refused(pool, "condor_token_request_approve", "-reqid", number, "-yes")


def test_a_request_goes_with_who_asked(pool: PersonalPool) -> None:
    with asked(pool) as (number, _):
        pass
    assert GONE in refused(pool, "condor_token_request_approve", "-reqid", number, "-yes")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_decides_nothing(pool: PersonalPool) -> None:
    stranger = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")

    def as_stranger(*words: str) -> str:
        return refused(pool, *stranger, *pool.command(*words))

    with asked(pool) as (number, asking):
        assert pool.run(*stranger, *pool.command("condor_token_request_list")) == ""
        assert GONE in as_stranger("condor_token_request_approve", "-reqid", number, "-yes")
        assert asking.poll() is None
    assert "it needs ADMINISTRATOR" in as_stranger("condor_token_revoke", "-expr", "true")
    assert "it needs ADMINISTRATOR" in as_stranger("condor_token_request_auto_approve", "-netblock", "10.0.0.0/8",
                                                   "-lifetime", "9")
    assert "cannot be read: Permission denied" in as_stranger("condor_token_create", "-identity", "root@personal")


def test_a_request_of_one_pool_is_unknown_to_another(pool: PersonalPool) -> None:
    with fresh_folder() as folder:
        other = PersonalPool(folder, slots=1)
        try:
            with asked(pool) as (number, asking):
                assert GONE in refused(other, "condor_token_request_approve", "-reqid", number, "-yes")
                assert asking.poll() is None
            node = (other.dir / "run" / "collector.address").read_text().splitlines()[0].strip("<>")
            assert f"<{node}> is not a machine of this pool" in refused(pool, "condor_token_fetch", "-pool", node)
        finally:
            other.stop()
