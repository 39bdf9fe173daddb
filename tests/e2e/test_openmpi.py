"""Open MPI, the real one, in a gang: its helpers are started over the gang's own channels."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.test_vanilla import folder
from tests.pool_fixture import PersonalPool

EXAMPLE = Path(__file__).parents[2] / "examples/openmpi"
AS_ROOT = 'environment = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"\nqueue'


@pytest.mark.skipif(not shutil.which("mpicc") or not shutil.which("mpirun"), reason="Open MPI is not installed")
def test_a_token_goes_round_all_nodes(pool: PersonalPool) -> None:
    here = folder(pool, "mpi")
    for name in ("openmpi-gang", "ring.c"):
        shutil.copy(EXAMPLE / name, here)
    subprocess.run(["mpicc", "ring.c", "-o", "ring"], cwd=here, check=True)
    text = (EXAMPLE / "ring.sub").read_text().replace("machine_count         = 3", "machine_count = 2")
    cluster = pool.submit(f"initialdir = {here}\n{text}".replace("queue", AS_ROOT))
    pool.wait(str(here / "ring.log"))
    errors = (here / "ring.err.0").read_text()
    assert (here / "ring.out.0").read_text() == "token 4 of 2\n", errors
    (ad,) = pool.history(str(cluster))
    assert ad["ExitCode"] == 0
