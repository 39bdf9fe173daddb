"""Properties are tried with the same examples each time, and take the time they take.

A busy machine is no failure, and a search for new examples is not what decides whether a change is good:
``CONDOR_NEW_EXAMPLES=1`` looks for others.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=not os.environ.get("CONDOR_NEW_EXAMPLES"))
settings.load_profile("steady")
