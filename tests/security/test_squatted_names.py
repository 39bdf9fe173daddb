"""Names that another pool, its machines or a user of it choose because a pool, a machine or a user here has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.messages.realm import abroad, is_realm, node_abroad, parted, realm_of_host
from condor_actors.wire.certificates.authority import PoolFiles, create_pool
from condor_actors.wire.partners.invitation import BadInvitation, invitation_text, parse_invitation
from condor_actors.wire.partners.partner_store import BadPartners, Partner, parse_partners, partners_text

STRANGE = ["Evil", "EVIL", "\u0435vil", "evil\u200b", "\uff45vil", "evil%trio", "%trio", "evil ", " evil", "evil\n",
           "", ".", "-evil", "evil trio", "e" * 64, "fe80:", "evil/..", "e\u0301vil", "evil\u0130"]
"""Names that look like those of other pools, are the same but for letter case, or mean something in other places."""


def invitation(folder: Path, authority: str, name: str) -> str:
    files = PoolFiles.below(folder)
    create_pool(files, authority, ["localhost"])
    return invitation_text(Partner(name=name, central="<127.0.0.1:9618>", ca=files.ca.read_bytes()))


@pytest.mark.parametrize("name", STRANGE, ids=range(len(STRANGE)))
def test_no_invitation_is_from_a_pool_whose_name_looks_like_anothers(tmp_path: Path, name: str) -> None:
    """Not where its authority has that name, if one can, nor where it has the plain one."""
    for number, authority in enumerate({"evil", name if name.isascii() and name else "evil"}):
        with pytest.raises(BadInvitation):
            parse_invitation(invitation(tmp_path / str(number), authority, name))
    assert not is_realm(name)


def test_an_invitation_is_from_the_pool_that_its_authority_is_of(tmp_path: Path) -> None:
    assert parse_invitation(invitation(tmp_path / "a", "evil", "evil")).name == "evil"
    for number, (authority, name) in enumerate([("evil", "calm"), ("Calm", "calm"), ("calm ", "calm")]):
        with pytest.raises(BadInvitation, match="its authority is not that of a pool called"):
            parse_invitation(invitation(tmp_path / str(number), authority, name))


@pytest.mark.parametrize("name", STRANGE, ids=range(len(STRANGE)))
def test_no_list_of_partners_has_such_a_name(name: str) -> None:
    text = partners_text({name: Partner(name=name, central="<127.0.0.1:9618>", ca=b"x")})
    with pytest.raises(BadPartners, match="no name of a pool"):
        parse_partners(text, "partners")


@pytest.mark.parametrize("name", ["bob", "bob%trio", "bob%", "%trio", "%%", "bob%calm%trio", "10.0.0.5%trio",
                                  "fe80::1%eth0"])
def test_what_another_pool_calls_anything_stays_its_own(name: str) -> None:
    assert parted(abroad(name, "evil"))[1] == "evil"
    assert parted(abroad(name, "evil"))[0].count("%") == 0


@pytest.mark.parametrize("node", ["<10.0.0.5%trio:1>", "<%trio:1>", "<10.0.0.5:1>", "<[fd00::5%trio]:1>",
                                  "<[fd00::5]:1>", "10.0.0.5:1", "unix:/run/x.sock", "<10.0.0.5:1?alias=%trio>", ""])
def test_no_node_of_another_pool_leads_to_a_machine_of_this_one(node: str) -> None:
    found = node_abroad(node, "evil")
    assert not found or realm_of_host(found.removeprefix("<").rpartition(":")[0].strip("[]")) == "evil"
