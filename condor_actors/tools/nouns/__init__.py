"""The command ``htcondor``: a noun, then a verb."""
