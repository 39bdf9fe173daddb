"""Requests and answers of a channel are followed however they are cut."""

from __future__ import annotations

import random
import struct

from condor_actors.machine.standard.channel_socket import OP_EXIT, OP_FORK, AnswerFollower, RequestFollower


def request(call: int, identifier: int, payload: bytes = b"", first: int = 0) -> bytes:
    return struct.pack("<IHH6q", len(payload), identifier, call, first, 0, 0, 0, 0, 0) + payload


def answer(identifier: int, result: int, payload: bytes = b"") -> bytes:
    return struct.pack("<IHHq", len(payload), identifier, 0, result) + payload


def cut(data: bytes, seed: int) -> list[bytes]:
    chance = random.Random(seed)
    pieces = []
    while data:
        size = chance.choice((1, 3, 15, 16, 17, 55, 56, 57, 300, 5000))
        pieces.append(data[:size])
        data = data[size:]
    return pieces


def test_requests_of_interest_are_found_at_every_cut() -> None:
    chance = random.Random(1)
    sent = []
    for number in range(300):
        call = chance.choice((0, 1, 257, OP_FORK, OP_EXIT, 1003))
        sent.append((call, number, request(call, number, chance.randbytes(chance.choice((0, 0, 5, 700))), number)))
    whole = b"".join(data for _, _, data in sent)
    for seed in range(40):
        follower = RequestFollower(frozenset({OP_FORK, OP_EXIT}))
        parts = [part for piece in cut(whole, seed) for part in follower.feed(piece)]
        assert b"".join(data for _, data in parts) == whole
        found = [(each.call, each.identifier, each.arguments[0]) for each, _ in parts if each is not None]
        assert found == [(call, number, number) for call, number, _ in sent if call in (OP_FORK, OP_EXIT)]
        for each, data in parts:
            if each is not None:  # the part begins with the request itself
                assert struct.unpack_from("<IHH", data)[1:] == (each.identifier, each.call)


def test_an_answer_of_interest_begins_a_part_of_its_own() -> None:
    chance = random.Random(2)
    sent = [(number % 50, chance.randrange(-5, 5), chance.randbytes(chance.choice((0, 0, 9, 900))))
            for number in range(400)]
    whole = b"".join(answer(*each) for each in sent)
    for seed in range(40):
        follower = AnswerFollower()
        follower.expected = {3: OP_FORK, 47: OP_EXIT}
        parts = [part for piece in cut(whole, seed) for part in follower.feed(piece)]
        assert b"".join(data for _, _, data in parts) == whole
        found = [(call, result, struct.unpack_from("<IH", data)[1]) for call, result, data in parts if call]
        assert found == [(OP_FORK, sent[3][1], 3), (OP_EXIT, sent[47][1], 47)]
        assert not follower.expected
