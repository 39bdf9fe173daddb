"""Whether a run's files are transferred, or used where they are on a disk that both machines have.

===================  ==============================================================================
ShouldTransferFiles  files are transferred
===================  ==============================================================================
``YES``, ``NO``      as it says
``IF_NEEDED``        root's always (nothing runs as root, so its files cannot be used in place); those of
                     jobs with URLs (only a transfer fetches or sends them); else unless both machines have
                     the same FileSystemDomain
===================  ==============================================================================
"""

from __future__ import annotations

from condor_actors.classads import ClassAd
from condor_actors.cores.output_destinations import OutputUrls
from condor_actors.messages.references.urls import travels_as_url

__all__ = ["files_travel", "has_urls"]


def has_urls(job: ClassAd) -> bool:
    """Whether the execute machine has to fetch some of a job's inputs from URLs, or to send outputs to some."""
    inputs = job.get_str("TransferInput").split(",")
    return any(travels_as_url(name.strip()) for name in inputs) or bool(OutputUrls(job))


def files_travel(job: ClassAd, slot: ClassAd, domain: str, *, of_root: bool) -> bool:
    """Whether they are transferred.

    Args:
        job: its ad.
        slot: the ad of the slot that it runs on.
        domain: the submit machine's FILESYSTEM_DOMAIN, for a job that names none.
        of_root: the job is root's.
    """
    should = job.get_str("ShouldTransferFiles", "IF_NEEDED").upper()
    if should != "IF_NEEDED":
        return should == "YES"
    theirs = slot.get_str("FileSystemDomain")
    return of_root or has_urls(job) or not theirs or theirs != job.get_str("FileSystemDomain", domain)
