"""MPICH, the real one, in a gang: its proxies are started over the gang's own channels."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.test_vanilla import folder
from tests.pool_fixture import PersonalPool

EXAMPLES = Path(__file__).parents[2] / "examples"
FINALIZE = "    MPI_Finalize();"
SETTLED = f"""
    int more;
    double end = MPI_Wtime() + 1.0;
    do {{
        more = MPI_Wtime() < end;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }} while (more);
{FINALIZE}"""
"""MPICH 4.0 over UCX waits without end there when a process leaves while another still makes a connection to it, and no
call of MPI tells that all connections are made: on a busy machine some rounds were too few now and then."""
TALKS = 'printf "%s of %s in %s\\n" "$_CONDOR_PROCNO" "$_CONDOR_NPROCS" "$PWD" >&2; exec ./ring\n'


@pytest.mark.skipif(not shutil.which("mpicc.mpich") or not shutil.which("mpiexec.hydra"),
                    reason="MPICH is not installed")
def test_a_token_goes_round_all_nodes_each_with_its_own_variables(pool: PersonalPool) -> None:
    here = folder(pool, "mpich")
    for name in ("mpich/mpich-gang", "openmpi/ring.c"):
        shutil.copy(EXAMPLES / name, here)
    ring = (here / "ring.c").read_text()
    assert FINALIZE in ring
    (here / "ring.c").write_text(ring.replace(FINALIZE, SETTLED))
    subprocess.run(["mpicc.mpich", "ring.c", "-o", "ring"], cwd=here, check=True)
    (here / "talks").write_text("#!/bin/sh\n" + TALKS)
    (here / "talks").chmod(0o755)
    text = (EXAMPLES / "mpich/ring.sub").read_text().replace("machine_count         = 3", "machine_count = 2")
    text = text.replace("= ./ring", "= ./talks").replace("= ring\n", "= ring, talks\n")
    cluster = pool.submit(f"initialdir = {here}\n{text}")
    pool.wait(str(here / "ring.log"))
    errors = (here / "ring.err.0").read_text()
    assert (here / "ring.out.0").read_text() == "token 4 of 2\n", errors
    said = sorted(line.partition(" in ") for line in errors.splitlines() if " of 2 in " in line)
    assert [number for number, _, _ in said] == ["0 of 2", "1 of 2"], errors
    assert said[0][2] != said[1][2]
    (ad,) = pool.history(str(cluster))
    assert ad["ExitCode"] == 0
