"""Master and workers: a `concurrent.futures.Executor` whose workers are jobs of the pool.

=====================  =======================================================================================
:mod:`.executor`       `MasterWorker`: ``submit``, ``map``, ``shutdown``; what programs see
:mod:`.dispatch`       which task is whose: the pure core
:mod:`.sizing`         how many workers there should be, and which are too many: a pure function
:mod:`.master`         the thread that serves workers: links, tasks out, results in
:mod:`.door`           connections before it is known whose they are
:mod:`.crew`           the workers' jobs: submitted, followed in their log, removed
:mod:`.credentials`    certificates of one executor, which its workers and nobody else have
:mod:`.worker`         the program that runs on the machines; sent there as it is, needs nothing but Python
=====================  =======================================================================================

Theory: a task has one number for its life, and its result counts once: the first that comes.  What a worker was given
is the worker's until it answers, gives it back, or is gone; then it goes to another one.  So tasks may be begun more
than once and are finished once.
"""

from condor_actors.master_worker.executor import MasterWorker, TaskCrashed, WorkersFailed

__all__ = ["MasterWorker", "TaskCrashed", "WorkersFailed"]
