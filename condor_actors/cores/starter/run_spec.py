"""What a starter must know to run a job: read from the job's ad, the slot's ad and the machine's settings.

Theory: the job's ad is the user's wish and hostile; this is the one place that reads it on the execute side, and what
comes out is a plain value.  Arguments and environment are in the syntaxes of HTCondor's manual (``Args`` / ``Env`` old,
``Arguments`` / ``Environment`` new).
"""

from __future__ import annotations

import posixpath
import re
import signal
from collections.abc import Mapping

import attrs

from condor_actors.classads import UNDEFINED, ClassAd, Expr, is_true
from condor_actors.config.settings import setting
from condor_actors.cores.argument_quoting import UnbalancedQuote, split_raw
from condor_actors.cores.checkpoints.destination import NUMBER, USED, CheckpointDestination, destination_of
from condor_actors.cores.devices.slot_devices import SlotDevices
from condor_actors.cores.flocking import foreign_job
from condor_actors.cores.output_destinations import STDERR, STDOUT, OutputUrls
from condor_actors.cores.starter.chirp_session import ChirpSettings
from condor_actors.cores.starter.container_spec import BadContainer, ContainerSpec, container_of
from condor_actors.cores.starter.run_log import log_level
from condor_actors.cores.starter.tool_daemon import BadTool, ToolSpec, tool_of
from condor_actors.cores.transfer_plugins import BadPlugin, job_plugins
from condor_actors.messages.codes import CHECKPOINT_SIGNAL, Universe
from condor_actors.messages.realm import parted
from condor_actors.numerals import numeral, whole

__all__ = ["BadJob", "RunSettings", "RunSpec", "appends_output", "environment_of",
           "job_of_claim", "read_spec", "signal_number"]

EXECUTABLE, STDIN = "condor_exec.exe", "_condor_stdin"
NULL = "/dev/null"
DEFAULT_VACATE_S = 600.0
MOST_OWN_FOLDERS = 64


class BadJob(ValueError):
    """A job that cannot be run as it is; its text is the hold reason."""


@attrs.frozen(kw_only=True)
class RunSettings:
    """The machine's part.

    Attributes:
        renice: JOB_RENICE_INCREMENT, over the job's ad.
        cpu_weight: per processor; io_weight: None: as it is; idle: only idle processor and disk time (JOB_CPU_WEIGHT,
            JOB_IO_WEIGHT, JOB_SCHEDULING).
        environment: STARTER_JOB_ENVIRONMENT, for every job.
        device_variables: custom resource, in lower case, to the variables that name the assigned devices: ``NAME``, or
            ``NAME=/pattern/replacement/`` for each device's name.
        unassigned: custom resource, in lower case, to what those variables say when the job has none of it.
        update_interval_s, first_update_s: of RunProgress.
        max_processes: MAX_JOB_PROCESSES.
        chirp: what jobs may do at home while they run.
        authorities: AUTH_SSL_CLIENT_CAFILE, for inputs by https; empty: the machine's own authorities only.
        fetch_s: MAX_FILE_TRANSFER_PLUGIN_LIFETIME, for each input by URL.
    """

    authorities: str = ""
    chirp: ChirpSettings = attrs.field(factory=ChirpSettings)
    fetch_s: float = setting("MAX_FILE_TRANSFER_PLUGIN_LIFETIME")
    renice: Expr | None = None
    cpu_weight: int = setting("JOB_CPU_WEIGHT")
    io_weight: int | None = None
    idle: bool = False
    environment: Mapping[str, str] = attrs.field(factory=dict)
    device_variables: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    unassigned: Mapping[str, str] = attrs.field(factory=dict)
    update_interval_s: float = setting("STARTER_UPDATE_INTERVAL")
    first_update_s: float = setting("STARTER_INITIAL_UPDATE_INTERVAL")
    max_processes: int = setting("MAX_JOB_PROCESSES")


@attrs.frozen(kw_only=True)
class RunSpec:
    """One run, as plain values.

    Attributes:
        transfers: files travel; else the job uses the paths of its own folder ``iwd``.
        program: absolute, or relative to the sandbox (``condor_exec.exe``).
        arguments, environment: of the job itself.
        stdin, stdout, stderr: paths (relative: to the sandbox or ``iwd``); ``/dev/null``: none.
        stream_stdout, stream_stderr: sent home as they are written.
        owner, domain: the submitting user.
        run_as_owner: None: the job does not say.
        kill_signal, remove_signal, hold_signal: how it is asked to go.
        vacate_s: how long it may take to go.
        graceful_removal: whether it may take as long when it is removed (WantGracefulRemoval).
        outputs: named output files; None: everything new or changed.
        when: ``ON_EXIT``, ``ON_EXIT_OR_EVICT``, ``ON_SUCCESS``.
        success_code: for ON_SUCCESS.
        checkpoint_code: exit code that means "I saved a checkpoint, start me again"; None: none.
        checkpoint_signal: asks the program for one (+WantCheckpointSignal, +CheckpointSig); None: it takes none.
        kept: files at the top of the sandbox that an earlier run of the job has made.
        checkpoint_files: what such a checkpoint consists of; empty: the outputs.
        checkpoint_destination: where they go; None: home.
        checkpoint_number: of the last one there; checkpoint_used: of the one that this run goes on from.
        checkpoints_before: how many the job had, wherever they are.
        core_kib: limit of core dumps; None: the machine's.
        memory_kib: RequestMemory; disk_kib: RequestDisk.
        streams_names: names at home of streamed files.
        networking: whether it has the machine's network (WantJobNetworking).
        begins_s: when it begins (seconds since the epoch; DeferralTime); None: at once.
        window_s: how much later it may (DeferralWindow).
        stack_bytes: the soft limit of its stack (StackSize); None: the machine's.
        remote_directory: where it begins instead of its own folder (RemoteIwd); empty: there.
        appends: its output goes on where an evicted run's ended (DontAppend is false, ON_EXIT_OR_EVICT).
        keeps_paths: named outputs keep the folders of their names (PreserveRelativePaths).
        manifest: folder for the lists of its files (ManifestDesired, ManifestDir); empty: none are made.
        log_level: how much of its starter's log goes home; empty: nothing.
        container: the image that is its root directory; None: it sees the machine's.
        own_folders: of the machine, that it has of its own instead (JobMountUnderScratch).
        primary_group: which of its account's groups it begins with (JobPrimaryUnixGroup); empty: the account's own.
        urls: where its outputs go that do not go home.
        plugins: its own transfer plugins: method to path (TransferPlugins).
        tool: the program that runs beside it (ToolDaemonCmd).
        standard: the runtime runs it and its files stay at home; asked to go, it takes a checkpoint.
    """

    job_id: str
    transfers: bool
    program: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    iwd: str
    stdin: str
    stdout: str
    stderr: str
    stream_stdout: bool
    stream_stderr: bool
    owner: str
    domain: str
    run_as_owner: bool | None
    kill_signal: int
    remove_signal: int
    hold_signal: int
    vacate_s: float
    outputs: tuple[str, ...] | None
    when: str
    success_code: int
    checkpoint_code: int | None
    checkpoint_files: tuple[str, ...]
    core_kib: int | None
    nice: int
    keep_open_s: float = 0.0
    standard: bool = False
    checkpoint_signal: int | None = None
    graceful_removal: bool = False
    kept: tuple[str, ...] = ()
    networking: bool = True
    begins_s: float | None = None
    window_s: float = 0.0
    stack_bytes: int | None = None
    remote_directory: str = ""
    appends: bool = False
    keeps_paths: bool = False
    manifest: str = ""
    log_level: str = ""
    container: ContainerSpec | None = None
    own_folders: tuple[str, ...] = ()
    primary_group: str = ""
    checkpoint_destination: CheckpointDestination | None = None
    checkpoint_number: int = 0
    checkpoint_used: int = 0
    checkpoints_before: int = 0
    urls: OutputUrls = attrs.field(factory=lambda: OutputUrls(ClassAd()), eq=False)
    plugins: Mapping[str, str] = attrs.field(factory=dict)
    tool: ToolSpec | None = None

    def niceness(self, renice: Expr | None, job: ClassAd, slot: ClassAd) -> int:
        """How nice the run is; a JOB_RENICE_INCREMENT that is no number for this job counts as 10, as in the manual."""
        value = renice.evaluate(job, slot) if renice is not None else 0
        more = whole(value, 10) if not isinstance(value, bool) else 10
        return max(0, min(19, self.nice + more))

    def signal_for(self, how: str) -> int:
        """The soft-kill signal for a StopRun of this kind."""
        return {"remove": self.remove_signal, "hold": self.hold_signal}.get(how, self.kill_signal)


def signal_number(value: object, default: int) -> int:
    """A signal from its name or number."""
    if isinstance(value, int) and 0 < value < 65:
        return int(value)
    if isinstance(value, str):
        word = value.strip().upper()
        number = numeral(word)
        if number is not None:
            return number if 0 < number < 65 else default
        found = getattr(signal, word if word.startswith("SIG") else f"SIG{word}", None)
        if isinstance(found, signal.Signals):
            return int(found)
    return default


def _words(job: ClassAd) -> tuple[str, ...]:
    raw = job.evaluate("Arguments")
    if isinstance(raw, str):
        try:
            return tuple(split_raw(raw))
        except UnbalancedQuote as error:
            raise BadJob(f"the job's Arguments cannot be read: {error}") from None
    old = job.evaluate("Args")
    return tuple(old.split()) if isinstance(old, str) else ()


def _variables(job: ClassAd) -> dict[str, str]:
    raw = job.evaluate("Environment")
    if isinstance(raw, str):
        try:
            entries = split_raw(raw)
        except UnbalancedQuote as error:
            raise BadJob(f"the job's Environment cannot be read: {error}") from None
    else:
        old = job.evaluate("Env")
        entries = [entry for entry in old.split(";") if entry] if isinstance(old, str) else []
    found = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        if not equals or not name or "\0" in entry:
            raise BadJob(f"the job's environment has the entry {entry[:80]!r}, which is not NAME=VALUE")
        found[name] = value
    return found


def _list(job: ClassAd, name: str) -> tuple[str, ...] | None:
    value = job.evaluate(name)
    if not isinstance(value, str):
        return None
    return tuple(word for part in value.split(",") if (word := part.strip()))


def _path(job: ClassAd, name: str, default: str = NULL) -> str:
    value = job.evaluate(name)
    return value if isinstance(value, str) and value else default


def job_of_claim(job: ClassAd, owner: str) -> ClassAd:
    """A job's ad that names the owner of the claim it runs on.

    Args:
        job: what the shadow sent.
        owner: for whom the schedd asked for the claim (``alice@dom``; ``alice@dom%pool``, where it is of another pool).

    Raises:
        BadJob: the ad says that the job is another's.
    """
    name = owner.rpartition("@")[0]
    for attribute, own in (("Owner", name), ("User", parted(owner)[0])):
        said = job.evaluate(attribute)
        if isinstance(said, str) and said != own:
            raise BadJob(f"the claim is for jobs of {owner}; the {attribute} of this one is {said[:200]!r}")
    job["Owner"], job["User"] = name, owner
    foreign_job(job, owner)
    return job


def read_spec(job: ClassAd) -> RunSpec:
    """The job as plain values.

    Raises:
        BadJob: it has no program, or arguments or environment that cannot be read.
    """
    command = _path(job, "Cmd", "")
    if not command:
        raise BadJob("the job has no Cmd")
    standard = job.get_int("JobUniverse", Universe.VANILLA) == Universe.STANDARD
    transfers = not standard and job.get_str("ShouldTransferFiles", "YES").upper() != "NO"
    iwd = job.get_str("Iwd", "/")
    stdin, stdout, stderr = _path(job, "In"), _path(job, "Out"), _path(job, "Err")
    if transfers:
        moved = is_true(job.evaluate("TransferExecutable")) or "TransferExecutable" not in job
        program = EXECUTABLE if moved else command
        joined = stderr != NULL and stderr == stdout
        stdin = stdin if stdin == NULL or not _moves(job, "TransferIn") else STDIN
        if _moves(job, "TransferOut"):
            stdout = stdout if stdout == NULL else STDOUT
        if _moves(job, "TransferErr"):
            stderr = stderr if stderr == NULL else STDOUT if joined else STDERR
    else:
        program = command if command.startswith("/") else posixpath.join(iwd, command)
    container, networking = _container(job, standard), job.get_bool("WantJobNetworking", True)
    if job.get_bool("WantIOProxy") and not (networking and (container is None or container.network)):
        raise BadJob("condor_chirp reaches this machine over its network, and the job is to have none: leave "
                     "want_io_proxy out, or let it have the network (want_job_networking, docker_network_type)")
    kill = CHECKPOINT_SIGNAL if standard else signal_number(job.evaluate("KillSig"), signal.SIGTERM)
    checkpoint = job.evaluate("SuccessCheckpointExitCode")
    core, stack = job.evaluate("CoreSize"), job.evaluate("StackSize")
    owns = job.evaluate("RunAsOwner")
    user = job.get_str("User") or job.get_str("Owner", "nobody")
    return RunSpec(
        job_id=f"{job.get_int('ClusterId')}.{job.get_int('ProcId')}", transfers=transfers, program=program,
        arguments=_words(job), environment=_variables(job), iwd=iwd, stdin=stdin, stdout=stdout, stderr=stderr,
        stream_stdout=job.get_bool("StreamOut"), stream_stderr=job.get_bool("StreamErr"),
        owner=job.get_str("Owner", "nobody"), domain=user.partition("@")[2],
        run_as_owner=owns if isinstance(owns, bool) else None, kill_signal=kill,
        remove_signal=signal_number(job.evaluate("RemoveKillSig"), signal.SIGKILL if standard else kill),
        hold_signal=kill if standard else signal_number(job.evaluate("HoldKillSig"), kill),
        vacate_s=_vacate_s(job), graceful_removal=is_true(job.evaluate("WantGracefulRemoval")),
        outputs=_list(job, "TransferOutput"),
        when=job.get_str("WhenToTransferOutput", "ON_EXIT").upper(),
        success_code=job.get_int("JobSuccessExitCode", 0),
        checkpoint_code=checkpoint if isinstance(checkpoint, int) and not isinstance(checkpoint, bool) else None,
        checkpoint_files=_list(job, "TransferCheckpoint") or (),
        checkpoint_destination=destination_of(job) if transfers else None,
        checkpoint_number=max(job.get_int(NUMBER), 0), checkpoint_used=job.get_int(USED),
        checkpoints_before=max(job.get_int("NumCkpts"), 0),
        core_kib=core // 1024 if isinstance(core, int) and core >= 0 else None,
        nice=19 if job.get_bool("NiceUser") else 0,
        checkpoint_signal=signal_number(job.evaluate("CheckpointSig"), signal.SIGTERM)
        if job.get_bool("WantCheckpointSignal") else None, kept=_list(job, "KeptFiles") or (), standard=standard,
        networking=networking, begins_s=_begins_s(job),
        window_s=job.get_float("DeferralWindow"),
        stack_bytes=stack if isinstance(stack, int) and not isinstance(stack, bool) and stack > 0 else None,
        remote_directory=_path(job, "RemoteIwd", ""), appends=appends_output(job),
        keeps_paths=job.get_bool("PreserveRelativePaths"), manifest=_manifest(job) if transfers else "",
        log_level=log_level(job) if transfers else "",
        container=container,
        own_folders=() if standard else _own_folders(job),
        primary_group="" if standard else job.get_str("JobPrimaryUnixGroup"),
        urls=OutputUrls(job if transfers else ClassAd()),
        plugins=_plugins(job) if transfers else {}, tool=_tool(job, standard, transfers))


def _tool(job: ClassAd, standard: bool, transfers: bool) -> ToolSpec | None:
    try:
        found = tool_of(job, transfers=transfers)
    except BadTool as error:
        raise BadJob(str(error)) from None
    if found is not None and standard:
        raise BadJob("a job of the standard universe is at its home, and no tool daemon is there beside it")
    return found


def _plugins(job: ClassAd) -> dict[str, str]:
    try:
        return job_plugins(job.get_str("TransferPlugins"))
    except BadPlugin as error:
        raise BadJob(f"the job's TransferPlugins cannot be used: {error}") from None


def _container(job: ClassAd, standard: bool) -> ContainerSpec | None:
    try:
        found = container_of(job)
    except BadContainer as error:
        raise BadJob(str(error)) from None
    if found is not None and standard:
        raise BadJob("a job of the standard universe has its root directory at home, and no image")
    return found


def appends_output(job: ClassAd) -> bool:
    """Whether the output of an evicted run is kept for the next, which goes on writing it."""
    kept = job.get_str("WhenToTransferOutput").upper() == "ON_EXIT_OR_EVICT"
    return "SuccessCheckpointExitCode" in job or (kept and not job.get_bool("DontAppend", True))


def _begins_s(job: ClassAd) -> float | None:
    value = job.evaluate("DeferralTime")
    if value is UNDEFINED:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e11:
        raise BadJob(f"DeferralTime = {job.expression('DeferralTime')} is no time (seconds since 1970)")
    return float(value)


def _manifest(job: ClassAd) -> str:
    folder = _path(job, "ManifestDir", "")
    if not folder:
        name = f"{job.get_int('ClusterId')}_{job.get_int('ProcId')}_manifest"
        return name if job.get_bool("ManifestDesired") else ""
    if folder in (".", "..") or "/" in folder or "\0" in folder:
        raise BadJob(f"ManifestDir names {folder[:200]!r}, which is no name for a folder among the job's files; say "
                     "manifest_dir = NAME")
    return folder


def _own_folders(job: ClassAd) -> tuple[str, ...]:
    found = _list(job, "JobMountUnderScratch") or ()
    for folder in found:
        if not folder.startswith("/") or posixpath.normpath(folder) in ("/", "//") or "\0" in folder:
            raise BadJob(f"JobMountUnderScratch names {folder[:200]!r}, which is no absolute path of a folder; name "
                         "folders of the machine as /scratch, separated by commas")
    if found and container_of(job) is not None:
        raise BadJob("JobMountUnderScratch concerns folders of the machine, and a job in an image sees none of them; "
                     "leave mount_under_scratch out")
    if len(found) > MOST_OWN_FOLDERS:
        raise BadJob(f"JobMountUnderScratch names {len(found)} folders; {MOST_OWN_FOLDERS} are the most")
    return found


def _moves(job: ClassAd, name: str) -> bool:
    return name not in job or is_true(job.evaluate(name))


def _vacate_s(job: ClassAd) -> float:
    for name in ("JobMaxVacateTime", "KillSigTimeout"):
        value = job.evaluate(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
            return float(value)
    return DEFAULT_VACATE_S


def _renamed(ids: str, rule: str) -> str:
    """Device names by a rule such as ``/CUDA//``; as they are without one, or with one that cannot be understood."""
    if len(rule) < 3 or rule.count(rule[0]) != 3:
        return ids
    _, pattern, replacement, _ = rule.split(rule[0])
    try:
        return ",".join(re.sub(pattern, replacement, each, count=1) for each in ids.split(","))
    except re.error:
        return ids


def environment_of(spec: RunSpec, settings: RunSettings, *, scratch: str, slot_name: str, cpus: int,
                   assigned: tuple[tuple[str, str], ...], user: str, home: str,
                   devices: SlotDevices = SlotDevices()) -> dict[str, str]:  # noqa: B008 - it is frozen
    """All variables of the job's process.

    Args:
        spec, settings: what is to be run, and where.
        scratch: the sandbox.
        slot_name, cpus, assigned: the slot, its processors, its devices by resource; devices: what is known of those.
        user, home: of the account that runs it.
    """
    bare = slot_name.partition("@")[0]
    variables = dict(settings.environment)
    variables |= {
        "_CONDOR_SCRATCH_DIR": scratch, "_CONDOR_SLOT": bare, "_CONDOR_JOB_AD": f"{scratch}/.job.ad",
        "_CONDOR_MACHINE_AD": f"{scratch}/.machine.ad", "_CONDOR_JOB_IWD": scratch if spec.transfers else spec.iwd,
        "_CONDOR_JOB_PIDS": "", "BATCH_SYSTEM": "HTCondor", "TMPDIR": scratch, "TMP": scratch, "TEMP": scratch,
    }
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
                 "JULIA_NUM_THREADS", "GOMAXPROCS", "TF_NUM_THREADS", "CUBACORES", "PYTHON_CPU_COUNT"):
        variables[name] = str(cpus)
    for resource, ids in assigned:
        variables[f"_CONDOR_Assigned{resource}"] = ids
        for wanted in settings.device_variables.get(resource.lower(), ()):
            name, _, rule = wanted.partition("=")
            variables[name] = _renamed(ids, rule)
    for resource, value in settings.unassigned.items():
        if resource not in {name.lower() for name, _ in assigned}:
            variables |= {each.partition("=")[0]: value for each in settings.device_variables.get(resource, ())}
    variables = {name: value for name, value in variables.items() if name not in devices.not_theirs}
    variables |= devices.variables
    variables |= spec.environment
    variables.setdefault("USER", user)
    variables.setdefault("LOGNAME", user)
    variables.setdefault("HOME", home)
    variables.setdefault("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin")
    return variables
