"""Condor: idle workstations as one pool for long jobs, as an actor system on Twisted."""
