"""A token of an annex is in the wrong hands: what a guest of the pool can be called, and how long it stays."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.namespaces import NEED_NAMESPACES, Machine
from tests.security.conftest import AttackedPool
from tests.security.intruder import intrude

pytestmark = NEED_NAMESPACES

PRIVATE = "10.77.0.5"
"""An address in a cluster behind a firewall."""


def guest(attacked: AttackedPool, machine: Machine, code: str, **known: Any) -> Any:
    """What becomes of code on a machine that has a token such as condor_annex uses."""
    token = attacked.manager.run("condor_pool", "token", "--roles", "master,startd", "--stay", "1h").strip()
    return intrude(machine, code, token=token, collector=attacked.collector, **known)


def enrolled(attacked: AttackedPool, machine: Machine, *hosts: str) -> str:
    """``in``, or why not."""
    return str(guest(attacked, machine, "result = tried(lambda: Intruder.enrolled(token, *hosts))", hosts=hosts))


def test_it_shares_an_address_with_guests_of_its_own_cluster_alone(attacked: AttackedPool) -> None:
    """Who has a guest's address speaks for the slots there: withdraws their ads, takes back their claims."""
    assert enrolled(attacked, attacked.submit, "annex-a-1.cluster", PRIVATE) == "in"
    assert enrolled(attacked, attacked.submit, "annex-a-2.cluster", PRIVATE) == "in"
    said = enrolled(attacked, attacked.evil, "annex-b-1.elsewhere", PRIVATE)
    assert said.startswith(f"RequestRefused: {PRIVATE} belongs to the machine with certificate"), said


@pytest.mark.parametrize("name", ["manager.trio", "submit.trio", "10.88.7.1", "localhost"])
def test_it_is_called_as_a_member_is(attacked: AttackedPool, name: str) -> None:
    assert enrolled(attacked, attacked.evil, f"annex-{name}.guest", name).startswith("RequestRefused")


def test_no_renewal_makes_its_stay_longer_or_its_roles_more(attacked: AttackedPool) -> None:
    ends, roles = guest(attacked, attacked.evil, """
        from cryptography import x509
        from condor_actors.messages.pool import RenewMachine
        from condor_actors.wire.certificates.authority import make_key, make_request
        from condor_actors.wire.certificates.trust import identity_of_machine
        evil = Intruder.enrolled(token, "annex-renews.guest")
        shown = [evil.files.host.read_bytes()]
        for _ in range(3):
            with evil.client(collector) as client:
                answer = client.ask("enrolment", RenewMachine(request=make_request(make_key(), "manager.trio"),
                                                              certificate=shown[-1]))
            shown.append(answer.certificate)
        read = [x509.load_pem_x509_certificate(each) for each in shown]
        result = ([each.not_valid_after_utc.timestamp() for each in read],
                  [sorted(identity_of_machine(each).roles) for each in read])
        """)
    assert len(ends) == 4
    assert max(ends) - min(ends) < 2
    assert roles == [["master", "startd"]] * 4


def test_it_does_nothing_but_run_jobs(attacked: AttackedPool) -> None:
    """Neither is it a submit machine nor a daemon of the central manager, nor does it vouch for people."""
    said = guest(attacked, attacked.evil, """
        from condor_actors.messages.admin import SetConfig, Shutdown
        from condor_actors.messages.tokens import FetchToken
        evil = Intruder.enrolled(token, name)
        result = [evil.advertise(collector, kind, Name=name, Machine=name, MyAddress=f"<{name}:1>", MyType=kind.value)
                  for kind in AdKind if kind.name in ("SCHEDD", "SUBMITTER", "NEGOTIATOR", "COLLECTOR")]
        with evil.client(collector) as client:
            result += [said(client, "collector", FetchToken(levels=(), lifetime_s=60.0, key_id="")),
                       said(client, "admin", Shutdown(how="fast"))]
        for identity in (f"user:root@{name}", f"user:alice@{name}", f"shadow:alice@{name}"):
            result.append(tried(lambda: evil.client_as(collector, identity)))
        """, name="annex-acts.guest")
    assert len(said) > 6
    assert not [each for each in said if each in ("Done", "in", "TokenIssued")], said
