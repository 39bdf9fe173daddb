"""The tables of condor_status: which columns each view has and how a value is shown.

Widths, words and alignment follow HTCondor's, which people know and some programs parse.  **Source**: the manual,
condor_status.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from condor_actors import records
from condor_actors.classads import ClassAd
from condor_actors.tools.printing.formats import elapsed, shown

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any

MISSING = "??"
STATE_LETTERS = {"owner": "O", "unclaimed": "U", "matched": "M", "claimed": "C", "preempting": "P", "backfill": "B",
                 "drained": "D", "shutdown": "S", "delete": "X"}
ACTIVITY_LETTERS = {"idle": "i", "busy": "b", "suspended": "s", "vacating": "v", "killing": "k", "benchmarking": "m",
                    "retiring": "r"}


@records.frozen
class Column:
    """One column.

    Attributes:
        head: its heading.
        width: at least so wide; negative: aligned left; 0: as wide as the widest value.
        text: gives the cell of an ad.
        cut: whether longer values are cut to the width.
        names: attributes that it needs.
    """

    head: str
    width: int
    text: Callable[[ClassAd], str]
    names: tuple[str, ...]
    cut: bool = False


def plain(name: str, missing: str = MISSING) -> Callable[[ClassAd], str]:
    """The value of an attribute as people read it."""

    def text(ad: ClassAd) -> str:
        return shown(ad.evaluate(name)) if name in ad else missing

    return text


def number(name: str, form: str, *, missing: str = MISSING, scale: float = 1.0) -> Callable[[ClassAd], str]:
    """A number by a printf format, after division by ``scale``."""

    def text(ad: ClassAd) -> str:
        value = ad.evaluate(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return missing
        return form % (value / scale if scale != 1.0 else value)

    return text


def since(name: str, missing: str = "-") -> Callable[[ClassAd], str]:
    """How long ago an instant of the ad was, by the clock of the daemon that sent the ad."""

    def text(ad: ClassAd) -> str:
        began = ad.evaluate(name)
        if not isinstance(began, (int, float)) or isinstance(began, bool):
            return missing
        here = ad.get_int("LastHeardFrom") or int(time.time())
        now = ad.get_int("MyCurrentTime") or here
        return elapsed(max(0, int(time.time()) - here) + max(0, now - int(began))).rjust(11)

    return text


def span(name: str) -> Callable[[ClassAd], str]:
    """A number of seconds as ``D+HH:MM:SS``."""
    return lambda ad: elapsed(ad.evaluate(name)).rjust(11) if name in ad else MISSING


def readable_mib(name: str) -> Callable[[ClassAd], str]:
    """Mebibytes with the unit that fits."""

    def text(ad: ClassAd) -> str:
        value = ad.evaluate(name)
        if not isinstance(value, (int, float)):
            return MISSING
        amount, units = float(value), ["MB", "GB", "TB", "PB"]
        while amount >= 1024.0 and len(units) > 1:
            amount /= 1024.0
            units.pop(0)
        return f"{amount:.1f} {units[0]}"

    return text


def version(ad: ClassAd) -> str:
    """The number in ``$CondorVersion: X.Y.Z … $``."""
    words = ad.get_str("CondorVersion").split()
    return words[1] if len(words) > 1 else words[0] if words else MISSING


def activity_code(state: Any, activity: Any) -> str:
    """State and activity in two letters, ``Cb`` for Claimed and Busy."""
    first = STATE_LETTERS.get(str(state).lower(), "?")
    return first + ACTIVITY_LETTERS.get(str(activity).lower(), "?")


def platform_name(ad: ClassAd) -> str:
    """``x64/Debian12``."""
    arch = {"X86_64": "x64", "INTEL": "x86", "aarch64": "arm64"}.get(ad.get_str("Arch"), ad.get_str("Arch"))
    return f"{arch}/{ad.get_str('OpSysAndVer') or ad.get_str('OpSysShortName') or ad.get_str('OpSys')}"


NAME = Column("Name", -18, plain("Name"), ("Name",))
OPSYS = Column("OpSys", -10, plain("OpSys"), ("OpSys",))
ARCH = Column("Arch", -6, plain("Arch"), ("Arch",))
LOAD = Column("LoadAv", 6, number("CondorLoadAvg", "%.3f"), ("CondorLoadAvg",))
MEMORY = Column("Mem", 6, number("Memory", "%d"), ("Memory",))
CLOCK = ("LastHeardFrom", "MyCurrentTime")
ACTIVITY_TIME = Column("  ActvtyTime", 12, since("EnteredCurrentActivity"), ("EnteredCurrentActivity", *CLOCK))
MACHINE = Column("Machine", -12, plain("Machine"), ("Machine",))

def sensors_of(ad: ClassAd) -> list[ClassAd]:
    """One ad per sensor of a machine's owner, and one for a pause."""
    found = []
    said_s = ad.get_int("LastHeardFrom") or ad.get_int("MyCurrentTime")
    value = ad.evaluate("Sensors")
    for record in value if isinstance(value, (list, tuple)) else ():
        if isinstance(record, ClassAd):
            sensor = ClassAd({"Machine": ad.get_str("Machine"), "Sensor": record.get_str("Source").rstrip(":"),
                              "Says": record.get_str("Says"), "Accuracy": record.get_str("Accuracy")})
            if "LastInput" in record:
                sensor["Idle"] = max(0, int(time.time()) - record.get_int("LastInput"))
            found.append(sensor)
    if "OwnerPausedUntil" in ad and ad.get_int("OwnerPausedUntil") > said_s:
        until = time.strftime("%a %H:%M", time.localtime(ad.get_int("OwnerPausedUntil")))
        found.append(ClassAd({"Machine": ad.get_str("Machine"), "Sensor": "owner", "Accuracy": "",
                              "Says": f"paused until {until} by {ad.get_str('OwnerPausedBy')}"}))
    return found


VIEWS: dict[str, tuple[Column, ...]] = {
    "owner": (
        MACHINE, Column("Sensor", -16, plain("Sensor"), ("Sensors",)),
        Column("Idle", 12, lambda ad: elapsed(ad.get_int("Idle")) if "Idle" in ad else "-" if "load" in
               ad.get_str("Sensor") else "unknown", ("OwnerPausedUntil", "OwnerPausedBy")),
        Column("Accuracy", 0, plain("Accuracy"), ()), Column("Says", 0, plain("Says"), ()),
    ),
    "normal": (
        NAME, OPSYS, ARCH, Column("State", -9, plain("State"), ("State",)),
        Column("Activity", -8, plain("Activity"), ("Activity",)), LOAD, MEMORY, ACTIVITY_TIME,
    ),
    "run": (
        NAME, OPSYS, ARCH, LOAD, Column("RemoteUser", -20, plain("RemoteUser"), ("RemoteUser",)),
        Column("ClientMachine", -16, plain("ClientMachine"), ("ClientMachine",)),
    ),
    "state": (
        NAME, Column("Cpu", 3, number("Cpus", "%d"), ("Cpus",)), Column(" Mem", 5, number("Memory", "%d"), ("Memory",)),
        LOAD, Column("  KbdIdle", 12, span("KeyboardIdle"), ("KeyboardIdle",)),
        Column("State", -7, plain("State"), ("State",)),
        Column("  StateTime", 12, since("EnteredCurrentState"), ("EnteredCurrentState", *CLOCK)),
        Column("Activ", -5, plain("Activity"), ("Activity",)), ACTIVITY_TIME,
    ),
    "server": (
        NAME, OPSYS, ARCH, LOAD, Column("Memory", 8, number("Memory", "%d"), ("Memory",)),
        Column("Disk", 9, number("Disk", "%d"), ("Disk",)), Column("Mips", 7, number("Mips", "%d"), ("Mips",)),
        Column("KFlops", 9, number("KFlops", "%d"), ("KFlops",)),
    ),
    "schedd": (
        Column("Name", -15, plain("Name"), ("Name",)), MACHINE,
        Column("RunningJobs", 11, number("TotalRunningJobs", "%d"), ("TotalRunningJobs",)),
        Column("  IdleJobs", 10, number("TotalIdleJobs", "%d"), ("TotalIdleJobs",)),
        Column("  HeldJobs", 10, number("TotalHeldJobs", "%d"), ("TotalHeldJobs",)),
    ),
    "submitters": (
        Column("Name", -15, plain("Name"), ("Name",)), MACHINE,
        Column("RunningJobs", 11, number("RunningJobs", "%d"), ("RunningJobs",)),
        Column("  IdleJobs", 10, number("IdleJobs", "%d"), ("IdleJobs",)),
        Column("  HeldJobs", 10, number("HeldJobs", "%d"), ("HeldJobs",)),
    ),
    "collector": (
        Column("Name", -18, plain("Name"), ("Name",)), MACHINE,
        Column("RunningJobs", 11, number("RunningJobs", "%d"), ("RunningJobs",)),
        Column("  IdleJobs", 10, number("IdleJobs", "%d"), ("IdleJobs",)),
        Column("HostsTotal", 10, number("HostsTotal", "%d"), ("HostsTotal",)),
    ),
    "master": (
        Column("Name", 0, plain("Name"), ("Name",)), Column("Version", -14, version, ("CondorVersion",)),
        Column("Cpus", 4, number("DetectedCpus", "%d"), ("DetectedCpus",)),
        Column("  Memory", 10, readable_mib("DetectedMemory"), ("DetectedMemory",)),
        Column("   Uptime", 13, since("DaemonStartTime"), ("DaemonStartTime", *CLOCK)),
    ),
    "startd": (
        Column("Name", 0, plain("Name"), ("Name",)),
        Column("Platform", -12, platform_name, ("Arch", "OpSys", "OpSysAndVer", "OpSysShortName")),
        Column("Version", -9, version, ("CondorVersion",)),
        Column("Cpus", 4, number("DetectedCpus", "%d"), ("DetectedCpus",)),
        Column("  Memory", 10, readable_mib("DetectedMemory"), ("DetectedMemory",)),
        Column("   Uptime", 13, since("DaemonStartTime"), ("DaemonStartTime", *CLOCK)),
    ),
    "negotiator": (
        Column("Name", 0, plain("Name"), ("Name",)),
        Column("LastCycleEnd (Sec)", 18, number("LastNegotiationCycleEnd0", "%d"), ("LastNegotiationCycleEnd0",)),
        Column("Slots", 6, number("LastNegotiationCycleTotalSlots0", "%d"), ("LastNegotiationCycleTotalSlots0",)),
        Column("Submitrs", 8, number("LastNegotiationCycleActiveSubmitterCount0", "%d"),
               ("LastNegotiationCycleActiveSubmitterCount0",)),
        Column("Matches", 7, number("LastNegotiationCycleMatches0", "%d"), ("LastNegotiationCycleMatches0",)),
        Column("Rejections", 10, number("LastNegotiationCycleRejections0", "%d"),
               ("LastNegotiationCycleRejections0",)),
    ),
    "accounting": (
        Column("Name", -18, plain("Name"), ("Name",)),
        Column("Priority", 12, number("Priority", "%.2f"), ("Priority",)),
        Column("PrioFactor", 10, number("PriorityFactor", "%.2f"), ("PriorityFactor",)),
        Column("WghtedInUse", 11, number("WeightedResourcesUsed", "%.0f"), ("WeightedResourcesUsed",)),
        Column("Wghted-hrs", 12, number("WeightedAccumulatedUsage", "%.2f", scale=3600.0),
               ("WeightedAccumulatedUsage",)),
    ),
    "any": (
        Column("MyType", -18, plain("MyType", "None"), ("MyType",)),
        Column("TargetType", -18, plain("TargetType", "None"), ("TargetType",)),
        Column("Name", -20, plain("Name"), ("Name",)),
    ),
}
"""The views by name."""


def compact_row(ads: Sequence[ClassAd]) -> ClassAd:
    """One machine out of the ads of its slots: the partitionable (or first) one with sums over the others."""
    main = next((ad for ad in ads if ad.get_bool("PartitionableSlot")), ads[0])
    dynamic = [ad for ad in ads if ad.get_bool("DynamicSlot")]
    row = main.copy()
    codes = {activity_code(ad.get_str("State"), ad.get_str("Activity")) for ad in dynamic or [main]}
    first = {code[0] for code in codes}
    second = {code[1] for code in codes}
    row["CompactCode"] = (first.pop() if len(first) == 1 else "#") + (second.pop() if len(second) == 1 else "#")
    row["CompactSlots"] = len(dynamic)
    row["CompactUsers"] = ",".join(sorted({ad.get_str("RemoteUser") for ad in ads if "RemoteUser" in ad}))
    cpus = main.get_float("TotalCpus") or 1.0
    row["CompactLoad"] = main.get_float("TotalLoadAvg", main.get_float("LoadAvg")) / cpus
    if dynamic:
        row["CompactMaxGb"] = max(ad.get_float("Memory") for ad in dynamic) / 1024.0
    return row


COMPACT = (
    MACHINE, Column("Platform", -11, platform_name, ("Arch", "OpSys", "OpSysAndVer")),
    Column("Slots", 5, number("CompactSlots", "%d"), ("PartitionableSlot", "DynamicSlot")),
    Column("Cpus", 4, number("TotalSlotCpus", "%d"), ("TotalSlotCpus", "TotalCpus")),
    Column("Gpus", 4, number("TotalSlotGPUs", "%d", missing=""), ("TotalSlotGPUs",)),
    Column(" TotalGb", 8, number("TotalSlotMemory", "%.2f", scale=1024.0), ("TotalSlotMemory",)),
    Column("FreCpu", 6, number("Cpus", "%d"), ("Cpus",)),
    Column(" FreeGb ", 8, number("Memory", "%.2f", scale=1024.0), ("Memory",)),
    Column("CpuLoad", 7, number("CompactLoad", "%.2f"), ("TotalLoadAvg", "LoadAvg")),
    Column("ST", 2, plain("CompactCode"), ("State", "Activity")),
    Column("Jobs/Min", 8, number("RecentJobStarts", "%.2f", missing="_", scale=20.0), ("RecentJobStarts",)),
    Column("MaxSlotGb", 9, number("CompactMaxGb", "%.2f", missing="*"), ("RemoteUser",)),
)


def table(ads: Iterable[ClassAd], columns: Sequence[Column]) -> Iterator[str]:
    """The lines of a table: headings, an empty line, a line an ad.  Nothing at all when there is no ad."""
    rows = [[column.text(ad) for column in columns] for ad in ads]
    if not rows:
        return
    widths = []
    for index, column in enumerate(columns):
        widest = max(len(row[index]) for row in rows)
        widths.append(abs(column.width) if column.cut else max(abs(column.width), widest, len(column.head)))
    yield _line([column.head for column in columns], columns, widths, heads=True)
    yield "\n"
    for row in rows:
        yield _line(row, columns, widths)


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int], *, heads: bool = False) -> str:
    out = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        left = column.width <= 0 or heads
        out.append(cell[:width].ljust(width) if left else cell[:width].rjust(width))
    return " ".join(out).rstrip() + "\n"
