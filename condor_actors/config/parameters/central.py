"""Parameters of the collector and of the negotiator's cycle."""

from __future__ import annotations

from condor_actors.config.parameter import boolean, expression, integer, path, seconds, text, words

COLLECTOR = "COLLECTOR"
NEGOTIATOR = "NEGOTIATOR"

ROWS = (
    seconds(
        "CLASSAD_LIFETIME",
        900,
        "How long the collector keeps an ad that is not renewed.",
        low=1,
        read_by=COLLECTOR,
    ),
    seconds(
        "OFFLINE_EXPIRE_ADS_AFTER",
        2147483647,
        "How long the ad of a machine that said it goes offline is kept.",
        read_by=COLLECTOR,
    ),
    path(
        "COLLECTOR_PERSISTENT_AD_LOG",
        "$(SPOOL)/offline_ads.$(LOCALNAME)",
        "The file that has the ads of machines that sleep.",
        read_by=COLLECTOR,
    ),
    seconds(
        "COLLECTOR_UPDATE_INTERVAL",
        900,
        "How often the collector renews its own ad.",
        low=1,
        read_by=COLLECTOR,
    ),
    expression("COLLECTOR_REQUIREMENTS", None, "What an ad has to satisfy to be taken.", read_by=COLLECTOR),
    integer(
        "COLLECTOR_QUERY_MAX_ADS", 100000, "The most ads that one answer holds.", low=1, read_by=COLLECTOR
    ),
    integer("COLLECTOR_MAX_ADS", 1000000, "The most ads that are kept at once.", low=1, read_by=COLLECTOR),
    words("CONDOR_VIEW_HOST", None, "Other collectors that get a copy of every ad.", read_by=COLLECTOR),
    boolean(
        "KEEP_POOL_HISTORY",
        False,
        "Whether the collector records the pool's history for condor_stats.",
        read_by=COLLECTOR,
    ),
    text("NEGOTIATOR_NAME", None, "The name of the negotiator's ad.", read_by=NEGOTIATOR),
    seconds(
        "NEGOTIATOR_INTERVAL",
        60,
        "How often a cycle is made even if nothing changed.",
        low=1,
        read_by=NEGOTIATOR,
    ),
    seconds(
        "NEGOTIATOR_MIN_INTERVAL",
        0.005,
        "The least time between the beginnings of two cycles that changes ask for.",
        read_by=NEGOTIATOR,
    ),
    seconds(
        "NEGOTIATOR_CYCLE_DELAY",
        0.002,
        "How long after a change a cycle waits, so that changes that come together are served together.",
        read_by=NEGOTIATOR,
    ),
    seconds(
        "NEGOTIATOR_TIMEOUT",
        30,
        "How long a schedd may take to answer within a cycle before it is left out of it.",
        low=1,
        read_by=NEGOTIATOR,
    ),
    seconds(
        "NEGOTIATOR_MAX_TIME_PER_CYCLE",
        1200,
        "How long a cycle goes on for submitters whose requests take long.",
        low=1,
        read_by=NEGOTIATOR,
    ),
    seconds(
        "NEGOTIATOR_MAX_TIME_PER_SUBMITTER",
        60,
        "How long a cycle works on one submitter's requests, a second at a time; others hear of their matches before.",
        low=1,
        read_by=NEGOTIATOR,
    ),
    boolean(
        "NEGOTIATOR_CONSIDER_PREEMPTION",
        True,
        "Whether machines that run jobs are looked at for better ones.",
        read_by=NEGOTIATOR,
    ),
    boolean(
        "NEGOTIATOR_CONSIDER_EARLY_PREEMPTION",
        False,
        "Whether jobs still within their promised retirement time are looked at.",
        read_by=NEGOTIATOR,
    ),
    expression(
        "PREEMPTION_REQUIREMENTS",
        "False",
        "What must hold, in the ads of slot (MY) and job (TARGET), for a job"
        " to make place for one of a user with better priority.",
        read_by=NEGOTIATOR,
    ),
    expression(
        "PREEMPTION_RANK",
        "(RemoteUserPrio * 1000000) - ifThenElse(isUndefined(TotalJobRunTime), 0, TotalJobRunTime)",
        "Which of several preemptible jobs goes first: the highest.",
        read_by=NEGOTIATOR,
    ),
    expression(
        "NEGOTIATOR_PRE_JOB_RANK",
        "(10000000 * My.Rank) + (1000000 * (RemoteOwner =?= UNDEFINED)) - (100000 * Cpus) - Memory",
        "Ranks the machines for a job before the job's own Rank does.",
        read_by=NEGOTIATOR,
    ),
    expression(
        "NEGOTIATOR_POST_JOB_RANK",
        "(RemoteOwner =?= UNDEFINED) * (ifThenElse(isUndefined(KFlops), 1000, KFlops)"
        " - SlotID - 1.0e10 * (Offline =?= True))",
        "Ranks machines that the job's own Rank holds equal.",
        read_by=NEGOTIATOR,
    ),
    expression(
        "NEGOTIATOR_SLOT_CONSTRAINT", None, "Which slots this negotiator considers.", read_by=NEGOTIATOR
    ),
    expression(
        "NEGOTIATOR_JOB_CONSTRAINT", None, "Which jobs this negotiator considers.", read_by=NEGOTIATOR
    ),
    expression(
        "NEGOTIATOR_SUBMITTER_CONSTRAINT",
        None,
        "Which submitters this negotiator considers.",
        read_by=NEGOTIATOR,
    ),
    boolean(
        "USE_RESOURCE_REQUEST_COUNTS",
        True,
        "Whether one request stands for all equal jobs.",
        read_by=NEGOTIATOR,
    ),
    integer(
        "NEGOTIATOR_RESOURCE_REQUEST_LIST_SIZE",
        200,
        "How many resource requests are asked for at a time.",
        low=1,
        read_by=NEGOTIATOR,
    ),
    boolean(
        "NEGOTIATOR_DEPTH_FIRST",
        False,
        "Whether machines are filled one after the other.",
        read_by=NEGOTIATOR,
    ),
    integer(
        "NEGOTIATOR_TRACE_CYCLES",
        20,
        "For how many cycles the reasons why requests got nothing are kept.",
        low=1,
        read_by=NEGOTIATOR,
    ),
    integer(
        "<NAME>_LIMIT",
        None,
        "How many of the concurrency limit <NAME> jobs may hold at once in the pool.",
        low=0,
        read_by=NEGOTIATOR,
    ),
    integer(
        "CONCURRENCY_LIMIT_DEFAULT",
        2308032,
        "The size of a concurrency limit that no setting names.",
        low=0,
        read_by=NEGOTIATOR,
    ),
    integer(
        "CONCURRENCY_LIMIT_DEFAULT_<NAME>",
        None,
        "The size of concurrency limits named <NAME>.something.",
        low=0,
        read_by=NEGOTIATOR,
    ),
    path(
        "ACCOUNTANT_DATABASE",
        "$(SPOOL)/accountant.db",
        "Where priorities and usage are recorded.",
        read_by=NEGOTIATOR,
    ),
)
