"""The stored ads of machines that sleep: whole or not at all, after a crash too."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from condor_actors.cores.collector.offline_ads import DropAd, KeepAd
from condor_actors.store import offline_ads
from condor_actors.store.offline_ads import OfflineAdsFile


def ad(number: int, text: str = "x") -> KeepAd:
    data = f'Name = "slot1@m{number}"\nText = "{text}é"\n'.encode()
    return KeepAd(key=f"slot1@m{number}", data=data, host=f"m{number}", expires_s=123.5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spool" / "offline_ads"


def test_what_was_kept_is_there_again(path: Path) -> None:
    file = OfflineAdsFile(path)
    assert not path.exists(), "where no machine sleeps there is no file"
    file.commit([ad(1), ad(2)])
    file.commit([DropAd("slot1@m1"), ad(2, "newer"), DropAd("nobody")])
    file.commit([])
    assert dict(OfflineAdsFile(path).kept) == dict(file.kept) == {"slot1@m2": ad(2, "newer")}
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_ad_with_bytes_that_are_no_text_is_kept_as_it_is(path: Path) -> None:
    strange = KeepAd(key="slot1\udcff@m", data=b'Name = "slot1\xff@m"\n', host="m", expires_s=1.5)
    OfflineAdsFile(path).commit([strange, ad(1)])
    assert dict(OfflineAdsFile(path).kept) == {strange.key: strange, "slot1@m1": ad(1)}


def test_a_line_that_a_crash_cut_short_is_dropped_and_the_next_one_is_whole(path: Path) -> None:
    OfflineAdsFile(path).commit([ad(1)])
    OfflineAdsFile(path).commit([ad(2)])
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    file = OfflineAdsFile(path)
    assert list(file.kept) == ["slot1@m1"]
    file.commit([ad(3)])
    assert list(OfflineAdsFile(path).kept) == ["slot1@m1", "slot1@m3"]


@pytest.mark.parametrize("line", ["nonsense", "{}", "[]", '{"keep": {"key": "a"}}'])
def test_another_line_that_makes_no_sense_is_named(path: Path, line: str) -> None:
    OfflineAdsFile(path).commit([ad(1)])
    path.write_text(path.read_text() + line + "\n" + path.read_text())
    with pytest.raises(ValueError, match=r"offline_ads, line 2 is no ad .*COLLECTOR_PERSISTENT_AD_LOG"):
        OfflineAdsFile(path)


def test_the_file_does_not_grow_without_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offline_ads, "SPARE_LINES", 10)
    file = OfflineAdsFile(path)
    longest = 0
    for number in range(50):
        file.commit([ad(1, str(number))])
        longest = max(longest, len(path.read_bytes().splitlines()))
    assert longest == 12
    assert dict(OfflineAdsFile(path).kept) == {"slot1@m1": ad(1, "49")}


def test_a_full_disk_keeps_what_was_there(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = OfflineAdsFile(path)
    file.commit([ad(1)])

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(offline_ads, "append_whole", full)
    with pytest.raises(OSError, match="No space"):
        file.commit([ad(2)])
    assert list(file.kept) == ["slot1@m1"]
    with pytest.raises(TypeError, match="does not store str"):
        file.commit(["a word"])
