"""Parameters of the owner's policy: when jobs may start, and when they have to make way."""

from __future__ import annotations

from condor_actors.config.parameter import expression, real, text, words

STARTD = "STARTD"

ROWS = (
    expression(
        "START",
        "True",
        "When a job may start, over the slot's ad (MY) and the job's (TARGET).",
        read_by=STARTD,
    ),
    expression(
        "RANK",
        "0",
        "How much the owner of the machine likes a job: a running job makes way for one liked better.",
        read_by=STARTD,
    ),
    expression("SUSPEND", "False", "When a running job is suspended.", read_by=STARTD),
    expression("CONTINUE", "True", "When a suspended job goes on.", read_by=STARTD),
    expression("PREEMPT", "False", "When a job has to go.", read_by=STARTD),
    expression("VACATE", None, "An older name of PREEMPT.", read_by=STARTD),
    expression("KILL", "False", "When a job that is going is killed at once.", read_by=STARTD),
    expression("WANT_SUSPEND", "False", "Whether jobs are suspended before they have to go.", read_by=STARTD),
    expression("WANT_VACATE", "True", "Whether a job that has to go may save its work.", read_by=STARTD),
    expression("WANT_HOLD", None, "Whether a job that has to go is held.", read_by=STARTD),
    expression("WANT_HOLD_REASON", None, "The reason of such a hold.", read_by=STARTD),
    expression("WANT_HOLD_SUBCODE", None, "The subcode of such a hold.", read_by=STARTD),
    expression("IS_OWNER", "START =?= False", "When the machine is its owner's and offers nothing.", read_by=STARTD),
    expression(
        "MAXJOBRETIREMENTTIME",
        "0",
        "For how many seconds a job that has to go may run on first.",
        read_by=STARTD,
    ),
    expression(
        "PERIODIC_CHECKPOINT",
        "((time() - LastPeriodicCheckpoint) / 60.0) > (180.0 + $RANDOM_INTEGER(-30,30,1))",
        "When a running job writes a checkpoint.",
        read_by=STARTD,
    ),
    expression(
        "LOWER",
        "False",
        "When a running job, instead of being suspended, gets only idle processor and disk time.",
        read_by=STARTD,
    ),
    words(
        "STARTD_LATCH_EXPRS",
        None,
        "Expressions whose changes are dated: NAMEValue and NAMETime show in the slot's ad.",
        read_by=STARTD,
    ),
    expression("PREEMPT_<UNIVERSE>", None, "PREEMPT for jobs of one universe only.", read_by=STARTD),
    expression("SUSPEND_<UNIVERSE>", None, "SUSPEND for jobs of one universe only.", read_by=STARTD),
    expression("CONTINUE_<UNIVERSE>", None, "CONTINUE for jobs of that universe (VANILLA, STANDARD …).",
               read_by=STARTD),
    expression("KILL_<UNIVERSE>", None, "KILL for jobs of one universe only.", read_by=STARTD),
    expression("WANT_SUSPEND_<UNIVERSE>", None, "WANT_SUSPEND for jobs of that universe (VANILLA, STANDARD …).",
               read_by=STARTD),
    expression("WANT_VACATE_<UNIVERSE>", None, "WANT_VACATE for jobs of that universe (VANILLA, STANDARD …).",
               read_by=STARTD),
    expression("WANT_HOLD_<UNIVERSE>", None, "WANT_HOLD for jobs of that universe (VANILLA, STANDARD …).",
               read_by=STARTD),
    expression(
        "MAXJOBRETIREMENTTIME_<UNIVERSE>",
        None,
        "MAXJOBRETIREMENTTIME for jobs of one universe only.",
        read_by=STARTD,
    ),
    expression(
        "PERIODIC_CHECKPOINT_<UNIVERSE>",
        None,
        "PERIODIC_CHECKPOINT for jobs of one universe only.",
        read_by=STARTD,
    ),
    expression("LOWER_<UNIVERSE>", None, "LOWER for jobs of one universe only.", read_by=STARTD),
    real(
        "BACKGROUNDLOAD",
        0.3,
        "Up to which load that is not a job's the machine counts as idle.",
        low=0,
        read_by=STARTD,
    ),
    real(
        "HIGHLOAD",
        0.5,
        "From which load that is not a job's the machine counts as busy.",
        low=0,
        read_by=STARTD,
    ),
    text(
        "STARTIDLETIME",
        "15 * $(MINUTE)",
        "How long the keyboard must be idle before a job starts.",
        read_by=STARTD,
    ),
    text(
        "CONTINUEIDLETIME",
        "5 * $(MINUTE)",
        "How long the keyboard must be idle before a suspended job goes on.",
        read_by=STARTD,
    ),
    text(
        "MAXSUSPENDTIME",
        "10 * $(MINUTE)",
        "How long a job stays suspended before it has to go.",
        read_by=STARTD,
    ),
    text("MAXVACATETIME", "10 * $(MINUTE)", "How long a job that has to go may take.", read_by=STARTD),
    text(
        "STATETIMER",
        "(time() - EnteredCurrentState)",
        "For how long the slot has been in its state.",
        read_by=STARTD,
    ),
    text(
        "ACTIVITYTIMER",
        "(time() - EnteredCurrentActivity)",
        "For how long the slot has been in its activity.",
        read_by=STARTD,
    ),
    text(
        "ACTIVATIONTIMER",
        "ifThenElse(JobStart =!= UNDEFINED, (time() - JobStart), 0)",
        "For how long the job has been running.",
        read_by=STARTD,
    ),
    text(
        "LASTCKPT",
        "(time() - LastPeriodicCheckpoint)",
        "How long ago the last checkpoint was.",
        read_by=STARTD,
    ),
    text("NONCONDORLOADAVG", "(LoadAvg - CondorLoadAvg)", "The load that is not a job's.", read_by=STARTD),
    text(
        "KEYBOARDBUSY", "(KeyboardIdle < $(MINUTE))", "Whether someone is at the keyboard.", read_by=STARTD
    ),
    text("CONSOLEBUSY", "(ConsoleIdle < $(MINUTE))", "Whether someone is at the console.", read_by=STARTD),
    text(
        "CPUIDLE",
        "($(NonCondorLoadAvg) <= $(BackgroundLoad))",
        "Whether the machine has little else to do.",
        read_by=STARTD,
    ),
    text(
        "CPUBUSY",
        "($(NonCondorLoadAvg) >= $(HighLoad))",
        "Whether the machine has much else to do.",
        read_by=STARTD,
    ),
    text("CPU_IDLE", "$(CPUIdle)", "Another spelling of CPUIdle.", read_by=STARTD),
    text("CPU_BUSY", "$(CPUBusy)", "Another spelling of CPUBusy.", read_by=STARTD),
    text("MACHINEBUSY", "($(CPUBusy) || $(KeyboardBusy))", "Whether the machine is in use.", read_by=STARTD),
    text(
        "KEYBOARDNOTBUSY", "($(KeyboardBusy) == False)", "Whether nobody is at the keyboard.", read_by=STARTD
    ),
    text("ISVANILLA", "(TARGET.JobUniverse == 5)", "Whether the job is a vanilla one.", read_by=STARTD),
    text("ISSTANDARD", "(TARGET.JobUniverse == 1)", "Whether the job is a standard one.", read_by=STARTD),
    text("SMALLJOB", "(TARGET.ImageSize <  (15 * 1024))", "Whether the job is small.", read_by=STARTD),
    text(
        "JUSTCPU",
        "($(CPUBusy) && ($(KeyboardBusy) == False))",
        "Whether only the load says that the machine is in use.",
        read_by=STARTD,
    ),
)
