"""The history of availability, and what choosing by it is worth to long jobs (H88 section 5.1)."""

from __future__ import annotations

from random import Random

from condor_actors.cores.startd.availability import Availability


def test_intervals_are_measured_and_remembered() -> None:
    history = Availability()
    assert history.note(True, 1000.0) is False
    assert history.expected_s(1600.0) == 600.0
    assert history.note(False, 4600.0) is True
    assert history.note(False, 4700.0) is False
    history.note(True, 5000.0)
    assert history.note(False, 5030.0) is False, "half a minute is no availability"
    history.note(True, 6000.0)
    assert history.attributes(6010.0) == {
        "AvailableSince": 6000, "AvailabilityIntervals": 1, "AvailabilityLast": 3600, "AvailabilityMean": 3600,
        "ExpectedAvailability": 3600}
    assert Availability.from_plain(history.to_plain()).lengths_s == [3600.0]
    assert history.expected_s(6000.0 + 7200.0) == 7200.0


def test_the_latest_interval_weighs_most() -> None:
    assert Availability(lengths_s=[100.0, 1000.0]).mean_s == 550.0
    assert Availability(lengths_s=[1000.0, 100.0]).mean_s == 550.0
    assert Availability(lengths_s=[1000.0, 1000.0, 100.0]).mean_s == 550.0


def evictions(choose_by_history: bool, seed: int) -> int:
    """How often long jobs have to move in a year, on machines whose intervals resemble one another."""
    random = Random(seed)
    machines = [(Availability(), random.choice((0.5, 1.0, 8.0))) for _ in range(20)]
    moves = 0
    for _ in range(400):
        left_h = 6.0
        while left_h > 0:
            lengths = [max(0.02, random.expovariate(1.0 / mean_h)) for _, mean_h in machines]
            best = max(range(len(machines)), key=lambda n: (machines[n][0].mean_s or 0.0, n)) \
                if choose_by_history else random.randrange(len(machines))
            for (history, _), length_h in zip(machines, lengths, strict=True):
                history.note(True, 0.0)
                history.note(False, length_h * 3600.0)
            moves += lengths[best] < left_h
            left_h -= lengths[best]
    return moves


def test_choosing_by_history_spares_long_jobs_most_of_their_moves() -> None:
    for seed in range(5):
        assert evictions(True, seed) < 0.6 * evictions(False, seed)
