"""What a daemon says of its own work, as condor_top reads it: HTCondor's names for a process's statistics.

Each kind of turn has ``<Actor>_<Message>``, how often it was taken, and ``<Actor>_<Message>Runtime`` with ``Avg``,
``Max``, ``Min`` and ``Std``, in seconds.  The time that is not spent in turns is that of waiting (DCSelectWaittime).

**Source**: the manual, condor_top, and "Daemon ClassAd Attributes".
"""

from __future__ import annotations

import os
import resource

from condor_actors.actors.turn_times import TurnTimes
from condor_actors.classads import ClassAd

__all__ = ["statistics_ad"]


def statistics_ad(ad: ClassAd, times: TurnTimes, started_s: float, now_s: float) -> ClassAd:
    """The daemon's ad with its statistics.

    Args:
        ad: without them.
        times: of its turns.
        started_s: when it began, seconds since 1970.
        now_s: the same, of now.
    """
    found = ClassAd(ad)
    lifetime_s = max(now_s - started_s, 1e-6)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    image_kib, resident_kib = _memory_kib()
    for name, value in (
        ("MyCurrentTime", int(now_s)), ("DaemonStartTime", int(started_s)), ("StatsLifetime", lifetime_s),
        ("MonitorSelfTime", int(now_s)), ("MonitorSelfAge", int(lifetime_s)),
        ("MonitorSelfUserCpuTime", usage.ru_utime), ("MonitorSelfSysCpuTime", usage.ru_stime),
        ("MonitorSelfCPUUsage", 100.0 * (usage.ru_utime + usage.ru_stime) / lifetime_s),
        ("MonitorSelfImageSize", image_kib), ("MonitorSelfResidentSetSize", resident_kib),
        ("DCCommands", times.turns), ("DCPumpCycleCount", times.turns), ("DCPumpCycleSum", lifetime_s),
        ("DCSelectWaittime", max(lifetime_s - times.busy_s, 0.0)),
    ):
        found[name] = value
    for (actor, what), each in times.by_name().items():
        name = f"{actor}_{what}".replace("__", "_")
        found[name] = each.count
        found[f"{name}Runtime"] = each.total_s
        found[f"{name}RuntimeAvg"] = each.total_s / each.count
        found[f"{name}RuntimeMax"] = each.longest_s
        found[f"{name}RuntimeMin"] = each.least_s
        found[f"{name}RuntimeStd"] = each.deviation_s
    return found


def _memory_kib() -> tuple[int, int]:
    """The size of this process and what of it is in memory."""
    page_kib = os.sysconf("SC_PAGE_SIZE") // 1024
    with open("/proc/self/statm", encoding="ascii") as file:
        size, resident = file.readline().split()[:2]
    return int(size) * page_kib, int(resident) * page_kib
