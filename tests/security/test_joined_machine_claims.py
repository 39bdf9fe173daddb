"""A machine that joined speaks about claims that another machine granted, by their public ids in the slot ads."""

from __future__ import annotations

from typing import Any

import pytest

from condor_actors.messages.claim import ClaimRevoked, ClaimsKept, ClaimsRenewed
from condor_actors.messages.envelope import Identity
from tests.unit.cores.schedd.test_claims_and_runs import Schedd, running

GRANTER = Identity(name="condor@pool", method="tls", host="e", hosts=frozenset({"e"}), roles=frozenset({"startd"}))
STRANGERS = {
    "another machine": Identity(name="condor@pool", method="tls", host="evil", hosts=frozenset({"evil"}),
                                roles=frozenset({"startd"})),
    "one whose name begins so": Identity(name="condor@pool", method="tls", host="e.evil", hosts=frozenset({"e.evil"}),
                                         roles=frozenset({"startd"})),
    "one of that name in a partner's pool": Identity(name="condor@pool%math", method="tls", host="e%math",
                                                     hosts=frozenset({"e%math"}), realm="math",
                                                     roles=frozenset({"startd"})),
    "the bearer of a token for startds": Identity(name="condor@pool", method="token", roles=frozenset({"user"}),
                                                  levels=frozenset({"ADVERTISE_STARTD"})),
}


@pytest.mark.parametrize("who", sorted(STRANGERS))
@pytest.mark.parametrize("said", [{"final": True}, {"final": False}, {"final": False, "lost": True}], ids=str)
def test_it_takes_back_the_claim_of_another(who: str, said: dict[str, Any]) -> None:
    schedd = Schedd()
    claim_id = running(schedd)
    schedd.send(ClaimRevoked(claim_id=claim_id, reason="mine now", **said), identity=STRANGERS[who])
    held = schedd.core.claims.held[claim_id]
    assert held.usable
    assert held.run_id == "1.0#1@s"
    assert schedd.status(1) == "RUNNING"
    schedd.send(ClaimRevoked(claim_id=claim_id, reason="the owner", final=True), identity=GRANTER)
    assert claim_id not in schedd.core.claims.held or not schedd.core.claims.held[claim_id].usable


@pytest.mark.parametrize("who", sorted(STRANGERS))
def test_it_says_that_the_claim_of_another_is_with_it_now(who: str) -> None:
    """Under the other's address, and under its own with the claim's id and secret."""
    schedd = Schedd()
    claim_id = running(schedd)
    for startd in ("<e:7>", f"<{STRANGERS[who].host.partition('%')[0] or 'laptop'}:7>"):
        answer = schedd.send(ClaimsKept(claims=((claim_id, "s"),), startd=startd), identity=STRANGERS[who])
        assert len(answer) == 1
        assert [each for each in answer if isinstance(each, ClaimsRenewed) and claim_id not in each.gone] == []
        assert schedd.core.claims.held[claim_id].row.startd == "<e:1>"


def test_its_machine_does_not_keep_it_with_a_wrong_secret() -> None:
    schedd = Schedd()
    claim_id = running(schedd)
    answer = schedd.send(ClaimsKept(claims=((claim_id, "x"),), startd="<e:7>"), identity=GRANTER)
    assert answer == [ClaimsRenewed(gone=(claim_id,))]
    assert schedd.core.claims.held[claim_id].row.startd == "<e:1>"
    schedd.send(ClaimsKept(claims=((claim_id, "s"),), startd="<e:7>"), identity=GRANTER)
    assert schedd.core.claims.held[claim_id].row.startd == "<e:7>"
