"""Why a machine runs nothing, or no more than it does: one paragraph in plain words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from condor_actors.classads import ClassAd
from condor_actors.classads.matching.explain import explain_many
from condor_actors.cores.answers.waiting import user_of
from condor_actors.cores.answers.words import counted, listed, span_text

__all__ = ["why_it_does_nothing"]

SHOWN = 3


def why_it_does_nothing(slots: Sequence[ClassAd], waiting: Sequence[ClassAd], waiting_in_all: int, now_s: float) -> str:
    """The paragraph.

    Args:
        slots: the ads of all slots of one machine, at least one.
        waiting: idle jobs of the pool, of each kind one or some.
        waiting_in_all: how many jobs are idle in the pool.
        now_s: the time.
    """
    machine = slots[0].get_str("Machine") or slots[0].get_str("Name")
    if any(slot.get_bool("Offline") for slot in slots):
        return f"{machine} sleeps: it is woken when a job wants it."
    if any(slot.get_bool("Draining") for slot in slots):
        why = slots[0].get_str("DrainReason")
        return (f"{machine} is being drained{f' ({why})' if why else ''}: it takes no jobs. condor_drain -cancel "
                f"{machine} ends that.")
    running = [slot for slot in slots if user_of(slot) and not slot.get_bool("PartitionableSlot")]
    said = ""
    if running:
        users = Counter(user_of(slot) for slot in running)
        whose = [f"{count} of {user}" for user, count in users.most_common(SHOWN)]
        said = f"{machine} runs {counted(len(running), 'job')}: {listed(whose)}. "
    rest = [slot for slot in slots if slot not in running]
    free = [slot for slot in rest if slot.get_int("Cpus", 1) > 0]
    if not free:
        return said + "All its cores are in use."
    at_work = [slot for slot in free if slot.get_str("State") == "Owner"]
    if len(at_work) == len(free):
        return said + _owner(machine, at_work[0], bool(running))
    if not waiting_in_all:
        return said + f"{'The rest of it' if running else machine} is free, and nobody in the pool has an idle job."
    return said + _nobody_fits([slot for slot in free if slot not in at_work], waiting, waiting_in_all, machine)


def _owner(machine: str, slot: ClassAd, is_part: bool) -> str:
    """Its owner's policy lets no job in."""
    view = slot.copy()
    view.insert_text("Requirements", "Start")
    found = [each for each in explain_many(view, [ClassAd()]) if not each.accepted]
    used_s, load = slot.get_int("KeyboardIdle"), slot.get_float("LoadAvg") - slot.get_float("CondorLoadAvg")
    said = (f"{'The rest of it' if is_part else machine} is its owner's now: used {span_text(used_s)} ago, with a load "
            f"of {max(load, 0.0):.1f} that is not of jobs")
    if found:
        said += ". It takes jobs when " + listed([each.remedy or each.text for each in found[:SHOWN]])
    return said + f". condor_policy check -machine {machine} shows what its rules make of it."


def _nobody_fits(free: Sequence[ClassAd], waiting: Sequence[ClassAd], in_all: int, machine: str) -> str:
    """There is room, and there are jobs."""
    said = f"It has room, and {counted(in_all, 'job')} wait{'s' if in_all == 1 else ''} in the pool"
    unwanted: Counter[str] = Counter()
    unwilling: Counter[str] = Counter()
    fitting = []
    for job in waiting:
        mine = [slot for slot in free if job.get_bool("Requirements", False, slot)]
        if any(slot.get_bool("Requirements", True, job) and slot.get_bool("Start", True, job) for slot in mine):
            fitting.append(job)
        elif mine:
            unwilling[_first(mine[0], job, "Start")] += 1
        else:
            unwanted[_first(job, free[0], "Requirements")] += 1
    if fitting:
        names = [f"{job.get_int('ClusterId')}.{job.get_int('ProcId')} of {job.get_str('Owner')}"
                 for job in fitting[:SHOWN]]
        return (f"{said}; it would suit some of them ({listed(names)}): they get it in the next negotiation, or wait "
                "for their turn (condor_q -better-analyze says which).")
    if not waiting:
        return said + "; which of them would suit cannot be said: their queues do not answer."
    parts = [f"{counted(count, 'kind')} of job {'wants' if count == 1 else 'want'} {text}" for text, count in
             unwanted.most_common(SHOWN)]
    parts += [f"{counted(count, 'kind')} of job {'is' if count == 1 else 'are'} not let in by {text}" for text, count in
              unwilling.most_common(SHOWN)]
    return f"{said}; none fits: {listed(parts)}."


def _first(my: ClassAd, other: ClassAd, attribute: str) -> str:
    """The first condition of an ad that another does not meet."""
    view = my.copy()
    if attribute != "Requirements":
        view.insert_text("Requirements", attribute)
    refused = [each for each in explain_many(view, [other]) if not each.accepted]
    return (refused[0].remedy or refused[0].text) if refused else "something else"
