"""A job that a program of the site has fetched: what it prints is hostile, and here it becomes an ad that may be run.

Theory: such a job has no home.  There is no schedd that keeps it, no shadow that brings its files and takes them, no
user whose account it could have.  So an ad that asks for any of that is refused, and what names an account is replaced.
The job runs on its machine by paths of that machine: in its own folder (``Iwd``), or without one in a scratch
directory, which the hook at its end finds as the job has left it.

**Source**: HTCondor's manual, "Hooks that fetch work".
"""

from __future__ import annotations

import re

from condor_actors.classads import ClassAd, ClassAdSyntaxError, Expr, parse_long_expression
from condor_actors.cores.rights import FETCHED
from condor_actors.messages.codes import Universe

__all__ = ["BadFetchedJob", "MOST_BYTES", "owner_of", "read_fetched", "run_of", "texts_of"]

RUN = "FetchedRun"
"""The attribute of such a job that names its run, by which a startd that is started again finds it."""
MOST_BYTES = 64 * 1024
MOST_ATTRIBUTES = 500
SEPARATOR = b"-----\n"
GREATEST_ID = 2**31 - 1
_LINE = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,127})\s*=\s*(\S.*)")
_KEYWORD = re.compile(r"[A-Z0-9_]{1,64}")

NEEDS_A_HOME = (
    "TransferInput", "TransferCheckpoint", "CheckpointDestination", "OutputDestination", "TransferPlugins",
    "WantIOProxy", "StreamOut", "StreamErr", "OAuthServicesNeeded", "SuccessCheckpointExitCode", "WantCheckpointSignal",
    "ManifestDesired", "ContainerImage", "DockerImage", "WantDocker", "WantContainer", "MinHosts", "DeferralTime",
    "CronMinute", "CronHour", "CronDayOfMonth", "CronMonth", "CronDayOfWeek", "StarterDebug", "JobStarterLog",
)  # fmt: skip
"""What a schedd or a shadow does for a job."""
OWN_ACCOUNT = ("Owner", "User", "NTDomain", "AcctGroup", "AcctGroupUser", "AccountingGroup", "JobPrimaryUnixGroup",
               "RemoteUser", "X509UserProxy")  # fmt: skip
"""What says whose a job is; a fetched one is nobody's."""


class BadFetchedJob(ValueError):
    """What was printed is no job that can be run here; its text says why."""


def owner_of(keyword: str, domain: str) -> str:
    """The owner of the claims for what the hooks of a keyword fetch."""
    return f"{FETCHED}{keyword}@{domain or 'localhost'}"


def read_fetched(printed: bytes, keyword: str, serial: int) -> ClassAd | None:
    """The job that a program has printed.

    Args:
        printed: all of it, a line for each attribute; nothing but blanks: there is no work.
        keyword: of the hooks, in capitals.
        serial: makes the run's name unlike that of any other.

    Returns:
        its ad as it may be run; None: there is none.

    Raises:
        BadFetchedJob: it is none, or one that cannot be run here.
    """
    if not printed.strip():
        return None
    if len(printed) > MOST_BYTES:
        raise BadFetchedJob(f"it prints more than {MOST_BYTES} bytes")
    job = ClassAd.from_pairs(list(_attributes(printed).values()))
    if not job.get_str("Cmd"):
        raise BadFetchedJob("the job has no Cmd")
    _refuse(job)
    for name in OWN_ACCOUNT:
        job.pop(name, None)
    cluster, proc = _number(job, "ClusterId", 1), _number(job, "ProcId", 0)
    own_folder = job.get_str("Iwd")
    if not own_folder.startswith("/") and (own_folder or not job.get_str("Cmd").startswith("/")):
        raise BadFetchedJob("Iwd, and without one Cmd, has to be an absolute path of this machine")
    job.update({
        "ClusterId": cluster, "ProcId": proc, "JobUniverse": int(Universe.VANILLA), "HookKeyword": keyword,
        "RunAsOwner": False, "TransferExecutable": False, "ShouldTransferFiles": "NO" if own_folder else "YES",
        "TransferIn": False, RUN: f"{cluster}.{proc}#{serial}@fetched-work"})
    if "Requirements" not in job:
        job["Requirements"] = True
    if not own_folder:
        job.update({"Iwd": "/", "TransferOutput": "", "TransferOut": True, "TransferErr": True})
        for name in ("Out", "Err"):
            job.setdefault(name, name.lower())  # which are _condor_stdout and _condor_stderr in its scratch directory
    return job


def _attributes(printed: bytes) -> dict[str, tuple[str, Expr]]:
    try:
        text = printed.decode()
    except UnicodeDecodeError as error:
        raise BadFetchedJob(f"it prints what is no UTF-8, at byte {error.start}") from None
    found: dict[str, tuple[str, Expr]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise BadFetchedJob(f"line {number} is no NAME = VALUE: {line[:80]!r}")
        try:
            found[match[1].lower()] = (match[1], parse_long_expression(match[2]))
        except ClassAdSyntaxError as error:
            raise BadFetchedJob(f"line {number}: {error}") from None
        if len(found) > MOST_ATTRIBUTES:
            raise BadFetchedJob(f"it has more than {MOST_ATTRIBUTES} attributes")
    return found


def _refuse(job: ClassAd) -> None:
    """What a job cannot have without a schedd."""
    universe = job.get_int("JobUniverse", int(Universe.VANILLA))
    if universe != Universe.VANILLA:
        raise BadFetchedJob(f"JobUniverse is {universe}: fetched jobs are of the vanilla universe, "
                            f"{int(Universe.VANILLA)}")
    for name in NEEDS_A_HOME:
        if name in job and job.evaluate(name) not in (False, "", 0):
            raise BadFetchedJob(f"{name}: that needs a schedd, and a fetched job has none")
    if job.get_str("TransferOutput"):
        raise BadFetchedJob("TransferOutput: a fetched job has no home; let its hook JOB_EXIT take what it leaves")


def _number(job: ClassAd, name: str, default: int) -> int:
    value = job.get_int(name, default)
    if not 0 <= value <= GREATEST_ID:
        raise BadFetchedJob(f"{name} is {value}, and may be 0 to {GREATEST_ID}")
    return value


def run_of(job: ClassAd) -> str:
    """The name of a fetched job's run."""
    return job.get_str(RUN)


def texts_of(job: bytes, slot: bytes) -> bytes:
    """What a hook that is told about a job reads: the job's ad, a line of dashes, the slot's ad."""
    return b"".join((job, b"" if job.endswith(b"\n") else b"\n", SEPARATOR, slot))
