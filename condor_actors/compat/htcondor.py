"""``htcondor``: the older name of :mod:`.htcondor2`.

Programs that use what only the older module had (``xquery``, ``Submit.queue`` in a transaction, ``Schedd.submitMany``)
find no such names; htcondor2's own guide says what took their place.
"""

from __future__ import annotations

from condor_actors.compat.htcondor2 import *  # noqa: F403 - every name, by design
from condor_actors.compat.htcondor2 import __all__ as __all__  # noqa: PLC0414
