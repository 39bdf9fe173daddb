"""Why an idle job waits: one paragraph in plain words.

Theory: what stands in the way is looked for in the order in which the pool itself decides, and the first thing that is
true is told: its time has not come; there is no machine; none that the job wants; none that wants the job; all of these
are taken; some are free and the negotiator gave them to nobody, for the reason that it has said.  Each comes with the
nearest change that would help.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

import attrs

from condor_actors.classads import ClassAd
from condor_actors.classads.matching.explain import Tally, explain_many
from condor_actors.cores.answers.words import counted, listed, span_text

__all__ = ["Fits", "PoolFacts", "fits_of", "why_it_waits"]

SHOWN = 3
_WANTED = "MachineLastMatchTime"
_LONG_S = 900.0
"""A machine that was asked for so long ago, and still sleeps, may not wake at all."""
_AMOUNTS = {
    "memory": ("RequestMemory", "MB of memory", "request_memory"), "cpus": ("RequestCpus", "cores", "request_cpus"),
    "disk": ("RequestDisk", "KB of disk", "request_disk"), "gpus": ("RequestGPUs", "GPUs", "request_gpus"),
}
"""What a slot has of it, what a job asks for, the unit, and the submit command."""


@attrs.frozen(kw_only=True)
class PoolFacts:
    """What is known of the pool.

    Attributes:
        slots: the ads of all slots, partitionable ones as they would be without their jobs.
        trace: the negotiator's word on the job's request; None: it has said none.
        priorities: submitter to effective priority; the smaller is served first.
        cycle_s: how often the negotiator looks at the latest.
        now_s: the time.
    """

    slots: Sequence[ClassAd]
    trace: ClassAd | None = None
    priorities: Mapping[str, float] = attrs.field(factory=dict)
    cycle_s: float
    now_s: float


@attrs.define
class Fits:
    """The slots of a pool, sorted by what they and a job say to each other.

    Attributes:
        unwanted: the job does not want them.
        unwilling: they do not want the job.
        taken: both agree, and another user's job or one of this user's runs there.
        asleep: both agree, and the machine sleeps.
        free: both agree.
    """

    unwanted: list[ClassAd] = attrs.field(factory=list)
    unwilling: list[ClassAd] = attrs.field(factory=list)
    taken: list[ClassAd] = attrs.field(factory=list)
    asleep: list[ClassAd] = attrs.field(factory=list)
    free: list[ClassAd] = attrs.field(factory=list)


def fits_of(job: ClassAd, slots: Sequence[ClassAd]) -> Fits:
    """Sort slots by what they and a job say to each other."""
    fits = Fits()
    for slot in slots:
        if not job.get_bool("Requirements", False, slot):
            fits.unwanted.append(slot)
        elif not slot.get_bool("Requirements", True, job) or not slot.get_bool("Start", True, job):
            fits.unwilling.append(slot)
        elif user_of(slot):
            fits.taken.append(slot)
        elif slot.get_bool("Offline"):
            fits.asleep.append(slot)
        else:
            fits.free.append(slot)
    return fits


def user_of(slot: ClassAd) -> str:
    """Who has a slot; empty: nobody."""
    return slot.get_str("RemoteOwner") or slot.get_str("RemoteUser")


def why_it_waits(job: ClassAd, facts: PoolFacts) -> str:
    """The paragraph."""
    begins_s = job.evaluate("DeferralTime")
    if isinstance(begins_s, int) and not isinstance(begins_s, bool):
        offered_s = begins_s - job.get_int("DeferralPrepTime", 300)
        if offered_s > facts.now_s:
            return (f"It waits for its time: it is to begin at {_date(begins_s)}, and no machine is looked for before "
                    f"{_date(offered_s)}.")
    if not facts.slots:
        return "The pool has no machine now: its collector knows of none. condor_status shows them when there are some."
    fits = fits_of(job, facts.slots)
    if fits.free:
        return _nobody_gave_it(job, fits, facts)
    if fits.asleep:
        return _asleep(job, fits, facts)
    if fits.taken:
        return _all_taken(job, fits, facts)
    if fits.unwilling:
        return _unwilling(job, fits)
    return _unwanted(job, facts.slots)


# ---- nothing fits


def _unwanted(job: ClassAd, slots: Sequence[ClassAd]) -> str:
    """The job wants none of the slots."""
    said = f"None of the {counted(len(slots), 'slot')} of the pool is what it asks for. "
    too_much = [text for name in _AMOUNTS if (text := _too_much(job, slots, name))]
    if too_much:
        return said + " ".join(too_much)
    tallies = explain_many(job, slots)
    guilty = [each for each in tallies if not each.accepted]
    if guilty:
        return said + " ".join(_clause(each) for each in guilty[:SHOWN])
    return said + _together(tallies)


def _too_much(job: ClassAd, slots: Sequence[ClassAd], name: str) -> str:
    """Of one amount it wants more than any machine has."""
    attribute, unit, command = _AMOUNTS[name]
    wanted = job.evaluate(attribute)
    has = [amount for slot in slots if isinstance(amount := slot.evaluate(name), (int, float))
           and not isinstance(amount, bool)]
    if isinstance(wanted, bool) or not isinstance(wanted, (int, float)) or not has or wanted <= max(has):
        return ""
    most = max(has)
    if not most:
        return f"It asks for {_number(wanted)} {unit} ({command}), and no machine has any."
    return (f"It asks for {_number(wanted)} {unit} ({command}), and the largest slot has {_number(most)}: "
            f"condor_qedit {_name(job)} {attribute} {_number(most)} would let it match, if it can do with that.")


def _clause(tally: Tally) -> str:
    change = f", which would be so if {tally.remedy}" if tally.remedy else ""
    return f"It requires {tally.text}{change}."


def _together(tallies: Sequence[Tally]) -> str:
    """Each condition is met somewhere, and all of them nowhere."""
    best = max(tallies, key=lambda each: each.without, default=None)
    if best is None or not best.without:
        return "Each of its conditions is met by some of them, and all together by none."
    change = f" ({best.remedy})" if best.remedy else ""
    return (f"Each of its conditions is met by some of them, and all together by none: without {best.text}{change} "
            f"{counted(best.without, 'slot')} would do.")


def _unwilling(job: ClassAd, fits: Fits) -> str:
    """The slots that it wants do not want it."""
    at_work = [slot for slot in fits.unwilling if slot.get_str("State") == "Owner"]
    said = f"{counted(len(fits.unwilling), 'slot')} would suit it and may not take it now"
    if len(at_work) == len(fits.unwilling):
        idle = [slot.get_int("KeyboardIdle") for slot in at_work]
        said += (f": the machines are their owners' at the moment, used {span_text(min(idle))} ago at the latest. It "
                 "begins when an owner has been away as long as that machine's START asks for")
    guilty = _guilty(job, fits.unwilling[0])
    if guilty:
        said += f". {fits.unwilling[0].get_str('Name')} says {guilty}"
    return said + ". condor_policy check -machine NAME shows what a machine's rules make of it."


def _guilty(job: ClassAd, slot: ClassAd) -> str:
    """Which conditions of a slot a job does not meet."""
    attribute = "Requirements" if not slot.get_bool("Requirements", True, job) else "Start"
    view = slot.copy()
    if attribute == "Start":
        view.insert_text("Requirements", "Start")
    found = [each for each in explain_many(view, [job]) if not each.accepted]
    return listed([f"{each.text}" + (f" ({each.remedy})" if each.remedy and each.remedy != each.text else "")
                   for each in found[:SHOWN]])


# ---- all taken


def _all_taken(job: ClassAd, fits: Fits, facts: PoolFacts) -> str:
    mine = job.get_str("User") or job.get_str("Owner")
    users = Counter(user_of(slot) for slot in fits.taken)
    whose = [f"{count} of {'yours' if user == mine else user}" for user, count in users.most_common(SHOWN)]
    rest = len(users) - len(whose)
    said = (f"{counted(len(fits.taken), 'slot')} would suit it, and every one runs another job: "
            f"{listed(whose + ([f'those of {rest} more users'] if rest > 0 else []))}. ")
    ending = sum(slot.get_str("Activity") in ("Retiring", "Vacating") for slot in fits.taken)
    if ending:
        said += f"{counted(ending, 'slot')} of them {'is' if ending == 1 else 'are'} being given up now. "
    return said + _rank_among(mine, users, facts) + _said_by_negotiator(facts)


def _rank_among(mine: str, users: Counter[str], facts: PoolFacts) -> str:
    """Whether it is next."""
    own = facts.priorities.get(mine)
    if own is None:
        return ""
    waiting = sorted(user for user in users if user != mine and facts.priorities.get(user, own) < own)
    if not waiting:
        return (f"Your priority ({own:.2f}; smaller is better) is the best of those who run jobs there, so you are "
                "among the first served when a slot comes free. ")
    better = listed([f"{user} ({facts.priorities[user]:.2f})" for user in waiting[:SHOWN]])
    return f"Your priority is {own:.2f}, and smaller is better: {better} come before you. "


# ---- some sleep


def _asleep(job: ClassAd, fits: Fits, facts: PoolFacts) -> str:
    """Machines sleep that would do; whether one of them is being woken, its ad says."""
    whose = "whose machine sleeps" if len(fits.asleep) == 1 else "whose machines sleep"
    said = f"{counted(len(fits.asleep), 'slot')} {whose} would suit it"
    said += ", and every other one runs a job. " if fits.taken else ". "
    since_s = max(job.get_int("QDate"), job.get_int("EnteredCurrentStatus"))
    wanted = sorted((slot for slot in fits.asleep if slot.get_int(_WANTED) >= since_s),
                    key=lambda slot: (-slot.get_int(_WANTED), slot.get_str("Name")))
    if not wanted:
        return said + ("None of them has been asked for since it waits: the negotiator asks for one when it finds no "
                       f"machine that is awake, within {span_text(facts.cycle_s)}.")
    machines = list(dict.fromkeys(slot.get_str("Machine") or slot.get_str("Name") for slot in wanted))
    last_s = facts.now_s - wanted[0].get_int(_WANTED)
    are = "is" if len(machines) == 1 else "are"
    said += (f"{listed(machines[:SHOWN])} {are} being woken for waiting jobs, asked for {span_text(last_s)} ago: "
             "the pool's rooster sends the packets (ROOSTER_INTERVAL)")
    if last_s > _LONG_S:
        said += ". That takes long: is there a rooster (condor_status -any), and what does its log (RoosterLog) say"
    return said + "."


# ---- some are free


def _nobody_gave_it(job: ClassAd, fits: Fits, facts: PoolFacts) -> str:
    are = "is" if len(fits.free) == 1 else "are"
    said = f"{counted(len(fits.free), 'slot')} would suit it and {are} free"
    since_s = max(job.get_int("QDate"), job.get_int("EnteredCurrentStatus"))
    matched_s, refused_s = job.get_int("LastMatchTime"), job.get_int("LastRejMatchTime")
    if job.get_int("NumFailedStarts"):
        return (f"{said}; its last {counted(job.get_int('NumFailedStarts'), 'start')} failed, so it is tried again "
                "after a pause that grows with each failure. The log of the job says what failed.")
    if max(matched_s, refused_s) < since_s and facts.trace is None:
        return (f"{said}; the negotiator has not looked at it yet. It looks within "
                f"{span_text(facts.cycle_s)}; condor_reschedule asks it to look now.")
    if matched_s > refused_s:
        return f"{said}; one was found for it {span_text(facts.now_s - matched_s)} ago, and it is about to begin."
    reason = _reason(job, facts)
    when = f" {span_text(facts.now_s - refused_s)} ago" if refused_s else ""
    if not reason:
        return f"{said}; the negotiator, which looked at it{when}, has given no reason why it got none."
    return f"{said} now; when the negotiator looked at it{when} it got none: {reason}. It looks again soon."


def _reason(job: ClassAd, facts: PoolFacts) -> str:
    return (facts.trace.get_str("Reason") if facts.trace is not None else "") or job.get_str("LastRejMatchReason")


def _said_by_negotiator(facts: PoolFacts) -> str:
    reason = facts.trace.get_str("Reason") if facts.trace is not None else ""
    return f"The negotiator's last word: {reason}." if reason else ""


def _name(job: ClassAd) -> str:
    return f"{job.get_int('ClusterId')}.{job.get_int('ProcId')}"


def _number(value: float) -> str:
    return f"{value:g}" if value < 1e6 else f"{value:.0f}"


def _date(when_s: float) -> str:
    if not 0 < when_s < 1e11:
        return str(when_s)
    return datetime.fromtimestamp(when_s).strftime("%Y-%m-%d %H:%M:%S")
