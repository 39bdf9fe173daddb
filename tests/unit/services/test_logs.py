"""What a daemon's log looks like."""

from __future__ import annotations

import json
import re
from pathlib import Path

from twisted.logger import Logger

from condor_actors.config import Config, load_config
from condor_actors.services.logs import log_name, start_logging


def config(folder: Path, **values: str) -> Config:
    environ = {f"_CONDOR_{name}": value for name, value in {"LOG": str(folder), **values}.items()}
    return load_config(environ={"CONDOR_CONFIG": "ONLY_ENV", **environ}, subsystem="SCHEDD")


def write(settings: Config, daemon: str = "schedd", text: str = "job {job} starts", times: int = 1) -> None:
    stop = start_logging(settings, daemon)
    try:
        for _ in range(times):
            Logger("condor").info(text, job="1.0")
            Logger("condor").debug("a detail")
            Logger("twisted.internet").info("a socket opens")
            Logger("condor").error("it fails")
    finally:
        stop()


def test_names() -> None:
    assert log_name("schedd") == "ScheddLog"
    assert log_name("shadow-host") == "ShadowHostLog"


def test_lines_for_people(tmp_path: Path) -> None:
    write(config(tmp_path))
    lines = (tmp_path / "ScheddLog").read_text().splitlines()
    assert [re.sub(r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d ", "", line) for line in lines] == [
        "job 1.0 starts", "ERROR: it fails",
    ]


def test_lines_for_programs(tmp_path: Path) -> None:
    write(config(tmp_path, LOG_FORMAT="json"))
    first, second = map(json.loads, (tmp_path / "ScheddLog").read_text().splitlines())
    assert (first["text"], first["job"], first["level"]) == ("job 1.0 starts", "1.0", "info")
    assert second["level"] == "error"


def test_everything_on_request(tmp_path: Path) -> None:
    write(config(tmp_path, SCHEDD_DEBUG="D_FULLDEBUG"))
    text = (tmp_path / "ScheddLog").read_text()
    assert "a detail" in text
    assert "a socket opens" in text


def test_another_file_put_aside_at_its_size(tmp_path: Path) -> None:
    settings = config(tmp_path, SCHEDD_LOG=str(tmp_path / "queue.log"), MAX_SCHEDD_LOG="200", MAX_NUM_SCHEDD_LOG="2")
    write(settings, times=30)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["queue.log", "queue.log.1", "queue.log.2"]
    assert (tmp_path / "queue.log.1").stat().st_size < 400
