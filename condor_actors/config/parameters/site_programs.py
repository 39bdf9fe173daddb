"""Parameters of programs of the site that startds and schedds run for attributes of their ads."""

from __future__ import annotations

from condor_actors.config.parameter import Parameter, boolean, choice, expression, path, real, text, words

__all__ = ["ROWS"]


def _rows(daemon: str, whose: str) -> tuple[Parameter, ...]:
    """The rows that startds and schedds share."""
    family, program = f"{daemon}_CRON", f"{daemon}_CRON_<JOB>"
    return (
        words(f"{family}_JOBLIST", None, f"Names of programs of the site whose output goes into {whose}.",
              read_by=daemon),
        real(f"{family}_MAX_JOB_LOAD", 0.1, "No further program is started while the loads of those that run would "
             "together be more than this.", low=0, read_by=daemon),
        boolean(f"{family}_LOG_NON_ZERO_EXIT", False, "Whether the output that is no attribute, and the standard "
                "error, of a program that ends with another status than 0 is logged.", read_by=daemon),
        path(f"{family}_CONFIG_VAL", None, f"The path of condor_config_val; programs find it as {family}_CONFIG_VAL in "
             "their environment.", change="live", read_by=daemon),
        path(f"{program}_EXECUTABLE", None, "The program; an absolute path.", change="live", read_by=daemon),
        text(f"{program}_ARGS", None, "Its arguments.", read_by=daemon),
        text(f"{program}_ENV", None, "What its environment has beside PATH, HOME, LANG and CONDOR_CONFIG.",
             read_by=daemon),
        path(f"{program}_CWD", None, "The folder it begins in; / by default.", change="live", read_by=daemon),
        text(f"{program}_MODE", None, "When it runs: Periodic (the default), WaitForExit, OneShot or, at a startd, "
             "OnDemand: when the machine measures its speed (RUNBENCHMARKS).", read_by=daemon),
        text(f"{program}_PERIOD", None, "Periodic: from start to start; WaitForExit: from its end to the next start. "
             "In seconds, or with m or h behind in minutes or hours.", read_by=daemon),
        text(f"{program}_PREFIX", None, "Stands before the name of each attribute that it prints.", read_by=daemon),
        boolean(f"{program}_KILL", False, "Whether it is ended when it still runs after a period.", read_by=daemon),
        real(f"{program}_JOB_LOAD", 0.01, f"What it counts as in {family}_MAX_JOB_LOAD.", low=0, read_by=daemon),
        boolean(f"{program}_RECONFIG", False, "Whether it gets SIGHUP on condor_reconfig.", read_by=daemon),
        boolean(f"{program}_RECONFIG_RERUN", False, "Whether it is run again on condor_reconfig.", read_by=daemon),
    )


ROWS = (
    *_rows("STARTD", "the ads of slots"),
    choice("STARTD_CRON_AUTOPUBLISH", "Never", "When new output is told to the collector at once: never (with the next "
           "update), always, or when it has changed.", choices=("Never", "Always", "If_Changed"), read_by="STARTD"),
    words("STARTD_CRON_<JOB>_SLOTS", None, "The numbers of the slots that have its output; all by default.",
          read_by="STARTD"),
    expression("STARTD_CRON_<JOB>_CONDITION", None, "It is started only where this holds for the machine's ad.",
               read_by="STARTD"),
    *_rows("SCHEDD", "the schedd's ad"),
    real("BENCHMARKS_MAX_JOB_LOAD", 1.0, "No further benchmark of the site is started while the loads of those that "
         "run would together be more than this.", low=0, read_by="STARTD"),
    path("BENCHMARKS_CONFIG_VAL", None, "The path of condor_config_val; benchmarks of the site find it as "
         "BENCHMARKS_CONFIG_VAL in their environment.", change="live", read_by="STARTD"),
    path("BENCHMARKS_<JOB>_EXECUTABLE", None, "A benchmark of the site, whose name is in BENCHMARKS_JOBLIST; an "
         "absolute path.", change="live", read_by="STARTD"),
    text("BENCHMARKS_<JOB>_ARGS", None, "Its arguments.", read_by="STARTD"),
    text("BENCHMARKS_<JOB>_ENV", None, "What its environment has beside PATH, HOME, LANG and CONDOR_CONFIG.",
         read_by="STARTD"),
    path("BENCHMARKS_<JOB>_CWD", None, "The folder it begins in; / by default.", change="live", read_by="STARTD"),
    text("BENCHMARKS_<JOB>_MODE", None, "OnDemand, if anything: it runs when RUNBENCHMARKS says so.",
         read_by="STARTD"),
    text("BENCHMARKS_<JOB>_PREFIX", None, "Stands before the name of each attribute that it prints.",
         read_by="STARTD"),
    words("BENCHMARKS_<JOB>_SLOTS", None, "The numbers of the slots that have its output; all by default.",
          read_by="STARTD"),
    expression("BENCHMARKS_<JOB>_CONDITION", None, "It is started only where this holds for the machine's ad.",
               read_by="STARTD"),
    real("BENCHMARKS_<JOB>_JOB_LOAD", 1.0, "What it counts as in BENCHMARKS_MAX_JOB_LOAD: by default one runs after "
         "the other.", low=0, read_by="STARTD"),
)
