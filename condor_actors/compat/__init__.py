"""Programs that were written for HTCondor's Python modules.

:mod:`.htcondor2` and :mod:`.classad2` have the names and signatures of the real ones and answer from this pool;
:mod:`.htcondor` and :mod:`.classad` are the same under the older names.  A program runs with its imports changed, or
unchanged with ``python -m condor_actors.compat program.py``, which gives it these modules under the real names
(:mod:`.hook`).
"""
