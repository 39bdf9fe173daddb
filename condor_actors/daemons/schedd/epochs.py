"""One record for every run of every job (JOB_EPOCH_HISTORY), written behind the commit of the run's end."""

from __future__ import annotations

from twisted.internet.threads import deferToThread
from twisted.logger import Logger

from condor_actors.config import Config
from condor_actors.cores.schedd.job_notices import RecordEpoch
from condor_actors.store.record_file import AdRecord, Defer, RecordFile, RecordFileSettings

__all__ = ["EPOCH", "epoch_file", "epoch_record", "epoch_settings"]

EPOCH = "EPOCH"


def epoch_settings(config: Config) -> RecordFileSettings:
    """Where the records of runs are, and how much of them is kept."""
    return RecordFileSettings(path=config.text("JOB_EPOCH_HISTORY") or "",
                              most_bytes=config.size("MAX_EPOCH_HISTORY_LOG"),
                              rotations=config.integer("MAX_EPOCH_HISTORY_ROTATIONS"))


def epoch_file(settings: RecordFileSettings | None = None, defer: Defer = deferToThread) -> RecordFile:
    """What writes them."""
    return RecordFile(settings, what="records of runs", log=Logger("condor.schedd"), defer=defer)


def epoch_record(epoch: RecordEpoch) -> AdRecord:
    """The record of a run that is over."""
    return AdRecord(kind=EPOCH, cluster=epoch.cluster, proc=epoch.proc, instance=epoch.instance, owner=epoch.owner,
                    when_s=epoch.when_s, ad=epoch.cluster_ad + epoch.ad)
