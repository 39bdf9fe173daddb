"""condor_rm and its family: the same command line and the same sentences, another action.

Ids ``C.P`` are answered one by one; clusters, users and constraints together are one question, answered by one
sentence.  The status is 1 when nothing could be done for one of the two.

**Source**: the manual, condor_rm, condor_hold, condor_release, condor_suspend, condor_continue, condor_vacate_job.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from condor_actors import records
from condor_actors.classads.forms.long_form import old_to_new
from condor_actors.messages.job_codes import JobStatus
from condor_actors.messages.queue import ActionResult, ActionResults, ActOnJobs, JobAction
from condor_actors.tools.lib import command
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.contact import ACTION_TIMEOUT_S, Schedd, load, schedd
from condor_actors.tools.lib.flags import NO_DEBUG, Flag, Given
from condor_actors.tools.lib.job_ids import ALL_PROCS, parse_id
from condor_actors.wire.blocking import RequestRefused, WireError


@records.frozen(kw_only=True)
class Words:
    """How one action is spoken of: ``verb`` it, it was ``done``, it is ``already``, it was ``not_running`` for it."""

    verb: str
    done: str
    denied: str = ""
    already: str = ""
    bad_status: str = ""


WORDS = {
    JobAction.REMOVE: Words(
        verb="remove",
        done="marked for removal",
        already="already marked for removal",
        bad_status="in no state to be removed",
    ),
    JobAction.REMOVE_FORCED: Words(
        verb="remove",
        done="removed locally (remote state unknown)",
        denied="force removal of",
        already="already marked for forced removal",
        bad_status="not in `X' state to be forcibly removed",
    ),
    JobAction.HOLD: Words(verb="hold", done="held", already="already held", bad_status="in no state to be held"),
    JobAction.RELEASE: Words(verb="release", done="released", bad_status="not held to be released"),
    JobAction.SUSPEND: Words(
        verb="suspend", done="suspended", already="already suspended", bad_status="not running to be suspended"
    ),
    JobAction.CONTINUE: Words(
        verb="continue", done="continued", already="already running", bad_status="not running to be continued"
    ),
    JobAction.VACATE: Words(verb="vacate", done="vacated", bad_status="not running to be vacated"),
    JobAction.VACATE_FAST: Words(verb="fast-vacate", done="fast-vacated", bad_status="not running to be fast-vacated"),
    JobAction.CHECKPOINT: Words(
        verb="checkpoint", done="asked for a checkpoint", bad_status="not running in the standard universe"
    ),
}

_SAVING = {
    JobAction.CHECKPOINT: "",
    JobAction.VACATE: "; it leaves as soon as it can be, or when its time to go is over, without its work since the "
                      "last checkpoint",
}
"""The actions that mean a checkpoint, and what follows when there is none."""

COMMON = (
    Flag("debug", 1, colon=True, idle=NO_DEBUG),
    Flag("constraint", 1, 1),
    Flag("all", 1),
    Flag("addr", 2, 1),
    Flag("reason", 1, 1),
    Flag("name", 1, 1),
    Flag("pool", 1, 1),
    Flag("held", 3),
    Flag("hold", 3, alias="held"),
    Flag("help", 1),
    Flag("version", 1),
    Flag("long", 1, idle="what became of each job is a line"),
    Flag("totals", 1),
)


@records.define
class _Wanted:
    """What the command line asks for."""

    ids: list[tuple[int, int]] = records.Factory(list)
    constraints: list[str] = records.Factory(list)
    terms: list[str] = records.Factory(list)  # of clusters and users, joined by or
    clusters: list[int] = records.Factory(list)
    users: list[str] = records.Factory(list)
    is_all: bool = False
    is_held: bool = False
    is_total: bool = False
    reason: str = ""
    subcode: int = 0
    name: str = ""
    pool: str = ""
    address: str = ""
    had_error: bool = False


def run(program: str, action: JobAction, extra: Sequence[Flag] = ()) -> int:
    """A whole command of the family.

    Args:
        program: its name, for messages.
        action: what it does unless a flag says otherwise.
        extra: flags of its own: ``forcex``, ``fast``, ``subcode``.
    """
    return command.run(
        (*extra, *COMMON), program, lambda given: _do(given, action, program), words=command.Words(
            unknown="Unrecognized option: {word}\n{usage}", help_stream="err",
            missing=program + ": -{flag} requires another argument"))  # fmt: skip


def _do(given: Sequence[Given], action: JobAction, program: str) -> int:
    names = {item.name for item in given}
    if "forcex" in names:
        action = JobAction.REMOVE_FORCED
    if "fast" in names:
        action = JobAction.VACATE_FAST
    wanted = _understand(given)
    if not (wanted.ids or wanted.terms or wanted.constraints or wanted.is_all or wanted.is_held):
        if wanted.had_error:
            return 1
        raise ToolError(f"You did not specify any jobs\n{command.reminder_of(program)}")
    with schedd(load(), name=wanted.name, pool=wanted.pool, address=wanted.address) as there:
        return _act(there, action, wanted, wanted.reason)


def _understand(given: Sequence[Given]) -> _Wanted:
    wanted = _Wanted()
    for item in given:
        value = item.values[0] if item.values else ""
        if not item.name:
            _operand(wanted, value)
        elif item.name == "constraint":
            if not value.strip():
                raise SystemExit(_say("-constraint is empty, which all jobs would match; -all is the word for these"))
            wanted.constraints.append(value)
        elif item.name == "all":
            wanted.is_all = True
        elif item.name == "held":
            wanted.is_held = True
        elif item.name == "totals":
            wanted.is_total = True
        elif item.name == "subcode":
            if not value.lstrip("-").isdecimal():
                raise SystemExit(_say(f"Invalid -subcode {value}!"))
            wanted.subcode = int(value)
        elif item.name in ("reason", "name", "pool"):
            setattr(wanted, item.name, value)
        elif item.name == "addr":
            wanted.address = value
    if wanted.is_all and (wanted.ids or wanted.terms or wanted.constraints):
        raise SystemExit(_say("can't mix -all with other constraints"))
    return wanted


def _say(text: str) -> int:
    print(text, file=sys.stderr)
    return 1


def _operand(wanted: _Wanted, word: str) -> None:
    found = parse_id(word)
    if found is None:
        if not word or word[0].isdecimal():
            print(f'Warning: unrecognized "{word}" skipped.', file=sys.stderr)
            return
        from condor_actors.classads import quote

        wanted.users.append(word)
        wanted.terms.append(f"Owner == {quote(word)}")
    elif found[0] <= 0:
        print(f"Invalid cluster # from {word}.", file=sys.stderr)
        wanted.had_error = True
    elif found[1] == ALL_PROCS:
        wanted.clusters.append(found[0])
        wanted.terms.append(f"ClusterId == {found[0]}")
    else:
        wanted.ids.append(found)


def _act(there: Schedd, action: JobAction, wanted: _Wanted, reason: str) -> int:
    status = int(wanted.had_error)
    if wanted.ids and wanted.is_held:
        wanted.terms += [f"(ClusterId == {cluster} && ProcId == {proc})" for cluster, proc in wanted.ids]
        wanted.ids = []
    if wanted.ids:
        if wanted.constraints:
            print("Warning, -constraint is ignored for fully qualified job ids", file=sys.stderr)
        answer = _ask(there, ActOnJobs(action=action, ids=tuple(wanted.ids), reason=reason, subcode=wanted.subcode))
        status |= _total(answer) if wanted.is_total else _report(action, answer)
    if wanted.terms or wanted.constraints or wanted.is_all or wanted.is_held:
        status |= _together(there, action, wanted, reason)
    return status


def _ask(there: Schedd, message: ActOnJobs) -> ActionResults:
    watched = _SAVING.get(message.action)
    if watched is None:
        return _answer(there, message)
    from condor_actors.tools.lib.checkpoint_outcome import CheckpointOutcome

    outcome = CheckpointOutcome(there, message.ids, message.constraint)
    answer = _answer(there, message)
    done = [(cluster, proc) for cluster, proc, result in answer.results if result is ActionResult.SUCCESS]
    whole = {cluster for cluster, proc in done if proc < 0}
    problems = outcome.problems([] if whole else done) if done or answer.count else []
    for name, problem in problems:
        print(f"Job {name} could not be checkpointed now: {problem}{watched}", file=sys.stderr)
    for name in outcome.unheard:
        print(f"Job {name} takes long to be checkpointed; its event log, and condor_q -hold, tell what becomes of it",
              file=sys.stderr)
    if problems and message.action is JobAction.CHECKPOINT:
        answer = records.evolve(answer, count=answer.count - len(problems), text="", results=tuple(
            row for row in answer.results if f"{row[0]}.{row[1]}" not in dict(problems)))
        if not answer.results and answer.count <= 0:
            raise SystemExit(1)
    return answer


def _answer(there: Schedd, message: ActOnJobs) -> ActionResults:
    try:
        answer = there.ask(message, ACTION_TIMEOUT_S)
    except RequestRefused as error:
        raise ToolError(f"\n{error}") from None
    except WireError as error:
        raise ToolError(f"Error: the schedd does not answer ({error})") from None
    assert isinstance(answer, ActionResults)
    return answer


def _report(action: JobAction, answer: ActionResults) -> int:
    words = WORDS[action]
    good = [row for row in answer.results if row[2] is ActionResult.SUCCESS]
    if not good:
        sys.stdout.flush()
        print(answer.text, file=sys.stderr)
    for cluster, proc, result in answer.results:
        sentence, is_good = sentence_of(words, f"{cluster}.{proc}", result)
        print(sentence, file=sys.stdout if is_good else sys.stderr)
    return 0 if good else 1


def _total(answer: ActionResults) -> int:
    """``-totals``: how many, in place of which."""
    good = sum(result is ActionResult.SUCCESS for _, _, result in answer.results)
    print(f"{good} succeeded, {len(answer.results) - good} failed")
    return 0 if good else 1


def sentence_of(words: Words, job: str, result: ActionResult) -> tuple[str, bool]:
    """What is said of one job, and whether it is good news."""
    if result is ActionResult.SUCCESS:
        return f"Job {job} {words.done}", True
    if result is ActionResult.NOT_FOUND:
        return f"Job {job} not found", False
    if result is ActionResult.PERMISSION_DENIED:
        return f"Permission denied to {words.denied or words.verb} job {job}", False
    if result is ActionResult.ALREADY_DONE and words.already:
        return f"Job {job} {words.already}", False
    if result is ActionResult.BAD_STATUS and words.bad_status:
        return f"Job {job} {words.bad_status}", False
    if result is ActionResult.ERROR:
        return f"No result found for job {job}", False
    return f"Invalid result for job {job}", False


def _together(there: Schedd, action: JobAction, wanted: _Wanted, reason: str) -> int:
    """Clusters, users and constraints: one question, one sentence."""
    terms = " || ".join(wanted.terms)
    parts = [*wanted.constraints, terms] if terms else list(wanted.constraints)
    constraint = parts[0] if len(parts) == 1 else " && ".join(f"({part})" for part in parts)
    ids: tuple[tuple[int, int], ...] = ()
    if wanted.is_all or (wanted.is_held and not parts):
        of = ""
    elif len(wanted.terms) == 1 and not wanted.constraints and wanted.clusters:
        of = f" in cluster {wanted.clusters[0]}"
        ids = ((wanted.clusters[0], ALL_PROCS),)
    elif len(wanted.terms) == 1 and not wanted.constraints and wanted.users:
        of = f' of user "{wanted.users[0]}"'
    else:
        of = f" matching constraint ({constraint})"
    if wanted.is_held:
        held = f"JobStatus == {JobStatus.HELD}"
        constraint = f"({constraint}) && ({held})" if constraint else held
        ids = ()
    if not ids and not constraint:
        constraint = "true"
    words = WORDS[action]
    jobs = "held jobs" if wanted.is_held else "jobs"
    asked = "" if ids else old_to_new(constraint)
    answer = _ask(there, ActOnJobs(action=action, ids=ids, constraint=asked, reason=reason, subcode=wanted.subcode))
    if wanted.is_total and answer.count:
        print(f"{answer.count} succeeded, 0 failed")
        return 0
    if answer.count:
        print(f"All {jobs}{of} have been {words.done}")
        return 0
    sys.stdout.flush()
    print(f"{answer.text}\nCouldn't find/{words.verb} all {jobs}{of}", file=sys.stderr)
    return 1
