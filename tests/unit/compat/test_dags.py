"""Workflows written in Python become the DAG files that DAGMan reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from condor_actors.compat.htcondor2 import Submit, dags
from condor_actors.dag.reader import read_dag, refuse_cycle
from condor_actors.dag.scope import Reading


def lines(dag: dags.DAG, folder: Path, **how: Any) -> list[str]:
    """The DAG file, without its comments; our own reader accepts it."""
    path = dags.write_dag(dag, folder, **how)
    refuse_cycle(read_dag([str(path)], Reading(lambda name: Path(name).read_text(), any_characters=True)))
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]


def test_a_diamond(tmp_path: Path) -> None:
    dag = dags.DAG()
    top = dag.layer(name="top", submit_description=Submit({"executable": "/bin/true"}))
    middle = top.child_layer(name="middle", vars=[{"word": 'a "b"', "path": "c\\d"}, {"word": "e"}], retries=3,
                             retry_unless_exit=2, dir=Path("work"))
    middle.child_subdag(name="inner", dag_file=Path("inner.dag"), priority=5)
    (tmp_path / "inner.dag").write_text("")
    assert lines(dag, tmp_path) == [
        "JOB top:0 top.sub", "PARENT top:0 CHILD middle:0 middle:1",
        "JOB middle:0 middle.sub DIR work", r'VARS middle:0 word="a \"b\"" path="c\\d"',
        "RETRY middle:0 3 UNLESS-EXIT 2",
        "JOB middle:1 middle.sub DIR work", 'VARS middle:1 word="e"', "RETRY middle:1 3 UNLESS-EXIT 2",
        "PARENT middle:0 middle:1 CHILD inner:0", "SUBDAG EXTERNAL inner:0 inner.dag", "PRIORITY inner:0 5"]
    assert (tmp_path / "top.sub").read_text() == "executable = /bin/true\nqueue\n"
    assert dag.describe().splitlines()[0].split() == ["Type", "Name", "#", "Nodes", "#", "Children", "Parents"]


def test_what_is_said_of_a_node_and_of_the_whole(tmp_path: Path) -> None:
    dag = dags.DAG(dagman_config={"DAGMAN_MAX_JOBS_IDLE": 7}, dagman_job_attributes={"Mine": 1},
                   max_jobs_by_category={"big": 2}, dot_config=dags.DotConfig(Path("d.dot"), update=True),
                   jobstate_log=Path("j.log"),
                   node_status_file=dags.NodeStatusFile(Path("s"), update_time=60, always_update=True))
    dag.layer(name="a", pre=dags.Script("before", [1], retry=True, retry_status=2, retry_delay=9),
              post=dags.Script("after"), pre_skip_exit_code=4, category="big", noop=True, done={0: True},
              abort=dags.DAGAbortCondition(3, 1))
    dag.final(name="end", submit_description=Submit({"executable": "/bin/date"}))
    assert lines(dag, tmp_path) == [
        "CONFIG dagman.config", "JOBSTATE_LOG j.log", "NODE_STATUS_FILE s 60 ALWAYS-UPDATE",
        "DOT d.dot UPDATE OVERWRITE", "SET_JOB_ATTR Mine = 1", "MAXJOBS big 2", "JOB a:0 a.sub NOOP DONE",
        "SCRIPT DEFER 2 9 PRE a:0 before 1", "SCRIPT POST a:0 after", "PRE_SKIP a:0 4", "CATEGORY a:0 big",
        "ABORT-DAG-ON a:0 3 RETURN 1", "FINAL end end.sub"]
    assert (tmp_path / "dagman.config").read_text() == "DAGMAN_MAX_JOBS_IDLE = 7\n"
    assert "/bin/date" in (tmp_path / "end.sub").read_text(), "the original leaves this file out"


@pytest.mark.parametrize(("edge", "expected"), [
    (dags.ManyToMany(), ["PARENT p:0 p:1 p:2 p:3 CHILD __JOIN__:0", "PARENT __JOIN__:0 CHILD c:0 c:1 c:2 c:3"]),
    (dags.OneToOne(), [f"PARENT p:{number} CHILD c:{number}" for number in range(4)]),
    (dags.Grouper(2, 2), ["PARENT p:0 p:1 CHILD __JOIN__:0", "PARENT __JOIN__:0 CHILD c:0 c:1",
                          "PARENT p:2 p:3 CHILD __JOIN__:1", "PARENT __JOIN__:1 CHILD c:2 c:3"]),
    (dags.Slicer(slice(None, None, 2), slice(1, 3)), ["PARENT p:0 CHILD c:1", "PARENT p:2 CHILD c:2"]),
])
def test_edges(edge: dags.BaseEdge, expected: list[str], tmp_path: Path) -> None:
    dag = dags.DAG()
    parent = dag.layer(name="p", vars=[{}] * 4)
    parent.child_layer(name="c", vars=[{}] * 4, edge=edge)
    assert [line for line in lines(dag, tmp_path) if line.startswith("PARENT")] == expected


def test_what_cannot_be_connected(tmp_path: Path) -> None:
    for edge, error in ((dags.OneToOne(), dags.exceptions.OneToOneEdgeNeedsSameNumberOfVars),
                        (dags.Grouper(2, 1), dags.exceptions.IncompatibleGrouper),
                        (dags.Grouper(3, 3), dags.exceptions.IncompatibleGrouper)):
        dag = dags.DAG()
        dag.layer(name="p", vars=[{}] * 3).child_layer(name="c", vars=[{}] * 6, edge=edge)
        with pytest.raises(error):
            dags.write_dag(dag, tmp_path)


def test_nodes_are_found_walked_over_and_connected_together() -> None:
    dag = dags.DAG()
    one, two = dag.layer(name="a1"), dag.layer(name="a2")
    both = dag.glob("a*")
    below = both.child_layer(name="b", type=dags.ManyToMany())
    last = below.child_subdag(name="c", dag_file=Path("c.dag"))
    above = both.parent_layer(name="z")
    assert both == dags.Nodes(one, two)
    assert repr(both) == "Nodes(NodeLayer(name = a1), NodeLayer(name = a2))"
    assert (list(dag.roots), list(dag.leaves)) == ([above], [last])
    assert [node.name for node in dag.walk(dags.WalkOrder.BREADTH_FIRST)] == ["z", "a1", "a2", "b", "c"]
    assert [node.name for node in dag.walk()] == ["z", "a2", "b", "c", "a1"]
    assert {node.name for node in last.walk_ancestors()} == {"z", "a1", "a2", "b"}
    assert [node.name for node in above.walk_descendants(dags.WalkOrder.BREADTH_FIRST)] == ["a1", "a2", "b", "c"]
    both.remove_children(below)
    assert list(below.parents) == []
    below.add_parents(one, [two])
    assert set(dag.edges) == {(one, below), (two, below), (below, last), (above, one), (above, two)}
    assert one in dag
    assert dags.DAG().layer(name="a1") not in dag
    with pytest.raises(dags.exceptions.UnrecognizedWalkOrder):
        list(dag.walk("DEPTH"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no node of this DAG"):
        one.add_children(dags.DAG().layer(name="elsewhere"))
    with pytest.raises(ValueError, match="empty"):
        dags.Nodes().child_layer(name="nobody's")


def test_a_name_is_there_once() -> None:
    dag = dags.DAG()
    dag.layer(name="a")
    dag.final(name="end")
    for make in (dag.layer, dag.final):
        with pytest.raises(dags.exceptions.DuplicateNodeName):
            make(name="a")
    with pytest.raises(dags.exceptions.DuplicateNodeName):
        dag.subdag(name="end", dag_file=Path("x"))
    with pytest.raises(dags.exceptions.LayerNameContainsSeparator):
        dags.SimpleFormatter().generate("a:b", 0)
    with pytest.raises(dags.exceptions.CannotInvertFormat):
        dags.SimpleFormatter(index_format="{:x}").generate("a", 11)
    assert dags.SimpleFormatter(separator="-", index_format="{:03d}", offset=1).generate("a", 1) == "a-002"


def test_a_line_end_does_not_become_a_line_of_the_dag_file(tmp_path: Path) -> None:
    dag = dags.DAG()
    dag.layer(name="a", vars=[{"word": "x\nJOB b b.sub"}])
    with pytest.raises(ValueError, match="line end"):
        dags.write_dag(dag, tmp_path)


def test_what_is_done_comes_from_the_newest_rescue_file(tmp_path: Path) -> None:
    dag = dags.DAG()
    names = dag.layer(name="NODE", vars=[{}] * 3), dag.layer(name="other", done=True)
    for number, text in ((1, "DONE other:0\n"), (12, "# Rescue DAG\n\nRETRY other:0 1\nDONE NODE:0\nDONE NODE:2\n")):
        (tmp_path / f"dagfile.dag.rescue{number:03d}").write_text(text)
    (tmp_path / "dagfile.dag.rescue013.old").write_text("")
    newest = dags.find_rescue_file(tmp_path)
    assert newest == tmp_path / "dagfile.dag.rescue012"
    assert newest is not None
    dags.rescue(dag, newest)
    assert [node.done for node in names] == [{0: True, 2: True}, {}], "the original makes of 'NODE' no name at all"
    with pytest.raises(dags.exceptions.NoRescueFileFound):
        dags.find_rescue_file(tmp_path, "another.dag")
