"""What a person types again and again loads no reactor, and nothing else that alone takes as long as its answer.

Figures: ``python -m benchmarks.tools``.
"""

from __future__ import annotations

import marshal
import sys
from shutil import which

import pytest

from condor_actors.config.parameters import SOUGHT_FIRST
from condor_actors.tools.bundle import bundle
from condor_actors.tools.start import HEAD_BYTES
from tests.pool_fixture import PersonalPool

COMMANDS = (
    "condor_submit job.sub", "condor_q", "condor_q -nobatch", "condor_q -long", "condor_status",
    "condor_history -limit 1",
    "condor_hold {job}", "condor_release {job}", "condor_prio -p 1 {job}", "condor_qedit {job} Colour 1",
    "condor_wait fast.log {job}.0 -wait 0", "condor_userprio", "condor_config_val SPOOL", "condor_version",
    "condor_rm {job}",
)
EXPENSIVE = ("attr", "ctypes", "dataclasses", "decimal", "difflib", "email", "inspect", "json", "logging", "pathlib",
        "platform", "psutil", "random", "re", "shutil", "socket", "ssl", "subprocess", "tempfile", "threading",
        "typing", "urllib", "xml")
"""What the commands in `FREQUENT` load nothing of; Python loads each in 2 to 30 ms."""
TABLES = "condor_actors.config.parameters"
FREQUENT = ("condor_submit", "condor_q", "condor_status", "condor_history", "condor_hold", "condor_release",
            "condor_rm", "condor_wait")


@pytest.fixture(scope="module")
def bundled() -> set[str]:
    """The modules of the bundle."""
    return set(marshal.loads(bundle()[HEAD_BYTES:]))


@pytest.mark.parametrize("command", COMMANDS)
def test_it_does_without_a_reactor(pool: PersonalPool, command: str, bundled: set[str]) -> None:
    held = "condor_release" in command
    description = (f"executable = /bin/sleep\narguments = 1000\ntransfer_executable = false\nlog = fast.log\n"
                   f"requirements = false\nhold = {held}\nqueue 2\n")
    (pool.work / "job.sub").write_text(description)
    job = pool.submit(description) if "{job}" in command else 0
    name, *words = command.format(job=job).split()
    path = which(name, path=pool.environment["PATH"])
    assert path is not None
    done = pool.tool(sys.executable, "-X", "importtime", path, *words)
    assert done.returncode == 0, done.stderr[-500:]
    loaded = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")]
    assert "condor_actors" in loaded
    banned = ("twisted", "asyncio", *(EXPENSIVE if name in FREQUENT else ()))
    assert not [module for module in loaded if module.partition(".")[0] in banned]
    if name in FREQUENT:
        ours = {module for module in loaded if module.startswith("condor_actors.") and not module.endswith("._core")}
        missing = ours - bundled - {"condor_actors.tools.start"}
        assert missing == set(), "the ROOTS of the bundle do not load these"
        tables = {module.rpartition(".")[2] for module in loaded if module.startswith(f"{TABLES}.")}
        assert tables <= set(SOUGHT_FIRST)
