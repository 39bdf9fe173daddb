"""Groups of nodes: what the jobs of one parallel cluster become, and which claim serves which group.

Theory: several queue statements of the parallel universe fill one cluster with jobs that differ, each with a
machine_count of its own.  They are groups of nodes of one gang: the first job stays, with the sum of all nodes, and
keeps of each further one what it says differently.  Nodes are counted through the groups in their order.

A slot may fit several groups.  Which claim serves which is decided anew with each claim that comes, as a matching of
claims to places: a claim is taken if all that are there and it have a place, and so a slot that fits anything never
keeps the one away that fits its group alone.

**Source**: the manual's page of the parallel universe (several queue statements); augmenting paths as in H. W. Kuhn,
"The Hungarian method for the assignment problem", 1955.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from condor_actors.classads import UNDEFINED, ClassAd
from condor_actors.cores.schedd.gangs.gang import is_gang, size_of
from condor_actors.cores.schedd.queued_job import Job
from condor_actors.messages.pages import LARGE_AD, MOST_AD_BYTES
from condor_actors.numerals import numeral

__all__ = ["Group", "assignment", "group_of_node", "groups_of", "largest_text", "merged"]

MOST_GROUPS = 1000

OF_ONE_JOB = frozenset({"procid", "globaljobid", "jobstatus", "minhosts", "maxhosts", "holdreason", "holdreasoncode",
                        "holdreasonsubcode"})


@attrs.frozen
class Group:
    """Some nodes of a gang that are alike.

    Attributes:
        size: how many.
        text: what their ad says differently from the job's.
    """

    size: int
    text: bytes = b""


def groups_of(ad: ClassAd) -> list[Group]:
    """The groups of a gang, by number."""
    sizes = [size for each in ad.get_str("GangSizes").split(",") if (size := numeral(each)) is not None]
    if len(sizes) < 2:
        return [Group(size_of(ad))]
    return [Group(size, ad.get_str(f"GangGroup{number}").encode("utf-8", "surrogateescape") if number else b"")
            for number, size in enumerate(sizes)]


def group_of_node(groups: Sequence[Group], node: int) -> Group:
    """The group that a node belongs to."""
    for group in groups:
        if node < group.size:
            return group
        node -= group.size
    return groups[-1]


def merged(common: ClassAd, ads: Sequence[ClassAd]) -> ClassAd:
    """One job of all jobs of a parallel cluster.

    Args:
        common: the ad of the cluster; ads: of its jobs, in order.

    Returns:
        the ad of the first, with the others as groups of its nodes.

    Raises:
        ValueError: they are too many, or no message holds the ad of a node.
    """
    if len(ads) > MOST_GROUPS:
        raise ValueError(f"universe = parallel: a job has at most {MOST_GROUPS} groups of nodes, not {len(ads)}")
    first = ads[0]
    sizes = [size_of(ad) for ad in ads]
    for number, ad in enumerate(ads[1:], 1):
        other = ClassAd()
        for name in (first.own.keys() | ad.own.keys()) - OF_ONE_JOB:
            if name in ad.own:
                other.store(ad.spelling(name), ad.own[name])
            else:
                known = common.find(name)
                other.store(first.spelling(name), UNDEFINED if known is None else known)
        first.store(f"GangGroup{number}", other.to_bytes().decode("utf-8", "surrogateescape"))
    if len(ads) > 1:
        first.store("GangSizes", ",".join(map(str, sizes)))
        first.store("MinHosts", sum(sizes))
        first.store("MaxHosts", sum(sizes))
        longest = max(len(each.text) for each in groups_of(first))
        if len(first.flat().to_bytes()) + longest > MOST_AD_BYTES:
            raise ValueError(f"universe = parallel: {LARGE_AD}; that of a node has what all groups of nodes differ in")
    return first


def largest_text(job: Job) -> int:
    """How many bytes the largest ad has with which a slot for a job, or for a node of a gang, is asked for."""
    return len(job.text) + (max(len(each.text) for each in groups_of(job.ad)) if is_gang(job.ad) else 0)


def assignment(sizes: Sequence[int], fits: Sequence[frozenset[int]]) -> list[list[int]] | None:
    """Which claims serve which group.

    Args:
        sizes: places of each group.
        fits: by claim, the groups that its slot serves.

    Returns:
        the claims of each group; None: not all claims have a place.
    """
    taken: list[list[int]] = [[] for _ in sizes]

    def place(claim: int, tried: set[int]) -> bool:
        for group in sorted(fits[claim] - tried):
            tried.add(group)
            if len(taken[group]) < sizes[group]:
                taken[group].append(claim)
                return True
            for index, other in enumerate(taken[group]):
                if place(other, tried):
                    taken[group][index] = claim
                    return True
        return False

    return taken if all(place(claim, set()) for claim in range(len(fits))) else None
