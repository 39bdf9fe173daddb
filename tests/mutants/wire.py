"""Bugs of links, identities and rights."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "told-again-to-a-restarted-peer", "condor_actors/wire/dialled.py",
        "for envelope in again if same else ():",
        "for envelope in again:",
        why="a peer that acted, died and was restarted acts a second time: it no longer knows the message",
        killed_by=("tests/unit/wire/test_dialled.py::test_what_was_told_is_sent_again_only_to_who_remembers_it",)),
    Mutation(
        "told-once-is-lost", "condor_actors/wire/dialled.py",
        "for envelope in again if same else ():",
        "for envelope in ():",
        why="each break of a link loses messages that nobody repeats",
        killed_by=("tests/unit/wire/test_dialled.py::test_what_was_told_is_sent_again_only_to_who_remembers_it",)),
    Mutation(
        "question-fails-twice", "condor_actors/wire/dialled.py",
        "self._again = [each for each in link.under_way if not each.deadline_s and not each.in_reply_to]",
        "self._again = [each for each in link.under_way if not each.in_reply_to]",
        why="a question that failed with its link is asked again on the next one",
        killed_by=("tests/unit/wire/test_dialled.py::test_questions_and_answers_are_not_sent_again",)),
    Mutation(
        "watched-node-is-given-up", "condor_actors/wire/dialled.py",
        "        if self.watched or self._again or self._waiting:\n",
        "        if self._again or self._waiting:\n",
        why="a startd whose collector was restarted is never seen again",
        killed_by=("tests/unit/wire/test_dialled.py::test_a_watched_node_is_dialled_again_and_again",)),
    Mutation(
        "no-end-of-silence", "condor_actors/wire/link.py",
        "if silent_s >= SILENCE_S:",
        "if silent_s >= 1000 * SILENCE_S:",
        why="a machine that was switched off counts as connected forever",
        killed_by=("tests/unit/wire/test_link.py::test_signs_of_life_keep_a_quiet_link_and_silence_ends_it",)),
    Mutation(
        "no-signs-of-life", "condor_actors/wire/link.py",
        "            self._frame(frames.pack_ack(self._grant()))\n        rest_s",
        "            pass\n        rest_s",
        why="every quiet link is cut as dead",
        killed_by=("tests/unit/wire/test_link.py::test_signs_of_life_keep_a_quiet_link_and_silence_ends_it",)),
    Mutation(
        "window-is-not-heeded", "condor_actors/wire/link.py",
        "room = min(peer.window, frames.WINDOW) - (self.sent - self._acknowledged)",
        "room = peer.window",
        why="a fast sender fills the memory of a slow receiver",
        killed_by=("tests/unit/wire/test_link.py::test_no_more_than_the_window_is_under_way",)),
    Mutation(
        "credit-while-congested", "condor_actors/wire/link.py",
        "        if not self._owner.congested(self):\n            self._told = self.received\n",
        "        self._told = self.received\n",
        why="a daemon that is behind asks for more",
        killed_by=("tests/unit/wire/test_link.py::test_no_more_than_the_window_is_under_way",)),
    Mutation(
        "acknowledgement-of-anything", "condor_actors/wire/link.py",
        "if not self._acknowledged <= count <= self.sent:",
        "if count > self.sent:",
        why="a hostile peer makes our count go backwards",
        killed_by=("tests/unit/wire/test_link.py::test_acknowledgements_do_not_go_backwards",)),
    Mutation(
        "envelopes-before-the-hello", "condor_actors/wire/link.py",
        "        elif not self.up:\n",
        "        elif self.closed:\n",
        why="a peer of an unknown protocol is listened to",
        killed_by=("tests/unit/wire/test_link.py::test_nothing_is_taken_before_the_hello",)),
    Mutation(
        "deny-is-not-read", "condor_actors/wire/authorization.py",
        '        if self._denied(identity, level) is not None:\n            return ""\n',
        "",
        why="DENY_ADMINISTRATOR does not take away the WRITE that it implies",
        killed_by=("tests/unit/wire/test_authorization.py::test_a_level_that_is_denied_gives_none_that_it_implies",)),
    Mutation(
        "list-adds-to-the-default", "condor_actors/wire/authorization.py",
        "        if listed is None:\n            return f\"without ALLOW_{level.value} it belongs",
        "        if listed is None or level in default_levels(identity):\n"
        "            return f\"without ALLOW_{level.value} it belongs",
        why="ALLOW_ lists restrict nobody",
        killed_by=("tests/unit/wire/test_authorization.py::test_a_list_replaces_the_default",)),
    Mutation(
        "shadow-is-a-daemon", "condor_actors/wire/authorization.py",
        ' or "shadow" in identity.roles',
        "",
        why="a job owner's shadow host may advertise machines",
        killed_by=("tests/unit/wire/test_authorization.py::test_without_lists",)),
    Mutation(
        "token-without-signature", "condor_actors/wire/idtokens/signed_token.py",
        "if not hmac.compare_digest(proof_of(signature, binding), proof):",
        "if len(proof) != 32:",
        why="anyone who knows what a token says can write one",
        killed_by=("tests/unit/wire/test_idtokens.py::test_forgeries",)),
    Mutation(
        "scope-is-forgotten", "condor_actors/wire/authorization.py",
        "if identity.levels is not None and not any(",
        "if identity.levels == () and not any(",
        why="a token to look with can submit",
        killed_by=("tests/unit/wire/test_authorization.py::test_a_scope_takes_levels_away_and_gives_none",)),
    Mutation(
        "any-machine-delegates", "condor_actors/wire/certificates/trust.py",
        "if DELEGATING_ROLE not in machine.roles:",
        "if not machine.roles:",
        why="an execute machine makes itself the shadow of any user",
        killed_by=("tests/wire/test_links.py::test_proxies_say_only_what_their_signer_may",)),
    Mutation(
        "proxy-of-another-host", "condor_actors/wire/certificates/trust.py",
        " or host not in names_of(signer)",
        "",
        why="a submit machine speaks for the users of another",
        killed_by=("tests/unit/wire/test_trust.py::test_a_proxy_that_claims_what_its_signer_may_not_say",)),
    Mutation(
        "proxy-lives-for-ever", "condor_actors/wire/certificates/trust.py",
        "if proxy.not_valid_after_utc - proxy.not_valid_before_utc > MAX_PROXY_LIFE:",
        "if proxy.not_valid_after_utc is None:",
        why="a stolen proxy certificate is good for years",
        killed_by=("tests/unit/wire/test_trust.py::test_a_proxy_of_a_proxy_and_one_that_lives_too_long",)),
    Mutation(
        "revoked-signer-signs", "condor_actors/wire/certificates/trust.py",
        "for certificate in chain[:-1]:",
        "for certificate in chain[:1]:",
        why="a machine that was thrown out comes back by a proxy of its own",
        killed_by=("tests/unit/wire/test_trust.py::test_revoked_signers_take_their_proxies_with_them",)),
    Mutation(
        "token-is-good-twice", "condor_actors/wire/tokens.py",
        'path.rename(path.with_suffix(".used"))',
        "path.stat()",
        why="anyone who finds a used join token joins as well",
        killed_by=("tests/wire/test_enrolment.py::test_a_machine_joins_with_a_token_and_then_belongs",)),
    Mutation(
        "token-does-not-run-out", "condor_actors/wire/tokens.py",
        'if record["ends_s"] < self._clock():',
        'if record["ends_s"] < 0:',
        why="a token of last year lets anybody in",
        killed_by=("tests/wire/test_enrolment.py::test_tokens_run_out_and_names_are_not_stolen",)),
    Mutation(
        "renewal-for-another-machine", "condor_actors/wire/enrolment.py",
        "(identity.hosts, identity.roles) != (machine.hosts, machine.roles)",
        "identity.host == machine.host and identity.roles != machine.roles",
        why="a machine gets the certificate of any other whose old one it has seen",
        killed_by=("tests/wire/test_enrolment.py::test_a_machine_renews_nobody_elses_certificate",)),
    Mutation(
        "deep-expressions", "condor_actors/wire/banana.py",
        "    if depth > MAX_DEPTH or left[0] < 0:\n",
        "    if left[0] < 0:\n",
        why="a hundred bytes from anybody end the process",
        killed_by=("tests/wire/test_hostile.py::test_an_expression_that_is_deeper_than_any_of_ours_is_refused",)),
    Mutation(
        "endless-strings", "condor_actors/wire/banana.py",
        "                if end - start > MAX_STRING_BYTES:\n",
        "                if end < start:\n",
        why="anybody makes us collect gigabytes for one frame",
        killed_by=("tests/wire/test_hostile.py::test_large_frames_in_small_chunks_take_linear_work",)),
)
