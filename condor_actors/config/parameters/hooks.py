"""Parameters of programs of the site around each job (job hooks)."""

from __future__ import annotations

from condor_actors.config.parameter import expression, path, seconds, text

__all__ = ["ROWS"]

STARTER = "STARTER"
STARTD = "STARTD"

ROWS = (
    text("STARTER_JOB_HOOK_KEYWORD", None, "The keyword of the hooks of every job, whatever the job says.",
         read_by=STARTER),
    text("STARTER_DEFAULT_JOB_HOOK_KEYWORD", None, "The keyword of the hooks of jobs that name none that there is.",
         read_by=STARTER),
    path("<KEYWORD>_HOOK_PREPARE_JOB_BEFORE_TRANSFER", None, "Runs before the job's input files are laid out and"
         " fetched.", change="live", read_by=STARTER),
    path("<KEYWORD>_HOOK_PREPARE_JOB", None, "Runs before the job begins, when its input files are there.",
         change="live", read_by=STARTER),
    text("<KEYWORD>_HOOK_PREPARE_JOB_ARGS", None, "The arguments of that program.", read_by=STARTER),
    seconds("<KEYWORD>_HOOK_PREPARE_JOB_TIMEOUT", None, "How long that program, or the one before"
            " the transfer, may take; 600 by default.", low=1,
            read_by=STARTER),
    path("<KEYWORD>_HOOK_UPDATE_JOB_INFO", None, "Runs whenever the usage of the job was measured.", change="live",
         read_by=STARTER),
    path("<KEYWORD>_HOOK_JOB_EXIT", None, "Runs when the job has ended, before its output goes home.", change="live",
         read_by=STARTER),
    seconds("<KEYWORD>_HOOK_JOB_EXIT_TIMEOUT", None, "How long that program may take; 30 by default.", low=1,
            read_by=STARTER),
    text("STARTD_JOB_HOOK_KEYWORD", None, "The keyword of the hooks by which all slots fetch work.", read_by=STARTD),
    text("SLOT<N>_JOB_HOOK_KEYWORD", None, "The keyword of the hooks by which that slot fetches work.", read_by=STARTD),
    path("<KEYWORD>_HOOK_FETCH_WORK", None, "Prints a job for a slot that is free, or nothing.", change="live",
         read_by=STARTD),
    path("<KEYWORD>_HOOK_REPLY_FETCH", None, "Is told whether a fetched job was taken: accept or reject.",
         change="live", read_by=STARTD),
    path("<KEYWORD>_HOOK_EVICT_CLAIM", None, "Is told of a fetched job that does not end by itself.", change="live",
         read_by=STARTD),
    expression("FETCHWORKDELAY", None, "How many seconds after a slot has fetched work it may again, about the slot's "
               "ad; 300 where this is no number.", read_by=STARTD),
)
