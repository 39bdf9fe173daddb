"""The commands about workflows."""

from __future__ import annotations

from condor_actors.tools.manual.description import Description, Options

RUN: Options = {
    "maxidle N": "begin no nodes while so many jobs wait",
    "maxjobs N": "so many nodes in the queue at once",
    "maxpre N": "so many PRE scripts at once",
    "maxpost N": "so many POST scripts at once",
    "maxhold N": "so many HOLD scripts at once",
    "alwaysrunpost": "run POST scripts even where the PRE script failed",
    "dontalwaysrunpost": "do not",
    "usedagdir": "paths begin at the folder of each DAG file",
    "dorecovery": "make the state of a run whose journal is lost anew from its nodes' event log",
    "autorescue 0|1": "whether to go on from the newest rescue file",
    "dorescuefrom N": "go on from rescue file N",
    "rescuefile FILE": "go on from this rescue file",
    "load_save FILE": "go on from a file that a save point wrote",
}
JOB: Options = {
    "batch-name NAME": "the batch that the jobs of the DAG belong to",
    "priority N": "of the jobs of the DAG",
    "notification VALUE": "when mail is sent about the jobs: never, error, complete, always",
    "suppress_notification": "no mail about the nodes' jobs",
    "dont_suppress_notification": "as their descriptions say",
    "import_env": "the DAG's job has the whole environment of this command",
    "include_env NAME,NAME": "it has these variables of it",
    "insert_env NAME=VALUE[;...]": "it has these variables",
    "dagman PROGRAM": "the program that runs the DAG",
}
FILES: Options = {
    "outfile_dir FOLDER": "where FILE.dagman.out goes",
    "lockfile FILE": "the file that says that the DAG runs",
    "force": "forget an earlier run: remove its files, put its rescue files aside",
    "update_submit": "an earlier submit description is no error",
    "debug LEVEL": "how much the run writes down, 0 to 7",
    "verbose": "say what is done",
}
WRITTEN: Options = {
    "FILE.condor.sub": "the submit description of the DAG's job",
    "FILE.dagman.out": "what happens, as it happens",
    "FILE.dagman.log": "the event log of the DAG's job",
    "FILE.nodes.log": "the event log of the nodes' jobs",
    "FILE.rescue001": "what is done, when the DAG could not be completed",
}
SUBMIT_DAG = Description(
    name="condor_submit_dag",
    purpose="run a workflow: jobs that wait for others",
    synopsis=("[options] FILE ...",),
    text="Submits the job that runs the DAG of these files. That job is condor_dagman, in the scheduler universe.",
    source="dag.submit_dag:FLAGS",
    options={
        "How it runs": RUN,
        "Its jobs": JOB,
        "The submit description": {
            "no_submit": "write it and submit nothing",
            "append COMMAND": "a line for it",
            "insert_sub_file FILE": "lines of FILE for it",
            "config FILE": "the configuration of this DAG",
            "do_recurse": "make those of SUBDAG nodes now",
            "no_recurse": "make them when their nodes begin (the default)",
            "remote NAME": "submit to the schedd of that name",
        },
        "Its files": FILES,
    },
    files=WRITTEN,
    see_also=("condor_dagman(1)", "condor_dag_checker(1)", "condor_submit(1)", "condor_q(1)"),
    operands="files",
)
DAGMAN = Description(
    name="condor_dagman",
    purpose="the program that runs a workflow",
    synopsis=("-f -l . -Lockfile FILE -Dag FILE [-Dag FILE ...] [options]",),
    text="condor_submit_dag submits the job that calls it.",
    source="dag.dagman:FLAGS",
    options={
        "The DAG": {
            "dag FILE": "a DAG file; may be repeated",
            "dot": "write the DOT file, and run nothing",
        },
        "How it runs": RUN,
        "Its jobs": JOB,
        "Its files": FILES,
        "Written by condor_submit_dag": {
            "f": "the process stays in the foreground; it always does",
            "p PORT": "nothing listens, so that no port is needed",
            "l FOLDER": "the log is FILE.dagman.out",
            "csdversion VERSION": "of condor_submit_dag",
        },
    },
    exit_status="0 when all nodes are done; 1 when some failed; 2 when the DAG was aborted; 3 when it is to be run "
                "again.",
    files=WRITTEN,
    see_also=("condor_submit_dag(1)",),
    operands="files",
)
DAG_CHECKER = Description(
    name="condor_dag_checker",
    purpose="show what is wrong with the files of a workflow",
    synopsis=("[options] FILE ...",),
    text="Shows every mistake of DAG files, with file and line.",
    source="dag.dag_checker:FLAGS",
    options={
        "What is looked at": {
            "usedagdir": "paths begin at the folder of each DAG file",
            "allowillegalchars": "names of nodes may have a +",
            "joinnodes": "many parents and many children share a join (the default)",
            "nojoinnodes": "they do not",
            "checkjdl": "the submit descriptions of nodes too",
            "checkscripts": "whether the scripts are programs",
            "checksubdags": "the DAG files of SUBDAG nodes too",
            "checkexternalfiles": "all three",
            "strict": "a file that these look for and that is not there is a mistake",
        },
        "What is printed": {"json": "the results as JSON", "statistics": "figures of the DAG"},
    },
    exit_status="0 when there is no mistake, 2 when there is one, 1 when the command line makes no sense.",
    see_also=("condor_submit_dag(1)",),
    operands="files",
)
PAGES = (SUBMIT_DAG, DAGMAN, DAG_CHECKER)
