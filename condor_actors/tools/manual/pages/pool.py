"""The commands about machines, their owners, users and the pool."""

from __future__ import annotations

from condor_actors.tools.manual.description import Description, Verb
from condor_actors.tools.manual.pages.common import FORMS, PLACE, WHICH

TIME = "TIME is 90s, 20m, 1h or 2d."
MAKES_NO_SENSE = "0; 1 when it could not be done; 2 for a command line that makes no sense."
STATUS = Description(
    name="condor_status",
    purpose="show machines, daemons and submitters of the pool",
    synopsis=("[options] [NAME ...]",),
    text="Shows the slots of the pool, or of the machines that are named, with their states and what they do.",
    source="pool.status:FLAGS",
    options={
        "Which ads": {
            **WHICH,
            "available": "slots that take a job now",
            "claimed": "slots that are claimed",
            "run": "slots that run jobs, and whose",
            "state": "how long slots have been in their states",
            "server": "what slots have: memory, disk, speed",
            "slots": "slots (the default)",
            "startd": "the daemons of machines that run jobs",
            "schedd": "the daemons that have queues",
            "submitters": "users with jobs",
            "collector": "the collectors",
            "master": "the masters of all machines",
            "negotiator": "the negotiators",
            "accounting": "what users and groups have used",
            "owner": "what the sensors of machines say of their owners",
            "generic": "ads of no known kind",
            "any": "ads of all kinds",
            "absent": "machines that are missed",
            "offline": "machines that sleep",
            "java": "slots that run Java programs",
            "vm": "slots that run virtual machines",
            "gpus": "slots with GPUs",
            "subsystem KIND": "the ads of that kind of daemon",
            "name NAME": "the ad of that name",
        },
        "What is printed": {
            "compact": "a line for each machine",
            "nocompact": "a line for each slot (the default)",
            "totals": "only the sums",
            **FORMS,
            "aaf[:LETTERS] ATTR ...": "these columns behind those of the table",
            "sort EXPR": "in the order of this expression; several count one after the other",
            "target FILE": "the ad of FILE is TARGET in expressions",
            "merge FILE": "compare with the ads of FILE, by -sort: the new, those in both, and those that are gone",
        },
        "Whom to ask": {
            "pool HOST": "the collector of the pool whose central manager is HOST",
            "direct NAME": "the daemon itself",
            "ads FILE": "a file of ads; nobody is asked",
            "diagnose": "print what would be asked, and ask nobody",
        },
        "Answers": {
            "why": "say in plain words why each machine that is named runs nothing, or no more than it does",
        },
    },
    see_also=("condor_q(1)", "condor_userprio(1)", "condor_who(1)", "condor_owner(1)"),
    operands="machines",
)
USERPRIO = Description(
    name="condor_userprio",
    purpose="show and set users' priorities and what they have used",
    synopsis=("[display options] [SUBMITTER ...]", "EDIT OPTION"),
    text="""Shows each submitter's effective priority (the lower, the better), what it has now and has had. An edit
option sets one thing of one submitter, whose whole name USER@DOMAIN is given; administrators may.""",
    source="pool.userprio:FLAGS",
    options={
        "What is shown": {
            "all": "all columns",
            "most": "the columns that matter most",
            "priority": "the parts of the priority",
            "usage": "what was used, and when",
            "quotas": "quotas of groups",
            "surplus": "whether groups may have more than their quotas",
            "allusers": "those too that have been quiet for a day",
            "activefrom MONTH DAY YEAR": "those that have been active since then",
            "constraint EXPR": "those for which EXPR is true",
            "getreslist USER": "the slots that USER has now",
            "flat": "users without their groups",
            "hierarchical": "groups as a tree",
            "grouporder": "by group",
            "long": "as attributes",
            "legacy": "with -long: numbered attributes in one ad",
            "modular": "with -long: an ad for each",
            "af[:LETTERS] ATTR ...": "the values of these attributes, a line for each",
        },
        "What is set": {
            "setprio USER VALUE": "the real priority",
            "setfactor USER VALUE": "the factor by which the real priority counts",
            "setaccum USER SECONDS": "the slot time that it has used",
            "setbegin USER TIME": "when it first used something (seconds since 1970)",
            "setlast USER TIME": "when it last did",
            "setceiling USER VALUE": "the most that it may have at once",
            "setfloor USER VALUE": "what it is given before all others",
            "duration SECONDS": "what -setceiling, -setfloor or -setfactor sets is so for that long only",
            "cancelceilinglease USER": "end what -duration has begun: the ceiling is what it was before",
            "cancelfloorlease USER": "the same of the floor",
            "cancelfactorlease USER": "the same of the factor",
            "resetusage USER": "it has used nothing",
            "resetall": "nobody has used anything",
            "delete USER": "forget it",
        },
        "Whom to ask": {
            "name NAME": "the negotiator of that name",
            "pool HOST": "the negotiator of the pool whose central manager is HOST",
            "negotiator": "the negotiator (the default)",
            "collector": "what the collector was told",
            "inputfile FILE": "a file of ads; nobody is asked",
        },
    },
    see_also=("condor_status(1)", "condor_prio(1)"),
)
WHO = Description(
    name="condor_who",
    purpose="show what runs on this machine",
    text="Shows the jobs that run on this machine, or its daemons, or what is known of its owner.",
    source="pool.who:FLAGS",
    options={
        "Queries": {
            "daemons": "which daemons answer",
            "quickdaemons": "the same as one ad, with IsReady",
            "wait-for-ready[:SECONDS] EXPR": "wait until EXPR is true of that ad, such as IsReady",
            "owner": "what each sensor says of the machine's owner",
            "startd": "the ad of the startd instead of its slots",
            "snapshot[:WHAT]": "the slots too that run nothing",
            "address ADDRESS": "ask the startd at ADDRESS (<host:port>)",
            **WHICH,
        },
        "What is printed": {
            "verbose": "more of each job",
            **FORMS,
            "aaf[:LETTERS] ATTR ...": "these columns behind those of the table",
        },
    },
    exit_status="1 when nothing was found or the time was up, otherwise 0.",
    see_also=("condor_status(1)", "condor_owner(1)"),
)
GPU_DISCOVERY = Description(
    name="condor_gpu_discovery",
    purpose="find the GPUs of this machine",
    text="Prints the GPUs of this machine as attributes, for the startd and for people.",
    source="pool.gpu_discovery:FLAGS",
    options={
        "What is printed": {
            "properties": "what the devices are: model, memory, capability, driver, device files",
            "extra": "more of that: clock, compute units",
            "dynamic": "what changes: temperature, fan, memory errors",
            "nested": "properties as records (the default)",
            "not-nested": "properties as attributes with a prefix instead of records",
            "prefix WORD": "that prefix (CUDA or GPU)",
            "mixed": "no record Common for what all devices share",
            "tag NAME": "another name for the resource than GPUs",
            "short-uuid": "devices are named by the first eight digits of their UUIDs (the default)",
            "uuid": "by all digits",
            "by-index": "by numbers",
            "config": "as configuration",
            "cron": "without Detected",
            "verbose": "say on standard error what could not be asked",
        },
        "Which devices": {
            "device N": "only the device of that number; may be repeated",
            "cuda": "only NVIDIA's",
            "hip": "only AMD's",
            "repeat N": "each device N times (2), for N jobs at once",
            "divide N": "the same, and each time with its part of the memory",
            "packed": "with those: each device's repetitions beside one another",
            "dirty-environment": "only what CUDA_VISIBLE_DEVICES and the like name",
            "simulate[:D,N,...]": "pretend that there are N devices of model D (0 to 6)",
            "tree FOLDER": "read a copy of another machine's proc/driver/nvidia and sys/class",
        },
    },
    see_also=("condor_status(1)",),
    reads_configuration=False,
)
POWER = Description(
    name="condor_power",
    purpose="wake a machine by its network card",
    synopsis=("[-d] [-p PORT] [-i] [FILE]", "[-d] [-p PORT] -m MAC [-s MASK]"),
    text="""Broadcasts a wake-on-LAN packet for a machine that sleeps. Without -m the machine is described by ads, in
FILE or on standard input, such as condor_status -long prints: the packet is for their HardwareAddress and goes into the
network that MyAddress and SubnetMask name, or into all networks of this machine where they name none. Each card is sent
one packet. Whether a machine awakes is not known here; it is back when condor_status shows it. Routers seldom pass such
packets on, so run the command in the network of the machine.""",
    source="pool.power:FLAGS",
    options={"Options": {
        "debug": "say where packets are sent",
        "input": "read ads (the default without -m)",
        "mac MAC": "the address of the card: six pairs of hexadecimal digits with colons",
        "subnet MASK": "with -m: only into the networks of this machine with that mask, such as 255.255.255.0",
        "port PORT": "the UDP port (9)",
    }},
    see_also=("condor_status(1)",),
    operands="files",
    reads_configuration=False,
)
PING = Description(
    name="condor_ping",
    purpose="say whether a daemon answers and what you may do there",
    synopsis=("[options] [LEVEL ... | ALL]",),
    text="""Says whether a daemon answers, who you are to it, which levels you have there, by which rule, and what
would help. LEVEL is an authorization level such as READ, WRITE (tried when none is given) or ADMINISTRATOR.""",
    source="pool.ping:FLAGS",
    options={
        "Whom to ask": {**PLACE, "config FILE": "the configuration, in place of CONDOR_CONFIG"},
        "What is printed": {
            "quiet": "nothing; the exit status tells",
            "table": "a line for each level",
            "verbose": "all that is known",
            "long": "the same as attributes",
        },
    },
    exit_status="0 when all levels are granted, otherwise 1.",
    see_also=("condor_token_fetch(1)", "condor_who(1)"),
)
VERSION = Description(
    name="condor_version",
    purpose="print the version",
    text="Prints the version of HTCondor whose behaviour the commands follow, and the platform.",
    source="pool.version:FLAGS",
    options={"Options": {
        "arch": "the name of this machine's processor architecture",
        "opsys": "the name of its operating system",
    }},
    reads_configuration=False,
)
OWNER = Description(
    name="condor_owner",
    purpose="show the person at a machine what the pool does there, and stop it for a time",
    synopsis=("[status]", "pause [TIME] [-suspend | -vacate | -kill]", "resume"),
    text=f"""Asks the startd of this machine. The person at the machine, those named in DESKTOP_OWNERS, the account of
the daemons and root may pause it; a pause outlives the startd. {TIME}""",
    verbs=(
        Verb(name="status", text="what the pool runs on this machine, what the sensors say of you, and whether the "
                                 "pool is paused"),
        Verb(name="pause", synopsis="[TIME]", text="nothing of the pool runs here for TIME (1h); up to ten minutes "
             "jobs wait frozen, for longer they go and may save their work", options={
                 "-suspend": "running jobs wait frozen",
                 "-vacate": "running jobs go, and may save their work",
                 "-kill": "running jobs are killed"}),
        Verb(name="resume", text="the pause is over"),
    ),
    exit_status=MAKES_NO_SENSE,
    see_also=("condor_policy(1)", "condor_who(1)"),
)
POLICY = Description(
    name="condor_policy",
    purpose="try an owner's policy before it is trusted",
    synopsis=("check [FILE | 'use POLICY : NAME'] [options]", "record FILE [options]"),
    text="Evaluates a configuration against a machine as it is now, or against a day that was recorded, and says what "
         "would happen, when, and why.",
    verbs=(
        Verb(name="check", synopsis="[FILE | STATEMENT]", text="what the configuration (with FILE, or one statement, "
             "after all else) makes of a machine", options={
                 "-day FILE": "of a recorded day: every change of state, when and why, and the day in numbers",
                 "-machine NAME": "of that machine of the pool, instead of this one",
                 "-ads FILE": "of the machines of a file of ads",
                 "-universe NAME": "of a job of that universe (vanilla)",
                 "-vacate SECONDS": "of a job that needs so long to leave (5)"}),
        Verb(name="record", synopsis="FILE", text="write this machine's readings down, one line of JSON each", options={
            "-for TIME": "for so long (24h)",
            "-every SECONDS": "so often (5)"}),
    ),
    exit_status="0; 1 when the configuration or a file cannot be used; 2 for a command line that makes no sense.",
    see_also=("condor_owner(1)", "condor_config_val(1)"),
    operands="files",
)
RESERVE = Description(
    name="condor_reserve",
    purpose="keep machines for a user in advance",
    synopsis=("make NAME -user USER -machines N [options]", "list [-long]", "cancel NAME"),
    text=f"""While a reservation lasts, its machines run jobs of its user alone; their owners come first all the same.
WHEN is 2026-11-30T14:00, 14:00 (the next one), or +2h. {TIME}""",
    verbs=(
        Verb(name="make", synopsis="NAME", text="reserve machines", options={
            "-user USER": "for whom",
            "-machines N": "how many",
            "-constraint EXPR": "those with a slot for which EXPR is true",
            "-from WHEN": "from when on (now)",
            "-until WHEN": "until when",
            "-for TIME": "for how long (1h)",
            "-ahead TIME": "so long before it begins, nothing new of others is started there (1h)",
            "-pool HOST": "in the pool whose central manager is HOST"}),
        Verb(name="list", text="the reservations, and the machines that are set aside for each", options={
            "-long": "as attributes", "-pool HOST": "of the pool whose central manager is HOST"}),
        Verb(name="cancel", synopsis="NAME", text="forget a reservation", options={
            "-pool HOST": "of the pool whose central manager is HOST"}),
    ),
    section=8,
    exit_status="0; 1 when it was refused; 2 for a command line that makes no sense.",
    see_also=("condor_userprio(1)", "condor_drain(8)"),
)
CLASSAD = Description(
    name="condor_classad",
    purpose="evaluate, match, explain, convert and check ClassAds",
    synopsis=("VERB [options] ...",),
    text="An AD is a file, - for standard input, or the ad itself: [ a = 1 ] or {\"a\": 1}.",
    source="pool.classad:command_parser",
    exit_status="0 for success, a match or nothing found; 1 otherwise; 2 for a command line that makes no sense.",
    see_also=("condor_status(1)", "condor_q(1)"),
    operands="files",
    reads_configuration=False,
)
PAGES = (STATUS, USERPRIO, WHO, GPU_DISCOVERY, POWER, PING, VERSION, OWNER, POLICY, RESERVE, CLASSAD)
