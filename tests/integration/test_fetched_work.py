"""Machines that fetch work by themselves: what is fetched runs once, as nobody's, and the owner's policy holds."""

from __future__ import annotations

import os
import pwd
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until

FETCH = """#!/bin/sh
cat > {place}/slot_ad.$$
mv {place}/slot_ad.$$ {place}/slot_ad
for file in {place}/laid/*; do
    test -e "$file" || exit 0
    mv "$file" {place}/taken/ && cat {place}/taken/`basename "$file"`
    exit 0
done
"""
TELL = """#!/bin/sh
{ echo "$@"; cat; } > {place}/told.$$ && mv {place}/told.$$ {place}/NAME.$$
"""
EXIT = """#!/bin/sh
{ echo "$@"; cat; echo ==; cat "$_CONDOR_SCRATCH_DIR/_condor_stdout"; } > {place}/told.$$
mv {place}/told.$$ {place}/exit.$$
"""
CONFIG = """
STARTD_JOB_HOOK_KEYWORD = site
SITE_HOOK_FETCH_WORK = {place}/fetch
SITE_HOOK_REPLY_FETCH = {place}/reply
SITE_HOOK_EVICT_CLAIM = {place}/evict
SITE_HOOK_JOB_EXIT = {place}/exit
FetchWorkDelay = ifThenElse(State == "Claimed" && Activity == "Idle", 0, 1)
START = TARGET.Unwanted =!= true
RUNBENCHMARKS = false
"""


class Site:
    """A folder in which work is laid down, and hooks write what they are told."""

    def __init__(self, place: Path) -> None:
        self.place = place
        for name in ("", "laid", "taken"):
            (place / name).mkdir(exist_ok=True)
            (place / name).chmod(0o777)
        for name, text in (("fetch", FETCH), ("reply", TELL.replace("NAME", "reply")),
                           ("evict", TELL.replace("NAME", "evict")), ("exit", EXIT)):
            (place / name).write_text(text.replace("{place}", str(place)))
            (place / name).chmod(0o755)

    def lay(self, name: str, script: str, more: str = "") -> None:
        new = self.place / name
        new.write_text(f'Cmd = "/bin/sh"\nArguments = "-c \'{script}\'"\nName = "{name}"\n{more}\n')
        new.chmod(0o666)
        new.rename(self.place / "laid" / name)

    def told(self, hook: str, name: str) -> list[str]:
        """What a hook was told about a job: a text for each time."""
        return [text for path in sorted(self.place.glob(f"{hook}.*"))
                if f'Name = "{name}"' in (text := path.read_text())]


@pytest.fixture(scope="module")
def site() -> Iterator[tuple[PersonalPool, Site]]:
    with fresh_folder() as folder:
        place = Site(folder / "site")
        made = PersonalPool(folder, slots=1, config=CONFIG.replace("{place}", str(place.place)))
        yield made, place
        made.stop()


def test_a_job_is_fetched_and_runs_as_nobody_s(site: tuple[PersonalPool, Site]) -> None:
    _, place = site
    place.lay("first", "id -un; echo to home; exit 3",
              'Owner = "root"\nUser = "root@x"\nRunAsOwner = true\nClusterId = 77')
    (text,) = until(lambda: place.told("exit", "first"), "the hook at its end")
    word, said, output = text.splitlines()[0], *text.split("==\n")
    assert word == "exit"
    assert {"ExitCode = 3", "ClusterId = 77"} <= set(said.splitlines())
    expected = "nobody" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
    assert output == f"{expected}\nto home\n"
    (reply,) = until(lambda: place.told("reply", "first"), "the reply")
    assert reply.startswith("accept\n")
    assert {"-----", "SlotID = 1"} <= set(reply.splitlines())
    assert "SlotID = 1" in (place.place / "slot_ad").read_text()
    assert place.told("evict", "first") == []


def test_what_the_policy_does_not_want_is_rejected(site: tuple[PersonalPool, Site]) -> None:
    _, place = site
    place.lay("unwanted", "true", "Unwanted = true")
    (reply,) = until(lambda: place.told("reply", "unwanted"), "the reply")
    assert reply.startswith("reject\n")
    assert place.told("exit", "unwanted") == []


def test_what_is_no_job_changes_nothing(site: tuple[PersonalPool, Site]) -> None:
    pool, place = site
    for name, text in (("none", "\x00\xff this is no ad"), ("universe", 'Cmd = "/bin/true"\nJobUniverse = 7'),
                       ("long", "A = 1\n" * 20_000), ("home", 'Cmd = "/bin/true"\nTransferInput = "/etc/passwd"')):
        (place.place / name).write_bytes(text.encode("latin-1"))
        (place.place / name).chmod(0o666)
        (place.place / name).rename(place.place / "laid" / name)
        until(lambda name=name: (place.place / "taken" / name).exists(), "it was fetched")  # type: ignore[misc]
    place.lay("after", "true")
    until(lambda: place.told("exit", "after"), "the next one runs")
    log = (pool.dir / "log" / "StartdLog").read_text()
    assert "fetched jobs are of the vanilla universe" in log
    assert "TransferInput: that needs a schedd" in log


def test_one_that_is_driven_out_is_told_of(site: tuple[PersonalPool, Site]) -> None:
    pool, place = site
    place.lay("long-one", f"touch {place.place}/begun; exec sleep 1000")
    until((place.place / "begun").exists, "it runs")
    assert "fetched:SITE" in pool.run("condor_status", "-af", "RemoteOwner")
    pool.run("condor_vacate")
    (text,) = until(lambda: place.told("evict", "long-one"), "the hook about that")
    assert "\n-----\n" in text
    until(lambda: place.told("exit", "long-one"), "the hook at its end")


def test_it_goes_on_when_the_startd_is_killed_and_is_driven_out_with_its_starter_host(
        site: tuple[PersonalPool, Site]) -> None:
    pool, place = site
    place.lay("survivor", f"echo x >> {place.place}/starts; while ! test -e {place.place}/go; do sleep 0.1; done; "
              "echo done")
    until((place.place / "starts").exists, "it runs")
    pool.kill("startd", signal.SIGKILL)
    until(lambda: "fetched:SITE" in pool.run("condor_status", "-af", "RemoteOwner"), "the claim is there again")
    (place.place / "go").touch()
    (text,) = until(lambda: place.told("exit", "survivor"), "the hook at its end")
    assert text.endswith("==\ndone\n")
    place.lay("next", "true")
    until(lambda: place.told("exit", "next"), "the next one runs")
    assert (place.place / "starts").read_text() == "x\n"
    assert place.told("evict", "survivor") == []
    (place.place / "starts").unlink()
    place.lay("lost", f"echo x >> {place.place}/starts; exec sleep 1000")
    until((place.place / "starts").exists, "it runs")
    pool.kill("starter-host", signal.SIGKILL)
    until(lambda: place.told("evict", "lost"), "it was driven out")
    place.lay("last", "true")
    until(lambda: place.told("exit", "last"), "the next one runs")
