"""Parameters of workflows: condor_submit_dag and condor_dagman."""

from __future__ import annotations

from condor_actors.config.parameter import boolean, integer, path, seconds, text, words

ROWS = (
    path("DAGMAN_CONFIG_FILE", None, "A configuration file for all workflows, read after the others; that of a DAG's"
         " CONFIG line or of -config comes after it."),
    boolean("DAGMAN_USE_JOIN_NODES", True, "Whether many parents and many children of one line share a join, so that"
            " there are m + n edges instead of m times n."),
    boolean("DAGMAN_ALLOW_ANY_NODE_NAME_CHARACTERS", False, "Whether the name of a node may have a +, which separates"
            " splices from their nodes."),
    boolean("DAGMAN_MUNGE_NODE_NAMES", True, "Whether the nodes of several DAG files that are submitted together"
            " get the"
            " number of their file and a dot before their names."),
    integer("DAGMAN_MAX_JOBS_IDLE", 1000, "So many idle jobs of a DAG in the queue keep it from submitting more; 0"
            " for any"
            " number.", low=0),
    integer("DAGMAN_MAX_JOBS_SUBMITTED", 0, "How many nodes of a DAG have jobs in the queue at once; 0 for any number.",
            low=0),
    integer("DAGMAN_MAX_PRE_SCRIPTS", 20, "How many PRE scripts of a DAG run at once; 0 for any number.", low=0),
    integer("DAGMAN_MAX_POST_SCRIPTS", 20, "How many POST scripts of a DAG run at once; 0 for any number.", low=0),
    integer("DAGMAN_MAX_HOLD_SCRIPTS", 0, "How many HOLD scripts of a DAG run at once; 0 for any number.", low=0),
    integer("DAGMAN_MAX_SUBMITS_PER_INTERVAL", 100, "How many nodes a DAG submits together.", low=1, high=1000),
    seconds("DAGMAN_USER_LOG_SCAN_INTERVAL", 5, "The least time between two updates of the attributes of a DAG's"
            " job and of"
            " its status file; the event log itself is read as it grows.", low=1),
    integer("DAGMAN_MAX_SUBMIT_ATTEMPTS", 6, "How often a node's submission is tried that the schedd refuses.", low=1,
            high=16),
    integer("DAGMAN_MAX_JOB_HOLDS", 100, "How often the jobs of a node may be held before they are removed and the"
            " node has"
            " failed; 0 for any number.", low=0),
    boolean("DAGMAN_ALWAYS_RUN_POST", False, "Whether a POST script runs also when the PRE script has failed; then its"
            " status is the node's."),
    boolean("DAGMAN_SUBMIT_DEPTH_FIRST", False, "Whether nodes that have just become ready come before those that were"
            " ready earlier."),
    boolean("DAGMAN_RETRY_NODE_FIRST", False, "Whether a node that is tried again comes before the other ready ones."),
    integer("DAGMAN_NODE_JOB_FAILURE_TOLERANCE", 0, "How many jobs of a node may fail without the node failing.",
            low=0),
    boolean("DAGMAN_REMOVE_JOB_LIST_ON_FAILURE", True, "Whether the other jobs of a node are removed when it has"
            " failed."),
    boolean("DAGMAN_DEFAULT_APPEND_VARS", False, "Whether VARS without PREPEND or APPEND stand behind the commands"
            " of the"
            " submit description; else before them."),
    boolean("DAGMAN_AUTO_RESCUE", True, "Whether a DAG that is submitted again goes on from its newest rescue file."),
    integer("DAGMAN_MAX_RESCUE_NUM", 100, "The highest number of a rescue file; 0: none is written or used.", low=0,
            high=999),
    boolean("DAGMAN_RESET_RETRIES_UPON_RESCUE", True, "Whether nodes that go on from a rescue file have all their"
            " retries"
            " again."),
    integer("DAGMAN_METRICS_FILE_VERSION", 2, "The form of the .metrics file: 1 speaks of jobs where 2 speaks of"
            " nodes.",
            low=1, high=2),
    boolean("DAGMAN_REPORT_GRAPH_METRICS", False, "Whether the .metrics file has the height and width of the graph."),
    text("DAGMAN_DEFAULT_NODE_LOG", "@(DAG_DIR)/@(DAG_FILE).nodes.log", "The event log of all jobs of a DAG."
            " @(DAG_DIR) is"
         " the folder of its file, @(DAG_FILE) its name, @(CLUSTER) the number of its own job, @(OWNER) the user,"
         " @(NODE_NAME) the node of the DAG that it is a part of."),
    boolean("DAGMAN_SUPPRESS_NOTIFICATION", False, "Whether the jobs of a DAG send no mail."),
    boolean("DAGMAN_SUPPRESS_JOB_LOGS", False, "Whether the jobs of a DAG write no event log of their own, beside that"
            " of the DAG."),
    boolean("DAGMAN_PROHIBIT_MULTI_JOBS", False, "Whether the submission of a node that has more than one job fails."),
    integer("DAGMAN_DEFAULT_PRIORITY", 0, "What is added to the priority of each node."),
    path("DAGMAN_INSERT_SUB_FILE", None, "A file of submit commands for the DAG's own job."),
    text("DAGMAN_ON_EXIT_REMOVE", "( ExitSignal =?= 11 || (ExitCode =!= UNDEFINED && ExitCode >=0 && ExitCode <= 2))",
         "When the DAG's own job leaves the queue as it exits; else it is started again."),
    text("DAGMAN_MANAGER_JOB_APPEND_GETENV", None, "Variables of the caller's environment, beside the usual ones,"
            " that the"
         " DAG's own job gets, separated by commas; true: all of them."),
    boolean("DAGMAN_GENERATE_SUBDAG_SUBMITS", True, "Whether the submit file of a SUBDAG is made anew when the node is"
            " submitted."),
    boolean("DAGMAN_REMOVE_NODE_JOBS", True, "Whether a DAG that is removed removes the jobs of its nodes."),
    seconds("DAGMAN_PRINT_JOB_TABLE_INTERVAL", 900, "How often the table of nodes is written to dagman.out when nothing"
            " happens; 0: never.", low=0),
    words("DAGMAN_NODE_RECORD_INFO", None, "What the jobs of nodes have as attributes beside the usual: Retry for"
          " DAGManNodeRetry."),
    words("DAGMAN_INHERIT_ATTRS", None, "Attributes of the DAG's own job that the jobs of its nodes get."),
    text("DAGMAN_INHERIT_ATTRS_PREFIX", None, "What stands before the names of inherited attributes."),
)  # fmt: skip
