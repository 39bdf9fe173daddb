"""The tables of condor_q: batches, one line a job, and the totals below them.

Widths and words follow HTCondor's, which programs parse.  **Source**: the manual, condor_q, "Output".
"""

from __future__ import annotations

import os.path
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from condor_actors import records
from condor_actors.classads import ClassAd
from condor_actors.messages.job_codes import JobStatus, Universe
from condor_actors.tools.printing.formats import elapsed, shown

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any

COUNTED = ("completed", "removed", "idle", "running", "held", "suspended")
_STATUS_OF = {
    "completed": (JobStatus.COMPLETED,), "removed": (JobStatus.REMOVED,), "idle": (JobStatus.IDLE,),
    "running": (JobStatus.RUNNING, JobStatus.TRANSFERRING_OUTPUT), "held": (JobStatus.HELD,),
    "suspended": (JobStatus.SUSPENDED,),
}
_TIMES = ("RemoteWallClockTime", "LastRemoteWallClockTime", "JobCurrentStartDate", "ShadowBday", "EnteredCurrentStatus")
_WITH_A_RUN = (JobStatus.RUNNING, JobStatus.TRANSFERRING_OUTPUT, JobStatus.SUSPENDED)
_LETTERS: dict[int, str] = {
    0: "U", JobStatus.IDLE: "I", JobStatus.RUNNING: "R", JobStatus.REMOVED: "X", JobStatus.COMPLETED: "C",
    JobStatus.HELD: "H", JobStatus.TRANSFERRING_OUTPUT: ">", JobStatus.SUSPENDED: "S",
}
_BATCH_HEADS = ("  DONE", "  RUN ", "  IDLE", "  HOLD", " TOTAL")

AUTOCLUSTERS = """SELECT NOSUMMARY
  AutoClusterId AS '   ID' WIDTH 5 RIGHT
  JobCount AS COUNT WIDTH 5 RIGHT
  JobUniverse AS UNIVERSE WIDTH -8 PRINTAS JOB_UNIVERSE OR ??
  RequestCpus AS CPUS WIDTH 4 OR ??
  RequestMemory AS MEMORY WIDTH 6 OR ??
  RequestDisk AS '    DISK' WIDTH 8 OR ??
  Requirements AS REQUIREMENTS PRINTF %r
"""
"""The table of ``condor_q -autocluster``."""

FACTORIES = """SELECT NOSUMMARY
  ClusterId AS ' ID' NOSUFFIX WIDTH 5 PRINTF '%4d.'
  ProcId AS ' ' NOPREFIX WIDTH 3 PRINTF '%-3d' OR ' '
  Owner AS OWNER WIDTH -14 OR ??
  QDate AS '  SUBMITTED' WIDTH 11 PRINTAS QDATE
  JobMaterializeLimit AS ' LIMIT' WIDTH 6 PRINTF %6d
  JobsPresent AS PRESNT WIDTH 6 PRINTF %6d
  JobsRunning AS '  RUN ' WIDTH 6 PRINTF %6d
  JobsIdle AS '  IDLE' WIDTH 6 PRINTF %6d
  JobsHeld AS '  HOLD' WIDTH 6 PRINTF %6d
  JobMaterializeNextProcId AS NEXTID WIDTH 6 PRINTF %6d
  JobMaterializePaused AS MODE WIDTH 4 PRINTAS JOB_FACTORY_MODE
  JobMaterializeDigestFile AS DIGEST
"""
"""The table of ``condor_q -factory``."""

JOB_SETS = """SELECT NOSUMMARY
  JobSetId AS JOBSETID WIDTH 8 PRINTF %8d
  JobSetName AS NAME WIDTH AUTO
  Owner AS OWNER WIDTH AUTO PRINTAS OWNER OR ??
  NumCompleted AS COMPLETE WIDTH 8 PRINTF %8d
  NumRemoved AS REMOVED WIDTH 7 PRINTF %7d
  NumIdle AS '   IDLE' WIDTH 7 PRINTF %7d
  NumRunning AS RUNNING WIDTH 7 PRINTF %7d
  NumHeld AS '   HELD' WIDTH 7 PRINTF %7d
"""
"""The table of ``condor_q -jobset``."""


def header(name: str, address: str, now_s: float) -> str:
    """The line that says whose queue this is, and when it was looked at."""
    short, question, _ = address.partition("?")
    if question:
        short += "?..."
    return f"\n\n-- Schedd: {name} : {short} @ {time.strftime('%m/%d/%y %H:%M:%S', time.localtime(now_s))}\n"


def day(value: Any) -> str:
    """Seconds since 1970 as ``MM/DD HH:MM`` in eleven columns."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        return "    ???    "
    moment = time.localtime(value)
    return f"{moment.tm_mon:2}/{moment.tm_mday:<2} {moment.tm_hour:02}:{moment.tm_min:02}"


def total_line(counts: Mapping[int, int]) -> str:
    """``N jobs; N completed, …`` of counts by JobStatus."""
    parts = [f"{sum(counts.get(status, 0) for status in _STATUS_OF[word])} {word}" for word in COUNTED]
    return f"{sum(counts.values())} jobs; {', '.join(parts)}"


def totals(query: Mapping[int, int], everybody: Mapping[int, int], mine: tuple[str, Mapping[int, int]] | None) -> str:
    """The lines below a table."""
    lines = [f"Total for query: {total_line(query)} "]
    if mine is not None:
        lines.append(f"Total for {mine[0]}: {total_line(mine[1])} ")
    lines.append(f"Total for all users: {total_line(everybody)}")
    return "\n" + "\n".join(lines) + "\n\n"


def summary_ad(query: Mapping[int, int], everybody: Mapping[int, int], me: str, mine: Mapping[int, int]) -> ClassAd:
    """The totals as an ad, for ``-totals -json``."""
    ad = ClassAd({"MyType": "Summary"})
    for prefix, counts in (("", query), ("Allusers", everybody), ("My", mine if me else None)):
        if counts is None:
            continue
        for word in COUNTED:
            ad[prefix + word.capitalize()] = sum(counts.get(status, 0) for status in _STATUS_OF[word])
            if word != "suspended":
                ad[f"{prefix}Scheduler{word.capitalize()}"] = 0
        ad[prefix + "Jobs"] = sum(counts.values())
        ad[prefix + "SchedulerJobs"] = 0
    if me:
        ad["MyName"] = me
    return ad


def count_by_status(ads: Iterable[ClassAd]) -> dict[int, int]:
    """How many ads have which JobStatus."""
    counts: dict[int, int] = {}
    for ad in ads:
        status = ad.get_int("JobStatus")
        counts[status] = counts.get(status, 0) + 1
    return counts


# -- batches

_BATCH_COUNTS = ("Done", "Run", "Idle", "Hold", "Suspended", "Removed", "Total")


def batches_of(ads: Iterable[ClassAd]) -> list[ClassAd]:
    """Group job ads into the lines of the batch view; a workflow's own job says how many of its nodes are done."""
    groups: dict[tuple[str, str], list[ClassAd]] = {}
    for ad in ads:
        name = ad.get_str("JobBatchName") or f"\0{ad.get_int('ClusterId')}"
        groups.setdefault((ad.get_str("Owner"), name), []).append(ad)
    return [_batch(owner, name, members) for (owner, name), members in groups.items()]


def _batch(owner: str, name: str, members: Sequence[ClassAd]) -> ClassAd:
    workflows = [ad for ad in members if ad.get_int("DAG_NodesTotal", -1) >= 0]
    of_workflows = {ad.get_int("ClusterId") for ad in workflows}
    jobs = [ad for ad in members if ad.get_int("ClusterId") not in of_workflows]
    own = [ad for ad in jobs if ad.get_int("DAGManJobId") not in of_workflows]
    counts, own_counts = count_by_status(jobs), count_by_status(own)
    totals_by_cluster = {ad.get_int("ClusterId"): ad.get_int("TotalSubmitProcs") for ad in own}
    total = max(sum(totals_by_cluster.values()), len(own))
    done = total - len(own) + own_counts.get(JobStatus.COMPLETED, 0)
    for ad in workflows:
        if ad.get_int("DAGManJobId") not in of_workflows:
            total, done = total + ad.get_int("DAG_NodesTotal"), done + ad.get_int("DAG_NodesDone")
    ids = sorted((ad.get_int("ClusterId"), ad.get_int("ProcId")) for ad in jobs or workflows)
    first, last = ids[0], ids[-1]
    if first == last:
        text = f"{first[0]}.{first[1]}"
    elif first[0] == last[0]:
        text = f"{first[0]}.{first[1]}-{last[1]}"
    else:
        text = f"{first[0]}.{first[1]} ... {last[0]}.{last[1]}"
    batch = ClassAd(
        {
            "Owner": owner, "ClusterId": first[0], "QDate": min(ad.get_int("QDate") for ad in members), "Done": done,
            "Run": sum(counts.get(status, 0) for status in _WITH_A_RUN),
            "Idle": counts.get(JobStatus.IDLE, 0), "Hold": counts.get(JobStatus.HELD, 0), "Total": total,
            "JobIds": text,
        }
    )  # fmt: skip
    if not name.startswith("\0"):
        batch["JobBatchName"] = name
    return batch


def joined_batches(parts: Iterable[ClassAd]) -> list[ClassAd]:
    """The lines of the batch view, of which the parts come page by page: a batch has one line."""
    joined: dict[tuple[str, str], ClassAd] = {}
    for part in parts:
        key = (part.get_str("Owner"), part.get_str("JobBatchName") or f"\0{part.get_int('ClusterId')}")
        batch = joined.setdefault(key, part)
        if batch is not part:
            for name in _BATCH_COUNTS:
                batch[name] = batch.get_int(name) + part.get_int(name)
            first = batch.get_str("JobIds").partition(" ... ")[0].partition("-")[0]
            cluster, _, procs = part.get_str("JobIds").rpartition(" ... ")[2].partition(".")
            batch["JobIds"] = f"{first} ... {cluster}.{procs.rpartition('-')[2]}"
    return list(joined.values())


def batch_table(batches: Sequence[ClassAd]) -> str:
    """The default view: one line a batch.  The HOLD column stands only where something is held, or nothing is shown."""
    names = [batch.get_str("JobBatchName") or f"ID: {batch.get_int('ClusterId')}" for batch in batches]
    owner_width = max([5, *(len(batch.get_str("Owner")) for batch in batches)])
    name_width = max([10, *map(len, names)]) if batches else 12
    with_hold = not batches or any(batch.get_int("Hold") for batch in batches)
    heads = [head for head in _BATCH_HEADS if with_hold or head != "  HOLD"]
    columns = [column for column in ("Done", "Run", "Idle", "Hold", "Total") if with_hold or column != "Hold"]
    lines = [f"{'OWNER':<{owner_width}} {'BATCH_NAME':<{name_width}}    SUBMITTED {' '.join(heads)} JOB_IDS"]
    for batch, name in zip(batches, names, strict=True):
        counts = " ".join(f"{batch.get_int(column) or '_':>6}" for column in columns)
        lines.append(
            f"{batch.get_str('Owner'):<{owner_width}} {name:<{name_width}} {day(batch.evaluate('QDate')):>12} "
            f"{counts} {batch.get_str('JobIds')}"
        )
    return "\n".join(lines) + "\n"


# -- one line a job


@records.frozen
class Column:
    """A column: its head, how a cell is made, its width (negative: left-aligned; 0: as it comes)."""

    head: str
    cell: Callable[[ClassAd, float], str]
    width: int


def _id(ad: ClassAd, _: float) -> str:
    return f"{ad.get_int('ClusterId'):4}.{ad.get_int('ProcId'):<3}"


def run_time(ad: ClassAd, now_s: float) -> str:
    """Wall-clock time of the current run, of the last one when the job does not run."""
    current_s = _current_run_s(ad, now_s)
    return elapsed(ad.get_float("LastRemoteWallClockTime", _past_s(ad)) if current_s is None else current_s)


def cumulative_time(ad: ClassAd, now_s: float) -> str:
    """Wall-clock time of all runs, the current one among them."""
    return elapsed(_past_s(ad) + (_current_run_s(ad, now_s) or 0.0))


def _past_s(ad: ClassAd) -> float:
    return ad.get_float("RemoteWallClockTime")


def _current_run_s(ad: ClassAd, now_s: float) -> float | None:
    """How long a job has been running; None: it does not run, or nobody knows since when."""
    if ad.get_int("JobStatus") not in _WITH_A_RUN:
        return None
    born = ad.get_int("JobCurrentStartDate") or ad.get_int("ShadowBday") or ad.get_int("EnteredCurrentStatus")
    return max(now_s - born, 0.0) if born else None


def size_mib(ad: ClassAd, _: float = 0.0) -> str:
    """Memory in use in MiB."""
    memory = ad.evaluate("MemoryUsage")
    if isinstance(memory, (int, float)) and not isinstance(memory, bool):
        return f"{float(memory):.1f}"
    return f"{ad.get_int('ImageSize') / 1024:.1f}"


def command(ad: ClassAd, _: float = 0.0) -> str:
    """What the job runs: its description, or the program's name with its arguments."""
    description = ad.get_str("JobDescription")
    if description:
        return f"({description})"
    words = os.path.basename(ad.get_str("Cmd"))
    arguments = ad.get_str("Args") or ad.get_str("Arguments")
    return f"{words} {arguments}" if arguments else words


def state(ad: ClassAd, _: float = 0.0) -> str:
    """The letters of the ST column."""
    if ad.get_bool("TransferringInput"):
        return "<q" if ad.get_bool("TransferQueued") else "<"
    if ad.get_bool("TransferringOutput"):
        return "q>" if ad.get_bool("TransferQueued") else ">"
    status = ad.get_int("JobStatus")
    if status == JobStatus.IDLE and ad.get_int("JobCoolDownExpiration") > time.time():
        return "Ic"
    return _LETTERS.get(status, "?")


def _text(name: str, missing: str = "") -> Callable[[ClassAd, float], str]:
    def cell(ad: ClassAd, _: float) -> str:
        return shown(ad.evaluate(name)) if name in ad else missing

    return cell


def _code(ad: ClassAd, _: float) -> str:
    code = ad.get_int("HoldReasonCode") if "HoldReasonCode" in ad else "?"
    return f"{code:>4}/{ad.get_int('HoldReasonSubCode'):<3}"


def _cpu_time(ad: ClassAd, _: float) -> str:
    return elapsed(ad.get_float("RemoteUserCpu"))


def _grid_resource(ad: ClassAd, _: float) -> str:
    """The kind of a grid resource, its manager, and where it is."""
    words = ad.get_str("GridResource").split()
    return f"{words[0]}->{words[1] if len(words) > 1 else '[?]'}   {' '.join(words[2:]) or '-'}" if words else "[?]"


def _bytes(name: str) -> Callable[[ClassAd, float], str]:
    def cell(ad: ClassAd, _: float) -> str:
        amount = ad.get_float(name)
        for unit in ("B ", "KB", "MB", "GB"):
            if amount < 1024:
                return f"{amount:.1f} {unit}"
            amount /= 1024
        return f"{amount:.1f} TB"

    return cell


_ID = Column(" ID", _id, -8)
_OWNER = Column("OWNER", _text("Owner", "???"), -14)
_SUBMITTED = Column("  SUBMITTED", lambda ad, _: day(ad.evaluate("QDate")), 11)
_RUN_TIME = Column("    RUN_TIME", run_time, 12)
_CUMULATIVE = Column("    RUN_TIME", cumulative_time, 12)
_TAIL = (
    Column("ST", state, -2),
    Column("PRI", _text("JobPrio", "0"), -3),
    Column("SIZE", size_mib, 4),
    Column("CMD", command, 0),
)
VIEWS: dict[str, tuple[Column, ...]] = {
    "default": (_ID, _OWNER, _SUBMITTED, _RUN_TIME, *_TAIL),
    "cputime": (_ID, _OWNER, _SUBMITTED, Column("    CPU_TIME", _cpu_time, 12), *_TAIL),
    "run": (_ID, _OWNER, _SUBMITTED, _RUN_TIME, Column("HOST(S)", _text("RemoteHost", "[????????????????]"), 0)),
    "hold": (
        _ID,
        _OWNER,
        Column("HELD_SINCE", lambda ad, _: day(ad.evaluate("EnteredCurrentStatus")), 11),
        Column("CODE/SUB", _code, -8),
        Column("HOLD_REASON", _text("HoldReason"), 0),
    ),
    "unsaved": (
        _ID,
        _OWNER,
        Column("TRIED      ", lambda ad, _: day(int(ad.get_float("LastCkptProblemTime"))), 11),
        Column("LAST_CKPT  ", lambda ad, _: day(ad.evaluate("LastCkptTime")) if "LastCkptTime" in ad else "never", 11),
        Column("WHY_NOT", _text("LastCkptProblem"), 0),
    ),
    "idle": (
        _ID,
        _OWNER,
        Column("UNIVERSE ", _text("JobUniverse"), -9),
        Column("CPUS", _text("RequestCpus"), 4),
        Column("MEMORY", _text("RequestMemory"), 6),
        Column("STARTS", _text("NumShadowStarts", "0"), 6),
        Column("LAST_HOST", _text("LastRemoteHost"), 0),
    ),
    "grid": (
        _ID,
        _OWNER,
        Column("STATUS", lambda ad, _: ad.get_str("GridJobStatus") or "UNSUBMITTED", -10),
        Column("GRID->MANAGER    HOST", _grid_resource, -27),
        Column("GRID_JOB_ID", lambda ad, _: ad.get_str("GridJobId").rpartition(" ")[2], 0),
    ),
    "io": (
        _ID,
        _OWNER,
        Column("RUNS", _text("NumJobStarts", "0"), 4),
        Column("ST", state, -2),
        Column(" INPUT", _bytes("BytesRecvd"), 9),
        Column(" OUTPUT", _bytes("BytesSent"), 9),
        Column("UNIVERSE", _text("JobUniverse"), 0),
    ),
    "io-standard": (
        _ID,
        _OWNER,
        Column("  READ", _bytes("FileReadBytes"), 9),
        Column(" WRITE", _bytes("FileWriteBytes"), 9),
        Column("SEEK", _text("FileSeekCount", "0"), 5),
        Column("CALLS", _text("NumRemoteSysCalls", "0"), 7),
        Column("CKPTS", _text("NumCkpts", "0"), 5),
        Column("LEVERAGE", _text("Leverage", "-"), 8),
    ),
}


def job_table(ads: Sequence[ClassAd], view: str, now_s: float, is_wide: bool = False, *,
              is_cumulative: bool = False, more: Sequence[Column] = ()) -> str:
    """One line a job, under a line of heads; cut at 80 columns unless ``is_wide``.

    ``is_cumulative``: RUN_TIME is that of all runs; ``more``: columns behind the others, for which lines are not cut.

    In the view ``io`` jobs of the standard universe, which use their files from afar, have a table of their own.
    """
    if view == "io" and any(ad.get_int("JobUniverse") == Universe.STANDARD for ad in ads):
        far = [ad for ad in ads if ad.get_int("JobUniverse") == Universe.STANDARD]
        near = [ad for ad in ads if ad.get_int("JobUniverse") != Universe.STANDARD]
        table = job_table(far, "io-standard", now_s, is_wide, more=more)
        return f"{job_table(near, view, now_s, is_wide, more=more)}\n{table}" if near else table
    columns = [_CUMULATIVE if is_cumulative and column is _RUN_TIME else column for column in (*VIEWS[view], *more)]
    lines = [" ".join(_cell(column, column.head) for column in columns)]
    lines += [" ".join(_cell(column, column.cell(ad, now_s)) for column in columns) for ad in ads]
    return "".join((line if is_wide or more else line[:80]).rstrip() + "\n" for line in lines)


def by_workflow(ads: Iterable[ClassAd]) -> list[ClassAd]:
    """Jobs in the order of their workflows, each node's job below the workflow's own, named by its node."""
    children: dict[int, list[ClassAd]] = {}
    every = sorted(ads, key=lambda ad: (ad.get_int("ClusterId"), ad.get_int("ProcId")))
    known = {ad.get_int("ClusterId") for ad in every}
    for ad in every:
        parent = ad.get_int("DAGManJobId")
        children.setdefault(parent if parent in known else 0, []).append(ad)
    found: list[ClassAd] = []
    waiting = [(ad, 0) for ad in reversed(children.get(0, ()))]
    while waiting:
        ad, depth = waiting.pop()
        if depth:
            ad["Owner"] = f"{' ' * depth}|-{ad.get_str('DAGNodeName')}"
        found.append(ad)
        waiting += [(each, depth + 1) for each in reversed(children.pop(ad.get_int("ClusterId"), ()))]
    return found


def _cell(column: Column, text: str) -> str:
    if column.width < 0:
        return text.ljust(-column.width)
    return text.rjust(column.width) if column.width else text


def attributes_of(view: str) -> tuple[str, ...]:
    """What a view needs of each job."""
    common = ("ClusterId", "ProcId", "Owner", "JobStatus", "QDate")
    return {
        "run": (*common, *_TIMES, "RemoteHost"),
        **dict.fromkeys(("hold", "hold-codes"), (*common, "EnteredCurrentStatus", "HoldReasonCode",
                                                 "HoldReasonSubCode", "HoldReason")),
        "idle": (*common, "JobUniverse", "RequestCpus", "RequestMemory", "NumShadowStarts", "LastRemoteHost",
                 "MemoryUsage", "ImageSize"),
        "grid": (*common, "GridResource", "GridJobStatus", "GridJobId"),
        "io": (*common, "NumJobStarts", "BytesRecvd", "BytesSent", "JobUniverse", "TransferringInput",
               "TransferringOutput", "TransferQueued", "FileReadBytes", "FileWriteBytes", "FileSeekCount",
               "NumRemoteSysCalls", "NumCkpts", "Leverage"),
        "batch": (*common, "JobBatchName", "TotalSubmitProcs", "DAGManJobId", "DAG_NodesTotal", "DAG_NodesDone"),
    }.get(view, (*common, *_TIMES, "RemoteUserCpu", "JobPrio", "ImageSize", "MemoryUsage", "ResidentSetSize", "Cmd",
                 "Args", "Arguments", "JobDescription", "TransferringInput", "TransferringOutput", "TransferQueued",
                 "JobCoolDownExpiration"))  # fmt: skip
