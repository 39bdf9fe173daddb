from __future__ import annotations

from pathlib import Path

import pytest

import condor_actors as condor

TEXT = """universe = vanilla
if true
  executable = /bin/echo
endif
arguments = $(what) $(n)
+Project = "sky"
queue 2 what, n from (
  sun 1
  moon 2
)
arguments = last
queue
"""


def arguments(submit: condor.Submit, **how: object) -> list[str]:
    return [ad.get_str("Args") or ad.get_str("Arguments") for ad in submit.jobs(**how)]  # type: ignore[arg-type]


def test_a_text_becomes_commands_and_a_queue_statement() -> None:
    submit = condor.Submit(TEXT)
    assert dict(submit) == {"universe": "vanilla", "executable": "/bin/echo", "arguments": "$(what) $(n)",
                            "MY.Project": '"sky"'}
    assert submit["EXECUTABLE"] == "/bin/echo"
    assert submit["+Project"] == '"sky"'
    assert submit.itemdata() == [{"what": "sun", "n": "1"}, {"what": "moon", "n": "2"}]
    assert arguments(submit) == ["sun 1", "sun 1", "moon 2", "moon 2", "last"]


def test_a_copy_of_its_text_means_the_same() -> None:
    submit = condor.Submit(TEXT)
    submit["notes"] = "two\nlines"
    again = condor.Submit(str(submit))
    assert again == submit
    assert arguments(again) == arguments(submit)


@pytest.mark.parametrize(("items", "expected"), [
    ([{"what": "a b", "n": 1}, {"n": 2, "what": "c"}], ["a b 1", "c 2"]),
    ([("a b", 1), ["c", 2]], ["a b 1", "c 2"]),
    (["a 1", "c 2"], ["a 1", "c 2"]),
])
def test_items_of_a_program(items: list[object], expected: list[str]) -> None:
    assert arguments(condor.Submit(TEXT), items=items, count=1) == expected
    assert arguments(condor.Submit(TEXT), items=items) == [each for each in expected for _ in range(2)]


@pytest.mark.parametrize("item", [{"n": 1}, "two\nlines", ("a\x1fb", "c")])
def test_items_that_would_not_stay_one(item: object) -> None:
    with pytest.raises(ValueError):
        arguments(condor.Submit(TEXT), items=[{"what": 1, "n": 2}, item])


def test_counts_and_queue() -> None:
    submit = condor.Submit({"executable": "/bin/echo", "arguments": "$(Process)"}, queue="queue 3")
    assert submit.queue == "3"
    assert arguments(submit) == ["0", "1", "2"]
    assert arguments(submit, count=1) == ["0"]
    submit.queue = "x in (a b)"
    assert submit.itemdata() == [{"x": "a"}, {"x": "b"}]
    assert submit.itemdata("4") is None
    assert condor.Submit(executable="/bin/echo").queue == ""


def test_values_and_names() -> None:
    submit = condor.Submit({"executable": Path("/bin/echo"), "request_cpus": 2, "+Fast": True}, log="a.log")
    assert str(submit) == "executable = /bin/echo\nrequest_cpus = 2\nMY.Fast = True\nlog = a.log\nqueue\n"
    del submit["Log"]
    assert submit.expand("executable") == "/bin/echo"
    assert len(submit) == 3
    with pytest.raises(KeyError):
        submit["log"]
    with pytest.raises(TypeError):
        condor.Submit({"log": None})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="queue"):
        condor.Submit({"queue": "3"})


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("a\nb\n")
    path = tmp_path / "job.sub"
    path.write_text(f"executable = /bin/echo\narguments = $(Item) $(SUBMIT_FILE)\nqueue from {tmp_path}/rows\n")
    assert arguments(condor.Submit.from_file(path, log="x")) == [f"a {path}", f"b {path}"]


@pytest.mark.parametrize("text", ["nonsense\nqueue", "executable = /bin/echo\nqueue -3", "if true\nexecutable = x\n"])
def test_what_is_no_description_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(condor.SubmitError):
        arguments(condor.Submit(text))
