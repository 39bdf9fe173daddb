"""The configuration language where it goes beyond HTCondor's cases, and what it says of mistakes."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from condor_actors.config import Config, ConfigError, load_config


def read(folder: Path, text: str, **more: str) -> Config:
    file = folder / "condor_config"
    file.write_text(text)
    return load_config(environ={"CONDOR_CONFIG": str(file), **more})


def refusal(folder: Path, text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read(folder, text)
    return caught.value


def test_local_files_and_folders_are_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for name, value in (("10-a", "a"), ("20-b", "b"), ("30-c~", "left out"), (".hidden", "left out")):
        (tmp_path / "d" / name).write_text(f"X = {value}\nSEEN = $(SEEN) {name}\n")
    (tmp_path / "local").write_text("SEEN = $(SEEN) local\n")
    config = read(tmp_path, f"LOCAL_CONFIG_DIR = {tmp_path}/d\nLOCAL_CONFIG_FILE = {tmp_path}/local\nX = first\n")
    assert config.text("SEEN") == "10-a 20-b local"
    assert config.text("X") == "b"
    assert config.where("X") == (str(tmp_path / "d/20-b"), 1)
    assert [Path(source).name for source in config.sources] == ["condor_config", "10-a", "20-b", "local"]


def test_a_missing_local_file_is_an_error_unless_it_may_be(tmp_path: Path) -> None:
    error = refusal(tmp_path, f"LOCAL_CONFIG_FILE = {tmp_path}/nope\n")
    assert "nope: No such file" in str(error)
    config = read(tmp_path, f"LOCAL_CONFIG_FILE = {tmp_path}/nope\nREQUIRE_LOCAL_CONFIG_FILE = False\nA = 1\n")
    assert config.text("A") == "1"


def test_the_environment_comes_last(tmp_path: Path) -> None:
    config = read(tmp_path, "SPOOL = /a\n", _CONDOR_SPOOL="/b", _condor_other="c")
    assert config.text("SPOOL") == "/b"
    assert config.text("OTHER") == "c"
    assert config.where("SPOOL") == ("<Environment>", 0)


def test_only_the_environment() -> None:
    config = load_config(environ={"CONDOR_CONFIG": "ONLY_ENV", "_CONDOR_A": "$(B)", "_CONDOR_B": "x"})
    assert config.sources == ()
    assert config.text("A") == "x"
    assert config.text("CONFIG_ROOT") is None


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match="CONDOR_CONFIG names /no/such, which is not a file"):
        load_config(environ={"CONDOR_CONFIG": "/no/such"})


def test_prefixes_of_subsystem_and_local_name(tmp_path: Path) -> None:
    file = tmp_path / "c"
    file.write_text("A = all\nSCHEDD.A = schedd\nEAST.A = east\nSCHEDD.EAST.A = both\nB = $(A)\nEAST.C = local\n")
    environ = {"CONDOR_CONFIG": str(file)}
    assert load_config(environ=environ).text("B") == "all"
    assert load_config(environ=environ, subsystem="SCHEDD").text("B") == "schedd"
    east = load_config(environ=environ, subsystem="SCHEDD", local_name="east")
    assert (east.text("B"), east.text("C")) == ("both", "local")


def test_include(tmp_path: Path) -> None:
    (tmp_path / "more").write_text("A = $(HERE)\n")
    config = read(tmp_path, f"HERE = {tmp_path}\ninclude : $(HERE)/more\ninclude ifexist : $(HERE)/none\n")
    assert config.text("A") == str(tmp_path)
    error = refusal(tmp_path, f"A = 1\ninclude : {tmp_path}/none\n")
    assert error.place == f"{tmp_path}/condor_config, line 2"
    error = refusal(tmp_path, f"include : {tmp_path}/condor_config\n")
    assert "without end" in str(error)


def test_include_of_what_a_program_prints(tmp_path: Path) -> None:
    config = read(tmp_path, "include : /bin/echo A = 5 |\ninclude command : /bin/echo B = 6\n")
    assert (config.text("A"), config.text("B")) == ("5", "6")
    cache = tmp_path / "cache"
    text = f"include command into {cache} : /bin/echo C = 7\n"
    assert read(tmp_path, text).text("C") == "7"
    cache.write_text("C = 8\n")
    assert read(tmp_path, text).text("C") == "8"
    assert "failed with status 1" in str(refusal(tmp_path, "include command : /bin/false\n"))
    assert read(tmp_path, "include ifexist command : /bin/false\nA = 1\n").text("A") == "1"


@pytest.mark.parametrize(("command", "why"), [
    ("yes", "prints more than"), ("sleep 1000", "takes too long"),
    ("sh -c 'while sleep 0.1; do echo; done'", "takes too long"), ("/none", "No such file"),
    ("sh -c 'exec >&-; sleep 1000'", "takes too long"), ("into /proc/none/cache : echo A = 1", "cannot keep"),
    ("", "names no command"), ("'", "No closing quotation")])
def test_a_command_whose_output_is_not_taken(
        command: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condor_actors.config.loader.COMMAND_S", 0.5)
    monkeypatch.setattr("condor_actors.config.loader.MOST_FILE_BYTES", 1 << 20)
    words = command if command.startswith("into") else f": {command}"
    error = refusal(tmp_path, f"A = 1\ninclude command {words}\n")
    assert error.place == f"{tmp_path}/condor_config, line 2"
    assert re.search(why, str(error)), error


def test_a_folder_of_files_that_is_none(tmp_path: Path) -> None:
    error = refusal(tmp_path, f"A = 1\nLOCAL_CONFIG_DIR = {tmp_path}/condor_config\n")
    assert error.place == f"{tmp_path}/condor_config, line 2"
    assert "Not a directory" in str(error)


def test_messages_of_the_files(tmp_path: Path) -> None:
    config = read(tmp_path, "A = old\nwarning : $(A) things\n")
    assert config.warnings == (f"{tmp_path}/condor_config, line 2: old things",)
    error = refusal(tmp_path, "if ! defined STUFF\n error : stuff is needed\nendif\n")
    assert str(error) == f"{tmp_path}/condor_config, line 2: stuff is needed"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("A = 1\nrubbish here\n", 2, "this line is no statement: rubbish here; expected NAME = value"),
        ("A-B = 3\n", 1, "no statement"),
        ("if maybe\nendif\n", 1, "neither true nor false"),
        ("\nif true\nA = 1\n", 2, "no endif"),
        ("endif\n", 1, "without an if"),
        ("if true\nelse\nelif true\nendif\n", 3, "after else"),
        ("if version > x\nendif\n", 1, "version >= X.Y.Z"),
        ("if defined A B\nendif\n", 1, "one name"),
        ("A @=end\nB\n", 1, "expected a line @end"),
        ("use POLICY : DESKTPO\n", 1, "did you mean Desktop?"),
        ("use POLCIY : DESKTOP\n", 1, "did you mean POLICY?"),
        ("use FEATURE : StaticSlots(1, 2\n", 1, "not closed"),
        ("use POLICY : PREEMPT_IF\n", 1, "needs the name of a macro"),
    ],
)
def test_mistakes_are_told_with_their_place(tmp_path: Path, text: str, line: int, words: str) -> None:
    error = refusal(tmp_path, text)
    assert (error.file, error.line) == (str(tmp_path / "condor_config"), line)
    assert words in str(error)


def test_circles_end(tmp_path: Path) -> None:
    config = read(tmp_path, "A = $(B)\nB = $(C)\nC = x $(A)\n")
    with pytest.raises(ConfigError, match="in a circle"):
        config.text("A")
    assert [problem.name for problem in config.problems()]


def test_growth_ends(tmp_path: Path) -> None:
    lines = ["A0 = xxxxxxxx"] + [f"A{n} = $(A{n - 1})$(A{n - 1})" for n in range(1, 60)]
    with pytest.raises(ConfigError, match="beyond all bounds"):
        read(tmp_path, "\n".join(lines)).text("A59")
    empty = ["A0 ="] + [f"A{n} = $(A{n - 1})$(A{n - 1})" for n in range(1, 60)]
    with pytest.raises(ConfigError, match="beyond all bounds"):
        read(tmp_path, "\n".join(empty)).text("A59")


def test_a_comment_within_a_continued_line_vanishes(tmp_path: Path) -> None:
    config = read(tmp_path, "A = a \\\n# gone\n b\nC = a \\\n# gone \\\n b\n")
    assert config.text("A") == config.text("C") == "a b"


def test_old_spellings(tmp_path: Path) -> None:
    config = read(tmp_path, "START : KeyboardIdle > 60\nuse = 1\n@use ROLE : Execute\n[heading\n")
    assert str(config.expression("START")) == "KeyboardIdle > 60"
    assert config.text("USE") == "1"
    assert config.list_of("DAEMON_LIST") == ("MASTER", "STARTD")


def test_what_condor_config_val_set_kept_counts_where_it_may(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/.config.SCHEDD").write_text("MAX_JOBS_RUNNING = 7\n")
    (tmp_path / f"kept/.config.SCHEDD.{os.getpid()}").write_text("MAX_JOBS_RUNNING = 8\n")
    file = tmp_path / "c"
    environ = {"CONDOR_CONFIG": str(file)}
    file.write_text(f"PERSISTENT_CONFIG_DIR = {tmp_path}/kept\n")
    assert load_config(environ=environ, subsystem="SCHEDD").integer("MAX_JOBS_RUNNING") == 10000
    file.write_text(f"PERSISTENT_CONFIG_DIR = {tmp_path}/kept\nENABLE_PERSISTENT_CONFIG = True\n")
    assert load_config(environ=environ, subsystem="SCHEDD").integer("MAX_JOBS_RUNNING") == 7
    assert load_config(environ=environ, subsystem="STARTD").integer("MAX_JOBS_RUNNING") == 10000
    file.write_text(f"PERSISTENT_CONFIG_DIR = {tmp_path}/kept\nENABLE_RUNTIME_CONFIG = True\n")
    assert load_config(environ=environ, subsystem="SCHEDD").integer("MAX_JOBS_RUNNING") == 8


def test_arguments_of_other_templates_are_left_alone(tmp_path: Path) -> None:
    config = read(tmp_path, "SUBMIT_TEMPLATE_X @=end\nif ! $(1?)\nerror : $(2+) $(0#) $(1:none)\nendif\n@end\n")
    assert config.text("SUBMIT_TEMPLATE_X") == "if ! $(1?)\nerror : $(2+) $(0#) none\nendif"


def test_templates_that_are_refused_say_why(tmp_path: Path) -> None:
    assert "FEATURE:Ganglia cannot be used: the daemons offer their metrics to Prometheus instead" in str(
        refusal(tmp_path, "use FEATURE : Ganglia\n")
    )
    assert "a pool has one central manager" in str(refusal(tmp_path, "use EXPERIMENTAL : HAD(x)\n"))
    assert read(tmp_path, "use ROLE : get_htcondor_execute\n").text("SEC_DEFAULT_ENCRYPTION") == "required"
    assert read(tmp_path, "use FEATURE : TestingMode_Policy_Values\n").text("TESTINGMODE_START") == "True"


def test_a_name_that_becomes_none_is_refused(tmp_path: Path) -> None:
    error = refusal(tmp_path, "A = 1 2\n$(A)_X = 5\n")
    assert "$(A)_X stands for '1 2_X', which is no name" in str(error)
    assert error.line == 2
