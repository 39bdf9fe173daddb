"""Bugs of links, identities and rights."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "told-again-to-a-restarted-peer", "condor_actors/wire/dialled.py",
        "for envelope in again if same else ():",
        "for envelope in again:",
        why="a peer that acted, died and was restarted acts a second time: it no longer knows the message",
        killed_by=()),
    Mutation(
        "told-once-is-lost", "condor_actors/wire/dialled.py",
        "for envelope in again if same else ():",
        "for envelope in ():",
        why="each break of a link loses messages that nobody repeats",
        killed_by=()),
    Mutation(
        "question-fails-twice", "condor_actors/wire/dialled.py",
        "self._again = [each for each in link.under_way if not each.deadline_s and not each.in_reply_to]",
        "self._again = [each for each in link.under_way if not each.in_reply_to]",
        why="a question that failed with its link is asked again on the next one",
        killed_by=()),
    Mutation(
        "watched-node-is-given-up", "condor_actors/wire/dialled.py",
        "        if self.watched or self._again or self._waiting:\n",
        "        if self._again or self._waiting:\n",
        why="a startd whose collector was restarted is never seen again",
        killed_by=()),
    Mutation(
        "no-end-of-silence", "condor_actors/wire/link.py",
        "if silent_s >= SILENCE_S:",
        "if silent_s >= 1000 * SILENCE_S:",
        why="a machine that was switched off counts as connected for ever",
        killed_by=()),
    Mutation(
        "no-signs-of-life", "condor_actors/wire/link.py",
        "            self._frame(frames.pack_ack(self._grant()))\n        rest_s",
        "            pass\n        rest_s",
        why="every quiet link is cut as dead",
        killed_by=()),
    Mutation(
        "window-is-not-heeded", "condor_actors/wire/link.py",
        "room = peer.window - (self.sent - self._acknowledged)",
        "room = peer.window",
        why="a fast sender fills the memory of a slow receiver",
        killed_by=()),
    Mutation(
        "credit-while-congested", "condor_actors/wire/link.py",
        "        if not self._owner.congested:\n            self._told = self.received\n",
        "        self._told = self.received\n",
        why="a daemon that is behind asks for more",
        killed_by=()),
    Mutation(
        "acknowledgement-of-anything", "condor_actors/wire/link.py",
        "if not self._acknowledged <= count <= self.sent:",
        "if count > self.sent:",
        why="a hostile peer makes our count go backwards",
        killed_by=()),
    Mutation(
        "envelopes-before-the-hello", "condor_actors/wire/link.py",
        "        elif not self.up:\n",
        "        elif self.closed:\n",
        why="a peer of an unknown protocol is listened to",
        killed_by=()),
    Mutation(
        "deny-is-not-read", "condor_actors/wire/authorization.py",
        "        if any(entry.matches(identity) for entry in self._deny[level] or ()):\n            return False\n"
        "        listed = self._allow[level]",
        "        listed = self._allow[level]",
        why="DENY_ADMINISTRATOR does not take away the WRITE that it implies",
        killed_by=()),
    Mutation(
        "list-adds-to-the-default", "condor_actors/wire/authorization.py",
        "            return any(entry.matches(identity) for entry in listed)\n",
        "            return any(entry.matches(identity) for entry in listed) or level in default_levels(identity)\n",
        why="ALLOW_ lists restrict nobody",
        killed_by=()),
    Mutation(
        "shadow-is-a-daemon", "condor_actors/wire/authorization.py",
        ' or "shadow" in identity.roles',
        "",
        why="a job owner's shadow host may advertise machines",
        killed_by=()),
    Mutation(
        "any-machine-delegates", "condor_actors/wire/trust.py",
        "if DELEGATING_ROLE not in machine.roles:",
        "if not machine.roles:",
        why="an execute machine makes itself the shadow of any user",
        killed_by=()),
    Mutation(
        "proxy-of-another-host", "condor_actors/wire/trust.py",
        " or host not in names_of(signer)",
        "",
        why="a submit machine speaks for the users of another",
        killed_by=()),
    Mutation(
        "proxy-lives-for-ever", "condor_actors/wire/trust.py",
        "if proxy.not_valid_after_utc - proxy.not_valid_before_utc > MAX_PROXY_LIFE:",
        "if proxy.not_valid_after_utc is None:",
        why="a stolen proxy certificate is good for years",
        killed_by=()),
    Mutation(
        "revoked-signer-signs", "condor_actors/wire/trust.py",
        "for certificate in chain[:-1]:",
        "for certificate in chain[:1]:",
        why="a machine that was thrown out comes back by a proxy of its own",
        killed_by=()),
    Mutation(
        "token-is-good-twice", "condor_actors/wire/tokens.py",
        'path.rename(path.with_suffix(".used"))',
        "path.stat()",
        why="whoever finds a used join token joins as well",
        killed_by=()),
    Mutation(
        "token-does-not-run-out", "condor_actors/wire/tokens.py",
        'if record["ends_s"] < self._clock():',
        'if record["ends_s"] < 0:',
        why="a token of last year lets anybody in",
        killed_by=()),
    Mutation(
        "renewal-for-another-machine", "condor_actors/wire/enrolment.py",
        "identity.host != machine.host or identity.roles != machine.roles",
        "identity.host == machine.host and identity.roles != machine.roles",
        why="a machine gets the certificate of any other whose old one it has seen",
        killed_by=()),
    Mutation(
        "deep-expressions", "condor_actors/wire/banana.py",
        "    if depth > MAX_DEPTH or left[0] < 0:\n",
        "    if left[0] < 0:\n",
        why="a hundred bytes from anybody end the process",
        killed_by=()),
    Mutation(
        "endless-strings", "condor_actors/wire/banana.py",
        "                if end - start > MAX_STRING_BYTES:\n",
        "                if end < start:\n",
        why="anybody makes us collect gigabytes for one frame",
        killed_by=()),
)
