"""The configuration language against HTCondor's own: each case's values, as its library gives them, lie beside it.

``python -m tests.conformance.config.test_against_htcondor`` writes them anew with the installed HTCondor.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from condor_actors.config import load_config

CASES = sorted((Path(__file__).parent / "cases").glob("*.config"))
ENVIRON = {"TESTVAR": "tv", "PATH": "/usr/bin:/bin"}
BY_CHANCE = {"PERIODIC_CHECKPOINT", "UWCS_PERIODIC_CHECKPOINT", "CpusUsage"}  # or the machine
ASK = """
import json, sys
import htcondor2
found = {}
for name in json.loads(sys.argv[1]):
    try:
        found[name] = str(htcondor2.param[name]).strip()
    except KeyError:
        found[name] = ""
sys.stdout.write("@@" + json.dumps(found))
"""


def names_of(case: Path) -> list[str]:
    config = load_config(environ={**ENVIRON, "CONDOR_CONFIG": str(case)})
    return sorted({definition.name for definition in config.macros if "." not in definition.name} - BY_CHANCE)


def theirs(case: Path) -> dict[str, str]:
    """What HTCondor says."""
    done = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps(names_of(case))], env={**ENVIRON, "CONDOR_CONFIG": str(case)},
        capture_output=True, text=True, check=True,
    )
    found: dict[str, str] = json.loads(done.stdout.partition("@@")[2])
    return found


def same(ours: str, told: str) -> bool:
    """Whether two values are the same; HTCondor's library gives numbers and truths already evaluated."""
    if not ours and told == "1200":
        return True  # CLAIM_WORKLIFE set to nothing: a number there, which has its default; an expression here
    if ours == told or (told in ("True", "False") and ours.lower() in (told.lower(), str(int(told == "True")))):
        return True
    from condor_actors.config.typed import constant_value

    return told.lstrip("-").isdigit() and constant_value(ours) == int(told)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_values_are_those_of_htcondor(case: Path) -> None:
    expected: dict[str, str] = json.loads(case.with_suffix(".json").read_text())
    config = load_config(environ={**ENVIRON, "CONDOR_CONFIG": str(case)})
    assert set(names_of(case)) == set(expected)
    wrong = {
        name: (config.text(name), told) for name, told in expected.items() if not same(config.text(name) or "", told)
    }
    assert not wrong


if __name__ == "__main__":
    for each in CASES:
        os.environ["CONDOR_CONFIG"] = str(each)
        each.with_suffix(".json").write_text(json.dumps(theirs(each), indent=1, sort_keys=True) + "\n")
