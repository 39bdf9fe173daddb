"""Completion, by the shells themselves: what they offer is what the commands take."""

from __future__ import annotations

import os
import pty
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from condor_actors.tools.manual.__main__ import write
from condor_actors.tools.manual.completion.choices import leaves, tree_of
from condor_actors.tools.manual.description import REFUSED
from condor_actors.tools.manual.lookup import described
from condor_actors.tools.manual.sources import flags_of, groups_of
from tests.pool_fixture import until

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8", "TERM": "dumb"}
ASK = """
compopt() { :; }
ask() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    "_$1"
    printf '%s\\t' "${COMPREPLY[@]}"
    printf '\\n'
}
"""


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("share")
    write(folder)
    return folder


def bash(share: Path, lines: list[tuple[str, ...]], path: str = ENVIRONMENT["PATH"], cwd: Path | None = None,
         ) -> list[set[str]]:  # fmt: skip
    """What bash offers for the last word of each line."""
    asked = "\n".join("ask " + " ".join(f"'{word}'" for word in line) for line in lines)
    sources = "\n".join(f". {path}" for path in sorted((share / "bash-completion/completions").iterdir()))
    done = subprocess.run(["bash", "--norc", "-c", f"{sources}\n{ASK}\n{asked}"], capture_output=True, text=True,
                          check=True, env={**ENVIRONMENT, "PATH": path}, cwd=cwd)
    assert done.stderr == ""
    answers = done.stdout.split("\n")[:-1]
    assert len(answers) == len(lines)
    return [set(filter(None, answer.split("\t"))) for answer in answers]


def options_of(command: str) -> set[str]:
    """All that a command takes with one dash, or with two where that is its only spelling."""
    return {word for group in groups_of(command) if group.title != REFUSED for row in group.rows for word in row.words}


def test_bash_offers_the_options_that_are_taken(share: Path) -> None:
    names = sorted(described())
    one = bash(share, [(name, "-") for name in names])
    two = bash(share, [(name, "--") for name in names])
    for name, single, double in zip(names, one, two, strict=True):
        known = options_of(name)
        assert single | {word for word in double if word in known} == known, name
        if flags_of(name):
            assert double == {f"-{word}" for word in known}, name


def test_bash_offers_verbs_and_their_options(share: Path) -> None:
    places = [((name, *words), verb) for name in sorted(described()) for words, verb in leaves(tree_of(name))]
    found = bash(share, [(*words, "-") for words, _ in places])
    for (words, verb), offered in zip(places, found, strict=True):
        known = {word for row in verb.all_rows() for word in row.words}
        assert {word for word in known if not word.startswith("--") or word[1:] not in known} == offered, words
    for name in sorted(described()):
        if tree_of(name):
            (verbs,) = bash(share, [(name, "")])
            assert verbs == set(tree_of(name))
    assert bash(share, [("htcondor", "job", "s"), ("htcondor", "jobset", "r")]) == [{"submit", "status"}, {"remove"}]


def test_bash_completes_what_stands_behind_an_option(share: Path, tmp_path: Path) -> None:
    (tmp_path / "one.log").touch()
    (tmp_path / "folder").mkdir()
    found = bash(share, [
        ("condor_flock", "limit", "--rank", "b"), ("condor_classad", "format", "-to", ""),
        ("condor_submit_dag", "-autorescue", ""), ("condor_q", "-userlog", "o"), ("condor_wait", "one"),
        ("condor_submit_dag", "-outfile_dir", ""), ("condor_q", "-constraint", ""),
    ], cwd=tmp_path)  # fmt: skip
    assert found[0] == {"below"}
    assert {"long", "json", "xml"} <= found[1]
    assert found[2:] == [{"0", "1"}, {"one.log"}, {"one.log"}, {"folder"}, set()]


def test_bash_asks_the_pool(share: Path, tmp_path: Path) -> None:
    for name, says in {"condor_q": "printf '12.0\\n12.1\\n7.0\\n'",
                       "condor_status": "printf 'desk7\\ndesk8\\ndesk7\\n'",
                       "condor_config_val": "printf '# from x\\nSPOOL = /a b\\nSTART = True\\n'"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{says}\n")
        (tmp_path / name).chmod(0o755)
    found = bash(share, [("condor_rm", "12"), ("condor_drain", ""), ("condor_config_val", "S"), ("condor_off", "desk")],
                 path=f"{tmp_path}:{ENVIRONMENT['PATH']}")
    assert found == [{"12.0", "12.1"}, {"desk7", "desk8"}, {"SPOOL", "START"}, {"desk7", "desk8"}]


def test_bash_offers_nothing_without_a_pool(share: Path) -> None:
    assert bash(share, [("condor_rm", ""), ("condor_drain", "")]) == [set(), set()]


# ---- fish

NEEDS_FISH = pytest.mark.skipif(which("fish") is None, reason="fish is not installed")


@NEEDS_FISH
def test_fish(share: Path, tmp_path: Path) -> None:
    scripts = sorted((share / "fish/vendor_completions.d").iterdir())
    environment = {**ENVIRONMENT, "HOME": str(tmp_path)}
    checked = subprocess.run(["fish", "--no-execute", *scripts], capture_output=True, text=True, check=False,
                             env=environment)
    assert (checked.returncode, checked.stderr) == (0, "")
    asked = {"condor_q -const": {"-constraint"}, "condor_q --const": {"--constraint"}, "condor_flock inv": {"invite"},
             "condor_flock limit --ra": {"--rank"}, "htcondor job st": {"status"}, "htcondor jo": {"job", "jobset"},
             "condor_flock limit --rank ": {"below", "alike"}}
    lines = "\n".join([*(f"source {path}" for path in scripts),
                       *(f"complete -C '{line}'; echo END" for line in asked)])
    done = subprocess.run(["fish", "--no-config", "-c", lines], capture_output=True, text=True, check=True,
                          env=environment)
    found = done.stdout.split("END\n")[:-1]
    assert [{line.split("\t")[0] for line in each.splitlines()} for each in found] == [
        set(words) for words in asked.values()]


# ---- zsh

NEEDS_ZSH = pytest.mark.skipif(which("zsh") is None, reason="zsh is not installed")
SETUP = """
PS1= ; unsetopt zle_bracketed_paste beep; setopt nolistbeep
fpath=({functions} $fpath)
autoload -Uz compinit; compinit -u -D
LISTMAX=10000
compadd() {{
    if [[ ${{@[1,(i)(-|--)]}} == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return; fi
    local -a hits
    builtin compadd -A hits "$@"
    (( $#hits )) && print -rl -- $hits >> {out}
    builtin compadd "$@"
}}
finish() {{ print -r -- END >> {out}; comppostfuncs=(finish) }}
comppostfuncs=(finish)
print READY >> {out}
"""


class Zsh:
    """An interactive zsh on a terminal, with what its completion offers written to a file."""

    def __init__(self, share: Path, folder: Path) -> None:
        self.out = folder / "offered"
        setup = folder / "setup"
        setup.write_text(SETUP.format(functions=share / "zsh/site-functions", out=self.out))
        self.master, inner = pty.openpty()
        quiet = termios.tcgetattr(inner)
        quiet[3] &= ~termios.ECHO
        termios.tcsetattr(inner, termios.TCSANOW, quiet)
        self.process = subprocess.Popen(["zsh", "-f", "-i"], stdin=inner, stdout=inner, stderr=inner, close_fds=True,
                                        env=ENVIRONMENT, start_new_session=True)
        os.close(inner)
        self.type(f"source {setup}\n")
        self.wait("READY")

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def wait(self, word: str) -> set[str]:
        os.set_blocking(self.master, False)

        def there() -> bool:
            try:
                while os.read(self.master, 65536):
                    pass
            except OSError:
                pass
            return self.out.exists() and word in self.out.read_text().splitlines()

        until(there, f"{word} from zsh")
        found = set(self.out.read_text().splitlines()) - {word}
        self.out.write_text("")
        return found

    def offers(self, line: str) -> set[str]:
        self.type(f"\x15{line}\t")
        return self.wait("END")


@pytest.fixture(scope="module")
def zsh(share: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zsh]:
    shell = Zsh(share, tmp_path_factory.mktemp("zsh"))
    yield shell
    shell.process.kill()
    shell.process.wait()
    os.close(shell.master)


@NEEDS_ZSH
def test_zsh_reads_the_file(share: Path) -> None:
    done = subprocess.run(["zsh", "-n", share / "zsh/site-functions/_condor"], capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stderr) == (0, "")


@NEEDS_ZSH
@pytest.mark.parametrize(("line", "offered"), [
    ("condor_q -const", {"-constraint"}), ("condor_flock inv", {"invite"}), ("condor_flock limit --ra", {"--rank"}),
    ("htcondor jo", {"job"}), ("htcondor job stat", {"status"}), ("condor_flock limit --rank ", {"below", "alike"}),
    ("condor_checkpoint info --j", {"--json"}),
])
def test_zsh(zsh: Zsh, line: str, offered: set[str]) -> None:
    assert zsh.offers(line) >= offered
