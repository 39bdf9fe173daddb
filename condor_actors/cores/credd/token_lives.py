"""The access tokens that refresh tokens stand for: asked for when a job wants one, renewed at half of their life.

Theory: a token is what a service gave for one credential, one list of scopes and one audience.  It is kept in memory
alone.  At half of its life it is renewed if anyone has had it, and forgotten otherwise: so a token lives as long as
jobs use it.  A Kerberos ticket, which cannot be had anew, is renewed whether anyone has had it or not.  Who asks while
a token is renewed waits for the new one; when the service cannot be reached, the old one counts until its end.  One
question at a time is under way for a credential, since its answer may replace the refresh token.

=========  ============  ===========  =======================  ===================  ==================
event      none          asking       good                     renewing             broken
=========  ============  ===========  =======================  ===================  ==================
wanted     ask: asking   it waits     it is given              it waits             refused, with why
received   –             good: given  –                        good: given          –
failed     –             broken       –                        good until its end   –
due        –             –            renewing, or forgotten   –                    none, or asking
=========  ============  ===========  =======================  ===================  ==================
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable

import attrs

from condor_actors.cores.credd.credentials import Name
from condor_actors.cores.state_table import InvariantBroken, ignore, total_table
from condor_actors.messages.credentials import KRB

__all__ = ["MOST_OF_CREDENTIAL", "TABLE", "AskService", "Failed", "Received", "Settled", "State", "TokenDue",
           "TokenLives", "Variant", "WakeAt", "Wanted"]

UNKNOWN_LIFE_S = 3600.0
"""How long a token is taken to live whose service does not say."""
AGAIN_S = 10.0
"""After which a service that failed is asked again, at the earliest."""
SHORTEST_S = 1.0
MOST_OF_CREDENTIAL = 100
"""Tokens of one credential, with other scopes or for others."""


class State(enum.Enum):
    """What there is of a token."""

    NONE = "none"
    ASKING = "asking"
    GOOD = "good"
    RENEWING = "renewing"
    BROKEN = "broken"


@attrs.frozen(order=True)
class Variant:
    """Which token: of which credential, with which scopes, for whom; empty: as the service has it."""

    name: Name
    scopes: str
    audience: str


@attrs.frozen
class Wanted:
    """A job wants it."""


@attrs.frozen
class Received:
    """The service gave it; ``life_s`` 0: for how long it does not say."""

    token: str = attrs.field(repr=False)
    life_s: float


@attrs.frozen
class Failed:
    """The service gave none; ``is_final``: it will give none for this refresh token."""

    why: str
    is_final: bool


@attrs.frozen
class TokenDue:
    """Half of its life, or a pause after a failure, is over."""


Event = Wanted | Received | Failed | TokenDue


@attrs.frozen
class AskService:
    """Effect: ask for a token; the answer names the number."""

    variant: Variant
    number: int


@attrs.frozen
class Settled:
    """Effect: there is an answer for those who wait for it."""

    variant: Variant


@attrs.frozen
class WakeAt:
    """Effect: say `TokenDue` at that time, seconds since 1970."""

    variant: Variant
    at_s: float


Effect = AskService | Settled | WakeAt


@attrs.define
class Life:
    """One token.

    Attributes:
        state: see the table.
        token: empty: there is none.
        got_s, ends_s: seconds since 1970.
        is_used: whether anyone has had it since it came.
        why: there is none.
        is_final: the refresh token is worth nothing; a new one must be stored.
        number: of the question under way; 0: none.
    """

    variant: Variant
    state: State = State.NONE
    token: str = attrs.field(default="", repr=False)
    got_s: float = 0.0
    ends_s: float = 0.0
    is_used: bool = False
    why: str = ""
    is_final: bool = False
    number: int = 0
    due_s: float = 0.0

    @property
    def is_kept(self) -> bool:
        """Whether it is renewed without anyone having had it: a ticket that has ended cannot be renewed."""
        return self.variant.name.service == KRB

    @property
    def renew_s(self) -> float:
        """When it is renewed."""
        return self.got_s + max((self.ends_s - self.got_s) / 2, SHORTEST_S)


class TokenLives:
    """All tokens of a daemon; effects are returned by every method that changes something."""

    def __init__(self) -> None:
        self.lives: dict[Variant, Life] = {}
        self._of: dict[Name, set[Variant]] = {}
        self._queues: dict[Name, deque[Variant]] = {}
        self._numbers = 0

    def has_room(self, variant: Variant) -> bool:
        """Whether a token may be wanted: there is it already, or there are not too many of its credential.

        Each is kept for hours and asked for again, and its scopes are any words of its user's.
        """
        return variant in self.lives or len(self._of.get(variant.name, ())) < MOST_OF_CREDENTIAL

    def want(self, variant: Variant, now_s: float) -> tuple[Effect, ...]:
        """A job wants a token for which there is room; `Settled` says that there is an answer."""
        life = self.lives.setdefault(variant, Life(variant))
        self._of.setdefault(variant.name, set()).add(variant)
        return self._handle(life, Wanted(), now_s)

    def _drop(self, variant: Variant) -> None:
        del self.lives[variant]
        others = self._of[variant.name]
        others.discard(variant)
        if not others:
            del self._of[variant.name]

    def answered(self, variant: Variant, number: int, event: Received | Failed, now_s: float) -> tuple[Effect, ...]:
        """What a service has said to a question; an answer to a question about an older credential means nothing."""
        following = self._next(variant.name, number)
        life = self.lives.get(variant)
        if life is None or life.number != number:
            return following
        life.number = 0
        return (*self._handle(life, event, now_s), *following)

    def due(self, variant: Variant, now_s: float) -> tuple[Effect, ...]:
        """A timer of `WakeAt` has run out."""
        life = self.lives.get(variant)
        if life is None:
            return ()
        if now_s < life.due_s:
            return (WakeAt(variant, life.due_s),)
        return self._handle(life, TokenDue(), now_s)

    def forget(self, name: Name) -> tuple[Effect, ...]:
        """The credential was replaced or deleted: its tokens are gone, and those who wait are told."""
        gone = [variant for variant in self.lives if variant.name == name]
        for variant in gone:
            self._drop(variant)
        queue = self._queues.get(name)
        if queue is not None:
            while len(queue) > 1:  # the first is under way
                queue.pop()
        return tuple(Settled(variant) for variant in gone)

    def validate(self) -> None:
        """What always holds.

        Raises:
            InvariantBroken: it does not.
        """
        if {variant for variants in self._of.values() for variant in variants} != set(self.lives):
            raise InvariantBroken("the tokens of credentials are not all tokens")
        for variant, life in self.lives.items():
            asks = life.state in (State.ASKING, State.RENEWING)
            if asks != (life.number > 0):
                raise InvariantBroken(f"{variant}: {life.state.value} with question {life.number}")
            if asks and variant not in self._queues.get(variant.name, ()):
                raise InvariantBroken(f"{variant}: its question is not under way")
            if bool(life.token) != (life.state in (State.GOOD, State.RENEWING)):
                raise InvariantBroken(f"{variant}: {life.state.value} and its token do not fit")

    # ---- the table

    def _handle(self, life: Life, event: Event, now_s: float) -> tuple[Effect, ...]:
        return TABLE[life.state, type(event)](self, life, event, now_s)

    def ask(self, life: Life, event: Event, now_s: float) -> tuple[Effect, ...]:
        """Ask the service, after what is under way for the same credential."""
        life.state = State.RENEWING if life.token else State.ASKING
        life.is_used = isinstance(event, Wanted)
        self._numbers += 1
        life.number = self._numbers
        queue = self._queues.setdefault(life.variant.name, deque())
        queue.append(life.variant)
        return (AskService(life.variant, life.number),) if len(queue) == 1 else ()

    def use(self, life: Life, event: Event, now_s: float) -> tuple[Effect, ...]:
        """It is wanted: there is an answer, or there will be one."""
        life.is_used = True
        return () if life.number else (Settled(life.variant),)

    def keep(self, life: Life, event: Event, now_s: float) -> tuple[Effect, ...]:
        """A token came."""
        assert isinstance(event, Received)
        life.state, life.token, life.got_s, life.why, life.is_final = State.GOOD, event.token, now_s, "", False
        life.ends_s = now_s + (event.life_s or UNKNOWN_LIFE_S)
        return (Settled(life.variant), self._wake(life, life.renew_s))

    def fail(self, life: Life, event: Event, now_s: float) -> tuple[Effect, ...]:
        """None came; an old one counts until its end."""
        assert isinstance(event, Failed)
        life.why, life.is_final = event.why, event.is_final
        if life.token and now_s < life.ends_s and not event.is_final:
            life.state = State.GOOD
            life.is_used = True
            left_s = life.ends_s - now_s
            return (Settled(life.variant), self._wake(life, now_s + max(min(AGAIN_S, left_s / 2), SHORTEST_S)))
        life.state, life.token = State.BROKEN, ""
        return (Settled(life.variant), self._wake(life, now_s + AGAIN_S))

    def grow_old(self, life: Life, event: Event, now_s: float) -> tuple[Effect, ...]:
        """Half of its life is over."""
        if life.is_used or life.is_kept:
            return self.ask(life, event, now_s)
        self._drop(life.variant)
        return ()

    def recover(self, life: Life, event: Event, now_s: float) -> tuple[Effect, ...]:
        """The service may be asked again."""
        if life.is_kept and not life.is_final:
            return self.ask(life, event, now_s)
        self._drop(life.variant)
        return ()

    def _wake(self, life: Life, at_s: float) -> WakeAt:
        life.due_s = at_s
        return WakeAt(life.variant, at_s)

    def _next(self, name: Name, number: int) -> tuple[Effect, ...]:
        """The question under way for a credential is answered: the next one begins."""
        queue = self._queues.get(name)
        if not queue:
            return ()
        queue.popleft()
        while queue:
            life = self.lives.get(queue[0])
            if life is not None and life.number:
                return (AskService(life.variant, life.number),)
            queue.popleft()
        del self._queues[name]
        return ()


_NOT_ASKED = ignore("nobody asked the service")
_ANSWERED = ignore("the question was answered before")
_UNDER_WAY = ignore("the service is being asked")

Step = Callable[[TokenLives, Life, Event, float], tuple[Effect, ...]]
TABLE: dict[tuple[State, type], Step | ignore] = total_table("a token", State, {
    Wanted: (TokenLives.ask, TokenLives.use, TokenLives.use, TokenLives.use, TokenLives.use),
    Received: (_NOT_ASKED, TokenLives.keep, _ANSWERED, TokenLives.keep, _ANSWERED),
    Failed: (_NOT_ASKED, TokenLives.fail, _ANSWERED, TokenLives.fail, _ANSWERED),
    TokenDue: (ignore("there is no token"), _UNDER_WAY, TokenLives.grow_old, _UNDER_WAY, TokenLives.recover),
})
