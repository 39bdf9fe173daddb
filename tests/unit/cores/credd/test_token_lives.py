"""Access tokens in memory: one question at a time for a credential, renewal at half of their life, no holes."""

from __future__ import annotations

from random import Random

import pytest

from condor_actors.cores.credd.credentials import Name
from condor_actors.cores.credd.token_lives import (
    MOST_OF_CREDENTIAL,
    TABLE,
    AskService,
    Failed,
    Received,
    Settled,
    State,
    TokenLives,
    Variant,
    WakeAt,
)
from condor_actors.cores.state_table import ignore

BOX = Name("alice@dom", "box", "")
READ, WRITE = Variant(BOX, "read", ""), Variant(BOX, "write", "")


def received(lives: TokenLives, variant: Variant, now_s: float, life_s: float = 100.0) -> tuple[object, ...]:
    return lives.answered(variant, lives.lives[variant].number, Received(f"token-at-{now_s:g}", life_s), now_s)


def test_a_token_is_asked_for_once_and_given_to_all_who_wait() -> None:
    lives = TokenLives()
    assert lives.want(READ, 0.0) == (AskService(READ, 1),)
    assert lives.want(READ, 1.0) == ()
    assert received(lives, READ, 2.0) == (Settled(READ), WakeAt(READ, 52.0))
    assert lives.want(READ, 3.0) == (Settled(READ),)
    assert lives.lives[READ].token == "token-at-2"


def test_it_is_renewed_at_half_of_its_life_if_it_was_used_and_forgotten_otherwise() -> None:
    lives = TokenLives()
    lives.want(READ, 0.0)
    received(lives, READ, 0.0)
    assert lives.due(READ, 49.0) == (WakeAt(READ, 50.0),)
    assert lives.due(READ, 50.0) == (AskService(READ, 2),)
    assert lives.lives[READ].state is State.RENEWING
    assert lives.want(READ, 51.0) == ()
    assert received(lives, READ, 52.0) == (Settled(READ), WakeAt(READ, 102.0))
    lives.due(READ, 102.0)  # it was wanted at 51
    received(lives, READ, 103.0)
    assert lives.due(READ, 153.0) == ()
    assert READ not in lives.lives


def test_while_its_service_is_away_the_old_one_counts_until_its_end() -> None:
    lives = TokenLives()
    lives.want(READ, 0.0)
    received(lives, READ, 0.0)
    lives.due(READ, 50.0)
    away = Failed("away", is_final=False)
    assert lives.answered(READ, 2, away, 60.0) == (Settled(READ), WakeAt(READ, 70.0))
    assert lives.want(READ, 61.0) == (Settled(READ),)
    assert lives.lives[READ].token == "token-at-0"
    assert lives.due(READ, 70.0) == (AskService(READ, 3),)
    assert lives.answered(READ, 3, away, 101.0) == (Settled(READ), WakeAt(READ, 111.0))
    assert (lives.lives[READ].state, lives.lives[READ].token, lives.lives[READ].why) == (State.BROKEN, "", "away")
    assert lives.want(READ, 105.0) == (Settled(READ),)
    assert lives.due(READ, 111.0) == ()
    assert lives.want(READ, 112.0) == (AskService(READ, 4),)


def test_one_credential_has_so_many_tokens_and_no_more() -> None:
    """Scopes are any words of a user's; what is forgotten makes room again."""
    lives = TokenLives()
    variants = [Variant(BOX, f"scope{number}", "") for number in range(MOST_OF_CREDENTIAL + 1)]
    for variant in variants[:-1]:
        assert lives.has_room(variant)
        lives.want(variant, 0.0)
    assert lives.has_room(variants[0])
    assert not lives.has_room(variants[-1])
    assert lives.has_room(Variant(Name("bob@dom", "box", ""), "read", ""))
    lives.validate()
    received(lives, variants[0], 1.0)
    lives.lives[variants[0]].is_used = False
    lives.due(variants[0], 51.0)
    assert lives.has_room(variants[-1])
    lives.forget(BOX)
    assert not lives.lives
    lives.validate()


def test_a_refresh_token_that_counts_no_longer_takes_the_access_token_along() -> None:
    lives = TokenLives()
    lives.want(READ, 0.0)
    received(lives, READ, 0.0)
    lives.due(READ, 50.0)
    lives.answered(READ, 2, Failed("revoked", is_final=True), 51.0)
    assert lives.lives[READ].state is State.BROKEN


def test_a_ticket_is_renewed_whether_it_was_used_or_not() -> None:
    lives, ticket = TokenLives(), Variant(Name("alice@dom", "krb", ""), "", "")
    lives.want(ticket, 0.0)
    received(lives, ticket, 0.0)
    assert lives.due(ticket, 50.0) == (AskService(ticket, 2),)
    received(lives, ticket, 50.0)
    assert lives.due(ticket, 100.0) == (AskService(ticket, 3),)
    lives.answered(ticket, 3, Failed("no answer", is_final=False), 200.0)
    assert lives.lives[ticket].state is State.BROKEN
    assert lives.due(ticket, 210.0) == (AskService(ticket, 4),)
    lives.answered(ticket, 4, Failed("it has run out", is_final=True), 211.0)
    assert lives.due(ticket, 221.0) == ()
    assert not lives.lives


def test_questions_about_one_credential_are_asked_one_after_the_other() -> None:
    lives = TokenLives()
    assert lives.want(READ, 0.0) == (AskService(READ, 1),)
    assert lives.want(WRITE, 0.0) == ()
    other = Variant(Name("bob@dom", "box", ""), "", "")
    assert lives.want(other, 0.0) == (AskService(other, 3),)
    assert received(lives, READ, 1.0) == (Settled(READ), WakeAt(READ, 51.0), AskService(WRITE, 2))


def test_an_answer_about_an_older_credential_means_nothing() -> None:
    lives = TokenLives()
    lives.want(READ, 0.0)
    assert lives.forget(BOX) == (Settled(READ),)
    assert lives.want(READ, 1.0) == ()  # after the one that is under way
    assert lives.answered(READ, 1, Received("of the old one", 9.0), 2.0) == (AskService(READ, 2),)
    assert lives.lives[READ].token == ""
    received(lives, READ, 3.0)
    assert lives.lives[READ].token == "token-at-3"


def test_a_service_that_does_not_say_how_long_is_asked_again_in_half_an_hour() -> None:
    lives = TokenLives()
    lives.want(READ, 0.0)
    assert received(lives, READ, 0.0, life_s=0.0) == (Settled(READ), WakeAt(READ, 1800.0))


@pytest.mark.parametrize("seed", range(40))
def test_invariants_hold_and_every_want_settles(seed: int) -> None:
    """Any order of events: the invariants hold; once all questions are answered nothing waits."""
    random, lives, now_s = Random(seed), TokenLives(), 0.0
    asked: list[AskService] = []
    variants = [Variant(Name(user, "box", ""), scopes, "") for user in "ab" for scopes in ("x", "y")]
    variants.append(Variant(Name("a", "krb", ""), "", ""))
    for _ in range(300):
        now_s += random.choice((0.0, 1.0, 30.0, 200.0))
        choice, variant = random.randrange(4), random.choice(variants)
        if choice == 0:
            effects = lives.want(variant, now_s)
        elif choice == 1:
            effects = lives.due(variant, now_s)
        elif choice == 2 and random.random() < 0.2:
            effects = lives.forget(variant.name)
        elif asked:
            question = asked.pop(random.randrange(len(asked)))
            answer = random.choice((Received("t", random.choice((0.0, 5.0, 60.0))), Failed("no", is_final=False),
                                    Failed("never", is_final=True)))
            effects = lives.answered(question.variant, question.number, answer, now_s)
        else:
            effects = ()
        asked += [effect for effect in effects if isinstance(effect, AskService)]
        lives.validate()
        assert len({question.variant.name for question in asked}) == len(asked)
    while asked:
        question = asked.pop()
        effects = lives.answered(question.variant, question.number, Received("t", 60.0), now_s)
        asked += [effect for effect in effects if isinstance(effect, AskService)]
    assert not [life for life in lives.lives.values() if life.number]


def test_no_cell_changes_a_life_that_it_ignores() -> None:
    assert {state for state, _ in TABLE} == set(State)
    assert all(cell.why for cell in TABLE.values() if isinstance(cell, ignore))
