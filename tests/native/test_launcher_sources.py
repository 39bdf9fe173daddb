"""A folder that was looked at before the launch is the one that the launch uses, or there is none."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from condor_actors.machine.containers.probe import containers_work
from tests.native.test_launcher import launch, root_only

pytestmark = root_only
imaging = pytest.mark.skipif(not containers_work(), reason="this kernel gives no namespaces or no overlays")


@pytest.fixture
def image(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """A folder two levels down, and a look at it."""
    place = tmp_path / "above" / "image"
    place.mkdir(parents=True)
    (place / "mark").write_text("looked at")
    opened = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    yield str(place), opened
    os.close(opened)


def bound(path: str, opened: int, *more: str) -> tuple[str, str]:
    """What such a mount shows, and what the launcher says."""
    keep = (opened,) if opened >= 0 else ()
    done, said = launch("--isolate", "mount", "--bind", path, "/mnt", "--checked", str(opened) if keep else "-", path,
                        *more, "--", "/bin/cat", "/mnt/mark", keep=keep)
    return done.stdout, said


def to_a_link(place: Path) -> None:
    place.rename(place.with_name("elsewhere"))
    place.symlink_to("elsewhere")


def to_a_link_above(place: Path) -> None:
    to_a_link(place.parent)


def to_another_folder(place: Path) -> None:
    place.rename(place.with_name("elsewhere"))
    place.mkdir()
    (place / "mark").write_text("something else")


def to_nothing(place: Path) -> None:
    place.rename(place.with_name("elsewhere"))


SWAPS = [(to_a_link, errno.ELOOP), (to_a_link_above, errno.ELOOP), (to_another_folder, errno.ESTALE),
         (to_nothing, errno.ENOENT)]


def test_what_is_still_there_is_used(image: tuple[str, int]) -> None:
    assert bound(*image) == ("looked at", "")


@pytest.mark.parametrize(("swap", "number"), SWAPS)
def test_what_is_bound_was_swapped(image: tuple[str, int], swap: Callable[[Path], None], number: int) -> None:
    swap(Path(image[0]))
    assert bound(*image) == ("", f"changed {number} {image[0]}\n")


@pytest.mark.parametrize("swap", [to_a_link, to_a_link_above])
def test_a_link_where_nothing_was_kept(image: tuple[str, int], swap: Callable[[Path], None]) -> None:
    assert bound(image[0], -1) == ("looked at", "")
    swap(Path(image[0]))
    assert bound(image[0], -1) == ("", f"changed {errno.ELOOP} {image[0]}\n")


def test_nothing_where_nothing_was_kept_is_the_machines(image: tuple[str, int]) -> None:
    to_nothing(Path(image[0]))
    assert bound(image[0], -1) == ("", f"source {errno.ENOENT} {image[0]}\n")


@imaging
@pytest.mark.parametrize(("swap", "number"), SWAPS)
@pytest.mark.parametrize("isolate", ["mount,pid", "user,mount,pid"])
def test_an_image_was_swapped(image: tuple[str, int], tmp_path: Path, isolate: str, swap: Callable[[Path], None],
                              number: int) -> None:
    path, opened = image
    layers = tmp_path / "layers"
    for name in ("upper/proc", "upper/dev", "upper/sys", "work", "root"):
        (layers / name).mkdir(parents=True)

    def said() -> str:
        return launch("--isolate", isolate, "--layers", str(layers), "--image", path, "--checked", str(opened), path,
                      "--checked", "-", str(layers), "--", "/no-such-program", keep=(opened,))[1]

    assert said() == f"exec {errno.ENOENT} /no-such-program\n"
    swap(Path(path))
    assert said() == f"changed {number} {path}\n"


@imaging
@pytest.mark.parametrize("name", ["upper", "work", "root"])
def test_a_layer_that_is_a_link(image: tuple[str, int], tmp_path: Path, name: str) -> None:
    layers = tmp_path / "layers"
    for each in ("upper/proc", "upper/dev", "upper/sys", "work", "root"):
        (layers / each).mkdir(parents=True)
    to_a_link(layers / name)
    said = launch("--isolate", "mount,pid", "--layers", str(layers), "--image", image[0], "--", "/no-such-program")[1]
    assert said == f"container {errno.ENOTDIR} {name}\n"


def test_the_job_gets_none_of_what_was_kept(image: tuple[str, int]) -> None:
    path, opened = image
    for isolate in ("mount", "mount,pid"):
        done, said = launch("--isolate", isolate, "--bind", path, "/mnt", "--checked", str(opened), path, "--",
                            "/bin/ls", "/proc/self/fd", keep=(opened,))
        assert (done.stdout.split(), said) == (["0", "1", "2", "3"], "")


@pytest.mark.parametrize("swap", [to_a_link, to_a_link_above])
def test_where_a_program_begins_became_a_link(image: tuple[str, int], swap: Callable[[Path], None]) -> None:
    words = ("--chdir", image[0], "--checked", "-", image[0], "--", "/bin/cat", "mark")
    assert launch(*words)[0].stdout == "looked at"
    swap(Path(image[0]))
    done, said = launch(*words)
    assert (done.stdout, said) == ("", f"changed {errno.ELOOP} {image[0]}\n")


def without_openat2() -> None:
    """In the child: a kernel, or a filter around a container, that does not have the call."""
    refuses, allows = 0x00050000 | errno.ENOSYS, 0x7FFF0000
    instructions = [(0x20, 0, 0, 0), (0x15, 0, 1, 437), (0x06, 0, 0, refuses), (0x06, 0, 0, allows)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in instructions))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(instructions), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, program, 0, 0) == 0


@pytest.mark.parametrize(("swap", "number"), [*SWAPS[:1], (to_a_link_above, errno.ENOTDIR), *SWAPS[2:]])
def test_where_the_kernel_has_no_openat2(image: tuple[str, int], swap: Callable[[Path], None], number: int) -> None:
    path, opened = image
    words = ("--isolate", "mount", "--bind", path, "/mnt", "--checked", str(opened), path, "--", "/bin/cat",
             "/mnt/mark")
    done, said = launch(*words, keep=(opened,), before=without_openat2)
    assert (done.stdout, said) == ("looked at", "")
    swap(Path(path))
    assert launch(*words, keep=(opened,), before=without_openat2)[1] == f"changed {number} {path}\n"


@pytest.mark.parametrize("words", [("--checked", "-", "relative"), ("--checked", "x", "/a"), ("--checked", "2", "/a")])
def test_words_that_say_nothing(words: tuple[str, ...]) -> None:
    assert launch(*words, "--", "/bin/true")[1] == f"options {errno.EINVAL} --checked\n"
