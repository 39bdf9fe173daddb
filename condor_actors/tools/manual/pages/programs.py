"""``htcondor`` and ``condor_simulate``, which have tables of their own."""

from __future__ import annotations

from condor_actors.tools.manual.description import Description

HTCONDOR = Description(
    name="htcondor",
    purpose="one command for jobs, workflows and the pool",
    synopsis=("[-h] [-v] [-q] [-V] NOUN VERB [options] ...",),
    text="""A noun, then what is done with it. Sentences go to standard error, what was asked for (a job's output, a
table) to standard output. -h works behind everything.""",
    source="nouns.table:NOUNS",
    options={"Before the noun": {
        "-q,--quiet": "print data and errors alone",
        "-v,--verbose": "no effect: every command says all it knows",
        "-V,--version": "print the version and end",
    }},
    exit_status="0; 1 when it could not be done; 2 for a command line that makes no sense.",
    see_also=("condor_submit(1)", "condor_q(1)", "condor_submit_dag(1)"),
    operands="files",
)
SIMULATE = Description(
    name="condor_simulate",
    purpose="what a pool would do, or would have done, on a clock of its own",
    synopsis=("VERB [options]",),
    text="""Runs pools in simulated time, with the cores that decide in production. The same arguments give the same
numbers.""",
    source="condor_actors.simulation.command:command_parser",
    exit_status="0; 1 when a seed breaks a rule; 2 for a command line that makes no sense.",
    see_also=("condor_policy(1)", "condor_history(1)", "condor_status(1)"),
    operands="files",
    reads_configuration=False,
)
PAGES = (HTCONDOR, SIMULATE)
