"""What a schedd records in files of its own, beside its database.

Every run of every job (JOB_EPOCH_HISTORY, and a file for each job in JOB_EPOCH_HISTORY_DIR), behind the commit of its
end, and from time to time its own ad (SCHEDD_DAEMON_HISTORY).
"""

from __future__ import annotations

from twisted.internet.interfaces import IReactorTime
from twisted.internet.threads import deferToThread
from twisted.logger import Logger

from condor_actors.classads import ClassAd
from condor_actors.config import Config
from condor_actors.cores.schedd.job_notices import EPOCH, RecordEpoch
from condor_actors.store.record_file import AdRecord, Defer, RecordFile, RecordFileSettings

__all__ = ["DAEMON", "EPOCH", "daemon_file", "daemon_record", "daemon_settings", "epoch_file", "epoch_record",
           "epoch_settings"]

DAEMON = "SCHEDD"

def epoch_settings(config: Config) -> RecordFileSettings:
    """Where the records of runs are, and how much of them is kept."""
    return RecordFileSettings(path=config.text("JOB_EPOCH_HISTORY") or "",
                              most_bytes=config.size("MAX_EPOCH_HISTORY_LOG"),
                              rotations=config.integer("MAX_EPOCH_HISTORY_ROTATIONS"),
                              folder=config.text("JOB_EPOCH_HISTORY_DIR") or "", kind=EPOCH)


def epoch_file(settings: RecordFileSettings | None = None, defer: Defer = deferToThread,
               clock: IReactorTime | None = None) -> RecordFile:
    """What writes them."""
    return RecordFile(settings, what="records of runs", log=Logger("condor.schedd"), defer=defer, clock=clock)


def daemon_settings(config: Config) -> RecordFileSettings:
    """Where the schedd's own ads are, and how many of them are kept."""
    return RecordFileSettings(path=config.text("SCHEDD_DAEMON_HISTORY") or "",
                              most_bytes=config.size("MAX_DAEMON_HISTORY_LOG"),
                              rotations=config.integer("MAX_DAEMON_HISTORY_ROTATIONS"))


def daemon_file(settings: RecordFileSettings | None = None, defer: Defer = deferToThread) -> RecordFile:
    """What writes them."""
    return RecordFile(settings, what="records of the schedd's ad", log=Logger("condor.schedd"), defer=defer)


def daemon_record(ad: ClassAd, now_s: float) -> AdRecord:
    """The schedd's ad of this moment."""
    ad["RecordWriteDate"] = int(now_s)
    return AdRecord(kind=DAEMON, when_s=now_s, ad=ad.to_bytes())


def epoch_record(epoch: RecordEpoch) -> AdRecord:
    """The record of a run that is over, or of its files' travels."""
    return AdRecord(kind=epoch.kind, cluster=epoch.cluster, proc=epoch.proc, instance=epoch.instance, owner=epoch.owner,
                    when_s=epoch.when_s, ad=epoch.cluster_ad + epoch.ad)
