"""The section that completes ``requirements`` with what every job needs of a machine.

A clause is added unless the user's own expression already speaks of that attribute of the machine:

===========================  =================================================================
clause                       when
===========================  =================================================================
``TARGET.Arch``, ``OpSys``   vanilla, scheduler, local …; containers need no OpSys
``TARGET.Disk``              ``>= RequestDisk`` (always, even beside a clause of the user's)
``TARGET.Memory``            ``>= RequestMemory``
``TARGET.Cpus``              more than one is asked for
``TARGET.<tag>``             for each Request<tag>; through ``Require<tag>`` where there is one
``HasFileTransfer``          files must travel; *or* ``FileSystemDomain`` for ``IF_NEEDED``, unless some are at URLs,
                             which are fetched and sent by transfers alone
``HasJobTransferPlugins``    the job brings transfer plugins; ``HasFileTransferPluginMethods`` for each other URL
``FileSystemDomain``         ``should_transfer_files = NO``
``HasJobDeferral``           deferral or cron times
``HasStandardUniverse``      the standard universe; with a checkpoint also ``CpuLevel`` (>= ``CkptCpuLevel``)
                             and the ``Arch`` and ``OpSys`` that it was taken on
===========================  =================================================================

**Source**: the manual, condor_submit, command ``requirements``.
"""

from __future__ import annotations

from condor_actors.classads import ClassAd, ClassAdSyntaxError, Expr
from condor_actors.cores.object_store import is_object
from condor_actors.messages.codes import Universe
from condor_actors.messages.references.urls import scheme_of
from condor_actors.submit.build_context import BuildContext, assigns, parsed
from condor_actors.submit.errors import SubmitError
from condor_actors.submit.urls import own_plugins, urls_of

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any

_OPSYS = ("opsys", "opsysandver", "opsyslongname", "opsysshortname", "opsysname", "opsyslegacy")
_DEFERRAL = (
    "(((time() + ScheddInterval) >= (DeferralTime - DeferralPrepTime)) && (time() < (DeferralTime + DeferralWindow)))"
)


def requirements(context: BuildContext) -> None:
    """Requirements."""
    own = context.text("requirements")
    if context.text("my.requirements") is not None:
        if own is not None:
            context.warn("Use of MY.Requirements or +Requirements overrides requirements; remove one of the two.")
        return
    appended = _appended(context)
    clauses = [f"({text})" for text in (own, appended) if text is not None]
    if context.universe == Universe.GRID and not str(context.get("GridResource") or "").lower().startswith("condor "):
        context.set_expression("Requirements", " && ".join(clauses) or "true", "requirements")
        return
    spoken = _spoken_of(" && ".join(clauses)) if clauses else frozenset()
    if "requirements" in spoken:
        raise SubmitError(f"Requirements = {own}\nIs Circular. Did you intend to use $(Requirements) ?")
    clauses += _platform(context, spoken)
    clauses += _resources(context, spoken)
    clauses += _tags(context, spoken)
    clauses += _features(context, spoken)
    if context.universe not in (Universe.STANDARD, Universe.SCHEDULER, Universe.GRID, Universe.LOCAL):
        clauses += _files(context, spoken)
    if context.get("DeferralTime") is not None or context.get("DeferralPrepTime") is not None:
        if context.universe != Universe.LOCAL:
            clauses.append("TARGET.HasJobDeferral")
        clauses.append(_DEFERRAL)
    if context.get("SuccessCheckpointExitCode") is not None and "hasselfcheckpointtransfers" not in spoken:
        clauses.append("TARGET.HasSelfCheckpointTransfers")
    context.set_expression("Requirements", " && ".join(clauses), "requirements")


_APPENDED: dict[int, str] = {Universe.STANDARD: "APPEND_REQ_STANDARD", Universe.VANILLA: "APPEND_REQ_VANILLA"}


def _appended(context: BuildContext) -> str | None:
    name = _APPENDED.get(context.universe)
    found = context.setting(name) if name else None
    return found or context.setting("APPEND_REQUIREMENTS")


def _spoken_of(text: str) -> frozenset[str]:
    """The machine's attributes that an expression names, lower case (bare names that are no job attribute too)."""
    try:
        tree = parsed(text)
    except ClassAdSyntaxError as error:
        hint = "compare with == (one = assigns)" if assigns(text) else ""
        raise SubmitError(f"Parse error in expression: \n\tRequirements = {text}\n{error}", command="requirements",
                          remedy=hint) from None
    if not isinstance(tree, Expr):
        return frozenset()
    job = ClassAd({"RequestMemory": 0, "Requirements": True})
    internal, external = tree.references(job)
    return frozenset(external) | (frozenset({"requirements"}) & frozenset(internal))


def _platform(context: BuildContext, spoken: frozenset[str]) -> list[str]:
    clauses = []
    if "arch" not in spoken:
        clauses.append(f'(TARGET.Arch == "{context.world.arch}")')
    if context.universe == Universe.JAVA:
        return ["TARGET.HasJava"]
    if context.topping == "docker":
        clauses.append("TARGET.HasDocker")
    elif context.topping:
        clauses.append("TARGET.HasContainer")
        for wanted, offered in (("WantDockerImage", "HasDockerURL"), ("WantSIF", "HasSIF"),
                                ("WantSandboxImage", "HasSandboxImage")):  # fmt: skip
            if context.get(wanted) is not None:
                clauses.append(f"TARGET.{offered}")
    elif not any(name in spoken for name in _OPSYS):
        clauses.append(f'(TARGET.OpSys == "{context.world.opsys}")')
    return clauses


def _more_than(value: Any, least: float) -> bool:
    """Whether a request is worth a clause: an expression, or a number above the least there always is."""
    return value is not None and (not isinstance(value, (int, float)) or value > least)


def _resources(context: BuildContext, spoken: frozenset[str]) -> list[str]:
    clauses = []
    disk = context.get("RequestDisk")
    if disk is None:
        if "disk" not in spoken:
            clauses.append("(TARGET.Disk >= DiskUsage)")
    elif _more_than(disk, 0) or "disk" in spoken:
        clauses.append("(TARGET.Disk >= RequestDisk)")
    if _more_than(context.get("RequestMemory"), 1):
        clauses.append("(TARGET.Memory >= RequestMemory)")
    if context.universe != Universe.GRID and "cpus" not in spoken and _more_than(context.get("RequestCpus"), 1):
        clauses.append("(TARGET.Cpus >= RequestCpus)")
    return clauses


def _tags(context: BuildContext, spoken: frozenset[str]) -> list[str]:
    clauses = []
    for name in sorted(context.pending.names("Request"), key=str.lower):
        tag = name[len("Request") :]
        if len(tag) < 2 or tag.startswith("_") or tag.lower() in ("cpus", "disk", "memory") or tag.lower() in spoken:
            continue
        value = context.get(name)
        if isinstance(value, Expr):
            value = None
        if isinstance(value, str):
            if value:
                clauses.append(f"regexp({name},TARGET.{tag})")
        elif value is None or (not isinstance(value, bool) and isinstance(value, (int, float)) and value > 0):
            if context.get(f"Require{tag}") is not None:
                clauses.append(f"(countMatches(MY.Require{tag},TARGET.Available{tag}) >= {name})")
            else:
                clauses.append(f"(TARGET.{tag} >= {name})")
    return clauses


def _features(context: BuildContext, spoken: frozenset[str]) -> list[str]:
    clauses = []
    if context.universe == Universe.STANDARD:
        clauses += _checkpoints(spoken)
    if context.universe == Universe.PARALLEL and "dedicatedscheduler" not in spoken:  # not what is another schedd's
        clauses.append("(TARGET.DedicatedScheduler =?= undefined || TARGET.DedicatedScheduler == MY.Scheduler)")
    if context.get("ToolDaemonCmd") is not None and "hastdp" not in spoken:
        clauses.append("TARGET.HasTDP")
    if context.get("EncryptExecuteDirectory") is True and "encryptexecutedirectory" not in spoken:
        clauses.append("TARGET.HasEncryptExecuteDirectory")
    return clauses


def _checkpoints(spoken: frozenset[str]) -> list[str]:
    """The runtime; and, once there is a checkpoint, a machine that can go on from it."""
    clauses = [] if "hasstandarduniverse" in spoken else ["TARGET.HasStandardUniverse"]
    for needed, offered, relation in (("CkptArch", "Arch", "=="), ("CkptOpSys", "OpSys", "=="),
                                      ("CkptCpuLevel", "CpuLevel", "<=")):  # fmt: skip
        clauses.append(f"(MY.{needed} =?= undefined || MY.{needed} {relation} TARGET.{offered})")
    return clauses


def _files(context: BuildContext, spoken: frozenset[str]) -> list[str]:
    should = context.get("ShouldTransferFiles")
    same_domain = "(TARGET.FileSystemDomain == MY.FileSystemDomain)"
    if should == "NO":
        return [] if "filesystemdomain" in spoken else [same_domain]
    if "hasfiletransfer" in spoken:
        return []
    needed = ["TARGET.HasFileTransfer"]
    own = own_plugins(context)
    methods = [method for method in _methods(context) if method not in own]
    if methods:
        context.set("WantTransferPluginMethods", ",".join(methods))
    if "hasfiletransferpluginmethods" not in spoken:
        needed += [f'stringListIMember("{method}",TARGET.HasFileTransferPluginMethods)' for method in methods]
    if own and "hasjobtransferplugins" not in spoken:
        needed.append("TARGET.HasJobTransferPlugins")
    travel = f"({' && '.join(needed)})"
    if should == "IF_NEEDED" and "filesystemdomain" not in spoken and not urls_of(context):
        return [f"({same_domain} || {travel})"]
    return [travel]


def _methods(context: BuildContext) -> list[str]:
    """URL schemes that the execute machine must be able to fetch or store, sorted."""
    return sorted({"https" if is_object(url) else scheme_of(url) for url in urls_of(context)})
