"""The tokens of services that a run's job has: brought before it begins, renewed while it runs, removed at its end.

Theory: the shadow is asked, and asks the credential daemon of its machine as the job's owner; the starter keeps the
tokens in memory and writes them into ``.condor_creds`` of the scratch directory.  A job that cannot have them is held
with the reason before it begins.  When one that runs cannot have newer ones it keeps what it has, and they are asked
for again.  New files are renamed into their places by a program of the job's account, since the scratch directory is
the job's by then.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from twisted.python.failure import Failure

from condor_actors.classads import ClassAd
from condor_actors.cores.credd.token_attributes import SERVICES, may_want_tokens
from condor_actors.cores.job_tokens import (
    FOLDER,
    MOST_TOKENS,
    TICKET_FILE,
    BadTokenRequest,
    token_file,
    wants_ticket,
)
from condor_actors.cores.starter import job_run as jr
from condor_actors.machine.containers.checked_places import BY_NAME
from condor_actors.machine.run.job_secrets import FRESH, leave_secrets, remove_secrets, write_fresh
from condor_actors.machine.run.launch import Ended, LaunchPlan
from condor_actors.machine.run.process_tree import MARK
from condor_actors.machine.run.sandbox import Sandbox
from condor_actors.messages.codes import HoldCode
from condor_actors.messages.credentials import FetchRunTokens
from condor_actors.messages.credentials import RunTokens as Brought
from condor_actors.messages.envelope import Delivery, Refused

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["TIMER", "RunTokens"]

TIMER = "tokens"
VARIABLE, TICKET_VARIABLE = "_CONDOR_CREDS", "KRB5CCNAME"
ANSWER_S = 120.0
AGAIN_S = 5.0
"""After no answer."""
REFUSED_AGAIN_S = 30.0
"""After a refusal, of a job that runs: its owner may store another credential."""
PATIENCE_S = 600.0
"""How long a run that has not begun waits for a submit machine that cannot say now."""
SHORTEST_S = 0.5


class RunTokens:
    """Those of one run.

    Args:
        starter: whose run it is.
    """

    def __init__(self, starter: Starter) -> None:
        self._starter = starter
        job = ClassAd.from_bytes(starter.job_ad) if may_want_tokens(starter.job_ad) else ClassAd()
        self._wants_ticket = wants_ticket(job)
        self.are_wanted = self._wants_ticket or bool(job.get_str(SERVICES))
        self._files: dict[str, bytes] = {}
        self._then: Callable[[], None] | None = None
        self._since_s = 0.0
        self._moves = self._left = False

    # ---- before the job begins

    def bring(self, then: Callable[[], None]) -> None:
        """Get them, and go on; a job that cannot have them is held."""
        if not self.are_wanted:
            then()
            return
        self._then = then
        self._since_s = self._starter.context.now_s()
        self._ask()

    def leave(self, sandbox: Sandbox) -> None:
        """In a thread, before the scratch directory is the job's: write the files.

        Raises:
            OSError: the job has brought something of the folder's name, or there is no room.
        """
        if not self.are_wanted:
            return
        if self._left:  # it goes on after a checkpoint of its own
            remove_secrets(sandbox, FOLDER)
        self._left = True
        leave_secrets(sandbox, FOLDER, self._files)

    def remove(self, sandbox: Sandbox) -> None:
        """In a thread, when none of its processes is left: no file of theirs is among its outputs.

        Raises:
            OSError: they cannot be removed.
        """
        if self.are_wanted:
            remove_secrets(sandbox, FOLDER)

    def variables(self, environment: Mapping[str, str], scratch: str) -> dict[str, str]:
        """A job's variables with those that say where its tokens are."""
        folder, more = f"{scratch}/{FOLDER}", {}
        if self.are_wanted:
            more[VARIABLE] = folder
        if self._wants_ticket:
            more[TICKET_VARIABLE] = f"FILE:{folder}/{TICKET_FILE}"
        return {**environment, **more}

    # ---- turns

    def timer(self) -> None:
        """There may be newer ones, or an answer this time."""
        starter = self._starter
        if self._then is not None:
            if starter.core.state is jr.StarterState.PREPARING:
                self._ask()
        elif starter.core.state is jr.StarterState.RUNNING and not starter.core.suspended and not self._moves:
            self._ask()
        elif starter.core.state in (jr.StarterState.STARTING, jr.StarterState.PREPARING, *jr.ALIVE):
            starter.context.set_timer(TIMER, AGAIN_S)

    def _ask(self) -> None:
        starter = self._starter
        if not starter.core.connected:
            self._later("the shadow of the run is away")
            return
        starter.context.ask(starter.shadow, FetchRunTokens(run_id=starter.run_id), timeout_s=ANSWER_S,
                            then=self._answered)

    def _answered(self, answer: Delivery) -> None:
        message: Any = answer.message
        if isinstance(message, Brought):
            try:
                if len(message.tokens) > MOST_TOKENS:
                    raise BadTokenRequest(f"{len(message.tokens)} tokens for one job are too many")
                files = {token_file(each): each.token for each in message.tokens}
            except BadTokenRequest as error:
                self._refused(str(error))
                return
            self._came(files, message.renew_after_s)
        elif isinstance(message, Refused) and message.code not in ("busy", "internal"):
            self._refused(message.text)
        else:
            self._later(getattr(message, "text", "") or getattr(message, "reason", ""))

    def _came(self, files: dict[str, bytes], renew_after_s: float) -> None:
        starter = self._starter
        self._files = files
        if renew_after_s > 0:
            starter.context.set_timer(TIMER, max(renew_after_s, SHORTEST_S))
        then, self._then = self._then, None
        if then is not None:
            if starter.core.state is jr.StarterState.PREPARING:
                then()
        elif starter.core.state is jr.StarterState.RUNNING and starter.sandbox is not None and not self._moves:
            sandbox = starter.sandbox
            self._moves = True
            work = starter.held.in_thread(lambda: write_fresh(sandbox, FOLDER, files))
            starter.context.defer_to_turn(work, lambda result: self._written(result, files))

    def _refused(self, reason: str) -> None:
        """The job cannot have them: one that has not begun is held."""
        starter = self._starter
        if self._then is None:
            self._say(f"no newer tokens: {reason}")
            starter.context.set_timer(TIMER, REFUSED_AGAIN_S)
        elif starter.core.state is jr.StarterState.PREPARING:
            self._then = None
            starter.decide(jr.PrepareFailed(f"The job's tokens cannot be had: {reason}", HoldCode.CORRUPTED_CREDENTIAL))

    def _later(self, reason: str) -> None:
        """Nobody can say now."""
        starter = self._starter
        is_late = starter.context.now_s() - self._since_s > PATIENCE_S
        if self._then is not None and is_late and starter.core.state is jr.StarterState.PREPARING:
            self._then = None
            starter.decide(jr.PrepareFailed(f"the job's tokens cannot be had now: {reason}"))
        else:
            self._say(f"tokens later: {reason}")
            starter.context.set_timer(TIMER, AGAIN_S)

    # ---- while the job runs

    def _written(self, result: Any, files: Mapping[str, bytes]) -> None:
        starter = self._starter
        try:
            if isinstance(result, Failure):
                result.trap(OSError)
                result.raiseException()
            if starter.core.state is not jr.StarterState.RUNNING or starter.sandbox is None:
                self._moves = False
                return
            self._move(f"{starter.sandbox.path}/{FOLDER}", sorted(files))
        except OSError as error:
            self._moved(f"{error.filename or ''}: {error.strerror}")

    def _move(self, folder: str, names: list[str]) -> None:
        """Start the program that renames the new files into their places.

        Raises:
            OSError: it cannot be started.
        """
        starter = self._starter
        edges, claim, null, fresh = starter.edges, starter.claim, starter.edges.host.null, f"{folder}/{FRESH}"
        plan = LaunchPlan(
            # From where it is, and to what holds that: no name that the job could lead elsewhere meanwhile, not
            # even to where it begins, for it is not shut in as the job is.
            program=shutil.which("mv") or "/bin/mv", arguments=("-f", "-t", "..", "--", *names),
            directory=fresh, checked={fresh: BY_NAME},
            environment={MARK: f"{edges.root.path}:{starter.run_id}"},
            stdin=null, stdout=null, stderr=null, account=starter.account, limits={"core": "0"},
            cgroups=claim.cgroup.directories if claim.cgroup is not None else ())
        told = starter.context.as_turn(self._moved)

        def ended(how: Ended) -> None:
            told("" if how.exit_code == 0 and how.exit_signal < 0 else "they could not be renamed")

        edges.launcher.launch(plan, lambda: None, lambda failure: told(failure.reason), ended)

    def _moved(self, problem: str) -> None:
        self._moves = False
        if problem:
            self._say(f"the job's tokens were not renewed: {problem}")
            self._starter.context.set_timer(TIMER, REFUSED_AGAIN_S)
        else:
            self._say("the job's tokens were renewed")

    def _say(self, text: str) -> None:
        self._starter.run_log.say(text, self._starter.context.now_s())
