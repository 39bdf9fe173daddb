"""What a program prints that fetches work: hostile text, of which a job comes that may be run, or a reason."""

from __future__ import annotations

import pytest

from condor_actors.cores.fetched_work.fetched_job import (
    MOST_BYTES,
    BadFetchedJob,
    owner_of,
    read_fetched,
    run_of,
    texts_of,
)
from condor_actors.cores.rights import is_fetched


def test_a_job_has_no_account_and_no_home_of_its_own() -> None:
    job = read_fetched(b'Cmd = "/bin/true"\nOwner = "root"\nUser = "root@x"\nRunAsOwner = true\nHookKeyword = "OTHER"\n'
                       b'ClusterId = 7\nProcId = 2\nFetchedRun = "1.0#1@elsewhere"\n# said\n\nMine = 4 + 4\n',
                       "SITE", 99)
    assert job is not None
    assert "Owner" not in job
    assert "User" not in job
    assert (job["RunAsOwner"], job["HookKeyword"], job["ShouldTransferFiles"], job["TransferExecutable"]) == (
        False, "SITE", "YES", False)
    assert (run_of(job), job.get_int("Mine"), job["TransferOutput"]) == ("7.2#99@fetched-work", 8, "")


def test_a_job_with_a_folder_runs_there() -> None:
    job = read_fetched(b'Cmd = "run"\nIwd = "/srv/work"\nOut = "out"\n', "SITE", 1)
    assert job is not None
    assert (job["ShouldTransferFiles"], job["Iwd"], run_of(job)) == ("NO", "/srv/work", "1.0#1@fetched-work")


@pytest.mark.parametrize("printed", [b"", b" \n\n"])
def test_nothing_is_no_work(printed: bytes) -> None:
    assert read_fetched(printed, "SITE", 1) is None


@pytest.mark.parametrize(("printed", "said"), [
    (b"hello", "line 1 is no NAME = VALUE"),
    (b'Cmd = "/x"\nA = (', "line 2"),
    (b"\xff", "no UTF-8"),
    (b"A = 1", "no Cmd"),
    (b"Cmd = 3", "no Cmd"),
    (b'Cmd = "run"', "has to be an absolute path"),
    (b'Cmd = "/x"\nIwd = "here"', "has to be an absolute path"),
    (b'Cmd = "/x"\nJobUniverse = 7', "vanilla universe"),
    (b'Cmd = "/x"\nTransferInput = "/etc/shadow"', "TransferInput: that needs a schedd"),
    (b'Cmd = "/x"\nTransferOutput = "a"', "has no home"),
    (b'Cmd = "/x"\nWantIOProxy = true', "WantIOProxy: that needs a schedd"),
    (b'Cmd = "/x"\nDockerImage = "x"', "DockerImage: that needs a schedd"),
    (b'Cmd = "/x"\nClusterId = -4', "ClusterId is -4"),
    (b'Cmd = "/x"\nProcId = 99999999999', "ProcId is 99999999999"),
    (b"A = 1\n" * MOST_BYTES, "more than 65536 bytes"),
    (b"".join(b"A%d = 1\n" % number for number in range(600)), "more than 500 attributes"),
])  # fmt: skip
def test_what_cannot_be_run_is_refused_with_the_reason(printed: bytes, said: str) -> None:
    with pytest.raises(BadFetchedJob, match=said.replace("(", r"\(")):
        read_fetched(printed, "SITE", 1)


def test_what_is_false_is_not_asked_for() -> None:
    assert read_fetched(b'Cmd = "/x"\nWantIOProxy = false\nTransferInput = ""\n', "SITE", 1) is not None


def test_no_user_is_taken_for_fetched_work() -> None:
    assert is_fetched(owner_of("SITE", "dom"))
    assert not is_fetched("fetched@dom")
    assert not is_fetched("")


def test_two_ads_have_a_line_of_dashes_between() -> None:
    assert texts_of(b"A = 1", b"B = 2\n") == b"A = 1\n-----\nB = 2\n"
