"""The commands that show on a terminal what goes on."""

from __future__ import annotations

from condor_actors.tools.manual.description import Description

WATCH_Q = Description(
    name="condor_watch_q",
    purpose="show the progress of jobs by their event logs",
    synopsis=("[options]",),
    text="""Shows the jobs of event logs, by batch, as they go on: a table with the number of jobs in each state, bars
and sums. The schedd is asked once for the logs of jobs in the queue; from then on the logs alone are read. On a
terminal it is shown in place until a key is pressed; otherwise it is printed anew whenever something has changed.

In bars - is idle, > transfers files, = runs, # is done, ! is held, suspended or removed.""",
    source="live.watch_q:FLAGS",
    options={
        "Which jobs": {
            "users USER ...": "of these users; without any of these options, your own",
            "clusters CLUSTER ...": "of these clusters",
            "larger-than CLUSTER": "of this cluster and all later ones",
            "files FILE ...": "of these event logs",
            "batches NAME ...": "of the batches with these names",
            "collector HOST": "ask the central manager HOST for the schedd",
            "schedd NAME": "the schedd of that name",
        },
        "When to end": {
            "exit WHICH,STATE[,STATUS]": "end with STATUS (0) as soon as WHICH (all, any, none) of the jobs are in "
                                         "STATE (active, done, idle, held); the first of several counts",
            "exit-on-key-press": "at any key (the default on a terminal)",
            "no-exit-on-key-press": "only at Control-C",
            "interval SECONDS": "show changes at most this often (0.5)",
        },
        "What is shown": {
            "groupby HOW": "a line for each batch, log or cluster",
            "table": "the table", "no-table": "without it",
            "progress": "the bar of all jobs", "no-progress": "without it",
            "row-progress": "a bar in each line", "no-row-progress": "without them",
            "summary": "the sums", "no-summary": "without them",
            "summary-type WHAT": "sums as totals or percentages",
            "updated-at": "when it was last true", "no-updated-at": "without that",
            "display-exited": "groups too whose jobs have all ended", "no-display-exited": "only for a while",
            "exited-row-decay TIME": "for how long then: a number with s, m, h, d, w, M or y (1w)",
            "decay-start-at-read": "from when that is read", "no-decay-start-at-read": "from when it happened",
            "abbreviate": "cut the folders of logs short", "no-abbreviate": "show them whole",
            "color": "in colours", "no-color": "without colours",
            "refresh": "in place", "no-refresh": "one after another",
        },
    },
    exit_status="""That of the condition of -exit that came true; 0 when there were no jobs, a key was pressed or it was
interrupted; 1 for a command line that makes no sense.""",
    see_also=("condor_q(1)", "condor_wait(1)", "condor_watch(1)"),
)
TOP = Description(
    name="condor_top",
    purpose="show what a daemon is busy with",
    synopsis=("[options]", "[options] FILE FILE"),
    text="""Asks a daemon twice for its statistics and shows what it did meanwhile: a line for each kind of turn of its
actors, with how often, how long, and how that compares with its whole life. Without an option that names a daemon it is
the first of schedd, startd, collector, negotiator and master that this machine runs. Two FILEs with ads of a daemon are
compared without asking anybody.

With -live, q ends it, c and s turn to other columns, space asks at once.""",
    source="live.top:FLAGS",
    options={
        "Which daemon": {
            "schedd": "the schedd", "startd": "the startd", "collector": "the collector",
            "negotiator": "the negotiator", "master": "the master",
            "name NAME": "the one of that name (-n)",
            "pool HOST": "of the pool whose central manager is HOST (-p)",
        },
        "What is shown": {
            "live": "again and again (-l); only on a terminal",
            "delay SECONDS": "the time between two questions (-d); by default STATISTICS_WINDOW_QUANTUM",
            "columns SET": "a set of columns (-c): default, runtime, count or all",
            "sort COLUMN": "by a column (-s): TotalRt, InstRt, InstAvg, TotAvg, TotMax, TotMin, RtPctAvg, RtPctMax, "
                           "RtSigmas, TotalCt, InstCt, InstRate, AvgRate, CtPctAvg or Item",
            "attrs NAME,NAME": "further attributes that count something",
        },
    },
    see_also=("condor_status(1)", "condor_manhole(8)"),
    operands="files",
)
WATCH = Description(
    name="condor_watch",
    purpose="watch the pool on a terminal",
    synopsis=("[options]",),
    text="""Shows jobs, slots, owners, transfers and checkpoints of the pool as they change, in a window of 60 columns
or more. Where standard output is no terminal, one picture is printed.

The keys 1 to 5 and tab turn to another view, the arrows move, enter shows what became of a job, / shows only what
contains a text, s and r sort jobs, m shows only your own, space asks the pool at once, ? lists the keys, q ends it.""",
    source="live.watch:FLAGS",
    options={
        "What is shown": {
            "view VIEW": "begin with jobs, slots, owners, transfers or checkpoints",
            "mine": "only your own jobs",
            "interval SECONDS": "ask the pool this often (2)",
            "once": "print one picture and end",
        },
    },
    exit_status="0; with one picture, 1 when some of the pool could not be asked.",
    see_also=("condor_q(1)", "condor_status(1)", "condor_watch_q(1)"),
)
PAGES = (WATCH, WATCH_Q, TOP)
