"""The claims on disk: what was told is there again, what was cut short was never told."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from condor_actors.cores.startd.claims.claim import ClaimRecord, DropClaim, SaveClaim
from condor_actors.cores.startd.slot_resources import Custom, Share
from condor_actors.machine.supervisor.claim_file import ClaimFile

RECORD = ClaimRecord(
    claim_id="<a:1>#1#1", secret="s", slot_name="slot1_1@h", share=Share(cpus=1, custom={"GPUs": Custom(1, ("G0",))}),
    submitter="a@b", schedd_name="q@h", lease_s=2400.0, starter_node="<a:2>", job_ad=b"A = 1\n\xff", rank=0.5,
    granted_s=7.0, checkpoint_key=b"\x00\xffkey")


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "claims"
    file = ClaimFile(path)
    second = attrs.evolve(RECORD, claim_id="<a:1>#1#2")
    file.commit([SaveClaim(RECORD), SaveClaim(second)])
    file.commit([DropClaim(RECORD.claim_id)])
    file.close()
    again = ClaimFile(path)
    assert again.records == (second,)
    again.close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_line_cut_short_is_dropped_and_garbage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "claims"
    file = ClaimFile(path)
    file.commit([SaveClaim(RECORD)])
    file.close()
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:40])
    again = ClaimFile(path)
    assert again.records == (RECORD,)
    again.close()
    path.write_bytes(b"nonsense\n" + whole)
    with pytest.raises(ValueError, match="line 1"):
        ClaimFile(path)


def test_it_does_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condor_actors.machine.supervisor.claim_file.LONG_LINES", 10)
    file = ClaimFile(tmp_path / "claims")
    for number in range(50):
        file.commit([SaveClaim(attrs.evolve(RECORD, claim_id=str(number))), DropClaim(str(number))])
    assert len((tmp_path / "claims").read_text().splitlines()) <= 12
    file.close()
