"""A parameter that no daemon reads is never passed over in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.config import load_config
from condor_actors.config.parameters import find_parameter
from condor_actors.config.parameters.of_htcondor import NAMES, elsewhere, groups
from condor_actors.tools.admin import config_edit


def test_every_name_of_the_manual_is_known_or_explained() -> None:
    assert len(NAMES) > 1200
    known = frozenset(name for name in NAMES if find_parameter(name.replace("<>", "X")) is not None)
    assert sum(len(names) for names in groups(known).values()) + len(known) == len(NAMES)


@pytest.mark.parametrize(("name", "said"), [
    ("CCB_ADDRESS", "not needed here: execute machines open the connections"),
    ("DAGMAN_SUBMIT_DELAY", "not there yet: workflows do not use it"),
    ("DOCKER_SHM_SIZE", "not there yet: jobs in container images"),
    ("STARTD_CRON_squids_METRICS", "not there yet: programs of the site do not measure"),
    ("SEC_DEFAULT_ENCRYPTION", "not needed here: all links between machines are mutual TLS"),
    ("JOB_ROUTER_ROUTE_site", "Use JOB_TRANSFORM_NAMES"),
])  # fmt: skip
def test_what_became_of_it(name: str, said: str) -> None:
    assert said in str(elsewhere(name))


def test_a_name_of_nobodys_is_none_of_htcondors() -> None:
    assert elsewhere("MY_SITE_THING") is None


def test_a_sites_file_is_told_line_by_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site = tmp_path / "site.conf"
    site.write_text("CCB_ADDRESS = $(COLLECTOR_HOST)\nSTART = TRUE\nNEGOTIATOR_INTERVALL = 20\nOUR_OWN = 1\n"
                    "NEGOTIATOR_DEPTH_FIRST = true\n")
    empty = tmp_path / "condor_config"
    empty.write_text("")
    monkeypatch.setenv("CONDOR_CONFIG", str(empty))
    assert config_edit.check([site]) == 0
    told = capsys.readouterr().out
    for line, said in ((1, "CCB_ADDRESS of HTCondor is not needed here"), (3, "did you mean NEGOTIATOR_INTERVAL?"),
                       (4, "nobody reads OUR_OWN"), (5, "NEGOTIATOR_DEPTH_FIRST has no effect: NEGOTIATOR_PRE")):
        assert any(f"{site}, line {line}:" in row and said in row for row in told.splitlines()), (line, said, told)


def test_the_template_for_gpus_asks_for_them(tmp_path: Path) -> None:
    file = tmp_path / "condor_config"
    file.write_text("BIN = /opt/bin\nGPU_DISCOVERY_EXTRA = -extra\nuse FEATURE : GPUs(-uuid)\n")
    config = load_config(environ={"CONDOR_CONFIG": str(file)})
    assert config.text("MACHINE_RESOURCE_INVENTORY_GPUs") == "/opt/bin/condor_gpu_discovery -uuid -properties -extra"
    assert config.text("ENVIRONMENT_VALUE_FOR_UNASSIGNEDGPUS") == "10000"
