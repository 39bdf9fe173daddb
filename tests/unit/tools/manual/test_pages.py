"""The manual pages: complete, as the parsers are, and without a warning of the programs that print them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

from condor_actors.config.parameters import all_parameters
from condor_actors.tools.manual.__main__ import files, write
from condor_actors.tools.manual.lookup import described, find
from condor_actors.tools.manual.markdown import reference
from condor_actors.tools.manual.roff import command_page, escaped, literal
from condor_actors.tools.manual.sources import groups_of, verbs_of


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("share")
    assert write(folder) == len(list(files()))
    return folder


def pages(share: Path) -> list[Path]:
    return sorted(share.glob("man/man*/*"))


def test_every_command_has_its_files(share: Path) -> None:
    names = {path.name for path in pages(share)}
    assert names == {f"{page.name}.{page.section}" for page in described().values()} | {
        "condor.1", "condor_config.5", "condor_control.8"}
    assert {path.name for path in (share / "bash-completion/completions").iterdir()} == set(described())
    assert {path.stem for path in (share / "fish/vendor_completions.d").iterdir()} == set(described())


@pytest.mark.parametrize("name", sorted(described()))
def test_a_page_has_the_options_of_its_command(name: str) -> None:
    text = command_page(name)
    heads = re.findall(r"^\.TP\n(.*)$", text[text.find(".SH DESCRIPTION"):], re.MULTILINE)
    bold = r"\\fB(\\-[^\\ ]*(?:\\-[^\\ ]*)*)\\fR"
    shown = {word.replace("\\-", "-") for head in heads for word in re.findall(bold, head)}
    rows = [row for group in groups_of(name) for row in group.rows]
    rows += [row for verb in verbs_of(name) for row in verb.all_rows()]
    assert shown == {word for row in rows for word in row.words}
    assert f"{literal(name)} \\- {escaped(find(name).purpose)}" in text


def test_the_overviews(share: Path) -> None:
    condor = (share / "man/man1/condor.1").read_text()
    assert all(f"\\fB{name}\\fR({page.section})" in condor for name, page in described().items())
    configuration = (share / "man/man5/condor_config.5").read_text()
    assert all(f"\\fB{literal(each.name)}\\fR" in configuration for each in all_parameters())
    control = (share / "man/man8/condor_control.8").read_text()
    assert all(name in control for name, page in described().items() if page.section == 8)


def test_the_examples_are_commands() -> None:
    from condor_actors.tools.manual.overviews import EVERYDAY

    for text, examples in EVERYDAY.values():
        assert {example.split()[0] for example in examples} <= set(described())
        assert set(re.findall(r"\bcondor_\w+", text)) <= set(described())


@pytest.mark.skipif(which("groff") is None, reason="groff is not installed")
def test_groff_has_nothing_to_say(share: Path) -> None:
    done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z", *pages(share)], capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


PAGES = ["man1/condor_q.1", "man1/htcondor.1", "man5/condor_config.5", "man8/condor_control.8"]


@pytest.mark.skipif(which("man") is None, reason="man is not installed")
@pytest.mark.parametrize("page", PAGES)
def test_man_has_nothing_to_say(share: Path, page: str) -> None:
    done = subprocess.run(["man", "--warnings", "-l", share / "man" / page], capture_output=True, text=True,
                          check=False,
                          env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MANROFFOPT": "-ww"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "NAME" in done.stdout
    assert max(map(len, re.sub(".\b", "", done.stdout).splitlines())) <= 100


def test_what_roff_would_take_for_its_own() -> None:
    assert escaped(".TH") == "\\&.TH"
    assert escaped("'use A : B'") == "\\(aquse A : B\\(aq"
    assert escaped("a\\b …") == "a\\eb \\[u2026]"
    assert literal("--a-b") == "\\-\\-a\\-b"


def test_the_reference_has_every_command() -> None:
    text = reference()
    assert re.findall(r"^### (\w+)$", text, re.MULTILINE) != []
    assert set(re.findall(r"^### (\w+)$", text, re.MULTILINE)) == set(described())


def test_it_is_written_by_the_module(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-P", "-m", "condor_actors.tools.manual", tmp_path], capture_output=True,
                          text=True, check=True)
    assert done.stdout.endswith(f"files are written below {tmp_path}\n")
    assert (tmp_path / "man/man1/condor_submit.1").exists()
