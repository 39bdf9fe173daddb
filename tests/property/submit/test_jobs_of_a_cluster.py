"""Jobs made from what changed are the jobs that are made whole."""

from __future__ import annotations

from itertools import count
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from condor_actors.classads import ClassAd
from condor_actors.cores.argument_quoting import join_raw, split_raw
from condor_actors.submit import Description
from condor_actors.submit.maker import Maker
from condor_actors.submit.quoting import parse_arguments
from tests.unit.submit.worlds import World

COMMANDS = (
    "arguments = a $(x) b", "output = out.$(Process)", "error = $(y).err", "log = /tmp/$(x).log",
    "request_memory = $(n)MB", "request_cpus = $(n)", "+Extra = $(n) + 1", "transfer_input_files = in.$(x), common",
    "environment = X=$(x)", "requirements = Memory > $(n)", "priority = $(Process)", "hold = $(h)", "rank = $(n)",
    "initialdir = /home/alice", "max_retries = 3", "notify_user = $(y)", "should_transfer_files = YES",
    "concurrency_limits = lic:$(n)", "stream_output = $(h)", "deferral_time = $(n)", "leave_in_queue = $(h)",
    "accounting_group = g$(x)", "universe = vanilla", "request_disk = $(z)", "kill_sig = SIGTERM", "input = $(i)",
)  # fmt: skip
WORDS = st.text(alphabet="abc123", min_size=1, max_size=3)


@st.composite
def descriptions(draw: st.DrawFn) -> str:
    commands = draw(st.lists(st.sampled_from(COMMANDS), unique=True, max_size=8))
    rows = draw(
        st.lists(
            st.tuples(WORDS, st.integers(1, 99), st.sampled_from(["true", "false"]), WORDS), min_size=1, max_size=4
        )
    )
    lines = ["executable = /bin/true", *commands, "y = y$(x)", "z = 2GB", "i = /dev/null"]
    listed = "\n".join(f"{x} {n} {h} {w}" for x, n, h, w in rows)
    return "\n".join(lines) + f"\nqueue {draw(st.integers(1, 3))} x,n,h,w from (\n{listed}\n)\n"


def _jobs(text: str) -> list[str]:
    numbers = count(1)
    out = []
    for cluster in Description(World().environment(), lambda: next(numbers)).read(text, "x"):
        common = ClassAd.from_bytes(cluster.ad)
        for differs in cluster.procs:
            ad = ClassAd.from_bytes(differs)
            ad.parent = common
            flat = ad.flat()
            out.append("\n".join(sorted(line for line in flat.to_text().splitlines() if "= undefined" not in line)))
    return out


@settings(max_examples=150, deadline=None)
@given(descriptions())
def test_making_again_what_changed_equals_making_whole(text: str) -> None:
    quick = _jobs(text)
    with mock.patch.object(Maker, "next_job", return_value=None), mock.patch.object(Maker, "unchanging", False):
        whole = _jobs(text)
    assert quick == whole


@given(st.lists(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8), max_size=6))
def test_words_survive_their_quoting(words: list[str]) -> None:
    assert split_raw(join_raw(words)) == [*words]
    raw = join_raw(words).replace('"', '""')
    assert parse_arguments(f'"{raw}"') == ("Arguments", join_raw(words))
