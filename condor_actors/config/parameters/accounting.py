"""Parameters of priorities, groups and quotas."""

from __future__ import annotations

from condor_actors.config.parameter import boolean, choice, expression, integer, real, seconds, words

NEGOTIATOR = "NEGOTIATOR"

ROWS = (
    choice(
        "PRIORITY_POLICY",
        "FAIR_SHARE",
        "How the negotiator orders submitters: by decayed usage (FAIR_SHARE), by the"
        " Up-Down index (UP_DOWN), or by an expression (UPDATE_PRIO).",
        ("FAIR_SHARE", "UP_DOWN", "UPDATE_PRIO"),
        read_by=NEGOTIATOR,
    ),
    seconds("PRIORITY_HALFLIFE", 86400, "After how long past usage counts half.", low=1, read_by=NEGOTIATOR),
    real(
        "DEFAULT_PRIO_FACTOR",
        1000.0,
        "The factor of a user's priority unless condor_userprio sets another.",
        low=1,
        read_by=NEGOTIATOR,
    ),
    real(
        "NICE_USER_PRIO_FACTOR",
        10000000000.0,
        "The factor of jobs with nice_user.",
        low=1,
        read_by=NEGOTIATOR,
    ),
    real("REMOTE_PRIO_FACTOR", 10000000.0, "The factor of users of other pools.", low=1, read_by=NEGOTIATOR),
    words("ACCOUNTANT_LOCAL_DOMAIN", None, "The domain whose users are local.", read_by=NEGOTIATOR),
    words(
        "GROUP_NAMES",
        None,
        "The accounting groups; a dot parts a group from its sub-group.",
        read_by=NEGOTIATOR,
    ),
    real("GROUP_QUOTA_<GROUP>", None, "How many cores that group is entitled to.", low=0, read_by=NEGOTIATOR),
    real(
        "GROUP_QUOTA_DYNAMIC_<GROUP>",
        None,
        "Which fraction of its parent's share that group is entitled to.",
        low=0,
        high=1,
        read_by=NEGOTIATOR,
    ),
    real("GROUP_PRIO_FACTOR_<GROUP>", None, "The factor of users in that group.", low=1, read_by=NEGOTIATOR),
    boolean("GROUP_ACCEPT_SURPLUS", False, "Whether groups may use what others leave.", read_by=NEGOTIATOR),
    boolean(
        "GROUP_ACCEPT_SURPLUS_<GROUP>",
        None,
        "Whether that group may use what others leave.",
        read_by=NEGOTIATOR,
    ),
    boolean(
        "GROUP_AUTOREGROUP",
        False,
        "Whether jobs of groups that have their share compete again with all others.",
        read_by=NEGOTIATOR,
    ),
    boolean("GROUP_AUTOREGROUP_<GROUP>", None, "As GROUP_AUTOREGROUP, for one group.", read_by=NEGOTIATOR),
    expression(
        "GROUP_SORT_EXPR",
        'ifThenElse(AccountingGroup =?= "<none>", 3.4e+38, ifThenElse(GroupQuota > 0,'
        " GroupResourcesInUse / GroupQuota, 3.3e+38))",
        "In which order groups are served: the least first.",
        read_by=NEGOTIATOR,
    ),
    boolean(
        "NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION",
        True,
        "Whether quotas may add up to more than there is.",
        read_by=NEGOTIATOR,
    ),
    boolean(
        "NEGOTIATOR_USE_WEIGHTED_DEMAND",
        True,
        "Whether demand is counted in slot weights.",
        read_by=NEGOTIATOR,
    ),
    boolean(
        "NEGOTIATOR_USE_SLOT_WEIGHTS",
        True,
        "Whether a slot counts by its weight in usage and shares.",
        read_by=NEGOTIATOR,
    ),
    expression("SLOT_WEIGHT", "Cpus", "What a slot counts for in usage and shares.", read_by="STARTD"),
    real("UP_DOWN_STEP", 1.0, "By how much the Up-Down index moves each pass.", low=0, read_by=NEGOTIATOR),
    seconds("UP_DOWN_INTERVAL", 120, "How long a pass of the Up-Down index is.", low=1, read_by=NEGOTIATOR),
    real(
        "UP_DOWN_CEILING",
        120.0,
        "To where an idle submitter's index falls at once.",
        low=0,
        read_by=NEGOTIATOR,
    ),
    expression(
        "UPDATE_PRIO",
        "Prio + Users - Running",
        "The next priority of a submitting machine out of the last; the highest is served first.",
        read_by=NEGOTIATOR,
    ),
    integer("MIN_PRIO", -1000000, "The least that UPDATE_PRIO comes to.", read_by=NEGOTIATOR),
    integer("MAX_PRIO", 1000000, "The most that UPDATE_PRIO comes to.", read_by=NEGOTIATOR),
)
