"""Joining a pool with a token, renewing, being put out."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest
import pytest_twisted
from cryptography import x509
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from condor_actors.messages.admin import Ping
from condor_actors.messages.envelope import Done, Refused
from condor_actors.messages.pool import EnrolMachine, MachineEnrolled, QueryRevocations, RenewMachine, Revocations
from condor_actors.wire import joining
from condor_actors.wire.certificates import authority as authority_module
from condor_actors.wire.certificates.authority import (
    Authority,
    AuthorityError,
    PoolFiles,
    create_pool,
    fingerprint,
    key_pem,
    lend_proxy,
    make_key,
    make_request,
)
from condor_actors.wire.certificates.credentials import Credentials
from condor_actors.wire.certificates.renewed_pair import install_renewed, keep_renewed, renewed_file
from condor_actors.wire.certificates.tool_credentials import ToolCredentials
from condor_actors.wire.enrolment import Enrolment, EnrolmentActor, EnrolmentDoor
from condor_actors.wire.errors import NotTrusted, RequestRefused, Unreachable
from condor_actors.wire.frames import ENROL_LINE
from condor_actors.wire.membership import CertificateKeeper
from condor_actors.wire.nodes import TlsNode, parse_node
from condor_actors.wire.partners.partner_store import Partner, changed_partners
from condor_actors.wire.tokens import BadToken, Token, TokenStore
from tests.wire.conftest import Process

Make = Callable[..., Process]


class CentralManager:
    """A process that admits machines."""

    def __init__(self, processes: Make, directory: Path, life: timedelta = timedelta(days=1)) -> None:
        self.files = PoolFiles.below(directory)
        self.authority = create_pool(self.files, "test", ["localhost", "127.0.0.1"])
        self.process = processes("collector", self.files.credentials(), guests=True)
        self.enrolment = Enrolment(self.files, life)
        office = self.process.office
        office.services[ENROL_LINE] = lambda _: EnrolmentDoor(self.enrolment, office.clock, office.log)
        self.process.system.spawn("enrolment", lambda: EnrolmentActor(self.enrolment))
        self.node = office.listen_tls("127.0.0.1", 0)
        self.tokens = TokenStore(self.files.tokens)

    def token(self, **options: object) -> Token:
        return self.tokens.issue(self.node, fingerprint(self.authority.certificate),
                                 **options)  # type: ignore[arg-type]

    @property
    def address(self) -> TlsNode:
        node = parse_node(self.node)
        assert isinstance(node, TlsNode)
        return node


@pytest_twisted.ensureDeferred
async def test_a_machine_joins_with_a_token_and_then_belongs(processes: Make, tmp_path: Path) -> None:
    manager = CentralManager(processes, tmp_path / "cm")
    token = Token.parse(manager.token(roles=("startd",)).text())
    files = PoolFiles.below(tmp_path / "new")
    joined = await deferToThread(joining.join, token, manager.address, ["worker.example"], files)
    assert joined.pool == "test"
    assert joined.roles == ("startd",)
    assert joined.address == "127.0.0.1"
    assert stat.S_IMODE(files.host_key.stat().st_mode) == 0o600
    worker = processes("worker", files.credentials())
    answer = await worker.box.ask(manager.node, "echo", Done())
    assert answer.message == Done(text="condor@test ")
    with pytest.raises(RequestRefused, match="used already"):
        await deferToThread(joining.join, token, manager.address, ["worker.example"], files)


@pytest_twisted.ensureDeferred
async def test_tokens_run_out_and_names_are_not_stolen(processes: Make, tmp_path: Path) -> None:
    manager = CentralManager(processes, tmp_path / "cm")
    files = PoolFiles.below(tmp_path / "new")
    with pytest.raises(RequestRefused, match="run out"):
        await deferToThread(joining.join, manager.token(life_s=-1.0), manager.address, ["w"], files)
    first = PoolFiles.below(tmp_path / "first")
    await deferToThread(joining.join, manager.token(), manager.address, ["w1.example"], first)
    with pytest.raises(RequestRefused, match="belongs to the machine"):
        await deferToThread(joining.join, manager.token(), manager.address, ["evil.example", "w1.example"], files)
    assert not files.host.exists()


@pytest_twisted.ensureDeferred
async def test_a_newcomer_talks_to_nobody_but_the_pool_of_its_token(processes: Make, tmp_path: Path) -> None:
    manager = CentralManager(processes, tmp_path / "cm")
    impostor = CentralManager(processes, tmp_path / "impostor")
    with pytest.raises(NotTrusted, match="fingerprint"):
        await deferToThread(joining.join, manager.token(), impostor.address, ["w"], PoolFiles.below(tmp_path / "n"))
    assert list(impostor.files.tokens.glob("*")) == [], "it was shown no token"
    with pytest.raises(Unreachable):
        await deferToThread(joining.join, manager.token(), TlsNode("127.0.0.1", 1), ["w"],
                            PoolFiles.below(tmp_path / "n"))


@pytest_twisted.ensureDeferred
async def test_who_has_no_certificate_can_only_enrol(processes: Make, tmp_path: Path) -> None:
    import socket
    import ssl

    manager = CentralManager(processes, tmp_path / "cm")

    def try_actors() -> bytes:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with socket.create_connection((manager.address.host, manager.address.port), timeout=10) as plain, \
                context.wrap_socket(plain) as connection:
            connection.sendall(b"condor actors 1\n")
            try:
                return connection.recv(100)
            except OSError:
                return b""

    assert await deferToThread(try_actors) == b""
    assert manager.process.office.links() == []


@pytest_twisted.ensureDeferred
async def test_a_machine_renews_its_certificate_in_time(processes: Make, tmp_path: Path) -> None:
    manager = CentralManager(processes, tmp_path / "cm", life=timedelta(seconds=60))
    files = PoolFiles.below(tmp_path / "new")
    await deferToThread(joining.join, manager.token(roles=("startd",)), manager.address, ["w.example"], files)
    manager.enrolment._life = timedelta(days=1)
    old_certificate, old_key = files.host.read_bytes(), files.host_key.read_bytes()
    worker = processes("worker", files.credentials())
    renewed: Deferred[Credentials] = Deferred()
    keeper = CertificateKeeper(files, renewed.callback, manager.node, shown=files.credentials())
    worker.system.spawn("certificates", lambda: keeper)
    await worker.box.ask(manager.node, "echo", Done())
    keeper.check()
    renewed.addTimeout(60, reactor)
    worker.office.renew(await renewed)
    assert files.host.read_bytes() != old_certificate
    assert files.host_key.read_bytes() != old_key
    worker.office.hang_up(manager.node, "to come back with the new certificate")
    again = processes("worker again", files.credentials())
    assert isinstance((await again.box.ask(manager.node, "echo", Done())).message, Done)


@pytest_twisted.ensureDeferred
async def test_a_pool_that_comes_to_be_trusted_while_a_daemon_starts_is_trusted(
        processes: Make, tmp_path: Path) -> None:
    """The list of partners changes after the daemon has read it, and before the actor that minds it is made."""
    files = PoolFiles.below(tmp_path / "own")
    create_pool(files, "own", ["localhost", "127.0.0.1"])
    create_pool(PoolFiles.below(tmp_path / "other"), "other", ["other.example"])
    daemon = processes("schedd", files.credentials())
    with changed_partners(files.partners) as partners:
        partners["other"] = Partner(name="other", central="<other.example:9618>",
                                    ca=PoolFiles.below(tmp_path / "other").ca.read_bytes())
    assert daemon.office.partners() == ()
    told: Deferred[None] = Deferred()
    told.addTimeout(60, reactor)
    daemon.system.spawn("certificates", lambda: CertificateKeeper(
        files, daemon.office.renew, tell_partners=lambda: None if told.called else told.callback(None),
        shown=daemon.office.tls.credentials if daemon.office.tls is not None else None))
    await told
    await daemon.box.ask("", "echo", Done())  # the turn that told is over
    assert [each.name for each in daemon.office.partners()] == ["other"]


@pytest_twisted.ensureDeferred
async def test_what_a_daemon_shows_already_is_not_taken_up_again(processes: Make, tmp_path: Path) -> None:
    files = PoolFiles.below(tmp_path)
    create_pool(files, "own", ["localhost", "127.0.0.1"])
    shown = files.credentials()
    daemon = processes("schedd", shown)
    renewed: list[Credentials] = []
    looked: Deferred[None] = Deferred()
    looked.addTimeout(60, reactor)
    daemon.system.spawn("certificates", lambda: CertificateKeeper(
        files, renewed.append, cut=lambda: None if looked.called else looked.callback(None), shown=shown))
    await looked
    await daemon.box.ask("", "echo", Done())
    assert renewed == []


@pytest_twisted.ensureDeferred
async def test_a_machine_renews_nobody_elses_certificate(processes: Make, tmp_path: Path) -> None:
    manager = CentralManager(processes, tmp_path / "cm")
    files = PoolFiles.below(tmp_path / "new")
    await deferToThread(joining.join, manager.token(roles=("startd",)), manager.address, ["w.example"], files)
    worker = processes("worker", files.credentials())
    request = make_request(make_key(), "w")
    for certificate in (manager.files.host.read_bytes(), b"nonsense", files.ca.read_bytes()):
        answer = await worker.box.ask(manager.node, "enrolment", RenewMachine(request=request, certificate=certificate))
        assert isinstance(answer.message, Refused)
        assert answer.message.code == "denied"
    own = RenewMachine(request=request, certificate=files.host.read_bytes())
    assert isinstance((await worker.box.ask(manager.node, "enrolment", own)).message, MachineEnrolled)
    manager.authority.revoke(["w.example"])
    assert isinstance((await worker.box.ask(manager.node, "enrolment", own)).message, Refused)


def renewed(authority: Authority) -> tuple[bytes, bytes]:
    """A renewed certificate of the machine ``h`` and its key."""
    key = make_key()
    serial = next(serial for serial, entry in authority.issued().items() if not entry.get("revoked"))
    return authority.sign_request(make_request(key, "h"), ["h"], renews=serial), key_pem(key)


@pytest.mark.parametrize("put_into_place", ["nothing", "the certificate", "both"])
def test_a_crash_while_a_renewed_pair_is_put_into_place_is_mended(tmp_path: Path, put_into_place: str) -> None:
    files = PoolFiles.below(tmp_path)
    certificate, key = renewed(create_pool(files, "p", ["h"]))
    renewed_file(files.host).write_bytes(certificate + key)
    if put_into_place != "nothing":
        files.host.write_bytes(certificate)
    if put_into_place == "both":
        files.host_key.write_bytes(key)
    found = files.credentials()
    assert found is not None
    assert (found.chain, found.key) == (certificate, key)
    install_renewed(files.host, files.host_key)
    assert files.credentials() == found
    assert (files.host.read_bytes(), files.host_key.read_bytes()) == (certificate, key)
    assert not renewed_file(files.host).exists()
    assert stat.S_IMODE(files.host_key.stat().st_mode) == 0o600


def test_daemons_and_tools_read_a_pair_while_it_is_renewed(tmp_path: Path) -> None:
    files = PoolFiles.below(tmp_path)
    authority = create_pool(files, "p", ["h"])
    tool = ToolCredentials(certificate=str(files.host), key=str(files.host_key), ca=str(files.ca))
    pairs = [renewed(authority) for _ in range(30)]
    together = threading.Barrier(4, timeout=60)

    def read() -> None:
        for _ in pairs:
            together.wait()
            for _ in range(5):
                assert files.credentials() is not None
                tool.context()

    with ThreadPoolExecutor(3) as threads:
        readers = [threads.submit(read) for _ in range(3)]
        for certificate, key in pairs:
            together.wait()
            keep_renewed(files.host, files.host_key, certificate + key)
        for each in readers:
            each.result(60)


def test_programs_of_a_user_borrow_a_certificate_at_once(tmp_path: Path) -> None:
    """Each borrows another one: none is left with the certificate of one and the key of another."""
    files = PoolFiles.below(tmp_path / "machine")
    create_pool(files, "p", ["h"])
    machine = files.credentials()
    assert machine is not None
    bundles = [lend_proxy(machine, "user:alice@h").bundle() for _ in range(8)]
    path = str(tmp_path / "home/user.pem")
    own = ToolCredentials(certificate=path, key=path, ca=str(files.ca))

    def borrow(bundle: bytes) -> None:
        for _ in range(20):
            own.keep(bundle)
            own.context()

    with ThreadPoolExecutor(8) as threads:
        for each in [threads.submit(borrow, bundle) for bundle in bundles]:
            each.result(60)
    assert os.listdir(tmp_path / "home") == ["user.pem"]
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_what_was_borrowed_in_another_pool_counts_for_nothing(tmp_path: Path) -> None:
    """A user of two pools has one home directory: neither is shown the other's certificate."""
    here, there = PoolFiles.below(tmp_path / "here"), PoolFiles.below(tmp_path / "there")
    path = str(tmp_path / "home/user.pem")
    for files in (here, there):
        create_pool(files, "p", ["h"])
        machine = files.credentials()
        assert machine is not None
        ToolCredentials(certificate=path, key=path, ca=str(files.ca)).keep(lend_proxy(machine, "user:alice@h").bundle())
    theirs = ToolCredentials(certificate=path, key=path, ca=str(there.ca))
    ours = attrs.evolve(theirs, ca=str(here.ca))
    assert (theirs.is_fresh(), theirs.is_usable()) == (True, True)
    assert (ours.is_fresh(), ours.is_usable()) == (False, False)


@pytest.mark.parametrize("name", ["h", "H", "h.", "H.", "*", "*.example", "h*", "a b", "", "..", "1.2.3", "0.0.0.0",
                                  "224.0.0.1", "exam\x00ple", "-a", "a-", "ä.example", "x" * 64])
def test_nobody_enrols_under_the_managers_name_nor_a_pattern(tmp_path: Path, name: str) -> None:
    files = PoolFiles.below(tmp_path)
    create_pool(files, "p", ["h", "10.0.0.1"])
    token = TokenStore(files.tokens).issue("h:1", b"f" * 32, life_s=60.0)
    answer = Enrolment(files).enrol(EnrolMachine(token_id=token.token_id, secret=token.secret, hosts=(name,),
                                                 request=make_request(make_key(), "h")))
    assert isinstance(answer, Refused), name


def test_a_name_belongs_to_the_machine_that_enrolled_until_it_is_revoked(tmp_path: Path) -> None:
    files = PoolFiles.below(tmp_path)
    authority = create_pool(files, "p", ["h"])
    authority.sign_request(make_request(make_key(), "w"), ["w.example", "10.0.0.2"])
    for hosts in (["W.example"], ["evil", "w.example."], ["10.0.0.2"], ["::ffff:10.0.0.2"]):
        with pytest.raises(AuthorityError, match="belongs to the machine"):
            authority.sign_request(make_request(make_key(), "evil"), hosts)
    authority.revoke(["w.example"])
    authority.sign_request(make_request(make_key(), "w"), ["w.example"])


def test_a_guest_stays_for_a_time_and_shares_its_address_with_guests_only(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = PoolFiles.below(tmp_path)
    authority = create_pool(files, "p", ["h"])
    begin = authority_module._now()

    def enrol(*hosts: str, stay_s: float = 3600.0, **more: Any) -> x509.Certificate:
        request = make_request(make_key(), hosts[0])
        return x509.load_pem_x509_certificate(authority.sign_request(request, hosts, stay_s=stay_s, **more))

    first = enrol("a1.node", "10.0.0.7")
    assert first.not_valid_after_utc - begin <= timedelta(hours=1, seconds=5)
    enrol("a2.node", "10.0.0.7")
    for hosts, stay_s in ((("a1.node", "10.0.0.8"), 3600.0), (("desk", "10.0.0.7"), 0.0)):
        with pytest.raises(AuthorityError, match="belongs to the machine"):
            enrol(*hosts, stay_s=stay_s)
    monkeypatch.setattr(authority_module, "_now", lambda: begin + timedelta(minutes=50))
    again = enrol("a1.node", "10.0.0.7", stay_s=0.0, renews=f"{first.serial_number:x}")
    assert again.not_valid_after_utc == first.not_valid_after_utc, "a renewal makes no stay longer"
    monkeypatch.setattr(authority_module, "_now", lambda: begin + timedelta(hours=2))
    with pytest.raises(AuthorityError, match="time that is over"):
        enrol("a1.node", "10.0.0.7", renews=f"{again.serial_number:x}")
    enrol("desk", "10.0.0.7", "a2.node", stay_s=0.0)


@pytest_twisted.ensureDeferred
async def test_revocations_are_told(processes: Make, tmp_path: Path) -> None:
    manager = CentralManager(processes, tmp_path / "cm")
    files = PoolFiles.below(tmp_path / "new")
    await deferToThread(joining.join, manager.token(), manager.address, ["w.example"], files)
    manager.authority.revoke(["w.example"])
    answer = await manager.process.box.ask("", "enrolment", QueryRevocations())
    assert isinstance(answer.message, Revocations)
    manager.process.office.renew(manager.files.credentials())  # type: ignore[arg-type]
    worker = processes("worker", files.credentials())
    assert not isinstance((await worker.box.ask(manager.node, "echo", Ping())).message, Done)
    with pytest.raises(AuthorityError, match="no certificate"):
        manager.authority.revoke(["nobody.example"])


def test_tokens_are_checked_before_they_are_believed(tmp_path: Path) -> None:
    token = Token(address="<h:1>", ca_fingerprint=bytes(32), token_id="0" * 16, secret="s")
    assert Token.parse(token.text()) == token
    text = token.text()
    assert Token.parse(f" {text[:30]}\n  {text[30:]} \n") == token, "a terminal's line breaks"
    for wrong in ("", "hello", text[:-5], "condor1.AAAA"):
        with pytest.raises(BadToken):
            Token.parse(wrong)
    store = TokenStore(tmp_path)
    with pytest.raises(BadToken):
        store.redeem("../../etc/passwd", "x")
    made = store.issue("<h:1>", bytes(32))
    with pytest.raises(BadToken, match="secret"):
        store.redeem(made.token_id, "wrong")
    store.redeem(made.token_id, made.secret)
    with pytest.raises(BadToken):
        store.redeem(made.token_id, made.secret)


def test_the_authority_is_made_once_and_refuses_nonsense(tmp_path: Path) -> None:
    files = PoolFiles.below(tmp_path)
    authority = create_pool(files, "p", ["h"])
    with pytest.raises(AuthorityError, match="exists"):
        create_pool(files, "p", ["h"])
    with pytest.raises(AuthorityError, match="role"):
        authority.sign_request(make_request(make_key(), "x"), ["x"], ["king"])
    with pytest.raises(AuthorityError, match="read"):
        authority.sign_request(b"nonsense", ["x"])
    with pytest.raises(AuthorityError, match="condor_pool create"):
        Authority.load(PoolFiles.below(tmp_path / "elsewhere"))
