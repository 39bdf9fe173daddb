"""The picture of a run, as DAGMan tells it and as the page reads it."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.web.dag_picture import NODE_STATES, dag_picture
from condor_actors.cores.workflow_picture import LETTERS, MOST_LETTERS, MOST_LEVELS, MOST_NODES
from condor_actors.dag.dag_run import DagRun
from condor_actors.dag.picture import Picture
from condor_actors.dag.reader import read_dag
from condor_actors.dag.run_events import Began, Change, JobChanged, JobEnded, Submitted
from condor_actors.dag.run_state import RunSettings
from condor_actors.dag.scope import Reading

DIAMOND = "JOB A x\nJOB D x\nJOB B x\nJOB C x\nPARENT A CHILD B C\nPARENT B C CHILD D\n"


def run_of(text: str) -> DagRun:
    run = DagRun(read_dag(["x.dag"], Reading(lambda _: text)), RunSettings())
    run.handle(Began())
    return run


def ad_of(run: DagRun) -> ClassAd:
    """A job's ad as it comes to the page: through its text."""
    picture = Picture(run)
    return ClassAd.from_bytes(ClassAd({**picture.graph(), **picture.states()}).to_bytes())


def states(run: DagRun) -> dict[str, str]:
    shown = dag_picture(ad_of(run))
    assert shown is not None
    return {node["name"]: node["state"] for node in shown["nodes"]}


def test_a_diamond_has_three_levels_and_four_edges() -> None:
    shown = dag_picture(ad_of(run_of(DIAMOND)))
    assert shown is not None
    nodes = [(node["name"], node["level"], node["row"]) for node in shown["nodes"]]
    assert nodes == [("A", 0, 0), ("B", 1, 0), ("C", 1, 1), ("D", 2, 0)]
    assert sorted(shown["edges"]) == [[0, 1], [0, 2], [1, 3], [2, 3]]
    assert (shown["total"], shown["levels"]) == (4, [])


def test_nodes_are_where_they_are() -> None:
    run = run_of(DIAMOND)
    assert states(run) == {"A": "queued", "B": "waiting", "C": "waiting", "D": "waiting"}
    node = {each.name: number for number, each in enumerate(run.dag.nodes)}
    run.handle(Submitted(node["A"], 7, 1))
    assert states(run)["A"] == "queued"
    run.handle(JobChanged(node["A"], 7, 0, Change.RUNNING))
    assert states(run)["A"] == "running"
    run.handle(JobChanged(node["A"], 7, 0, Change.HELD))
    assert states(run)["A"] == "held"
    run.handle(JobChanged(node["A"], 7, 0, Change.IDLE))
    run.handle(JobEnded(node["A"], 7, 0, 0))
    assert (states(run)["A"], states(run)["D"]) == ("done", "waiting")
    run.handle(Submitted(node["B"], 8, 1))
    run.handle(JobEnded(node["B"], 8, 0, 1))
    assert (states(run)["B"], states(run)["D"]) == ("failed", "futile")
    shown = dag_picture(ad_of(run))
    assert shown is not None
    assert {each["name"]: each["job"] for each in shown["nodes"]} == {"A": "7.0", "B": "8.0", "C": "", "D": ""}


def test_a_node_that_is_tried_again_leads_to_its_last_jobs() -> None:
    run = run_of("JOB A x\nRETRY A 2\n")
    for cluster in (7, 9):
        run.handle(Submitted(0, cluster, 2))
        shown = dag_picture(ad_of(run))
        assert shown is not None
        assert shown["nodes"][0]["job"] == f"{cluster}.0"
        run.handle(JobEnded(0, cluster, 0, 1))
        run.handle(JobEnded(0, cluster, 1, 0))


@pytest.mark.parametrize("jobs", ["[1", "{}", '["7"]', "[true]", "[-7]", "[1e99]", "[]", "[9999999999999]", "[[7]]",
                                  "7"])
def test_a_number_that_is_none_leads_nowhere(jobs: str) -> None:
    shown = dag_picture(ClassAd({"DAGMan_Graph": '[["a", []]]', "DAGMan_NodeStates": "x", "DAGMan_NodeJobs": jobs}))
    assert shown is not None
    assert shown["nodes"][0]["job"] == ""


def test_a_final_node_is_last_and_services_are_not_shown() -> None:
    run = run_of(DIAMOND + "FINAL F x\nSERVICE S x\n")
    shown = dag_picture(ad_of(run))
    assert shown is not None
    assert [node["name"] for node in shown["nodes"]] == ["A", "B", "C", "D", "F"]
    assert "F" not in {shown["nodes"][each]["name"] for edge in shown["edges"] for each in edge}


def test_ten_thousand_nodes_are_levels() -> None:
    wide = "".join(f"JOB n{number} x\n" for number in range(10_000))
    wide += "JOB end x\nPARENT " + " ".join(f"n{number}" for number in range(10_000)) + " CHILD end\n"
    run = run_of(wide)
    ad = ad_of(run)
    assert len(ad.to_bytes()) < 1000
    shown = dag_picture(ad)
    assert shown is not None
    assert (shown["total"], shown["nodes"], shown["edges"], len(shown["levels"])) == (10_001, [], [], 2)
    assert sum(shown["levels"][0].values()) == 10_000
    assert shown["levels"][1] == {"waiting": 1}


def test_a_long_chain_is_a_bounded_number_of_levels() -> None:
    many = 5_000
    text = "".join(f"JOB n{number} x\n" for number in range(many))
    text += "".join(f"PARENT n{number} CHILD n{number + 1}\n" for number in range(many - 1))
    shown = dag_picture(ad_of(run_of(text)))
    assert shown is not None
    assert (len(shown["levels"]), shown["total"]) == (MOST_LEVELS, many)


@pytest.mark.parametrize("text", [
    "".join(f"JOB {'x' * 80}{number} x\n" for number in range(MOST_NODES)),
    "".join(f"JOB n{number} x\n" for number in range(200))
    + f"PARENT {' '.join(f'n{number}' for number in range(100))} CHILD {' '.join(f'n{n}' for n in range(100, 200))}\n",
])
def test_long_names_and_many_edges_are_levels_too(text: str) -> None:
    ad = ad_of(run_of(text))
    assert ad.get_str("DAGMan_Graph") == ""
    shown = dag_picture(ad)
    assert shown is not None
    assert shown["nodes"] == []


def test_parents_come_before_their_children_in_any_dag() -> None:
    draw = random.Random(7)
    for _ in range(30):
        many = draw.randrange(1, 60)
        order = draw.sample(range(many), many)
        text = "".join(f"JOB n{number} x\n" for number in draw.sample(range(many), many))
        text += "".join(f"PARENT n{order[low]} CHILD n{order[high]}\n"
                        for low, high in (sorted(draw.sample(range(many), 2)) for _ in range(many) if many > 1))
        shown = dag_picture(ad_of(run_of(text)))
        assert shown is not None
        nodes = shown["nodes"]
        assert len(nodes) == many
        assert all(nodes[parent]["level"] < nodes[child]["level"] for parent, child in shown["edges"])
        assert len({(node["level"], node["row"]) for node in nodes}) == many


@pytest.mark.parametrize("attributes", [
    {}, {"DAGMan_Graph": "{"}, {"DAGMan_Graph": "[" * 20_000}, {"DAGMan_Graph": "null"}, {"DAGMan_Graph": "[]"},
    {"DAGMan_Graph": "[1]"}, {"DAGMan_Graph": '[["a"]]'}, {"DAGMan_Graph": '[[1, []]]'},
    {"DAGMan_Graph": '[["a", {}]]'},
    {"DAGMan_Graph": json.dumps([["a", []]] * (MOST_NODES + 1))}, {"DAGMan_Graph": 7}, {"DAGMan_Levels": "[3]"},
    {"DAGMan_Levels": json.dumps([{}] * (MOST_LEVELS + 1))}, {"DAGMan_Graph": "x" * (MOST_LETTERS * 5)},
])
def test_what_is_no_picture_is_none(attributes: dict[str, Any]) -> None:
    assert dag_picture(ClassAd(attributes)) is None


def test_what_a_hostile_ad_tells_is_bounded() -> None:
    graph = [["a" * 1000, []], ["b", [0, 0, -1, 1, 2, 99, "0", None, True, 1e9]]]
    shown = dag_picture(ClassAd({"DAGMan_Graph": json.dumps(graph), "DAGMan_NodeStates": "d"}))
    assert shown is not None
    assert len(shown["nodes"][0]["name"]) == 200
    assert [node["state"] for node in shown["nodes"]] == ["done", "other"]
    assert shown["edges"] == [[0, 1]]
    levels = dag_picture(ClassAd({"DAGMan_Levels": '[{"d": 1e99, "x": -1, "nope": 3, "w": 2, "h": true}]'}))
    assert levels is not None
    assert levels["levels"] == [{"waiting": 2}]


def test_every_letter_is_a_state() -> None:
    assert set(LETTERS.values()) < set(NODE_STATES)
