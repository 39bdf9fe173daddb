"""A Slurm of its own on loopback: munge, a controller and one node, for tests that hand jobs to a real one."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.pool_fixture import until

CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={root}/munge.socket
CredType=cred/munge
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SchedulerParameters=sched_min_interval=20000,batch_sched_delay=0
SlurmdParameters=config_overrides
MinJobAge=300
KillWait=2
MessageTimeout=2
ReturnToService=2
OverTimeLimit=0
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 Boards=1 SocketsPerBoard=1 CoresPerSocket=16 ThreadsPerCore=1 RealMemory=9000
PartitionName=main Nodes=ALL Default=YES MaxTime=60 State=UP
"""


class SlurmOnLoopback:
    """Munge, slurmctld and slurmd in a folder.

    Attributes:
        conf: its configuration file.
    """

    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.conf = folder / "slurm.conf"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("state", "spool"):
            (folder / name).mkdir()
        key = folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.conf.write_text(CONF.format(root=folder, host=socket.gethostname().partition(".")[0],
                                         controller=_free_port(), node=_free_port()))
        self._environment = {**os.environ, "SLURM_CONF": str(self.conf)}

    def start(self) -> None:
        """All of it; returns when the node takes jobs."""
        words = ["munged", "--foreground", "--force", f"--key-file={self.root}/munge.key",
                 f"--socket={self.root}/munge.socket", f"--pid-file={self.root}/munged.pid",
                 f"--log-file={self.root}/munged.log", f"--seed-file={self.root}/munged.seed"]
        self._run("munged", *words)
        until((self.root / "munge.socket").exists, "munged listens")
        self.start_controller()
        self._run("slurmd", "slurmd", "-D")
        until(lambda: self.said("sinfo", "--noheader", "--format=%t") == "idle", "the node is idle")

    def start_controller(self) -> None:
        """The controller alone, which was stopped."""
        self._run("slurmctld", "slurmctld", "-D")
        until(lambda: subprocess.run(["scontrol", "ping"], env=self._environment, capture_output=True,
                                     check=False).returncode == 0, "slurmctld answers")

    def _run(self, name: str, *words: str) -> None:
        with (self.root / f"{name}.said").open("ab") as said:
            self._processes[name] = subprocess.Popen(words, env=self._environment, stdin=subprocess.DEVNULL,
                                                     stdout=said, stderr=said)

    def stop(self, *names: str) -> None:
        """End these daemons; all of them where none is named."""
        for name in names or ("slurmd", "slurmctld", "munged"):
            process = self._processes.pop(name, None)
            if process is not None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def said(self, *words: str) -> str:
        """What a command of Slurm's says."""
        done = subprocess.run(words, env=self._environment, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    def jobs(self) -> list[str]:
        """``name state`` of every job that Slurm knows, the first one first."""
        lines = self.said("squeue", "--noheader", "--states=all", "--sort=i", "--format=%i %j %T").splitlines()
        lines.sort(key=lambda line: int(line.split()[0].partition("_")[0]))  # 7_2 is of an array
        return [line.partition(" ")[2] for line in lines]


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def slurm(folder: Path) -> Iterator[SlurmOnLoopback]:
    """A running Slurm whose files are in ``folder``; the test is skipped where there is none, or nobody is root."""
    missing = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"needs root and Debian's slurm-wlm and munge: {', '.join(missing)}")
    running = SlurmOnLoopback(folder)
    try:
        running.start()
        yield running
    finally:
        running.stop()
