"""The language of the documentation and of the sources: phrases that a reader stumbles over stay out.

Theory: the mechanical part only.  Each phrase has the words to use in its place; what a sentence needs beyond that, an
editor sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
INSTEAD = {
    r"whoever|whosoever": "the user, the peer, any process that …",
    r"somebody": "another user, a client, an administrator; else someone",
    r"for ever": "forever, endlessly",
    r"lest": "so that … not",
    r"hence|thereby|hereby|whereby|thence": "so",
    r"dear|dearer|dearest": "expensive",
    r"heeds?|heeded": "uses, obeys, takes into account",
    r"in vain": "without a result, without an answer",
    r"once for all(?! (?:of|its|the|jobs|nodes))": "only once; permanently",
    r"otherwise than": "differently from, by other means than",
    r"such a one|such ones": "one",
    r"looks whether": "checks whether",
    r"what is asked": "the query, the request",
    r"betimes|tidings|ere": "early, news, before",
}
"""What to avoid, as a regular expression of whole words in any case: what to write in its place."""
PHRASES = {re.compile(rf"(?i)(?<![\w.-])(?:{phrase})(?![\w-])"): words for phrase, words in INSTEAD.items()}
NOT_TEXT = re.compile(r"`[^`]*`")
"""Names of files and tests, and quoted code."""
SOURCES = {"condor_actors": (".py", ".h", ".html", ".js"), "native": (".c", ".h"), "docs": (".md",), "etc": ("",),
           "tests": (".py", ".c", ".h"), "benchmarks": (".py",), "examples": (".py",)}


def texts() -> Iterator[Path]:
    yield ROOT / "README.md"
    for folder, endings in SOURCES.items():
        for path in sorted((ROOT / folder).rglob("*")):
            named = path.suffix in endings and path.is_file() and path.name != Path(__file__).name
            if named and "build" not in path.parts and "binding" not in path.parts:
                yield path


def stumbling_blocks(text: str) -> Iterator[str]:
    """``line: phrase (what to write)`` for each phrase to avoid; a phrase may be cut by the end of a line of prose."""
    plain = NOT_TEXT.sub(lambda code: re.sub(r"\S", "x", code.group()), text)
    flowing = re.sub(r"\n[ \t]*(?:#|\*)?[ \t]*", lambda gap: "\n" + " " * (len(gap.group()) - 1), plain)
    for phrase, words in PHRASES.items():
        spread = re.compile(phrase.pattern.replace(" ", r"\s+"))
        for match in spread.finditer(flowing):
            line = flowing.count("\n", 0, match.start()) + 1
            yield f"{line}: {' '.join(match.group().split())} (write: {words})"


@pytest.mark.parametrize("folder", ["README.md", *SOURCES])
def test_no_phrase_to_avoid(folder: str) -> None:
    found = [f"{path.relative_to(ROOT)}:{block}" for path in texts() if path.relative_to(ROOT).parts[0] == folder
             for block in stumbling_blocks(path.read_text("utf-8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(("text", "line"), [
    ("Whoever reads it.", 1),
    ("# a pipe would block us for\n    # ever", 1),
    ("first\nIt waits in vain.", 2),
    (" * That depends\n * hence on it", 2),
])
def test_a_phrase_is_found(text: str, line: int) -> None:
    assert [block.partition(":")[0] for block in stumbling_blocks(text)] == [str(line)]


def test_names_and_code_are_no_phrases() -> None:
    assert not list(stumbling_blocks("`tests/x.py::test_a_dear_question`, alice.dear, for every slot, forever, a user"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_says_for_whom_it_is(page: Path) -> None:
    title, empty, first = page.read_text("utf-8").split("\n")[:3]
    assert title.startswith("# ")
    assert not empty
    assert first.startswith("*For "), "after its title, a page says for whom it is and what it answers: *For users: …*"
