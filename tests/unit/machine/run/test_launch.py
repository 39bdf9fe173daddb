"""Starting the launcher."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pytest

from condor_actors.machine.run import launch
from condor_actors.machine.run.launch import LaunchPlan, PosixLauncher, complaint, input_of
from condor_actors.machine.run.process_tree import MARK


def test_the_launcher_itself_has_no_variables_of_the_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be root, and a dynamic linker would do for the job's variables what they say."""
    seen: dict[str, str] = {}

    def spawn(words: list[str], environment: Mapping[str, str], *_: Any, **__: Any) -> int:
        seen.update(environment)
        raise OSError("enough")

    monkeypatch.setattr(launch, "spawn", spawn)
    plan = LaunchPlan(program="/bin/true", arguments=(), environment={"LD_PRELOAD": "/tmp/x.so", MARK: "here"},
                      directory="/", stdin=0, stdout=1, stderr=2)
    with pytest.raises(OSError, match="enough"):
        PosixLauncher(None, "/launcher").launch(plan, lambda: None, lambda _: None, lambda _: None)
    assert seen == {"_CONDOR_JOB_ENV_LD_PRELOAD": "/tmp/x.so", MARK: "here"}


@pytest.mark.parametrize("data", [b"", b"x", b"x" * 300_000])
def test_what_a_program_is_told_waits_for_nobody_to_read_it(data: bytes) -> None:
    """A pipe would: for a user who has many of them one takes a page."""
    descriptor = input_of(data)
    with open(descriptor, "rb") as stream:
        assert not os.get_inheritable(descriptor)
        assert stream.read() == data


@pytest.mark.parametrize(("said", "reason", "is_machines"), [
    ("source 2 /dev/nvidia0", "/dev/nvidia0: this machine does not have it: No such file or directory", True),
    ("cgroup 16 /sys/fs/cgroup/x", "/sys/fs/cgroup/x: cannot be joined: Device or resource busy", True),
    ("exec 8 /x", "/x: cannot be executed: Exec format error", False),
    ("chdir 13 /x", "/x: cannot be its working directory: Permission denied", False),
    ("mount 2 /dev", "/dev: the launcher failed at mount: No such file or directory", False),
])
def test_whose_fault_it_is(said: str, reason: str, is_machines: bool) -> None:
    """What no program has a part in is the machine's; an image may lack what is mounted on."""
    failure = complaint(said)
    assert (failure.reason, failure.is_machines) == (reason, is_machines)
