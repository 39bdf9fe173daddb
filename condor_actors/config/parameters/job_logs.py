"""Parameters of what is written about jobs: the history, epochs, the event log, user logs."""

from __future__ import annotations

from condor_actors.config.parameter import (
    boolean,
    integer,
    path,
    seconds,
    size,
    words,
)

SCHEDD = "SCHEDD"

ROWS = (
    path(
        "HISTORY",
        "$(SPOOL)/history",
        "Where jobs that left the queue are also recorded as text, for condor_history -file and other programs;"
        " only where it is set, for the database in SPOOL has them all.",
    ),
    integer("MAX_HISTORY_JOBS", 1000000, "How many jobs that left the queue the database in SPOOL keeps.", low=0,
            unit="jobs", read_by=SCHEDD),
    integer("HISTORY_COLUMNS_PERCENT", 25, "How much the files in SPOOL/history.columns, from which condor_history"
            " -totals answers, may take of what the jobs in the database take; 0: there are none.", low=0, high=400,
            unit="percent", read_by=SCHEDD),
    boolean("ENABLE_HISTORY_ROTATION", True, "Whether the text history is put aside when it has grown."),
    size("MAX_HISTORY_LOG", "20 MB", "The size at which the text history is put aside."),
    integer("MAX_HISTORY_ROTATIONS", 2, "How many text histories that were put aside are kept.", low=1,
            high=10_000),
    path("JOB_EPOCH_HISTORY", "$(SPOOL)/epoch_history",
         "Gets a job's ad whenever a run of it ends, for condor_history -epochs, and a record of each way that its"
         " files travelled, for -transfer-history; empty for none.", read_by=SCHEDD),
    path("JOB_EPOCH_HISTORY_DIR", None,
         "A folder that also gets these ads, one file job.runs.C.P.ads for each job, for condor_history -epochs"
         " -directory; nothing removes them.", read_by=SCHEDD),
    size("MAX_EPOCH_HISTORY_LOG", "20 MB", "The size at which that file is put aside.", read_by=SCHEDD),
    integer("MAX_EPOCH_HISTORY_ROTATIONS", 2, "How many of them that were put aside are kept.", low=1, high=10_000,
            read_by=SCHEDD),
    path("SCHEDD_DAEMON_HISTORY", "$(SPOOL)/schedd_daemon_history",
         "Gets the schedd's own ad from time to time, for condor_history -daemon; empty for none.", read_by=SCHEDD),
    seconds("SCHEDD_HISTORY_RECORD_INTERVAL", 900, "How often the schedd records its own ad there.", low=1,
            read_by=SCHEDD),
    size("MAX_DAEMON_HISTORY_LOG", "20 MB", "The size at which that file is put aside.", read_by=SCHEDD),
    integer("MAX_DAEMON_HISTORY_ROTATIONS", 1, "How many of them that were put aside are kept.", low=1, high=10_000,
            read_by=SCHEDD),
    words("TRANSFER_JOB_ATTRS", None, "Attributes of a job that the records of its files' travels have, too"
          " (condor_history -transfer-history).", read_by=SCHEDD),
    path("STARTD_HISTORY", "$(LOG)/startd_history",
         "Gets a job's ad whenever a run of it ends on this machine, for condor_history -startd; empty for none."
         " MAX_HISTORY_LOG and MAX_HISTORY_ROTATIONS bound it.", read_by="STARTD STARTER"),
    path(
        "PER_JOB_HISTORY_DIR",
        None,
        "A folder that gets one file history.C.P for each job that leaves the queue.",
        read_by=SCHEDD,
    ),
    path("STARTD_PER_JOB_HISTORY_DIR", None,
         "A folder that gets one file history.GLOBALJOBID for each job whenever a run of it ends here, in the"
         " place of the one before; nothing removes them.", read_by="STARTER"),
    path("EVENT_LOG", None, "One event log for the jobs of all users of this machine."),
    size("EVENT_LOG_MAX_SIZE", "1 MB", "The size at which that event log is put aside."),
    integer("EVENT_LOG_MAX_ROTATIONS", 1, "How many of them are kept.", low=0, high=10_000),
    boolean("EVENT_LOG_FSYNC", False, "Whether each event in it is forced to the disk."),
    boolean("ENABLE_USERLOG_FSYNC", True, "Whether each event in a user's log is forced to the disk."),
    boolean("ENABLE_USERLOG_LOCKING", True, "Whether a user's log is locked while it is written to."),
    words("DEFAULT_USERLOG_FORMAT_OPTIONS", None, "Options of jobs' own event logs: XML, or ISO_DATE as always."),
    words("EVENT_LOG_FORMAT_OPTIONS", None,
          "Options of that event log: XML, UTC, SUB_SECOND; its dates are ISO_DATE in any case.", read_by=SCHEDD),
    integer(
        "HISTORY_HELPER_MAX_HISTORY", 2147483647, "The most records that one condor_history gets.", low=1,
        read_by="SCHEDD STARTD"
    ),
)
