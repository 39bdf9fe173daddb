"""``htcondor2.htchirp``: a running job's files and attributes at home, from Python."""

from __future__ import annotations

from condor_actors.compat.htcondor2.htchirp.command import condor_chirp
from condor_actors.compat.htcondor2.htchirp.htchirp import HTChirp

__all__ = ["HTChirp", "condor_chirp"]
