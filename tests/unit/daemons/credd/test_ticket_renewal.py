"""Renewals with a program in kinit's place: what is said when it fails, and that nothing is left of a ticket."""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.cores.credd.credentials import CredentialRefused
from condor_actors.cores.credd.tickets import read_cache, secret_of
from condor_actors.cores.credd.token_lives import Failed, Received
from condor_actors.daemons.credd import ticket_renewal
from condor_actors.daemons.credd.ticket_renewal import Renewer, renew_ticket
from condor_actors.machine.run.confinement import PARTS, confinement_here
from tests.unit.cores.credd.test_tickets import ALICE, HEADER, REALM, TGT, entry, principal

OLD = secret_of(read_cache(HEADER + ALICE + TGT, 150.0)).token


def renewer(folder: Path, script: str) -> Renewer:
    program = folder / "kinit"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    made = Renewer(kinit=str(program), is_there=True, configuration="/some/krb5.conf", folder=folder / "tickets",
                   hidden=(str(folder / "keys"), str(folder / "tickets"), str(folder)))
    made.clear()
    return made


def left_in(folder: Path) -> list[Path]:
    return list((folder / "tickets").iterdir())


def test_a_renewed_ticket_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    fresh = HEADER + ALICE + entry(principal(b"krbtgt", REALM), start=150, end=250)
    (tmp_path / "fresh").write_bytes(fresh)
    with_what = renewer(tmp_path, f'cp {tmp_path}/fresh "${{3#FILE:}}"; (env; stat -c %a .) > {tmp_path}/env')
    answer = renew_ticket(with_what, OLD, 150.0)
    token = secret_of(read_cache(fresh, 150.0)).token
    assert answer.event == Received(token, 100.0)
    assert (answer.refresh_token, answer.problem) == (token, "")
    said = (tmp_path / "env").read_text().splitlines()
    assert {line.partition("=")[0] for line in said} <= {"PATH", "LC_ALL", "KRB5_CONFIG", "PWD", "700"}
    assert "KRB5_CONFIG=/some/krb5.conf" in said
    assert left_in(tmp_path) == []


@pytest.mark.skipif(bool(set(PARTS) - set(confinement_here(frozenset(PARTS)))), reason="this kernel shuts nothing in")
def test_what_a_server_of_a_users_choice_could_make_of_it_sees_nothing_of_the_daemons(tmp_path: Path) -> None:
    """A user makes a ticket of any realm: the server that is asked, and what it answers, may be the user's own."""
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "host.key").write_text("a key of the pool")
    answer = renew_ticket(renewer(tmp_path, f"""
        cat {tmp_path}/keys/host.key
        echo changed > {tmp_path}/keys/new
        filter=$(sed -n 's/^Seccomp:[^0-9]*//p' /proc/self/status)
        processes=$(ls -d /proc/[0-9]* | wc -l)
        echo "$(ls {tmp_path}/keys | wc -l) keys, $(ls .. | wc -l) ticket, filter $filter, $processes processes" >&2
        exit 1"""), OLD, 160.0)
    seen, filtered, processes = answer.problem.rsplit(", ", 2)
    assert (seen, filtered) == ("0 keys, 1 ticket", "filter 2"), answer.problem
    assert int(processes.split()[0]) < 8
    assert [path.name for path in (tmp_path / "keys").iterdir()] == ["host.key"]


def test_before_half_of_its_life_nothing_is_run(tmp_path: Path) -> None:
    answer = renew_ticket(renewer(tmp_path, f"touch {tmp_path}/ran"), OLD, 120.0)
    assert (answer.event, answer.refresh_token) == (Received(OLD, 80.0), "")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("script", "problem"), [
    ("echo first >&2; printf 'kinit: Cannot contact any KDC\\033\\n\\n' >&2; exit 1", "kinit: Cannot contact any KDC?"),
    ("exit 3", "has ended with status 3"),
    (": > \"${3#FILE:}\"", "cannot be used: the Kerberos credential cache is empty"),
    ("sleep 60", "has not ended within 0.2 s"),
])
def test_a_renewal_that_fails_leaves_the_old_ticket_until_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                                  script: str, problem: str) -> None:
    monkeypatch.setattr(ticket_renewal, "DEADLINE_S", 0.2 if "sleep" in script else 20.0)
    with_what = renewer(tmp_path, f"{'exec ' if 'sleep' in script else ''}{script}")
    answer = renew_ticket(with_what, OLD, 160.0)
    assert answer.event == Received(OLD, 40.0)
    assert problem in answer.problem
    assert OLD not in answer.problem
    assert left_in(tmp_path) == []
    ended = renew_ticket(with_what, OLD, 200.0)
    assert isinstance(ended.event, Failed)
    assert ended.event.is_final


def test_another_users_ticket_is_not_taken(tmp_path: Path) -> None:
    bob = principal(b"bob")
    (tmp_path / "fresh").write_bytes(HEADER + bob + entry(principal(b"krbtgt", REALM), client=bob, end=900))
    answer = renew_ticket(renewer(tmp_path, f'cp {tmp_path}/fresh "${{3#FILE:}}"'), OLD, 160.0)
    assert answer.event == Received(OLD, 40.0)
    assert "has made a ticket of bob@R.EXAMPLE" in answer.problem


def test_what_a_killed_daemon_has_left_is_removed(tmp_path: Path) -> None:
    with_what = renewer(tmp_path, "")
    (with_what.folder / "left").mkdir()
    (with_what.folder / "left" / "cache").write_bytes(b"ticket")
    with_what.clear()
    assert left_in(tmp_path) == []


def test_without_kinit_no_ticket_is_kept(tmp_path: Path) -> None:
    with pytest.raises(CredentialRefused, match="package krb5-user"):
        Renewer(kinit="/none/kinit", is_there=False, configuration="", folder=tmp_path).check()
