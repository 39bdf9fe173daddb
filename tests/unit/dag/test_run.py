"""A run of a DAG: what is begun when, what follows from what, how it ends."""

from __future__ import annotations

import pytest

from condor_actors.cores.state_table import InvariantBroken, ignore
from condor_actors.dag.dag_run import DAG_TABLE, DagRun, Phase
from condor_actors.dag.node_table import STATES, TABLE
from condor_actors.dag.reader import read_dag
from condor_actors.dag.reports import attributes, drawing, figures, metrics, spoken, status_file, table
from condor_actors.dag.rescue import later_rescues, newest_rescue, rescue_text
from condor_actors.dag.run_effects import (
    Ended,
    KillScripts,
    Note,
    RemoveJobs,
    RunEffect,
    RunScript,
    SaveFile,
    SetTimer,
    Submit,
    WriteRescue,
)
from condor_actors.dag.run_events import (
    REMOVED,
    Began,
    Change,
    ClusterLeft,
    Found,
    Halted,
    HoldEnded,
    JobChanged,
    JobEnded,
    JobMade,
    PostEnded,
    PreEnded,
    ProvisionerReady,
    Recovered,
    Recovering,
    RemovedByUser,
    Reserved,
    Resumed,
    RunEvent,
    ScriptDue,
    SubmitDue,
    SubmitFailed,
    Submitted,
    ThrottlesSet,
    event_of,
    line_of,
)
from condor_actors.dag.run_state import DagStatus, NodeState, RunSettings
from condor_actors.dag.scope import Reading

CHAIN = "JOB A x\nJOB B x\nPARENT A CHILD B\n"
EVENTS: list[RunEvent] = [
    Began(), PreEnded(0, 0), PostEnded(0, 1), HoldEnded(0), ScriptDue(0, "pre"), Reserved(0, 7), Submitted(0, 7, 1),
    SubmitFailed(0, True), SubmitDue(0), JobChanged(0, 7, 0, Change.HELD), JobEnded(0, 7, 0, -9), ProvisionerReady(),
    Halted(), Resumed(), RemovedByUser(), ThrottlesSet(1, 2, 3, 4, 5), JobMade(0, 7, 0), ClusterLeft(0, 7, 3, True),
    Found(0, 7, 3, False), Recovering(), Recovered(),
]


class Run:
    """A run, and what it wants done but for notes."""

    def __init__(self, text: str, **settings: int) -> None:
        self.run = DagRun(read_dag(["x.dag"], Reading(lambda _: text)), RunSettings(**settings))
        self.effects: list[RunEffect] = []
        self.notes: list[Note] = []
        self.tell(Began())

    def tell(self, event: RunEvent) -> list[RunEffect]:
        made = self.run.handle(event)
        self.notes += [effect for effect in made if isinstance(effect, Note)]
        effects: list[RunEffect] = [effect for effect in made if not isinstance(effect, Note)]
        self.run.validate()
        self.effects += effects
        return effects

    def queue(self, node: int, jobs: int = 1) -> None:
        """Its jobs come into the queue; the cluster is the node's number and a hundred."""
        self.tell(Submitted(node, node + 100, jobs))

    def end(self, node: int, status: int = 0, proc: int = 0) -> list[RunEffect]:
        return self.tell(JobEnded(node, node + 100, proc, status))

    def states(self) -> str:
        return " ".join(self.run.nodes.state(number).name for number in range(len(self.run.dag.nodes)))


@pytest.mark.parametrize("event", EVENTS)
def test_events_come_back_from_their_lines(event: RunEvent) -> None:
    assert event_of(line_of(event)) == event


def test_lines_that_are_none() -> None:
    for line in ("", "Q 1", "S 1", "S 1 2 x", "C 1 2 3 q", "V 1", "V 1 2 0 4", "K 1 2 3"):
        with pytest.raises(ValueError):
            event_of(line)
    assert event_of("V 1 2") == Reserved(1, 2), "of a journal that knew no clusters that make their jobs"


def test_the_tables_are_total_and_every_cell_does_what_it_says() -> None:
    assert len(TABLE) == len(STATES) * 13
    assert len(DAG_TABLE) == len(Phase) * 8
    for (state, kind), step in TABLE.items():
        run = Run(CHAIN)
        event = next(each for each in EVENTS if type(each) is kind)
        if isinstance(step, ignore):
            run.run.nodes.states[0] = state
            assert step(run.run.nodes, 0, event) == ()


def test_a_chain() -> None:
    run = Run(CHAIN)
    assert run.effects == [Submit(0)]
    run.queue(0)
    assert run.end(0) == [Submit(1)]
    run.queue(1)
    assert run.end(1) == [Ended(0, False, ())]
    assert run.run.resume() == (Ended(0, False, ()),)


def test_throttles_and_categories() -> None:
    text = "".join(f"JOB n{n} x\nPRIORITY n{n} {n}\n" for n in range(4))
    run = Run(text, jobs=2)
    assert run.effects == [Submit(3), Submit(2)]
    run.queue(3)
    assert run.end(3) == [Submit(1)]
    assert run.tell(ThrottlesSet(0, 0, 1, 1, 1)) == [Submit(0)]
    run = Run(text, idle=1)
    assert run.effects == [Submit(3)]
    run.queue(3)
    assert run.tell(JobChanged(3, 103, 0, Change.RUNNING)) == [Submit(2)]
    run = Run(text + "CATEGORY ALL_NODES c\nMAXJOBS c 1\n")
    assert run.effects == [Submit(3)]
    run.queue(3)
    assert run.end(3, 1) == [Submit(2)]


def test_a_submission_is_tried_again_and_then_the_node_fails() -> None:
    run = Run(CHAIN, submit_attempts=2)
    assert run.tell(SubmitFailed(0, True)) == [SetTimer(0, "submit", 1.0)]
    assert run.tell(SubmitDue(0)) == [Submit(0)]
    assert run.tell(SubmitFailed(0, True)) == [Ended(1, True, ())]
    assert run.states() == "FAILED FUTILE"
    assert [note.what for note in run.notes] == ["SUBMIT_FAILURE", "NODE_FAILED"], "no job has failed"


def test_scripts_take_turns_and_are_deferred() -> None:
    run = Run("JOB A x\nJOB B x\nSCRIPT DEFER 4 60 PRE A a\nSCRIPT PRE B b\n", pre=1)
    assert run.effects == [RunScript(0, "pre")]
    assert run.tell(PreEnded(0, 4)) == [RunScript(1, "pre"), SetTimer(0, "pre", 60)]
    assert run.tell(ScriptDue(0, "pre")) == []
    assert run.tell(PreEnded(1, 0)) == [RunScript(0, "pre"), Submit(1)]
    assert run.run.resume() == (RunScript(0, "pre"), Submit(1, 0))


def test_jobs_of_a_node_fail_together() -> None:
    run = Run("JOB A x\nRETRY A 1\n")
    run.queue(0, 3)
    assert run.end(0, 5, 1) == [RemoveJobs((100,), "DAG node A has failed")]
    assert run.run.resume() == (RemoveJobs((100,), "DAG node A has failed"),)
    run.end(0, REMOVED, 0)
    assert run.end(0, REMOVED, 2) == [Submit(0)]
    run.tell(JobEnded(0, 100, 0, 0))  # of the first try, told once more
    run.tell(Submitted(0, 200, 1))
    assert run.tell(JobEnded(0, 200, 0, 0)) == [Ended(0, False, ())]


def test_a_job_that_is_held_too_often() -> None:
    run = Run("JOB A x\nSCRIPT HOLD A h\n", holds=2)
    run.queue(0)
    assert run.tell(JobChanged(0, 100, 0, Change.HELD)) == [RunScript(0, "hold")]
    assert run.tell(JobChanged(0, 100, 0, Change.HELD)) == []
    run.tell(JobChanged(0, 100, 0, Change.IDLE))
    (script, removal) = run.tell(JobChanged(0, 100, 0, Change.HELD))
    assert (script, type(removal)) == (RunScript(0, "hold"), RemoveJobs)
    assert run.tell(HoldEnded(0)) == []


def test_an_abort_stops_the_others_and_what_comes_too_late_is_removed() -> None:
    run = Run("JOB A x\nJOB B x\nJOB C x\nABORT-DAG-ON A 3 RETURN 7\n")
    run.queue(0)
    run.queue(1)
    assert run.end(0, 3) == [KillScripts(), RemoveJobs((101,), "the DAG has ended"), Ended(7, True, ())]
    assert run.states() == "FAILED STOPPED STOPPED"
    assert run.run.status is DagStatus.ABORT
    assert run.tell(Submitted(2, 55, 1)) == [RemoveJobs((55,), "the DAG has ended")]


def test_the_final_node_decides() -> None:
    for status, ended in ((0, Ended(0, False, ())), (1, Ended(1, True, ()))):
        run = Run("JOB A x\nFINAL F x\n")
        run.queue(0)
        assert run.end(0, 9) == [WriteRescue(), Submit(1)]
        assert WriteRescue() in run.run.resume()
        run.queue(1)
        assert run.end(1, status) == [ended]
    run = Run("JOB A x\nFINAL F x\n")
    run.queue(0)
    assert run.end(0, 0) == [Submit(1)]
    assert WriteRescue() not in run.run.resume()


def test_a_removed_dag_runs_its_final_node() -> None:
    run = Run(CHAIN + "FINAL F x\n")
    run.queue(0)
    assert run.tell(RemovedByUser()) == [KillScripts(), RemoveJobs((100,), "the DAG has ended"), WriteRescue(),
                                         Submit(2)]
    assert run.tell(RemovedByUser()) == []
    run.queue(2)
    assert run.end(2) == [Ended(2, True, ())]
    assert run.run.status is DagStatus.REMOVED


def test_halting() -> None:
    run = Run("JOB A x\nJOB B x\nJOB C x\nSCRIPT PRE C c\nPARENT A CHILD B C\n")
    run.queue(0)
    run.tell(Halted())
    assert run.end(0) == [KillScripts(), Ended(1, True, ())]
    run = Run("JOB A x\nJOB B x\nPARENT A CHILD B\nFINAL F x\nSCRIPT PRE F f\n")
    run.queue(0)
    run.tell(Halted())
    assert run.end(0) == [KillScripts(), WriteRescue(), RunScript(2, "pre")], "the final node is not halted"
    run = Run("JOB A x\nJOB B x\nJOB D x\nPARENT A CHILD B\n")
    run.queue(0)
    run.queue(2)
    run.tell(Halted())
    assert run.end(0) == []
    assert run.tell(Resumed()) == [Submit(1)]


def test_a_provisioner_comes_first_and_services_run_beside() -> None:
    run = Run("PROVISIONER P x\nSERVICE S x\nJOB A x\n")
    assert run.effects == [Submit(1), Submit(0)]
    run.queue(0)
    run.queue(1)
    assert run.tell(ProvisionerReady()) == [Submit(2)]
    run.queue(2)
    assert run.end(2) == [Ended(0, False, (101,))]
    run = Run("PROVISIONER P x\nJOB A x\n")
    run.queue(0)
    assert run.end(0) == [Ended(1, True, ())]


def test_a_save_file_is_written_the_first_time() -> None:
    run = Run("JOB A x\nRETRY A 1\nSAVE_POINT_FILE A\n")
    assert run.effects == [SaveFile(0), Submit(0)]
    run.queue(0)
    assert run.end(0, 1) == [Submit(0)]


def test_a_weak_edge_is_satisfied_by_a_failure_but_not_by_what_never_ran() -> None:
    run = Run("JOB A x\nJOB B x\nJOB C x\nWEAK PARENT A CHILD B\nPARENT A CHILD C\nJOB D x\nWEAK PARENT C CHILD D\n")
    run.queue(0)
    assert run.end(0, 1) == [Submit(1)]
    assert run.states() == "FAILED SUBMITTING FUTILE FUTILE"


def test_a_broken_counter_is_found() -> None:
    run = Run(CHAIN)
    run.run.nodes.queued += 1
    with pytest.raises(InvariantBroken):
        run.run.validate()


def test_what_is_reported() -> None:
    run = Run(CHAIN + "JOB C x\nRETRY A 2\n")
    run.queue(0)
    run.end(0, 1)
    run.queue(2)
    run.tell(JobChanged(2, 102, 0, Change.HELD))
    assert figures(run.run) == {"Done": 0, "Pre": 0, "Queued": 2, "Post": 0, "Ready": 0, "Un-Ready": 1, "Failed": 0,
                                "Futile": 0}
    assert table(run.run)[0] == "DAG status: 0 (DAG_STATUS_OK)"
    assert table(run.run)[4:] == ["    0       0        2       0       0          1        0        0",
                                  "1 job proc(s) currently held"]
    told = attributes(run.run, 5.0)
    assert (told["DAG_NodesQueued"], told["DAG_JobsHeld"], told["DAG_AdUpdateTime"]) == (2, 1, 5)
    assert '"B" [shape=ellipse label="B (I)"];' in "".join(drawing(run.run, 0.0))
    status = "".join(status_file(run.run, 1.0, 2.0))
    assert 'Node = "C";\n  NodeStatus = 3;' in status
    said = metrics(run.run, start_s=1.0, end_s=2.5, status=1, dagman_id=4, parent_id=0, rescue=0, version="1.2.3",
                   form=1, graph=True)
    assert '"jobs":3' in said
    assert '"graph_height":2' in said
    text = rescue_text(run.run.nodes, 0.0, resets_retries=False)
    assert text.splitlines()[:3] == ["# Rescue DAG file, created after running", "#   the x.dag DAG file",
                                     "# Created 1/1/1970 00:00:00 UTC"]
    assert "# 1 of 2 retries already performed; 1 remaining\nRETRY A 1\n" in text
    assert run.run.nodes.state(1) is NodeState.WAITING


def test_what_dagman_out_says() -> None:
    when = "11/30/26 12:00:00"
    event = "for HTCondor Node A (4.1.0) {11/30/26 12:00:00}"
    assert spoken(Note(0, "SUBMIT", 4, 1), "A", "", when) == (f"Event: ULOG_SUBMIT {event}",)
    assert spoken(Note(0, "POST_SCRIPT_TERMINATED", 4, 1), "A", "", when) == (
        f"Event: ULOG_POST_SCRIPT_TERMINATED {event}",)
    for status, end in ((0, "completed successfully."), (3, "failed with status 3."), (-9, "failed with signal 9.")):
        assert spoken(Note(0, "JOB_TERMINATED", 4, 1, status), "A", "", when) == (
            f"Event: ULOG_JOB_TERMINATED {event}", f"Node A job proc (4.1.0) {end}")
    assert spoken(Note(0, "PRE_SCRIPT_FAILURE", status=-9), "A", "", when) == ("PRE Script of Node A died on signal 9",)
    assert spoken(Note(0, "JOB_FAILURE", status=3), "A", "", when) == ("Node A job failed with status 3",)
    assert spoken(Note(0, "RETRY"), "A", "1 of 2", when) == ("Retrying node A (retry #1 of 2)...",)
    assert spoken(Note(0, "PRE_SKIP", status=4), "A", "", when) == (
        "PRE_SKIP return value 4 indicates we are done (successfully) with node A",)
    assert spoken(Note(0, "SUBMIT_FAILURE"), "A", "", when)[0].startswith("ERROR: submit attempt failed")
    assert spoken(Note(0, "PRE_SCRIPT_STARTED"), "A", "", when) == ()


def status_of(run: Run, status: int | None = None) -> str:
    return "".join(status_file(run.run, 1.0, 2.0 if status is None else 0.0, status=status))


def test_a_status_file_says_how_it_ended_and_why_nodes_have_failed() -> None:
    run = Run("JOB A x\nRETRY A 1\nJOB B x\nPARENT A CHILD B\nJOB C x\nJOB D x DONE\n")
    run.queue(0)
    assert 'DagStatus = 3; /* "STATUS_SUBMITTED ()" */' in status_of(run)
    run.end(0, 5)
    run.tell(SubmitFailed(2, False))
    run.tell(Submitted(0, 9, 1))
    run.tell(JobEnded(0, 9, 0, 5))
    text = status_of(run, 1)
    assert 'DagStatus = 6; /* "STATUS_ERROR (failed)" */' in text
    assert 'NextUpdate = 0; /* "none" */' in text
    for reason in ("Job proc (9.0.0) failed with status 5 (after 1 node retries)", "Had an ancestor node fail",
                   "Job submit failed", "User defined as DONE"):
        assert f'StatusDetails = "{reason}";' in text
    assert '"STATUS_DONE (success)"' in status_of(run, 0), "a final node has said so"


def test_a_node_that_ends_the_dag_leaves_those_behind_it_waiting() -> None:
    run = Run(CHAIN + "JOB C x\nJOB D x\nSCRIPT PRE D d\nABORT-DAG-ON A 5 RETURN 0\n", pre=1)
    run.queue(0)
    run.queue(2)
    run.end(0, 5)
    assert run.states() == "FAILED WAITING STOPPED STOPPED"
    text = status_of(run, 0)
    assert '/* "STATUS_DONE (success)" */;' not in text
    assert 'NodesUnready = 1;\n  NodesFutile = 0;\n  NodesFailed = 3;' in text
    assert 'Was STATUS_SUBMITTED' in text
    assert 'Was STATUS_PRERUN' in text


def test_what_was_ready_when_the_final_node_began_is_not_ready_in_the_end() -> None:
    run = Run("JOB A x\nJOB B x\nJOB N x NOOP\nPARENT A CHILD B\nFINAL F x\n")
    assert [note.what for note in Run("JOB N x NOOP\n").notes][:2] == ["SUBMIT", "JOB_TERMINATED"]
    run.queue(0)
    run.tell(Halted())
    run.end(0, 0)
    run.queue(3)
    run.end(3, 0)
    text = status_of(run, 0)
    assert "NodesReady = 0;\n  NodesUnready = 1;" in text
    assert 'Node = "B";\n  NodeStatus = 0;' in text


def test_a_script_that_ends_the_dag_leaves_no_hope_for_those_behind_it() -> None:
    run = Run(CHAIN + "SCRIPT PRE A a\nABORT-DAG-ON A 5\n")
    run.tell(PreEnded(0, 5))
    assert run.states() == "FAILED FUTILE"


def test_why_scripts_made_a_node_fail() -> None:
    run = Run("JOB A x\nSCRIPT POST A p\nJOB B x\nSCRIPT PRE B b\n")
    run.queue(0)
    run.end(0, 7)
    run.tell(PostEnded(0, 2))
    run.tell(PreEnded(1, -15))
    text = status_of(run, 1)
    assert "Job exited with status 7 and POST Script failed with status 2" in text
    assert "PRE Script died on signal 15" in text


def test_names_of_rescue_files() -> None:
    names = ["d/x.dag.rescue001", "d/x.dag.rescue012", "d/x.dag.rescue1", "d/x.dag_multi.rescue003", "d/y.rescue020"]
    assert newest_rescue(names, "d/x.dag", 100, several=False) == 12
    assert newest_rescue(names, "d/x.dag", 5, several=False) == 1
    assert newest_rescue(names, "d/x.dag", 100, several=True) == 3
    assert later_rescues(names, "d/x.dag", 1, several=False) == ["d/x.dag.rescue012"]
