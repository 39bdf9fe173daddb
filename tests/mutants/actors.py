"""Bugs of the actor system."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "answers-before-the-commit", "condor_actors/actors/turn_loop.py",
        "            self._held += outgoing\n",
        "            for item in outgoing:\n                self._release(item)\n",
        why="a schedd says Submitted, dies, and has never heard of the job",
        killed_by=("tests/unit/actors/test_commits_and_crashes.py::test_a_failed_commit_takes_everything_back",)),
    Mutation(
        "question-past-its-deadline", "condor_actors/actors/turn_loop.py",
        "            if turn[2] and turn[2] < now_s:\n                inbox.charge(0.0)\n                continue\n",
        "",
        why="work is done for those who have given up, and who ask again: a daemon that is behind never catches up",
        killed_by=("tests/unit/actors/test_system.py::test_a_question_whose_asker_has_given_up_gets_no_turn",)),
    Mutation(
        "outside-question-never-expires", "condor_actors/actors/inbound.py",
        "expiry = self._clock.seconds() + envelope.deadline_s if envelope.deadline_s > 0.0 else 0.0",
        "expiry = 0.0",
        why="as above, for what comes from other processes",
        killed_by=("tests/unit/actors/test_system.py::test_a_question_whose_asker_has_given_up_gets_no_turn",)),
    Mutation(
        "failed-commit-sends-anyway", "condor_actors/actors/turn_loop.py",
        "            self.supervisor.commit_failed(dirty, Failure())\n            return\n",
        "            self.supervisor.commit_failed(dirty, Failure())\n",
        why="with a full disk everybody hears of what was not stored",
        killed_by=("tests/unit/actors/test_commits_and_crashes.py::test_nobody_is_told_of_what_was_not_stored",)),
    Mutation(
        "failed-turn-is-stored", "condor_actors/actors/turn_loop.py",
        "            cell.operations.clear()\n            self.supervisor.turn_failed(",
        "            self.supervisor.turn_failed(",
        why="half a decision is stored, and the actor is rebuilt from it",
        killed_by=("tests/unit/actors/test_commits_and_crashes.py::test_what_a_turn_stored_before_it_raised_is_forgotten",)),
    Mutation(
        "repeats-are-taken", "condor_actors/actors/inbound.py",
        "        if message_id in seen:\n            return True\n",
        "",
        why="what a link sends again after a break acts twice",
        killed_by=("tests/unit/actors/test_system.py::test_a_repeat_has_no_effect",)),
    Mutation(
        "dedupe-forgets-the-newest", "condor_actors/actors/inbound.py",
        "del seen[next(iter(seen))]",
        "del seen[message_id]",
        why="a peer that has sent much is no longer protected against repeats",
        killed_by=("tests/unit/actors/test_system.py::test_the_newest_messages_of_a_busy_peer_are_remembered",)),
    Mutation(
        "level-is-not-asked-for", "condor_actors/actors/inbound.py",
        "if not self._authorize(identity, Level(level)):",
        "if self._authorize(identity, Level(level)) is None:",
        why="anyone who has any certificate of the pool may do everything",
        killed_by=("tests/unit/actors/test_system.py::test_the_door_asks_for_the_level_and_knows_kinds_and_actors",)),
    Mutation(
        "answer-of-another-node", "condor_actors/actors/inbound.py",
        "if self._questions.asked_over(envelope.in_reply_to) != node:",
        "if self._questions.asked_over(envelope.in_reply_to) is None:",
        why="any machine of the pool may answer for any other",
        killed_by=("tests/unit/actors/test_system.py::test_an_answer_from_elsewhere_is_not_believed",)),
    Mutation(
        "lost-link-leaves-its-questions", "condor_actors/actors/questions.py",
        'self.fail(question.message_id, "link-lost", reason, lane)',
        "pass",
        why="each break costs every asker its whole timeout",
        killed_by=("tests/unit/actors/test_system.py::test_a_lost_link_fails_its_questions",)),
    Mutation(
        "two-answers", "condor_actors/actors/questions.py",
        "        self._drop(question)\n        answer = ",
        "        answer = ",
        why="a late answer is taken as well as the timeout",
        killed_by=("tests/unit/actors/test_system.py::test_a_question_times_out_once",)),
    Mutation(
        "crashes-are-not-counted", "condor_actors/actors/supervision.py",
        "        times.append(now_s)\n",
        "",
        why="an actor that no restart cures is restarted forever, in a tight loop",
        killed_by=("tests/unit/actors/test_commits_and_crashes.py::test_crash_after_crash_ends_the_process",)),
    Mutation(
        "full-mailbox-takes-questions", "condor_actors/actors/inbound.py",
        "len(cell.inbox) >= cell.spec.inbox_limit",
        "len(cell.inbox) > 1_000_000",
        why="a daemon that is behind collects questions until it has no memory",
        killed_by=("tests/unit/actors/test_system.py::test_a_full_mailbox_is_busy",)),
    Mutation(
        "timer-of-a-former-life", "condor_actors/actors/turn_loop.py",
        "            if cell.timers.get(key) is call and cell.incarnation == incarnation and cell.actor is not None:\n"
        "                del cell.timers[key]\n",
        "            if cell.actor is not None:\n",
        why="a timer that was cancelled, or belonged to the actor before its crash, fires",
        killed_by=("tests/unit/actors/test_system.py::test_a_timer_cancelled_in_the_moment_it_runs_out_is_not_heard",)),
    Mutation(
        "result-of-a-former-life", "condor_actors/actors/turn_loop.py",
        "        if cell.incarnation == incarnation:\n            then(result)\n",
        "        then(result)\n",
        why="what an actor began before its crash comes back to the one built after it",
        killed_by=("tests/unit/actors/test_commits_and_crashes.py::test_a_result_that_a_crash_overtakes_is_not_heard",)),
)
