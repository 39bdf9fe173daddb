"""condor_q -better-analyze: why a job does not run.

Theory: the job's Requirements is a chain of clauses.  Each is tried on every slot: alone, together with those before
it, and left out, so the clause that keeps the job idle shows as the one whose count falls to zero, with what would
have to change for the nearest slot.  Slots that the job accepts are then asked for *their* requirements.

**Source**: the manual, condor_q, "Analyze".
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from condor_actors.classads import ClassAd, is_true, parse_expression
from condor_actors.classads.matching.explain import Tally, explain_many
from condor_actors.cores.schedd.gangs.gang import is_gang
from condor_actors.cores.schedd.gangs.groups import groups_of
from condor_actors.messages.codes import JobStatus
from condor_actors.tools.analysis.plain_answers import JobAnswers
from condor_actors.tools.lib.checkpoint_outcome import standing_problem
from condor_actors.tools.printing.ad_output import ads_of_file, checked

if TYPE_CHECKING:
    from condor_actors.tools.jobs.q import Answer

_WHY_NOT: dict[int, str] = {
    JobStatus.RUNNING: "Job is running.",
    JobStatus.REMOVED: "Job is removed.",
    JobStatus.COMPLETED: "Job is completed.",
    JobStatus.HELD: "Job is held.",
    JobStatus.TRANSFERRING_OUTPUT: "Job is transferring its output.",
    JobStatus.SUSPENDED: "Job is suspended.",
}


@attrs.define
class Verdict:
    """What became of one job on all slots: how many refuse, are busy, sleep, or could run it."""

    job_refuses: int = 0
    slot_refuses: int = 0
    runs_mine: int = 0
    runs_others: int = 0
    asleep: int = 0
    available: int = 0


def analyze(answer: Answer) -> Iterator[str]:
    """The analysis of the jobs asked for, as text."""
    question = answer.question
    if question.is_unmatchable:
        yield answer.header().rstrip("\n").lstrip("\n") + "\n"
        yield from (f"{job.get_int('ClusterId')}.{job.get_int('ProcId')}\n" for job in answer.ads())
        return
    slots = _slots(answer)
    jobs = list(answer.ads())
    yield answer.header().rstrip("\n").lstrip("\n") + "\n"
    if not jobs:
        return
    if question.is_reverse:
        yield from _reverse(slots, jobs, question.is_summary)
        return
    if question.is_summary:
        yield from _summary(slots, jobs)
        return
    answers = JobAnswers(answer.config, answer.there, question.pool, slots)
    for job in jobs:
        yield _in_plain_words(job, answers)
        yield from _job(job, slots, question.is_verbose)


def unmatchable(answer: Answer, jobs: Iterable[ClassAd]) -> Iterator[ClassAd]:
    """Of some jobs those that no machine would take, were it free."""
    slots = _slots(answer)
    return (job for job in jobs if not any(_matches(job, slot) for slot in slots))


def _matches(job: ClassAd, slot: ClassAd) -> bool:
    return job.get_bool("Requirements", False, slot) and _takes(slot, job)


def _takes(slot: ClassAd, job: ClassAd) -> bool:
    return slot.get_bool("Requirements", True, job) and slot.get_bool("Start", True, job)


def _in_plain_words(job: ClassAd, answers: JobAnswers) -> str:
    """The answer that most want; the analysis below is for those who want to know exactly."""
    said = answers.paragraph(job)
    return textwrap.fill(f"{_name(job)}:  {said}", 100, subsequent_indent="    ", break_long_words=False,
                         break_on_hyphens=False) + "\n\n" if said else ""


def _slots(answer: Answer) -> list[ClassAd]:
    from condor_actors.messages.advertise import AdKind
    from condor_actors.tools.lib.contact import query

    question = answer.question
    if question.slot_file:
        found = ads_of_file(question.slot_file, "slot ads file")
    else:
        found = query(answer.config, AdKind.SLOT, pool=question.pool)
    if question.machine:
        name = question.machine.lower()
        found = [ad for ad in found if name in (ad.get_str("Name").lower(), ad.get_str("Machine").lower())]
    if question.machine_constraint:
        wanted = parse_expression(checked(question.machine_constraint))
        found = [ad for ad in found if is_true(wanted.evaluate(ad))]
    return [_whole(ad) for ad in found]


def _whole(slot: ClassAd) -> ClassAd:
    """A slot as it would be if its own jobs did not hold part of it."""
    if not slot.get_bool("PartitionableSlot"):
        return slot
    view = slot.copy()
    for tag in ("Cpus", "Memory", "Disk", "GPUs"):
        total = slot.evaluate(f"TotalSlot{tag}")
        if isinstance(total, (int, float)) and not isinstance(total, bool):
            view[tag] = total
    return view


def _verdict(job: ClassAd, slots: Sequence[ClassAd]) -> tuple[Verdict, list[ClassAd], list[ClassAd]]:
    """The counts, the slots that match, and those that refuse the job though it would take them."""
    verdict, matching, refusing = Verdict(), [], []
    for slot in slots:
        if not job.get_bool("Requirements", False, slot):
            verdict.job_refuses += 1
        elif not _takes(slot, job):
            verdict.slot_refuses += 1
            refusing.append(slot)
        else:
            matching.append(slot)
            user = slot.get_str("RemoteOwner") or slot.get_str("RemoteUser")
            if not user and slot.get_bool("Offline"):
                verdict.asleep += 1
            elif not user:
                verdict.available += 1
            elif user.partition("@")[0] == job.get_str("Owner"):
                verdict.runs_mine += 1
            else:
                verdict.runs_others += 1
    return verdict, matching, refusing


def _name(job: ClassAd) -> str:
    return f"{job.get_int('ClusterId')}.{job.get_int('ProcId'):03}"


def _job(job: ClassAd, slots: list[ClassAd], is_verbose: bool) -> Iterator[str]:
    name = _name(job)
    requirements = job.expression("Requirements")
    yield f"The Requirements expression for job {name} is\n\n    {requirements}\n\n"
    tallies = explain_many(job, slots)
    yield _attributes(job, name)
    yield f"The Requirements expression for job {name} reduces to these conditions:\n\n"
    yield _steps(tallies)
    verdict, matching, refusing = _verdict(job, slots)
    yield _why_not(job, name)
    yield _gang(job, slots)
    yield (
        f"\n{name}:  Run analysis summary ignoring user priority.  Of {len(slots)} machines,\n"
        f"  {verdict.job_refuses:>5} are rejected by your job's requirements\n"
        f"  {verdict.slot_refuses:>5} reject your job because of their own requirements\n"
        f"  {verdict.runs_mine:>5} match and are already running your jobs\n"
        f"  {verdict.runs_others:>5} match but are serving other users\n"
        + (f"  {verdict.asleep:>5} match, and their machines sleep\n" if verdict.asleep else "")
        + f"  {verdict.available:>5} are able to run your job\n\n"
    )
    if not matching:
        yield _advice(tallies, refusing, job, len(slots))
    if is_verbose:
        for title, some in (("match", matching), ("refuse the job themselves", refusing)):
            if some:
                yield f"Slots that {title}: {', '.join(slot.get_str('Name') for slot in some[:10])}\n"


def _gang(job: ClassAd, slots: list[ClassAd]) -> str:
    """How far a job of several machines is, and whether the pool has enough for it at all."""
    if not is_gang(job) or job.get_int("JobStatus") == JobStatus.RUNNING:
        return ""
    groups = groups_of(job)
    size = sum(group.size for group in groups)
    out = f"\nIts {size} nodes begin together; {job.get_int('GangClaims')} of their machines are gathered now.\n"
    for number, group in enumerate(groups):
        ad = ClassAd.from_bytes(job.to_bytes() + group.text)
        places = sum(_places(ad, slot) for slot in _verdict(ad, slots)[1])
        what = f"Group {number} of {group.size} nodes" if len(groups) > 1 else f"A gang of {group.size}"
        out += f"{what} has {places} places that match, taken ones among them.\n"
        if places < group.size:
            out += f"WARNING:  It can never begin: {group.size - places} more would have to match.\n"
    return out


def _places(job: ClassAd, slot: ClassAd) -> int:
    """How many nodes a slot has room for."""
    if not slot.get_bool("PartitionableSlot"):
        return 1
    return max(1, slot.get_int("Cpus", 1) // max(1, job.get_int("RequestCpus", 1)))


def _attributes(job: ClassAd, name: str) -> str:
    """The job's own attributes that its requirements look at."""
    tree = job.expression("Requirements")
    if tree is None:
        return ""
    internal, _ = tree.references(job)
    shown = [
        f"    {job.spelling(key)} = {job.expression(key)}"
        for key in sorted(internal)
        if key in job and key != "requirements"
    ]
    if not shown:
        return ""
    return f"Job {name} defines the following attributes:\n\n" + "\n".join(shown) + "\n\n"


def _steps(tallies: list[Tally]) -> str:
    lines = ["         Slots", "Step    Matched  Condition", "-----  --------  ---------"]
    for number, tally in enumerate(tallies):
        lines.append(f"{f'[{number}]':<5}  {tally.accepted:>8}  {tally.text}")
    if len(tallies) > 1:
        lines.append(f"{'all':<5}  {tallies[-1].left:>8}  all conditions together")
    return "\n".join(lines) + "\n"


def _date(when_s: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(when_s)) if 0 < when_s < 1e11 else str(when_s)


def _why_not(job: ClassAd, name: str) -> str:
    status = job.get_int("JobStatus")
    if status == JobStatus.HELD:
        return f"\n{name}:  Job is held.\n\nHold reason: {job.get_str('HoldReason')}\n"
    if status in _WHY_NOT:
        problem = standing_problem(job) if status == JobStatus.RUNNING else ""
        unsaved = (f"\nIt could not be checkpointed at {_date(int(job.get_float('LastCkptProblemTime')))}: {problem}.  "
                   f"{_last_checkpoint(job)}\n") if problem else ""
        return f"\n{name}:  {_WHY_NOT[status]}\n{unsaved}"
    begins_s = job.evaluate("DeferralTime")
    if isinstance(begins_s, int) and not isinstance(begins_s, bool):
        offered_s = begins_s - job.get_int("DeferralPrepTime", 300)
        if offered_s > time.time():
            return (f"\n{name}:  Job waits for its time: it begins at {_date(begins_s)} (DeferralTime), and is matched "
                    f"from {_date(offered_s)} on.\n")
    reason = job.get_str("LastRejMatchReason")
    if reason:
        return f"\nReason for last match failure: {reason}\n"
    if job.get_int("LastMatchTime"):
        return "\nLast successful match recorded.\n"
    return "\nNo successful match recorded.\n"


def _last_checkpoint(job: ClassAd) -> str:
    when_s = job.get_int("LastCkptTime")
    return (f"Its last checkpoint is of {_date(when_s)}." if when_s
            else "It has none: on another machine it would begin anew.")


def _advice(tallies: list[Tally], refusing: list[ClassAd], job: ClassAd, count: int) -> str:
    if not count:
        return "WARNING:  Be advised:\n   There are no machines in the pool.\n\n"
    out = "WARNING:  Be advised:\n   No machines matched the jobs's constraints\n\n"
    guilty = [(number, tally) for number, tally in enumerate(tallies) if not tally.accepted]
    if not guilty:
        guilty = [(number, tally) for number, tally in enumerate(tallies) if tally.without and not tallies[-1].left]
    for number, tally in guilty:
        without = f"; without it {tally.without} slots would match" if tally.without else ""
        out += f"   Condition [{number}] accepts {tally.accepted} of {count} slots{without}\n"
        if tally.remedy:
            out += f"       it would accept the nearest one if {tally.remedy}\n"
    if refusing:
        theirs = explain_many(refusing[0], [job])
        out += f"   {len(refusing)} slots refuse the job; {refusing[0].get_str('Name')} because of\n"
        for tally in theirs:
            if not tally.accepted:
                out += (
                    f"       {tally.text}" + (f"  (it would accept if {tally.remedy})" if tally.remedy else "") + "\n"
                )
    return out + "\n"


def _summary(slots: list[ClassAd], jobs: list[ClassAd]) -> Iterator[str]:
    yield f"Analyzing matches for {len(slots)} slots\n"
    yield "            Matches    Machine     Running  Serving\n"
    yield " JobId       Reqmnts    Rejects    Your Job Other User Avail Owner\n"
    yield "---------- ---------- ---------- ---------- ---------- ----- -----\n"
    for job in jobs:
        verdict, _, _ = _verdict(job, slots)
        yield (
            f"{job.get_int('ClusterId')}.{job.get_int('ProcId')}".ljust(10)
            + f" {len(slots) - verdict.job_refuses:>10} {verdict.slot_refuses:>10} {verdict.runs_mine:>10} "
            f"{verdict.runs_others:>10} {verdict.available:>5} {job.get_str('Owner')}\n"
        )


def _reverse(slots: list[ClassAd], jobs: list[ClassAd], is_summary: bool) -> Iterator[str]:
    """Machines' requirements against the jobs."""
    if is_summary:
        yield f"Analyzing matches for {len(jobs)} jobs\n"
        yield "Slot                     Accepts    Wanted by\n------------------------ ---------- ----------\n"
        for slot in slots:
            accepts = sum(slot.get_bool("Requirements", True, job) for job in jobs)
            wanted = sum(job.get_bool("Requirements", False, slot) for job in jobs)
            yield f"{slot.get_str('Name'):<24} {accepts:>10} {wanted:>10}\n"
        return
    for slot in slots:
        name = slot.get_str("Name")
        yield f"The Requirements expression for machine {name} is\n\n    {slot.expression('Requirements')}\n\n"
        tallies = explain_many(slot, jobs)
        yield f"It reduces to these conditions, tried on {len(jobs)} jobs:\n\n"
        yield _steps(tallies).replace("Slots", " Jobs") + "\n"
