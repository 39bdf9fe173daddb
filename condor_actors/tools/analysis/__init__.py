"""Why a job does not run, and why a machine runs nothing: what condor_q -better-analyze and condor_status -why say."""
