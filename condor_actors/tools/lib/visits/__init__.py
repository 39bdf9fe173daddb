"""A user beside a running job: a shell, an interactive job, ports of a job here."""
