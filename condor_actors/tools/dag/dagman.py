"""condor_dagman: runs a DAG, as a job of the scheduler universe that condor_submit_dag has submitted.

============  =====================================================================
exit status    meaning
============  =====================================================================
0             the DAG has succeeded
1             it has failed, or could not be begun
2             it was removed
3             it is to be started again: it was held, or its machine stops
other         an ABORT-DAG-ON's
============  =====================================================================

Only one runs a DAG at a time: it holds the lock file.  It begins from its journal where there is one: then the run was
killed; else, with -DoRecovery, from what the event log of its nodes' jobs tells; else from the newest rescue file, or
from the beginning.

**Source**: the manual, condor_dagman.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from random import Random
from typing import Any

import attrs

from condor_actors import accounts
from condor_actors.classads import ClassAd, quote, unparse
from condor_actors.config import Config
from condor_actors.config.parameters.dagman import ROWS
from condor_actors.dag.dag_run import DagRun, Phase
from condor_actors.dag.definitions import Dag
from condor_actors.dag.errors import DagError
from condor_actors.dag.reader import apply_rescue, read_dag, refuse_cycle
from condor_actors.dag.rescue import newest_rescue
from condor_actors.dag.run_events import RunEvent, ThrottlesSet, line_of
from condor_actors.dag.run_state import RunSettings
from condor_actors.dag.scope import Reading
from condor_actors.tools.dag.dag_files import DagFiles, is_ours, named_state, open_own, read_text
from condor_actors.tools.dag.dag_flags import SHARED, DagOptions, inherited_words, options_of
from condor_actors.tools.dag.journal import Journal, JournalError, digest_of
from condor_actors.tools.dag.log_recovery import events_of, give_up_lost, recover, whole_bytes
from condor_actors.tools.dag.retelling import Again, retold
from condor_actors.tools.dag.room import is_no_room, locked, sayer, wait_for_room
from condor_actors.tools.dag.run_files import Ending, RunFiles
from condor_actors.tools.dag.submitter import SCHEDD_AWAY, Submitter
from condor_actors.tools.dag.throttles import Throttles
from condor_actors.tools.lib.command import ToolError, reminder_of, run
from condor_actors.tools.lib.contact import load
from condor_actors.tools.lib.flags import Flag, Given
from condor_actors.tools.pool.version import version_line

FLAGS = (
    Flag("p", 1, 1),
    Flag("f", 1),
    Flag("l", 1, 1),
    Flag("dag", 3, 1),
    Flag("csdversion", 3, 1),
    Flag("dot", 3),
    Flag("dryrun", 3, refused="condor_dag_checker looks at a DAG without running it"),
    Flag("waitfordebug", 1, refused="condor_dagman is no native program"),
    *SHARED,
)
AGAIN = 3
SAID_AT_ONCE = 5_000
_VERSION = re.compile(r"(?<!\d)(\d+\.\d+\.\d+)")


class _ScheddAwayError(Exception):
    """Without the schedd nothing can be begun."""


def main() -> int:
    """Entry of ``condor_dagman``."""
    return run(FLAGS, "condor_dagman", _answer)


def _answer(given: Sequence[Given]) -> int:
    told: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, _: told.append(number))
    options = options_of([item for item in given if item.name not in ("p", "f", "l", "csdversion", "dot")])
    if not options.files:
        raise ToolError(f"ERROR: no DAG file is given\n{reminder_of('condor_dagman')}")
    files = DagFiles(options.primary, len(options.files) > 1, options.texts.get("outfile_dir", ""))
    out = os.environ.get("_CONDOR_DAGMAN_LOG") or files.out

    say = sayer(out)
    lock = locked(options.texts.get("lockfile", files.lock))
    say("******************************************************")
    say(f"** condor_scheduniv_exec.{_own_cluster()}.0 (CONDOR_DAGMAN) STARTING UP")
    say(f"** {version_line()}")
    say(f"** PID = {os.getpid()}")
    status = 1
    try:
        ended = ended_with(files, _own_cluster())
        if ended is not None:
            say("The DAG had ended before this process began")
            status = ended
        elif "dot" in {item.name for item in given}:
            status = _draw(options, files, out, say)
        else:
            status = _run(_prepare(options, files, out, say), files, told, say)
    except (ToolError, DagError, JournalError) as error:
        say(f"ERROR: {error}")
        print(f"ERROR: {error}" if not str(error).startswith("ERROR") else error, file=sys.stderr)
    except _ScheddAwayError as error:
        say(f"The schedd does not answer: {error}")
        status = AGAIN
    except OSError as error:
        if not is_no_room(error):
            raise
        wait_for_room(os.path.dirname(files.journal) or ".", lambda: told)
        say(f"There was no room for {error.filename or 'a file of the run'}: the run goes on from its journal")
        status = AGAIN
    finally:
        if status != AGAIN:
            with contextlib.suppress(OSError):
                os.unlink(options.texts.get("lockfile", files.lock))
    say(f"**** condor_scheduniv_exec.{_own_cluster()}.0 (condor_DAGMAN) pid {os.getpid()} EXITING WITH STATUS {status}")
    os.close(lock)
    return status


def _draw(options: DagOptions, files: DagFiles, out: str, say: Callable[[str], None]) -> int:
    """Write the drawing and nothing else."""
    dag = _read(options, load("DAGMAN"), say)
    if dag.dot is None:
        raise ToolError("ERROR: -dot: the DAG has no DOT line")
    RunFiles(dag, files, out).draw(DagRun(dag, RunSettings()), time.time())()
    return 0


def _read(options: DagOptions, config: Config, say: Callable[[str], None]) -> Dag:
    """The DAG, without a cycle."""
    dag = read_dag(options.files, Reading(
        read_text, any_characters=config.boolean("DAGMAN_ALLOW_ANY_NODE_NAME_CHARACTERS"),
        joins=config.boolean("DAGMAN_USE_JOIN_NODES"), own_folders="usedagdir" in options.switches),
        munges=config.boolean("DAGMAN_MUNGE_NODE_NAMES"))
    refuse_cycle(dag)
    for sentence in dag.warnings:
        say(f"Warning: {sentence}")
    return dag


def ended_with(files: DagFiles, dag_id: int) -> int | None:
    """The exit status of this job's run, when it has ended: a run killed after that is started once more.

    The metrics are written at the end, before the journal goes.  With another status than 0, 1 and 2 the job stays in
    the queue, and the DAG is to be run again.
    """
    if not is_ours(files.metrics):
        return None
    try:
        said = json.loads(read_text(files.metrics))
        status = int(said["exitcode"])
        if not dag_id or said["dagman_id"] != str(dag_id) or status not in (0, 1, 2):
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    with contextlib.suppress(OSError):
        os.unlink(files.journal)
    return status


def _own_cluster() -> int:
    """The cluster of the job that this is; 0: it is none."""
    word = os.environ.get("CONDOR_ID", "").partition(".")[0]
    return int(word) if word.isdecimal() else 0


@attrs.frozen(kw_only=True)
class _Made:
    """Everything that a run needs before its reactor runs."""

    config: Config
    options: DagOptions
    dag: Dag
    run: DagRun
    journal: Journal
    files: RunFiles
    submitter: Submitter
    macros: dict[str, str]
    nodes_log: str
    ending: Ending
    throttles: Throttles


def _prepare(options: DagOptions, files: DagFiles, out: str, say: Callable[..., None]) -> _Made:
    config = _configuration()
    dag = _read(options, config, say)
    dag_id = _own_cluster()
    words = inherited_words(options)
    submitter = Submitter(config, os.getcwd(), dag_id, appends=config.boolean("DAGMAN_DEFAULT_APPEND_VARS"),
                          commands=_commands(options, config), subdag_words=words,
                          rescue=options.numbers.get("dorescuefrom", 0) or files.rescue_number(
                              options.texts.get("rescuefile", "")))
    try:
        ad = submitter.own_ad()
    except SCHEDD_AWAY as error:
        raise _ScheddAwayError(str(error)) from None
    if "batch-name" not in options.texts and "JobBatchName" in ad:
        words += ["-Batch-Name", ad.get_str("JobBatchName")]
    goes_on = os.path.exists(files.journal) and ("force" not in options.switches or _is_own(files.journal, ad))
    rescue = Journal.head(files.journal)[2] if goes_on else _rescue(options, files, config)
    if rescue:
        say(f"Restoring state from {rescue}")
        apply_rescue(dag, read_text(rescue), rescue)
    settings = _settings(options, config)
    throttles = Throttles.of_settings(settings, config.integer("DAGMAN_MAX_SUBMITS_PER_INTERVAL")).as_in(ad)
    settings = attrs.evolve(settings, **attrs.asdict(throttles.event()))
    nodes_log = _nodes_log(options.primary, ad, config)
    for row in ROWS:
        value = config.text(row.name)
        say(f"{row.name} setting: {value.capitalize() if value and value.lower() in ('true', 'false') else value}")
    for file in options.files:
        say(f"Parsing {file} ...")
    if "D_TEST" in (config.text("DAGMAN_DEBUG") or "").upper():
        nodes = Counter(node.category for node in dag.nodes)
        for category, most in dag.limits.items():
            say(f"CHECK CATEGORY {category} {nodes[category]} {most}")
    run, journal = _begun(dag, files, settings, nodes_log, rescue, submitter, say, goes_on=goes_on,
                          from_log="dorecovery" in options.switches)
    version = _VERSION.search(version_line())
    ending = Ending(
        status=0, dag_id=dag_id, parent_id=ad.get_int("DAGManJobId"), began_s=journal.began_s,
        rescue_read=files.rescue_number(rescue), version=version.group(1) if version else "",
        metrics_form=config.integer("DAGMAN_METRICS_FILE_VERSION"),
        graph=config.boolean("DAGMAN_REPORT_GRAPH_METRICS"), most_rescues=config.integer("DAGMAN_MAX_RESCUE_NUM"),
        resets_retries=config.boolean("DAGMAN_RESET_RETRIES_UPON_RESCUE"), writes_rescue=False)
    return _Made(config=config, options=options, dag=dag, run=run, journal=journal,
                 files=RunFiles(dag, files, out, nodes_log), submitter=submitter,
                 macros=_macros(options, ad, dag_id, nodes_log, config), nodes_log=nodes_log,
                 ending=ending, throttles=throttles)


def _begun(dag: Dag, files: DagFiles, settings: RunSettings, nodes_log: str, rescue: str, submitter: Submitter,
           say: Callable[..., None], *, goes_on: bool, from_log: bool) -> tuple[DagRun, Journal]:
    """A new run, or one as its journal has left it, or as the jobs' event log tells.

    Raises:
        ToolError: the log cannot be written, or it is not there and the run is to be made of it.
        JournalError: journal or log are those of another DAG.
    """
    digest = digest_of(dag)
    if goes_on or from_log:
        say("Running in RECOVERY mode...")
    if goes_on:
        run = DagRun(dag, Journal.head(files.journal)[3])
        again = Again(run)
        journal = Journal.open(files.journal, digest, again.take)
        from_log = run.nodes.is_recovering or (from_log and run.phase is Phase.BEFORE)  # killed when it read the log
        if not from_log:
            if not again.is_told_by(nodes_log):
                say("Error: DAG semantics violated")
                raise ToolError(f"ERROR: {nodes_log} is not the event log that the run has read: jobs that have begun "
                                "are not in it. Put it back and submit again, or begin anew with -force")
            _say_again(again.lines, say)
            limits = _limits(settings)
            if limits != _limits(run.nodes.settings):
                run.handle(limits)
                journal.append([line_of(limits)])
            say("...done with RECOVERY mode")
            return run, journal
    if from_log:
        run, journal = _of_log(dag, files, settings, nodes_log, rescue, digest, submitter, say)
        say("...done with RECOVERY mode")
        return run, journal
    try:
        descriptor = open_own(nodes_log, os.O_WRONLY)
    except OSError as error:
        raise ToolError(f"ERROR: cannot write {nodes_log}: {error.strerror}") from None
    os.ftruncate(descriptor, 0)
    os.close(descriptor)
    return DagRun(dag, settings), Journal.create(files.journal, digest, settings, rescue, time.time())


def _say_again(told: Iterable[str], say: Callable[..., None]) -> None:
    """Tell dagman.out what is known already."""
    lines = iter(told)
    while some := tuple(islice(lines, SAID_AT_ONCE)):
        say(*some)


def _is_own(journal: str, ad: ClassAd) -> bool:
    """Whether the journal is of this very job, which was started anew; what it is told to begin anew is another's."""
    try:
        return Journal.head(journal)[1] >= ad.get_int("QDate") > 0
    except JournalError:
        return False


def _limits(settings: RunSettings) -> ThrottlesSet:
    return ThrottlesSet(settings.jobs, settings.idle, settings.pre, settings.post, settings.hold)


def _of_log(dag: Dag, files: DagFiles, settings: RunSettings, nodes_log: str, rescue: str, digest: str,
            submitter: Submitter, say: Callable[..., None]) -> tuple[DagRun, Journal]:
    """The run as the jobs' event log tells; its journal is written anew."""
    if not is_ours(nodes_log) or not os.path.getsize(nodes_log):
        raise ToolError(f"ERROR: -DoRecovery: there is no {files.journal} to go on from, and nothing in {nodes_log}")
    free = attrs.evolve(settings, jobs=0, idle=0, pre=0, post=0, hold=0)
    run, lines = DagRun(dag, free), list[str]()
    size = whole_bytes(nodes_log)
    _say_again(retold(run, events_of(nodes_log, size)), say)

    def record(event: RunEvent) -> None:
        lines.append(line_of(event))

    recover(run, nodes_log, lambda: events_of(nodes_log, size), record, _limits(settings))
    try:
        lost = give_up_lost(run, lambda cluster, name: submitter.jobs_of(cluster, name) > 0, record)
    except SCHEDD_AWAY as error:
        raise _ScheddAwayError(str(error)) from None
    for sentence in lost:
        say(f"ERROR: {sentence}")
    journal = Journal.create(files.journal, digest, free, rescue, time.time())
    journal.append([*lines, f"@ {size}"])
    journal.offset = size
    return run, journal


def _configuration() -> Config:
    """The pool's configuration, with that of all workflows and of this DAG.

    Raises:
        ToolError: a line of theirs is no assignment.
    """
    for path in dict.fromkeys((load("DAGMAN").text("DAGMAN_CONFIG_FILE") or "",
                               os.environ.get("_CONDOR_DAGMAN_CONFIG_FILE", ""))):
        for number, line in enumerate(read_text(path).splitlines() if path else (), 1):
            name, equals, value = (part.strip() for part in line.partition("="))
            if not name or name.startswith("#"):
                continue
            if not equals or not re.fullmatch(r"[\w.]+", name):
                raise ToolError(f"ERROR: {path}, line {number}: {line.strip()[:60]!r} is no NAME = VALUE")
            os.environ[f"_CONDOR_{name}"] = value
    return load("DAGMAN")


def _rescue(options: DagOptions, files: DagFiles, config: Config) -> str:
    """The file that a new run begins from; empty: none."""
    named = named_state(options, files)
    if named:
        return named
    if options.numbers.get("dorescuefrom"):
        return files.rescue(options.numbers["dorescuefrom"])
    automatic = config.boolean("DAGMAN_AUTO_RESCUE") if options.auto_rescue is None else options.auto_rescue
    if not automatic or "force" in options.switches:
        return ""
    number = newest_rescue(files.beside(), files.primary, config.integer("DAGMAN_MAX_RESCUE_NUM"),
                           several=files.several)
    return files.rescue(number) if number else ""


def _settings(options: DagOptions, config: Config) -> RunSettings:
    """Limits and habits: as configured, but for what the flags say."""
    flags = {"maxjobs": "jobs", "maxidle": "idle", "maxpre": "pre", "maxpost": "post", "maxhold": "hold"}
    given: dict[str, Any] = {flags[name]: value for name, value in options.numbers.items() if name in flags}
    if options.always_post is not None:
        given["always_post"] = options.always_post
    return attrs.evolve(config.settings(RunSettings), **given)


def _nodes_log(primary: str, ad: ClassAd, config: Config) -> str:
    """The absolute path of the nodes' event log."""
    values = {"DAG_DIR": os.path.dirname(primary) or ".", "DAG_FILE": os.path.basename(primary),
              "CLUSTER": str(_own_cluster()), "OWNER": accounts.own_name(),
              "NODE_NAME": ad.get_str("DAGNodeName", "undef")}
    path = config.needed_text("DAGMAN_DEFAULT_NODE_LOG")
    for name, value in values.items():
        path = path.replace(f"@({name})", value)
    return os.path.abspath(path)


def _commands(options: DagOptions, config: Config) -> dict[str, str]:
    """What stands behind the description of every node, so that it decides."""
    commands = {}
    if "suppress_notification" in options.switches or (
            "dont_suppress_notification" not in options.switches and config.boolean("DAGMAN_SUPPRESS_NOTIFICATION")):
        commands["notification"] = "never"
    if config.boolean("DAGMAN_SUPPRESS_JOB_LOGS"):
        commands["log"] = ""
    return commands


def _macros(options: DagOptions, ad: ClassAd, dag_id: int, nodes_log: str, config: Config) -> dict[str, str]:
    """What the description of every node is given."""
    batch = ad.get_str("JobBatchName", os.path.basename(options.primary))
    macros = {"DAGManJobId": str(dag_id), "dagman_log": nodes_log, "My.JobBatchName": quote(batch)}
    group, user = ad.get_str("AcctGroup"), ad.get_str("AcctGroupUser")
    if group:
        macros["accounting_group"] = group
        if user:
            macros["accounting_group_user"] = user
    prefix = config.text("DAGMAN_INHERIT_ATTRS_PREFIX") or ""
    for name in config.list_of("DAGMAN_INHERIT_ATTRS"):
        value = ad.find(name.lower())
        if value is not None:
            macros[f"My.{prefix}{name}"] = unparse(value)
    return macros


def _run(made: _Made, files: DagFiles, told: list[int], say: Callable[[str], None]) -> int:
    """Run it; the exit status."""
    from twisted.internet import reactor as twisted_reactor
    from twisted.internet.threads import deferToThreadPool
    from twisted.python.threadpool import ThreadPool

    from condor_actors.actors.post import NoPost
    from condor_actors.actors.system import ActorSystem
    from condor_actors.tools.dag.around import Around
    from condor_actors.tools.dag.dag_actor import DagActor
    from condor_actors.tools.dag.log_tail import LogTail
    from condor_actors.tools.dag.script_runner import ScriptRunner

    reactor: Any = twisted_reactor
    config, options = made.config, made.options
    status = [AGAIN]
    pools = [ThreadPool(1, 1, name) for name in ("schedd", "files")]
    for pool in pools:
        pool.start()

    def over(code: int) -> None:
        if code >= 0:
            made.journal.remove()
        status[0] = code if code >= 0 else AGAIN
        if reactor.running:
            reactor.stop()

    around = Around(
        submitter=made.submitter, files=made.files, ending=made.ending, over=over, macros=made.macros,
        in_schedd=lambda *work: deferToThreadPool(reactor, pools[0], *work),
        in_files=lambda *work: deferToThreadPool(reactor, pools[1], *work),
        scripts=lambda ended, failed: ScriptRunner(reactor, os.getcwd(), ended, failed),
        sync=made.journal.sync, cwd=os.getcwd(), throttles=made.throttles,
        interval_s=float(config.seconds("DAGMAN_USER_LOG_SCAN_INTERVAL")),
        table_s=float(config.seconds("DAGMAN_PRINT_JOB_TABLE_INTERVAL")),
        removes=config.boolean("DAGMAN_REMOVE_NODE_JOBS"),
        priority=options.numbers.get("priority", config.integer("DAGMAN_DEFAULT_PRIORITY")),
        records_retry="retry" in (word.lower() for word in config.list_of("DAGMAN_NODE_RECORD_INFO")))
    actor = DagActor(made.run, around)
    system = ActorSystem(clock=reactor, wall_clock=time.time, post=NoPost(), authorize=lambda _who, _level: False,
                         commit=made.journal.append, random=Random(os.urandom(16)))
    tails: list[LogTail] = []

    def removed(*_: Any) -> None:
        reactor.callFromThread(actor.context.as_turn(actor.removed))

    def begin() -> None:
        system.spawn("dag", lambda: actor, restart="temporary", inbox_limit=1_000_000)
        signal.signal(signal.SIGUSR1, removed)
        signal.signal(signal.SIGTERM, lambda *_: reactor.callFromThread(over, -1))
        turn = actor.context.as_turn
        tails.append(LogTail(made.nodes_log, made.journal.offset, files.halt, turn(actor.log_read), turn(actor.halted),
                             reactor.callFromThread))
        tails[0].start()
        if told:
            removed()

    say(f"DAG of {len(made.dag.nodes)} nodes; the jobs' event log is {made.nodes_log}")
    reactor.callWhenRunning(begin)
    reactor.run()
    for tail in tails:
        tail.stop()
    for pool in pools:
        pool.stop()
    if status[0] == AGAIN and made.journal.problem is not None:
        raise made.journal.problem
    return status[0]


if __name__ == "__main__":
    sys.exit(main())
