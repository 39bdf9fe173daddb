"""Tokens where the daemons have dropped root: the key is the pool's account's, and root's tools use it all the same."""

from __future__ import annotations

import os

from condor_actors.wire.idtokens.signed_token import read_claims
from tests.harness.namespaces import NEED_NAMESPACES, Machine, Wire
from tests.pool_fixture import until

pytestmark = NEED_NAMESPACES

ACCOUNT = 54400


def test_the_pools_account_signs_and_revokes(wire: Wire) -> None:
    manager = wire.manager(config=f"CONDOR_IDS = {ACCOUNT}.{ACCOUNT}\n")
    until((manager.dir / "run" / "schedd.address").exists, "the schedd to listen")
    log = (manager.dir / "log" / "CollectorLog").read_text()
    assert "it stays root" not in log
    key = manager.dir / "etc" / "passwords.d" / "POOL"
    assert (key.stat().st_uid, key.stat().st_mode & 0o777) == (ACCOUNT, 0o600)
    stranger = ("setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups")
    fetched = manager.run(*stranger, *Machine.__mro__[1].command(manager, "condor_token_fetch")).strip()
    created = manager.run("condor_token_create", "-identity", "alice@trio").strip()
    ids = [read_claims(token.rpartition(".")[0]).token_id for token in (fetched, created)]
    assert "2 tokens" in manager.run("condor_token_revoke", *ids)
    revoked = manager.dir / "etc" / "pool" / "revoked_tokens"
    assert all(each in revoked.read_text() for each in ids)
    assert os.stat(revoked).st_uid == ACCOUNT
    manager.run("condor_token_revoke", "-expr", 'sub == "x@trio"')
