"""Parameters of questions, host names, and the description of both."""

from __future__ import annotations

import pytest

from condor_actors.daemons.web.bodies import BODIES
from condor_actors.daemons.web.door import is_own_name
from condor_actors.daemons.web.json_api import PARAMETERS, BadQuestion, read_parameters
from condor_actors.daemons.web.openapi import ANSWERS, description
from condor_actors.daemons.web.site import static_files


@pytest.mark.parametrize("query", [
    "sort=x", "sort=id&sort=id", "nope=1", "limit=0", "limit=501", "limit=1e3", "limit=", "offset=-1", "offset=٣",
    "offset=99999999999999", "status=Idle", "search=" + "x" * 201, "search=%ff", "&".join(f"a{n}=1" for n in range(30)),
])
def test_what_is_no_parameter_is_refused_by_name(query: str) -> None:
    with pytest.raises(BadQuestion):
        read_parameters("/api/jobs", b"/api/jobs?" + query.encode())


def test_what_must_be_given_must_be_given() -> None:
    with pytest.raises(BadQuestion, match="cluster is missing"):
        read_parameters("/api/job", b"/api/job?proc=1")


def test_what_is_not_given_has_its_default() -> None:
    asked = read_parameters("/api/jobs", b"/api/jobs?search=a%20b+c&limit=7")
    assert (asked["search"], asked["limit"], asked["sort"], asked["offset"]) == ("a b c", 7, "id", 0)


@pytest.mark.parametrize(("host", "own"), [
    (b"localhost", True), (b"LocalHost:80", True), (b"m.example", True), (b"m.example.", True), (b"127.0.0.1:5", True),
    (b"[::1]", True), (b"[::1]:80", True), (b"", False), (b"evil.example", False), (b"m.example.evil", False),
    (b"[::1", False), (b"[::1]x", False), (b"localhost:x", False), (b"127.0.0.1.evil", False), (b"\xff", False),
])
def test_only_addresses_and_own_names_are_ours(host: bytes, own: bool) -> None:
    assert is_own_name(host, {"m.example"}) is own


def test_every_question_is_described_and_every_description_is_of_a_question() -> None:
    paths = description()["paths"]
    assert ANSWERS.keys() == PARAMETERS.keys() | BODIES.keys() == paths.keys()
    assert not PARAMETERS.keys() & BODIES.keys()
    assert {path for path, each in paths.items() if "post" in each} == BODIES.keys()


def test_the_page_takes_nothing_from_elsewhere_and_is_small() -> None:
    files = static_files()
    assert sum(len(each.body) for path, each in files.items() if path != b"/favicon.ico") < 60_000
    for path, each in files.items():
        text = each.body.decode().replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text, path
        assert "https:" not in text, path
        assert "innerHTML" not in text, path
