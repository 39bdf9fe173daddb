"""Which runs' files are transferred."""

from __future__ import annotations

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.shadow.files_travel import files_travel, has_urls

HERE, ELSEWHERE = ClassAd({"FileSystemDomain": "shared"}), ClassAd({"FileSystemDomain": "other"})


@pytest.mark.parametrize("job", [
    {"TransferInput": "data, osdf://store/part"}, {"TransferInput": "HTTPS://host/file"},
    {"OutputDestination": "s3://bucket/folder"}, {"Out": "https://host/out"},
    {"TransferOutputRemaps": "result = box://folder/result"},
])  # fmt: skip
def test_what_is_at_a_url_travels_whatever_disk_is_shared(job: dict[str, str]) -> None:
    assert has_urls(ClassAd(job))
    assert files_travel(ClassAd(job), HERE, "shared", of_root=False)
    assert not files_travel(ClassAd({**job, "ShouldTransferFiles": "NO"}), HERE, "shared", of_root=False)


@pytest.mark.parametrize(("slot", "should", "of_root", "travels"), [
    (HERE, "IF_NEEDED", False, False), (HERE, "if_needed", False, False), (ELSEWHERE, "IF_NEEDED", False, True),
    (ClassAd(), "IF_NEEDED", False, True), (HERE, "IF_NEEDED", True, True), (HERE, "YES", False, True),
    (ELSEWHERE, "NO", False, False),
])  # fmt: skip
def test_other_files_travel_where_no_disk_is_shared(slot: ClassAd, should: str, of_root: bool, travels: bool) -> None:
    job = ClassAd({"ShouldTransferFiles": should, "TransferInput": "data, file:///home/me/x", "Out": "out"})
    assert not has_urls(job)
    assert files_travel(job, slot, "shared", of_root=of_root) is travels
