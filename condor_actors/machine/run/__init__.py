"""How a job runs on a machine: launcher, sandbox, control groups, priorities."""
