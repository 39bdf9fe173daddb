"""Imports only go down: reads every import of the package and holds it against the floors."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[2] / "condor_actors"
FLOORS = {
    "accounts": 0,
    "classads": 0,
    "addresses": 0,
    "durable": 0,
    "effects": 0,
    "numerals": 0,
    "own_files": 0,
    "patterns": 0,
    "records": 0,
    "written_text": 0,
    "messages": 0,
    "config": 0,
    "cores": 1,
    "submit": 1,
    "dag": 1,
    "actors": 2,
    "wire": 3,
    "store": 3,
    "transfer": 3,
    "machine": 3,
    "userlog": 3,
    "daemons": 4,
    "services": 5,
    "tools": 5,
    "api": 5,
    "compat": 5,
    "master_worker": 5,
    "simulation": 5,
}
NO_TWISTED = {"accounts", "addresses", "classads", "durable", "effects", "numerals", "own_files", "messages", "config",
              "patterns", "records", "written_text",
              "cores", "dag", "submit"}
LARGEST_FOLDER = 25
LONGEST_FILE = 500
HOUSE = PACKAGE.parent
# Pieces that several daemons' cores read.
SHARED_CORES = {"answers", "argument_quoting", "checkpoint_seals", "checkpoints", "chirp_protocol", "cron_schedule",
                "devices", "flock_lists", "flock_terms",
                "flocking", "job_images", "job_information", "object_store", "output_destinations", "reasons", "rights",
                "secrets",
                "site_programs", "state_table", "submit_commands", "trace_spans", "transfer_plugins", "turn",
                "workflow_picture"}
# Sideways imports on one floor that are part of the design: config reads expressions; services build worlds.
SIDEWAYS = {*((below, light) for below in ("accounts", "classads", "config", "messages")
              for light in ("patterns", "records")),
            ("classads", "accounts"), ("classads", "numerals"),
            ("config", "durable"), ("config", "own_files"), ("config", "written_text"), ("own_files", "durable"),
            ("config", "accounts"), ("config", "addresses"), ("config", "classads"),
            ("store", "wire"), ("transfer", "wire"), ("machine", "transfer"), ("machine", "wire"), ("submit", "cores"),
            ("dag", "cores"), ("effects", "messages"), ("simulation", "services"), ("api", "tools"), ("compat", "api"),
            ("master_worker", "api"), ("master_worker", "tools"), ("simulation", "tools")}
BANNED = {"manager", "handler", "processor", "utils", "helpers", "misc", "base"}


def modules() -> list[Path]:
    return [path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts]


def package_of(path: Path) -> str:
    """The package or top-level module of the tree that a file belongs to; empty for the root package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return "" if parts[0] == "__init__" else parts[0]


class Module(NamedTuple):
    """What a module shows: its imports (line, absolute dotted name), the lines of relative ones, its functions."""

    imports: list[tuple[int, str]]
    relative: list[int]
    functions: list[tuple[int, str, int]]


@cache
def read(path: Path) -> Module:
    """Everything of a module that is looked at here; functions as line, name and lines."""
    found = Module([], [], [])
    here = ["condor_actors", *path.relative_to(PACKAGE).with_suffix("").parts]
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            found.imports.extend((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            prefix = here[: -node.level] if node.level else []
            name = ".".join([*prefix, node.module] if node.module else prefix)
            found.imports.extend((node.lineno, f"{name}.{alias.name}") for alias in node.names)
            found.relative.extend([node.lineno] if node.level else [])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.functions.append((node.lineno, node.name, (node.end_lineno or 0) - node.lineno + 1))
    return found


def imports_of(path: Path) -> list[tuple[int, str]]:
    """(line, absolute dotted name) of every import in a module, those inside functions too."""
    return read(path).imports


def test_every_package_has_a_floor() -> None:
    packages = {path.name for path in PACKAGE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert packages <= FLOORS.keys()


def test_imports_only_go_down() -> None:
    wrong = []
    for path in modules():
        own = package_of(path)
        if not own:
            continue
        for line, name in imports_of(path):
            parts = name.split(".")
            if parts[0] != "condor_actors" or len(parts) < 2 or parts[1] not in FLOORS or parts[1] == own:
                continue
            other = parts[1]
            if FLOORS[other] >= FLOORS[own] and (own, other) not in SIDEWAYS:
                wrong.append(f"{path.relative_to(PACKAGE)}:{line} imports {name}")
            if own == "tools" and other == "daemons":
                wrong.append(f"{path.relative_to(PACKAGE)}:{line} a tool imports a daemon: {name}")
    assert not wrong, "\n".join(wrong)


def test_programs_share_with_the_commands_what_the_commands_share() -> None:
    wrong = [f"{path.relative_to(PACKAGE)}:{line} imports {name}" for path in modules() if package_of(path) == "api"
             for line, name in imports_of(path)
             if name.startswith("condor_actors.tools.") and not name.startswith("condor_actors.tools.lib")]
    assert not wrong, "\n".join(wrong)


def test_no_folder_holds_more_than_a_screenful() -> None:
    sources = [path for path in (HOUSE / "native").rglob("*.[ch]") if "build" not in path.parts]
    folders = Counter(path.parent.relative_to(HOUSE) for path in [*modules(), *sources] if path.stem != "__init__")
    assert not {str(folder): count for folder, count in folders.items() if count > LARGEST_FOLDER}


def test_no_file_needs_a_table_of_contents() -> None:
    files = [path for place in ("condor_actors", "native", "tests", "benchmarks", "docs") for kind in ("*.py", "*.[ch]")
             for path in (HOUSE / place).rglob(kind)]
    lengths = {str(path.relative_to(HOUSE)): len(path.read_text("utf-8").splitlines()) for path in files
               if not {"build", "__pycache__"} & set(path.parts)}
    assert len(lengths) > 1000
    assert not {path: length for path, length in lengths.items() if length > LONGEST_FILE}


def test_the_cores_of_one_daemon_do_not_import_anothers() -> None:
    wrong = []
    for path in modules():
        parts = path.relative_to(PACKAGE).parts
        if parts[0] != "cores" or len(parts) < 3:
            continue
        for line, name in imports_of(path):
            other = name.removeprefix("condor_actors.cores.").split(".")[0]
            if name.startswith("condor_actors.cores.") and other not in {parts[1], *SHARED_CORES}:
                wrong.append(f"{path.relative_to(PACKAGE)}:{line} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_every_docstring_says_what_the_thing_does() -> None:
    assert not [str(path.relative_to(PACKAGE)) for path in modules() if "See the" + " module" in path.read_text()]


def test_imports_are_absolute() -> None:
    wrong = [f"{path.relative_to(PACKAGE)}:{line}" for path in modules() for line in read(path).relative]
    assert not wrong, "\n".join(wrong)


def test_pure_floors_know_no_twisted() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {name}"
        for path in modules()
        if package_of(path) in NO_TWISTED
        for line, name in imports_of(path)
        if name.split(".")[0] in {"twisted", "zope"}
    ]
    assert not wrong, "\n".join(wrong)


def test_cores_do_no_io_and_know_no_clock() -> None:
    forbidden = {"time", "socket", "os", "subprocess", "sqlite3", "logging", "threading", "psutil"}
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {name}"
        for path in modules()
        if package_of(path) == "cores"
        for line, name in imports_of(path)
        if name.split(".")[0] in forbidden
    ]
    assert not wrong, "\n".join(wrong)


def test_perspective_broker_lives_in_wire_only() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {name}"
        for path in modules()
        if package_of(path) != "wire"
        for line, name in imports_of(path)
        if name.startswith("twisted.spread")
    ]
    assert not wrong, "\n".join(wrong)


def test_no_file_is_called_after_nothing() -> None:
    assert not [str(path) for path in modules() if path.stem in BANNED]


def test_files_stay_readable() -> None:
    long = [
        f"{path.relative_to(PACKAGE)}: {count} lines"
        for path in modules()
        if (count := len(path.read_text().splitlines())) > 600
    ]
    assert not long, "\n".join(long)


def test_functions_stay_under_seventy_lines() -> None:
    long = [f"{path.relative_to(PACKAGE)}:{line} {name} has {length} lines"
            for path in modules() for line, name, length in read(path).functions if length > 70]
    assert not long, "\n".join(long)


def test_there_is_no_init_under_twisted() -> None:
    assert not (PACKAGE.parent / "twisted" / "__init__.py").exists()
    assert not (PACKAGE.parent / "twisted" / "plugins" / "__init__.py").exists()
