"""Descriptions that no one means: each is a clear error with its place, or does what it says; none hangs or is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from condor_actors import records
from condor_actors.submit import Description, Options, SubmitError
from condor_actors.tools.lib.submit_files import LocalFiles
from condor_actors.written_text import NO_WRITER_S, read_written
from tests.unit.submit.worlds import World

PROGRAM = "executable = /bin/true\n"

REFUSED: tuple[tuple[str, str, int, str], ...] = (
    # what, the description, the line to blame, and a piece of what is said
    ("a NUL in a value", f"{PROGRAM}arguments = a\0b\nqueue\n", 2, "NUL"),
    ("a NUL in a name", "execu\0table = /bin/true\nqueue\n", 1, "NUL"),
    ("NULs behind the end", f"{PROGRAM}queue\n\0\0\0", 3, "NUL"),
    ("CR alone", "executable = /bin/true\rqueue\r", 1, "CR alone"),
    ("a line of 10 MB", f"{PROGRAM}arguments = {'a' * 10_000_000}\nqueue\n", 2, "are the most"),
    ("a name of 10 MB", f"{'a' * 10_000_000} = 1\n{PROGRAM}queue\n", 1, "are the most"),
    ("10 MB of nothing", "a" * 10_000_000, 1, "are the most"),
    ("10 MB in pieces", PROGRAM + "arguments = " + "a \\\n" * 5_000_000 + "\nqueue\n", 2, "are the most"),
    ("a name in Latin-1", f"{PROGRAM}caf\udce9 = 1\nqueue\n", 2, "caf\\xe9"),
    ("control characters", f"{PROGRAM}\x1b[31mred\nqueue\n", 2, "'\\x1b[31mred'"),
    ("a slice with no step", f"{PROGRAM}queue x in [::0] (1 2 3)\n", 2, "step"),
    ("two variables of one name", f"{PROGRAM}queue x, X from (\n1 2\n)\n", 2, "more than once"),
    ("items from /dev/zero", f"{PROGRAM}queue x from /dev/zero\n", 2, "NUL"),
    ("items from a folder", f"{PROGRAM}queue x from /tmp\n", 2, "Is a directory"),
    ("items from UTF-16", f"{PROGRAM}queue x from utf16\n", 2, "UTF-16"),
    ("items without an end", f"{PROGRAM}queue x from yes |\n", 2, "prints more than"),
    ("items with a NUL", f"{PROGRAM}queue x from printf 'a\\000b' |\n", 2, "NUL"),
    ("a list without an end", f"{PROGRAM}queue x in (a b\n", 2, "closing brace"),
    ("more jobs than there are", f"{PROGRAM}queue {'9' * 5000}\n", 2, "expected"),
    ("less than no job", f"{PROGRAM}queue -1\n", 2, "from 0 to"),
    ("macros in a circle", f"{PROGRAM}a = $(b)\nb = $(a)\narguments = $(a)\nqueue\n", 4, "without end"),
    ("macros that double", PROGRAM + "a0 = x\n" + "".join(f"a{n} = $(a{n - 1})$(a{n - 1})\n" for n in range(1, 60))
     + "arguments = $(a59)\nqueue\n", 62, "without end"),
    ("macros within macros", f"{PROGRAM}arguments = {'$(' * 3000}a{')' * 3000}\nqueue\n", 2, "without end"),
    ("a function of no number", f"{PROGRAM}arguments = $INT(abc)\nqueue\n", 2, "is not a number"),
    ("no such choice", f"{PROGRAM}arguments = $CHOICE(99,a,b)\nqueue\n", 2, "outside the list"),
    ("more processors than numbers", f"{PROGRAM}request_cpus = {'9' * 30}\nqueue\n", 2, "expected"),
    ("endless memory", f"{PROGRAM}request_memory = 1e400\nqueue\n", 2, "expected"),
    ("memory that is no number", f"{PROGRAM}request_memory = nan\nqueue\n", 2, "is no number"),
    ("a priority of 30 digits", f"{PROGRAM}priority = {'9' * 30}\nqueue\n", 2, "expected an integer from"),
    ("a priority in words", f"{PROGRAM}priority = high\nqueue\n", 2, "integer"),
    ("a lease of less than nothing", f"{PROGRAM}job_lease_duration = -5\nqueue\n", 2, "expected 0 or more"),
    ("5,000 ifs", "if true\n" * 5000 + PROGRAM + "endif\n" * 5000 + "queue\n", 1001, "within one another"),
    ("an if without an end", f"{PROGRAM}if true\nqueue\n", 2, "if without endif"),
    ("an else behind the else", f"if true\nelse\nelse\nendif\n{PROGRAM}queue\n", 3, "behind the else"),
    ("an elif behind the else", f"if true\nelse\nelif true\nendif\n{PROGRAM}queue\n", 3, "behind the else"),
    ("an end without an if", f"endif\n{PROGRAM}queue\n", 1, "endif without if"),
    ("a condition that is none", f"if (((\n{PROGRAM}endif\nqueue\n", 1, "expected true"),
    ("a file that includes itself", f"include : self.inc\n{PROGRAM}queue\n", 1, "include one another"),
    ("an included folder", f"include : /tmp\n{PROGRAM}queue\n", 1, "Is a directory"),
    ("an included /dev/zero", f"include : /dev/zero\n{PROGRAM}queue\n", 1, "NUL"),
    ("a command without an end", f"include command : yes\n{PROGRAM}queue\n", 1, "prints more than"),
    ("parentheses without an end", f"{PROGRAM}requirements = {'(' * 20000}\nqueue\n", 2, "Parse error"),
    ("lists in lists", f"{PROGRAM}+x = {'{' * 20000}{'}' * 20000}\nqueue\n", 2, "Parse error"),
    ("a quotation mark too many", f"{PROGRAM}arguments = \"a 'b\"\nqueue\n", 2, "Unbalanced"),
    ("an environment without =", f'{PROGRAM}environment = "A B"\nqueue\n', 2, "Missing '='"),
    ("a program that is a FIFO", "executable = fifo\nqueue\n", 1, "not a regular file"),
    ("a program that is a device", "executable = /dev/zero\nqueue\n", 1, "not a regular file"),
    ("a log that is a FIFO", f"{PROGRAM}log = fifo\nqueue\n", 2, "not a regular file"),
    ("a log in no folder", f"{PROGRAM}log = /nope/x\nqueue\n", 2, "No such file"),
    ("a folder that is none", f"{PROGRAM}initialdir = {'a' * 5000}\nqueue\n", 2, "No such directory"),
    ("an unknown signal", f"{PROGRAM}kill_sig = SIGFOO\nqueue\n", 2, "invalid signal"),
    ("a limit without a number", f"{PROGRAM}concurrency_limits = a:b, c\nqueue\n", 2, "Invalid concurrency limit"),
    ("a group with a blank", f"{PROGRAM}accounting_group = a b\nqueue\n", 2, "Invalid accounting group"),
    ("a remap without =", f"{PROGRAM}transfer_output_remaps = \"a=b;c\"\nqueue\n", 2, "has no ="),
    ("a transfer that is unknown", f"{PROGRAM}should_transfer_files = perhaps\nqueue\n", 2, "invalid value"),
    ("an unknown universe", f"{PROGRAM}universe = banana\nqueue\n", 2, "universe"),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("condor_actors.tools.lib.submit_files.MOST_PRINTED_BYTES", 1 << 20)
    (tmp_path / "self.inc").write_text("include : self.inc\n")
    (tmp_path / "utf16").write_text("a\nb\n", encoding="utf-16")
    os.mkfifo(tmp_path / "fifo")
    return tmp_path


def description(folder: Path) -> Description:
    environment = records.evolve(World(cwd=str(folder)).environment(), files=LocalFiles())
    return Description(environment, lambda: 1, Options())


@pytest.mark.parametrize(("text", "line", "said"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_wrong_is_said_with_its_place(text: str, line: int, said: str, folder: Path) -> None:
    made = description(folder)
    with pytest.raises(SubmitError) as caught:
        made.read(text, "job.sub")
    error = caught.value
    assert said in error.problem
    assert len(error.problem) <= 2100
    assert not any(letter < " " and letter not in "\n\t" for letter in error.problem)
    place = (error.file, error.line) if error.parsing else made.blamed(error).partition(":")[0]
    expected = ("self.inc" if "include one" in said else "job.sub", line)
    assert place == (expected if error.parsing else f"job.sub, line {line}")


@pytest.mark.parametrize(("text", "jobs"), [
    (f"{PROGRAM}arguments = caf\udce9\noutput = caf\udce9.out\nqueue\n", 1),
    ("executable = /bin/true\r\narguments = \"a b\"\r\nqueue 2\r\n", 2),
    (f"#{'a' * 10_000_000}\n{PROGRAM}queue", 1),
    (f"{PROGRAM}arguments = " + "a \\\n" * 100_000 + "\nqueue\n", 1),
    (f"{PROGRAM}arguments = {'$(' * 200_000}\nqueue\n", 1),
    (f"{PROGRAM}queue x in ({'a ' * 1000})\n", 1000),
    (f"{PROGRAM}queue x from /dev/null\n", 0),
], ids=["Latin-1", "CRLF", "a long comment", "a long argument list", "macros without an end", "items", "no items"])
def test_what_is_odd_and_right_is_done(text: str, jobs: int, folder: Path) -> None:
    clusters = description(folder).read(text, "job.sub")
    assert sum(len(cluster.procs) for cluster in clusters) == jobs


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "marked"
    path.write_bytes(b"\xef\xbb\xbf" + PROGRAM.encode())
    assert read_written(str(path)) == PROGRAM


def test_a_fifo_is_read_while_somebody_writes_and_not_waited_for_otherwise(folder: Path,
                                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    assert NO_WRITER_S < 10.0
    monkeypatch.setattr("condor_actors.written_text.NO_WRITER_S", 0.1)
    with pytest.raises(OSError, match="nothing writes to it"):
        read_written(str(folder / "fifo"))
    kept = os.open(folder / "fifo", os.O_RDWR)  # no end is seen while this one could write
    os.write(kept, b"queue\n")
    reading = os.open(folder / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    os.close(kept)
    assert read_written(f"/dev/fd/{reading}") == "queue\n"
    os.close(reading)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_text("a" * 2000)
    with pytest.raises(OSError, match="more than 1,000 bytes"):
        read_written(str(path), most_bytes=1000)
