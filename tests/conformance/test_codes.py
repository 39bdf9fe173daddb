"""Job statuses and event numbers are HTCondor's, name by name: held against its own Python bindings."""

from __future__ import annotations

import enum

import pytest

from condor_actors.messages import codes


@pytest.mark.parametrize("ours", [codes.JobStatus, codes.JobEventType, codes.FileTransferEventType])
def test_names_and_numbers_are_those_of_htcondor(ours: type[enum.IntEnum]) -> None:
    htcondor2 = pytest.importorskip("htcondor2")
    theirs = {each.name: int(each) for each in getattr(htcondor2, ours.__name__)}
    assert {each.name: int(each) for each in ours}.items() <= theirs.items()
