"""Unchanged programs get the modules here under HTCondor's names, but never in front of HTCondor's own."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from condor_actors.compat import hook

PROGRAM = """
import sys
import classad, classad2, htcondor, htcondor2
from htcondor2 import Submit
import condor_actors.compat.htcondor2 as ours
assert htcondor2.Submit is Submit is ours.Submit
assert issubclass(htcondor.Submit, Submit)
assert classad.ClassAd is classad2.ClassAd
assert htcondor2.__name__ in ("htcondor2", "condor_actors.compat.htcondor2")
from htcondor2 import dags
from htcondor2.htchirp import HTChirp
import htcondor.dags, htcondor2.dags.exceptions, htcondor2.personal
assert dags is htcondor2.dags is htcondor.dags is ours.dags
assert htcondor2.dags.exceptions.DAGsException is dags.exceptions.DAGsException
try:
    import classad2.nothing
except ModuleNotFoundError:
    pass
print(sys.argv, __name__, classad2.ExprTree("1 + 4").eval())
"""
HIDE = "import sys; sys.path = [each for each in sys.path if not each.endswith('site-packages')] + [{beside!r}]\n"


@pytest.fixture
def python_without(tmp_path: Path) -> Path:
    """A folder to stand for site-packages: everything of this environment's but HTCondor's modules."""
    beside = tmp_path / "beside"
    beside.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith(("htcondor", "classad")):
            (beside / entry.name).symlink_to(entry)
    return beside


def run(beside: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    root = str(Path(hook.__file__).parents[2])
    code = (HIDE.format(beside=str(beside)) + f"sys.path.insert(1, {root!r})\n"
            "import sysconfig; sysconfig.get_path = lambda name: " + repr(str(beside)) + "\n"
            f"import runpy; sys.argv = ['compat', *{list(arguments)!r}]\n"
            "runpy.run_module('condor_actors.compat', run_name='__main__')\n")
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False,
                          cwd=beside.parent)


def test_an_unchanged_program_runs(python_without: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run(python_without, "program.py", "one", "two")
    assert (done.stdout, done.returncode) == ("['program.py', 'one', 'two'] __main__ 5\n", 0), done.stderr


def test_names_are_installed_and_removed(python_without: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run(python_without, "--install")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in python_without.glob("htc*")) == ["htcondor.py", "htcondor2.py"]
    plain = subprocess.run(
        [sys.executable, "-c", HIDE.format(beside=str(python_without))
         + f"sys.path.insert(1, {str(Path(hook.__file__).parents[2])!r})\n" + PROGRAM],
        capture_output=True, text=True, timeout=60, check=False)
    assert plain.stdout == "['-c'] __main__ 5\n", plain.stderr
    assert run(python_without, "--install").returncode == 0, "again is no matter"
    (python_without / "classad.py").write_text("theirs = True\n")
    refused = run(python_without, "--install")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "not replaced" in refused.stderr
    assert run(python_without, "--remove").returncode == 0
    assert [path.name for path in python_without.glob("[hc][tl]*[dr2].py")] == ["classad.py"]


def test_htcondor_itself_is_not_hidden(tmp_path: Path) -> None:
    pytest.importorskip("htcondor2")
    (tmp_path / "program.py").write_text("print('never')\n")
    done = subprocess.run([sys.executable, "-m", "condor_actors.compat", "program.py"], capture_output=True, text=True,
                          timeout=60, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "they are not hidden" in done.stderr
    with pytest.raises(hook.AlreadyThere):
        hook.install_hook()


def test_without_a_program_it_says_how() -> None:
    done = subprocess.run([sys.executable, "-m", "condor_actors.compat"], capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: python -m condor_actors.compat program.py")
