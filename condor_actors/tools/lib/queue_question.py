"""The command line of condor_q, understood."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.flags import LIST, Flag, Given
from condor_actors.tools.lib.job_ids import parse_id
from condor_actors.tools.printing import ad_output

FLAGS = (
    Flag("help", 1, colon=True), Flag("wide", 1, colon=True), *ad_output.flags(xml=3), Flag("pool", 1, 1),
    Flag("debug", 1, colon=True), Flag("dag", 2, colon=True), Flag("direct", 3, 1), Flag("dot", 3),
    Flag("name", 1, 1), Flag("nobatch", 3), Flag("nouserprios", 4), Flag("batch", 2, colon=True),
    Flag("progress", 3, colon=True, alias="batch"),
    *(Flag(name, 2, colon=True, alias="better-analyze") for name in ("better-analyze", "better-analyse")),
    Flag("aaf", 3, LIST, colon=True, alias="af"), Flag("allusers", 2, alias="all"), Flag("all-users", 4, alias="all"),
    *(Flag(name, 2, colon=True, alias="better-analyze") for name in ("analyze", "analyse")),
    Flag("address", 1, 1, alias="addr"), Flag("autocluster", 2, colon=True), Flag("cputime", 2),
    Flag("currentrun", 2), Flag("cumulative-time", 3), Flag("expert", 1), Flag("factory", 2, alias="unsupported"),
    Flag("global", 1), Flag("grid", 2, colon=True, alias="default"), Flag("hold-codes", 5),
    Flag("holdcodes", 5, alias="hold-codes"), Flag("hold", 2), Flag("held", 2, alias="hold"), Flag("idle", 2),
    Flag("io", 2), Flag("jobads", 1, 1), Flag("jobset", 4, alias="unsupported"), Flag("machine", 1, 1),
    Flag("mconstraint", 2, 1), Flag("slotconstraint", 5, 1, alias="mconstraint"),
    Flag("reverse-analyze", 3, colon=True), Flag("run", 1), Flag("slotads", 2, 1), Flag("stream-results", 2),
    Flag("submitter", 1, 1), Flag("totals", 3), Flag("unmatchable", 2), Flag("user", 4, 1), Flag("userlog", 1, 1),
    Flag("userprios", 5, 1, alias="unsupported"), Flag("verbose", 4), Flag("version", 1),
)  # fmt: skip


@attrs.define
class Question(ad_output.AdQuestion):
    """The command line, understood; ``form`` may also be ``analyze``."""

    ids: list[tuple[int, int]] = attrs.Factory(list)
    users: list[str] = attrs.Factory(list)
    view: str = ""
    is_all: bool = False
    is_batch: bool | None = None
    is_wide: bool = False
    is_totals: bool = False
    is_autoclusters: bool = False
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
    for item in given:
        value = item.values[0] if item.values else ""
        if not item.name:
            found = parse_id(value)
            if found is not None:
                question.ids.append(found)
            else:
                question.users.append(value)
        elif question.take(item):
            continue
        elif item.name in ("submitter", "user"):
            question.users.append(value)
        elif item.name == "unsupported":
            raise ToolError(f"Error: {item.word} is not supported: there is nothing of this kind in the queue")
        else:
            _more(question, item, value)
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
    elif name == "all":
        question.is_all = True
    elif name == "global":
        question.is_global = question.is_all = True
    elif name == "totals":
        question.is_totals = True
    elif name == "autocluster":
        question.is_autoclusters = True
    elif name in ("better-analyze", "reverse-analyze"):
        question.form = "analyze"
        question.is_summary = "sum" in item.qualifier
        question.is_reverse = "rev" in item.qualifier or name == "reverse-analyze"
    elif name in ("wide", "verbose"):
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


USAGE = """Usage: condor_q [general-opts] [restriction-list] [output-opts | analyze-opts]

    [general-opts] are
        -global                  ask all schedds of the pool
        -name <name>             ask this schedd
        -pool <host>             ask this central manager for it
        -jobads <file>           take the jobs from a file
        -userlog <file>          take the jobs from an event log
        -help -version -debug

    [restriction-list] each restriction may be one of
        <cluster>  <cluster>.<proc>  <owner>  -submitter <user>  -allusers
        -constraint <expr>       jobs for which the expression is true

    [output-opts] are
        -batch  -nobatch  -run  -hold  -hold-codes  -idle  -io  -cputime
        -autocluster             what jobs that no slot can tell apart want, and how many they are
        -long  -json  -xml [-attributes A,B]  -totals  -limit <n>  -wide
        -autoformat[:jlhVrTY,tng] <attr> ...      -format <fmt> <attr>      -print-format <file>

    [analyze-opts] are
        -better-analyze[:summary,reverse]  -machine <name>  -mconstraint <expr>  -slotads <file>  -verbose"""
