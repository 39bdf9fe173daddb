"""The production actors on simulated edges.  Nothing but tests and ``condor_simulate`` imports this package."""
