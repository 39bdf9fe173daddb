"""The queue's rows: sorted, searched, counted as a plain list would be; nothing that strangers may not see."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from condor_actors.classads import ClassAd
from condor_actors.cores.schedd.job_attributes import Hand, attribute
from condor_actors.cores.web import rows, story
from condor_actors.cores.web.rows import COLUMNS, QueueRows, View, job_row


def job(cluster: int, proc: int = 0, status: int = 1, **others: object) -> bytes:
    ad = ClassAd({"ClusterId": cluster, "ProcId": proc, "JobStatus": status, "Owner": "ann"})
    for name, value in others.items():
        ad[name] = value
    return ad.to_bytes()


class Clock:
    """Moves by a second at each look."""

    def __init__(self, step_s: float = 0.0) -> None:
        self.now_s = 0.0
        self.step_s = step_s

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


def ids(queue: QueueRows, view: View, offset: int = 0, limit: int = 50) -> list[str]:
    return [f"{row[1]}.{row[2]}" for row in queue.page(view, offset, limit).rows]


def test_everything_asked_for_may_be_seen_by_strangers() -> None:
    assert {name for name in (*rows.ATTRIBUTES, *story.SHOWN) if attribute(name).seen_by is not Hand.ALL} == set()


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3), st.integers(1, 7), st.integers(-3, 3))))
def test_counts_and_order_are_those_of_the_jobs(jobs: list[tuple[int, int, int, int]]) -> None:
    queue = QueueRows(Clock())
    real = {}
    for cluster, proc, status, prio in jobs:
        queue.put("s", [job(cluster, proc, status, JobPrio=prio)])
        real[cluster, proc] = (prio, rows.STATES[status])
    expected = [f"{c}.{p}" for c, p in sorted(real, key=lambda key: (real[key][0], key))]
    assert ids(queue, View(sort="priority")) == expected
    assert queue.counts == {state: sum(each[1] == state for each in real.values())
                            for state in {each[1] for each in real.values()}}
    queue.take_out("s", [(1, -1), (2, 0)])
    assert ids(queue, View()) == [f"{c}.{p}" for c, p in sorted(real) if c != 1 and (c, p) != (2, 0)]


def test_a_search_finds_numbers_owners_hosts_batches_and_commands_only() -> None:
    queue = QueueRows(Clock())
    queue.put("s", [job(12, 3, JobBatchName="Nightly", Cmd="/x/secret/run.sh", HoldReason="needle", Args="needle")])
    for text, found in (("12.3", 1), ("NIGHT", 1), ("run.sh", 1), ("ann", 1), ("needle", 0), ("secret", 0)):
        assert queue.page(View(search=text)).total == found, text


def test_a_page_beyond_the_end_is_the_last_one() -> None:
    queue = QueueRows(Clock())
    queue.put("s", [job(number) for number in range(1, 11)])
    page = queue.page(View(), offset=500, limit=4)
    assert (page.offset, [row[1] for row in page.rows], page.total) == (8, [9, 10], 10)
    with pytest.raises(ValueError, match="no column"):
        queue.page(View(sort="Args"))


def test_an_expensive_view_is_not_made_anew_at_each_change() -> None:
    clock = Clock(1.0)  # each view seems to take a second
    queue = QueueRows(clock)
    queue.put("s", [job(1)])
    assert ids(queue, View()) == ["1.0"]
    queue.put("s", [job(2)])
    assert ids(queue, View()) == ["1.0"]
    clock.now_s += 1.0 / rows.SHARE
    assert ids(queue, View()) == ["1.0", "2.0"]


@given(st.dictionaries(st.sampled_from(rows.ATTRIBUTES), st.sampled_from(
    ["inf", 'real("INF")', 'real("NaN")', "{1,2}", "[a=1]", "error", "undefined", '"x"', "-1",
     "9223372036854775807", "1e308"])))
def test_whatever_an_ad_says_a_row_is_json_of_its_kinds(values: dict[str, str]) -> None:
    ad = ClassAd({"ClusterId": 1, "ProcId": 0})
    for name, text in values.items():
        ad.insert_text(name, text)
    row = job_row("s", ad)
    assert len(row) == len(COLUMNS)
    json.dumps(row, allow_nan=False)
    json.dumps(story.job_story("s", ad, (), False), allow_nan=False)
