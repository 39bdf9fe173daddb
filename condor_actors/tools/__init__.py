"""The ``condor_*`` commands: one module a command, ``main()`` its entry; each imports only what it uses."""

from __future__ import annotations

import gc
import sys

YOUNG_OBJECTS = 50_000
"""As many come before Python looks for cycles: a command that loads its modules and answers has fewer."""

if sys.argv and sys.argv[0].rpartition("/")[2].startswith(("condor_", "htcondor")):  # the process is a command's
    gc.set_threshold(YOUNG_OBJECTS)
