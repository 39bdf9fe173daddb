"""The commands about jobs in the queue."""

from __future__ import annotations

from condor_actors.tools.manual.description import Description
from condor_actors.tools.manual.pages.common import FORMS, JOBS, WHICH

EVENT_LOG = {"the job's log": "the events of a job, in the file that its submit description names"}
SUBMIT = Description(
    name="condor_submit",
    purpose="queue jobs",
    synopsis=("[options] [NAME=VALUE ...] [FILE]",),
    text="""Queues the jobs that the submit description FILE asks for. Without FILE, or with "-", the description is
read from standard input. NAME=VALUE sets a macro before FILE is read. A submission that succeeds writes nothing to
standard error.""",
    source="jobs.submit:FLAGS",
    options={
        "What is queued": {
            "append LINE": "add a line of the submit language before the first queue statement",
            "queue ARGS ...": "a queue statement, for a description without one",
            "batch-name NAME": "name the batch of these jobs (JobBatchName)",
            "batch-id ID": "the id of the batch (JobBatchId)",
            "file FILE": "the description, instead of the word without a dash",
            "maxjobs N": "refuse a description that makes more than N jobs",
            "single-cluster": "refuse a description that makes several clusters",
            "factory": "have the schedd make the jobs as they are needed (max_idle, max_materialize)",
            "interactive": "submit one job and open a shell in it",
            "disable": "look at no files beforehand, except for the executable",
            "allow-crlf-script": "take scripts whose lines end as on DOS",
        },
        "What is printed": {
            "terse": "the ids alone, as FIRST - LAST",
            "verbose": "the whole ad of each job",
            "dry-run[:full] FILE": "write the ads to FILE (- for standard output) and queue nothing; with :full the "
                                   "whole ad of every job",
            "dump FILE": "write whole ads to FILE and queue nothing",
            "unused": "switch the warnings about unused macros",
        },
        "Where": {
            "spool": "copy all input files to the schedd now; condor_transfer_data fetches the results",
            "name NAME": "the schedd of that name",
            "remote NAME": "the same, and -spool",
            "pool HOST": "the schedd of a pool whose central manager is HOST",
            "address ADDRESS": "the schedd at ADDRESS (<host:port>)",
        },
    },
    files=EVENT_LOG,
    see_also=("condor_q(1)", "condor_rm(1)", "condor_wait(1)", "condor_submit_dag(1)"),
    operands="files",
)
Q = Description(
    name="condor_q",
    purpose="show the jobs in the queue",
    synopsis=("[options] [JOB | USER ...]",),
    text=f"""Shows your jobs, or all with -allusers; root sees all by default. {JOBS} Finding no job is no error.
In an expression, ServerTime is the time of the question. "-help Universe" and "-help State" explain the numbers of
these attributes.""",
    source="jobs.q:FLAGS",
    options={
        "Which jobs": {
            **WHICH,
            "allusers": "everybody's",
            "submitter USER": "those of USER, in all queues of the pool",
            "user USER": "those of USER",
            "global": "everybody's, in all queues of the pool",
            "run": "those that are running, with their machines",
            "hold": "those on hold, with the reasons",
            "hold-codes": "those on hold, with the reasons' numbers",
            "idle": "those that wait",
            "unmatchable": "those that no machine would take, even if it were free; with -better-analyze their numbers "
                           "alone",
            "io": "with what they read and wrote at home",
            "grid": "those that were handed to other batch systems",
            "dag": "as trees of their workflows",
            "jobset": "the sets that jobset names in submit descriptions, with the number of their jobs by status",
            "factory": "clusters that make their jobs as they are needed: their limits, and how far they are",
            "autocluster": "what jobs ask for that no slot can tell apart, and how many they are",
            "jobads FILE": "take the jobs from a file of ads; no schedd is asked",
            "userlog FILE": "take the jobs from an event log; no schedd is asked",
        },
        "What is printed": {
            "batch": "a line for each batch",
            "nobatch": "a line for each job",
            "cputime": "RUN_TIME is processor time",
            "currentrun": "RUN_TIME is that of the current run, or of the last one (the default)",
            "cumulative-time": "RUN_TIME is that of all runs together",
            "totals": "only the sums",
            "wide[:COLUMNS]": "lines are not cut",
            **FORMS,
            "aaf[:LETTERS] ATTR ...": "these columns behind those of the table",
        },
        "Why jobs wait": {
            "better-analyze[:HOW]": "say in plain words why a job waits, is held or is moved, and when it begins; then "
                                    "try each of its conditions on each slot and say what would have to change; "
                                    ":summary prints a line for each job, :reverse looks from the machines' side",
            "reverse-analyze[:HOW]": "the same as -better-analyze:reverse",
            "machine NAME": "only the slots of this machine",
            "mconstraint EXPR": "only slots for which EXPR is true",
            "slotads FILE": "the slots of a file of ads",
            "verbose": "with the ads that were compared",
        },
        "Whom to ask": {
            "name NAME": "the schedd of that name",
            "address ADDRESS": "the schedd at ADDRESS (<host:port>)",
            "pool HOST": "ask the central manager HOST for it",
        },
    },
    see_also=("condor_submit(1)", "condor_history(1)", "condor_rm(1)", "condor_status(1)"),
    operands="jobs",
)
HISTORY = Description(
    name="condor_history",
    purpose="show the jobs that have left the queue",
    synopsis=("[options] [JOB | USER ...]",),
    text=f"""Shows jobs that have ended, the newest first. {JOBS} When nothing matches, -json prints an empty list.""",
    source="jobs.history:FLAGS",
    options={
        "Which jobs": {
            **WHICH,
            "backwards": "the newest first (the default)",
            "forwards": "the oldest first",
            "since JOB|EXPR": "stop at this job, or where the expression is true",
            "completedsince TIME": "stop at jobs that were completed at or before TIME (seconds since 1970, or an "
                                   "expression)",
            "scanlimit N": "look at no more than N jobs",
            "type KIND": "which records: JOB, of jobs that have left the queue; EPOCH, of runs; INPUT, OUTPUT and "
                         "CHECKPOINT, of their files; ALL",
            "epochs[:HOW]": "every run of the jobs, of those too that are in the queue (JOB_EPOCH_HISTORY)",
            "transfer-history[:KINDS]": "how files travelled for runs that have ended; of KINDS i (inputs), o "
                                        "(outputs) and c (checkpoints)",
            "daemon": "the schedd's own ads, recorded every quarter of an hour (SCHEDD_DAEMON_HISTORY)",
            "directory": "with -epochs: read the files of JOB_EPOCH_HISTORY_DIR, or of the folder that -search names",
            "file FILE": "read the ads of FILE",
            "search FILE": "the same, and the files FILE.YYYYMMDDTHHMMSS beside it",
            "userlog FILE": "read the jobs that have ended from an event log",
            "schedd": "the history of the schedd (the default)",
            "totals[:BY]": "how many jobs ended and what they used, by owner (the default), outcome, day, month, "
                           "year or any attribute, several with commas between; by the first five also of jobs that "
                           "the history has forgotten",
            "startd": "the runs that ended on this machine, or on that of -name (STARTD_HISTORY)",
        },
        "What is printed": {
            **FORMS,
            "jsonl": "whole ads, one JSON object on each line",
            "wide[:COLUMNS]": "lines are not cut, or at COLUMNS",
            "extract FILE": "copy what was found into a new FILE, for -file",
            "parquet FILE": "write what was found into a new Parquet FILE; needs the Python package pyarrow",
        },
        "Whom to ask": {
            "name NAME": "the schedd of that name; with -startd the machine",
            "pool HOST": "ask the central manager HOST for it",
        },
    },
    see_also=("condor_q(1)",),
    operands="jobs",
)
WHICH_JOBS = {
    "constraint EXPR": "the jobs for which EXPR is true",
    "all": "all jobs",
    "held": "only those that are on hold",
}
HOW_TO_ACT = {
    "reason TEXT": "say why; it stands in the job's ad and in its log",
    "totals": "print only how many",
}


def _action(name: str, purpose: str, text: str, *, more: dict[str, str] | None = None) -> Description:
    """One of the commands that do something to jobs."""
    return Description(
        name=name, purpose=purpose, synopsis=("[options] JOB | USER ...", "[options] -constraint EXPR | -all"),
        text=f"{text} {JOBS} Each job that is named is answered on a line of its own.",
        source="jobs.job_commands:TABLES",
        options={"Which jobs": WHICH_JOBS, "How": {**(more or {}), **HOW_TO_ACT}},
        exit_status="1 when nothing could be done, otherwise 0.",
        see_also=("condor_q(1)", "condor_rm(1)", "condor_hold(1)"), operands="jobs")


ACTIONS = (
    _action("condor_rm", "remove jobs from the queue", "Ends jobs and takes them out of the queue.",
            more={"forcex": "forget jobs that are being removed (state X), without waiting for their machines"}),
    _action("condor_hold", "hold jobs: they do not run until they are released",
            "Puts jobs on hold. One that runs is vacated.",
            more={"subcode N": "the number that goes with the reason (HoldReasonSubCode)"}),
    _action("condor_release", "release jobs from hold", "Lets jobs that are on hold wait for a machine again."),
    _action("condor_suspend", "stop running jobs for a time",
            "Stops the processes of running jobs; they keep their slots for as long as the machines' policies allow."),
    _action("condor_continue", "let suspended jobs go on", "Lets jobs go on that condor_suspend has stopped."),
    _action("condor_vacate_job", "have jobs leave their machines",
            "Running jobs are ended softly, may save their work, and wait for a machine again.",
            more={"fast": "kill them instead"}),
)
PRIO = Description(
    name="condor_prio",
    purpose="change the priority of jobs among those of their user",
    synopsis=("-p N | +N | -N  JOB | USER ...", "-p N | +N | -N  -all"),
    text=f"""Sets the priority to N, or raises or lowers it. A user's jobs of higher priority are matched first; other
users' do not compare. {JOBS}""",
    source="jobs.prio:FLAGS",
    options={"Options": {"priority N": "the new priority", "all": "all jobs"}},
    see_also=("condor_q(1)", "condor_userprio(1)"),
    operands="jobs",
)
QEDIT = Description(
    name="condor_qedit",
    purpose="change attributes of jobs",
    synopsis=("[options] JOB | USER  NAME VALUE | NAME=VALUE ...",
              "[options] -constraint EXPR  NAME VALUE | NAME=VALUE ..."),
    text=f"""Changes attributes of jobs in the queue, all of them or none. VALUE is an expression: a string stands in
quotes. {JOBS}""",
    source="jobs.qedit:FLAGS",
    options={"Options": {
        "constraint EXPR": "the jobs for which EXPR is true",
        "owner USER": "the jobs of USER",
        "jobids JOB,JOB": "these jobs",
        "edits[:FORM] FILE": "take the changes from FILE, one on each line",
        "dry-run": "say what would be changed",
    }},
    see_also=("condor_q(1)",),
    operands="jobs",
)
NOW = Description(
    name="condor_now",
    purpose="run a job now, in the place of others",
    synopsis=("[options] JOB OTHER-JOB [OTHER-JOB ...]",),
    text="""Vacates OTHER-JOB, which runs, and starts JOB, which is idle, on its slot as soon as it has left, before any
other job. Both are of one owner and of the vanilla universe, and JOB must fit the slot. OTHER-JOB becomes idle and runs
again later. The command returns when the schedd has accepted that. Where a job finds another machine meanwhile, or the
slot is taken back, nothing more follows; the promise ends with the schedd, too. Of several OTHER-JOBs the slots are
joined when all have left; they have to be parts of one partitionable slot, and JOB must fit all of them together.""",
    source="jobs.now:FLAGS",
    options={"Options": {}},
    see_also=("condor_vacate_job(1)", "condor_prio(1)"),
    operands="jobs",
)
RESCHEDULE = Description(
    name="condor_reschedule",
    purpose="ask for a negotiation cycle now",
    synopsis=("[options] [SCHEDD ...]",),
    text="Has schedds ask the negotiator for machines at once, instead of at its next turn.",
    source="jobs.reschedule:FLAGS",
    options={"Options": {"all": "all schedds of the pool", "constraint EXPR": "the schedds whose ads satisfy EXPR"}},
    see_also=("condor_q(1)",),
)
SUMMARY = Description(
    name="condor_summary",
    purpose="sum up by user what jobs came to",
    synopsis=("[options] [USER ...]",),
    text="""Sums up the jobs that have left the queue, by user: how many were done and removed, how often they moved and
were checkpointed, their time on machines and their processor time there, and the leverage of those in the standard
universe: the seconds of remote processor time for each second that supporting them cost at home.""",
    source="jobs.summary:FLAGS",
    options={
        "Which jobs": {
            "constraint EXPR": "those for which EXPR is true; all of several must be",
            "since JOB|EXPR": "only those that left after JOB, or until EXPR is true, from the newest on",
            "file FILE": "those of a file of ads, such as condor_history -extract writes; nobody is asked",
        },
    },
    see_also=("condor_history(1)", "condor_userprio(1)"),
)
RUN = Description(
    name="condor_run",
    purpose="run a shell command as a job and wait for it",
    synopsis=("[options] COMMAND [WORD ...]",),
    text="""Submits a shell command as a job, waits for its end, prints what it wrote, and exits as the command did.
What follows the first word without a dash belongs to the command. $SHELL (/bin/sh) reads it on the machine; quote what
the shell here is not to read. The job is removed when this command is interrupted. Its standard input is empty, so it
needs its input from files.""",
    source="jobs.run:FLAGS",
    options={"Options": {
        "universe UNIVERSE": "vanilla (the default), scheduler or local",
        "append LINE": "add a line to the submit description; may be given several times",
        "getenv": "give the command the environment of this one",
        "stream": "print what the command writes as it writes it; what a run wrote that was evicted stays printed",
    }},
    exit_status="that of the command; 128 and the number of the signal that killed it, or that ended condor_run; 1 "
                "when there was no job, or it was removed.",
    environment={"CONDOR_ARCH, CONDOR_OPSYS": "the platform of the machines that may run it",
                 "CONDOR_REQUIREMENTS": "what else they must be: an expression, in parentheses",
                 "SHELL": "reads the command on the machine"},
    files={".condor_run.PID": "the script, in the working directory while the job lasts",
           ".condor_submit.PID": "its submit description",
           ".condor_log.PID": "its event log",
           ".condor_out.PID, .condor_error.PID": "what it has written"},
    see_also=("condor_submit(1)", "condor_wait(1)"),
    operands="commands",
)
QSUB = Description(
    name="condor_qsub",
    purpose="submit what was written for the qsub of PBS, Torque or SGE",
    synopsis=("[options] SCRIPT [ARGUMENT ...]",),
    text="""Makes a submit description of the options on the command line and in the lines "#PBS ...", "#SGE ..." and
"#$ ..." of SCRIPT, and queues the job. The command line wins. Files travel with the job, so what it reads is named by
-W stagein. Options without a counterpart in a pool are errors that name what comes nearest.""",
    source="jobs.qsub:FLAGS",
    options={
        "The job": {
            "S SHELL": "the shell that reads SCRIPT; without it a script that names its own is run as it is, others by "
                       "/bin/sh",
            "b y|n": "y: SCRIPT is a program, in which no options are looked for",
            "f FILE": "look for options in FILE too",
            "N NAME": "the name of the job (JobBatchName), and of its output files",
            "t TASKS": "an array of jobs, FIRST-LAST:STEP; SGE_TASK_ID and PBS_ARRAYID tell each which it is",
            "a DATE": "begin at [[[[CC]YY]MM]DD]hhmm[.SS], not before",
            "h": "put the job on hold",
            "p NUMBER": "its priority among your own jobs",
            "r y|n": "n: remove the job instead of running it a second time",
            "A GROUP": "the accounting group",
            "v LIST": "environment variables, as NAME=VALUE,NAME; without a value it is the one of this environment",
            "V": "give the job the environment of this command",
        },
        "Files": {
            "cwd": "run in the working directory of this command, which is the default",
            "d FOLDER": "run in FOLDER",
            "o FILE": "its output; by default NAME.oCLUSTER; an array adds the number of the task",
            "e FILE": "its error output; by default NAME.eCLUSTER",
            "i FILE": "its input",
            "j eo": "put both outputs into one file",
            "W stagein=LIST": "files that travel to (stagein) or from (stageout) the machine, as FILE@HOST:FILE,...",
        },
        "What it needs": {
            "l LIST": "arch=, opsys=, host=, mem=, pmem=, file=, procs=, ncpus=, walltime=, nodes=1:ppn=N:gpus=N",
        },
        "Mail": {
            "m a|e|n": "when the job ends badly (a), when it ends (e), never (n)",
            "M ADDRESS": "to whom",
        },
        "This command": {
            "print": "print the submit description too",
            "test": "submit nothing; with -print, see what would be submitted",
        },
    },
    exit_status="0 when the job is in the queue, else 1.",
    see_also=("condor_submit(1)", "condor_submit_dag(1)", "condor_run(1)"),
    operands="files",
)
PAGES = (QSUB, RUN, SUMMARY, SUBMIT, Q, HISTORY, *ACTIONS, PRIO, QEDIT, NOW, RESCHEDULE)
