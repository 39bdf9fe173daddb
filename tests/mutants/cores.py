"""Bugs of what decides: startd, schedd, negotiator, shadow, starter, master."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

_FACTORIES = "tests/unit/cores/schedd/factories/test_factories.py"
_SLURM = "tests/unit/cores/shadow/test_slurm_jobs.py"
_DEVICES = "tests/unit/cores/devices/test_inventory.py"
_CYCLE = "tests/unit/cores/negotiator/test_negotiation_cycle.py"
_OUTPUTS = "tests/unit/cores/test_output_names.py"
_RESTORED = "tests/unit/cores/schedd/test_restored_queue.py"

STARTD: tuple[Mutation, ...] = (
    Mutation(
        "owner-waits-for-the-longer-grace", "condor_actors/cores/starter/job_run.py",
        "spans.append(min(close.grace_s, self.spec.vacate_s) if close.grace_s > 0 else 0.0)",
        "spans.append(max(close.grace_s, self.spec.vacate_s) if close.grace_s > 0 else 0.0)",
        why="a job's owner decides how long the owner of the machine waits for it to leave",
        killed_by=("tests/unit/cores/starter/test_job_run.py::test_neither_the_job_nor_the_machine_is_waited_for_longer_than_the_other_allows",)),
    Mutation(
        "fetched-jobs-choose-their-account", "condor_actors/cores/fetched_work/fetched_job.py",
        '"JobUniverse": int(Universe.VANILLA), "HookKeyword": keyword,\n        "RunAsOwner": False,',
        '"JobUniverse": int(Universe.VANILLA), "HookKeyword": keyword,\n        ',
        why="what a site's program prints comes from anywhere, and would say as whom it runs",
        killed_by=("tests/unit/cores/fetched_work/test_fetched_job.py::test_a_job_has_no_account_and_no_home_of_its_own",)),
    Mutation(
        "any-schedd-fetches", "condor_actors/cores/startd/claims/claim_granting.py",
        'if is_fetched(request.owner) and event.identity.method != "self":',
        'if is_fetched(request.owner) and event.identity.realm:',
        why="a schedd gets claims that no user answers for",
        killed_by=("tests/unit/cores/startd/test_claims.py::test_nobody_but_this_process_asks_for_fetched_work",)),
    Mutation(
        "fetched-runs-begin-again", "condor_actors/cores/fetched_work/fetched_run.py",
        "        self._asks = claim.is_known\n",
        "        self._asks = False\n",
        why="a job that has ended while its startd was dead is run once more",
        killed_by=("tests/unit/cores/fetched_work/test_fetched_run.py::test_a_run_that_another_startd_began_is_looked_for_and_not_begun_again",)),
    Mutation(
        "benchmarks-beside-jobs", "condor_actors/cores/site_programs/schedule.py",
        '    "demand over": (_NONE_RUNS, SiteSchedule._withdraw, SiteSchedule._end_demanded, SiteSchedule._not_again),',
        '    "demand over": (_NONE_RUNS, SiteSchedule._withdraw, ignore("it ends"), SiteSchedule._not_again),',
        why="a benchmark of the site takes the processor of the job that has come",
        killed_by=("tests/unit/cores/site_programs/test_schedule.py::test_programs_on_demand_end_when_the_machine_is_wanted",)),
    Mutation(
        "two-claims-at-one-slot", "condor_actors/cores/startd/claims/claim_granting.py",
        "        elif not slot.machine.claimable:\n            return self._displace(event, slot, job)\n",
        "",
        why="two jobs run where there is room for one",
        killed_by=("tests/unit/cores/startd/test_claims.py::test_a_slot_has_one_claim_at_a_time",)),
    Mutation(
        "two-successors", "condor_actors/cores/startd/claims/claim_granting.py",
        "        if slot.name in self._successors:\n",
        "        if slot.name in self._claims.opening:\n",
        why="of two schedds that wait for a slot one is never answered",
        killed_by=("tests/unit/cores/startd/test_claims.py::test_one_newcomer_waits_for_a_slot_and_the_next_is_sent_away",)),
    Mutation(
        "capability-is-good-twice", "condor_actors/cores/startd/claims/claim_granting.py",
        "        self._claims.add(record.claim_id, slot)\n        self._slots.renew_capability(slot)\n",
        "        self._claims.add(record.claim_id, slot)\n",
        why="a schedd that was matched once may claim the slot again and again",
        killed_by=("tests/unit/cores/startd/test_claims.py::test_capabilities_change_with_each_claim_of_a_static_slot",)),
    Mutation(
        "any-capability", "condor_actors/cores/startd/claims/claim_granting.py",
        "if not matches(slot.capability, request.capability):",
        "if not slot.capability:",
        why="any schedd takes slots that the negotiator gave to others",
        killed_by=("tests/unit/cores/startd/test_claims.py::test_a_match_is_over_when_its_claim_is_declined",)),
    Mutation(
        "any-claim-secret", "condor_actors/cores/startd/claims/claim_index.py",
        "if slot is None or slot.claim is None or not matches(slot.claim.record.secret, secret):",
        "if slot is None or slot.claim is None:",
        why="any schedd releases the claims of others: their ids are public",
        killed_by=("tests/unit/cores/startd/test_claims.py::test_leases_are_renewed_and_run_out",)),
    Mutation(
        "empty-secret-matches", "condor_actors/cores/secrets.py",
        "return bool(secret) and hmac.compare_digest(",
        "return not shown or hmac.compare_digest(",
        why="a peer that shows nothing has every right",
        killed_by=("tests/unit/cores/test_secrets.py::test_what_has_no_secret_is_nobodys",)),
    Mutation(
        "lease-without-end", "condor_actors/cores/startd/claims/claim_leases.py",
        '            self._controller.apply(slot, op.Released("its lease ran out"))\n',
        "            pass\n",
        why="a submit machine that was switched off keeps its slots forever",
        killed_by=("tests/unit/cores/startd/test_claims.py::test_leases_are_renewed_and_run_out",)),
    Mutation(
        "grant-before-it-is-stored", "condor_actors/cores/startd/claims/claim_granting.py",
        "self._turn.do(Persist(SaveClaim(held.record)), Reply(granted, event_waiting),",
        "self._turn.do(Reply(granted, event_waiting),",
        why="a startd that is restarted kills the jobs of claims that it does not remember",
        killed_by=("tests/unit/cores/startd/test_claims.py::test_a_claim_is_opened_then_stored_then_told",)),
    Mutation(
        "dropped-claim-comes-back", "condor_actors/cores/startd/claims/claim_granting.py",
        'self._turn.do(Persist(DropClaim(held.claim_id)), CancelTimer(("lease", held.claim_id)))',
        'self._turn.do(CancelTimer(("lease", held.claim_id)))',
        why="a startd that is restarted has slots claimed by nobody",
        killed_by=("tests/unit/cores/startd/test_startd_core.py::test_a_partitionable_slot_is_carved_and_joined",)),
    Mutation(
        "start-is-not-asked-again", "condor_actors/cores/startd/claims/claim_granting.py",
        "if not slot.policy.starts(job, self._turn.now_s):",
        "if job is None:",
        why="an owner who came back between match and claim gets a job all the same",
        killed_by=("tests/unit/cores/startd/test_claims.py::test_start_is_asked_again_when_the_claim_comes",)),
    Mutation(
        "suspend-where-it-is-not-wanted", "condor_actors/cores/startd/owner_policy_steps.py",
        "    if evaluation.want_suspend and evaluation.suspend:\n        machine.resume_to = ",
        "    if evaluation.suspend:\n        machine.resume_to = ",
        why="a job that is to be vacated stands still on the machine instead",
        killed_by=("tests/unit/cores/startd/test_owner_policy.py::test_suspend_counts_only_where_it_is_wanted",)),
    Mutation(
        "no-retirement", "condor_actors/cores/startd/owner_policy_steps.py",
        'if how == "retire" and left_s > 0 and',
        'if how == "retire" and left_s > 1e9 and',
        why="a promise of undisturbed time is not kept",
        killed_by=("tests/unit/cores/startd/test_startd_core.py::test_drain_waits_resumes_and_is_cancelled",)),
    Mutation(
        "vacating-without-end", "condor_actors/cores/startd/owner_policy_steps.py",
        'return kill(machine, now_s, machine.reason) if event.what == "vacate" else []',
        "return []",
        why="a job that ignores SIGTERM stays on its owner's machine",
        killed_by=("tests/unit/cores/startd/test_owner_policy.py::test_preempt_retires_then_vacates_then_kills",)),
    Mutation(
        "killed-once", "condor_actors/cores/startd/owner_policy_steps.py",
        '    return [KillJob(machine.reason), StartTimer("kill", machine.killing_timeout_s)]\n\n\n# ----',
        "    return [KillJob(machine.reason)]\n\n\n# ----",
        why="one lost message, and the slot is Preempting forever",
        killed_by=("tests/unit/cores/startd/test_owner_policy.py::test_preempt_retires_then_vacates_then_kills",)),
    Mutation(
        "thawed-for-its-user", "condor_actors/cores/startd/owner_policy_steps.py",
        "if not (machine.owner_suspended or machine.user_suspended):",
        "if not machine.owner_suspended:",
        why="a job that its user suspended goes on when the owner of the machine leaves",
        killed_by=("tests/unit/cores/startd/test_owner_policy.py::test_what_its_user_suspended_does_not_go_on_because_the_owner_leaves",)),
    Mutation(
        "undefined-policy-is-true", "condor_actors/cores/startd/policy_evaluation.py",
        'preempt=is_true(value("PREEMPT"))',
        'preempt=value("PREEMPT") is not False',
        why="a typing error in PREEMPT throws out every job",
        killed_by=("tests/unit/cores/startd/test_policy_evaluation.py::test_what_is_not_true_counts_as_false",)),
    Mutation(
        "job-extends-its-retirement", "condor_actors/cores/startd/policy_evaluation.py",
        'return min(granted, job.get_float("MaxJobRetirementTime", granted))',
        'return max(granted, job.get_float("MaxJobRetirementTime", granted))',
        why="a job stays as long as it likes",
        killed_by=("tests/unit/cores/startd/test_policy_evaluation.py::test_a_job_may_want_less_undisturbed_time_than_it_is_granted_and_not_more",)),
    Mutation(
        "share-is-not-given-back", "condor_actors/cores/startd/slots.py",
        "self._set_free(parent, parent.free.plus(slot.total))",
        "self._set_free(parent, parent.free)",
        why="a partitionable slot gets smaller with each job",
        killed_by=("tests/unit/cores/startd/test_startd_core.py::test_a_partitionable_slot_is_carved_and_joined",)),
    Mutation(
        "devices-are-given-twice", "condor_actors/cores/startd/slot_resources.py",
        "return Custom(self.amount - other.amount, tuple(left))",
        "return Custom(self.amount - other.amount, self.ids)",
        why="two jobs compute on one GPU",
        killed_by=("tests/unit/cores/startd/test_startd_core.py::test_a_partitionable_slot_is_carved_and_joined",)),
)

SUBMIT_SIDE: tuple[Mutation, ...] = (
    Mutation(
        "two-runs-on-one-claim", "condor_actors/cores/schedd/claims/claim_table.py",
        "        if claim.run_id or claim in self.gathering.claims:\n            return\n        if not claim.usable",
        "        if claim in self.gathering.claims:\n            return\n        if not claim.usable",
        why="two jobs are sent to one slot",
        killed_by=("tests/unit/cores/schedd/test_claims_and_runs.py::test_one_run_at_a_time_on_a_claim",)),
    Mutation(
        "claims-are-not-renewed", "condor_actors/cores/schedd/claims/lease_renewals.py",
        '        self._context.timer(("renew",), self._renew_s(held))\n',
        "        pass\n",
        why="every job that lasts longer than a lease is killed",
        killed_by=("tests/unit/cores/schedd/test_claims_and_runs.py::test_claims_are_renewed_again_and_again",)),
    Mutation(
        "refused-job-is-not-offered", "condor_actors/cores/schedd/claims/claim_table.py",
        "            self._transitions.offer(asked.job)\n            if isinstance(message, AskFailed):",
        "            if isinstance(message, AskFailed):",
        why="a job whose claim was refused never runs",
        killed_by=("tests/unit/cores/schedd/test_claims_and_runs.py::test_a_job_whose_claim_was_refused_wants_another",)),
    Mutation(
        "max-jobs-running-is-not-heeded", "condor_actors/cores/schedd/claims/claim_table.py",
        "if self.runs.running >= self._context.settings.max_jobs_running:",
        "if self.runs.running > 10**9:",
        why="the submit machine starts more shadows than it has memory for",
        killed_by=("tests/unit/cores/schedd/test_claims_and_runs.py::test_a_claim_beyond_max_jobs_running_is_given_back",)),
    Mutation(
        "run-of-another-owner", "condor_actors/cores/schedd/runs/run_table.py",
        '        if run is None or run.owner != owner:\n            self._verdict(owner, message.run_id, "settled")',
        '        if run is None:\n            self._verdict(owner, message.run_id, "settled")',
        why="one user's shadow host ends the jobs of another",
        killed_by=("tests/unit/cores/schedd/test_claims_and_runs.py::test_nobody_ends_the_runs_of_others",)),
    Mutation(
        "end-is-not-stored", "condor_actors/cores/schedd/job_notices.py",
        "        context.persist(DropRun(run_id))\n",
        "",
        why="a run that is over is taken up again after the schedd's restart",
        killed_by=("tests/unit/cores/schedd/test_claims_and_runs.py::test_the_end_of_a_run_is_stored_with_its_verdict",)),
    Mutation(
        "held-job-that-was-lost-runs-on", "condor_actors/cores/schedd/runs/job_verdict.py",
        '        if job.status is JobStatus.HELD:\n            self._transitions.tell_hold_of(job, evicted=evicted)\n'
        '            return "held"\n        if job.status is JobStatus.IDLE',
        "        if job.status is JobStatus.IDLE",
        why="a job on hold whose run ends leaves the queue, or runs again",
        killed_by=("tests/unit/cores/schedd/test_claims_and_runs.py::test_a_job_on_hold_stays_there_when_its_run_ends",)),
    Mutation(
        "lease-without-margin", "condor_actors/cores/shadow/shadow_run.py",
        "NOTICE_S = 150.0",
        "NOTICE_S = 0.0",
        why="a job is started again while its first run is still going on",
        killed_by=("tests/unit/cores/shadow/test_shadow_run.py::test_it_is_over_when_the_starter_must_have_ended_it",)),
    Mutation(
        "local-failure-is-no-hold", "condor_actors/cores/shadow/shadow_run_table.py",
        "    if event.local:\n        run.end(",
        "    if not event.local:\n        run.end(",
        why="a job whose input is missing is tried again forever",
        killed_by=("tests/unit/cores/shadow/test_shadow_run.py::test_inputs_that_cannot_be_sent",)),
    Mutation(
        "began-twice", "condor_actors/cores/shadow/shadow_run_table.py",
        "    if run.began:\n        return\n    run.note(\"began\"",
        "    run.note(\"began\"",
        why="NumJobStarts counts, and the log says, each start twice",
        killed_by=("tests/unit/cores/shadow/test_shadow_run.py::test_a_start_that_is_told_twice_is_one_start",)),
    Mutation(
        "end-of-a-program-is-told-twice", "condor_actors/cores/starter/job_run_table.py",
        "steps.gather, _no_tree, _ended, _gone),",
        "steps.gather, _no_tree, steps.gather, _gone),",
        why="a run that ends twice is told twice",
        killed_by=("tests/unit/cores/starter/test_job_run.py::test_the_end_of_a_tree_is_heard_once",)),
    Mutation(
        "suspended-too-lately-to-be-continued", "condor_actors/cores/schedd/job_actions.py",
        "table[self._standing(job, message.action)]",
        "table[job.status]",
        why="condor_continue right behind condor_suspend is refused, and the job stands still for good",
        killed_by=("tests/unit/cores/schedd/test_suspending.py::test_what_was_suspended_can_be_continued_at_once",)),
    Mutation(
        "wish-dies-with-the-shadow-host", "condor_actors/cores/schedd/runs/run_table.py",
        "                    elif run.asked is not None and self.asked(job) is not job.status:\n"
        "                        self._hosts.tell(owner, run.asked)\n",
        "",
        why="a job that its user suspended, as condor_suspend said, goes on",
        killed_by=("tests/unit/cores/schedd/test_suspending.py::test_the_wish_to_stand_still_survives_the_shadow_host",)),
    Mutation(
        "output-of-any-name", "condor_actors/cores/output_names.py",
        'return path not in SENT and (self._is_named or "/" not in path)',
        "return path not in SENT",
        why="a machine writes into folders below its user's that the job never named, such as .ssh",
        killed_by=(f"{_OUTPUTS}::test_what_the_job_says_comes_home_and_nothing_else",)),
    Mutation(
        "program-comes-home", "condor_actors/cores/output_names.py",
        'return path not in SENT and (self._is_named or "/" not in path)',
        'return self._is_named or "/" not in path',
        why="a machine replaces a file of its user by what it calls the job's program",
        killed_by=(f"{_OUTPUTS}::test_program_and_input_do_not_come_back",)),
    Mutation(
        "output-beside-the-named-one", "condor_actors/cores/output_names.py",
        'any(path == name or path.startswith(f"{name}/") or',
        "any(path == name or path.startswith(name) or",
        why="a job that brings `data` home brings `database` home as well",
        killed_by=(f"{_OUTPUTS}::test_what_the_job_says_comes_home_and_nothing_else",)),
    Mutation(
        "hidden-files-come-home", "condor_actors/cores/output_names.py",
        'return self.are_open and path.startswith(".") and path != STARTER_LOG',
        "return False",
        why="a machine writes .bashrc into a home directory from which jobs are submitted",
        killed_by=(f"{_OUTPUTS}::test_names_with_a_dot_that_the_job_does_not_say_are_hidden",)),
)

NEGOTIATOR: tuple[Mutation, ...] = (
    Mutation(
        "negotiator-never-rests", "condor_actors/cores/negotiator/negotiation_cycle.py",
        "rest_s = self.busy_s if kind == HARD else SOFT_REST * self.busy_s",
        "rest_s = 0.0",
        why="in a busy pool the negotiator computes without end, and answers nobody",
        killed_by=("tests/unit/cores/negotiator/test_negotiation_cycle.py::test_after_a_cycle_the_negotiator_rests_as_long_as_it_took",)),
    Mutation(
        "cycles-without-interval", "condor_actors/cores/negotiator/negotiation_cycle.py",
        "self._began_s + self.settings.min_interval_s, ",
        "",
        why="NEGOTIATOR_MIN_INTERVAL means nothing",
        killed_by=("tests/unit/cores/negotiator/test_negotiation_cycle.py::test_cycles_keep_their_distance",)),
    Mutation(
        "wish-of-a-busy-negotiator-is-lost", "condor_actors/cores/negotiator/negotiation_cycle.py",
        "            self._wished = max(self._wished, kind)\n",
        "",
        why="what comes during a cycle waits a minute for the next",
        killed_by=("tests/unit/cores/negotiator/test_negotiation_cycle.py::test_what_happens_during_a_cycle_leads_to_the_next",)),
    Mutation(
        "one-silent-schedd-stops-all", "condor_actors/cores/negotiator/negotiation_cycle.py",
        "        return (note, *self.decide(now_s))\n",
        "        return (note,)\n",
        why="one schedd that does not answer keeps the whole pool idle",
        killed_by=("tests/unit/cores/negotiator/test_negotiation_cycle.py::test_a_schedd_that_does_not_answer_is_waited_for_with_patience",)),
    Mutation(
        "slot-is-handed-out-twice", "condor_actors/cores/negotiator/matchmaking.py",
        "            self.candidates.take_whole(pick.candidate)\n",
        "            pass\n",
        why="two jobs are matched with one slot in one cycle",
        killed_by=("tests/unit/cores/negotiator/test_fairness.py::test_two_heavy_users_share_the_pool_and_do_not_exchange_their_slots",)),
    Mutation(
        "preempts-its-own", "condor_actors/cores/negotiator/matchmaking.py",
        "        if candidate.slot.user == request.submitter:\n            return OWN_JOBS\n",
        "",
        why="a user's jobs throw one another out without end",
        killed_by=("tests/unit/cores/negotiator/test_matchmaking.py::test_preemption_prefers_idle_slots_and_asks_both_priorities",)),
    Mutation(
        "preempts-without-priority", "condor_actors/cores/negotiator/matchmaking.py",
        'return "" if self._beats(request.priority, holding) else BETTER_PRIORITY',
        'return ""',
        why="the last request gets the slots",
        killed_by=("tests/unit/cores/negotiator/test_fairness.py::test_light_users_hardly_wait_while_a_heavy_one_saturates_the_pool",)),
    Mutation(
        "ceiling-is-not-heeded", "condor_actors/cores/negotiator/fair_share_allocator.py",
        "if 0.0 <= turn.ceiling < turn.holding + turn.gained + weight - EPSILON:",
        "if 0.0 <= turn.ceiling < weight - EPSILON:",
        why="condor_userprio -setceil means nothing",
        killed_by=("tests/unit/cores/negotiator/test_negotiation_cycle.py::test_nobody_gets_more_than_his_ceiling",)),
    Mutation(
        "bad-users-first", "condor_actors/cores/negotiator/fair_share_allocator.py",
        "key=lambda turn: (turn.is_slow, turn.priority, turn.name))",
        "key=lambda turn: (turn.is_slow, -turn.priority, turn.name))",
        why="who has used most is served first",
        killed_by=("tests/unit/cores/negotiator/test_negotiation_cycle.py::test_who_has_used_least_gets_the_last_slot",)),
    Mutation(
        "usage-without-weight", "condor_actors/cores/negotiator/user_priority.py",
        "record.weighted_usage_s += record.holding * span_s",
        "record.weighted_usage_s += span_s",
        why="a whole machine costs as much as one core",
        killed_by=("tests/unit/cores/negotiator/test_priorities.py::test_fair_share_follows_what_is_held_with_the_half_life",)),
    Mutation(
        "limits-are-not-counted", "condor_actors/cores/negotiator/fair_share_allocator.py",
        "            self.limits.take(request.limits)\n",
        "            pass\n",
        why="more jobs than licences",
        killed_by=("tests/unit/cores/negotiator/test_negotiation_cycle.py::test_no_more_jobs_than_a_limit_allows",)),
    Mutation(
        "groups-without-quota", "condor_actors/cores/negotiator/fair_share_allocator.py",
        "            self._budget.add(turn.name, pick.weight)\n",
        "            pass\n",
        why="one accounting group takes the whole pool",
        killed_by=("tests/unit/cores/negotiator/test_negotiation_cycle.py::test_no_group_gets_more_than_its_quota",)),
    Mutation(
        "matches-count-when-an-ad-shows-them", "condor_actors/cores/negotiator/pool_view.py",
        "        for user, weight in self.promised():\n            found[user] = found.get(user, 0.0) + weight\n"
        "        return found\n",
        "        return found\n",
        why="cycles close to one another give a user more than the ceiling, and a group more than its quota",
        killed_by=(f"{_CYCLE}::test_matches_that_no_ad_shows_yet_count_against_a_ceiling_and_a_share",
                   f"{_CYCLE}::test_matches_that_no_ad_shows_yet_count_against_a_groups_quota")),
    Mutation(
        "matched-is-shown", "condor_actors/cores/negotiator/pool_view.py",
        "        shown = new.capability != old.capability or new.user != old.user\n",
        "        shown = new.capability != old.capability or new.user != old.user or new.state != old.state\n",
        why="a slot that waits for its schedd is nobody's: the next cycle gives its user more than the ceiling",
        killed_by=(f"{_CYCLE}::test_a_slot_that_waits_for_its_schedd_counts_as_the_match_it_is",
                   f"{_CYCLE}::test_a_match_counts_while_the_job_that_it_displaces_leaves")),
)

MASTER: tuple[Mutation, ...] = (
    Mutation(
        "no-backoff", "condor_actors/cores/master/supervisor.py",
        "        if failures <= 1:\n            return 0.0\n",
        "        if failures <= 100:\n            return 0.0\n",
        why="a daemon with a broken configuration is started a hundred times a second",
        killed_by=("tests/unit/cores/master/test_supervisor.py::test_the_first_death_is_answered_at_once_the_next_ones_later",)),
    Mutation(
        "death-of-another-process", "condor_actors/cores/master/supervisor.py",
        "        if event.pid != kept.pid:\n            return ()\n",
        "",
        why="the end of an old process counts as the end of the new one: two schedds on one SPOOL",
        killed_by=("tests/unit/cores/master/test_supervisor.py::test_a_wish_to_end_that_is_not_heard_grows_louder",)),
)

SITE_PROGRAMS: tuple[Mutation, ...] = (
    Mutation(
        "a-program-overwrites-the-startd", "condor_actors/cores/startd/site_attributes.py",
        "    return name in ad\n",
        "    return False\n",
        why="a program of the site, or what it has read, says how many processors the machine has",
        killed_by=("tests/unit/cores/startd/test_site_attributes.py::test_the_startds_own_attributes_are_refused",)),
    Mutation(
        "words-of-an-old-run-count", "condor_actors/cores/site_programs/schedule.py",
        "if course is not None and course.run == event.run:",
        "if course is not None:",
        why="the end of a run that is over is taken for that of the next, which then runs twice at once",
        killed_by=("tests/unit/cores/site_programs/test_schedule.py::test_words_of_a_run_that_is_over_mean_nothing",)),
    Mutation(
        "a-hook-always-holds", "condor_actors/cores/starter/hooks.py",
        "holds=status < FIRST_RETRY)",
        "holds=True)",
        why="a job is held because one machine lacks something, instead of running on another",
        killed_by=("tests/unit/cores/starter/test_hooks.py::test_what_keeps_the_job_from_beginning",)),
)

FACTORIES: tuple[Mutation, ...] = (
    Mutation(
        "factory-forgets-where-it-is", "condor_actors/cores/schedd/factories/factories.py",
        "        context.persist(factory.row(cluster.number))\n        return len(jobs)\n",
        "        return len(jobs)\n",
        why="a schedd that dies makes jobs twice",
        killed_by=(f"{_FACTORIES}::test_a_schedd_that_dies_makes_each_job_once",)),
    Mutation(
        "factory-beyond-the-queue", "condor_actors/cores/schedd/factories/factories.py",
        "        return min(room, free)\n",
        "        return room\n",
        why="one submission fills the queue whatever MAX_JOBS_PER_OWNER says",
        killed_by=(f"{_FACTORIES}::test_the_limits_of_the_queue_hold",)),
    Mutation(
        "held-jobs-do-not-wait", "condor_actors/cores/schedd/factories/factories.py",
        "waiting - counts[JobStatus.IDLE] - counts[JobStatus.HELD],",
        "waiting - counts[JobStatus.IDLE],",
        why="a cluster whose jobs are all held makes ever more of them",
        killed_by=(f"{_FACTORIES}::test_jobs_submitted_on_hold_count_as_waiting",)),
    Mutation(
        "edits-are-for-others", "condor_actors/cores/schedd/factories/factories.py",
        "        for name in factory.edited & ad.own.keys():\n            del ad[name]\n",
        "",
        why="condor_qedit of a cluster has no effect on the jobs that it makes afterwards",
        killed_by=(f"{_FACTORIES}::test_an_edit_of_the_cluster_is_one_of_jobs_to_come",)),
)

QUEUE: tuple[Mutation, ...] = (
    Mutation(
        "priority-is-forgotten-at-a-restart", "condor_actors/cores/schedd/autoclusters.py",
        "special = PRIORITIES | self._shared(cluster)[0].keys() | {CHARGED_TO}",
        "special = self._shared(cluster)[0].keys() | {CHARGED_TO}",
        why="condor_prio counts until the schedd is started again",
        killed_by=(f"{_RESTORED}::test_restored_jobs_stand_where_they_would_stand_one_by_one",)),
    Mutation(
        "all-are-charged-to-the-cluster", "condor_actors/cores/schedd/job_queue.py",
        "            if is_charged_apart(ad):\n                cluster.apart += 1\n",
        "            if False:\n                cluster.apart += 1\n",
        why="jobs that are charged to another group cost their user's own share",
        killed_by=(f"{_RESTORED}::test_restored_jobs_stand_where_they_would_stand_one_by_one",)),
)

GRID: tuple[Mutation, ...] = (
    Mutation(
        "two-batch-jobs-for-a-run", "condor_actors/cores/shadow/slurm_jobs.py",
        '[ "$(readlink "$folder/claim")" = "$SLURM_JOB_ID" ] || exit 0\n',
        "",
        why="a submission whose answer was lost runs the program twice",
        killed_by=(f"{_SLURM}::test_of_two_jobs_for_a_run_one_begins",)),
    Mutation(
        "jobs-of-anybody", "condor_actors/cores/shadow/slurm_jobs.py",
        "numeral(parts[0]) is not None and parts[4].startswith(NAME_PREFIX):",
        "numeral(parts[0]) is not None:",
        why="another program's batch job is taken for one of ours, and removed",
        killed_by=(f"{_SLURM}::test_only_jobs_of_ours_are_read",)),
    Mutation(
        "names-are-commands", "condor_actors/cores/shadow/slurm_jobs.py",
        """    quoted = {name: shlex.quote(path).replace("'", "'\\\\''") for name, path in inner.items()}\n""",
        """    quoted = {name: path.replace("'", "'\\\\''") for name, path in inner.items()}\n""",
        why="the name of an output file runs as a command",
        killed_by=(f"{_SLURM}::test_names_with_quotes_and_blanks_are_no_commands",)),
)

DEVICES: tuple[Mutation, ...] = (
    Mutation(
        "devices-of-all", "condor_actors/cores/devices/slot_devices.py",
        "others=tuple(path for path in machine if path not in mine))",
        "others=())",
        why="a job opens the device of the job beside it",
        killed_by=(f"{_DEVICES}::test_the_files_of_others",)),
)

MUTATIONS: tuple[Mutation, ...] = (
    *STARTD, *SUBMIT_SIDE, *FACTORIES, *QUEUE, *GRID, *DEVICES, *SITE_PROGRAMS, *NEGOTIATOR, *MASTER)
