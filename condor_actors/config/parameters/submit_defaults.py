"""Parameters of condor_submit and condor_q: what a job gets that does not say, what is shown."""

from __future__ import annotations

from condor_actors.config.parameter import (
    boolean,
    choice,
    expression,
    integer,
    text,
    words,
)

ROWS = (
    choice(
        "JOB_DEFAULT_NOTIFICATION",
        "NEVER",
        "Of which ends of a job its owner gets a mail when the submit file does not say.",
        ("NEVER", "COMPLETE", "ERROR", "ALWAYS"),
    ),
    text("JOB_DEFAULT_REQUESTCPUS", "1", "What request_cpus is when the submit file does not say."),
    text(
        "JOB_DEFAULT_REQUESTMEMORY",
        "ifThenElse(MemoryUsage =!= undefined, MemoryUsage, 128)",
        "What request_memory (MiB) is when the submit file does not say.",
    ),
    text(
        "JOB_DEFAULT_REQUESTDISK",
        "DiskUsage",
        "What request_disk (KiB) is when the submit file does not say.",
    ),
    text("JOB_DEFAULT_REQUESTGPUS", None, "What request_gpus is when the submit file does not say."),
    text("DEFAULT_UNIVERSE", "vanilla", "The universe of a submit file that names none."),
    text("DEFAULT_RANK", None, "The rank of a submit file that names none."),
    expression("APPEND_REQUIREMENTS", None, "Added to the requirements of every job."),
    expression("APPEND_REQ_VANILLA", None, "Added to the requirements of vanilla jobs."),
    expression("APPEND_RANK", None, "Added to the rank of every job."),
    words("SUBMIT_ATTRS", None, "Macros that are put into every job as attributes."),
    words("SUBMIT_EXPRS", None, "An older name of SUBMIT_ATTRS."),
    words("SYSTEM_SUBMIT_ATTRS", None, "More such macros, which a site sets beside the SUBMIT_ATTRS of its users."),
    boolean("SUBMIT_SEND_RESCHEDULE", True, "Whether submit asks for an early cycle."),
    choice(
        "SHOULD_TRANSFER_FILES",
        "IF_NEEDED",
        "Whether files are transferred when the submit file does not say.",
        ("YES", "NO", "IF_NEEDED"),
    ),
    boolean("CONDOR_Q_ONLY_MY_JOBS", True, "Whether condor_q shows only the caller's jobs."),
    boolean("CONDOR_Q_DASH_BATCH_IS_DEFAULT", True, "Whether condor_q gathers jobs in batches."),
    boolean("CONDOR_Q_SHOW_OLD_SUMMARY", False, "Whether condor_q ends with the old summary line."),
    integer("DEFAULT_JOB_MAX_RETRIES", 2, "What max_retries is when a submit file asks for retries without saying how"
            " many.", low=0),
    text("SUBMIT_DEFAULT_SHOULD_TRANSFER_FILES", None, "What should_transfer_files is when the submit file does not"
         " say."),
    choice("SUBMIT_REQUEST_MISSING_UNITS", None, "Whether a request for memory or disk without a unit is warned of or"
           " refused.", ("warn", "error")),
    boolean("SUBMIT_SKIP_FILECHECKS", True, "Whether submit leaves input and output files to be looked at when they"
            " are used; condor_submit -disable does so for once."),
    boolean("WARN_ON_UNUSED_SUBMIT_FILE_MACROS", True, "Whether submit warns of macros that nothing uses."),
)
