"""Parameters of the schedd, the shadow and the commands that submit."""

from __future__ import annotations

from condor_actors.config.parameter import (
    boolean,
    expression,
    integer,
    path,
    seconds,
    text,
    transform,
    words,
)

SCHEDD = "SCHEDD"

ROWS = (
    text("SCHEDD_NAME", None, "The name of the schedd's ad, when a machine has several."),
    text(
        "SCHEDD_HOST", None, "The schedd that commands talk to when none is named; this machine's when unset."
    ),
    seconds(
        "SCHEDD_INTERVAL",
        300,
        "How often the schedd renews its ads and looks over its queue.",
        low=1,
        read_by=SCHEDD,
    ),
    seconds(
        "USER_FILE_TIMEOUT",
        60,
        "How long one piece of work on a user's file (a log, an input, an output) may take before the job is held, or "
        "the log given up.",
        low=1,
    ),
    path(
        "CHECKPOINT_DESTINATION_MAPFILE",
        "$(ETC)/checkpoint-destination-mapfile",
        "A file that says which programs remove checkpoints that jobs have sent to a URL (checkpoint_destination). A "
        "line has *, the beginning of URLs, and a program of $(LIBEXEC) with its arguments, separated by commas.",
    ),
    seconds(
        "CHECKPOINT_CLEANUP_TIMEOUT",
        20,
        "How long it may take to remove one file of a checkpoint at a URL; then it is tried again later.",
        low=1,
        high=86_400,
    ),
    integer(
        "DEFAULT_NUM_EXTRA_CHECKPOINTS",
        1,
        "How many checkpoints of a job stay at its checkpoint_destination beside the last one.",
        low=0,
        unit="checkpoints",
    ),
    seconds("SCHEDD_MIN_INTERVAL", 5, "The least time between two looks over the queue.", read_by=SCHEDD),
    integer(
        "MAX_JOBS_RUNNING",
        10000,
        "How many jobs the schedd runs at once.",
        low=0,
        unit="jobs",
        read_by=SCHEDD,
    ),
    seconds(
        "UNUSED_CLAIM_TIMEOUT",
        600,
        "How long the schedd keeps machines idle that it gathers for a job of the parallel universe; when the gang is "
        "not whole by then it gives them back and stands aside for a while.",
        low=1,
        read_by=SCHEDD,
    ),
    integer(
        "MAX_JOBS_SUBMITTED",
        2147483647,
        "How many jobs the queue may hold.",
        low=0,
        unit="jobs",
        read_by=SCHEDD,
    ),
    integer(
        "MAX_JOBS_PER_OWNER",
        100000,
        "How many jobs of one owner the queue may hold.",
        low=0,
        unit="jobs",
        read_by=SCHEDD,
    ),
    integer(
        "MAX_JOBS_PER_SUBMISSION",
        20000,
        "How many jobs one cluster may hold.",
        low=1,
        unit="jobs",
        read_by=SCHEDD,
    ),
    boolean(
        "USE_JOBSETS",
        True,
        "Whether clusters that name a job set (jobset) are gathered in it; if not, such a submission is refused.",
        read_by=SCHEDD,
    ),
    integer(
        "MAX_RUNNING_SCHEDULER_JOBS_PER_OWNER",
        200,
        "How many scheduler-universe jobs of one owner run at once.",
        low=0,
        read_by=SCHEDD,
    ),
    integer(
        "START_LOCAL_UNIVERSE_MAX", 200, "How many local-universe jobs run at once.", low=0, read_by=SCHEDD
    ),
    integer(
        "GRIDMANAGER_MAX_SUBMITTED_JOBS_PER_RESOURCE",
        1000,
        "How many jobs of an owner are in another batch system at once.",
        low=0,
        unit="jobs",
        read_by=SCHEDD,
    ),
    integer(
        "GRIDMANAGER_MAX_PENDING_REQUESTS",
        8,
        "How many submissions to another batch system are under way at once for an owner.",
        low=1,
    ),
    seconds(
        "GRIDMANAGER_JOB_PROBE_INTERVAL",
        10,
        "How often the grid manager of an owner asks another batch system for all the owner's jobs.",
        low=1,
    ),
    seconds(
        "GRIDMANAGER_RESOURCE_PROBE_INTERVAL",
        30,
        "How often it asks one that does not answer.",
        low=1,
    ),
    seconds(
        "GRIDMANAGER_GAHP_CALL_TIMEOUT",
        60,
        "How long a command of another batch system, or an answer of another schedd, may take.",
        low=1,
    ),
    integer(
        "GRIDMANAGER_CONNECT_FAILURE_RETRY_COUNT",
        3,
        "How often a submission that another batch system does not answer is repeated before the job is held.",
        low=0,
        unit="times",
    ),
    text(
        "GRIDMANAGER_FOLDER",
        "~/.condor-grid",
        "Where jobs in another batch system have their folders, on a file system that its machines see under the same "
        "path; ~ is the owner's home.",
    ),
    text(
        "SLURM_BINPATH",
        None,
        "The folder of sbatch, squeue, scancel and sacct; where PATH finds them when unset.",
    ),
    text("SLURM_CONF", None, "Slurm's configuration file; its own default when unset."),
    expression(
        "START_LOCAL_UNIVERSE",
        "TotalLocalJobsRunning < 200",
        "Whether a local-universe job may start, over the schedd's ad and the job's.",
        read_by=SCHEDD,
    ),
    expression(
        "START_SCHEDULER_UNIVERSE",
        "TotalSchedulerJobsRunning < 500",
        "Whether a scheduler-universe job may start, over the schedd's ad and the job's.",
        read_by=SCHEDD,
    ),
    integer(
        "JOB_START_COUNT",
        1,
        "How many jobs may start within JOB_START_DELAY.",
        low=1,
        unit="jobs",
        read_by=SCHEDD,
    ),
    seconds(
        "JOB_START_DELAY",
        0,
        "The time that JOB_START_COUNT is counted over; 0 for no throttle.",
        read_by=SCHEDD,
    ),
    seconds(
        "MAX_NEXT_JOB_START_DELAY",
        600,
        "The longest time that a job may keep its owner's next job waiting (next_job_start_delay).",
        read_by=SCHEDD,
    ),
    seconds(
        "JOB_DEFAULT_LEASE_DURATION",
        2400,
        "How long a job outlives the loss of contact with its submit machine.",
        low=20,
    ),
    seconds(
        "ALIVE_INTERVAL", 300, "The longest time between two renewals of a claim.", low=1, read_by=SCHEDD
    ),
    seconds(
        "REQUEST_CLAIM_TIMEOUT",
        1800,
        "How long a startd may take to answer the request for a claim.",
        low=1,
        read_by=SCHEDD,
    ),
    boolean(
        "CLAIM_PARTITIONABLE_LEFTOVERS",
        True,
        "Whether what a claim leaves of a partitionable slot is claimed for further jobs at once.",
        read_by=SCHEDD,
    ),
    integer(
        "PERIODIC_EXPR_INTERVAL",
        60,
        "How often the periodic expressions of jobs are looked at.",
        low=1,
        unit="s",
        read_by=SCHEDD,
    ),
    expression("SYSTEM_PERIODIC_HOLD", None, "Jobs for which this is true are held.", read_by=SCHEDD),
    text(
        "SYSTEM_PERIODIC_HOLD_REASON",
        None,
        "An expression that gives the reason of such a hold.",
        read_by=SCHEDD,
    ),
    text(
        "SYSTEM_PERIODIC_HOLD_SUBCODE",
        None,
        "An expression that gives the subcode of such a hold.",
        read_by=SCHEDD,
    ),
    expression(
        "SYSTEM_PERIODIC_RELEASE", None, "Held jobs for which this is true are released.", read_by=SCHEDD
    ),
    expression("SYSTEM_PERIODIC_REMOVE", None, "Jobs for which this is true are removed.", read_by=SCHEDD),
    expression(
        "SYSTEM_PERIODIC_VACATE", None, "Running jobs for which this is true are vacated.", read_by=SCHEDD
    ),
    expression(
        "SUBMIT_REQUIREMENT_<NAME>",
        None,
        "What a job has to satisfy to be taken into the queue.",
        read_by=SCHEDD,
    ),
    words("SUBMIT_REQUIREMENT_NAMES", None, "The SUBMIT_REQUIREMENT_ settings in force.", read_by=SCHEDD),
    words(
        "JOB_TRANSFORM_NAMES", None, "The JOB_TRANSFORM_ settings in force, in the order in which they are applied.",
        read_by=SCHEDD,
    ),
    transform(
        "JOB_TRANSFORM_<NAME>",
        "What is changed in the ads of jobs when they are submitted: statements such as SET, DEFAULT, COPY, RENAME, "
        "DELETE, EVALSET and EVALMACRO, a line each, for the jobs that its REQUIREMENTS names.",
        read_by=SCHEDD,
    ),
    text(
        "SUBMIT_REQUIREMENT_<NAME>_REASON",
        None,
        "An expression that tells the user what was not satisfied.",
        read_by=SCHEDD,
    ),
    expression(
        "SUBMIT_REQUIREMENT_<NAME>_IS_WARNING",
        None,
        "Where true, a job that does not satisfy it is taken all the same, and the schedd's log says so.",
        read_by=SCHEDD,
    ),
    words(
        "SYSTEM_IMMUTABLE_JOB_ATTRS",
        "ClusterId ProcId GlobalJobId Owner User QDate MyType TargetType NTDomain",
        "Job attributes that nobody changes.",
        read_by=SCHEDD,
    ),
    words(
        "SYSTEM_SECURE_JOB_ATTRS",
        "x509userproxysubject x509UserProxyEmail x509UserProxyVOName x509UserProxyFirstFQAN x509UserProxyFQAN "
        "TotalSubmitProcs AuthTokenSubject AuthTokenIssuer AuthTokenGroups AuthTokenId AuthTokenScopes OsUser",
        "Job attributes that only the schedd sets, whatever a submitter says.",
        read_by=SCHEDD,
    ),
    words("SECURE_JOB_ATTRS", None, "More job attributes that only the schedd sets.", read_by=SCHEDD),
    boolean(
        "IGNORE_ATTEMPTS_TO_SET_SECURE_JOB_ATTRS",
        True,
        "Whether such an attribute in a submission or an edit is passed over, or the whole is refused.",
        read_by=SCHEDD,
    ),
    words(
        "CHARGE_ALLOW_USERS",
        None,
        "Who may charge jobs to other users: rules who=whom, as in dean=alice or ops=service-*. All users may charge "
        "themselves.",
        read_by=SCHEDD,
    ),
    words(
        "CHARGE_ALLOW_GROUPS",
        None,
        "Who may charge which accounting group and its sub-groups, in their own name: rules who=group, as in "
        "alice=physics or *=common. Unset: everybody any group, as in HTCondor.",
        read_by=SCHEDD,
    ),
    integer(
        "MAX_LOST_RUNS",
        20,
        "A job of which so many runs in a row were lost, since starter or machine died under it, is held: it may be"
        " what kills them. 0: it is always run again.",
        low=0,
        unit="runs",
        read_by=SCHEDD,
    ),
    integer(
        "MAX_RESERVED_CLUSTERS_PER_OWNER",
        100,
        "How many submissions one owner may have begun and not finished. Their cluster numbers come back when the "
        "link that reserved them ends, or after ten minutes.",
        low=1,
        unit="submissions",
        read_by=SCHEDD,
    ),
    words(
        "PRIVATE_JOB_ATTRS",
        "Environment Env Arguments Args",
        "Job attributes that only the job's owner and the super users of the queue see, in condor_q and condor_history "
        "and in the constraints given to these. Empty: everybody sees everything, as in HTCondor.",
        read_by=SCHEDD,
    ),
    words(
        "CHIRP_DELAYED_UPDATE_PREFIX",
        "Chirp*",
        "Which job attributes a job may set delayed, without want_io_proxy; * stands for any letters. Read on both "
        "sides; the submit machine's has the last word.",
        read_by="SCHEDD STARTER",
    ),
    integer(
        "CHIRP_DELAYED_UPDATE_MAX_ATTRS",
        100,
        "How many different attributes a run may set delayed. Read on both sides.",
        low=0,
        unit="attributes",
        read_by="SCHEDD STARTER",
    ),
    words(
        "LIMIT_DIRECTORY_ACCESS",
        None,
        "Folders of the submit machine: jobs use files by chirp below these only, whatever they ask for. Unset: below "
        "the job's own folder and the folders that its LimitDirectoryAccess names.",
        read_by=SCHEDD,
    ),
    words("IMMUTABLE_JOB_ATTRS", None, "More job attributes that nobody changes.", read_by=SCHEDD),
    words(
        "SYSTEM_PROTECTED_JOB_ATTRS",
        "CurrentHosts CompletionDate JobStatus NumJobStarts",
        "Job attributes that only a super user of the queue changes.",
        read_by=SCHEDD,
    ),
    words(
        "PROTECTED_JOB_ATTRS",
        None,
        "More job attributes that only a super user of the queue changes.",
        read_by=SCHEDD,
    ),
    words(
        "SIGNIFICANT_ATTRIBUTES",
        None,
        "Job attributes that always tell autoclusters apart; found out from the pool when unset.",
        read_by=SCHEDD,
    ),
    words("ADD_SIGNIFICANT_ATTRIBUTES", None, "More such attributes.", read_by=SCHEDD),
    words(
        "REMOVE_SIGNIFICANT_ATTRIBUTES",
        None,
        "Attributes that never tell autoclusters apart.",
        read_by=SCHEDD,
    ),
    seconds(
        "SHADOW_QUEUE_UPDATE_INTERVAL",
        900,
        "How often a shadow brings what it knows of a running job into the queue.",
        low=1,
    ),
    integer(
        "MAX_TRANSFER_INPUT_MB",
        -1,
        "The most MB of input a job may bring; -1 for any amount.",
        low=-1,
        unit="MB",
    ),
    integer(
        "MAX_TRANSFER_OUTPUT_MB",
        -1,
        "The most MB of output a job may leave; -1 for any amount.",
        low=-1,
        unit="MB",
    ),
    integer(
        "MAX_CONCURRENT_UPLOADS",
        100,
        "How many transfers to execute machines go on at once.",
        low=0,
        read_by=SCHEDD,
    ),
    integer(
        "MAX_CONCURRENT_DOWNLOADS",
        100,
        "How many transfers from execute machines go on at once.",
        low=0,
        read_by=SCHEDD,
    ),
    words(
        "FLOCK_TO",
        None,
        "Other pools that jobs may go to, which are offered to them one after the other when this pool cannot serve"
        " them: names of partners (condor_flock), or hosts of their central managers.",
        read_by=SCHEDD,
    ),
    words(
        "FLOCK_COLLECTOR_HOSTS",
        "$(FLOCK_TO)",
        "Those pools of FLOCK_TO that jobs are offered to by default; to the others go jobs whose FlockTo names them.",
        read_by=SCHEDD,
    ),
    boolean(
        "FLOCK_BY_DEFAULT",
        True,
        "Whether jobs without FlockTo are offered to the pools of FLOCK_COLLECTOR_HOSTS; if not, those jobs alone go to"
        ' other pools whose FlockTo names pools, or "default".',
        read_by=SCHEDD,
    ),
    integer(
        "MIN_FLOCK_LEVEL",
        0,
        "To so many of the pools of FLOCK_COLLECTOR_HOSTS jobs are offered at once, and not first when this pool cannot"
        " serve them.",
        low=0,
        read_by=SCHEDD,
    ),
    integer(
        "FLOCK_INCREMENT",
        1,
        "To how many more pools jobs are offered at a time.",
        low=1,
        read_by=SCHEDD,
    ),
    words(
        "FLOCK_FROM",
        None,
        "Other pools whose jobs are welcome: names of partners (condor_flock), or patterns of their submit machines.",
    ),
    seconds(
        "VANISHED_MACHINE_TIMEOUT",
        600,
        "A standard-universe job in a pool behind a gateway goes on elsewhere, from its last checkpoint, when that"
        " pool's gateway has said for so long that its machine does not answer; or when the job's lease is over. After"
        " a restart of that pool's central manager its gateway may say so of good machines for UPDATE_INTERVAL.",
        low=1,
        read_by="SHADOW",
    ),
    expression(
        "PRIO",
        None,
        "The order of an owner's own jobs, the highest first; in it UserPrio is the job's JobPrio. Unset: by the job's"
        " priority attributes, then by submission.",
        read_by=SCHEDD,
    ),
    words(
        "STANDARD_LIBRARY_FOLDERS",
        "/usr /lib /lib64 /bin /sbin /opt",
        "Folders of programs and libraries, whose files are replaced and never changed through a mapping: execute"
        " machines may keep what lies below and every user may read, for the next runs of the same owner. Empty: none"
        " is kept.",
        read_by="SHADOW",
    ),
    words("CKPT_SERVER_HOST", None, "The checkpoint server that keeps checkpoints of jobs that do not run, so that"
          " SPOOL need not: host or host:port.", read_by="SHADOW"),
    boolean("USE_CKPT_SERVER", True, "Whether CKPT_SERVER_HOST is used.", read_by="SHADOW"),
    integer("CKPT_SERVER_PORT", 5651, "The port of the checkpoint server.", low=0, high=65535, change="restart"),
    path("CKPT_SERVER_DIR", "$(SPOOL)/ckpt_server", "Where the checkpoint server keeps what it is given.",
         read_by="CKPT_SERVER", change="restart"),
    seconds("CKPT_SERVER_LEASE", 30 * 86400, "What nobody has stored or fetched for so long goes.", low=60,
            read_by="CKPT_SERVER"),
    integer("CKPT_SERVER_QUOTA", 0, "How many MiB one owner may keep at the checkpoint server; 0 for any number.",
            low=0, read_by="CKPT_SERVER"),
    integer("CKPT_SERVER_SIZE", 0, "How many MiB the checkpoint server keeps in all; 0 for any number.", low=0,
            read_by="CKPT_SERVER"),
    integer("SYSTEM_MAX_RELEASES", -1, "A job that was held so often is released by no policy; -1 for no limit.",
            low=-1, read_by=SCHEDD),
    words("SYSTEM_PERIODIC_HOLD_NAMES", None, "Names of further SYSTEM_PERIODIC_HOLD_ settings.", read_by=SCHEDD),
    words("SYSTEM_PERIODIC_RELEASE_NAMES", None, "Names of further SYSTEM_PERIODIC_RELEASE_ settings.", read_by=SCHEDD),
    words("SYSTEM_PERIODIC_REMOVE_NAMES", None, "Names of further SYSTEM_PERIODIC_REMOVE_ settings.", read_by=SCHEDD),
    words("SYSTEM_PERIODIC_VACATE_NAMES", None, "Names of further SYSTEM_PERIODIC_VACATE_ settings.", read_by=SCHEDD),
)
