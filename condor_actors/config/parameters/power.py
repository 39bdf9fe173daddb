"""Parameters of machines that sleep, and of the rooster that wakes them."""

from __future__ import annotations

from condor_actors.config.parameter import boolean, expression, integer, path, seconds, text

ROOSTER, STARTD = "ROOSTER", "STARTD"

ROWS = (
    expression("HIBERNATE", '"NONE"', "How deep the machine may sleep, over the ad of each slot: \"NONE\", \"S3\" (or "
               "\"RAM\"), \"S4\" (\"DISK\"), \"S5\" (\"SHUTDOWN\").", read_by=STARTD),
    seconds("HIBERNATE_CHECK_INTERVAL", 0, "How often the startd asks HIBERNATE; 0: never, and the machine is never "
            "put to sleep.", low=0, read_by=STARTD),
    expression("UNHIBERNATE", "MachineLastMatchTime =!= undefined", "When a machine that sleeps wants to be woken.",
               read_by=STARTD),
    path("HIBERNATION_PLUGIN", "$(LIBEXEC)/power_state", "The program that puts the machine to sleep.", read_by=STARTD),
    text("HIBERNATION_PLUGIN_ARGS", None, "Its arguments.", change="restart", read_by=STARTD),
    text("LINUX_HIBERNATION_METHOD", None, "How the pool's own program does it: systemctl or /sys; by default the "
         "first that works.", change="restart", read_by=STARTD),
    boolean("HIBERNATION_OVERRIDE_WOL", False, "Whether the machine sleeps also where no network card can wake it.",
            read_by=STARTD),
    seconds("ROOSTER_INTERVAL", 300, "How often the rooster looks for machines to wake.", low=0.1, read_by=ROOSTER),
    expression("ROOSTER_UNHIBERNATE", "Offline && Unhibernate", "Which machines it wakes.", read_by=ROOSTER),
    expression("ROOSTER_UNHIBERNATE_RANK", None, "Which of them first: the greatest.", read_by=ROOSTER),
    integer("ROOSTER_MAX_UNHIBERNATE", 0, "How many it wakes in one look; 0 for any number.", low=0, read_by=ROOSTER),
    text("ROOSTER_WAKEUP_CMD", "$(BIN)/condor_power -d -i", "The program that wakes a machine, whose ad it reads from "
         "its standard input, and its arguments.", read_by=ROOSTER),
)
