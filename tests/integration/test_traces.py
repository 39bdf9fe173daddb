"""The traces of a real pool's jobs, as an OpenTelemetry collector gets them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until

pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")

from tests.harness.otlp_receiver import OtlpReceiver, Received  # noqa: E402

INPUT = "x" * 100_000
SHELL = ("executable = /bin/sh\ntransfer_executable = false\nshould_transfer_files = yes\n"
         "transfer_input_files = input\nlog = job.log\n")
QUICK = SHELL + "arguments = \"-c 'cat input > copy'\"\nqueue\n"
WAITS = SHELL + "arguments = \"-c 'echo begun; sleep 1000'\"\noutput = out\nstream_output = true\nqueue\n"


@pytest.fixture(scope="module")
def receiver() -> Iterator[OtlpReceiver]:
    made = OtlpReceiver()
    yield made
    made.close()


@pytest.fixture(scope="module")
def pool(receiver: OtlpReceiver) -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=1, config=f"TRACES_ENDPOINT = {receiver.endpoint}\nMETRICS_PORT = 0\n")
        (made.work / "input").write_text(INPUT)
        yield made
        made.stop()


def trace_of(pool: PersonalPool, job: str) -> str:
    """What the number of a job's trace has to be, made of its id alone."""
    global_id = pool.jobs(job, "-attributes", "GlobalJobId")[0]["GlobalJobId"]
    return hashlib.sha256(global_id.encode()).hexdigest()[:32]


def whole(receiver: OtlpReceiver, trace: str, *services: str) -> list[Received]:
    """The spans of a job that has left the queue, once all daemons have told theirs."""
    def found() -> list[Received]:
        spans = receiver.of_trace(trace)
        has = {span.service for span in spans} >= set(services)
        return spans if has and any(span.name == "job" for span in spans) else []

    told: list[Received] = until(found, lambda: f"the end of {trace}: {receiver.spans}")
    return told


def one(spans: list[Received], name: str) -> Received:
    found = [span for span in spans if span.name == name]
    assert len(found) == 1, f"{name}: {spans}"
    return found[0]


def test_a_job_is_one_trace_in_which_three_daemons_agree(pool: PersonalPool, receiver: OtlpReceiver) -> None:
    cluster = pool.submit(QUICK.replace("queue", "hold = true\nqueue"))
    trace = trace_of(pool, f"{cluster}.0")
    pool.run("condor_release", str(cluster))
    pool.wait()
    shadow_names = {"read input", "activate claim", "transfer input", "execute", "transfer output"}
    starter_names = {"prepare sandbox", "start program", "run program"}
    until(lambda: {span.name for span in receiver.of_trace(trace)} >= {*shadow_names, *starter_names, "job"},
          lambda: f"all spans: {receiver.of_trace(trace)}")
    spans = receiver.of_trace(trace)
    by_number = {span.number: span for span in spans}
    assert len(by_number) == len(spans)
    root = one(spans, "job")
    assert (root.parent, root.failure, root.facts["condor.job.exit_code"]) == ("", "", 0)
    run = one(spans, "run")
    assert run.facts["condor.run.then"] == "completed"
    assert {span.parent for span in spans if span.service != "condor-schedd"} == {run.number}
    assert {by_number[span.parent].name for span in spans if span.service == "condor-schedd" and span is not root} == {
        "job", "idle"}
    assert {one(spans, name).parent for name in ("submit", "held", "idle", "run")} == {root.number}
    assert one(spans, "claim").parent == one(spans, "idle").number
    assert {span.facts["condor.job.id"] for span in spans} == {f"{cluster}.0"}
    for span in spans:
        assert span.begin_s <= span.end_s
        assert root.begin_s <= span.begin_s
    assert one(spans, "held").end_s <= one(spans, "idle").end_s <= run.end_s <= root.end_s
    assert one(spans, "start program").begin_s <= one(spans, "run program").begin_s
    assert {span.service for span in spans if span.name in starter_names} == {"condor-starter-host"}
    assert {span.service for span in spans if span.name in shadow_names} == {"condor-shadow-host"}


def test_an_eviction_and_a_removal_are_seen(pool: PersonalPool, receiver: OtlpReceiver) -> None:
    cluster = pool.submit(WAITS)
    job = f"{cluster}.0"
    trace = trace_of(pool, job)
    output = pool.work / "out"
    until(lambda: output.exists() and output.read_text() == "begun\n", "its program begins")
    pool.run("condor_vacate_job", job)
    first = until(lambda: [span for span in receiver.of_trace(trace) if span.name == "run"], "the run's end")[0]
    until(lambda: pool.jobs(job, "-attributes", "NumShadowStarts")[0].get("NumShadowStarts") == 2, "a second run")
    pool.run("condor_rm", job)
    spans = whole(receiver, trace, "condor-schedd")
    assert one(spans, "evicted").parent == first.number
    assert first.facts["condor.run.then"] == "idle"
    runs = [span for span in spans if span.name == "run"]
    assert [span.facts["condor.run.then"] for span in runs] == ["idle", "removed"]
    assert len({span.number for span in runs}) == 2
    assert one(spans, "job").failure.startswith("removed: ")


def measured(pool: PersonalPool) -> dict[tuple[str, str], float]:
    """How many spans each daemon says that it has sent and lost."""
    import urllib.request

    from prometheus_client.parser import text_string_to_metric_families

    address = pool.run("condor_status", "-master", "-af", "MetricsAddress").strip()
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    return {(sample.labels["daemon"], sample.labels["result"]): sample.value
            for family in text_string_to_metric_families(text) for sample in family.samples
            if sample.name == "condor_trace_spans_total"}


def test_a_collector_that_refuses_costs_spans_and_no_job(pool: PersonalPool, receiver: OtlpReceiver) -> None:
    receiver.refusal = 400
    try:
        cluster = pool.submit(QUICK)
        pool.wait()
        lost = until(lambda: measured(pool).get(("schedd", "lost")), "the schedd to count")
    finally:
        receiver.refusal = 0
    assert lost >= 4  # submit, idle, run, job
    assert pool.jobs(str(cluster)) == []
    assert "spans of traces are lost" in (pool.dir / "log" / "ScheddLog").read_text()
    assert not any(span.facts["condor.job.id"] == f"{cluster}.0" and span.name == "job" for span in receiver.spans)


def test_an_endpoint_that_is_none_is_refused(pool: PersonalPool) -> None:
    from condor_actors.config import ConfigError, load_config
    from condor_actors.services.telemetry.traces import span_sender

    reactor: Any = None
    for endpoint in ("localhost:4318", "file:///etc/passwd", "http://"):
        config = load_config(subsystem="SCHEDD", environ={"CONDOR_CONFIG": "ONLY_ENV",
                                                          "_CONDOR_TRACES_ENDPOINT": endpoint})
        with pytest.raises(ConfigError, match="TRACES_ENDPOINT"):
            span_sender(config, "schedd", reactor)
