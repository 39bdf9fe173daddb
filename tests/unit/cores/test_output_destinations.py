"""Where outputs go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from condor_actors.classads import ClassAd
from condor_actors.cores.output_destinations import STDERR, STDOUT, OutputUrls, remaps_of


def test_remaps_with_what_is_meant_literally() -> None:
    assert remaps_of(r"a = b; c\=d = e\;f ;nothing; g=h=i") == {"a": "b", "c=d": "e;f", "g": "h=i"}


@given(st.dictionaries(st.text("ab;=\\ /", min_size=1).map(str.strip).filter(bool),
                       st.text("ab;=\\ /").map(str.strip)))
def test_what_is_escaped_comes_back(remaps: dict[str, str]) -> None:
    def escaped(text: str) -> str:
        return "".join(f"\\{letter}" if letter in "\\;=" else letter for letter in text)

    assert remaps_of(";".join(f"{escaped(name)}={escaped(place)}" for name, place in remaps.items())) == remaps


@pytest.mark.parametrize(("path", "url"), [
    ("one", "https://h/1"), ("folder/a b", "https://h/f/a%20b"), ("kept", ""), ("other", "s3://b/all/other"),
    ("deep/a?b", "s3://b/all/deep/a?b"), (STDOUT, ""), (STDERR, "https://h/err"),
])  # fmt: skip
def test_each_output_has_one_place(path: str, url: str) -> None:
    urls = OutputUrls(ClassAd({
        "TransferOutputRemaps": "one = https://h/1; folder/ = https://h/f/; kept = here",
        "OutputDestination": "s3://b/all/", "Out": "out", "Err": "https://h/err"}))
    assert urls
    assert urls.of(path) == url


def test_a_job_without_urls_sends_nothing() -> None:
    assert not OutputUrls(ClassAd({"TransferOutputRemaps": "a = b; c = file:///d", "Out": "x", "Err": "/dev/null"}))
