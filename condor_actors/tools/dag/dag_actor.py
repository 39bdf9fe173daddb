"""The actor that runs a DAG: it tells the core what happens, and has done what the core decides.

Theory: each event goes to the journal before anything that follows from it is done: the journal is what the actor
system commits at the end of a turn, scripts and submissions wait for that.  Whatever may block runs on one of two
threads, in order: talks with the schedd, and files.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import attrs
from twisted.python.failure import Failure

from condor_actors.actors.actor import Actor
from condor_actors.dag.dag_run import DagRun, Phase
from condor_actors.dag.picture import Picture
from condor_actors.dag.reports import attributes, spoken, status_file, table
from condor_actors.dag.rescue import rescue_text
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
    ClusterLeft,
    Halted,
    HoldEnded,
    JobChanged,
    JobEnded,
    JobMade,
    PostEnded,
    PreEnded,
    ProvisionerReady,
    RemovedByUser,
    Reserved,
    Resumed,
    RunEvent,
    ScriptDue,
    SubmitDue,
    SubmitFailed,
    Submitted,
    line_of,
)
from condor_actors.dag.run_state import NodeState
from condor_actors.messages.codes import JobEventType
from condor_actors.messages.envelope import Delivery, TimerFired
from condor_actors.tools.dag.around import Around
from condor_actors.tools.dag.job_events import CHANGES, TOLD, date_of, hold_reason, jobs_made, shown_date
from condor_actors.tools.dag.log_tail import status_of
from condor_actors.tools.dag.node_description import folder_of
from condor_actors.tools.dag.node_macros import wanted_of
from condor_actors.tools.dag.room import is_no_room
from condor_actors.tools.dag.run_files import Ending, stamped
from condor_actors.tools.dag.script_runner import words_of
from condor_actors.tools.dag.state_log import RECOVERS
from condor_actors.tools.dag.submitter import SCHEDD_AWAY, Prepared, Wanted
from condor_actors.tools.dag.throttles import SHOWN
from condor_actors.userlog.reader import Event
from condor_actors.wire.errors import RequestRefused

__all__ = ["DagActor"]

AGAIN_S = 2.0
MOST_AGAIN_S = 60.0
PROVISIONED = 2


class DagActor(Actor):
    """Runs one DAG.

    Args:
        run: as its journal left it.
        around: everything else.

    Attributes:
        core: the run.
    """

    def __init__(self, run: DagRun, around: Around) -> None:
        self.core = run
        self._picture = Picture(run)
        self._has_graph, self._around, self._throttles = False, around, around.throttles
        self._node_of = {attempt.cluster: node for node, attempt in run.nodes.active.items() if attempt.cluster}
        self._early: dict[int, list[Event]] = {}
        self._offset = 0
        self._wanted, self._is_submitting = deque[Submit](), False
        self._again_s = AGAIN_S
        self._lines, self._notes = list[str](), list[Note | str]()
        self._is_changed = self._status_changed = True
        self._next_status_s = 0.0
        self._when = ""  # the event of the log that is being told has this date

    def started(self) -> None:
        """Begin, or go on."""
        around = self._around
        self._scripts = around.scripts(self.context.as_turn(self._script_ended), self.context.as_turn(self.say))
        self._notes.append(f"INTERNAL *** DAGMAN_STARTED {around.ending.dag_id}.0 ***")
        if self.core.phase is Phase.BEFORE:
            self.tell(Began())
        else:
            self._notes += [RECOVERS, "INTERNAL *** RECOVERY_FINISHED ***"]
            self._do(self.core.resume())
        self._report_table()
        self.context.set_timer("table", around.table_s or 86400.0)
        self.context.set_timer("report", 0.1)
        if self.core.phase is Phase.PROVISIONING:
            self.context.set_timer("provisioner", around.interval_s)
        self._draw(self.core.dag.dot is not None)

    def receive(self, delivery: Delivery) -> None:
        """Timers."""
        message = delivery.message
        if not isinstance(message, TimerFired):
            return
        if message.key == "table":
            self._report_table()
            self.context.set_timer("table", self._around.table_s or 86400.0)
        elif message.key == "report":
            self._report()
        elif message.key == "submit":
            self._pump()
        elif message.key == "provisioner":
            self._ask_provisioner()
        elif message.key == "flush":
            self._flush()
        elif isinstance(message.key, Ending):
            self._write_end(message.key)
        else:
            what, node = message.key
            self.tell(SubmitDue(node) if what == "submit" else ScriptDue(node, what))

    def dropped(self) -> None:
        """The process ends, and begins again from the journal."""
        self._around.over(-1)

    # -- events

    def tell(self, event: RunEvent) -> None:
        """Something happened: the core decides, the journal keeps it."""
        self.context.persist(line_of(event))
        if isinstance(event, (Reserved, Submitted)):
            self._node_of[event.cluster] = event.node
        self._is_changed = True
        self._do(self.core.handle(event))
        if isinstance(event, Submitted):
            for early in self._early.pop(event.cluster, ()):
                self._job_event(early)
            self._keep_offset()

    def halted(self, is_there: bool) -> None:
        """The halt file came or went."""
        self.say("DAG is halted because halt file exists" if is_there else "DAG going from halted to running state")
        self.tell(Halted() if is_there else Resumed())

    def removed(self) -> None:
        """The DAG's own job is being removed."""
        self.say("Received SIGUSR1")
        self.tell(RemovedByUser())

    def log_read(self, events: Sequence[Event], offset: int) -> None:
        """The nodes' event log has grown."""
        for event in events:
            self._job_event(event)
        self._when = ""
        self._offset = offset
        self._keep_offset()

    def _keep_offset(self) -> None:
        if not self._early and self._offset:
            self.context.persist(f"@ {self._offset}")

    def _job_event(self, event: Event) -> None:
        node = self._node_of.get(event.cluster)
        if node is None:
            return
        if self.core.nodes.state(node) is NodeState.SUBMITTING:  # the answer to the submission comes later
            self._early.setdefault(event.cluster, []).append(event)
            return
        self._when = date_of(event)
        if event.number in TOLD:
            self._note(Note(node, TOLD[event.number], event.cluster, event.proc))
        if event.number == JobEventType.JOB_TERMINATED:
            self.tell(JobEnded(node, event.cluster, event.proc, status_of(event)))
        elif event.number == JobEventType.JOB_ABORTED:
            self.tell(JobEnded(node, event.cluster, event.proc, REMOVED))
        elif event.number in CHANGES:
            self.tell(JobChanged(node, event.cluster, event.proc, CHANGES[JobEventType(event.number)]))
            if event.number == JobEventType.JOB_HELD:
                self.say(f"  Hold reason: {hold_reason(event)}")
        elif event.number == JobEventType.FACTORY_PAUSED:
            self.say(f"  It makes no more jobs until it is released: {hold_reason(event)}")
        else:
            self._made(node, event)

    def _made(self, node: int, event: Event) -> None:
        """A cluster that makes its jobs as they are needed has made one, or has left the queue."""
        attempt = self.core.nodes.active.get(node)
        if attempt is None or not attempt.is_late:
            return
        if event.number == JobEventType.SUBMIT:
            self.tell(JobMade(node, event.cluster, event.proc))
        elif event.number == JobEventType.CLUSTER_REMOVE:
            self.tell(ClusterLeft(node, event.cluster, *jobs_made(event)))

    # -- effects

    def _do(self, effects: Sequence[RunEffect]) -> None:
        for effect in effects:
            if isinstance(effect, Submit):
                self._wanted.append(effect)
            elif isinstance(effect, Note):
                self._note(effect)
            elif isinstance(effect, SetTimer):
                self.context.set_timer((effect.what, effect.node), effect.delay_s)
            elif isinstance(effect, SaveFile):
                self._in_files(self._around.files.save, effect.node, rescue_text(
                    self.core.nodes, self.context.now_s(), resets_retries=True,
                    saves=self.core.dag.nodes[effect.node].name))
            elif isinstance(effect, WriteRescue):
                self._in_files(self._around.files.write_rescue, self.core, self._around.ending, self.context.now_s())
            elif isinstance(effect, RunScript):
                self.context.after_commit(lambda which=effect: self._run_script(which))  # type: ignore[misc]
            elif isinstance(effect, KillScripts):
                self._wanted.clear()
                self.context.after_commit(self._scripts.kill)
            elif isinstance(effect, RemoveJobs):
                self.context.after_commit(lambda which=effect: self._remove(which))  # type: ignore[misc]
            else:
                self.context.after_commit(lambda which=effect: self._end(which))  # type: ignore[misc]
        if self._wanted:
            self.context.set_timer("submit", 0.0)

    def _run_script(self, effect: RunScript) -> None:
        run, number = self.core, effect.node
        node, script = run.dag.nodes[number], run.nodes.script(number, effect.which)
        if script is None:
            return
        facts = {"DAGID": str(self._around.ending.dag_id), "DAG_STATUS": str(int(run.status))}
        words = words_of(script, number, run.nodes, facts, is_post=effect.which != "pre")
        self.say(f"Running {effect.which.upper()} script of Node {node.name}...")
        self._scripts.run(number, node, effect.which, script, words, folder_of(node, self._around.cwd))

    def _script_ended(self, node: int, which: str, status: int) -> None:
        self.tell(HoldEnded(node) if which == "hold" else
                  PreEnded(node, status) if which == "pre" else PostEnded(node, status))

    def _remove(self, effect: RemoveJobs) -> None:
        if not self._around.removes or not effect.clusters:
            return
        self.say(f"Removing any/all submitted HTCondor jobs... ({len(effect.clusters)} node(s): {effect.reason})")
        self._with_schedd(lambda: self._around.submitter.remove(effect.clusters, effect.reason))

    def _with_schedd(self, call: Callable[[], Any], tries: int = 30) -> None:
        """Have something done by the schedd, when it is there."""
        def done(result: Any) -> None:
            if isinstance(result, Failure):
                if result.check(*SCHEDD_AWAY) and not result.check(RequestRefused) and tries:
                    self._later(AGAIN_S, lambda: self._with_schedd(call, tries - 1))
                else:
                    self.say(f"ERROR: {result.getErrorMessage()}")

        self.context.defer_to_turn(self._around.in_schedd(call), done)

    def _later(self, delay_s: float, call: Callable[[], None]) -> None:
        self.context.system.clock.callLater(delay_s, self.context.as_turn(call))

    # -- submissions

    def _pump(self) -> None:
        """Submit the next nodes, if none are under way."""
        if self._is_submitting or not self._wanted:
            return
        batch: list[Wanted] = []
        while self._wanted and len(batch) < self._throttles.submits:
            effect = self._wanted.popleft()
            if self.core.nodes.state(effect.node) is NodeState.SUBMITTING:
                batch.append(wanted_of(self.core, effect, self._around))
        if batch:
            self._is_submitting = True
            work = self._around.in_schedd(self._around.submitter.prepare, batch)
            self.context.defer_to_turn(work, lambda result: self._prepared(result, batch))

    def _prepared(self, result: Any, batch: Sequence[Wanted]) -> None:
        if isinstance(result, Failure):
            return self._not_submitted(result, [Submit(each.number, each.cluster) for each in batch])
        ready: list[Prepared] = []
        for each in result:
            name = self.core.dag.nodes[each.number].name
            for sentence in each.told:
                self.say(sentence)
            for sentence in each.warnings:
                self.say(f"WARNING: node {name}: {sentence}")
            if each.problem:
                self.say(f"ERROR: submit of node {name} failed: {each.problem}")
                self.tell(SubmitFailed(each.number, False))
            elif each.there:
                self.say(f"Node {name} is in the queue already: cluster {each.cluster}")
                self.tell(Submitted(each.number, each.cluster, each.jobs))
            elif self.core.nodes.state(each.number) is NodeState.SUBMITTING:
                self.tell(Reserved(each.number, each.cluster, each.is_late))
                ready.append(each)
        if ready:
            self.context.after_commit(lambda: self._send(ready))
        else:
            self._is_submitting = False
            self.context.set_timer("submit", 0.0)

    def _send(self, ready: Sequence[Prepared]) -> None:
        def send() -> list[str]:
            self._around.sync()
            return self._around.submitter.send(ready)

        self.context.defer_to_turn(self._around.in_schedd(send), lambda result: self._sent(result, ready))

    def _sent(self, result: Any, ready: Sequence[Prepared]) -> None:
        if isinstance(result, Failure):
            return self._not_submitted(result, [Submit(each.number, each.cluster) for each in ready])
        self._is_submitting = False
        self._again_s = AGAIN_S
        for each, problem in zip(ready, result, strict=True):
            name = self.core.dag.nodes[each.number].name
            if problem:
                self.say(f"ERROR: submit of node {name} failed: {problem}")
                self.tell(SubmitFailed(each.number, True))
            else:
                self.say(f"Submitting HTCondor Node {name} job(s)...")
                self.say(f"\tassigned HTCondor ID ({each.cluster}.0.0)")
                self.tell(Submitted(each.number, each.cluster, each.jobs))
        self._pump()

    def _not_submitted(self, failure: Failure, nodes: Sequence[Submit]) -> None:
        self._is_submitting = False
        if failure.check(RequestRefused):
            self.say(f"ERROR: submit failed: {failure.getErrorMessage()}")
            for each in nodes:
                self.tell(SubmitFailed(each.node, True))
        elif failure.check(*SCHEDD_AWAY):
            self.say(f"The schedd does not answer ({failure.getErrorMessage()}); {len(nodes)} node(s) wait for it")
            self._wanted.extendleft(reversed(nodes))
            self.context.set_timer("submit", self._again_s)
            self._again_s = min(2 * self._again_s, MOST_AGAIN_S)
        else:
            failure.raiseException()

    def _ask_provisioner(self) -> None:
        """Whether the provisioner is ready; its job's ad is all that says so."""
        attempt = self.core.nodes.active.get(self.core.dag.provisioner)
        if self.core.phase is not Phase.PROVISIONING or attempt is None:
            return

        def answered(state: Any) -> None:
            if state != PROVISIONED:
                return self.context.set_timer("provisioner", self._around.interval_s)
            self.say("Provisioner is ready")
            self.tell(ProvisionerReady())

        cluster = attempt.cluster
        work = self._around.in_schedd(lambda: self._around.submitter.provisioner_state(cluster) if cluster else 0)
        self.context.defer_to_turn(work, answered)

    # -- what is said

    def say(self, text: str) -> None:
        """Add a line to dagman.out."""
        self._lines.append(stamped(text, self.context.now_s()))
        if not self.context.has_timer("flush"):
            self.context.set_timer("flush", 0.05)

    def _flush(self) -> None:
        lines, notes = self._lines, self._notes
        self._lines, self._notes = [], []
        self._in_files(self._around.files.say, lines)
        if notes:
            self._in_files(self._around.files.tell_states, self.context.now_s(), notes)

    def _in_files(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Write something; what goes wrong is said, and stops nothing."""
        def done(result: Any) -> None:
            if isinstance(result, Failure):
                if not result.check(OSError):
                    result.raiseException()
                self._lines.append(stamped(f"ERROR: {result.getErrorMessage()}", self.context.now_s()))

        self.context.defer_to_turn(self._around.in_files(function, *arguments), done)

    def _note(self, note: Note) -> None:
        node = self.core.dag.nodes[note.node]
        self._notes.append(note)
        now_s, tries = self.context.now_s(), f"{self.core.nodes.attempt_of(note.node)} of {node.retries}"
        for line in spoken(note, node.name, tries, self._when or shown_date(now_s)):
            self.say(line)
        if note.what in ("POST_SCRIPT_TERMINATED", "PRE_SKIP"):
            self._in_files(self._around.files.log_script, note, node.name, now_s)

    def _report_table(self) -> None:
        for line in table(self.core):
            self.say(line)

    def _report(self) -> None:
        """Tell the schedd and the status file how far it is."""
        around, now_s = self._around, self.context.now_s()
        self.context.set_timer("report", around.interval_s)
        wanted = self.core.dag.status_file
        if self._is_changed:
            told = {**attributes(self.core, now_s), **self._picture.states()}
            if not self._has_graph:
                told |= {**self._picture.graph(), **self._throttles.attributes()}
            self.context.defer_to_turn(around.in_schedd(around.submitter.tell_ad, told), self._told)
            self._draw(self.core.dag.dot is not None and self.core.dag.dot.updates)
        if self._has_graph:
            self.context.defer_to_turn(around.in_schedd(around.submitter.own_ad, tuple(SHOWN)), self._limited)
        self._status_changed |= self._is_changed
        self._is_changed = False
        if wanted is not None and (self._status_changed or wanted.always) and now_s >= self._next_status_s:
            self._next_status_s = now_s + wanted.least_s
            self._status_changed = False
            self._in_files(around.files.write_status,
                           list(status_file(self.core, now_s, self._next_status_s)))

    def _limited(self, result: Any) -> None:
        """The ad of the DAG's own job says which limits the run is to have."""
        if isinstance(result, Failure):
            result.trap(*SCHEDD_AWAY)
            return
        wanted = self._throttles.as_in(result)
        if wanted != self._throttles:
            self._throttles = wanted
            for line in wanted.lines():
                self.say(line)
            self.tell(wanted.event())

    def _draw(self, is_wanted: bool) -> None:
        if is_wanted:
            self._in_files(self._around.files.draw(self.core, self.context.now_s()))

    def _told(self, result: Any) -> None:
        if isinstance(result, Failure):
            result.trap(*SCHEDD_AWAY)
        else:
            self._has_graph = True

    # -- the end

    def _end(self, effect: Ended) -> None:
        around = self._around
        if effect.status and around.removes:
            self.say("Removing any/all submitted HTCondor jobs...")  # those that are left when it has failed: none
        self._next_status_s = float("inf")  # the end has a status file of its own, and that is the last
        self._report_table()
        if effect.services:
            self._with_schedd(lambda: around.submitter.remove(effect.services, "the DAG has ended"), 5)
        told = {**attributes(self.core, self.context.now_s()), **self._picture.states(), **self._picture.graph()}
        self._with_schedd(lambda: around.submitter.tell_ad(told), 3)
        ending = attrs.evolve(around.ending, status=effect.status, writes_rescue=effect.rescue)
        # Behind everything that was asked of the schedd before, removals above all.
        self.context.defer_to_turn(around.in_schedd(lambda: None), lambda _: self._write_end(ending))
        self._notes.append(f"INTERNAL *** DAGMAN_FINISHED {ending.status} ***")

    def _write_end(self, ending: Ending) -> None:
        self._flush()
        work = self._around.in_files(self._around.files.end, self.core, ending, self.context.now_s())
        self.context.defer_to_turn(work, lambda result: self._written(result, ending))

    def _written(self, result: Any, ending: Ending) -> None:
        if isinstance(result, Failure) and isinstance(result.value, OSError) and is_no_room(result.value):
            return self.context.set_timer(ending, AGAIN_S)  # what says how far it came is not lost for want of room
        if isinstance(result, Failure):
            self._lines.append(stamped(f"ERROR: {result.getErrorMessage()}", self.context.now_s()))
        elif result:
            self._lines.append(stamped(f"Wrote Rescue DAG to {result}", self.context.now_s()))
        self._flush()
        self.context.defer_to_turn(self._around.in_files(lambda: None), lambda _: self._around.over(ending.status))
