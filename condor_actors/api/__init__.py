"""The pool from Python: what ``import condor_actors as condor`` gives.

==================  ==========================================================================================
:mod:`.description`  `Submit`: a submit description as a mapping of its commands
:mod:`.schedd`       `Schedd`: submit, query, act, edit, history, spool, retrieve; `Transaction` collects changes
:mod:`.collector`    `Collector`: ads of machines, daemons, submitters
:mod:`.negotiator`   `Negotiator`: priorities and what administrators set of them
:mod:`.credd`        `Credd`: credentials for jobs
:mod:`.startd`       `Startd`: drain and vacate a machine
:mod:`.event_log`    `JobEventLog`: the events of a job event log, as they come
:mod:`.settings`     ``param``: the configuration
:mod:`.aio`          the same for asyncio; :mod:`.tx` for Twisted
==================  ==========================================================================================

Theory: one core, three faces.  The core is that of the commands: it asks a daemon and waits, without Twisted.  The
faces for asyncio and Twisted run its questions in threads, so that nothing blocks a loop or a reactor; an event log is
followed by the kernel's word (inotify) in all three, without a thread.  An object keeps the configuration it was
made under; each call opens its own line to the daemon, so objects may be shared between threads and nothing stays open
between calls.
"""
