"""What a partner has revoked is kept where all machines of the pool get it from, and nothing else that it says is."""

from __future__ import annotations

from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from twisted.logger import Logger

from condor_actors.messages.envelope import Address, AskFailed, Delivery, Identity, TimerFired
from condor_actors.messages.pool import QueryRevocations, Revocations
from condor_actors.wire.certificates.authority import Authority, PoolFiles, create_pool
from condor_actors.wire.certificates.credentials import TlsDoor
from condor_actors.wire.certificates.revocation import objection
from condor_actors.wire.idtokens.revoked_tokens import RevokedTokens
from condor_actors.wire.partners.partner_store import Partner, changed_partners, read_partners
from condor_actors.wire.partners.partner_watch import PartnerWatch

NODE = "<10.0.0.1%math:9618>"


class Watched:
    """A pool that trusts math, and its watch; its questions and timers."""

    def __init__(self, folder: Path) -> None:
        self.questions: list[tuple[Address, QueryRevocations, Any]] = []
        self.timers: dict[str, float] = {}
        self.files = {name: PoolFiles.below(folder / name) for name in ("math", "physics", "biology")}
        for name, files in self.files.items():
            create_pool(files, name, [f"host.{name}", "10.0.0.1"])
        self.path = self.files["physics"].partners
        with changed_partners(self.path) as partners:
            partners["math"] = Partner(name="math", central="<10.0.0.1:9618>", ca=self.files["math"].ca.read_bytes(),
                                       crl=b"")
        self.watch = PartnerWatch(self.path)
        context: Any = SimpleNamespace(  # as much of one as it uses
            random=Random(1), log=Logger("test"), set_timer=self.timers.__setitem__,
            ask=lambda to, message, *, timeout_s, then: self.questions.append((to, message, then)))
        self.watch.context = context
        self.fire("look")

    def fire(self, key: str) -> None:
        self.timers.pop(key, None)
        self.watch.receive(Delivery(message=TimerFired(key=key), sender=Address("", ""), identity=Identity(name="")))

    def hear(self, message: Any) -> float:
        """The answer to the only question; when it is asked again, in seconds."""
        ((_, _, then),) = self.questions
        self.questions.clear()
        then(Delivery(message=message, sender=Address(NODE, "enrolment"), identity=Identity(name="condor@math")))
        return self.timers["math"]

    def revoked_by(self, name: str) -> bytes:
        """The list of a pool that has revoked its machine."""
        files = self.files[name]
        found = files.credentials()
        assert found is not None
        Authority.load(files).revoke([f"{found.certificates()[0].serial_number:x}"])
        return files.crl.read_bytes()


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def test_a_machine_that_a_partner_has_revoked_may_not_stay(watched: Watched) -> None:
    credentials = watched.files["math"].credentials()
    ours = watched.files["physics"].credentials()
    assert credentials is not None
    assert ours is not None
    machine = Identity(name="condor@math", method="tls", realm="math", evidence=attrs.evolve(
        Identity(name="").evidence, serials=(credentials.certificates()[0].serial_number,)))
    ((to, question, _),) = watched.questions
    assert to == Address(NODE, "enrolment")
    assert watched.hear(Revocations(crl=watched.revoked_by("math"))) <= 1.0
    (partner,) = read_partners(watched.path)
    door = TlsDoor(attrs.evolve(ours, partners=(partner,)))
    assert "was revoked" in objection(machine, door.revoked("math"), RevokedTokens(), 1.7e9)
    watched.fire("math")
    assert watched.questions[0][1].known != question.known  # so the answer waits until there is something new


@pytest.mark.parametrize("said", ["biology", "nothing that is a list"])
def test_a_list_that_is_not_its_authoritys_is_not_kept(watched: Watched, said: str) -> None:
    crl = watched.revoked_by(said) if said in watched.files else said.encode()
    assert watched.hear(Revocations(crl=crl)) > 1.0
    assert read_partners(watched.path)[0].crl == b""


def test_one_that_does_not_answer_is_asked_again_later(watched: Watched) -> None:
    assert watched.hear(AskFailed(reason="unreachable", text="")) > 1.0
    watched.fire("look")
    assert not watched.questions
    watched.fire("math")
    assert len(watched.questions) == 1


def test_one_that_is_no_partner_any_more_does_not_become_one_by_its_list(watched: Watched) -> None:
    crl = watched.revoked_by("math")
    with changed_partners(watched.path) as partners:
        partners.clear()
    watched.hear(Revocations(crl=crl))
    assert read_partners(watched.path) == ()
