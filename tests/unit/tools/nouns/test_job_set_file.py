"""Files of job sets, read."""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.nouns.job_set_file import read_set

WHOLE = """# a comment
name = Models
iterator = table inputfile, foo {
    a.txt,0
    # left out
    b.txt,1   # the second
}
job x=foo,y=inputfile mine.sub
job {
  executable = a.sh
  arguments  = $(inputfile) $(foo)
  queue from (
    never
  )
}
"""


def test_a_set_is_made_of_rows_and_descriptions(tmp_path: Path) -> None:
    (tmp_path / "mine.sub").write_text("executable = b.sh\narguments = $(X) $(y) $(z)\nqueue 3\n")
    (tmp_path / "my.set").write_text(WHOLE)
    found = read_set(str(tmp_path / "my.set"))
    assert (found.name, found.columns, found.rows) == ("Models", ("inputfile", "foo"), ("a.txt,0", "b.txt,1"))
    first, second = found.jobs
    assert (first.source, first.text) == (
        str(tmp_path / "mine.sub"), "executable = b.sh\narguments = $(foo) $(inputfile) $(z)\n\n")
    assert second.text.split("\n")[9:11] == ["  executable = a.sh", "  arguments  = $(inputfile) $(foo)"]
    assert "never" not in second.text
    assert found.description(second).endswith(
        'MY.JobSetName = "Models"\nMY.InJobSet = true\nqueue inputfile,foo from (\na.txt,0\nb.txt,1\n)\n')


def test_a_table_may_be_a_file_beside_the_set(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("1,2\n\n3,4\n")
    (tmp_path / "my.set").write_text("name=N\niterator = table a b rows\njob {\nexecutable = x\n}\n")
    assert read_set(str(tmp_path / "my.set")).rows == ("1,2", "3,4")


@pytest.mark.parametrize(("text", "why"), [
    ("jobs x\n", "line 1: 'jobs' is no command"),
    ("name = a\nname = b\n", "line 2: the set has a name already"),
    ("name =\n", "line 1: the name is empty"),
    ("name a\n", "line 1: expected ="),
    ("iterator = list a {\n}\n", "line 1: iterator = list: expected table"),
    ("iterator = table {\n}\n", "line 1: iterator = table: expected different names"),
    ("iterator = table a,A {\n}\n", "expected different names"),
    ("iterator = table a,b {\n1,2\n3\n}\n", "line 3: '3' is no row of 2 values"),
    ("iterator = table a {\n)\n}\n", "line 2: ')' is no row"),
    ("iterator = table a {\n1\n", "line 1: no line } ends"),
    ("iterator = table a nowhere\n", "nowhere: No such file"),
    ("job\n", "line 1: job: expected the file"),
    ("job x {\n}\n", "job x: expected NAME=COLUMN"),
    ("job nowhere.sub\n", "line 1: "),
    ("name = a\n", "needs a line iterator"),
    ("iterator = table a {\n1\n}\njob {\n}\n", "needs a line name"),
    ("name = a\niterator = table a {\n1\n}\n", "needs a line job"),
    ("name = a\niterator = table a {\n}\njob {\n}\n", "the table has no rows"),
])
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "my.set").write_text(text)
    with pytest.raises(ToolError) as caught:
        read_set(str(tmp_path / "my.set"))
    assert why in caught.value.text
    assert "my.set" in caught.value.text
