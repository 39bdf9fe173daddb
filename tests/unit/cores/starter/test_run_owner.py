"""Who is believed that a user is one of this machine's."""

from __future__ import annotations

import pytest

from condor_actors.cores.starter.run_account import DomainTrust

HERE = ("exec.cs.wisc.edu",)


@pytest.mark.parametrize(("host", "covered"), [
    ("submit.cs.wisc.edu", True), ("SUBMIT.CS.Wisc.Edu.", True), ("cs.wisc.edu", True), ("a.b.cs.wisc.edu", True),
    ("evilcs.wisc.edu", False), ("cs.wisc.edu.evil.org", False), ("wisc.edu", False), ("submit", False), ("", False),
])
def test_a_machine_speaks_for_the_domain_of_its_own_name(host: str, covered: bool) -> None:
    trust = DomainTrust("cs.wisc.edu")
    assert trust.covers("cs.wisc.edu", (host,), HERE) is covered
    assert trust.covers("CS.wisc.edu", ("other.org", host), HERE) is covered
    assert not trust.covers("wisc.edu", (host,), HERE)
    assert not DomainTrust("").covers("", (host,), HERE)


@pytest.mark.parametrize("hosts", [(), HERE, ("EXEC.cs.wisc.edu", "other.org")])
def test_this_machine_is_trusted_with_any_domain_unless_told_otherwise(hosts: tuple[str, ...]) -> None:
    assert DomainTrust("somewhere").covers("somewhere", hosts, HERE)
    assert not DomainTrust("somewhere", own_host=False).covers("somewhere", hosts, HERE)


def test_any_machine_may_be_trusted_with_our_domain() -> None:
    trust = DomainTrust("somewhere", any_host=True, own_host=False)
    assert trust.covers("somewhere", ("submit.example.org",), HERE)
    assert not trust.covers("elsewhere", ("submit.example.org",), HERE)
