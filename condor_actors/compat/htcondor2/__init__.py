"""HTCondor's ``htcondor2``, answered by this pool: the same names and signatures.

What differs, and what is refused and why, is listed in docs/python-api.md; a test holds every name and signature
against the real module.
"""

from __future__ import annotations

from condor_actors.compat import classad2 as classad
from condor_actors.compat.errors import HTCondorException
from condor_actors.compat.htcondor2.credd import CredCheck, Credd
from condor_actors.compat.htcondor2.daemons import (
    Collector,
    Negotiator,
    RemoteParam,
    SecurityContext,
    Startd,
    ping,
    send_alive,
    send_command,
    set_ready_state,
)
from condor_actors.compat.htcondor2.enums import (
    AdType,
    CommonFilesEventType,
    CompletionType,
    CredType,
    DaemonCommand,
    DaemonType,
    DrainType,
    HistorySrc,
    JobAction,
    JobEventType,
    LogLevel,
    QueryOpt,
    SubmitMethod,
    SubsystemType,
    TransactionFlag,
    VacateType,
)
from condor_actors.compat.htcondor2.events import JobEvent, JobEventLog
from condor_actors.compat.htcondor2.others import DAGMan, Placementd
from condor_actors.compat.htcondor2.program import (
    disable_debug,
    enable_debug,
    enable_log,
    load_a_config_usermap_file,
    log,
    param,
    platform,
    reload_config,
    reload_config_usermaps,
    set_subsystem,
    version,
)
from condor_actors.compat.htcondor2.schedd import Schedd
from condor_actors.compat.htcondor2.submit import Submit, SubmitResult
from condor_actors.messages.codes import FileTransferEventType, JobStatus

AdTypes = AdType
CredTypes = CredType
DaemonCommands = DaemonCommand
DaemonTypes = DaemonType
DrainTypes = DrainType
QueryOpts = QueryOpt
TransactionFlags = TransactionFlag

__all__ = [
    "AdType", "AdTypes", "Collector", "CommonFilesEventType", "CompletionType", "CredCheck", "CredType", "CredTypes",
    "Credd", "DAGMan", "DaemonCommand", "DaemonCommands", "DaemonType", "DaemonTypes", "DrainType", "DrainTypes",
    "FileTransferEventType", "HTCondorException", "HistorySrc", "JobAction", "JobEvent", "JobEventLog",
    "JobEventType", "JobStatus", "LogLevel", "Negotiator", "Placementd", "QueryOpt", "QueryOpts", "RemoteParam",
    "Schedd", "SecurityContext", "Startd", "Submit", "SubmitMethod", "SubmitResult", "SubsystemType",
    "TransactionFlag", "TransactionFlags", "VacateType", "classad", "disable_debug", "enable_debug", "enable_log",
    "load_a_config_usermap_file", "log", "param", "ping", "platform", "reload_config", "reload_config_usermaps",
    "send_alive", "send_command", "set_ready_state", "set_subsystem", "version",
]  # fmt: skip
