"""The statements that each template of ``use CATEGORY : NAME`` stands for.

The names, their arguments and what they set are those that HTCondor's administrators know, and two more policies: the
eviction rules of 1988 and of 1989. Source: HTCondor manual, "Configuration Templates"; Litzkow, Livny, Mutka, "Condor -
A Hunter of Idle Workstations" (1988), section 2; Condor Technical Summary (1989), section 9.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Final

__all__ = ["TEMPLATES"]

ROLE: Final = {
    "Personal": """
CONDOR_HOST = 127.0.0.1
COLLECTOR_HOST = $(CONDOR_HOST):0
DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR STARTD SCHEDD
RunBenchmarks = 0
""",
    "Submit": "DAEMON_LIST = $(DAEMON_LIST) SCHEDD",
    "Execute": "DAEMON_LIST = $(DAEMON_LIST) STARTD",
    "CentralManager": "DAEMON_LIST = $(DAEMON_LIST) COLLECTOR NEGOTIATOR",
    "get_htcondor_central_manager": "use SECURITY : Recommended\nuse ROLE : CentralManager",
    "get_htcondor_submit": "use SECURITY : Recommended\nuse ROLE : Submit",
    "get_htcondor_execute": "use SECURITY : Recommended\nuse ROLE : Execute",
}

FRAGMENTS: Final = """
PolicyExprFragments = 1
KeyboardBusy = (KeyboardIdle < $(MINUTE))
ConsoleBusy = (ConsoleIdle  < $(MINUTE))
KeyboardNotBusy = ($(KeyboardBusy) == False)
JustCPU = ($(CPUBusy) && ($(KeyboardBusy) == False))
MachineBusy = ($(CPUBusy) || $(KeyboardBusy))
NonCondorLoadAvg = (LoadAvg - CondorLoadAvg)
CpuIdle = ($(NonCondorLoadAvg) <= $(BackgroundLoad))
CpuBusy = ($(NonCondorLoadAvg) >= $(HighLoad))
ActivationTimer = ifThenElse(JobStart =!= UNDEFINED, (time() - JobStart), 0)
LastCkpt = (time() - LastPeriodicCheckpoint)
"""

NEVER_SUSPEND: Final = """
WANT_SUSPEND = False
WANT_VACATE = True
SUSPEND = False
CONTINUE = True
KILL = False
"""

NO_PROMISES: Final = """
MaxJobRetirementTime = 0
CLAIM_WORKLIFE =
SLOTS_CONNECTED_TO_KEYBOARD = 1000000
SLOTS_CONNECTED_TO_CONSOLE = 1000000
IS_OWNER = (START =?= False)
"""

LATCH: Final = "STARTD_LATCH_EXPRS = $(STARTD_LATCH_EXPRS) CpuBusy\n"


def _exceeded(name: str, expression: str, subcode: int, reason: str, before: str = "") -> dict[str, str]:
    """The pair of policies that preempt or hold a job that takes more than its slot has."""
    return {
        f"Preempt_If_{name}_Exceeded": f"{before}{_upper(name)}_EXCEEDED = {expression}\n"
        f"use POLICY : PREEMPT_IF({_upper(name)}_EXCEEDED)",
        f"Hold_If_{name}_Exceeded": f"{before}{_upper(name)}_EXCEEDED = {expression}\n"
        f"HOLD_REASON_{_upper(name)}_EXCEEDED = {reason}\n"
        f"use POLICY : WANT_HOLD_IF({_upper(name)}_EXCEEDED, $(HOLD_SUBCODE_{_upper(name)}_EXCEEDED:{subcode}),"
        f" $(HOLD_REASON_{_upper(name)}_EXCEEDED))",
    }


def _upper(name: str) -> str:
    return name.upper().removesuffix("S")


REGISTERED: Final = ('CheckpointDestination is undefined || '
                     'userMap("checkpoint_destination_map", CheckpointDestination) isnt undefined')
NOT_REGISTERED: Final = (
    '"no line of CHECKPOINT_DESTINATION_MAPFILE is for checkpoint_destination = ", CheckpointDestination, '
    '": nobody could remove the checkpoints there; its lines may end with a slash"')
POLICY: Final = {
    "OnlyRegisteredCheckpointDestinations": f"""
SCHEDD_CLASSAD_USER_MAP_NAMES = $(SCHEDD_CLASSAD_USER_MAP_NAMES) checkpoint_destination_map
CLASSAD_USER_MAPFILE_checkpoint_destination_map = $(CHECKPOINT_DESTINATION_MAPFILE)
CLASSAD_USER_MAP_PREFIX_checkpoint_destination_map = True
SUBMIT_REQUIREMENT_NAMES = $(SUBMIT_REQUIREMENT_NAMES) RegisteredCheckpointDestination
SUBMIT_REQUIREMENT_RegisteredCheckpointDestination = {REGISTERED}
SUBMIT_REQUIREMENT_RegisteredCheckpointDestination_REASON = strcat({NOT_REGISTERED})
""",
    "Always_Run_Jobs": """
WANT_SUSPEND = False
WANT_VACATE = True
SUSPEND = False
CONTINUE = True
PREEMPT = False
START = True
KILL = False
PREEMPTION_REQUIREMENTS = False
NEGOTIATOR_CONSIDER_PREEMPTION = False
MaxJobRetirementTime = 2147483647
CLAIM_WORKLIFE = 1200
""",
    "Dedicated": """
use POLICY : Always_Run_Jobs
IS_OWNER = False
SLOTS_CONNECTED_TO_KEYBOARD = 0
SLOTS_CONNECTED_TO_CONSOLE = 0
""",
    "Desktop": f"""
if ! defined PolicyExprFragments
  use FEATURE : POLICY_EXPR_FRAGMENTS
endif
{LATCH}
CpuBusyTimer = IfThenElse(CpuBusyValue is 1, time() - CpuBusyTime, 0)
WANT_SUSPEND = ($(SmallJob) || $(KeyboardNotBusy) || $(IsVanilla) ) && ( $(SUSPEND))
WANT_VACATE = $(ActivationTimer) > 600 || $(IsVanilla)
SUSPEND = ($(KeyboardBusy) || ( ($(CpuBusyTimer) > 120) && $(ActivationTimer) > 90))
CONTINUE = ($(CPUIdle) && ($(ActivityTimer) > 10) && (KeyboardIdle > $(ContinueIdleTime)))
PREEMPT = (((Activity == "Suspended") && ($(ActivityTimer) > $(MaxSuspendTime)))\
 || (SUSPEND && (WANT_SUSPEND == False)))
START = ((KeyboardIdle > $(StartIdleTime)) && ( $(CPUIdle) || (State != "Unclaimed" && State != "Owner")) )
KILL = False
{NO_PROMISES}""",
    "UWCS_Desktop": """
use FEATURE : UWCS_Desktop_Policy_Values
WANT_SUSPEND = $(UWCS_WANT_SUSPEND)
WANT_VACATE = $(UWCS_WANT_VACATE)
SUSPEND = $(UWCS_SUSPEND)
CONTINUE = $(UWCS_CONTINUE)
PREEMPT = $(UWCS_PREEMPT)
START = $(UWCS_START)
KILL = $(UWCS_KILL)
PERIODIC_CHECKPOINT = $(UWCS_PERIODIC_CHECKPOINT)
PREEMPTION_REQUIREMENTS = $(UWCS_PREEMPTION_REQUIREMENTS)
PREEMPTION_RANK = $(UWCS_PREEMPTION_RANK)
NEGOTIATOR_PRE_JOB_RANK = $(UWCS_NEGOTIATOR_PRE_JOB_RANK)
NEGOTIATOR_POST_JOB_RANK = $(UWCS_NEGOTIATOR_POST_JOB_RANK)
MaxJobRetirementTime = $(UWCS_MaxJobRetirementTime)
CLAIM_WORKLIFE = $(UWCS_CLAIM_WORKLIFE)
SLOTS_CONNECTED_TO_KEYBOARD = 1024*1024
IS_OWNER = (START =?= False)
""",
    "UWCS": "use POLICY : UWCS_Desktop",
    "Desktop_Hours": f"""
use FEATURE : POLICY_HOURS_TO_START($(1+))
NonCondorLoadAvg = (LoadAvg - CondorLoadAvg)
CpuBusy = ($(NonCondorLoadAvg) >= $(HighLoad))
{LATCH}
CpuBusyTimer = (CpuBusyValue * (time() - CpuBusyTime))
PREEMPT = $(NoJobsHours)
START = $(RunJobsHours)
{NEVER_SUSPEND}{NO_PROMISES}""",
    "Desktop_Idle": f"""
if $(1?)
  use FEATURE : POLICY_HOURS_TO_START($(1+))
endif
NonCondorLoadAvg = (LoadAvg - CondorLoadAvg)
CpuBusy = ($(NonCondorLoadAvg) >= $(HighLoad))
CpuIdle = ($(NonCondorLoadAvg) <= $(BackgroundLoad))
{LATCH}
CpuBusyTimer = (CpuBusyValue * (time() - CpuBusyTime))
PreemptKeyboardIdleTime = 60
PreemptCpuBusyTime = 120
PREEMPT = (KeyboardIdle < $(PreemptKeyboardIdleTime)) || ($(CpuBusyTimer) > $(PreemptCpuBusyTime))
if defined NoJobsHours
  PREEMPT = ($(PREEMPT)) && ($(NoJobsHours))
endif
START = (KeyboardIdle > $(StartIdleTime)) && $(CPUIdle)
if defined RunJobsHours
  START = ($(START)) || ($(RunJobsHours))
endif
{NEVER_SUSPEND}{NO_PROMISES}""",
    # 1988: the returning owner stops the job at once; after five minutes it is checkpointed and moved.
    "1988": """
if ! defined PolicyExprFragments
  use FEATURE : POLICY_EXPR_FRAGMENTS
endif
START = (KeyboardIdle > $(StartIdleTime)) && $(CPUIdle)
WANT_SUSPEND = True
SUSPEND = $(KeyboardBusy) || $(CPUBusy)
CONTINUE = $(CPUIdle) && (KeyboardIdle > $(ContinueIdleTime))
PREEMPT = (Activity == "Suspended") && ($(ActivityTimer) > 5 * $(MINUTE))
WANT_VACATE = True
KILL = (Activity == "Vacating") && ($(ActivityTimer) > $(MaxVacateTime))
PERIODIC_CHECKPOINT = False
MaxJobRetirementTime = 0
IS_OWNER = (START =?= False)
""",
    # 1989: checkpoints on a timer; while the owner is there nothing is written, the last checkpoint goes home.
    "1989": """
if ! defined PolicyExprFragments
  use FEATURE : POLICY_EXPR_FRAGMENTS
endif
START = (KeyboardIdle > $(StartIdleTime)) && $(CPUIdle)
WANT_SUSPEND = True
SUSPEND = $(KeyboardBusy) || $(CPUBusy)
CONTINUE = $(CPUIdle) && (KeyboardIdle > $(ContinueIdleTime))
PREEMPT = (Activity == "Suspended") && ($(ActivityTimer) > $(MaxSuspendTime))
WANT_VACATE = False
KILL = True
PERIODIC_CHECKPOINT = $(LastCkpt) > 3 * $(HOUR)
MaxJobRetirementTime = 0
IS_OWNER = (START =?= False)
""",
    "Limit_Job_Runtimes": """
MAX_JOB_RUNTIME = $(1:24*3600)
MaxJobRetirementTime = $(MAX_JOB_RUNTIME)+120
PREEMPT = (Activity == "Busy") && ((time() - EnteredCurrentActivity) > $(MAX_JOB_RUNTIME))
""",
    "Preempt_if_Runtime_Exceeds": """
MAX_JOB_RUNTIME = $(1:24*3600)
PREEMPT_RUNTIME_EXCEEDS = (JobState == "Running") && ((time() - JobCurrentStartDate) > $(MAX_JOB_RUNTIME))
use POLICY : PREEMPT_IF(PREEMPT_RUNTIME_EXCEEDS)
""",
    "Hold_if_Runtime_Exceeds": """
MAX_JOB_RUNTIME = $(1:24*3600)
HOLD_REASON_RUNTIME_EXCEEDS = runtime exceeded maximum ($(MAX_JOB_RUNTIME) seconds)
HOLD_RUNTIME_EXCEEDS = (JobState == "Running") && ((time() - JobCurrentStartDate) > $(MAX_JOB_RUNTIME))
use POLICY : WANT_HOLD_IF(HOLD_RUNTIME_EXCEEDS, $(HOLD_SUBCODE_RUNTIME_EXCEEDS:103), $(HOLD_REASON_RUNTIME_EXCEEDS))
""",
    "Startd_Publish_CpusUsage": """
CpusUsage = ifthenelse(TotalLoadAvg > 0.0 && Activity!="Idle",\
 CondorLoadAvg/TotalLoadAvg*MIN({TotalLoadAvg, $(DETECTED_CORES)}), 0)
STARTD_ATTRS = $(STARTD_ATTRS) CpusUsage
""",
    **_exceeded("Cpus", "(CpusUsage > Cpus + 0.8)", 101, "CPU usage exceeded request_cpus",
                "use POLICY : Startd_Publish_CpusUsage\n"),
    **_exceeded("Disk", "(JobUniverse != 13 && DiskUsage =!= UNDEFINED && DiskUsage > Disk)", 104,
                "disk usage exceeded allocated disk"),
    **_exceeded("Memory", "(JobUniverse != 13 && MemoryUsage =!= UNDEFINED && MemoryUsage > Memory)", 102,
                "memory usage exceeded request_memory"),
    "Preempt_If": """
if ! $(1?)
  error : use POLICY : PREEMPT_IF needs the name of a macro that holds the expression
endif
if defined PREEMPT
  PREEMPT = $($(1)) || $(PREEMPT)
else
  PREEMPT = $($(1))
endif
MAXJOBRETIREMENTTIME = ifthenelse($($(1)),-1,$(MAXJOBRETIREMENTTIME:0))
if defined WANT_SUSPEND
  WANT_SUSPEND = $($(1)) =!= true && $(WANT_SUSPEND)
else
  WANT_SUSPEND = $($(1)) =!= true
endif
""",
    "Want_Hold_If": """
use POLICY : PREEMPT_IF($(1))
if ! $(3?)
  error : use POLICY : WANT_HOLD_IF needs three arguments: the name of a macro, a subcode, a reason
endif
if defined WANT_HOLD
  WANT_HOLD = (JobUniverse != 1 && $($(1))) || $(WANT_HOLD)
else
  WANT_HOLD = (JobUniverse != 1 && $($(1)))
endif
WANT_HOLD_SUBCODE = ifThenElse($($(1)), $(2) , $(WANT_HOLD_SUBCODE:UNDEFINED))
WANT_HOLD_REASON = ifThenElse($($(1)), "$(3+)", $(WANT_HOLD_REASON:UNDEFINED))
""",
}

FEATURE: Final = {
    "Policy_Expr_Fragments": FRAGMENTS,
    "Policy_Hours_To_Start": """
WorkdayBeginHour = $(1:8)
WorkdayEndHour = $(2:12+5)
WorkdayBeginMinuteStartJobs = ($(WorkdayBeginHour))*60 - 29.5
WorkdayBeginMinuteStopJobs = ($(WorkdayBeginHour))*60 - 9.5
WorkdayEndMinute = ($(WorkdayEndHour))*60 + 0.5
RunJobsHours = ClockMin < $INT(WorkdayBeginMinuteStartJobs) || ClockMin > $INT(WorkdayEndMinute)
NoJobsHours = ClockMin > $INT(WorkdayBeginMinuteStopJobs) && ClockMin < $INT(WorkdayEndMinute)
if $(3?)
  WorkweekFirstDay = $(3:1)
  WorkweekLastDay = $(4:5)
  IsWeekend = ClockDay < $INT(WorkweekFirstDay) || ClockDay > $INT(WorkWeekLastDay)
  IsWorkday = ClockDay >= $INT(WorkweekFirstDay) && ClockDay <= $INT(WorkWeekLastDay)
  RunJobsHours = $(IsWeekend) || $(RunJobsHours)
  NoJobsHours = $(IsWorkday) && $(NoJobsHours)
endif
RunJobsHours = ($(RunJobsHours))
NoJobsHours = ($(NoJobsHours))
""",
    "UWCS_Desktop_Policy_Values": f"""
if ! defined PolicyExprFragments
  use FEATURE : POLICY_EXPR_FRAGMENTS
endif
{LATCH}
CpuBusyTimer = IfThenElse(CpuBusyValue is 1, time() - CpuBusyTime, 0)
UWCS_WANT_SUSPEND = ( $(SmallJob) || $(KeyboardNotBusy) || $(IsVanilla) ) && ( $(SUSPEND) )
UWCS_WANT_VACATE = ( $(ActivationTimer) > 10 * $(MINUTE) || $(IsVanilla) )
UWCS_START = ( (KeyboardIdle > $(StartIdleTime)) && ( $(CPUIdle) || (State != "Unclaimed" && State != "Owner")) )
UWCS_SUSPEND = ( $(KeyboardBusy) || ( ($(CpuBusyTimer) > 2 * $(MINUTE)) && $(ActivationTimer) > 90 ) )
UWCS_CONTINUE = ( $(CPUIdle) && ($(ActivityTimer) > 10) && (KeyboardIdle > $(ContinueIdleTime)) )
UWCS_PREEMPT = ( ((Activity == "Suspended") && ($(ActivityTimer) > $(MaxSuspendTime)))\
 || (SUSPEND && (WANT_SUSPEND == False)) )
UWCS_MaxJobRetirementTime = 0
UWCS_KILL = false
UWCS_PERIODIC_CHECKPOINT = $(LastCkpt) > (3 * $(HOUR) + $RANDOM_INTEGER(-30,30,1) * $(MINUTE) )
UWCS_NEGOTIATOR_PRE_JOB_RANK = (10000000 * My.Rank) + (1000000 * (RemoteOwner =?= UNDEFINED))\
 - (100000 * Cpus) - Memory
UWCS_NEGOTIATOR_POST_JOB_RANK = (RemoteOwner =?= UNDEFINED)\
 * (ifthenElse(isUndefined(KFlops), 1000, Kflops) - SlotID - 1.0e10*(Offline=?=True))
UWCS_PREEMPTION_REQUIREMENTS = ((SubmitterGroup =?= RemoteGroup) && ($(StateTimer) > (1 * $(HOUR)))\
 && (RemoteUserPrio > TARGET.SubmitterUserPrio * 1.2)) || (MY.NiceUser == True)
UWCS_PREEMPTION_RANK = (RemoteUserPrio * 1000000) - ifThenElse(isUndefined(TotalJobRuntime), 0, TotalJobRuntime)
""",
    "TestingMode_Policy_Values": """
TESTINGMODE_START = True
TESTINGMODE_WANT_SUSPEND = False
TESTINGMODE_SUSPEND = False
TESTINGMODE_CONTINUE = True
TESTINGMODE_PREEMPT = False
TESTINGMODE_WANT_VACATE = True
TESTINGMODE_KILL = False
TESTINGMODE_CLAIM_WORKLIFE = 1200
TESTINGMODE_PERIODIC_CHECKPOINT = False
TESTINGMODE_PREEMPTION_REQUIREMENTS = False
TESTINGMODE_PREEMPTION_RANK = 0
""",
    # Machines that will be left alone longest come first (1988, section 5.1).
    "Availability_Rank": """
NEGOTIATOR_POST_JOB_RANK = (RemoteOwner =?= UNDEFINED)\
 * ifThenElse(isUndefined(ExpectedAvailability), 0, ExpectedAvailability)
""",
    "PartitionableSlot": """
NUM_SLOTS_TYPE_$(1:1) = 1
SLOT_TYPE_$(1:1)_PARTITIONABLE = true
SLOT_TYPE_$(1:1) = $(2+:100%)
""",
    "GPUs": """
MACHINE_RESOURCE_INVENTORY_GPUs = $(BIN)/condor_gpu_discovery $(1) -properties $(GPU_DISCOVERY_EXTRA)
ENVIRONMENT_VALUE_FOR_UnAssignedGPUs = 10000
""",
    "StartdCronOneShot": """
STARTD_CRON_JOBLIST = $(STARTD_CRON_JOBLIST) $(1)
STARTD_CRON_$(1)_MODE = OneShot
STARTD_CRON_$(1)_EXECUTABLE = $(2)
STARTD_CRON_$(1)_ARGS = $(3+)
""",
    "StartdCronPeriodic": """
STARTD_CRON_JOBLIST = $(STARTD_CRON_JOBLIST) $(1)
STARTD_CRON_$(1)_MODE = Periodic
STARTD_CRON_$(1)_PERIOD = $(2)
STARTD_CRON_$(1)_EXECUTABLE = $(3)
STARTD_CRON_$(1)_ARGS = $(4+)
""",
    "StartdCronContinuous": """
STARTD_CRON_JOBLIST = $(STARTD_CRON_JOBLIST) $(1)
STARTD_CRON_$(1)_MODE = WaitForExit
STARTD_CRON_$(1)_PERIOD = 10
STARTD_CRON_$(1)_EXECUTABLE = $(2)
STARTD_CRON_$(1)_ARGS = $(3+)
""",
    "ScheddCronOneShot": """
SCHEDD_CRON_JOBLIST = $(SCHEDD_CRON_JOBLIST) $(1)
SCHEDD_CRON_$(1)_MODE = OneShot
SCHEDD_CRON_$(1)_EXECUTABLE = $(2)
SCHEDD_CRON_$(1)_ARGS = $(3+)
""",
    "ScheddCronPeriodic": """
SCHEDD_CRON_JOBLIST = $(SCHEDD_CRON_JOBLIST) $(1)
SCHEDD_CRON_$(1)_MODE = Periodic
SCHEDD_CRON_$(1)_PERIOD = $(2)
SCHEDD_CRON_$(1)_EXECUTABLE = $(3)
SCHEDD_CRON_$(1)_ARGS = $(4+)
""",
    "ScheddCronContinuous": """
SCHEDD_CRON_JOBLIST = $(SCHEDD_CRON_JOBLIST) $(1)
SCHEDD_CRON_$(1)_MODE = WaitForExit
SCHEDD_CRON_$(1)_PERIOD = 10
SCHEDD_CRON_$(1)_EXECUTABLE = $(2)
SCHEDD_CRON_$(1)_ARGS = $(3+)
""",
    "OneShotCronHook": """
$(1)_JOBLIST = $($(1)_JOBLIST) $(2)
$(1)_$(2)_MODE = OneShot
$(1)_$(2)_EXECUTABLE = $(3)
$(1)_$(2)_ARGS = $(4+)
""",
    "PeriodicCronHook": """
$(1)_JOBLIST = $($(1)_JOBLIST) $(2)
$(1)_$(2)_MODE = Periodic
$(1)_$(2)_PERIOD = $(3)
$(1)_$(2)_EXECUTABLE = $(4)
$(1)_$(2)_ARGS = $(5+)
""",
    "ContinuousCronHook": """
$(1)_JOBLIST = $($(1)_JOBLIST) $(2)
$(1)_$(2)_MODE = WaitForExit
$(1)_$(2)_PERIOD = 10
$(1)_$(2)_EXECUTABLE = $(3)
$(1)_$(2)_ARGS = $(4+)
""",
    "StaticSlots": """
NUM_SLOTS_TYPE_$(1:1) = $(2:$(NUM_CPUS))
SLOT_TYPE_$(1:1)_PARTITIONABLE = false
SLOT_TYPE_$(1:1) = $(3+)
""",
    "Remote_Runtime_Config": """
ENABLE_RUNTIME_CONFIG = True
ALLOW_CONFIG = $(ALLOW_ADMINISTRATOR)
if $(0#)
  SETTABLE_ATTRS_CONFIG = $(SETTABLE_ATTRS_CONFIG) $(0)
endif
""",
    "Remote_Config": """
ENABLE_PERSISTENT_CONFIG = True
PERSISTENT_CONFIG_DIR = $(SPOOL)
use FEATURE : REMOTE_RUNTIME_CONFIG($(0))
""",
    "ScheddUserMapFile": """
if ! $(2?)
  error : use FEATURE : ScheddUserMapFile needs two arguments: a map's name and its file
endif
SCHEDD_CLASSAD_USER_MAP_NAMES = $(SCHEDD_CLASSAD_USER_MAP_NAMES) $(1)
CLASSAD_USER_MAPFILE_$(1) = $(2)
""",
}

SECURITY: Final = {
    "Strong": "SEC_DEFAULT_ENCRYPTION = required\nuse SECURITY : With_Authentication",
    "With_Authentication": "SEC_DEFAULT_AUTHENTICATION = required\nSEC_DEFAULT_INTEGRITY = required",
    # What else HTCondor's recommendations set is how this system is anyway: see Pool_Only.
    "Recommended": "use SECURITY : Strong",
    "Recommended_v9_0": "use SECURITY : Strong",
    "Recommended_v24_0": "use SECURITY : Strong",
    "User_Based": "use SECURITY : Strong",
    "Pool_Only": """
# A holder of a certificate of the pool may ask and submit; what else a machine may do is in its certificate.
ALLOW_READ = *
ALLOW_WRITE = *
""",
}

TEMPLATES: Final[dict[str, dict[str, str]]] = {
    "ROLE": ROLE, "FEATURE": FEATURE, "POLICY": POLICY, "SECURITY": SECURITY,
}
