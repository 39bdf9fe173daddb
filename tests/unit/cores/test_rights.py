"""Identities are compared whole."""

from __future__ import annotations

import pytest

from condor_actors.cores.rights import host_of, is_super_user, is_user, speaks_for_node
from condor_actors.messages.envelope import SELF, Identity

HERE = Identity(name="alice@here", method="local", uid=1000)
ROOT = Identity(name="root@here", method="local", uid=0)
THERE = Identity(name="alice@there", roles=frozenset({"user"}), host="there", method="tls")
ROOT_THERE = Identity(name="root@there", roles=frozenset({"user"}), host="there", method="tls")
MACHINE = Identity(name="condor@here", roles=frozenset({"schedd", "startd"}), host="m", method="tls",
                   hosts=frozenset({"m", "10.0.0.1"}))


def test_a_namesake_of_another_machine_is_another_user() -> None:
    assert is_user(HERE, "alice", "here")
    assert not is_user(THERE, "alice", "here")
    assert not is_user(HERE, "alic", "here")


def test_a_machine_is_no_user_whatever_its_pool_is_called() -> None:
    assert not is_user(MACHINE, "condor", "here")


@pytest.mark.parametrize("identity", [THERE, ROOT_THERE, MACHINE, HERE])
def test_super_users_are_local(identity: Identity) -> None:
    assert not is_super_user(identity, {"root", "condor", "root@there"})


def test_root_and_the_process_itself_are_super_users() -> None:
    assert is_super_user(ROOT, set())
    assert is_super_user(SELF, set())
    assert is_super_user(HERE, {"alice"})


@pytest.mark.parametrize(("node", "host"), [("<M:9618>", "m"), ("<[::1]:5>", "::1"), ("<10.0.0.1:9>", "10.0.0.1"),
                                            ("unix:/x", ""), ("in:4", ""), ("", "")])
def test_the_host_of_a_node(node: str, host: str) -> None:
    assert host_of(node) == host


def test_a_machine_speaks_for_its_own_nodes() -> None:
    assert speaks_for_node(MACHINE, "<m:1>")
    assert speaks_for_node(MACHINE, "<10.0.0.1:1>")
    assert not speaks_for_node(MACHINE, "<n:1>")
    assert not speaks_for_node(MACHINE, "in:7")


@pytest.mark.parametrize("role", ["user", "shadow"])
def test_a_proxy_that_a_machine_has_signed_does_not_speak_for_it(role: str) -> None:
    proxy = Identity(name="alice@m", roles=frozenset({role}), host="m", method="tls", hosts=frozenset({"m"}))
    assert not speaks_for_node(proxy, "<m:1>")
    assert not speaks_for_node(Identity(name="alice@m", host="m", method="token"), "<m:1>")
