"""The scripts of the commands, and the bundle of modules that they load from."""

from __future__ import annotations

import datetime
import marshal
import os
import subprocess
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import MAGIC_NUMBER, module_from_spec
from pathlib import Path

import pytest

from condor_actors.tools import start
from condor_actors.tools.bundle import bundle

BIN = Path(sys.prefix) / "bin"
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
ROOT = str(Path(start.__file__).parents[2])
HOSTILE = "import os\nopen(os.environ['MARK'], 'a').write(__file__ + '\\n')\nraise SystemExit('not ours')\n"


@pytest.fixture
def hostile(tmp_path: Path) -> dict[str, str]:
    """An environment whose every word about Python leads to modules of other people."""
    user = tmp_path / "user" / "lib" / PYTHON / "site-packages"
    for folder in (tmp_path / "path", user, tmp_path / "home", tmp_path / "bin"):
        folder.mkdir(parents=True)
    names = ("sitecustomize", "usercustomize", "json", "re", "os", "msgpack", "twisted", "condor_actors")
    for folder in (tmp_path / "path", user):
        for name in names:
            (folder / f"{name}.py").write_text(HOSTILE)
        (folder / "theirs.pth").write_text("import sitecustomize\n")
    other = tmp_path / "bin" / PYTHON
    other.write_text("#!/bin/sh\necho other >> \"$MARK\"\nexit 1\n")
    other.chmod(0o755)
    return {
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path / "home"), "MARK": str(tmp_path / "mark"),
        "PYTHONPATH": str(tmp_path / "path"), "PYTHONSTARTUP": str(tmp_path / "path" / "re.py"),
        "PYTHONHOME": "/nonexistent", "PYTHONUSERBASE": str(tmp_path / "user"), "PYTHONINSPECT": "1",
        "PYTHONWARNINGS": "error", "PYTHONIOENCODING": "utf-16", "PYTHONPLATLIBDIR": "nowhere",
        "VIRTUAL_ENV": str(tmp_path), "CONDOR_CONFIG": "ONLY_ENV", "_CONDOR_SPOOL": "/tmp/here",
    }


@pytest.mark.parametrize("words", [["condor_version"], ["condor_config_val", "SPOOL"], ["condor_submit_dag", "-help"],
                                   ["htcondor", "job", "status", "--help"]], ids=lambda words: words[0])
def test_what_the_caller_says_to_python_does_not_reach_a_command(
    words: list[str], hostile: dict[str, str], tmp_path: Path,
) -> None:
    done = subprocess.run([str(BIN / words[0]), *words[1:]], env=hostile, cwd=tmp_path / "path", check=False,
                          capture_output=True, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()
    assert b"\0" not in done.stdout
    assert not (tmp_path / "mark").exists(), (tmp_path / "mark").read_text()


def test_a_link_to_a_command_leads_to_its_own_python(hostile: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "bin" / "version").symlink_to(os.path.relpath(BIN / "condor_version", tmp_path / "bin"))
    done = subprocess.run(["version"], env=hostile, cwd=tmp_path, check=False, capture_output=True)
    assert done.stdout.startswith(b"$CondorVersion: "), done.stderr
    assert not (tmp_path / "mark").exists()


def test_a_command_ends_with_its_status_and_all_that_it_said(tmp_path: Path) -> None:
    with open(tmp_path / "out", "wb") as out:
        done = subprocess.run([str(BIN / "condor_q"), "-nonsense"], stdout=out, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert b"-nonsense" in done.stderr


def test_a_full_disk_is_no_success() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([str(BIN / "condor_version")], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode != 0
    assert done.stderr


def finder(tmp_path: Path, magic: bytes = MAGIC_NUMBER) -> start._Bundle | None:
    """A bundle of one module, ``said``, whose source says something else than its code."""
    source = tmp_path / "said.py"
    source.write_text("WORD = 'source'\n")
    code = marshal.dumps(compile("WORD = 'bundle'\n", str(source), "exec"))
    found = source.stat()
    table = marshal.dumps({"said": (str(source), False, int(found.st_mtime), found.st_size, 0, len(code))})
    (tmp_path / "bundle").write_bytes(magic + len(table).to_bytes(4, "little") + table + code)
    return start._Bundle.read(str(tmp_path / "bundle"))


def test_a_module_comes_from_the_bundle(tmp_path: Path) -> None:
    found = finder(tmp_path)
    assert found is not None
    spec = found.find_spec("said")
    assert spec is not None
    assert spec.loader is not None
    assert spec.origin == str(tmp_path / "said.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.WORD == "bundle"
    assert found.find_spec("unsaid") is None


def test_an_extension_module_is_loaded_from_where_it_lies(tmp_path: Path) -> None:
    table = marshal.loads(bundle()[start.HEAD_BYTES:])
    source, _, _, _, begin, length = table["msgpack._cmsgpack"]
    assert (Path(source).suffix, length) == (".so", 0)
    found = start._Bundle(0, table, begin).find_spec("msgpack._cmsgpack")
    assert found is not None
    assert isinstance(found.loader, ExtensionFileLoader)
    assert module_from_spec(found).__file__ == source


def test_the_datetime_of_the_bundle_has_what_pythons_has() -> None:
    program = ("import sys\nfrom condor_actors.tools import start\n"
               "sys.meta_path.insert(0, start._Bundle.read(start.BUNDLE))\n"
               "import datetime\nprint(*sorted(n for n in dir(datetime) if n[0] != '_' or n == '__doc__'))\n"
               "print(datetime.__spec__.cached)")
    said = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys\nsys.path.append({ROOT!r})\n{program}"],
                          capture_output=True, text=True, check=True).stdout.splitlines()
    wanted = {name for name in dir(datetime) if not name.startswith("_")} - {"sys"} | {"__doc__"}
    assert set(said[0].split()) == wanted
    assert said[1] == start.BUNDLE


@pytest.mark.parametrize("change", ["time", "size", "gone"])
def test_no_module_comes_from_the_bundle_whose_source_has_changed(tmp_path: Path, change: str) -> None:
    found = finder(tmp_path)
    assert found is not None
    source = tmp_path / "said.py"
    time_s = source.stat().st_mtime
    if change == "gone":
        source.unlink()
    elif change == "size":
        source.write_text("WORD = 'a longer one'\n")
        os.utime(source, (time_s, time_s))
    else:
        os.utime(source, (time_s + 1, time_s + 1))
    assert found.find_spec("said") is None


def test_a_bundle_of_another_python_is_left_alone(tmp_path: Path) -> None:
    assert finder(tmp_path, b"\0\0\r\n") is None
    (tmp_path / "bundle").write_bytes(b"")
    assert start._Bundle.read(str(tmp_path / "bundle")) is None
    assert start._Bundle.read(str(tmp_path / "none")) is None


def test_a_bundle_can_be_written_for_another_place() -> None:
    root = str(Path(start.__file__).parents[2])
    table = marshal.loads(bundle(strip=root)[start.HEAD_BYTES:])
    assert table["condor_actors.tools.jobs.q"][0] == "/condor_actors/tools/jobs/q.py"
    assert table["re"][0].startswith("/")


def test_what_no_folder_of_the_command_has_is_found_as_by_any_python() -> None:
    program = (
        "import sys\n"
        "sys.path.append(sys.argv[1])\n"
        "from condor_actors.tools import start\n"
        "sys.meta_path.append(start._EveryWay())\n"
        "import msgpack\n"
        "try:\n"
        "    import no_such_module\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error.name, msgpack.__name__)\n")
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program, str(Path(start.__file__).parents[2])],
                          capture_output=True, text=True, check=False)
    assert done.stdout == "no_such_module msgpack\n", done.stderr
