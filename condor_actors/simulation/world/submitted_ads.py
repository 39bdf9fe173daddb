"""The ads of simulated submissions, as ``condor_submit`` would make them."""

from __future__ import annotations

from collections.abc import Mapping

from condor_actors.messages.codes import Universe
from condor_actors.simulation.world.scenario import Submission

__all__ = ["cluster_ad", "proc_ad"]


def arguments(submission: Submission, place: int, own: Mapping[str, float]) -> str:
    """The words of a program; ``schedd`` says from which machine it comes."""
    words = {"schedd": place, "cpu_s": submission.cpu_s, **submission.program, **own}
    return '"' + " ".join(f"{name}={value!r}" for name, value in words.items()) + '"'


def cluster_ad(submission: Submission, place: int, home: str) -> bytes:
    """What ``condor_submit`` would make of it."""
    attributes = {
        "Cmd": '"/bin/simulated"', "Arguments": arguments(submission, place, {}),
        "Iwd": f'"{home}"', "Requirements": "true",
        "ShouldTransferFiles": '"YES"', "WhenToTransferOutput": '"ON_EXIT"', "TransferExecutable": "false",
        "RequestCpus": "1", "RequestMemory": "64", "RequestDisk": "1000", "JobUniverse": str(int(Universe.VANILLA)),
        "UserLog": f'"{home}/log"', **submission.ad,
    }
    return "".join(f"{name} = {value}\n" for name, value in attributes.items()).encode()


def proc_ad(submission: Submission, place: int, proc: int) -> bytes:
    """What is a proc's own."""
    if proc >= len(submission.each):
        return b""
    return f"Arguments = {arguments(submission, place, submission.each[proc])}\n".encode()
