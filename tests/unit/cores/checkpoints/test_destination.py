"""Where the checkpoints of a job are that go to a URL."""

from __future__ import annotations

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.checkpoints.destination import destination_of, url_below

JOB = {"SuccessCheckpointExitCode": 85, "GlobalJobId": "schedd name#12.0#99", "ClusterId": 12, "ProcId": 0}


@pytest.mark.parametrize(("url", "base"), [
    ("https://h/f/", "https://h/f/schedd%20name_12.0_99/0003.2/"),
    ("s3://bucket/f", "s3://bucket/f/schedd name_12.0_99/0003.2/"),
    ("box://f//", "box://f/schedd name_12.0_99/0003.2/"),
])
def test_each_checkpoint_of_each_run_has_a_place(url: str, base: str) -> None:
    found = destination_of(ClassAd({**JOB, "CheckpointDestination": url}))
    assert found is not None
    assert found.base("12.0#2@schedd", 3) == base
    assert found.base("12.0#3@schedd", 3) != base


def test_paths_are_quoted_for_servers() -> None:
    assert url_below("https://h/", "a b/c?d") == "https://h/a%20b/c%3Fd"
    assert url_below("box://h/", "a b/c?d") == "box://h/a b/c?d"


@pytest.mark.parametrize("job", [
    JOB, {**JOB, "CheckpointDestination": "/tmp/x"}, {**JOB, "CheckpointDestination": "file:///tmp/x"},
    {"CheckpointDestination": "https://h/f"}])
def test_others_keep_them_at_home(job: dict[str, object]) -> None:
    assert destination_of(ClassAd(job)) is None
