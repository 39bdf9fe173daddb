"""Which files a job brings home: what it names, and without names what it makes beside its inputs."""

from __future__ import annotations

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.output_destinations import STARTER_LOG, STDERR, STDOUT
from condor_actors.cores.output_names import SENT, OutputNames

OPEN = "ClusterId = 3\nProcId = 0\n"
WHOLE_FOLDER = f'{OPEN}TransferOutput = "a.txt, results/"\n'
NAMED = f'{OPEN}TransferOutput = "a.txt, results/b"\n'
RELATIVE = f"{NAMED}PreserveRelativePaths = true\n"
NOTHING = f'{OPEN}TransferOutput = ""\n'
LISTED = f"{NOTHING}ManifestDesired = true\n"
EVERY = (OPEN, WHOLE_FOLDER, NAMED, RELATIVE, NOTHING, LISTED)


def names(ad: str) -> OutputNames:
    return OutputNames(ClassAd.from_bytes(ad.encode()))


@pytest.mark.parametrize(("ad", "come", "stay"), [
    (OPEN, ["out", ".hidden"], ["folder/out", "3_0_manifest/in"]),
    (WHOLE_FOLDER, ["a.txt", "b", "deep/er/b"], []),
    (NAMED, ["a.txt", "b", "b/inside"], ["results", "results/b", "bb", "b.txt", "other", ".ssh/authorized_keys"]),
    (RELATIVE, ["a.txt", "results", "results/b", "results/b/inside"], ["b", "results/c", "resultsx"]),
    (NOTHING, [], ["out", "a.txt", "3_0_manifest/in"]),
    (LISTED, ["3_0_manifest", "3_0_manifest/in"], ["3_0_manifests", "4_0_manifest/in"]),
    (f'{NOTHING}ManifestDir = "lists"\n', ["lists/in"], ["3_0_manifest/in"]),
])
def test_what_the_job_says_comes_home_and_nothing_else(ad: str, come: list[str], stay: list[str]) -> None:
    found = names(ad)
    assert [path for path in (*come, *stay) if found.have(path)] == come


@pytest.mark.parametrize("ad", EVERY)
def test_what_it_says_goes_without_saying(ad: str) -> None:
    assert all(names(ad).have(path) for path in (STDOUT, STDERR, STARTER_LOG))


@pytest.mark.parametrize("ad", EVERY)
def test_program_and_input_do_not_come_back(ad: str) -> None:
    assert not any(names(ad).have(path) for path in SENT)


@pytest.mark.parametrize(("ad", "hidden"), [(OPEN, True), (WHOLE_FOLDER, True), (NAMED, False), (NOTHING, False)])
def test_names_with_a_dot_that_the_job_does_not_say_are_hidden(ad: str, hidden: bool) -> None:
    found = names(ad)
    assert [path for path in (".bashrc", ".config/x", "plain", STARTER_LOG) if found.hide(path)] == (
        [".bashrc", ".config/x"] if hidden else [])
