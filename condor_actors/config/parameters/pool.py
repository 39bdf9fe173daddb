"""Parameters of the pool as a whole and of the folders of one machine."""

from __future__ import annotations

from condor_actors.config.parameter import boolean, choice, integer, path, seconds, text, words

ROWS = (
    text(
        "CONDOR_HOST",
        "$(FULL_HOSTNAME)",
        "The machine that runs the central manager (collector and negotiator).",
        change="restart",
    ),
    words(
        "COLLECTOR_HOST",
        "$(CONDOR_HOST)",
        "Where the collector listens: host, or host:port (9618 when no port is"
        " given). Several, with commas between, are tried in order.",
        change="restart",
    ),
    text("COLLECTOR_NAME", None, "A name for the pool, shown to people."),
    path(
        "LOCAL_DIR",
        "/var/lib/condor",
        "The folder under which this machine keeps its logs, queue, sandboxes and"
        " sockets, unless one of them is put elsewhere.",
    ),
    path("RELEASE_DIR", "/usr", "The folder the software is installed in."),
    path("BIN", "$(RELEASE_DIR)/bin", "Where the commands for users are."),
    path("SBIN", "$(RELEASE_DIR)/sbin", "Where the commands for administrators are."),
    path(
        "LIBEXEC", "$(RELEASE_DIR)/libexec/condor", "Where programs are that daemons run on their own behalf."
    ),
    path("LIB", "$(RELEASE_DIR)/lib/condor", "Where libraries are."),
    path("ETC", "/etc/condor", "Where configuration and certificates are."),
    path("LOG", "$(LOCAL_DIR)/log", "The folder of the daemons' logs."),
    path(
        "SPOOL",
        "$(LOCAL_DIR)/spool",
        "The folder of the job queue, the history, the accountant's records and spooled files.",
    ),
    path(
        "EXECUTE",
        "$(LOCAL_DIR)/execute",
        "The folder in which jobs get their scratch directories. Ample and fast.",
    ),
    path(
        "RUN",
        "$(LOCAL_DIR)/run",
        "The folder of UNIX sockets, address files and the master's record of its children.",
    ),
    path("LOCK", "$(RUN)", "The folder of lock files."),
    path(
        "LOCAL_CONFIG_FILE",
        None,
        "Files read after the first one, in this order; commas or blanks between. With a"
        " bar at the end it is a command whose output is read.",
    ),
    path(
        "LOCAL_CONFIG_DIR",
        None,
        "Folders all of whose files are read after the first file, in the order of their names.",
    ),
    text(
        "LOCAL_CONFIG_DIR_EXCLUDE_REGEXP",
        r"^((\..*)|(.*~)|(#.*)|(.*\.rpmsave)|(.*\.rpmnew)|(.*\.dpkg-.*))$",
        "Names of files within LOCAL_CONFIG_DIR that are passed over.",
    ),
    boolean("REQUIRE_LOCAL_CONFIG_FILE", True, "Whether a missing file of LOCAL_CONFIG_FILE is an error."),
    path(
        "USER_CONFIG_FILE",
        "user_config",
        "An ordinary user's own file within ~/.condor, read after the others; empty for none.",
    ),
    words(
        "CONDOR_IDS",
        None,
        "The uid.gid that daemons started by root become. Without it they become"
        " the user condor; where there is no such user either they stay root.",
        change="restart",
    ),
    text(
        "CONDOR_ADMIN",
        "root@$(FULL_HOSTNAME)",
        "Where mail about failing daemons goes; empty for no such mail.",
    ),
    text("MAIL_FROM", None, "The sender of the pool's mail."),
    text(
        "SMTP_SERVER",
        "localhost",
        "The SMTP server that takes the pool's mail: host or host:port. Empty: no mail is sent.",
    ),
    boolean("SMTP_TLS", False, "Whether mail is sent through STARTTLS only."),
    seconds("SMTP_TIMEOUT", 60, "How long a mail server may take before the mail is given up.", low=1),
    text(
        "UID_DOMAIN",
        "$(FULL_HOSTNAME)",
        "Machines that name the same domain share their users: a job may then run"
        " under its owner's own account, and an accounting name is owner@domain.",
        change="restart",
    ),
    text(
        "FILESYSTEM_DOMAIN",
        "$(FULL_HOSTNAME)",
        "Machines that name the same domain see the same files under the same"
        " paths, so that jobs among them need no file transfer.",
        change="restart",
    ),
    boolean(
        "TRUST_UID_DOMAIN",
        False,
        "Whether a submit machine is believed that its users are of this machine's UID_DOMAIN though its own name does"
        " not end with that domain. Otherwise such jobs do not run as their owners.",
    ),
    boolean(
        "TRUST_LOCAL_UID_DOMAIN",
        True,
        "The same for jobs that were submitted on this machine.",
    ),
    integer(
        "UPDATE_INTERVAL", 300, "How often an unchanged ad is sent to the collector again.", low=1, unit="s"
    ),
    text(
        "NETWORK_INTERFACE",
        "127.0.0.1",
        "The address, or the pattern of the interface's name or address, that"
        " daemons listen on and name in their ads. The pool stays on loopback until this says otherwise; * takes the"
        " machine's most public address.",
        change="restart",
    ),
    text(
        "TCP_FORWARDING_HOST",
        None,
        "The address put into ads in place of the one listened on, when a forwarding device stands in front.",
        change="restart",
    ),
    boolean(
        "BIND_ALL_INTERFACES",
        False,
        "Whether daemons listen on every address of the machine.",
        change="restart",
    ),
    integer(
        "LOWPORT",
        None,
        "The least port that daemons listen on when none is given; with HIGHPORT.",
        low=1024,
        high=65535,
        change="restart",
    ),
    integer(
        "HIGHPORT",
        None,
        "The greatest port that daemons listen on when none is given; with LOWPORT.",
        low=1024,
        high=65535,
        change="restart",
    ),
    integer(
        "COLLECTOR_PORT",
        9618,
        "The port of the collector when COLLECTOR_HOST names none; 0 takes a free one.",
        low=0,
        high=65535,
        change="restart",
    ),
    text("DEFAULT_DOMAIN_NAME", None, "Appended to the machine's name when that has no domain."),
    choice(
        "MANHOLE",
        "off",
        "Whether daemons open a manhole for condor_manhole: off, unix (a socket below RUN) or"
        " loopback (a free port of 127.0.0.1).",
        ("off", "unix", "loopback"),
        change="restart",
    ),
    path("MANHOLE_AUTHORIZED_KEYS", "$(ETC)/manhole_keys", "The public keys that a manhole admits."),
    integer("METRICS_PORT", None,
            "The port on which the master shows the metrics of all daemons of its machine to Prometheus, as /metrics; "
            "0 takes any free one; unset: they are not shown.", low=0, high=65535, change="restart", read_by="MASTER"),
    text("METRICS_INTERFACE", "127.0.0.1", "The address on which metrics are shown. Another than one of loopback needs "
         "METRICS_CERTIFICATE and METRICS_TOKEN_FILE, since metrics name users.",
         change="restart", read_by="MASTER"),
    path("METRICS_CERTIFICATE", None, "The certificate with its key (PEM) with which metrics are shown by HTTPS; "
         "unset: by HTTP.", change="restart", read_by="MASTER"),
    path("METRICS_TOKEN_FILE", None, "A file with the token that Prometheus sends as a bearer token (authorization: "
         "credentials_file); unset: none is asked for.", change="restart", read_by="MASTER"),
    path("METRICS_DISCOVERY_FILE", None, "A file in which the master keeps the addresses of all machines of the pool "
         "that show metrics, as Prometheus's file_sd_configs reads it (on one machine, such as the central manager).",
         change="restart", read_by="MASTER"),
    seconds("STATISTICS_WINDOW_QUANTUM", 240, "How long condor_top waits between its two looks at a daemon.", low=1,
            read_by="TOOL"),
    integer("PERSONAL_SLOTS", None, "How many slots a personal pool has; condor_personal writes it.", low=1,
            unit="slots"),
    text("SUBSYSTEM", None, "The kind of the program that reads the configuration; set by the program."),
    integer("SECOND", 1, "One second, for expressions.", unit="s"),
    integer("MINUTE", 60, "A minute in seconds, for expressions.", unit="s"),
    integer("HOUR", 3600, "An hour in seconds, for expressions.", unit="s"),
    integer("DAY", 86400, "A day in seconds, for expressions.", unit="s"),
    text("ARCH", None, "This machine's architecture; found out."),
    text("OPSYS", None, "This machine's operating system; found out."),
    text("NETWORK_HOSTNAME", None, "The name of this machine in its ads, when it is not FULL_HOSTNAME.",
         change="restart"),
    integer("<SUBSYS>_PORT", None, "The port of that daemon; any free one when unset.", low=0, high=65535,
            change="restart"),
    text("<SUBSYS>_NAME", None, "The name of that daemon's ad, when a machine has several.", change="restart"),
)
