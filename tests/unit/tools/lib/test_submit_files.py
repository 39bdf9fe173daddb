"""What condor_submit asks the file system."""

from __future__ import annotations

import os
from pathlib import Path

from condor_actors.tools.lib.submit_files import LocalFiles


def test_the_first_line_of_a_program(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"#!/bin/sh\nexit\n")
    assert LocalFiles().first_line(str(program)) == b"#!/bin/sh\n"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert LocalFiles().first_line(str(pipe)) == b""
    assert LocalFiles().first_line(str(tmp_path)) == b""
    assert LocalFiles().first_line(str(tmp_path / "nothing")) == b""
