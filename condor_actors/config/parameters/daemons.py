"""Parameters that every daemon has, and the master's own."""

from __future__ import annotations

from condor_actors.config.parameter import boolean, choice, expression, integer, path, real, seconds, size, text, words

MASTER = "MASTER"

ROWS = (
    words(
        "DAEMON_LIST",
        "MASTER",
        "The daemons that the master of this machine"
        " keeps running. MASTER itself may be left out. A name that is not a kind of daemon is an instance: its"
        " <NAME>_ARGS hold -local-name, or its <NAME>_KIND the kind.",
        read_by=MASTER,
    ),
    words("DC_DAEMON_LIST", None, "Accepted for old configurations; every daemon counts as one of ours."),
    text("<DAEMON>_ARGS", None, "More arguments for that daemon's command line.", read_by=MASTER),
    text(
        "<DAEMON>_ENVIRONMENT",
        None,
        "More environment for that daemon: NAME=value; NAME=value.",
        read_by=MASTER,
    ),
    text(
        "<DAEMON>_KIND",
        None,
        "What kind of daemon an instance in DAEMON_LIST is: SCHEDD, STARTD and so on.",
        read_by=MASTER,
    ),
    path("<DAEMON>_LOG", None, "That daemon's log file; $(LOG)/<Name>Log when unset.", read_by=MASTER),
    text("<SUBSYS>_DEBUG", None, "What more that daemon's log tells: D_FULLDEBUG for everything."),
    words(
        "<SUBSYS>_CLASSAD_USER_MAP_NAMES",
        None,
        "The maps that the function userMap knows in that daemon (TOOL: in the commands).",
    ),
    path(
        "CLASSAD_USER_MAPFILE_<NAME>",
        None,
        "The file of a map from users to groups: a line for each rule, '* user group,group'; a user between slashes is"
        " a regular expression.",
    ),
    text("CLASSAD_USER_MAPDATA_<NAME>", None, "A map's rules themselves, where there is no file of it."),
    boolean(
        "CLASSAD_USER_MAP_PREFIX_<NAME>", None, "Whether a name in the map stands for every user that begins with it."
    ),
    integer(
        "CLASSAD_EVALUATION_MAX_STEPS",
        300000,
        "The most steps that one evaluation of an expression may take; beyond, it is an error.",
        low=1000,
    ),
    size(
        "CLASSAD_EVALUATION_MAX_BYTES",
        "32 MB",
        "The most bytes that functions may make in one evaluation of an expression; beyond, it is an error.",
    ),
    size("MAX_<SUBSYS>_LOG", "$(MAX_DEFAULT_LOG)", "The size at which that daemon's log is put aside."),
    integer(
        "MAX_NUM_<SUBSYS>_LOG",
        "$(MAX_NUM_DEFAULT_LOG)",
        "How many logs that were put aside are kept.",
        low=0,
        high=10_000,
    ),
    text(
        "<SUBSYS>_AUDIT_LOG",
        None,
        "Where that daemon writes what others do there, accepted or refused; $(LOG)/<Name>AuditLog when unset. none: "
        "nowhere.",
        change="restart",
    ),
    size(
        "MAX_<SUBSYS>_AUDIT_LOG",
        "10 MB",
        "The size at which that daemon's audit log is put aside; 0 for never.",
        change="restart",
    ),
    integer(
        "MAX_NUM_<SUBSYS>_AUDIT_LOG",
        10,
        "How many audit logs that were put aside are kept.",
        low=1,
        high=10_000,
        unit="files",
        change="restart",
    ),
    size(
        "MAX_DEFAULT_LOG",
        "10 MB",
        "The size at which a daemon's log is put aside and a new one begun; 0 for never.",
    ),
    integer("MAX_NUM_DEFAULT_LOG", 3, "How many logs that were put aside are kept.", low=0, high=10_000, unit="files"),
    text("ALL_DEBUG", None, "What more every daemon's log tells: D_FULLDEBUG for everything."),
    text("DEFAULT_DEBUG", None, "What more a daemon's log tells when its own setting says nothing."),
    text("TOOL_DEBUG", None, "What the commands tell on their standard error."),
    choice(
        "LOG_FORMAT",
        "text",
        "Whether logs are text for people or one JSON object a line.",
        ("text", "json"),
        change="restart",
    ),
    boolean(
        "LOG_TO_JOURNAL",
        False,
        "Whether what daemons log goes to systemd's journal, too, with the number of the job in the field CONDOR_JOB.",
        change="restart",
    ),
    text(
        "TRACES_ENDPOINT",
        None,
        "Where an OpenTelemetry collector takes traces by OTLP over HTTP, http://127.0.0.1:4318/v1/traces for example; "
        "schedds, shadow hosts and starter hosts send it a trace of each job then. Undefined: no traces.",
        change="restart",
    ),
    real(
        "TRACES_SAMPLE",
        1.0,
        "The share of the jobs that are traced. Which ones follows from the number of a job's trace, so all machines "
        "with the same share trace the same jobs.",
        low=0,
        high=1,
        change="restart",
    ),
    integer(
        "TRACES_QUEUE",
        10_000,
        "How many spans of traces may wait in a daemon to be sent; what is beyond that is lost, and counted.",
        low=1,
        high=1_000_000,
        unit="spans",
        change="restart",
    ),
    text("MASTER_NAME", None, "The name of this master's ad, when a machine has several."),
    seconds(
        "MASTER_BACKOFF_CONSTANT",
        9,
        "Added to the waiting time before a daemon is started again, from its second failure in a row on.",
        read_by=MASTER,
    ),
    real(
        "MASTER_BACKOFF_FACTOR",
        2.0,
        "By which the waiting time grows from failure to failure.",
        low=1,
        high=100,
        read_by=MASTER,
    ),
    seconds(
        "MASTER_BACKOFF_CEILING",
        3600,
        "The longest that a failing daemon waits to be started again.",
        low=1,
        read_by=MASTER,
    ),
    seconds(
        "MASTER_RECOVER_FACTOR",
        300,
        "How long a daemon has to live for its failures to be forgotten.",
        low=1,
        read_by=MASTER,
    ),
    seconds(
        "MASTER_UPDATE_INTERVAL",
        300,
        "How often the master sends its ad to the collector.",
        low=1,
        read_by=MASTER,
    ),
    seconds(
        "MASTER_CHECK_NEW_EXEC_INTERVAL",
        300,
        "How often the master checks whether a newer version is installed.",
        low=1,
        read_by=MASTER,
    ),
    seconds(
        "MASTER_NEW_BINARY_DELAY",
        120,
        "How long after it noticed a newer version the master waits, so that the installation is complete.",
        read_by=MASTER,
    ),
    choice(
        "MASTER_NEW_BINARY_RESTART",
        "GRACEFUL",
        "How daemons are stopped when a newer version is installed; NEVER leaves them.",
        ("GRACEFUL", "PEACEFUL", "FAST", "NEVER"),
        read_by=MASTER,
    ),
    seconds(
        "SHUTDOWN_GRACEFUL_TIMEOUT",
        1800,
        "How long a daemon may take to stop gracefully before it is stopped fast.",
        low=1,
    ),
    seconds(
        "SHUTDOWN_FAST_TIMEOUT", 120, "How long a daemon may take to stop fast before it is killed.", low=1
    ),
    integer(
        "OBITUARY_LOG_LENGTH",
        20,
        "How many of the last lines of its log the mail about a dead daemon quotes.",
        low=0,
        unit="lines",
        read_by=MASTER,
    ),
    boolean(
        "PUBLISH_OBITUARIES", True, "Whether CONDOR_ADMIN gets a mail when a daemon dies.", read_by=MASTER
    ),
    boolean(
        "START_DAEMONS",
        True,
        "Whether the master starts its daemons at once, or waits for condor_on.",
        read_by=MASTER,
    ),
    expression(
        "DAEMON_SHUTDOWN",
        None,
        "An expression over the daemon's own ad; once true the daemon stops gracefully.",
    ),
    expression(
        "DAEMON_SHUTDOWN_FAST",
        None,
        "An expression over the daemon's own ad; once true the daemon stops fast.",
    ),
    words("<SUBSYS>_ATTRS", None, "Names of macros that are put into that daemon's ads as attributes."),
    words("<SUBSYS>_EXPRS", None, "An older name of <SUBSYS>_ATTRS."),
    boolean(
        "ENABLE_PERSISTENT_CONFIG",
        False,
        "Whether condor_config_val -set may change settings for good.",
        change="restart",
    ),
    path(
        "PERSISTENT_CONFIG_DIR",
        None,
        "Where settings made with condor_config_val -set are kept.",
        change="restart",
    ),
    boolean(
        "ENABLE_RUNTIME_CONFIG",
        False,
        "Whether condor_config_val -rset may change settings until the daemon stops.",
        change="restart",
    ),
    words(
        "SETTABLE_ATTRS_<LEVEL>",
        None,
        "Which settings a caller with that level may change remotely; * matches anything.",
    ),
    path("MASTER", "$(SBIN)/condor_master", "Stands for the master when DAEMON_LIST has an instance:"
         " EAST = $(MASTER).", read_by="MASTER"),
    path("COLLECTOR", "$(SBIN)/condor_collector", "Stands for the collector when DAEMON_LIST has an instance:"
         " EAST = $(COLLECTOR).", read_by="MASTER"),
    path("NEGOTIATOR", "$(SBIN)/condor_negotiator", "Stands for the negotiator when DAEMON_LIST has an instance:"
         " EAST = $(NEGOTIATOR).", read_by="MASTER"),
    path("SCHEDD", "$(SBIN)/condor_schedd", "Stands for the schedd when DAEMON_LIST has an instance:"
         " EAST = $(SCHEDD).", read_by="MASTER"),
    path("STARTD", "$(SBIN)/condor_startd", "Stands for the startd when DAEMON_LIST has an instance:"
         " EAST = $(STARTD).", read_by="MASTER"),
    path("CKPT_SERVER", "$(SBIN)/condor_ckpt_server", "Stands for the checkpoint server when DAEMON_LIST has an"
         " instance: EAST = $(CKPT_SERVER).", read_by="MASTER"),
    path("KBDD", "$(SBIN)/condor_kbdd", "Stands for the kbdd when DAEMON_LIST has an instance:"
         " EAST = $(KBDD).", read_by="MASTER"),
)
