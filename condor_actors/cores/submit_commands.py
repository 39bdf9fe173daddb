"""Every command of the submit language, and what this pool does about it.

Theory: a job's author must be able to trust that what a description asks for is done.  So each command has one row:

========  ==========================================================================================
standing  meaning
========  ==========================================================================================
done      it has the effect that the manual describes
ignored   it has no effect and needs none here; who gives it is told so
refused   it would have no effect although the job needs it: the submission is refused with the reason
========  ==========================================================================================

A row is refused only for a value that asks for something: ``noop_job = false`` asks for nothing.  The submit tool
looks at commands and names their lines; the schedd looks at the attributes of every job and of every edit, since other
clients than ours submit too.

**Source**: the manual, "HTCondor Job Description Language" (227 commands), for the names.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator

from condor_actors import records
from condor_actors.classads import UNDEFINED, ClassAd
from condor_actors.cores.flock_lists import list_problem
from condor_actors.messages.codes import Universe
from condor_actors.messages.references.grid_resources import resource_problem

__all__ = ["BY_ATTRIBUTE", "BY_COMMAND", "COMMANDS", "MAY_BE_REFUSED", "Standing", "SubmitCommand",
           "grid_objection", "objection", "objections", "refusal", "starter_objection",
           "universe_objection"]  # fmt: skip


class Standing(enum.Enum):
    """What becomes of a command."""

    DONE = "done"
    IGNORED = "ignored"
    REFUSED = "refused"


@records.frozen(kw_only=True)
class SubmitCommand:
    """One command.

    Attributes:
        name: as the manual has it; ``<name>`` stands for a word of the author's own.
        attribute: of the job's ad that it sets; empty: several, or none.
        standing: what becomes of it.
        reason: why it is ignored or refused, a clause without a full stop.
        instead: the nearest thing that works, a sentence; empty: there is none.
    """

    name: str
    attribute: str = ""
    standing: Standing = Standing.DONE
    reason: str = ""
    instead: str = ""


_DONE = """
accounting_group AcctGroup; accounting_group_user AcctGroupUser; allowed_execute_duration AllowedExecuteDuration;
allowed_job_duration AllowedJobDuration; arguments; batch_name JobBatchName;
checkpoint_destination CheckpointDestination; checkpoint_exit_code SuccessCheckpointExitCode;
concurrency_limits ConcurrencyLimits; concurrency_limits_expr;
coresize CoreSize; description JobDescription; email_attributes EmailAttributes; encrypt_input_files;
encrypt_output_files; environment; error Err; executable Cmd; getenv; hold; hold_kill_sig HoldKillSig;
hook_keyword HookKeyword;
image_size ImageSize; initialdir Iwd; input In; job_lease_duration JobLeaseDuration; job_machine_attrs JobMachineAttrs;
job_machine_attrs_history_length JobMachineAttrsHistoryLength; job_max_vacate_time JobMaxVacateTime;
keep_claim_idle KeepClaimIdle; kill_sig KillSig; kill_sig_timeout KillSigTimeout; leave_in_queue LeaveJobInQueue;
log UserLog; log_xml UserLogUseXML; max_job_retirement_time MaxJobRetirementTime; max_retries JobMaxRetries;
max_transfer_input_mb MaxTransferInputMB; max_transfer_output_mb MaxTransferOutputMB; nice_user;
notification JobNotification; notify_user NotifyUser; on_exit_hold OnExitHold; on_exit_hold_reason OnExitHoldReason;
on_exit_hold_subcode OnExitHoldSubCode; on_exit_remove OnExitRemove; output Out; periodic_hold PeriodicHold;
periodic_hold_reason PeriodicHoldReason; periodic_hold_subcode PeriodicHoldSubCode; periodic_release PeriodicRelease;
periodic_remove PeriodicRemove; periodic_vacate PeriodicVacate; priority JobPrio; queue; rank Rank;
remove_kill_sig RemoveKillSig; request_<name>; request_cpus RequestCpus; request_disk RequestDisk; request_GPUs;
request_gpus RequestGPUs; request_memory RequestMemory; requirements Requirements; retry_until; run_as_owner RunAsOwner;
shell; should_transfer_files ShouldTransferFiles; skip_filechecks; stream_error StreamErr; stream_output StreamOut;
submit_event_notes SubmitEventNotes; submit_event_notes_attrs SubmitEventNotesAttrs;
submit_event_user_notes SubmitEventUserNotes; success_exit_code JobSuccessExitCode;
transfer_checkpoint_files TransferCheckpoint; transfer_error TransferErr; transfer_executable TransferExecutable;
transfer_input TransferIn; transfer_input_files TransferInput; transfer_output TransferOut; want_io_proxy WantIOProxy;
want_graceful_removal WantGracefulRemoval; want_job_networking WantJobNetworking;
transfer_output_files TransferOutput; transfer_output_remaps TransferOutputRemaps; universe JobUniverse;
when_to_transfer_output WhenToTransferOutput; dagman_log DAGManNodesLog; job_root JobRoot; batch_id JobBatchId;
dag_node_name DAGNodeName; dagman_job_id DAGManJobId; jobset JobSetName; periodic_checkpoint PeriodicCheckpoint;
deferral_time DeferralTime; deferral_window DeferralWindow; deferral_prep_time DeferralPrepTime;
cron_minute CronMinute; cron_hour CronHour; cron_day_of_month CronDayOfMonth; cron_month CronMonth;
cron_day_of_week CronDayOfWeek; cron_window; cron_prep_time; noop_job IsNoopJob; noop_job_exit_code NoopJobExitCode;
noop_job_exit_signal NoopJobExitSignal; next_job_start_delay NextJobStartDelay; output_directory OutputDirectory;
preserve_relative_paths PreserveRelativePaths; skip_if_dataflow SkipIfDataflow; stack_size StackSize;
job_ad_information_attrs JobAdInformationAttrs; public_input_files PublicInputFiles;
require_gpus RequireGPUs; gpus_minimum_capability GPUsMinCapability; gpus_maximum_capability GPUsMaxCapability;
gpus_minimum_memory GPUsMinMemory; gpus_minimum_runtime GPUsMinRuntime;
retry_request_memory RetryRequestMemory; retry_request_memory_increase NextRequestMemory;
retry_request_memory_max MaxRequestMemory; retry_request_disk RetryRequestDisk;
ulog_execute_attrs UserLogExecuteEventAttrs; remote_initialdir RemoteIwd; erase_output_and_error_on_restart DontAppend;
machine_count; node_count; nodecount; manifest ManifestDesired; manifest_dir ManifestDir;
starter_log JobStarterLog; starter_debug JobStarterDebug;
max_materialize JobMaterializeLimit; max_idle JobMaterializeMaxIdle; materialize_max_idle;
use_oauth_services OAuthServicesNeeded; send_credential SendCredential; <credential_service_name>_oauth_permissions;
<credential_service_name>_oauth_resource;
container_image ContainerImage; transfer_container TransferContainer; container_target_dir ContainerTargetDir;
docker_image DockerImage; docker_send_credentials DockerSendCredentials;
docker_pull_policy DockerPullPolicy;
docker_override_entrypoint DockerOverrideEntrypoint;
docker_network_type DockerNetworkType; container_service_names ContainerServiceNames;
<service-name>_container_port; mount_under_scratch JobMountUnderScratch;
grid_resource GridResource; batch_extra_submit_args BatchExtraSubmitArgs; batch_project BatchProject;
batch_queue BatchQueue; batch_runtime BatchRuntime; output_destination OutputDestination;
aws_access_key_id_file EC2AccessKeyId; aws_secret_access_key_file EC2SecretAccessKey; aws_region AWSRegion;
transfer_plugins TransferPlugins; primary_unix_group JobPrimaryUnixGroup;
tool_daemon_cmd ToolDaemonCmd; tool_daemon_args; tool_daemon_arguments; tool_daemon_input ToolDaemonInput;
tool_daemon_output ToolDaemonOutput; tool_daemon_error ToolDaemonError; suspend_job_at_exec SuspendJobAtExec;
s3_access_key_id_file; s3_secret_access_key_file; gs_access_key_id_file; gs_secret_access_key_file;
remote_universe; remote_requirements; remote_<attribute>
"""

_IGNORED: tuple[tuple[str, str], ...] = (
    ("dont_encrypt_input_files DontEncryptInputFiles; dont_encrypt_output_files DontEncryptOutputFiles",
     "every transfer between machines is encrypted"),
    ("want_remote_io WantRemoteIO", "files are brought to every job; want_io_proxy lets it ask for others"),
    ("stream_input StreamIn", "the whole input is sent before the program begins, which reads the same"),
    ("match_list_length LastMatchListLength", "job_machine_attrs keeps the machines that a job ran on"),
    ("container_is_common", "an image is sent to a machine and unpacked there only once for an owner"),
    ("load_profile LoadProfile", "there are no profiles outside Windows"),
    ("buffer_block_size BufferBlockSize; buffer_files BufferFiles; buffer_size BufferSize; "
     "compress_files CompressFiles; fetch_files FetchFiles", "the standard universe reads ahead by itself"),
)  # fmt: skip

_GRID = "jobs are handed to Slurm and to other schedds alone, of other batch systems and clouds"
_GRID_INSTEAD = ("Say grid_resource = batch slurm, or grid_resource = condor SCHEDD POOL, or submit the program itself "
                 "with universe = vanilla.")
_OAUTH = "no file with a token or proxy certificate is renewed where the job runs"
_OAUTH_INSTEAD = "Say use_oauth_services, or put a token of limited rights into a file of transfer_input_files."

_REFUSED: tuple[tuple[str, str, str], ...] = (
    ("arc_application; arc_data_staging; arc_resources; arc_rte; azure_admin_key; "
     "azure_admin_username; azure_auth_file; azure_image; azure_location; azure_size; "
     "cloud_label_<name>; cloud_label_names; ec2_access_key_id; ec2_ami_id; ec2_availability_zone; "
     "ec2_block_device_mapping; ec2_ebs_volumes; ec2_elastic_ip; ec2_iam_profile_arn; ec2_iam_profile_name; "
     "ec2_instance_type; ec2_keypair; ec2_keypair_file; ec2_parameter_<name>; ec2_parameter_names; "
     "ec2_secret_access_key; ec2_security_groups; ec2_security_ids; ec2_spot_price; ec2_tag_<name>; ec2_tag_names; "
     "ec2_user_data; ec2_user_data_file; ec2_vpc_ip; ec2_vpc_subnet; gce_account; gce_auth_file; gce_image; "
     "gce_json_file; gce_machine_type; gce_metadata; gce_metadata_file; gce_preemptible; WantNameTag; "
     "delegate_job_GSI_credentials_lifetime; remote_grid_resource; remote_remote_grid_resource",
     _GRID, _GRID_INSTEAD),
    ("RequestedChroot RequestedChroot", "no root directory of a machine has a name (NAMED_CHROOT)",
     "Use container_image = /FOLDER with transfer_container = false."),
    ("<service-name>_HostPort", "a port that is free on the machine leads to the service, and the pool writes it into "
     "the job's ad", "Read it there while the job runs: condor_q -af SERVICE_HostPort."),
    ("cuda_version CUDAVersion", "it asks for attributes that only old programs for finding GPUs wrote",
     "Use gpus_minimum_runtime."),
    ("vm_checkpoint; vm_disk; vm_macaddr; vm_memory; vm_networking; vm_networking_type; vm_no_output_vm; vm_type; "
     "xen_initrd; xen_kernel; xen_kernel_params; xen_root", "virtual machines are not started", ""),
    ("jar_files JarFiles; java_vm_args JavaVMArgs", "the java universe is not there",
     "Use universe = vanilla with executable = /usr/bin/java, transfer_executable = false, the class path in "
     "arguments and the archives in transfer_input_files."),
    ("use_scitokens; scitokens_file ScitokensFile; "
     "x509userproxy x509userproxy; use_x509userproxy", _OAUTH, _OAUTH_INSTEAD),
    ("WantParallelScheduling WantParallelScheduling; rendezvousdir; parallel_script_shadow ParallelScriptShadow; "
     "parallel_script_starter ParallelScriptStarter", "several machines are claimed for one job in the parallel "
     "universe alone, and no scripts are run around its nodes", "Use universe = parallel with machine_count."),
    ("encrypt_execute_directory EncryptExecuteDirectory", "a job's folder is not encrypted: that takes a key in the "
     "kernel and a file system made for it, which root sets up",
     "Have the administrator put EXECUTE on an encrypted disk and advertise that; ask for it in requirements."),
    ("append_files AppendFiles; file_remaps FileRemaps; local_files LocalFiles",
     "the standard universe reads and writes the files of the submit machine as they are",
     "Give the program the paths it is to use."),
)  # fmt: skip


def _rows(names: str, standing: Standing, reason: str = "", instead: str = "") -> Iterator[SubmitCommand]:
    for entry in names.split(";"):
        name, _, attribute = entry.strip().partition(" ")
        yield SubmitCommand(name=name, attribute=attribute, standing=standing, reason=reason, instead=instead)


COMMANDS: tuple[SubmitCommand, ...] = (
    *_rows(_DONE, Standing.DONE),
    *(row for names, reason in _IGNORED for row in _rows(names, Standing.IGNORED, reason)),
    *(row for names, reason, instead in _REFUSED for row in _rows(names, Standing.REFUSED, reason, instead)),
)
BY_COMMAND = {command.name.lower(): command for command in COMMANDS}
BY_ATTRIBUTE = {command.attribute.lower(): command for command in COMMANDS if command.attribute}
_REFUSED_ATTRIBUTES = frozenset(key for key, row in BY_ATTRIBUTE.items() if row.standing is Standing.REFUSED)
_BY_STARTER = frozenset({"wantioproxy", "manifestdesired", "manifestdir", "jobstarterlog", "oauthservicesneeded",
                         "jobprimaryunixgroup", "checkpointdestination", "tooldaemoncmd", "suspendjobatexec"})
"""What the starter of a run does, which not every universe has."""
MAY_BE_REFUSED = _REFUSED_ATTRIBUTES | _BY_STARTER | {"jobuniverse", "gridresource", "flockto"}
"""The attributes, lower case, that `objections` looks at."""

_UNIVERSES = {
    int(Universe.JAVA): BY_COMMAND["jar_files"],
    int(Universe.VM): BY_COMMAND["vm_type"],
}

_WITHOUT_STARTER = (Universe.STANDARD, Universe.SCHEDULER, Universe.LOCAL, Universe.GRID)
_NO_STARTER = SubmitCommand(
    name="universe", standing=Standing.REFUSED,
    reason="jobs of this universe are not run by a starter that could do it for them",
    instead="Leave it out, or use universe = vanilla, container or parallel.")
_FLOCK_TO = SubmitCommand(name="FlockTo", attribute="FlockTo", standing=Standing.REFUSED,
                          instead='Say for example My.FlockTo = "physics, chemistry".')


def universe_objection(universe: int) -> SubmitCommand | None:
    """The row that says why jobs of a universe (its number) are refused; None: they are run."""
    return _UNIVERSES.get(universe)


def starter_objection(universe: int) -> SubmitCommand | None:
    """The row that says why jobs of a universe cannot have what a starter does for a job; None: they can."""
    return _NO_STARTER if universe in _WITHOUT_STARTER else None


def grid_objection(resource: object) -> SubmitCommand | None:
    """The row that says why jobs are not handed to a ``grid_resource``; None: they are."""
    problem = resource_problem(resource)
    if not problem:
        return None
    return records.evolve(BY_COMMAND["grid_resource"], standing=Standing.REFUSED, reason=problem, instead=_GRID_INSTEAD)


def asks(value: object) -> bool:
    """Whether a value of a command or attribute asks for anything: not false, nought, empty or undefined."""
    return value is not None and value is not UNDEFINED and value not in (False, 0, "")


def objections(ad: ClassAd, names: Iterable[str]) -> Iterator[tuple[str, SubmitCommand]]:
    """What an ad asks for that is not done.

    Args:
        ad: a job's.
        names: of the attributes to look at, in any case.

    Yields:
        the attribute and its row; for ``JobUniverse`` the row that explains the universe.
    """
    for name in names:
        key = name.lower()
        if key == "jobuniverse":
            universe = ad.get_int("JobUniverse")
            row = universe_objection(universe)
            if row is not None:
                yield name, row
            elif universe == Universe.GRID and "GridResource" not in ad:
                yield name, grid_objection(None) or BY_COMMAND["grid_resource"]
        elif key == "gridresource":
            row = grid_objection(ad.evaluate(name))
            if row is not None:
                yield name, row
        elif key == "flockto":
            problem = list_problem(ad.find(key)) if asks(ad.find(key)) else ""
            if problem:
                yield _FLOCK_TO.name, records.evolve(_FLOCK_TO, reason=problem)
        elif key in _BY_STARTER:
            if asks(ad.evaluate(name)) and ad.get_int("JobUniverse") in _WITHOUT_STARTER:
                yield name, _NO_STARTER
        elif key in _REFUSED_ATTRIBUTES and asks(ad.evaluate(name)):
            yield name, BY_ATTRIBUTE[key]


def objection(ad: ClassAd, names: Iterable[str]) -> str | None:
    """The first of `objections` as a sentence that says the reason and the remedy; None: there is none."""
    for name, row in objections(ad, names):
        return refusal(f"{name} = {ad.expression(name)}", row)
    return None


def refusal(said: str, row: SubmitCommand) -> str:
    """Why something that was said is refused, with the nearest thing that works."""
    return f"{said} would have no effect: {row.reason}." + (f" {row.instead}" if row.instead else "")
