"""Parameters of the defrag daemon, which drains machines so that large jobs find whole ones."""

from __future__ import annotations

from condor_actors.config.parameter import choice, expression, integer, real, seconds

DEFRAG = "DEFRAG"

ROWS = (
    seconds("DEFRAG_INTERVAL", 600, "How often machines are looked at.", low=0.1, read_by=DEFRAG),
    real("DEFRAG_DRAINING_MACHINES_PER_HOUR", 0, "How many machines are drained in an hour.", low=0, read_by=DEFRAG),
    integer(
        "DEFRAG_MAX_CONCURRENT_DRAINING", -1, "How many may be draining at a time; -1 for any number.", low=-1,
        read_by=DEFRAG,
    ),
    integer(
        "DEFRAG_MAX_WHOLE_MACHINES", -1, "How many whole machines are enough; -1 for no limit.", low=-1, read_by=DEFRAG
    ),
    expression("DEFRAG_REQUIREMENTS", "Offline =!= True", "Which machines may be drained.", read_by=DEFRAG),
    expression("DEFRAG_WHOLE_MACHINE_EXPR", "Cpus == TotalSlotCpus", "Which machines are whole.", read_by=DEFRAG),
    expression(
        "DEFRAG_CANCEL_REQUIREMENTS",
        "$(DEFRAG_WHOLE_MACHINE_EXPR)",
        "Whose drain is called off, because there is enough.",
        read_by=DEFRAG,
    ),
    expression("DEFRAG_RANK", "-ExpectedMachineGracefulDrainingBadput", "Which are drained first.", read_by=DEFRAG),
    choice(
        "DEFRAG_DRAINING_SCHEDULE",
        "graceful",
        "How the jobs have to go: within their retirement time, saving their work, or at once.",
        ("graceful", "quick", "fast"),
        read_by=DEFRAG,
    ),
    expression("DEFRAG_DRAINING_START_EXPR", "False", "Which jobs may start while it drains.", read_by=DEFRAG),
)
