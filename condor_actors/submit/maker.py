"""Jobs from commands: a cluster ad, and per job what differs from it.

The sections run in a fixed order (`SECTIONS`).  `begin` makes the first job of a queue statement whole; `next_job`
makes again only the sections that asked for something that changed (see
:mod:`condor_actors.submit.pending_attributes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from condor_actors import records
from condor_actors.classads import Expr, unparse
from condor_actors.messages.codes import Universe
from condor_actors.submit import factory, policy, program, requirements, resources, transfer
from condor_actors.submit.build_context import BuildContext, unquoted
from condor_actors.submit.errors import SubmitError
from condor_actors.submit.file_checks import NULL_FILE, check_log
from condor_actors.submit.keywords import SIMPLE, Keyword
from condor_actors.submit.pending_attributes import PendingAttributes
from condor_actors.submit.refusals import is_macro_only
from condor_actors.submit.remote import remote_attributes
from condor_actors.submit.services import ports, tokens, tool_daemon

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object

Section = Callable[[BuildContext], None]
Attributes = dict[str, tuple[str, Any]]
"""``{lower-case name: (name, value)}``; the value None says that the attribute is not there."""


def _constants(context: BuildContext) -> None:
    """What every new job has: counters at zero, versions, dates."""
    world = context.world
    context.set("MyType", "Job")
    context.set("TargetType", "Machine")
    context.set("QDate", world.now_s)
    context.set("JobSubmitMethod", world.submit_method)
    for name in ("RemoteWallClockTime", "RemoteUserCpu", "RemoteSysCpu", "CumulativeRemoteUserCpu",
                 "CumulativeRemoteSysCpu"):  # fmt: skip
        context.set(name, 0.0)
    for name in (
        "ExitStatus", "NumCkpts", "NumJobStarts", "NumJobCompletions", "NumRestarts", "NumSystemHolds",
        "CommittedTime", "CommittedSlotTime", "CumulativeSlotTime", "TotalSuspensions", "LastSuspensionTime",
        "CumulativeSuspensionTime", "CommittedSuspensionTime",
    ):  # fmt: skip
        context.set(name, 0)
    context.set("ExitBySignal", False)
    context.set("CondorVersion", world.version)
    context.set("CondorPlatform", world.platform)
    for setting in ("SUBMIT_ATTRS", "SUBMIT_EXPRS", "SYSTEM_SUBMIT_ATTRS"):
        for name in (context.setting(setting) or "").replace(",", " ").split():
            forced = name.removeprefix("+").removeprefix("MY.")
            value = context.setting(forced)
            if value is not None:
                context.set_expression(forced, value, f"{setting}: {forced}")


def _simple(context: BuildContext) -> None:
    """Commands that set one attribute (the table of :mod:`condor_actors.submit.keywords`)."""
    scope = context.scope
    for keyword in SIMPLE:
        if not scope.has(keyword.command) and not scope.has(keyword.key):
            continue
        if is_macro_only(scope, keyword.command):
            continue
        value = context.text(keyword.command, keyword.attribute)
        if value is not None:
            _set_simple(context, keyword, value)


def _set_simple(context: BuildContext, keyword: Keyword, value: str) -> None:
    kind = keyword.kind
    if kind == "expr":
        context.set_expression(keyword.attribute, value, keyword.command)
    elif kind == "boolean":
        context.set(keyword.attribute, context.truth(keyword.command, value))
    elif kind in ("integer", "natural"):
        number = context.whole(keyword.command, value)
        if kind == "natural" and number < 0:
            raise SubmitError(f"{keyword.command}={value} is invalid, expected 0 or more.")
        context.set(keyword.attribute, number)
    elif kind == "path":
        path = unquoted(value)
        context.set(keyword.attribute, path if path == NULL_FILE else context.absolute(path))
    elif kind == "list":
        context.set(keyword.attribute, ",".join(unquoted(value).replace(",", " ").split()))
    else:
        context.set(keyword.attribute, unquoted(value) if kind == "word" else value)


def _parallel(context: BuildContext) -> None:
    """MinHosts, MaxHosts, CurrentHosts."""
    parallel = context.universe == Universe.PARALLEL
    hosts = context.integer("machine_count", "node_count", "NodeCount", "MachineCount") if parallel else 1
    if hosts is None:
        raise SubmitError("No machine_count specified!")
    context.set("MinHosts", hosts)
    context.set("MaxHosts", hosts)
    context.set("CurrentHosts", 0)


def _automatic(context: BuildContext) -> None:
    """What is filled in where nobody said otherwise: JobPrio, JobLeaseDuration, JobDescription …"""
    if context.get("JobPrio") is None:
        context.set("JobPrio", 0)
    formats = (context.setting("DEFAULT_USERLOG_FORMAT_OPTIONS") or "").upper().replace(",", " ").split()
    if "XML" in formats and context.get("UserLog") is not None and context.get("UserLogUseXML") is None:
        context.set("UserLogUseXML", True)
    leased = context.universe in (Universe.STANDARD, Universe.VANILLA, Universe.JAVA, Universe.PARALLEL)
    lease = context.get("JobLeaseDuration")
    if isinstance(lease, int) and lease < 0:
        raise SubmitError(f"job_lease_duration={lease} is invalid, expected 0 or more seconds.")
    if leased and lease is None:
        context.set_expression("JobLeaseDuration", context.needed("JOB_DEFAULT_LEASE_DURATION"))
    if context.get("SuccessCheckpointExitCode") is not None:
        context.set("WantFTOnCheckpoint", True)
    if context.get("JobStarterLog") is not None and context.get("JobStarterDebug") is None:
        context.set("JobStarterDebug", True)
    elif context.get("JobStarterLog") is None and context.get("JobStarterDebug") not in (None, "", "false", "False"):
        raise SubmitError("starter_debug says how much goes into the job's log of its starter, and it has none",
                          command="starter_debug", remedy="say starter_log = FILE too")
    if context.interactive:
        context.set("InteractiveJob", True)
        if context.get("JobDescription") is None:
            context.set("JobDescription", "interactive job")


def _forced(context: BuildContext) -> None:
    """``+Name = expression`` and ``MY.Name = expression``: straight into the ad, over anything else."""
    for key in [*context.scope.assigned, *(name for name in context.scope.live if name.startswith("my."))]:
        if not key.startswith("my."):
            continue
        raw = context.scope.raw(key)
        text = context.scope.expand(raw or "").strip()
        name = context.scope.spellings.get(key, key)[3:]
        context.set_expression(name, text or "undefined", f"MY.{name}")


SECTIONS: tuple[tuple[str, Section], ...] = (
    ("constants", _constants),
    ("universe", program.universe),
    ("folder", program.folder),
    ("executable", program.executable),
    ("arguments", program.arguments),
    ("parallel", _parallel),
    ("environment", program.environment),
    ("status", policy.status),
    ("standard files", program.standard_files),
    ("notification", policy.notification),
    ("rank", policy.rank),
    ("periodic", policy.periodic),
    ("leave in queue", policy.leave_in_queue),
    ("retries", policy.retries),
    ("signals", program.signals),
    ("requests", resources.requests),
    ("concurrency limits", resources.concurrency_limits),
    ("accounting", resources.accounting),
    ("simple", _simple),
    ("tool daemon", tool_daemon.tool_daemon),
    ("log", check_log),
    ("deferral", policy.deferral),
    ("size", program.size),
    ("transfer", transfer.transfer),
    ("tokens", tokens.tokens),
    ("ports", ports.ports),
    ("factory", factory.limits),
    ("remote", remote_attributes),
    ("automatic", _automatic),
    ("forced", _forced),
    ("gpu properties", resources.gpu_properties),
    ("requirements", requirements.requirements),
    ("possible requests", resources.possible_requests),
)


@records.frozen
class _Trace:
    """What a section asked for and wrote when the first job was made.

    ``writes`` are its last writes; ``own`` says that it must be made again for every job (it asked for a varying
    name), else only when an attribute it read came out differently.
    """

    touched: frozenset[str]
    reads: frozenset[str]
    writes: Attributes
    own: bool = False


class Maker:
    """Makes the jobs of one queue statement after another."""

    def __init__(self, context: BuildContext) -> None:
        self.context = context
        self._varied: list[tuple[int, _Trace]] = []
        self._fixed: dict[str, list[tuple[int, str, Any]]] = {}
        self._fixed_reads: frozenset[str] = frozenset()
        self._varied_writes: frozenset[str] = frozenset()
        self._first: Attributes = {}

    @property
    def unchanging(self) -> bool:
        """Whether the jobs that follow are the first one over again."""
        return not self._varied

    @property
    def remade(self) -> frozenset[str]:
        """The attributes (lower case) of the sections that may be made again."""
        return self._varied_writes

    def begin(self, varying: Iterable[str]) -> Attributes:
        """Make a job whole.

        Args:
            varying: live names whose value will change in the jobs that follow.

        Returns:
            all its attributes.
        """
        pending = self.context.pending = PendingAttributes()
        traces = [self._run(number, pending) for number in range(len(SECTIONS))]
        self._first = pending.final()
        self._plan(pending, traces, frozenset(varying))
        return self._first

    def next_job(self) -> Attributes | None:
        """Make the next job of the same statement, live names already set.

        Returns:
            the attributes that may differ from the first job's, or None when the job must be made whole (`begin`): it
            wrote something that a section not made again depends on.
        """
        pending = self.context.pending = PendingAttributes(self._fixed)
        changed: set[str] = set()
        for number, trace in self._varied:
            pending.section = number
            if trace.own or any(_depends(trace.reads, key) for key in changed):
                SECTIONS[number][1](self.context)
                self._compare(pending, number, trace, changed)
            else:
                for name, value in trace.writes.values():
                    pending.set(name, value)
        if any(_depends(self._fixed_reads, key) for key in changed - self._varied_writes):
            return None
        return self._outcome(pending)

    def _compare(self, pending: PendingAttributes, number: int, trace: _Trace, changed: set[str]) -> None:
        """Note which attributes a section wrote differently than for the first job."""
        for key, writes in pending.fresh.items():
            if writes[-1][0] == number:
                before = trace.writes.get(key)
                if before is None or not same(before[1], writes[-1][2]):
                    changed.add(key)
        changed.update(key for key in trace.writes if key not in pending.fresh)

    def _outcome(self, pending: PendingAttributes) -> Attributes:
        out: Attributes = {}
        for key in self._varied_writes | pending.fresh.keys():
            fixed, fresh = self._fixed.get(key), pending.fresh.get(key)
            if fresh is None:
                last = fixed[-1] if fixed else None
            elif fixed is None or fixed[-1][0] <= fresh[-1][0]:
                last = fresh[-1]
            else:
                last = fixed[-1]
            known = self._first.get(key)
            if last is not None:
                out[key] = (known[0] if known else last[1], last[2])
            elif known is not None:
                out[key] = (known[0], None)
        return out

    def _run(self, number: int, pending: PendingAttributes) -> _Trace:
        scope = self.context.scope
        scope.touched = set()
        pending.reads = set()
        pending.section = number
        SECTIONS[number][1](self.context)
        writes = {key: (made[-1][1], made[-1][2]) for key, made in pending.fresh.items() if made[-1][0] == number}
        return _Trace(frozenset(scope.touched), frozenset(pending.reads), writes)

    def _plan(self, pending: PendingAttributes, traces: list[_Trace], varying: frozenset[str]) -> None:
        """Which sections may come out differently when the varying names change."""
        self._varied = []
        written: set[str] = set()
        fixed_reads: set[str] = set()
        for number, trace in enumerate(traces):
            own = bool(trace.touched & varying)
            if own or any(_depends(trace.reads, key) for key in written):
                self._varied.append((number, records.evolve(trace, own=own)))
                written |= trace.writes.keys()
            else:
                fixed_reads |= trace.reads
        varied = {number for number, _ in self._varied}
        self._fixed = {}
        for key, writes in pending.fresh.items():
            kept = [write for write in writes if write[0] not in varied]
            if kept:
                self._fixed[key] = kept
        self._fixed_reads = frozenset(fixed_reads)
        self._varied_writes = frozenset(written)


def _depends(reads: frozenset[str], key: str) -> bool:
    """Whether one of these reads concerns an attribute (``request*`` stands for all that begin so)."""
    return key in reads or any(name[-1] == "*" and key.startswith(name[:-1]) for name in reads)


def value_text(value: Any) -> str:
    """A value as it crosses the wire."""
    if value is None:
        return "undefined"
    return unparse(value, style="wire")


def same(left: Any, right: Any) -> bool:
    """Whether two values are the same value of the same type."""
    if isinstance(left, Expr) or isinstance(right, Expr):
        return bool(left == right)
    return type(left) is type(right) and bool(left == right)
