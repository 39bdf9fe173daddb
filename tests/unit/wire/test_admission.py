"""Connections are counted by source: nobody takes everybody's room, and the last of it is our own accounts'."""

from __future__ import annotations

import os
import socket

import pytest

from condor_actors.wire.admission import FEW, Admission
from condor_actors.wire.peers import loopback_uid

OWN = "uid 0"


def _admission(most: int = 1000, most_of_one: int = 400, most_silent: int = 50) -> Admission:
    return Admission(most, most_of_one, most_silent, frozenset({0}))


def _fill(admission: Admission, source: str, *, speaking: bool = True) -> int:
    count = 0
    while admission.enter(source):
        count += 1
        if speaking:
            admission.spoke(source)
    return count


def test_a_source_has_a_bound() -> None:
    admission = _admission()
    assert _fill(admission, "a") == 400
    assert admission.enter("b")


def test_the_silent_have_a_lower_one() -> None:
    admission = _admission()
    assert _fill(admission, "a", speaking=False) == 50
    admission.leave("a", spoke=False)
    assert admission.enter("a")


def test_many_sources_leave_room_for_new_ones_and_for_our_own() -> None:
    admission = _admission()
    for number in range(10):
        _fill(admission, f"10.0.0.{number}")
    for number in range(5):
        assert admission.enter(f"10.0.1.{number}"), "one who is new gets in as long as there is room"
        admission.spoke(f"10.0.1.{number}")
    for number in range(200):
        _fill(admission, f"10.0.2.{number}")
    assert admission.links < 1000
    assert not admission.enter("10.0.3.1")
    assert _fill(admission, OWN) >= 1000 * 0.05 - 1


def test_in_a_crowd_each_source_has_a_few() -> None:
    admission = _admission()
    counts = [_fill(admission, str(number)) for number in range(12)]
    assert min(counts) >= FEW


def test_who_has_left_is_forgotten() -> None:
    admission = _admission()
    for number in range(5000):
        assert admission.enter(str(number))
        admission.spoke(str(number))
        admission.leave(str(number), spoke=True)
    assert admission.links == 0
    assert not admission._sources


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_the_kernel_knows_whose_a_connection_of_this_machine_is(family: int, host: str) -> None:
    with socket.socket(family) as listening, socket.socket(family) as dialling:
        try:
            listening.bind((host, 0))
        except OSError as error:
            pytest.skip(f"this machine has no {host}: {error}")
        listening.listen()
        dialling.connect(listening.getsockname()[:2])
        accepted, peer = listening.accept()
        with accepted:
            assert loopback_uid(peer[:2], accepted.getsockname()[:2]) in (os.getuid(), None)
