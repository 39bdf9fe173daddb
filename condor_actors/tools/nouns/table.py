"""The nouns and verbs of ``htcondor``, as data.

The command, its help, its manual page and its completion are made of it.

===========  ================================================================
a verb       what becomes of it
===========  ================================================================
`act`        ``module:function``, called with the words as read
`command`    the words go to one of our own commands as they are
`refused`    the command fails and says why, and what comes nearest
===========  ================================================================

**Source**: the manual, htcondor; the nouns ``owner``, ``policy``, ``checkpoint``, ``simulate`` and ``flock`` are ours.
"""

from __future__ import annotations

import attrs

NOUNS_OF = "condor_actors.tools.nouns."


@attrs.frozen
class Option:
    """One option of a verb: its words (``-r``, ``--reason``), what it takes (empty: it is a switch), what it is for."""

    words: tuple[str, ...]
    takes: str
    text: str
    is_number: bool = False


@attrs.frozen
class Operand:
    """What a verb is about; ``count`` is one of ``""`` (just one), ``?``, ``*``, ``+`` and ``...``
    (all the rest, options too)."""

    name: str
    text: str
    count: str = ""


@attrs.frozen(kw_only=True)
class Verb:
    """One verb of a noun."""

    name: str
    text: str
    act: str = ""
    command: tuple[str, ...] = ()
    refused: str = ""
    operands: tuple[Operand, ...] = ()
    options: tuple[Option, ...] = ()


@attrs.frozen(kw_only=True)
class Noun:
    """One noun with its verbs; ``command``: one of ours, whose words its verbs are."""

    name: str
    text: str
    verbs: tuple[Verb, ...]


JOB_ID = Operand("job_id", "of the job: CLUSTER.PROC, or CLUSTER for its first")
DAG_ID = Operand("dag_id", "cluster of the DAG's own job")
LOG_FILES = Operand("log_file", "event log", "+")
SKIP_HISTORY = Option(("--skip-history",), "", "look at the queue only")
RESOURCE = Option(("--resource",), "TYPE", "htcondor; no other pools or clouds are rented")
SET_NAME = Operand("job_set_name", "name of the set; case does not matter")
SET_OWNER = Option(("--owner",), "USER", "whose; by default yours")
CRED_TYPE = Operand("type", "oauth2 or kerberos; password is refused, with the reason")
SERVICE = Option(("--service",), "SERVICE", "of which service")
HANDLE = Option(("--handle",), "HANDLE", "which of several of one service")
NO_OCU = ("no slots are held back for an owner of capacity; GROUP_QUOTA_<group> gives a group its share of the pool, "
          "and RANK of a machine prefers its owner's jobs")
NO_ANNEX = "condor_annex has machines of a Slurm cluster in the pool; condor_flock lets pools lend each other theirs"


def _refused(name: str, text: str, why: str) -> Verb:
    return Verb(name=name, text=text, refused=why, operands=(Operand("word", "anything", "*"),))


def _ours(command: str, **verbs: str) -> tuple[Verb, ...]:
    """The verbs of a command of ours, by name and text; what follows is the command's."""
    return tuple(Verb(name=name.replace("_", "-"), text=text, command=(command, name.replace("_", "-")))
                 for name, text in verbs.items())


JOB = Noun(name="job", text="one job", verbs=(
    Verb(name="submit", text="queue the one job of a submit description", act="job:submit",
         operands=(Operand("submit_file", "submit description"),),
         options=(RESOURCE, Option(("--runtime",), "SECONDS", "of other resources", is_number=True),
                  Option(("--email",), "ADDRESS", "of other resources"),
                  Option(("--annex-name",), "NAME", "of an annex"))),
    Verb(name="status", text="how a job stands, in sentences", act="job:status", operands=(JOB_ID,),
         options=(SKIP_HISTORY, RESOURCE)),
    Verb(name="out", text="print its standard output", act="job:out", operands=(JOB_ID,),
         options=(SKIP_HISTORY, RESOURCE)),
    Verb(name="err", text="print its standard error", act="job:err", operands=(JOB_ID,),
         options=(SKIP_HISTORY, RESOURCE)),
    Verb(name="log", text="print its event log", act="job:log", operands=(JOB_ID,), options=(SKIP_HISTORY, RESOURCE)),
    Verb(name="resources", text="which slot it runs on", act="job:resources", operands=(JOB_ID,),
         options=(RESOURCE, SKIP_HISTORY)),
    Verb(name="template", text="list submit files of JOB_TEMPLATE_DIR, or copy one", operands=(
        Operand("template_file", "which", "*"),), refused="JOB_TEMPLATE_DIR is not known; examples/ has submit files"),
))  # fmt: skip
JOBSET = Noun(name="jobset", text="sets of jobs", verbs=(
    Verb(name="submit", text="queue the jobs of a set file for each row of its table", act="jobset:submit",
         operands=(Operand("job_set_file", "a name, an iterator and jobs"),)),
    Verb(name="list", text="the sets that have jobs in the queue", act="jobset:list_sets",
         options=(Option(("--allusers",), "", "everybody's, not only yours"),)),
    Verb(name="status", text="how many jobs of a set are in which status, and its clusters", act="jobset:status",
         operands=(SET_NAME,), options=(SET_OWNER, SKIP_HISTORY,
                                        Option(("--nobatch",), "", "clusters are always listed"))),
    Verb(name="remove", text="remove the jobs of a set", act="jobset:remove", operands=(SET_NAME,),
         options=(SET_OWNER,)),
))  # fmt: skip
DAG = Noun(name="dag", text="a workflow", verbs=(
    Verb(name="submit", text="queue the job that runs a DAG", act="dag:submit",
         operands=(Operand("dag_file", "of condor_submit_dag"),)),
    Verb(name="status", text="how far it is", act="dag:status", operands=(DAG_ID,)),
    Verb(name="halt", text="begin nothing new", act="dag:halt", operands=(DAG_ID,),
         options=(Option(("-r", "--reason"), "MESSAGE", "kept in the halt file"),)),
    Verb(name="resume", text="go on after halt", act="dag:resume", operands=(DAG_ID,)),
    Verb(name="resources", text="memory and hosts of its jobs", act="dag:resources", operands=(DAG_ID,),
         options=(Option(("-history",), "", "of those that have left the queue"),)),
    _refused("histogram", "draw states over time", "nothing draws them here; the page of condor-web shows a DAG"),
    Verb(name="throttle", text="change its limits", act="dag:throttle", operands=(DAG_ID,), options=tuple(
        Option((f"--{name}",), "N", text, is_number=True) for name, text in (
            ("nodes", "nodes that have jobs in the queue at once; 0: any number"),
            ("idle", "its idle jobs in the queue; 0: any number"), ("pre", "PRE scripts at once; 0: any number"),
            ("hold", "HOLD scripts at once; 0: any number"), ("post", "POST scripts at once; 0: any number"),
            ("submissions", "nodes that are submitted together")))),
))  # fmt: skip
EVENTLOG = Noun(name="eventlog", text="job event logs", verbs=(
    Verb(name="read", text="one line for each job of some logs", act="eventlog:read", operands=(LOG_FILES,), options=(
        Option(("-csv", "--csv"), "", "comma-separated values"), Option(("-json", "--json"), "", "JSON"),
        Option(("-groupby", "--groupby"), "ATTRIBUTE", "sums of the jobs that share its value"))),
    Verb(name="follow", text="print a line when a job of a log changes", act="eventlog:follow",
         operands=(Operand("log_file", "event log"),), options=(
             Option(("-csv", "--csv"), "", "comma-separated values"), Option(("-json", "--json"), "", "JSON"),
             Option(("-groupby", "--groupby"), "ATTRIBUTE", "not while following"))),
    _refused("histogram", "draw states over time", "nothing draws them here; eventlog read -csv feeds what does"),
))  # fmt: skip
CREDENTIAL = Noun(name="credential", text="credentials that jobs use", verbs=(
    Verb(name="list", text="list yours, and the jobs that name them", act="credential:list_own"),
    Verb(name="add", text="store one", act="credential:add", operands=(
        CRED_TYPE, Operand("credential_file", "holds it (-: standard input); its name is SERVICE or SERVICE_HANDLE, "
                                              "unless they are given")), options=(SERVICE, HANDLE)),
    Verb(name="remove", text="delete one, or all when no service is named", act="credential:remove",
         operands=(CRED_TYPE,), options=(SERVICE, HANDLE)),
    Verb(name="listall", text="list everybody's, for administrators", act="credential:list_all"),
    Verb(name="get", text="print what a job would get now", act="credential:get", operands=(CRED_TYPE,),
         options=(SERVICE, HANDLE)),
))  # fmt: skip
SERVER = Noun(name="server", text="the daemons of this machine", verbs=(
    Verb(name="status", text="which of them answer", act="machines:server_status"),))
AP = Noun(name="ap", text="access points: machines that have a queue", verbs=(
    Verb(name="status", text="whether they answer", act="machines:ap_status",
         operands=(Operand("hostname", "only these", "*"),)),
    Verb(name="claims", text="the slots that one holds", act="machines:ap_claims",
         options=(Option(("--name",), "NAME", "of the schedd; by default this machine's"),)),
))  # fmt: skip
EP = Noun(name="ep", text="execution points: machines that run jobs", verbs=(
    Verb(name="status", text="its slots", act="machines:ep_status", operands=(Operand("ep_name", "the machine"),)),
    _refused("rehome", "give it to another schedd", "an owner's machine changes pools with condor_pool join; "
                                                   "jobs are never killed for it"),
))  # fmt: skip
CM = Noun(name="cm", text="central managers", verbs=(
    Verb(name="status", text="whether they answer", act="machines:cm_status"),))
ANNEX = Noun(name="annex", text="rented machines (condor_annex)", verbs=tuple(
    _refused(name, text, NO_ANNEX) for name, text in (
        ("create", "rent"), ("add", "rent more"), ("status", "show"), ("shutdown", "give back"),
        ("systems", "list what there is"), ("login", "log in there"), ("setup", "prepare an account in a cloud"),
        ("checksetup", "look whether it is prepared"))))
OCU = Noun(name="ocu", text="capacity that an owner has paid for", verbs=tuple(
    _refused(name, text, NO_OCU) for name, text in (
        ("create", "reserve"), ("query", "list"), ("status", "show"), ("remove", "give back"))))
SNAKE = Noun(name="snake", text="Snakemake's workflows", verbs=(
    Verb(name="submit", text="queue a local job that runs Snakemake, which submits its rules' jobs", act="snake:submit",
         operands=(Operand("words", "the Snakefile (Snakefile); behind -- what Snakemake is given", "..."),),
         options=(Option(("--jobdir",), "DIR", "where its logs go (logs)"),)),))
OWNER = Noun(name="owner", text="the owner of this machine (condor_owner)", verbs=_ours(
    "condor_owner", status="what the pool does here", pause="nothing of the pool runs here for a time",
    resume="the pause is over"))
POLICY = Noun(name="policy", text="an owner's policy, tried out (condor_policy)", verbs=_ours(
    "condor_policy", check="what it makes of this machine, or of a recorded day",
    record="write this machine's day down"))
CHECKPOINT = Noun(name="checkpoint", text="programs that move (condor_checkpoint)", verbs=_ours(
    "condor_checkpoint", run="run a program so that it can be resumed", restart="go on from a checkpoint",
    now="have one made", info="what is in a file", verify="whether a file is whole", core="a core file of it",
    preflight="whether a program can be checkpointed",
    job="have a queued job's made"))
SIMULATE = Noun(name="simulate", text="a pool in simulated time (condor_simulate)", verbs=_ours(
    "condor_simulate", paper_1988="the month of 1988", month="its users in a pool of any size",
    what_if="your pool's month under another configuration", scale="large pools for a day"))
FLOCK = Noun(name="flock", text="pools that lend each other machines (condor_flock)", verbs=_ours(
    "condor_flock", invite="invite another pool", accept="accept an invitation", list="partners",
    revoke="end a partnership", limit="terms", status="gateways", report="who lent what"))
NOUNS: dict[str, Noun] = {noun.name: noun for noun in (
    DAG, JOB, JOBSET, EVENTLOG, CREDENTIAL, SERVER, AP, EP, CM, OCU, SNAKE, ANNEX, OWNER, POLICY, CHECKPOINT, SIMULATE,
    FLOCK)}
