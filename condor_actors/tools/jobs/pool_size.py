"""Requests that no machine of the pool can meet are said when jobs are submitted, not found out by waiting.

Theory: to ask the collector costs as much as a small submission, so only requests that this machine could not meet
itself are asked about.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from condor_actors.config import Config
from condor_actors.messages.advertise import AdKind, QueryAds
from condor_actors.submit.clusters import Cluster
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.contact import COLLECTOR, collector
from condor_actors.wire.blocking import WireError

__all__ = ["too_large"]

FITS = "(TotalSlotCpus ?: Cpus) >= {cpus} && (TotalSlotMemory ?: Memory) >= {memory}"


def too_large(config: Config, clusters: Iterable[Cluster], pool: str) -> Iterator[str]:
    """Sentences about requests that no slot of the pool can meet now; none when nobody can say.

    Args:
        config: of the command.
        clusters: what was submitted.
        pool: the central manager that was named; empty: the configured one.
    """
    wanted = {_request(cluster) for cluster in clusters}
    memory_mib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    cpus = os.cpu_count() or 1
    large = sorted(each for each in wanted if each[0] > cpus or each[1] > memory_mib)
    if not large:
        return
    try:
        with collector(config, pool=pool) as client:
            def has(constraint: str) -> bool:
                question = QueryAds(ad_kind=AdKind.SLOT, constraint=constraint, projection=("Name",), limit=1)
                return bool(client.ask(COLLECTOR, question).ads)

            if not has(""):
                return
            for asked_cpus, asked_mib in large:
                if not has(FITS.format(cpus=asked_cpus, memory=asked_mib)):
                    yield (f"no slot of the pool has request_cpus = {asked_cpus} and request_memory = {asked_mib} MB "
                           "now; the jobs wait until one does (condor_status -af Name TotalSlotCpus TotalSlotMemory "
                           "shows what there is)")
    except (ToolError, WireError):
        return


def _request(cluster: Cluster) -> tuple[int, int]:
    """Processors and MiB, as far as they are plain numbers."""
    numbers = (cluster.attributes.get(name, ("", 0))[1] for name in ("requestcpus", "requestmemory"))
    cpus, memory_mib = (number if isinstance(number, int) else 0 for number in numbers)
    return cpus, memory_mib
