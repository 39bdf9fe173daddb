"""Parameters that are known and checked but not used by any daemon, each with the reason.

They are HTCondor's, so its configuration files load and their values are validated; `condor_config check` and the
reference say that setting them changes nothing, and why. A change that makes a daemon read one takes it out of this
table, and a test holds the table against the code.
"""

from __future__ import annotations

from typing import Final

__all__ = ["NOT_IN_FORCE"]

NOT_IN_FORCE: Final = {
    "CGROUP_IGNORE_CACHE_MEMORY": "a job's memory never counts the cache of files, which the kernel takes back",
    "CLAIM_PARTITIONABLE_LEFTOVERS": "the negotiator matches what is left of a partitionable slot in the same cycle",
    "COLLECTOR_UPDATE_INTERVAL": "the collector makes its own ad afresh for each query",
    "CONDOR_Q_SHOW_OLD_SUMMARY": "condor_q -totals prints the summary alone, and one line of it ends every list",
    "CONDOR_VIEW_HOST": "ads go to each collector that COLLECTOR_HOST names; the web daemon keeps the pool's figures",
    "DEFAULT_DOMAIN_NAME": "the machine's full name is asked of the system; NETWORK_HOSTNAME sets another",
    "KEEP_POOL_HISTORY": "there is no condor_stats; the web daemon keeps the pool's figures",
    "MAX_CLAIM_ALIVES_MISSED": "a claim ends when its lease runs out without a renewal",
    "MAX_CONCURRENT_DOWNLOADS": "transfers share their links by turns of bounded size instead of waiting in a queue",
    "MAX_CONCURRENT_UPLOADS": "transfers share their links by turns of bounded size instead of waiting in a queue",
    "NEGOTIATOR_DEPTH_FIRST": "NEGOTIATOR_PRE_JOB_RANK and the like say which machines are filled first",
    "NEGOTIATOR_USE_WEIGHTED_DEMAND": "quotas bound the weight in use, match by match; demand is not estimated before",
    "REQUEST_CLAIM_TIMEOUT": "the schedd waits in proportion to what it asked for at once, and then claims elsewhere",
    "SCHEDD_MIN_INTERVAL": "the schedd acts on each event; it does not look the queue over",
    "SHADOW_QUEUE_UPDATE_INTERVAL": "a shadow tells the schedd of every change as it learns of it",
    "SHOULD_TRANSFER_FILES": "SUBMIT_DEFAULT_SHOULD_TRANSFER_FILES is the default for submit files that do not say",
    "SINGULARITY": "images are entered without Singularity or Apptainer",
    "STARTD_HAS_BAD_UTMP": "every terminal is looked at in any case",
    "STARTD_SLOT_ATTRS": "a policy that looks at other slots can use the attributes of the whole machine (Total...)",
    "SUBMIT_SEND_RESCHEDULE": "the schedd itself tells the negotiator of new demand, at once",
    "TOOL_DEBUG": "commands say on standard error what concerns their user; daemons' logs have the rest",
}
"""The parameter, and why nothing has to obey it."""
