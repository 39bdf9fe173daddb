"""What is written down of messages: the table against all messages there are, both ways."""

from __future__ import annotations

import attrs
import pytest

from condor_actors.messages.admin import SetConfig
from condor_actors.messages.audited_actions import AUDITED_ACTIONS, QUIET, audited_action_of
from condor_actors.messages.claim import ReleaseClaim
from condor_actors.messages.codec import kinds, message_class
from condor_actors.messages.queue import ActOnJobs, JobAction

LOW = ("READ", "CLIENT")
ANSWERS = {
    "condor.advertise.AdsChanged", "condor.claim.ClaimGranted", "condor.claim.ClaimRefused",
    "condor.claim.ClaimsRenewed", "condor.negotiate.ResourceRequests",
    # what a schedd and a starter host hear from nobody but their own
    "condor.shadow_host.BecomeOwner", "condor.shadow_host.DismissHost", "condor.shadow_host.HostOrders",
    "condor.shadow_host.SayHello", "condor.shadow_host.StartRun"}
TELLTALE = {"secret", "capability", "credential", "private", "transfer_key", "value", "attributes", "job_ad",
            "cluster_ad", "data", "bundle", "claims", "token", "request", "content", "command"}
KINDS = {kind for kind, _ in kinds() if kind.startswith("condor.")}


def test_every_kind_above_reading_has_a_deed_or_a_reason() -> None:
    above = {kind for kind in KINDS if message_class(kind, 1).LEVEL not in LOW}  # type: ignore[union-attr]
    unknown = above - set(AUDITED_ACTIONS) - QUIET - ANSWERS
    assert unknown == set(), f"say in messages/audited_actions.py what these do: {sorted(unknown)}"


def test_every_row_is_of_a_kind_that_there_is() -> None:
    assert set(AUDITED_ACTIONS) | QUIET | ANSWERS <= KINDS
    assert set(AUDITED_ACTIONS) & QUIET == set()


@pytest.mark.parametrize("kind", sorted(AUDITED_ACTIONS))
def test_what_a_row_shows_are_fields_without_secrets(kind: str) -> None:
    cls = message_class(kind, 1)
    assert cls is not None
    fields = {field.name for field in attrs.fields(cls)}
    audited = AUDITED_ACTIONS[kind]
    named = {audited.action[1:].partition("}")[0]} if audited.action.startswith("{") else set()
    assert set(audited.fields) | named <= fields
    allowed = {"value"} if kind == "condor.negotiate.SetPriority" else set()
    assert (set(audited.fields) & TELLTALE) - allowed == set()


def test_objects_in_words() -> None:
    message = ActOnJobs(action=JobAction.HOLD, ids=((1, 0), (2, -1)), constraint="", reason="a\nb")
    assert audited_action_of(message) == ("hold-jobs", "ids=1.0,2 reason=a\nb")
    change = SetConfig(name="A", value="hush", persistent=True)
    assert audited_action_of(change) == ("set-config", "name=A persistent=True")
    assert audited_action_of(ReleaseClaim(claim_id="c#1", secret="hush")) == ("release-claim", "claim_id=c#1")
    ids = tuple((n, 0) for n in range(5000))
    many = audited_action_of(ActOnJobs(action=JobAction.REMOVE, ids=ids, reason="x" * 5000))
    assert many is not None
    assert len(many[1]) < 800
    assert "(5000)" in many[1]
