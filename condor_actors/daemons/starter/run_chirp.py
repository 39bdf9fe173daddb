"""Chirp for one run: its clients, the requests to its shadow for them, and the attributes that are told later.

Theory: a :class:`~condor_actors.cores.starter.chirp_session.ChirpSession` decides for each client; what it asks goes to
the shadow in turns of the starter, a few at a time.  When no answer comes, what can be done twice is asked again, also
of another shadow, and of what cannot the client hears that nobody knows (``OFFLINE``).  Delayed attributes wait here
until the run's usage is told, and the end of the run waits for them.
"""

from __future__ import annotations

import itertools
import secrets
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from condor_actors.classads import ClassAd, ClassAdSyntaxError, parse_expression, unparse
from condor_actors.cores.chirp_protocol import Bucket, ChirpError, may_be_delayed
from condor_actors.cores.starter.chirp_session import ChirpRights, ChirpSession
from condor_actors.cores.starter.chirp_verbs import Call, Delay, HangUp, Look, Say, Step, repeatable
from condor_actors.cores.starter.gang_verbs import Meet
from condor_actors.daemons.starter.chirp_service import ChirpConnection
from condor_actors.daemons.starter.run_gang import RunGang
from condor_actors.machine.run.sandbox import Sandbox
from condor_actors.messages.envelope import Refused
from condor_actors.messages.run import ChirpCall, ChirpResult, GangResult

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["RunChirp"]

CONFIG_FILE = ".chirp.config"
VARIABLE = "_CONDOR_CHIRP_CONFIG"
GANG_VARIABLE = "_CONDOR_GANG_LIB"
"""Where condor_gang.py and condor_gang.h are."""
MOST_ASKED = 4
ANSWER_S = 60.0
PATIENCE_S = 120.0
AGAIN_S = 1.0
CALLS_PER_S, CALLS_AT_ONCE = 500.0, 1000.0
"""Of one run."""
TOOLS = str(Path(__file__).parents[2] / "libexec")
"""Where ``condor_chirp`` is that any account can run."""


@attrs.define(eq=False)
class _Asked:
    """A call under way, what to do with its answer, and since when it is wanted."""

    call: Call
    then: Callable[[ChirpResult], None]
    since_s: float


class RunChirp:
    """Chirp of one run.

    Args:
        starter: whose run it is.
    """

    def __init__(self, starter: Starter) -> None:
        self._starter = starter
        self._job = ClassAd.from_bytes(starter.job_ad)
        self._settings = starter.edges.settings.run.chirp
        self.rights = self._settings.rights_of(self._job) if _is_possible(starter) else ChirpRights()
        self._cookie = ""
        self._address = ""
        self._written = False
        self._handles = itertools.count(1)
        self._queue: deque[_Asked] = deque()
        self._asked = 0
        self._pace = Bucket(per_s=CALLS_PER_S, burst=CALLS_AT_ONCE)
        self._waiting = ClassAd()
        self._names: set[str] = set()
        self._telling = False
        self._at_end: Callable[[], None] | None = None
        self.gang = RunGang(starter)

    # ---- the job's side

    def open(self) -> None:
        """Before the job begins: let it in.

        Raises:
            OSError: there is no port.
        """
        if self.rights and not self._cookie:
            self._cookie = secrets.token_hex(32)
            self._address = self._starter.edges.chirp.open(self._cookie, self)
            if self.rights.gang:
                self.gang.join()

    def leave_address(self, sandbox: Sandbox) -> None:
        """In a thread, before the folder is the job's: write where it finds us, once.

        Raises:
            OSError: it cannot be written.
        """
        if self._address and not self._written:
            self._written = True
            sandbox.leave_secret(CONFIG_FILE, self._address.encode())

    def variables(self, environment: dict[str, str], scratch: str) -> dict[str, str]:
        """A job's variables with those that say where chirp is, and ``condor_chirp`` at the end of its PATH."""
        if not self._address:
            return environment
        found = environment | {VARIABLE: f"{scratch}/{CONFIG_FILE}"}
        if self.rights.gang and self._starter.spec.container is None:
            found[GANG_VARIABLE] = TOOLS
        if self._starter.spec.container is None and "PATH" not in self._starter.spec.environment:
            found["PATH"] = f"{environment['PATH']}:{TOOLS}" if environment.get("PATH") else TOOLS
        return found

    def connected(self, connection: ChirpConnection) -> _Client:
        """A client has shown the cookie."""
        return _Client(self._starter, self, ChirpSession(self.rights, self._handles), connection)

    def close(self) -> None:
        """The run is over."""
        cookie, self._cookie = self._cookie, ""
        self._queue.clear()
        self.gang.close()
        if cookie:
            self._starter.edges.chirp.close(cookie, self)

    # ---- the shadow's side

    def ask(self, call: Call, then: Callable[[ChirpResult], None]) -> None:
        """Have the shadow do something."""
        self._queue.append(_Asked(call, then, self._starter.context.now_s()))
        self.go_on()

    def shadow_is_back(self) -> None:
        """The shadow asks for its run, maybe another one."""
        if self.rights.gang and self._cookie:
            self.gang.shadow_is_back()
        self.go_on()

    def go_on(self) -> None:
        """Ask what waits, as far as it may be; give up what has waited too long."""
        starter = self._starter
        if self.rights.gang and self._cookie:
            self.gang.go_on()
        now_s = starter.context.now_s()
        while self._queue and self._queue[0].since_s + PATIENCE_S < now_s:
            self._queue.popleft().then(ChirpResult(value=ChirpError.OFFLINE))
        while self._queue and self._asked < MOST_ASKED and starter.core.connected:
            wait_s = 0.0 if self._pace.takes(now_s) else 1.0 / CALLS_PER_S
            if wait_s:
                starter.context.set_timer("chirp", wait_s)
                return
            self._send(self._queue.popleft())
        if self._queue and not self._asked:
            starter.context.set_timer("chirp", AGAIN_S)

    def _send(self, asked: _Asked) -> None:
        self._asked += 1
        call, starter = asked.call, self._starter
        starter.context.ask(starter.shadow, ChirpCall(
            run_id=starter.run_id, verb=call.verb, path=call.path, other=call.other, numbers=call.numbers,
            data=call.data), timeout_s=ANSWER_S, then=lambda answer: self._answered(asked, answer.message))

    def _answered(self, asked: _Asked, answer: Any) -> None:
        self._asked -= 1
        if isinstance(answer, ChirpResult):
            asked.then(answer)
        elif isinstance(answer, Refused) and answer.code not in ("busy", "internal"):
            asked.then(ChirpResult(value=ChirpError.NOT_AUTHORIZED))
        elif repeatable(asked.call) or (isinstance(answer, Refused) and answer.code == "busy"):
            self._queue.appendleft(asked)
            self._starter.context.set_timer("chirp", AGAIN_S)
            return
        else:
            asked.then(ChirpResult(value=ChirpError.OFFLINE))
        self.go_on()

    # ---- delayed attributes

    def delay(self, name: str, text: str) -> int:
        """Keep an attribute; 0, or why not."""
        settings = self._settings
        if not may_be_delayed(name, settings.delayed):
            return ChirpError.NOT_AUTHORIZED
        if name.lower() not in self._names and len(self._names) >= settings.most_delayed:
            return ChirpError.TOO_BIG
        try:
            self._waiting[name] = parse_expression(text)
        except (ClassAdSyntaxError, ValueError):
            return ChirpError.INVALID_REQUEST
        self._names.add(name.lower())
        return 0

    def look(self, name: str) -> str | None:
        """An attribute as this machine knows it."""
        found = self._waiting.expression(name) or self._job.expression(name)
        return unparse(found) if found is not None else None

    def tell_delayed(self) -> None:
        """Tell the shadow what waits."""
        if self._telling or not len(self._waiting):
            return
        self._telling = True
        told = self._waiting.copy()

        def answered(result: ChirpResult) -> None:
            self._telling = False
            if result.value < 0 and result.value not in (ChirpError.OFFLINE, ChirpError.BUSY):
                self._starter.context.log.warn("run {run}: delayed attributes {names} are refused ({code})",
                                               run=self._starter.run_id, names=", ".join(told), code=result.value)
            if result.value >= 0:
                self._job.update(told)
            if result.value not in (ChirpError.OFFLINE, ChirpError.BUSY):
                for name in told:
                    if self._waiting.expression(name) == told.expression(name):
                        del self._waiting[name]
            self._end()

        self.ask(Call("set_delayed", data=told.to_bytes()), answered)

    def before_end(self, end: Callable[[], None]) -> bool:
        """Whether the end of the run has to wait for attributes; ``end`` is called when they are told."""
        if not len(self._waiting):
            return False
        self._at_end = end
        self.tell_delayed()
        return True

    def give_up(self) -> None:
        """Nobody wants the attributes of a run that is removed."""
        self._waiting = ClassAd()
        self._end()

    def _end(self) -> None:
        if self._at_end is None:
            return
        if len(self._waiting):
            self._starter.context.set_timer("chirp", AGAIN_S)
            return
        end, self._at_end = self._at_end, None
        end()

    def timer(self) -> None:
        """A while has passed."""
        if self._at_end is not None:
            self.tell_delayed()
        self.go_on()


class _Client:
    """One client of a run; what comes of it are turns of the starter."""

    def __init__(self, starter: Starter, chirp: RunChirp, session: ChirpSession, connection: ChirpConnection) -> None:
        self._chirp, self._session, self._connection = chirp, session, connection
        as_turn = starter.context.as_turn
        self.received = as_turn(self._received)
        self.written = as_turn(self._written)
        self.lost = as_turn(self._lost)
        self._gone = False
        self._wish = 0

    def _received(self, data: bytes) -> None:
        self._perform(self._session.received(data))

    def _written(self) -> None:
        self._perform(self._session.answered(None))

    def _answered(self, result: Any) -> None:
        if not self._gone:
            self._perform(self._session.answered(result))

    def _met(self, result: Any) -> None:
        self._wish = 0
        self._answered(result)

    def _lost(self) -> None:
        self._gone = True
        if self._wish:
            self._chirp.gang.cancel(self._wish)
        for call in self._session.lost():
            self._chirp.ask(call, lambda _: None)

    def _perform(self, steps: list[Step]) -> None:
        if self._gone:
            return
        for step in steps:
            if isinstance(step, Say):
                self._connection.say(step.data)
            elif isinstance(step, Call):
                self._chirp.ask(step, self._answered)
            elif isinstance(step, Delay):
                self._answered(self._chirp.delay(step.name, step.text))
            elif isinstance(step, Look):
                self._answered(self._chirp.look(step.name))
            elif isinstance(step, Meet):
                self._wish = self._chirp.gang.ask(step.verb, step.names, step.data, self._met)
                if not self._wish:
                    self._answered(GangResult(value=ChirpError.BUSY))
            elif isinstance(step, HangUp):
                self._connection.end()
        if not self._session.has_enough:
            self._connection.go_on()


def _is_possible(starter: Starter) -> bool:
    """A job without a network does not reach the machine's loopback."""
    spec = starter.spec
    return (starter.edges.chirp.works and not spec.standard and spec.networking
            and (spec.container is None or spec.container.network))
