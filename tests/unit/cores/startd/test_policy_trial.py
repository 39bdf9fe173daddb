"""Every policy template on the same recorded day: what each does, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.classads import ClassAd
from condor_actors.config import load_config
from condor_actors.cores.startd import owner_policy as op
from condor_actors.cores.startd.policy_settings import latches_of, policy_of
from condor_actors.cores.startd.policy_trial import Happened, Sample, Trial

HOUR = 3600
MORNING = 1_699_948_800.0
VISITS = ((9 * HOUR, 60, 0.05), (11 * HOUR, 25 * 60, 0.9), (14 * HOUR, 10, 0.05))
"""When the owner comes, for how long, and the load."""


def day() -> list[Sample]:
    """From 8 to 16 o'clock: a short visit, a long one with work, another glance."""
    samples = []
    last_s = -2 * HOUR
    for now_s in range(8 * HOUR, 16 * HOUR, 30):
        load = 0.05
        for began_s, lasts_s, busy in VISITS:
            if began_s <= now_s <= began_s + lasts_s:
                last_s, load = now_s, busy
        samples.append(Sample(MORNING + now_s, {"KeyboardIdle": now_s - last_s, "ConsoleIdle": now_s - last_s,
                                                "OwnerLoad": load}))
    return samples


def trial(folder: Path, text: str, universe: int = 5) -> tuple[Trial, list[Happened]]:
    file = folder / "policy.config"
    file.write_text(text + "\n")
    config = load_config(subsystem="STARTD", environ={"CONDOR_CONFIG": str(file)})
    job = ClassAd({"JobUniverse": universe, "ImageSize": 50_000})
    made = Trial(policy_of(config), latches_of(config), job, ClassAd({"Cpus": 1, "ClockMin": 600, "ClockDay": 3}))
    return made, list(made.run(day()))


def visits(happened: list[Happened]) -> list[str]:
    """The activities that a job went through, one letter each."""
    letters = {op.BUSY: "b", op.SUSPENDED: "s", op.VACATING: "v", op.KILLING: "k", op.RETIRING: "r", op.OWNER: "O"}
    return [letters[each.after] for each in happened if each.after in letters]


@pytest.mark.parametrize(("template", "story"), [
    ("DESKTOP", "bsbsvObsb"),
    ("UWCS", "bsbsvObsb"),
    ("1988", "bsvObsvObsvOb"),
    ("1989", "bsbskObsb"),
    ("DEDICATED", "b"),
    ("ALWAYS_RUN_JOBS", "b"),
])
def test_what_each_template_does_on_the_day(tmp_path: Path, template: str, story: str) -> None:
    _, happened = trial(tmp_path, f"use POLICY : {template}")
    assert "".join(visits(happened)) == story, happened


def test_the_doctrines_differ_in_what_becomes_of_the_work(tmp_path: Path) -> None:
    old, _ = trial(tmp_path, "use POLICY : 1988")
    new, happened = trial(tmp_path, "use POLICY : 1989")
    assert op.VACATING in old.tally.spent_s, "1988 saves the work when the owner stays"
    assert op.VACATING not in new.tally.spent_s, "1989 writes nothing while the owner is there"
    killed = next(each for each in happened if each.after == op.KILLING)
    assert "WANT_VACATE is false" in killed.why
    assert killed.when_s - MORNING == pytest.approx(11 * HOUR + 600, abs=30)


def test_the_reasons_name_the_values(tmp_path: Path) -> None:
    _, happened = trial(tmp_path, "use POLICY : DESKTOP")
    suspended = next(each for each in happened if each.after == op.SUSPENDED)
    assert "SUSPEND is true" in suspended.why
    assert "KeyboardIdle = 0" in suspended.why


def test_a_busy_processor_alone_suspends_after_two_minutes(tmp_path: Path) -> None:
    """STARTD_LATCH_EXPRS: since when the processor has been busy."""
    made, _ = trial(tmp_path, "use POLICY : DESKTOP\nKeyboardBusy = False")
    assert made.tally.suspended == 1


def test_lowering_instead_of_suspending(tmp_path: Path) -> None:
    made, happened = trial(tmp_path, "START = True\nLOWER = KeyboardIdle < 60")
    assert visits(happened) == ["b"]
    assert made.tally.lowered_s == made.tally.disturbed_s > 1500


def test_variants_for_a_universe(tmp_path: Path) -> None:
    text = "START = True\nWANT_SUSPEND = True\nSUSPEND = False\nSUSPEND_STANDARD = KeyboardIdle < 60"
    assert trial(tmp_path, text)[0].tally.suspended == 0
    assert trial(tmp_path, text, universe=1)[0].tally.suspended == 3


def test_hours(tmp_path: Path) -> None:
    assert visits(trial(tmp_path, "use POLICY : Desktop_Hours")[1]) == [], "at ten no job runs"
