"""The command line of condor_q, understood."""

from __future__ import annotations

from collections.abc import Sequence

from condor_actors import records
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.flags import ALWAYS_SHORT, LIST, NO_DEBUG, Flag, Given
from condor_actors.tools.lib.job_ids import take_operand
from condor_actors.tools.printing import ad_output

FLAGS = (
    Flag("help", 1, colon=True), Flag("wide", 1, colon=True), *ad_output.flags(xml=3), Flag("pool", 1, 1),
    Flag("debug", 1, colon=True, idle=NO_DEBUG),
    Flag("dag", 2, colon=True),
    Flag("direct", 3, 1, idle="a schedd is always asked itself"),
    Flag("dot", 3, refused="there are no workflows to draw"),
    Flag("name", 1, 1), Flag("nobatch", 3),
    Flag("nouserprios", 4, idle="the analysis never weighs users' priorities; condor_userprio shows them"),
    Flag("batch", 2, colon=True), Flag("progress", 3, colon=True, alias="batch"),
    *(Flag(name, 2, colon=True, alias="better-analyze") for name in ("better-analyze", "better-analyse")),
    Flag("aaf", 3, LIST, colon=True), Flag("allusers", 2, alias="all"), Flag("all-users", 4, alias="all"),
    *(Flag(name, 2, colon=True, alias="better-analyze") for name in ("analyze", "analyse")),
    Flag("address", 1, 1, alias="addr"), Flag("autocluster", 2, colon=True), Flag("cputime", 2),
    Flag("currentrun", 2), Flag("cumulative-time", 3), Flag("expert", 1, idle=ALWAYS_SHORT),
    Flag("factory", 2, colon=True),
    Flag("global", 1), Flag("grid", 2, colon=True), Flag("hold-codes", 5),
    Flag("holdcodes", 5, alias="hold-codes"), Flag("hold", 2), Flag("held", 2, alias="hold"), Flag("idle", 2),
    Flag("io", 2), Flag("jobads", 1, 1),
    Flag("jobset", 5, colon=True),
    Flag("machine", 1, 1), Flag("mconstraint", 2, 1), Flag("slotconstraint", 5, 1, alias="mconstraint"),
    Flag("reverse-analyze", 3, colon=True), Flag("run", 1), Flag("slotads", 2, 1),
    Flag("stream-results", 2, idle="-long, -json, -af and -format always print jobs as they arrive"),
    Flag("submitter", 1, 1), Flag("totals", 3),
    Flag("unmatchable", 2),
    Flag("user", 4, 1), Flag("userlog", 1, 1),
    Flag("userprios", 5, 1, refused="the analysis does not weigh users' priorities; condor_userprio -inputfile shows "
                                    "the file"),
    Flag("verbose", 4), Flag("version", 1),
)  # fmt: skip


@records.define
class Question(ad_output.AdQuestion):
    """The command line, understood; ``form`` may also be ``analyze``."""

    @property
    def is_no_jobs(self) -> bool:
        """Whether the query is about something other than jobs, printed in a table of its own."""
        return self.is_autoclusters or self.is_factories or self.is_sets

    ids: list[tuple[int, int]] = records.Factory(list)
    users: list[str] = records.Factory(list)
    view: str = ""
    is_all: bool = False
    is_batch: bool | None = None
    is_dag: bool = False
    appended: list[tuple[str, tuple[str, ...]]] = records.Factory(list)
    is_wide: bool = False
    is_cumulative: bool = False
    is_of_grid: bool = False
    is_totals: bool = False
    is_autoclusters: bool = False
    is_factories: bool = False
    is_sets: bool = False
    is_unmatchable: bool = False
    name: str = ""
    pool: str = ""
    address: str = ""
    is_global: bool = False
    job_file: str = ""
    log_file: str = ""
    slot_file: str = ""
    machine: str = ""
    machine_constraint: str = ""
    is_verbose: bool = False
    is_summary: bool = False
    is_reverse: bool = False


def understand(given: Sequence[Given]) -> Question:
    """What the flags and operands ask for.

    Raises:
        ToolError: a value that makes no sense, or something we have not got.
    """
    question = Question()
    submitters = 0
    for item in given:
        value = item.values[0] if item.values else ""
        if not item.name:
            take_operand(value, question.ids, question.users)
        elif question.take(item):
            continue
        elif item.name == "aaf":
            question.appended.append((item.qualifier, item.values))
            question.is_batch = False
        elif item.name in ("submitter", "user"):
            question.users.append(value)
            submitters += item.name == "submitter"
        else:
            _more(question, item, value)
    if submitters and not (question.name or question.address or question.job_file or question.log_file):
        question.is_global = True
    if question.is_cumulative and any(item.name == "currentrun" for item in given):
        raise ToolError("Error: -cumulative-time cannot be combined with -currentrun")
    if question.is_sets and (question.is_autoclusters or question.is_factories or question.view or question.is_batch
                             or question.log_file or question.job_file or question.form == "analyze"):
        raise ToolError("Error: -jobset cannot be combined with -autocluster, -factory, -batch, -run, -hold, -analyze, "
                        "-jobads or -userlog")
    if question.is_factories and (question.is_autoclusters or question.view or question.is_batch or question.log_file
                                  or question.job_file or question.form == "analyze"):
        raise ToolError("Error: -factory cannot be combined with -autocluster, -batch, -run, -hold, -analyze, "
                        "-jobads or -userlog")
    if question.is_unmatchable and (question.is_no_jobs or question.is_batch):
        raise ToolError("Error: -unmatchable cannot be combined with -autocluster, -factory, -jobset or -batch")
    if question.is_autoclusters and (question.view or question.is_batch or question.log_file or question.job_file):
        raise ToolError("Error: -autocluster cannot be combined with -batch, -run, -hold, -jobads or -userlog")
    return question


def _more(question: Question, item: Given, value: str) -> None:
    name = item.name
    if name in ("run", "hold", "idle", "io", "cputime"):
        question.view = name
        if name != "cputime":
            question.is_batch = False
    elif name == "hold-codes":
        question.view = "hold-codes"
    elif name in ("batch", "nobatch"):
        question.is_batch = name == "batch"
    elif name == "dag":
        question.is_dag, question.is_batch = True, False
    elif name == "all":
        question.is_all = True
    elif name == "global":
        question.is_global = question.is_all = True
    elif name == "totals":
        question.is_totals = True
    elif name == "cumulative-time":
        question.is_cumulative = True
    elif name == "grid":
        question.is_of_grid, question.is_batch = True, False
    elif name == "autocluster":
        question.is_autoclusters = True
    elif name == "factory":
        question.is_factories = True
    elif name == "jobset":
        question.is_sets = True
    elif name in ("better-analyze", "reverse-analyze"):
        question.form = "analyze"
        question.is_summary = "sum" in item.qualifier
        question.is_reverse = "rev" in item.qualifier or name == "reverse-analyze"
    elif name in ("wide", "verbose", "unmatchable"):
        setattr(question, f"is_{name}", True)
    elif name in ("name", "pool", "machine"):
        setattr(question, name, value)
    else:
        field = {
            "addr": "address",
            "jobads": "job_file",
            "slotads": "slot_file",
            "mconstraint": "machine_constraint",
            "userlog": "log_file",
        }
        if name in field:
            setattr(question, field[name], value)


