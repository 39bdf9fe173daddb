"""The metrics of a real pool, read by Prometheus's own tools."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from condor_actors.classads import ClassAd
from condor_actors.config import ConfigError, load_config
from condor_actors.daemons.measures import OTHERS, jobs_by_owner
from condor_actors.daemons.metrics_actor import merged, targets
from condor_actors.services.telemetry.metrics import metrics_door
from tests.pool_fixture import PersonalPool, fresh_folder, until

ETC = Path(__file__).parents[2] / "etc"
TOKEN = "s3cret"


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        (folder / "token").write_text(f"{TOKEN}\n")
        made = PersonalPool(folder, slots=2, config=f"METRICS_PORT = 0\nMETRICS_TOKEN_FILE = {folder}/token\n"
                            f"METRICS_DISCOVERY_FILE = {folder}/masters.json\n")
        yield made
        made.stop()


def address(pool: PersonalPool) -> str:
    return str(until(lambda: pool.run("condor_status", "-master", "-af", "MetricsAddress").strip().replace(
        "undefined", ""), "the master's ad"))


def scraped(pool: PersonalPool, token: str = TOKEN) -> str:
    request = urllib.request.Request(f"http://{address(pool)}/metrics", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        return str(answer.read().decode())


def test_one_address_shows_all_daemons(pool: PersonalPool) -> None:
    cluster = pool.submit("executable = /bin/sleep\ntransfer_executable = false\nhold = true\nqueue 3\n")
    text = scraped(pool)
    families = {family.name: family for family in text_string_to_metric_families(text)}
    up = {sample.labels["daemon"]: sample.value for sample in families["condor_daemon_up"].samples}
    assert up == {"collector": 1, "negotiator": 1, "schedd": 1, "startd": 1}
    assert [(sample.labels["state"], sample.value) for sample in families["condor_jobs"].samples] == [("held", 3)]
    assert sum(sample.value for sample in families["condor_slots"].samples) == 2
    turns = families["condor_turn_duration_seconds"]
    assert turns.type == "histogram"
    assert {sample.labels["daemon"] for sample in turns.samples} == {"master", *up}
    assert text.count("# TYPE condor_turn_duration_seconds ") == 1
    if (promtool := shutil.which("promtool")) is not None:
        done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout + done.stderr) == (0, "")
    pool.run("condor_rm", str(cluster))


def test_a_daemon_that_has_gone_is_missed(pool: PersonalPool) -> None:
    pool.run("condor_off", "-negotiator")
    until(lambda: 'daemon="negotiator"' not in scraped(pool).partition("condor_daemon_up")[2].partition("# HELP")[0]
          or 'condor_daemon_up{daemon="negotiator"} 0' in scraped(pool), "the negotiator to be gone")
    pool.run("condor_on", "-negotiator")
    until(lambda: 'condor_daemon_up{daemon="negotiator"} 1' in scraped(pool), "the negotiator")


def test_only_who_has_the_token_sees_them(pool: PersonalPool) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        scraped(pool, "guess")
    assert refused.value.code == 401
    refused.value.close()


def test_the_discovery_file_names_the_masters(pool: PersonalPool) -> None:
    file = pool.folder / "masters.json"
    until(lambda: file.exists() and address(pool) in file.read_text(), "the master there", 150.0)
    (found,) = json.loads(file.read_text())
    assert found["targets"] == [address(pool)]


def test_beyond_loopback_a_certificate_is_needed(tmp_path: Path) -> None:
    file = tmp_path / "condor_config"
    file.write_text("METRICS_PORT = 0\nMETRICS_INTERFACE = 0.0.0.0\n")
    config = load_config(subsystem="MASTER", environ={"CONDOR_CONFIG": str(file)})
    with pytest.raises(ConfigError, match="METRICS_CERTIFICATE and METRICS_TOKEN_FILE"):
        metrics_door(config)


def test_families_of_one_name_are_put_together() -> None:
    one = '# HELP a_total Some\n# TYPE a_total counter\na_total{d="x"} 1.0\n# HELP b B\n# TYPE b gauge\nb 2.0\n'
    two = '# HELP a_total Some\n# TYPE a_total counter\na_total{d="y"} 3.0\n'
    head = "# HELP a_total Some\n# TYPE a_total counter\n"
    assert merged([one, two]) == (head + 'a_total{d="x"} 1.0\na_total{d="y"} 3.0\n'
                                  '# HELP b B\n# TYPE b gauge\nb 2.0\n')


def test_users_beyond_a_hundred_have_no_label_of_their_own() -> None:
    counts = {f"u{number:03}": [0, number + 1, 0, 0, 0, 0, 0, 0] for number in range(150)}
    samples = dict(jobs_by_owner(counts, {1: "idle"}).samples)
    assert len(samples) == 101
    assert samples[OTHERS, "idle"] == sum(range(1, 51))
    assert ("u149", "idle") in samples


def test_hostile_ads_are_no_targets() -> None:
    ads = [ClassAd({"Machine": "a", "MetricsAddress": "a:1"}).to_bytes(), b"\xff no ad", ClassAd({"X": 1}).to_bytes()]
    assert json.loads(targets(ads)) == [{"targets": ["a:1"], "labels": {"machine": "a"}}]


def test_the_alerts_load(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool: etc/install-system-packages test")
    done = subprocess.run([promtool, "check", "rules", str(ETC / "prometheus/condor_alerts.yml")], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "7 rules found" in done.stdout


def test_alerts_and_dashboards_ask_for_what_there_is(pool: PersonalPool) -> None:
    names = set()
    for family in text_string_to_metric_families(scraped(pool)):
        names |= {family.name, *(sample.name for sample in family.samples)}
    names |= {"condor_negotiation_matches", "condor_negotiation_rejections", "condor_negotiation_end_time_seconds",
              "condor_jobs"}  # nothing has been matched or queued
    asked = set()
    for path in (*ETC.glob("grafana/*.json"), ETC / "prometheus/condor_alerts.yml"):
        text = path.read_text()
        if path.suffix == ".json":
            board = json.loads(text)
            assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
            assert {"uid", "title", "schemaVersion", "panels", "templating", "time"} <= board.keys()
            text = " ".join(target["expr"] for panel in board["panels"] for target in panel["targets"])
        asked |= set(re.findall(r"\bcondor_[a-z_]+\b", text))
    assert asked - names - {"condor_q", "condor_top", "condor_who"} == set()
