"""Parameters of machines that sleep, and of the rooster that wakes them."""

from __future__ import annotations

from condor_actors.config.parameter import expression, integer, seconds, text

ROOSTER = "ROOSTER"

ROWS = (
    seconds("ROOSTER_INTERVAL", 300, "How often the rooster looks for machines to wake.", low=0.1, read_by=ROOSTER),
    expression("ROOSTER_UNHIBERNATE", "Offline && Unhibernate", "Which machines it wakes.", read_by=ROOSTER),
    expression("ROOSTER_UNHIBERNATE_RANK", None, "Which of them first: the greatest.", read_by=ROOSTER),
    integer("ROOSTER_MAX_UNHIBERNATE", 0, "How many it wakes in one look; 0 for any number.", low=0, read_by=ROOSTER),
    text("ROOSTER_WAKEUP_CMD", "$(BIN)/condor_power -d -i", "The program that wakes a machine, whose ad it reads from "
         "its standard input, and its arguments.", read_by=ROOSTER),
)
