"""Parameters that are known and checked, and that no daemon heeds yet.

They are HTCondor's, so its configuration files load and their values are validated; `condor_config check` and the
reference say that setting them changes nothing. A change that makes a daemon read one takes it out of this list, and a
test holds the list against the code.
"""

from __future__ import annotations

from typing import Final

__all__ = ["NOT_IN_FORCE"]

NOT_IN_FORCE: Final = frozenset(
    [
        "CGROUP_IGNORE_CACHE_MEMORY",
        "CLAIM_PARTITIONABLE_LEFTOVERS",
        "COLLECTOR_UPDATE_INTERVAL",
        "CONDOR_Q_SHOW_OLD_SUMMARY",
        "CONDOR_VIEW_HOST",
        "DEFAULT_DOMAIN_NAME",
        "DEFAULT_USERLOG_FORMAT_OPTIONS",
        "EVENT_LOG_FORMAT_OPTIONS",
        "GROUP_AUTOREGROUP_<GROUP>",
        "HISTORY_HELPER_MAX_HISTORY",
        "KEEP_POOL_HISTORY",
        "MACHINE_RESOURCE_INVENTORY_<NAME>",
        "MAX_CLAIM_ALIVES_MISSED",
        "MAX_CONCURRENT_DOWNLOADS",
        "MAX_CONCURRENT_UPLOADS",
        "NEGOTIATOR_DEPTH_FIRST",
        "NEGOTIATOR_USE_WEIGHTED_DEMAND",
        "OFFLINE_EXPIRE_ADS_AFTER",
        "REQUEST_CLAIM_TIMEOUT",
        "SCHEDD_MIN_INTERVAL",
        "SHADOW_QUEUE_UPDATE_INTERVAL",
        "SHOULD_TRANSFER_FILES",
        "SINGULARITY",
        "STARTD_HAS_BAD_UTMP",
        "STARTD_SLOT_ATTRS",
        "SUBMIT_SEND_RESCHEDULE",
        "TOOL_DEBUG",
    ]
)
