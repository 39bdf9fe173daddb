"""Commands that become one attribute as they stand, and all other words the language knows.

=========  =====================================================================
kind       how the value is taken
=========  =====================================================================
string     as text; surrounding double quotes are kept
word       as text without surrounding double quotes
list       as text, blanks and commas between words become single commas
path       as text, made absolute from the job's initial folder (a log)
boolean    true/false (also yes/no, t/f, 1/0), else an expression is refused
integer    an integer (an expression that is one counts)
natural    an integer that is not negative
expr       any expression
=========  =====================================================================

Every command may also be given by the name of its attribute (``JobBatchName = x``).
**Source**: the manual, "HTCondor Job Description Language"; job ClassAd attributes.
"""

from __future__ import annotations

from condor_actors import records
from condor_actors.cores.submit_commands import COMMANDS, Standing


@records.frozen
class Keyword:
    """A command, the attribute it sets, how, and the attribute's name in lower case."""

    command: str
    attribute: str
    kind: str
    key: str


_TABLE = """
append_files                 AppendFiles                  string
aws_access_key_id_file       EC2AccessKeyId               string
aws_region                   AWSRegion                    string
aws_secret_access_key_file   EC2SecretAccessKey           string
allowed_execute_duration     AllowedExecuteDuration       expr
allowed_job_duration         AllowedJobDuration           expr
batch_extra_submit_args      BatchExtraSubmitArgs         string
batch_id                     JobBatchId                   word
batch_name                   JobBatchName                 word
batch_project                BatchProject                 word
batch_queue                  BatchQueue                   word
batch_runtime                BatchRuntime                 natural
buffer_block_size            BufferBlockSize              expr
buffer_files                 BufferFiles                  expr
buffer_size                  BufferSize                   expr
checkpoint_destination       CheckpointDestination        string
checkpoint_exit_code         SuccessCheckpointExitCode    integer
compress_files               CompressFiles                string
container_target_dir         ContainerTargetDir           word
core_size                    CoreSize                     integer
coresize                     CoreSize                     integer
cron_day_of_month            CronDayOfMonth               string
cron_day_of_week             CronDayOfWeek                string
cron_hour                    CronHour                     string
cron_minute                  CronMinute                   string
cron_month                   CronMonth                    string
cuda_version                 CUDAVersion                  string
dag_node_name                DAGNodeName                  string
dagman_job_id                DAGManJobId                  natural
dagman_log                   DAGManNodesLog               path
description                  JobDescription               string
docker_network_type          DockerNetworkType            string
docker_override_entrypoint   DockerOverrideEntrypoint     boolean
docker_pull_policy           DockerPullPolicy             word
docker_send_credentials      DockerSendCredentials        boolean
dont_encrypt_input_files     DontEncryptInputFiles        string
dont_encrypt_output_files    DontEncryptOutputFiles       string
email_attributes             EmailAttributes              list
encrypt_execute_directory    EncryptExecuteDirectory      boolean
encrypt_input_files          EncryptInputFiles            string
encrypt_output_files         EncryptOutputFiles           string
erase_output_and_error_on_restart DontAppend              boolean
fetch_files                  FetchFiles                   string
file_remaps                  FileRemaps                   expr
grid_resource                GridResource                 string
gs_access_key_id_file        EC2AccessKeyId               string
gs_secret_access_key_file    EC2SecretAccessKey           string
hook_keyword                 HookKeyword                  string
jar_files                    JarFiles                     string
job_ad_information_attrs     JobAdInformationAttrs        string
job_lease_duration           JobLeaseDuration             expr
job_machine_attrs            JobMachineAttrs              string
job_machine_attrs_history_length JobMachineAttrsHistoryLength integer
job_max_vacate_time          JobMaxVacateTime             expr
job_root                     JobRoot                      path
jobset                       JobSetName                   word
keep_claim_idle              KeepClaimIdle                expr
load_profile                 LoadProfile                  boolean
local_files                  LocalFiles                   string
log                          UserLog                      path
log_xml                      UserLogUseXML                boolean
manifest                     ManifestDesired              boolean
manifest_dir                 ManifestDir                  word
match_list_length            LastMatchListLength          integer
max_job_retirement_time      MaxJobRetirementTime         expr
max_transfer_input_mb        MaxTransferInputMB           expr
max_transfer_output_mb       MaxTransferOutputMB          expr
mount_under_scratch          JobMountUnderScratch         word
next_job_start_delay         NextJobStartDelay            expr
noop_job                     IsNoopJob                    expr
noop_job_exit_code           NoopJobExitCode              expr
noop_job_exit_signal         NoopJobExitSignal            expr
notify_user                  NotifyUser                   string
output_destination           OutputDestination            string
output_directory             OutputDirectory              string
parallel_script_shadow       ParallelScriptShadow         string
parallel_script_starter      ParallelScriptStarter        string
periodic_checkpoint          PeriodicCheckpoint           expr
preserve_relative_paths      PreserveRelativePaths        boolean
primary_unix_group           JobPrimaryUnixGroup          string
prio                         JobPrio                      integer
priority                     JobPrio                      integer
remote_initialdir            RemoteIwd                    string
remote_grid_resource         Remote_GridResource          string
remote_remote_grid_resource  Remote_Remote_GridResource   string
run_as_owner                 RunAsOwner                   boolean
s3_access_key_id_file        EC2AccessKeyId               string
s3_secret_access_key_file    EC2SecretAccessKey           string
skip_if_dataflow             SkipIfDataflow               boolean
stack_size                   StackSize                    expr
starter_debug                JobStarterDebug              word
starter_log                  JobStarterLog                path
submit_event_notes           SubmitEventNotes             string
submit_event_notes_attrs     SubmitEventNotesAttrs        string
submit_event_user_notes      SubmitEventUserNotes         string
suspend_job_at_exec          SuspendJobAtExec             boolean
tool_daemon_cmd              ToolDaemonCmd                path
tool_daemon_error            ToolDaemonError              string
tool_daemon_input            ToolDaemonInput              path
tool_daemon_output           ToolDaemonOutput             string
transfer_checkpoint_files    TransferCheckpoint           string
transfer_plugins             TransferPlugins              string
ulog_execute_attrs           UserLogExecuteEventAttrs     string
want_graceful_removal        WantGracefulRemoval          expr
want_io_proxy                WantIOProxy                  boolean
want_job_networking          WantJobNetworking            boolean
want_remote_io               WantRemoteIO                 boolean
x509userproxy                x509userproxy                path
"""

SIMPLE: tuple[Keyword, ...] = tuple(
    Keyword(command, attribute, kind, attribute.lower())
    for command, attribute, kind in (row.split() for row in _TABLE.strip().splitlines())
)

OTHER = frozenset(
    """
    accounting_group accounting_group_user acctgroup acctgroupuser allow_arguments_v1 allow_environment_v1 args
    arguments arguments2 cmd concurrency_limits concurrency_limits_expr container_image cron_prep_time
    cron_window deferral_prep_time deferral_time deferral_window disk_usage docker_image env environment
    environment2 err error executable exit_requirements get_env getenv gpus_maximum_capability
    gpus_minimum_capability gpus_minimum_memory gpus_minimum_runtime hold hold_kill_sig image_size in
    initial_dir initialdir input iwd job_iwd job_name kill_sig kill_sig_timeout leave_in_queue machine_count
    materialize_max_idle max_idle max_materialize max_retries memory_usage nice_user node_count nodecount notification
    on_exit_hold on_exit_hold_reason on_exit_hold_subcode on_exit_remove out output periodic_hold
    periodic_hold_reason periodic_hold_subcode periodic_release periodic_remove periodic_vacate preferences
    project_name public_input_files rank remove_kill_sig require_gpus requirements retry_request_disk
    retry_request_memory retry_request_memory_increase retry_request_memory_max retry_until shell
    should_transfer_files shouldtransferfiles skip_filechecks stderr stdin stdout stream_error stream_input
    stream_output submit_allow_duplicate_matches submit_fail_empty_matches submit_match_directories
    submit_warn_duplicate_matches submit_warn_empty_matches success_exit_code tool_daemon_args
    tool_daemon_arguments tool_daemon_arguments2 transfer_error transfer_executable
    transfer_input transfer_input_files transfer_output transfer_output_files transfer_output_remaps
    transferinputfiles transferoutputfiles universe use_x509userproxy want_factory_submit
    when_to_transfer_output whentotransferoutput
    """.split()  # noqa: SIM905 (a list literal of these is harder to read)
)
"""Commands that take more than one attribute or some thought."""

PREFIXES = ("request_", "require_", "my.", "+", "retry_request_", "transform_body_")

KNOWN = frozenset({keyword.command for keyword in SIMPLE} | {keyword.attribute.lower() for keyword in SIMPLE} | OTHER)

_CARRIED_OUT = [row.name.lower() for row in COMMANDS if row.standing is Standing.DONE]


def is_known(name: str) -> bool:
    """Whether a name is a command of the language (in any case), not a macro of the user's."""
    lowered = name.lower()
    return lowered in KNOWN or lowered.startswith(PREFIXES)


def nearest(name: str) -> str | None:
    """The command that a word was most likely meant to be; None: nothing is near."""

    import difflib

    found = difflib.get_close_matches(name.lower(), _CARRIED_OUT, 1, 0.75)
    return found[0] if found else None
