"""The functions behind ``PRINTAS`` in a print format: how a value, or a whole ad, is shown in a column.

**Source**: the manual, "Print Format Tables", "Built-in PRINTAS Functions".
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from condor_actors.classads import ClassAd
from condor_actors.messages.job_codes import JobStatus, Universe
from condor_actors.tools.printing.formats import date, elapsed, shown
from condor_actors.tools.printing.queue_views import command, day, run_time, size_mib, state
from condor_actors.tools.printing.status_columns import activity_code, platform_name, since

Render = Callable[[ClassAd, Any], str]

_STATUS = {each: each.name.capitalize() for each in JobStatus} | {JobStatus.TRANSFERRING_OUTPUT: "XFerOut"}
_UNIVERSES = {each: each.name.capitalize() for each in Universe} | {Universe.VM: "VM"}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _bytes(scale: float) -> Render:
    def render(_ad: ClassAd, value: Any) -> str:
        if not _is_number(value):
            return shown(value)
        amount = float(value) * scale
        for unit in ("B ", "KB", "MB", "GB", "TB"):
            if amount < 1024 or unit == "TB":
                break
            amount /= 1024
        return f"{amount:.1f} {unit}"

    return render


def _batch_name(ad: ClassAd, _value: Any) -> str:
    return ad.get_str("JobBatchName") or ad.get_str("DAGNodeName") or f"ID: {ad.get_int('ClusterId')}"


def _dag_owner(ad: ClassAd, _value: Any) -> str:
    return (ad.get_str("DAGNodeName") if "DAGManJobId" in ad else "") or ad.get_str("Owner")


def _cpu_utilization(ad: ClassAd, _value: Any) -> str:
    committed = ad.get_float("CommittedTime")
    return f"{ad.get_float('RemoteUserCpu') / committed:.1f}" if committed > 0 else ""


def _members(value: Any) -> list[str]:
    """The elements of a list, or of a list in a string."""
    if isinstance(value, (list, tuple)):
        return [shown(each) for each in value]
    return value.replace(",", " ").split() if isinstance(value, str) else []


def _joined(_ad: ClassAd, value: Any) -> str:
    return ", ".join(map(shown, value)) if isinstance(value, (list, tuple)) else shown(value)


def _unique(_ad: ClassAd, value: Any) -> str:
    return ", ".join(dict.fromkeys(_members(value))) if isinstance(value, (list, tuple)) else shown(value)


def _version(_ad: ClassAd, value: Any) -> str:
    words = value.split() if isinstance(value, str) else []
    return words[1] if len(words) > 1 else shown(value)


def _condor_platform(_ad: ClassAd, value: Any) -> str:
    words = value.split() if isinstance(value, str) else []
    name = words[1] if len(words) > 1 and words[0].startswith("$") else shown(value)
    return (name[:1].replace("X", "x") + name[1:]).replace("-", "_")


def _due_date(ad: ClassAd, value: Any) -> str:
    return date(value + ad.get_int("LastHeardFrom")) if _is_number(value) else shown(value)


def _age(ad: ClassAd, value: Any) -> str:
    if not _is_number(value):
        return shown(value)
    heard = ad.get_int("LastHeardFrom")
    return elapsed(max(heard - value, 0) if heard else value)


def _load(_ad: ClassAd, value: Any) -> str:
    return f"{value:.3f}" if _is_number(value) else shown(value)


_ACTIVITY_TIME = since("PrintedInstant")


def _activity_time(ad: ClassAd, value: Any) -> str:
    if not _is_number(value):
        return "-"
    named = ad.copy()
    named["PrintedInstant"] = int(value)
    return _ACTIVITY_TIME(named)


FUNCTIONS: dict[str, Render] = {
    "ACTIVITY_CODE": lambda ad, _: activity_code(ad.get_str("State"), ad.get_str("Activity")),
    "ACTIVITY_TIME": _activity_time,
    "BATCH_NAME": _batch_name,
    "BUFFER_IO_MISC": lambda ad, _: state(ad) if ad.get_bool("TransferringInput") or ad.get_bool("TransferringOutput")
                      else "",
    "CONDOR_PLATFORM": _condor_platform,
    "CONDOR_VERSION": _version,
    "CPU_TIME": lambda ad, _: run_time(ad, time.time()),
    "CPU_UTIL": _cpu_utilization,
    "DAG_OWNER": _dag_owner,
    "DATE": lambda _, value: date(value),
    "DUE_DATE": _due_date,
    "ELAPSED_TIME": _age,
    "JOB_COMMAND": lambda ad, _: command(ad),
    "JOB_DESCRIPTION": lambda ad, _: command(ad),
    "JOB_ID": lambda ad, _: f"{ad.get_int('ClusterId')}.{ad.get_int('ProcId')}",
    "JOB_STATUS": lambda ad, _: state(ad),
    "JOB_STATUS_RAW": lambda _, value: _STATUS.get(value, "Unk"),
    "JOB_FACTORY_MODE": lambda _, value: {-1: "Errs", 0: "Norm", 1: "Held", 2: "Done", 3: "Gone"}.get(value, "Unk"),
    "JOB_UNIVERSE": lambda _, value: _UNIVERSES.get(value, "Unknown"),
    "LOAD_AVG": _load,
    "MEMBER_COUNT": lambda _, value: str(len(_members(value))),
    "MEMORY_USAGE": lambda ad, _: size_mib(ad),
    "OWNER": lambda ad, _: ad.get_str("Owner"),
    "PLATFORM": lambda ad, _: platform_name(ad),
    "QDATE": lambda _, value: day(value),
    "READABLE_BYTES": _bytes(1.0),
    "READABLE_KB": _bytes(1024.0),
    "READABLE_MB": _bytes(1024.0 * 1024.0),
    "REMOTE_HOST": lambda ad, _: ad.get_str("RemoteHost") or ad.get_str("LastRemoteHost"),
    "RUNTIME": lambda _, value: elapsed(value),
    "STRINGS_FROM_LIST": _joined,
    "TIME": lambda _, value: elapsed(value),
    "UNIQUE": _unique,
}  # fmt: skip
"""By their names in a print format."""
