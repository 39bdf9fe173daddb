"""condor_transform_ads: transforms are tried on ads."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from condor_actors.tools.jobs import transform_ads

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    config = tmp_path / "condor_config"
    config.write_text("LIMIT = 5\nJOB_TRANSFORM_Cap @=end\n  REQUIREMENTS A > $(LIMIT)\n  SET A $(LIMIT)\n@end\n")
    (tmp_path / "ads").write_text('Err = "x"\nMyErr = 1\nA = 9\n\nA = 1\n')
    (tmp_path / "rules").write_text(
        "# what to do\nEVALMACRO B = ( A * 2 )\nSET B $(B)\nDELETE /(.+)Err/\nSET C $(more:0)\n")
    monkeypatch.setenv("CONDOR_CONFIG", str(config))
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["condor_transform_ads", *words])
        status = transform_ads.main()
        out = capsys.readouterr()
        return status, out.out, out.err

    return call


def test_rules_then_transforms_of_the_configuration(run: Run) -> None:
    status, out, err = run("-rules", "rules", "-jobtransforms", "Cap", "-json", "-verbose", "more=7", "ads")
    assert status == 0
    assert json.loads(out) == [{"A": 5, "B": 18, "C": 7, "Err": "x"}, {"A": 1, "B": 2, "C": 7}]
    assert err.splitlines() == ["ad 1 of ads: rules, Cap", "ad 2 of ads: rules"]


def test_into_a_file(run: Run, tmp_path: Path) -> None:
    assert run("-jobt", "cap", "-in", "ads", "-out", "made") == (0, "", "")
    assert (tmp_path / "made").read_text() == 'A = 5\nErr = "x"\nMyErr = 1\n\nA = 1\n\n'


@pytest.mark.parametrize(("words", "said"), [
    (("-rules", "rules"), "no ads given"), (("ads",), "no transform given"),
    (("-rules", "none", "ads"), "cannot read none: No such file"),
    (("-rules", "wrong", "ads"), "no statement of a transform"),
    (("-jobt", "Nope", "ads"), "there is no JOB_TRANSFORM_Nope"),
    (("-rules", "rules", "none"), "Can't open ads file none"), (("-zap",), "-zap is not a valid option"),
    (("-rules", "bad", "ads"), "ad 1 of ads: JOB_TRANSFORM_bad: 'x +' is no expression"),
    (("-rules", "rules", "ads", "-out", "/no/such/file"), "/no/such/file: No such file"),
])
def test_what_makes_no_sense_is_refused(run: Run, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    (tmp_path / "wrong").write_text("SETT A 1\n")
    (tmp_path / "bad").write_text('SET A $(MY.Err) +\n')
    status, out, err = run(*words)
    assert (status, out) == (1, "")
    assert said in err
