"""Checkpoints that hold only what changed, the digest, and what becomes of damage."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from condor_actors.machine.native.image import ImageDamaged, full_image, latest_image, read_image, verify_image
from condor_actors.machine.native.programs import runtime_path
from condor_actors.machine.native.shadow import EventKind
from condor_actors.messages.codes import CHECKPOINT_SIGNAL
from tests.native.chain import DEADLINE_S, Chain
from tests.native.conftest import Compile, finished, tool

CHANGER = """
import hashlib, mmap, random, sys
dice = random.Random(7)
memory = bytearray(24 << 20)
for at in range(0, len(memory), 4096):
    memory[at:at + 8] = dice.randbytes(8)
other = None
print("ready", flush=True)
for step in range(int(sys.argv[1])):
    for _ in range(60):
        at = dice.randrange(len(memory) - 64)
        memory[at:at + 64] = dice.randbytes(64)
    if step % 7 == 3:  # mappings come, go and are given up
        other = mmap.mmap(-1, 1 << 20)
        other[4096 * (step % 200):][:9]
        other[4096 * (step % 200)] = step % 256
    if step % 11 == 5 and other:
        other.madvise(mmap.MADV_DONTNEED)
    if step % 13 == 6:
        memory += bytes(dice.randbytes(5000))
    hashlib.sha256(memory).digest()
print(len(memory), hashlib.sha256(memory).hexdigest(), bytes(other[:]).count(0))
"""


class IncrementChain(Chain):
    """A chain whose checkpoints may be increments."""

    increments = 1


@pytest.mark.parametrize("seed", range(2))
def test_programs_go_on_from_increments(seed: int, tmp_path: Path) -> None:
    command = [sys.executable, "-c", CHANGER, "240"]
    native = subprocess.run(command, capture_output=True, check=True)
    dice = random.Random(seed)
    chain = IncrementChain(command, tmp_path, seed)
    chain.start(runtime_path())
    kinds: list[EventKind] = []
    for link in range(3):
        assert chain.process
        chain.expect(EventKind.STARTED)
        while not (tmp_path / "output").stat().st_size:
            if chain.until(EventKind.ENDED, within_s=0.05):
                raise AssertionError("it ended at once")
        for number in range(4):
            chain.until(EventKind.ENDED, within_s=dice.random() * 0.1)
            if number == 3:
                chain.host.vacate(chain.session)
            chain.process.send_signal(CHECKPOINT_SIGNAL)
            kinds.append(chain.expect(EventKind.IMAGE, EventKind.INCREMENT).kind)
            verify_image(str(chain.image) + (".delta" if kinds[-1] is EventKind.INCREMENT else ""))
        chain.expect(EventKind.ENDED)
        assert chain.process.wait(DEADLINE_S) == 112
        delta = Path(f"{chain.image}.delta")
        if delta.exists():
            assert delta.stat().st_blocks < chain.image.stat().st_blocks
        image = tmp_path / f"image.{link}"
        latest_image(str(chain.image))
        assert not delta.exists()
        verify_image(str(chain.image))
        chain.image.replace(image)
        chain.start(str(image))
    chain.expect(EventKind.ENDED)
    assert chain.process
    assert chain.process.wait(DEADLINE_S) == 0
    os.close(chain.output)
    assert (tmp_path / "output").read_bytes() == native.stdout
    if kinds[0] is EventKind.IMAGE and EventKind.INCREMENT not in kinds:
        pytest.skip("this kernel does not tell which pages were written")


@pytest.mark.parametrize("missing", ["userfaultfd", "scan"])
def test_kernels_that_tell_less_get_whole_images(missing: str, tmp_path: Path, compiled: Compile) -> None:
    command = [sys.executable, "-c", CHANGER, "120"]
    native = subprocess.run(command, capture_output=True, check=True)
    chain = IncrementChain(command, tmp_path, seed=1)
    chain.through = [compiled("without"), missing]
    chain.start(runtime_path())
    for link in range(2):
        assert chain.process
        chain.expect(EventKind.STARTED)
        for last in (False, True):
            if last:
                chain.host.vacate(chain.session)
            chain.process.send_signal(CHECKPOINT_SIGNAL)
            assert chain.expect(EventKind.IMAGE, EventKind.INCREMENT).kind is EventKind.IMAGE
            verify_image(str(chain.image))
        chain.expect(EventKind.ENDED)
        assert chain.process.wait(DEADLINE_S) == 112
        image = tmp_path / f"image.{link}"
        chain.image.replace(image)
        chain.start(str(image))
    chain.expect(EventKind.ENDED)
    assert chain.process
    assert chain.process.wait(DEADLINE_S) == 0
    os.close(chain.output)
    assert (tmp_path / "output").read_bytes() == native.stdout


def an_image(folder: Path) -> Path:
    program = [sys.executable, "-c", CHANGER, "100000"]
    chain = IncrementChain(program, folder, seed=0)
    chain.start(runtime_path())
    assert chain.process
    chain.expect(EventKind.STARTED)
    for _ in range(2):
        chain.process.send_signal(CHECKPOINT_SIGNAL)
        chain.expect(EventKind.IMAGE, EventKind.INCREMENT)
    chain.process.kill()
    chain.expect(EventKind.ENDED)
    chain.process.wait(DEADLINE_S)
    os.close(chain.output)
    return chain.image


def test_every_damaged_byte_is_found(tmp_path: Path) -> None:
    image = an_image(tmp_path)
    delta = Path(f"{image}.delta")
    verify_image(str(image))
    dice = random.Random(3)
    for path in [image, delta] if delta.exists() else [image]:
        damaged = tmp_path / "damaged"
        size = path.stat().st_size
        places = [*(dice.randrange(size) for _ in range(12)), 5, 0x10FF8, 0x11010, size - 1]
        for place in places:
            shutil.copy(path, damaged)
            with damaged.open("r+b") as file:
                file.seek(place)
                byte = file.read(1)[0]
                file.seek(place)
                file.write(bytes([byte ^ (1 << dice.randrange(8))]))
            with pytest.raises(ImageDamaged):
                verify_image(str(damaged))
    assert finished(tool("verify", str(image)))[0] == 0
    assert finished(tool("verify", str(damaged)))[0] == 1


def test_an_increment_is_not_added_to_another_image(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one, two = an_image(tmp_path / "one"), an_image(tmp_path / "two")
    delta = f"{one}.delta"
    if not os.path.exists(delta):
        pytest.skip("this kernel does not tell which pages were written")
    assert read_image(delta).base == read_image(str(one)).generation
    with pytest.raises(ImageDamaged, match="does not add to"):
        full_image(str(two), delta, str(tmp_path / "none"))
    with pytest.raises(ImageDamaged, match="does not add to"):
        full_image(delta, delta, str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
    whole = full_image(str(one), delta, str(tmp_path / "both"))
    assert whole.base is None
    assert whole.generation == read_image(delta).generation
    shutil.copy(delta, f"{two}.delta")
    assert latest_image(str(two)) == str(two)  # the stranger's increment is left alone
    verify_image(str(two))
