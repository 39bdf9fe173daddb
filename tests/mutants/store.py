"""Bugs of what is kept on disk."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "store-does-not-sync", "condor_actors/store/database.py",
        "PRAGMA synchronous = FULL",
        "PRAGMA synchronous = NORMAL",
        why="what was committed is gone after a power cut",
        killed_by=("tests/unit/store/test_queue_store.py::test_what_was_committed_is_on_the_disk",)),
    Mutation(
        "store-does-not-roll-back", "condor_actors/store/database.py",
        '                connection.execute("ROLLBACK")\n',
        '                connection.execute("COMMIT")\n',
        why="half a batch is stored when a statement of it fails",
        killed_by=("tests/unit/store/test_accountant_store.py::test_a_batch_is_saved_as_a_whole_or_not_at_all",)),
    Mutation(
        "store-others-may-read", "condor_actors/store/database.py",
        "        os.fchmod(descriptor, 0o600)\n",
        "        pass\n",
        why="the secrets of all claims are everybody's",
        killed_by=("tests/unit/store/test_queue_store.py::test_nobody_else_may_read_the_file",)),
    Mutation(
        "newer-store-is-used", "condor_actors/store/database.py",
        "if version > newest:",
        "if version > newest + 100:",
        why="an old program writes to a schema that it does not know",
        killed_by=("tests/unit/store/test_queue_store.py::test_a_file_of_a_newer_version_is_refused",)),
    Mutation(
        "archived-job-stays", "condor_actors/store/queue_store.py",
        "DELETE FROM jobs WHERE cluster = ? AND proc = ?",
        "DELETE FROM jobs WHERE cluster = ? AND proc = ? AND 0",
        why="a job that has ended is in the queue again after a restart, and runs again",
        killed_by=("tests/unit/store/test_queue_store.py::test_a_job_moves_to_the_history_once",)),
    Mutation(
        "update-of-the-whole-cluster", "condor_actors/store/queue_store.py",
        '"UPDATE jobs SET ad = ? WHERE cluster = ? AND proc = ?", "ad", "cluster", "proc"',
        '"UPDATE jobs SET ad = ? WHERE cluster = ?", "ad", "cluster"',
        why="one job's status becomes that of all jobs of its cluster",
        killed_by=("tests/unit/store/test_queue_store.py::test_what_was_committed_is_there_after_a_restart",)),
    Mutation(
        "history-of-others", "condor_actors/store/queue_store.py",
        '{no_index}h.owner = ?',
        '{no_index}h.owner <> ?',
        why="condor_history OWNER shows everybody else's jobs",
        killed_by=("tests/unit/store/test_queue_store.py::test_the_history_by_ids_owner_and_place",)),
    Mutation(
        "schema-step-without-its-number", "condor_actors/store/database.py",
        "PRAGMA user_version = {number + 1};",
        "PRAGMA user_version = {number};",
        why="the step is taken again at the next start, and fails",
        killed_by=("tests/unit/store/test_accountant_store.py::test_what_is_saved_is_there_after_a_restart",)),
    Mutation(
        "reservation-does-not-go", "condor_actors/store/accountant.py",
        'connection.execute("DELETE FROM reservations WHERE name = ?", (operation.name,))',
        "pass",
        why="a cancelled reservation is back after the negotiator's restart",
        killed_by=("tests/unit/store/test_accountant_store.py::test_a_reservation_is_kept_until_it_is_cancelled",)),
    Mutation(
        "full-disk-is-a-crash", "condor_actors/store/database.py",
        '"SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY"',
        '"SQLITE_IOERR", "SQLITE_READONLY"',
        why="a full SPOOL counts as a fault of the actor and ends the schedd",
        killed_by=("tests/unit/store/test_queue_store.py::test_a_disk_that_is_full_is_no_fault_of_the_schedd",)),
)
