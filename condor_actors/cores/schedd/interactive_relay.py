"""Words between a user's terminal and a running job: condor_tail and condor_ssh_to_job.

Theory: the schedd knows which shadow host has the run; it passes the question on and the answer back.  A shell, and a
connection to a port, is known by its id, which the tool made up; its two ends are remembered here until one is gone.
"""

from __future__ import annotations

from typing import Any

import attrs

from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.cores.schedd.shadow_hosts import ShadowHosts
from condor_actors.messages.envelope import Address, AskFailed, Delivery, Done, Refused
from condor_actors.messages.interactive import (
    ConnectToJob,
    ConnectToPort,
    OpenPort,
    OpenShell,
    PortData,
    ReadRunFile,
    ShellData,
    TailJob,
)

__all__ = ["InteractiveRelay"]

PATIENCE_S = 30.0


@attrs.define
class _Shell:
    """The two ends of a shell or of a connection, the run, and what tells either that the other has gone."""

    tool: Address
    host: Address
    run_id: str
    farewell: ShellData | PortData


class InteractiveRelay:
    """Relays condor_tail and condor_ssh_to_job between a user's terminal and a running job."""

    def __init__(self, context: ScheddContext, hosts: ShadowHosts) -> None:
        self._context = context
        self._hosts = hosts
        self._asked: dict[int, tuple[Delivery, str]] = {}
        self._shells: dict[str, _Shell] = {}
        self._serial = 0

    def _running(self, cluster: int, proc: int, delivery: Delivery) -> tuple[str, Address] | None:
        """Run and host of a job that the caller may look into; None after a refusal."""
        context = self._context
        job = context.queue.job(cluster, proc)
        if job is None:
            context.reply(Refused(code="not-found", text=f"Job {cluster}.{proc} not found"))
        elif not context.may_touch(delivery.identity, job.cluster.owner):
            context.reply(Refused(code="denied", text=f"Job {cluster}.{proc} belongs to {job.cluster.owner}"))
        elif not job.run_id or (address := self._hosts.ready_address(job.cluster.owner)) is None:
            context.reply(Refused(code="invalid", text=f"Job {cluster}.{proc} is not running"))
        else:
            return job.run_id, address
        return None

    def _ask(self, to: Address, message: Any, delivery: Delivery, shell_id: str = "") -> None:
        self._serial += 1
        self._asked[self._serial] = (delivery, shell_id)
        self._context.ask(to, message, PATIENCE_S, ("relay", self._serial))

    def tail(self, message: TailJob, delivery: Delivery) -> None:
        """condor_tail."""
        found = self._running(message.cluster_id, message.proc_id, delivery)
        if found is not None:
            run_id, host = found
            self._ask(host, ReadRunFile(run_id=run_id, path=message.path, offset=message.offset,
                                        max_bytes=message.max_bytes), delivery)

    def connect(self, message: ConnectToJob, delivery: Delivery) -> None:
        """condor_ssh_to_job."""
        found = self._new(message, delivery)
        if found is not None:
            run_id, host = found
            self._begin(OpenShell(run_id=run_id, shell_id=message.shell_id, command=message.command,
                                  terminal=message.terminal, rows=message.rows, columns=message.columns),
                        host, ShellData(shell_id=message.shell_id, exit_code=255), delivery)

    def connect_to_port(self, message: ConnectToPort, delivery: Delivery) -> None:
        """condor_ssh_to_job -L."""
        found = self._new(message, delivery)
        if found is not None:
            run_id, host = found
            self._begin(OpenPort(run_id=run_id, shell_id=message.shell_id, port=message.port), host,
                        PortData(shell_id=message.shell_id, is_closed=True), delivery)

    def _new(self, message: ConnectToJob | ConnectToPort, delivery: Delivery) -> tuple[str, Address] | None:
        """Run and host of the job; None after a refusal."""
        found = self._running(message.cluster_id, message.proc_id, delivery)
        if found is not None and (message.shell_id in self._shells or not message.shell_id):
            self._context.reply(Refused(code="busy", text=f"there is a shell {message.shell_id!r} already"))
            return None
        return found

    def _begin(self, question: OpenShell | OpenPort, host: Address, farewell: ShellData | PortData,
               delivery: Delivery) -> None:
        self._shells[question.shell_id] = _Shell(delivery.sender, host, question.run_id, farewell)
        self._ask(host, question, delivery, question.shell_id)

    def answered(self, serial: int, message: Any) -> None:
        """The shadow host's answer goes to who asked."""
        delivery, shell_id = self._asked.pop(serial)
        if isinstance(message, AskFailed):
            message = Refused(code="busy", text=f"the job's shadow did not answer: {message.text or message.reason}")
        if shell_id and not isinstance(message, Done):
            self._shells.pop(shell_id, None)
        self._context.reply(message, delivery)

    def shell_data(self, message: ShellData | PortData, delivery: Delivery) -> None:
        """Bytes of a shell or a connection, from either end to the other."""
        shell = self._shells.get(message.shell_id)
        if shell is None:
            return
        if delivery.sender.node == shell.tool.node:
            self._context.tell(shell.host, message)
        elif delivery.sender.node == shell.host.node:
            self._context.tell(shell.tool, message)
            if message.is_last:
                del self._shells[message.shell_id]

    def run_lost(self, run_id: str) -> None:
        """The machine of a run is out of touch: what its shells had to say is lost, and it ends them, too."""
        for shell_id, shell in list(self._shells.items()):
            if shell.run_id == run_id:
                self._context.tell(shell.tool, shell.farewell)
                self._context.tell(shell.host, shell.farewell)
                del self._shells[shell_id]

    def link_lost(self, node: str) -> None:
        """The tool or the host of a shell is gone: so is the shell."""
        for shell_id, shell in list(self._shells.items()):
            if node == shell.tool.node:
                self._context.tell(shell.host, shell.farewell)
                del self._shells[shell_id]
            elif node == shell.host.node:
                self._context.tell(shell.tool, shell.farewell)
                del self._shells[shell_id]
