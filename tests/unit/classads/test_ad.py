"""ClassAd as a mapping, chained ads, and values in and out."""

from __future__ import annotations

import gc
import pickle
import sys
import tracemalloc

import pytest

from condor_actors.classads import (
    ERROR,
    UNDEFINED,
    AbsoluteTime,
    ClassAd,
    ClassAdSyntaxError,
    Expr,
    RelativeTime,
    as_expr,
    is_true,
    parse_expression,
)


def test_names_ignore_case_and_keep_spelling_and_order() -> None:
    ad = ClassAd({"RequestMemory": 1})
    ad["requestmemory"] = 2
    ad["Cpus"] = 3
    assert ad["REQUESTMEMORY"] == 2
    assert list(ad) == ["requestmemory", "Cpus"]
    assert list(ClassAd({"RequestMemory": 1})) == ["RequestMemory"]
    assert "cPUS" in ad
    del ad["CPUS"]
    assert list(ad.items()) == [("requestmemory", 2)]
    with pytest.raises(KeyError):
        ad["Cpus"]


def test_values_in_and_out() -> None:
    ad = ClassAd()
    ad["i"] = 2**63
    ad["u"] = None
    ad["l"] = [1, "x", [True]]
    ad["r"] = {"a": 1}
    ad["e"] = parse_expression("a + 1")
    ad["t"] = AbsoluteTime(0, 3600)
    ad["literal"] = parse_expression("5")
    assert ad["i"] == -(2**63)
    assert ad["u"] is UNDEFINED
    assert ad["l"] == [1, "x", [True]]
    assert ad["r"] == ClassAd({"A": 1})
    assert isinstance(ad["e"], Expr)
    assert ad["literal"] == 5
    assert ad.evaluate("t") == AbsoluteTime(0, 3600)
    with pytest.raises(TypeError, match="set"):
        ad["bad"] = {1}
    with pytest.raises(ValueError, match="NUL"):
        ad["bad"] = "a\0b"
    with pytest.raises(ValueError, match="attribute name"):
        ad[""] = 1
    with pytest.raises(ClassAdSyntaxError):
        ad.insert_text("bad", "1 +")
    assert "bad" not in ad


def test_evaluated_access_with_defaults() -> None:
    ad = ClassAd({"n": 3, "r": 2.9, "s": "x", "b": True})
    ad.insert_text("sum", "n + TARGET.n")
    assert ad.get_int("SUM", -1) == -1
    assert ad.get_int("sum", -1, ClassAd({"N": 4})) == 7
    assert ad.get_int("r") == 2
    assert ad.get_int("s", 9) == 9
    assert ad.get_float("n") == 3.0
    assert ad.get_str("n", "none") == "none"
    assert ad.get_bool("n") is True
    assert ad.get_bool("nope", True) is True
    assert ad.evaluate("nope") is UNDEFINED


def test_chained_ads_show_the_parents_attributes() -> None:
    cluster = ClassAd({"Cmd": "/bin/true", "ProcId": 0, "Owner": "u"})
    cluster.insert_text("Requirements", "ProcId == 7")
    job = ClassAd({"ProcId": 7}, parent=cluster)
    assert job["Cmd"] == "/bin/true"
    assert job.evaluate("Requirements") is True
    assert len(job) == 4
    del job["Owner"]
    assert "Owner" not in job
    assert job.evaluate("Owner") is UNDEFINED
    assert parse_expression("MY.Owner =?= undefined && Owner =?= undefined").evaluate(job) is True
    assert cluster["Owner"] == "u"
    flat = job.flat()
    assert dict(flat) == dict(job.items())
    assert flat.parent is None
    job["Cmd"] = "/bin/false"
    assert cluster["Cmd"] == "/bin/true"
    assert job.copy() == job
    assert job.project(["cmd", "NoSuch", "PROCID"]).to_text() == 'Cmd = "/bin/false"\nProcId = 7\n'


def test_an_unchanged_job_of_a_cluster_costs_little_memory() -> None:
    cluster = ClassAd({f"Attribute{number}": number for number in range(100)})
    count = 2000
    gc.collect()
    tracemalloc.start()
    jobs = [ClassAd(parent=cluster) for _ in range(count)]
    spent, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (spent - sys.getsizeof(jobs)) / count <= 100
    assert jobs[5].evaluate("Attribute7") == 7
    jobs[5]["ProcId"] = 5
    assert jobs[6].evaluate("ProcId") is UNDEFINED


def test_equality_and_pickling() -> None:
    ad = ClassAd({"a": 1, "B": "x"})
    assert ad == ClassAd({"b": "x", "A": 1})
    assert ad != ClassAd({"a": 1.0, "B": "x"})
    node = parse_expression("a + b")
    for thing in (node, UNDEFINED, ERROR):
        assert pickle.loads(pickle.dumps(thing)) is thing  # noqa: S301  # our own bytes


def test_truth_of_values() -> None:
    assert is_true(True)
    assert is_true(2)
    assert is_true(0.5)
    for value in (False, 0, 0.0, "true", UNDEFINED, ERROR, RelativeTime(1), None):
        assert not is_true(value)


def test_as_expr() -> None:
    assert str(as_expr([1, ClassAd({"a": 2})])) == "{ 1,[ a = 2 ] }"
    assert str(as_expr(None)) == "undefined"


def test_a_part_of_an_ad_along_its_chain() -> None:
    cluster = ClassAd({"Cmd": "/bin/true", "RequestCPUs": 2, "Iwd": "/"})
    job = ClassAd({"ProcId": 4, "CMD": "/bin/false", "Requirements": parse_expression("Memory > 1")}, parent=cluster)
    del job["Iwd"]
    part = job.project(["cmd", "requestCpus", "Iwd", "procid", "Unknown", "requirements"])
    assert list(part) == ["CMD", "RequestCPUs", "ProcId", "Requirements"]
    assert part.parent is None
    assert (part["Cmd"], part["RequestCpus"], part["ProcId"]) == ("/bin/false", 2, 4)
    part["ProcId"] = 5
    part["Cmd"] = "/bin/echo"
    assert (job["ProcId"], job["Cmd"], cluster["Cmd"]) == (4, "/bin/false", "/bin/true")
    empty = cluster.project(["Nothing"])
    empty["Something"] = 1
    assert list(cluster.project(["Nothing"])) == []
