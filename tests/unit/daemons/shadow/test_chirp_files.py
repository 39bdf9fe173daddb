"""A hostile execute machine asks for files: what is not below the job's folders is neither read, changed nor named."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.chirp_protocol import ChirpError
from condor_actors.cores.shadow.chirp_rights import ChirpLimits, HomeRights
from condor_actors.daemons.shadow.chirp_files import ChirpFiles
from condor_actors.messages.run import ChirpCall

NUMBERS = {"open": (1, 0o644), "mkdir": (0o755,), "access": (4,), "chmod": (0o777,), "chown": (0, 0), "lchown": (0, 0),
           "truncate": (0,), "utime": (1, 1)}
ONE_PATH = ("open", "unlink", "rmdir", "rmall", "mkdir", "readlink", "getdir", "getlongdir", "stat", "lstat", "statfs",
            "access", "chmod", "chown", "lchown", "truncate", "utime")


def call(verb: str, path: str, *numbers: int, other: str = "", data: bytes = b"") -> ChirpCall:
    return ChirpCall(run_id="1.0#1", verb=verb, path=path, other=other, numbers=numbers or NUMBERS.get(verb, ()),
                     data=data)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ChirpFiles]:
    """A job's folder with links that lead out, and what is beside it."""
    folder = tmp_path / "job"
    (folder / "below").mkdir(parents=True)
    (folder / "own").write_text("own\n")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "file").write_text("secret\n")
    (folder / "out").symlink_to("../secret")
    (folder / "out-file").symlink_to(tmp_path / "secret" / "file")
    (folder / "proc").symlink_to("/proc/self")
    (folder / "in").symlink_to("below/../own")
    (folder / "nowhere").symlink_to(tmp_path / "secret" / "new")
    os.mkfifo(folder / "pipe")
    files = ChirpFiles(str(folder), (str(folder),))
    yield files
    files.close_all()
    assert (tmp_path / "secret" / "file").read_text() == "secret\n"
    assert os.listdir(tmp_path / "secret") == ["file"]
    assert sorted(os.listdir(tmp_path)) == ["job", "secret"]


@pytest.mark.parametrize("verb", ONE_PATH)
@pytest.mark.parametrize("path", [
    "/etc/shadow", "/etc/passwd", "../secret/file", "below/../../secret/file", "out/file", "out/../job/../secret/file",
    "/proc/self/mem", "/proc/self/environ", "/dev/zero", "proc/environ", "proc/root/etc/passwd", "proc/cwd/x",
    "../secret/new", "out/new", "//etc/passwd", "..", "/", "out/.", "out/..",
])
def test_no_verb_leaves_the_folder(home: ChirpFiles, verb: str, path: str) -> None:
    found = home.do(call(verb, path, other="rwc"))
    assert found.value < 0, (verb, path)
    assert not found.data


@pytest.mark.parametrize("path", ["out-file", "nowhere", "out", "proc", "pipe", "", "below", "."])
@pytest.mark.parametrize("flags", ["r", "w", "rw", "rwc", "wct", "wcx", "wca"])
def test_nothing_but_plain_files_below_is_opened(home: ChirpFiles, path: str, flags: str) -> None:
    assert home.do(call("open", path, other=flags)).value < 0


@pytest.mark.parametrize(("verb", "path", "other"), [
    ("link", "out-file", "../secret/x"), ("link", "/etc/passwd", "x"), ("link", "out/file", "x"),
    ("rename", "own", "../secret/own"), ("rename", "out/file", "x"), ("rename", "own", "out/x"),
    ("rename", "below", "../below"), ("symlink", "../secret", "x"), ("symlink", "/etc", "x"),
    ("symlink", "below/../../secret", "x"), ("symlink", "own", "../x"), ("symlink", "own", "out/x"),
    ("rename", ".", "x"), ("rename", "own", ".."),
])
def test_no_name_is_made_that_leads_out(home: ChirpFiles, verb: str, path: str, other: str) -> None:
    assert home.do(call(verb, path, other=other)).value < 0


def test_links_that_a_run_makes_stay_below_wherever_they_are_moved(home: ChirpFiles, tmp_path: Path) -> None:
    assert home.do(call("symlink", "own", other="below/link")).value == 0
    assert home.do(call("rename", "below/link", other="link")).value == 0
    assert home.do(call("open", "link", other="r")).value == 0
    assert home.do(call("open", "in", other="r")).value == 0
    assert home.do(call("symlink", str(tmp_path / "job" / "own"), other="absolute")).value == 0


def test_a_file_that_another_shadow_had_open(home: ChirpFiles, tmp_path: Path) -> None:
    """It is opened again by its path, as it was, but neither made nor emptied; not where a link leads out by now."""
    (tmp_path / "job" / "log").write_text("one\n")
    assert home.do(call("write", "log", 9, -1, other="wcta", data=b"two\n")).value == 4
    assert home.do(call("read", "log", 10, 0, 100, other="rct")).data == b"one\ntwo\n"
    assert home.do(call("read", "none", 11, 0, 100, other="rwct")).value == ChirpError.DOESNT_EXIST
    assert home.do(call("read", "out-file", 12, 0, 100, other="r")).value == ChirpError.NOT_AUTHORIZED
    assert home.do(call("fchmod", "log", 9, 0o7777, other="w")).value == 0
    assert stat.S_IMODE((tmp_path / "job" / "log").stat().st_mode) == 0o777


def test_so_many_are_open_at_once(home: ChirpFiles) -> None:
    found = [home.do(call("open", "own", number, 0, other="r")).value for number in range(65)]
    assert found == [0] * 64 + [ChirpError.TOO_MANY_OPEN]
    assert home.do(call("close", "own", 3, other="r")).value == 0
    assert home.do(call("open", "own", 64, 0, other="r")).value == 0


def test_trees_are_removed_below_only(home: ChirpFiles, tmp_path: Path) -> None:
    (tmp_path / "job" / "below" / "link").symlink_to(tmp_path / "secret")
    assert home.do(call("rmall", "below")).value == 0
    assert not (tmp_path / "job" / "below").exists()
    assert home.do(call("rmall", ".")).value == ChirpError.INVALID_REQUEST


def test_bad_numbers(home: ChirpFiles) -> None:
    assert home.do(call("read", "own", 1, 1 << 62, 100, other="r")).value in (0, ChirpError.INVALID_REQUEST)
    assert home.do(call("truncate", "own", -1)).value == ChirpError.INVALID_REQUEST
    assert home.do(call("stat", "a\0b")).value == ChirpError.INVALID_REQUEST


def rights(limits: ChirpLimits | None = None, *, as_root: bool = False, **job: object) -> HomeRights:
    return HomeRights(ClassAd({"Iwd": "/home/a/run", **job}), limits or ChirpLimits(), as_root=as_root)


def test_the_submitted_ad_decides_and_the_administrator_has_the_last_word() -> None:
    read = call("open", "f", other="r")
    assert rights().refusal(read, 0.0) is ChirpError.NOT_AUTHORIZED
    assert rights(WantIOProxy=True).refusal(read, 0.0) is None
    assert rights(WantIOProxy=True).folders == ("/home/a/run",)
    assert rights(WantIOProxy=True, LimitDirectoryAccess="/data, /scratch").folders == (
        "/home/a/run", "/data", "/scratch")
    assert rights(LimitDirectoryAccess="/", as_root=True).folders == ("/home/a/run",)
    assert rights(ChirpLimits(folders=("/data",)), LimitDirectoryAccess="/").folders == ("/data",)


@pytest.mark.parametrize("wrong", [
    call("fork", "f"), call("get_job_attr", "X", 1), ChirpCall(run_id="1.0#1", verb="open", path="f"),
    ChirpCall(run_id="1.0#1", verb="read", path="f", numbers=(1, 2)), call("stat", ""), call("stat", "f", 1),
    ChirpCall(run_id="1.0#1", verb="do"), ChirpCall(run_id="1.0#1", verb="__class__"),
])  # fmt: skip
def test_calls_that_no_starter_makes(wrong: ChirpCall) -> None:
    assert rights(WantIOProxy=True).refusal(wrong, 0.0) is ChirpError.INVALID_REQUEST


def test_how_much_there_may_be() -> None:
    some = rights(WantIOProxy=True, MaxTransferOutputMB=1)
    write = call("write", "f", 1, 0, other="w", data=bytes(1 << 19))
    assert [some.refusal(write, 0.0) for _ in range(3)] == [None, None, ChirpError.NO_SPACE]
    log = ChirpCall(run_id="1.0#1", verb="ulog", data=b"x")
    assert [some.refusal(log, 0.0) for _ in range(101)][-1] is ChirpError.BUSY
    assert some.refusal(log, 10.0) is None
    assert some.attributes_refusal(("Mine",), 10, 0.0, delayed=False) is None
    assert some.attributes_refusal(("Mine",), 1 << 20, 0.0, delayed=False) is ChirpError.TOO_BIG
    many = tuple(f"Chirp{number}" for number in range(101))
    assert some.attributes_refusal(many, 10, 0.0, delayed=True) is ChirpError.TOO_BIG
    assert some.attributes_refusal(("Mine",), 10, 0.0, delayed=True) is ChirpError.NOT_AUTHORIZED
    assert some.attributes_refusal(("Bad name",), 10, 0.0, delayed=False) is ChirpError.INVALID_REQUEST
    assert rights().attributes_refusal(("Mine",), 10, 0.0, delayed=False) is ChirpError.NOT_AUTHORIZED
    assert rights().attributes_refusal(("ChirpMine",), 10, 0.0, delayed=True) is None
    assert rights(WantDelayedUpdates=False).attributes_refusal(
        ("ChirpMine",), 10, 0.0, delayed=True) is ChirpError.NOT_AUTHORIZED
    assert [some.attributes_refusal(("Mine",), 10, 0.0, delayed=False) for _ in range(201)][-1] is ChirpError.BUSY
