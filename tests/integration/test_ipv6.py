"""A pool that knows nothing but IPv6: all its daemons listen at ::1, and COLLECTOR_HOST is the address alone."""

from __future__ import annotations

import socket

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, open_to_jobs


def free_port() -> int:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
            return int(probe.getsockname()[1])
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")


def test_a_job_runs_in_a_pool_of_ipv6_addresses() -> None:
    port = free_port()
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=1, config=(
            f"NETWORK_INTERFACE = ::1\nCOLLECTOR_HOST = ::1\nCOLLECTOR_PORT = {port}\n"))
        try:
            open_to_jobs(pool.work)
            addresses = pool.run("condor_status", "-any", "-af", "MyAddress").split()
            assert addresses
            assert {address.partition("]")[0] for address in addresses} == {"<[::1"}
            pool.submit("executable = /bin/echo\narguments = here\noutput = out\nlog = job.log\nqueue\n")
            pool.wait()
            assert (pool.work / "out").read_text() == "here\n"
            for where in ("::1", f"[::1]:{port}", f"<[::1]:{port}>"):
                assert "slot1" in pool.run("condor_status", "-pool", where, "-af", "Name")
        finally:
            pool.stop()
