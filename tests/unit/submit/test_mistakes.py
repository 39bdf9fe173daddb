"""What people get wrong in a description is said with the value and the remedy."""

from __future__ import annotations

import pytest

from condor_actors.submit import SubmitError
from tests.unit.submit.worlds import World, described, jobs_of

START = "executable = /bin/true\n"


def world() -> World:
    return World(files={"/bin/true": 30_000})


@pytest.mark.parametrize(("line", "said"), [
    ("request_cpus = 0", "at least 1"),
    ("request_cpus = -1", "at least 1"),
    ("request_cpus = four", "four is no number"),
    ('request_cpus = "2"', "at least 1"),
    ("request_memory = -5", "an amount such as 2GB"),
    ("request_memory = lots", "lots is no number"),
    ("request_memory = 4,000", "must grow, and are 4, 0"),
    ("request_disk = -1", "an amount such as 2GB"),
    ("request_gpus = -1", "at least 0"),
    ("request_memry = 4GB", "did you mean request_memory?"),
    ("request_memroy = 4", "did you mean request_memory?"),
])  # fmt: skip
def test_impossible_requests_are_refused(line: str, said: str) -> None:
    with pytest.raises(SubmitError, match=said) as caught:
        described(f"{START}{line}\nqueue\n", world())
    assert line.partition(" ")[0] == caught.value.command


@pytest.mark.parametrize("line", ["requirements = Memory = 4", 'rank = Arch = "X86_64"', "periodic_hold = x ="])
def test_one_equals_sign_for_two(line: str) -> None:
    with pytest.raises(SubmitError) as caught:
        described(f"{START}{line}\nqueue\n", world())
    assert "==" in caught.value.remedy


@pytest.mark.parametrize("line", [
    "request_memory = 2.5 GB", "request_memory = MemoryUsage * 2", "request_cpus = ifThenElse(true, 2, 3)",
    "request_disk = DiskUsage", "request_license = 1", "request_memory = max({100, ImageSize})", "request_memory = 0",
])  # fmt: skip
def test_requests_that_can_be_met_are_taken(line: str) -> None:
    jobs_of(f"{START}{line}\nqueue\n", world())


def test_an_attribute_without_a_value_is_undefined() -> None:
    (job,) = jobs_of(f"{START}+projectname =\nqueue\n", world())
    assert str(job.expression("projectname")) == "undefined"


@pytest.mark.parametrize(("typo", "meant"), [
    ("requst_memory", "request_memory"), ("requirments", "requirements"), ("max_retry", "max_retries"),
    ("transfer_input_fles", "transfer_input_files"),
    ("priorty", "priority"), ("exectuable", "executable"), ("enviroment", "environment"),
])  # fmt: skip
def test_a_misspelled_command_is_told_with_the_nearest(typo: str, meant: str) -> None:
    (sentence,) = described(f"{START}{typo} = 1\nqueue\n", world()).unused()
    assert f"Did you mean {meant}? (job.sub, line 2)" in sentence


def test_a_group_that_is_none_is_told_where_the_groups_are_known() -> None:
    text = "executable = /bin/true\naccounting_group = {group}\nqueue\n"
    settings = {"GROUP_NAMES": "physics, physics.hep"}
    (told,) = [each for each in described(text.format(group="chemistry"), World(
        files={"/bin/true": 1}, settings=settings)).warnings if "GROUP_NAMES" in each]
    assert "physics, physics.hep" in told
    for group, known in (("physics", settings), ("Physics.new", settings), ("chemistry", {})):
        made = described(text.format(group=group), World(files={"/bin/true": 1}, settings=known))
        assert not [each for each in made.warnings if "GROUP_NAMES" in each]
