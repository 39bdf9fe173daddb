"""A machine that joined with an ordinary token says that someone is a user of another machine."""

from __future__ import annotations

import pytest

from tests.harness.namespaces import NEED_NAMESPACES
from tests.security.conftest import AttackedPool
from tests.security.intruder import intrude

pytestmark = NEED_NAMESPACES

PING = """
from condor_actors.messages.admin import Ping
evil = Intruder.enrolled(token, *hosts)
def ask():
    global result
    with evil.client_as(schedd, claimed) as client:
        result = client.ask("admin", Ping()).identity
try:
    ask()
except (WireError, ValueError) as error:
    result = f"{type(error).__name__}: {error}"
"""


@pytest.mark.parametrize(("host", "claimed"), [
    ("trio", "user:root@trio"),  # the UID_DOMAIN of the machines of this pool, as a host name that nobody has
    ("evil1.trio", "user:root@evil1.trio"),
    ("evil2.trio", "user:root@trio@evil2.trio"),
    ("evil3.trio", "user:root/x@evil3.trio"),
    ("evil4.trio", "user:*@evil4.trio"),
    ("evil5.trio", "user:condor@evil5.trio"),
])
def test_it_signs_for_users(attacked: AttackedPool, host: str, claimed: str) -> None:
    """Nobody is taken for a user of the UID_DOMAIN on its word."""
    schedd = attacked.node(attacked.submit, "schedd")
    seen = intrude(attacked.evil, PING, token=attacked.token(), hosts=[host], schedd=schedd, claimed=claimed)
    assert not seen.endswith("@trio") or seen.startswith(("LinkLost", "NotTrusted", "BadCredentials")), seen


def test_it_acts_on_jobs(attacked: AttackedPool) -> None:
    """As machine, as a user of its own with the owner's name, and with claims about who asks."""
    cluster = attacked.submit.submit("executable = /bin/sleep\narguments = 1000\nrequirements = false\nqueue")
    answers = intrude(attacked.evil, """
        from condor_actors.messages.queue import ActOnJobs, JobAction
        evil = Intruder.enrolled(token, "evil-acts.trio")
        result = []
        def act(client):
            message = ActOnJobs(action=JobAction.REMOVE, ids=((cluster, 0),), reason="x")
            try:
                answer = client.ask("schedd", message, timeout_s=20.0)
            except RequestRefused as error:
                return error.code
            return [each.result if hasattr(each, "result") else str(each) for each in answer.results]
        with evil.client(schedd) as client:
            result.append(act(client))
        with evil.client_as(schedd, "user:root@evil-acts.trio") as client:
            result.append(act(client))
        """, token=attacked.token(), schedd=attacked.node(attacked.submit, "schedd"), cluster=cluster)
    assert attacked.submit.status_of(f"{cluster}.0") == 1, answers
    attacked.submit.run("condor_rm", str(cluster))
