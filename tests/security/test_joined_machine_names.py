"""A machine that joined with an ordinary token takes the names of others."""

from __future__ import annotations

import pytest

from tests.harness.namespaces import NEED_NAMESPACES
from tests.security.conftest import AttackedPool
from tests.security.intruder import intrude

pytestmark = NEED_NAMESPACES

NAMES = [
    "manager.trio", "MANAGER.TRIO", "manager.trio.", "submit.trio", "Submit.Trio", "10.88.7.1", "::ffff:10.88.7.1",
    "*", "*.trio", "localhost", "LOCALHOST.", "127.0.0.1", "127.0.0.2", "::1", "ip6-localhost", "a.localhost",
    "0.0.0.0", "submit.trio\n", "submit.trio\x00.evil",
]


@pytest.fixture(scope="module")
def told(attacked: AttackedPool) -> dict[str, list[str]]:
    """What it hears when it enrols under each name: beside its own, and alone."""
    answers = intrude(attacked.evil, """
        result = [[tried(lambda: Intruder.enrolled(token, *hosts)) for token, hosts in attempts] for attempts in tries]
        """, tries=[[(attacked.token(), hosts) for hosts in (["evil.trio", name], [name])] for name in NAMES])
    return dict(zip(NAMES, answers, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_it_enrols_under_the_name_of_another(told: dict[str, list[str]], name: str) -> None:
    beside, alone = told[name]
    assert beside.startswith("RequestRefused"), beside
    assert alone.startswith("RequestRefused"), alone


def test_it_renews_the_certificate_of_another(attacked: AttackedPool) -> None:
    """Certificates are shown in every handshake: the one of the submit machine is no secret, its key is."""
    certificate = (attacked.submit.dir / "etc/pool/host.crt").read_text()
    answer = intrude(attacked.evil, """
        from condor_actors.messages.pool import RenewMachine
        from condor_actors.wire.certificates.authority import make_key, make_request
        evil = Intruder.enrolled(token, "renewer.trio")
        with evil.client(collector) as client:
            result = said(client, "enrolment", RenewMachine(request=make_request(make_key(), "submit.trio"),
                                                            certificate=certificate.encode()))
        """, token=attacked.token("master,schedd"), collector=attacked.collector, certificate=certificate)
    assert answer.startswith("denied"), answer


def test_a_user_of_the_manager_renews_the_certificate_of_a_machine(attacked: AttackedPool) -> None:
    certificate = (attacked.submit.dir / "etc/pool/host.crt").read_text()
    answer = intrude(attacked.manager, """
        import os
        from condor_actors.messages.pool import RenewMachine
        from condor_actors.wire.certificates.authority import make_key, make_request
        os.setgid(54321)
        os.setuid(54321)
        with connect(f"unix:{run}/collector.sock") as client:
            result = said(client, "enrolment", RenewMachine(request=make_request(make_key(), "submit.trio"),
                                                            certificate=certificate.encode()))
        """, run=str(attacked.manager.dir / "run"), certificate=certificate)
    assert answer.startswith("denied"), answer


def test_a_revoked_machine_goes_on_with_the_certificate_that_it_had_renewed_to(attacked: AttackedPool) -> None:
    """Who stole a key may have renewed with it: what follows a revoked certificate is revoked as well."""
    serial, renewed = intrude(attacked.evil, """
        from cryptography import x509
        from condor_actors.messages.pool import RenewMachine
        from condor_actors.wire.certificates.authority import make_key, make_request
        evil = Intruder.enrolled(token, "twice.trio")
        old = x509.load_pem_x509_certificate(evil.files.host.read_bytes())
        with evil.client(collector) as client:
            answer = client.ask("enrolment", RenewMachine(request=make_request(make_key(), "twice.trio"),
                                                          certificate=evil.files.host.read_bytes()))
        new = x509.load_pem_x509_certificate(answer.certificate)
        result = f"{old.serial_number:x}", f"{new.serial_number:x}"
        """, token=attacked.token(), collector=attacked.collector)
    attacked.manager.run("condor_pool", "revoke", serial)
    states = dict(line.split()[:2] for line in attacked.manager.run("condor_pool", "list").splitlines())
    assert (states[serial], states[renewed]) == ("revoked", "revoked")
