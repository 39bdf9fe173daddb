"""Ports of the machine that lead to the services of a job in an image (container_service_names).

Theory: the ports are taken before the job begins, so that its own copy of its ad names them, and are the run's until it
is over, through all checkpoints.  Who connects is passed on by a process of the job
(:mod:`condor_actors.machine.containers.port_forwarding`) in the job's network, once its program runs.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import TYPE_CHECKING

import attrs

from condor_actors.classads import ClassAd
from condor_actors.cores.job_images import HOST_PORT
from condor_actors.cores.starter import job_run as jr
from condor_actors.daemons.starter.interactive.shells import NAMESPACE_FILES, inside
from condor_actors.daemons.starter.own_program import PROGRAM
from condor_actors.machine.containers import port_forwarding
from condor_actors.machine.run.launch import Ended, LaunchFailure, LaunchPlan, input_of
from condor_actors.machine.run.process_tree import MARK

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["Services"]

BACKLOG = 64
JOINED = ("user", "net")
"""The job's namespaces that the forwarder is in; of its files it sees the machine's."""


class Services:
    """The ports of one run.

    Args:
        starter: whose run it is.
    """

    def __init__(self, starter: Starter) -> None:
        self._starter = starter
        self._listening: list[socket.socket] = []

    def open(self) -> None:
        """Take a port for each service of the job.

        Raises:
            OSError: there is none; the text says why.
        """
        spec = self._starter.spec.container
        for name, _ in spec.services if spec is not None and not self._listening else ():
            try:
                self._listening.append(self._taken())
            except OSError as error:
                raise OSError(error.errno, f"no port of this machine for the job's service {name} (LOWPORT, "
                                           f"HIGHPORT): {error.strerror}") from None

    def _taken(self) -> socket.socket:
        host, low, high = self._starter.edges.service_ports()
        candidates = [0]
        if low and high:
            candidates = list(range(low, high + 1))
            self._starter.context.random.shuffle(candidates)
        problem = OSError(0, "there is none")
        for port in candidates:
            made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
            try:
                made.bind((host, port))
                made.listen(BACKLOG)
            except OSError as error:
                made.close()
                problem = error
                continue
            return made
        raise problem

    @property
    def ports(self) -> tuple[tuple[str, int], ...]:
        """The machine's port of each service, by its name."""
        spec = self._starter.spec.container
        names = [name for name, _ in spec.services] if spec is not None else []
        return tuple((name, made.getsockname()[1]) for name, made in zip(names, self._listening, strict=False))

    def leads_to(self, port: int) -> tuple[str, int] | None:
        """The address and the port of this machine that lead to a port of the job; None: none does."""
        spec = self._starter.spec.container
        for made, (_, own) in zip(self._listening, spec.services if spec is not None else (), strict=False):
            if own == port:
                host, found = made.getsockname()[:2]
                return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), found  # noqa: S104 - what it listens at
        return None

    def ad_with_ports(self, job: bytes) -> bytes:
        """The job's ad as the job itself sees it."""
        if not self._listening:
            return job
        ad = ClassAd.from_bytes(job)
        ad.update({f"{name}{HOST_PORT}": port for name, port in self.ports})
        return ad.to_bytes()

    def begin(self, pid: int) -> tuple[tuple[str, int], ...]:
        """The program runs (``pid``: its first process): let who has connected come to it; the ports."""
        if self._listening:
            try:
                self._launch(pid)
            except OSError as error:
                self._lost(str(error))
        return self.ports

    def _launch(self, pid: int) -> None:
        run = self._starter
        edges, claim, spec = run.edges, run.claim, run.spec.container
        assert spec is not None
        isolate, account = edges.isolation(run.spec), run.account
        joined = [name for name in JOINED if name in isolate and "net" in isolate]
        order = json.dumps({
            "account": attrs.asdict(account) if account is not None else None,
            "services": [(made.fileno(), port) for made, (_, port) in zip(self._listening, spec.services, strict=True)],
        }).encode()
        reading = input_of(order)
        try:
            as_turn = run.context.as_turn
            edges.launcher.launch(LaunchPlan(
                program=sys.executable, arguments=("-I", "-c", PROGRAM.format(
                    path=sys.path, name=port_forwarding.__name__)), directory="/",
                environment={MARK: f"{edges.root.path}:{run.run_id}"}, stdin=reading, stdout=edges.host.null,
                stderr=edges.host.null, account=None if os.geteuid() == 0 else account,
                keep=[made.fileno() for made in self._listening],
                cgroups=claim.cgroup.directories if claim.cgroup is not None else (),
                join=[f"/proc/{inside(run, isolate, pid)}/ns/{NAMESPACE_FILES.get(name, name)}" for name in joined],
                limits={"core": "0"}), lambda: None, as_turn(self._lost), as_turn(self._ended))
        finally:
            os.close(reading)

    def _ended(self, how: Ended) -> None:
        self._lost(f"its process ended by {f'signal {how.exit_signal}' if how.exit_signal > 0 else 'itself'}")

    def _lost(self, reason: str | LaunchFailure) -> None:
        """Nobody is passed on any more; that is how it should be when the job has ended."""
        run = self._starter
        if run.core.state in (jr.StarterState.STARTING, jr.StarterState.RUNNING) and self._listening:
            run.context.log.warn("run {run}: the ports of its services lead nowhere: {reason}", run=run.run_id,
                                 reason=reason)
            run.run_log.say(f"the ports of its services lead nowhere: {reason}", run.context.now_s())
            self.close()

    def close(self) -> None:
        """The run is over."""
        while self._listening:
            self._listening.pop().close()
