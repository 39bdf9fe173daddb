"""The commands that run machines and pools."""

from __future__ import annotations

from condor_actors.tools.manual.description import Description, Options, Verb

CONFIGURATION: Options = {
    "/etc/condor/condor_config": "the first file of the configuration, where CONDOR_CONFIG names no other",
}
MASTER = Description(
    name="condor_master",
    purpose="start and keep the daemons of this machine",
    text="""Starts the master of this machine, which starts the daemons of DAEMON_LIST, starts them again when they end,
and stops them. It goes to the background when it listens; -f keeps it in the foreground, as for systemd(1).""",
    source="admin.master:FLAGS",
    options={"Options": {
        "f": "stay in the foreground",
        "b": "go to the background (the default)",
        "n NAME": "the master's name, in place of MASTER_NAME",
        "local-name NAME": "read the parameters that are set for this name",
        "config FILE": "the configuration, in place of CONDOR_CONFIG",
    }},
    section=8,
    exit_status="0 when it serves; 1, or the master's own, when it ended instead.",
    files=CONFIGURATION,
    see_also=("condor_control(8)", "condor_on(8)", "condor_off(8)", "condor_config(5)"),
)
WHICH: Options = {
    "all": "all machines of the pool",
    "constraint EXPR": "machines whose masters' ads satisfy EXPR",
    "name NAME": "the machine of that name; as NAME alone",
    "addr ADDRESS": "the master at ADDRESS (<host:port>)",
    "pool HOST": "of the pool whose central manager is HOST",
}
ONE: Options = {
    "daemon KIND": "only this daemon of the machines",
    "master": "the master itself",
    "schedd": "only the schedd",
    "startd": "only the startd",
    "collector": "only the collector",
    "negotiator": "only the negotiator",
    "kbdd": "only the daemon that watches keyboards",
}
STOP: Options = {
    "graceful": "jobs are vacated and may save their work (the default)",
    "fast": "jobs are killed",
    "peaceful": "jobs are waited for",
    "force-graceful": "as -graceful, for a daemon too that is being stopped peacefully",
}


def _of_masters(name: str, purpose: str, text: str, *, stops: bool = False) -> Description:
    how = {"How": STOP} if stops else {}
    return Description(
        name=name, purpose=purpose, synopsis=("[options] [MACHINE ...]",),
        text=f"{text} Without a machine, this one's is meant. Administrators may.",
        source="admin.daemon_commands:TABLES",
        options={"Which machines": WHICH, "Which daemons": ONE, **how}, section=8,
        see_also=("condor_master(8)", "condor_control(8)", "condor_drain(8)"), operands="machines")


MASTERS = (
    _of_masters("condor_on", "have masters start their daemons", "Has masters start their daemons."),
    _of_masters("condor_off", "have masters stop their daemons",
                "Has masters stop their daemons; the master itself stays unless -master is given.", stops=True),
    _of_masters("condor_restart", "have masters start their daemons anew",
                "Has masters stop their daemons and start them anew, themselves included.", stops=True),
    _of_masters("condor_reconfig", "have daemons read the configuration again",
                "Has masters and their daemons read the configuration again."),
)
VACATE = Description(
    name="condor_vacate",
    purpose="evict the jobs of machines",
    synopsis=("[options] [MACHINE ...]",),
    text="Has machines let go of the jobs that run there. Without a machine, this one is meant. A slot such as "
         "slot1@HOST may be named.",
    source="admin.vacate:FLAGS",
    options={
        "Which machines": {
            "name NAME": "the machine of that name; as NAME alone",
            "constraint EXPR": "machines whose ads satisfy EXPR",
            "all": "all machines of the pool",
        },
        "How": {"graceful": "jobs may save their work (the default)", "fast": "jobs are killed"},
    },
    section=8,
    see_also=("condor_drain(8)", "condor_vacate_job(1)", "condor_owner(1)"),
    operands="machines",
)
DRAIN = Description(
    name="condor_drain",
    purpose="let a machine finish its jobs and take no new ones",
    synopsis=("[options] MACHINE", "-cancel [-request-id ID] MACHINE"),
    text="Has a machine take no new jobs and finish those that it has, for as long as they may stay.",
    source="admin.drain:FLAGS",
    options={
        "How": {
            "graceful": "jobs may use up MaxJobRetirementTime and MaxVacateTime (the default)",
            "quick": "they may use up MaxVacateTime",
            "fast": "they are killed",
            "check EXPR": "do it only if EXPR is true of all its slots",
            "start EXPR": "START while it drains",
            "reason TEXT": "say why",
            "verbose": "print the request's id",
        },
        "When it is done": {
            "resume-on-completion": "the machine takes jobs again",
            "exit-on-completion": "the startd exits",
            "restart-on-completion": "the startd restarts",
            "reconfig-on-completion": "the startd reads its configuration again",
        },
        "Ending it": {"cancel": "the machine takes jobs again", "request-id ID": "end this request only"},
    },
    section=8,
    exit_status="0; 1 when it could not be done; 2 for a command line that makes no sense.",
    see_also=("condor_vacate(8)", "condor_off(8)"),
    operands="machines",
)
CONFIG_VAL = Description(
    name="condor_config_val",
    purpose="show and change the configuration",
    synopsis=("[options] NAME ...", "[options] -dump [PATTERN ...] | -summary | -unused | -config",
              "use CATEGORY[:TEMPLATE] [-expand]", "-set 'NAME = VALUE' | -unset NAME [options]", "-help [NAME ...]"),
    text="""Prints the values of parameters, as a daemon of this machine reads them or as a living daemon has them.
"-help NAME" describes a parameter; condor_config(5) lists them all.""",
    source="admin.config_val:FLAGS",
    options={
        "What is shown": {
            "verbose": "also the file and line, the text as written, and the default",
            "raw": "the text as written (the default of -dump)",
            "expand": "with macros replaced (the default otherwise)",
            "default": "the default",
            "dump": "all names, or those that match a pattern",
            "summary[:WHAT]": "what differs from the defaults, by file",
            "unused": "names that were set and that nobody reads, with the nearest known one",
            "used": "of a living daemon: what it reads",
            "evaluate": "of a living daemon: the value as an expression about its own ad",
            "config": "the files that were read",
            "macro[:path]": "expand the words themselves",
            "mixedcase": "names as they are written",
            "tilde": "the home directory of the daemons' account",
            "owner": "the name of the daemons' account",
            "writeconfig[:WHAT] FILE": "write everything that was set into one file; - for standard output",
        },
        "Whose configuration": {
            "subsystem NAME": "as that daemon of this machine sees it",
            "local-name NAME": "as the daemon of that local name",
            "root-config FILE": "in place of the usual first file",
            "name MACHINE": "of a living daemon of that machine",
            "address ADDRESS": "of the living daemon at ADDRESS (<host:port>)",
            "pool HOST": "of a machine of that pool",
            "master": "of the living master",
            "schedd": "of the living schedd",
            "startd": "of the living startd",
            "collector": "of the living collector",
            "negotiator": "of the living negotiator",
        },
        "Changing it": {
            "set NAME=VALUE": "set a parameter of a living daemon, for good (ENABLE_PERSISTENT_CONFIG)",
            "unset NAME": "take that back",
            "rset NAME=VALUE": "set it until the daemon ends (ENABLE_RUNTIME_CONFIG)",
            "runset NAME": "take that back",
            "edit": "open the file that comes last in an editor, check it, and keep it if it is right",
        },
    },
    exit_status="0; 1 when a name is not defined or something is wrong.",
    files=CONFIGURATION,
    see_also=("condor_config(5)", "condor_config(8)", "condor_reconfig(8)"),
    operands="parameters",
)
CONFIG = Description(
    name="condor_config",
    purpose="check the configuration before it is in force",
    synopsis=("check [FILE ...]",),
    verbs=(Verb(name="check", synopsis="[FILE ...]", text="read the configuration, with each FILE at its end, and say "
                "what is wrong with it and what would have to restart for it; nothing is applied"),),
    section=8,
    exit_status="0; 1 when a value cannot be used.",
    files=CONFIGURATION,
    see_also=("condor_config_val(1)", "condor_config(5)"),
    operands="files",
)
PERSONAL = Description(
    name="condor_personal",
    purpose="run a pool of your own on this machine",
    synopsis=("VERB [options]",),
    text="Runs a whole pool on loopback, each daemon a process, as an ordinary user.",
    source="admin.personal:command_parser",
    exit_status="0; 1 when it could not be done; of status, 3 when nothing runs.",
    files={"~/.condor/personal": "the pool: configuration, queue, logs"},
    see_also=("condor(1)", "condor_submit(1)"),
)
ANNEX = Description(
    name="condor_annex",
    purpose="have machines of a Slurm cluster in the pool for a time",
    synopsis=("VERB [options]",),
    text="""Has Slurm start machines that join the pool as ordinary members, run its jobs, and drain and leave before
their time is over. It is for an ordinary user of the cluster; nothing is installed there. The machines must reach the
central manager and the submit machines, and be reached by them.""",
    source="admin.annex:command_parser",
    section=8,
    exit_status="0; 1 when it could not be done.",
    files={"~/.condor-annex": "a folder for each annex: script, tokens, logs"},
    see_also=("condor_pool(8)", "condor_flock(8)", "condor_status(1)"),
)
TIME = "TIME is a number with s, m, h or d."
POOL = Description(
    name="condor_pool",
    purpose="make a pool, let machines in, put them out",
    synopsis=("VERB [options] ...",),
    text=f"""A pool has an authority of its own, which signs the certificates by which its machines know one another.
{TIME} Options that name something may be repeated.""",
    verbs=(
        Verb(name="create", text="make the authority and this machine's certificate, and configure it as the central "
             "manager", options={
                 "--name POOL": "the pool's name",
                 "--host NAME": "a name of this machine",
                 "--interface ADDRESS": "where the daemons listen (NETWORK_INTERFACE)",
                 "--no-config": "write no configuration"}),
        Verb(name="token", text="print a token with which one machine may join", options={
            "--lifetime TIME": "for how long it counts",
            "--stay TIME": "the machine that joins with it is a guest: its certificate ends after that time, it may "
            "share its address with other guests, and its names are free again then",
            "--roles ROLE,ROLE": "what the machine may be",
            "--address HOST[:PORT]": "where the central manager is dialled"}),
        Verb(name="join", synopsis="TOKEN|- [HOST[:PORT]]",
             text="make this machine a member (-: the token is on standard input)", options={
            "--execute": "it runs jobs",
            "--submit": "it has a queue",
            "--host NAME": "a name of this machine",
            "--no-config": "write no configuration"}),
        Verb(name="list", text="the certificates that were issued"),
        Verb(name="revoke", synopsis="SERIAL | HOST ...", text="put machines out"),
        Verb(name="show", text="what this machine is in its pool"),
    ),
    section=8,
    see_also=("condor_control(8)", "condor_flock(8)", "condor_master(8)"),
)
FLOCK = Description(
    name="condor_flock",
    purpose="let pools lend each other machines",
    synopsis=("VERB [options] ...",),
    text="""Two pools lend each other machines when each has accepted the other's invitation, and the configuration says
what for: FLOCK_TO names the pools to which jobs go that this pool cannot serve, FLOCK_FROM those whose jobs are run
here. Where GATEWAY_HOST names a gateway, an invitation says where other pools dial it.""",
    verbs=(
        Verb(name="invite", text="print what another pool needs to trust this one", options={
            "--address HOST[:PORT]": "where others dial the central manager",
            "--gateway HOST[:PORT],...|none": "where they dial the gateway, and those that stand by; none: this pool's "
            "gateway dials theirs"}),
        Verb(name="accept", synopsis="INVITATION | -", text="trust the pool that made it", options={
            "--fingerprint HEX": "of its authority, as you were told by its administrator"}),
        Verb(name="list", text="the pools that this one trusts"),
        Verb(name="revoke", synopsis="POOL ...", text="trust them no longer"),
        Verb(name="limit", synopsis="POOL", text="on which terms; without options they are shown, and an empty value "
             "takes one back", options={
                 "--quota CORES": "how much the partner may have here at once",
                 "--machines EXPR": "which machines",
                 "--times WHEN": "when",
                 "--rank below|alike": "whether its jobs come after local ones",
                 "--jobs EXPR": "which of its jobs are taken",
                 "--users LIST": "whose",
                 "--refuse LIST": "whose are not",
                 "--send-jobs EXPR": "which jobs go there",
                 "--send-users LIST": "whose",
                 "--send-refuse LIST": "whose do not"}),
        Verb(name="status", text="what the gateways reach and carry"),
        Verb(name="report", text="what the pools have lent each other", options={
            "--svg FILE": "also write a picture of it: an arrow for each direction, the wider the more hours"}),
    ),
    section=8,
    see_also=("condor_pool(8)", "condor_control(8)"),
)
MANHOLE = Description(
    name="condor_manhole",
    purpose="look into a living daemon",
    synopsis=("[-i KEYFILE] DAEMON [EXPRESSION]",),
    text="""Opens a Python prompt in a daemon of this machine (master, collector, negotiator, schedd, startd), or
evaluates one expression there, such as "story('12.0')". The daemon must run with MANHOLE = unix (or loopback) and list
your public key in MANHOLE_AUTHORIZED_KEYS. "help()" at the prompt says what there is.""",
    options={"Options": {"-i KEYFILE": "your private key"}},
    section=8,
    see_also=("condor_control(8)",),
)
PAGES = (MASTER, *MASTERS, VACATE, DRAIN, CONFIG_VAL, CONFIG, PERSONAL, POOL, FLOCK, ANNEX, MANHOLE)
