"""What a command costs from its start to its end: ``python -m benchmarks.tools [--rounds 40]``.

Processor time of the whole process (user and system, as the kernel has it when it has ended), the median of so many
rounds, in which the commands and bare interpreters take turns; so other load changes all of them alike, and the ratio
says more than the milliseconds.  ``bare`` is ``python -I -S -c pass``.  The commands come as they are installed beside
this interpreter.
"""

from __future__ import annotations

import argparse
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BIN = Path(sys.prefix) / "bin"
COMMANDS = ("condor_q 1.0", "condor_q", "condor_status", "condor_history 2.0", "condor_submit job.sub",
            "condor_rm 99999.0")
JOB = "executable = /bin/sleep\narguments = 1000\ntransfer_executable = false\nrequirements = false\n"


def cost_ms(words: list[str], folder: Path, environment: dict[str, str]) -> float:
    """The processor time of one run."""
    with subprocess.Popen(words, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                          ) as process:
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
    return (usage.ru_utime + usage.ru_stime) * 1000


def measured(folder: Path, environment: dict[str, str], rounds: int) -> None:
    """Print the table."""
    bare = [sys.executable, "-I", "-S", "-c", "pass"]
    words = {"bare": bare, "python -c pass": [sys.executable, "-c", "pass"],
             **{command: [str(BIN / command.split()[0]), *command.split()[1:]] for command in COMMANDS}}
    costs: dict[str, list[float]] = {name: [] for name in words}
    for _ in range(rounds):
        for name, each in words.items():
            costs[name].append(cost_ms(each, folder, environment))
    base = statistics.median(costs["bare"])
    for name, each in costs.items():
        middle = statistics.median(each)
        print(f"{name:24} {middle:6.1f} ms {middle / base:5.1f} × bare", flush=True)


def main(rounds: int) -> None:
    """A pool of twenty slots with a waiting job, and one that was removed."""
    with tempfile.TemporaryDirectory(prefix="condor-tools-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        environment = {key: value for key, value in os.environ.items()
                       if "CONDOR" not in key.upper() and not key.startswith("PYTHON")}
        place = ["--dir", str(folder / "p")]
        subprocess.run([BIN / "condor_personal", "start", *place, "--slots", "20"], env=environment, check=True,
                       stdout=subprocess.DEVNULL)
        try:
            shown = subprocess.run([BIN / "condor_personal", "env", *place], env=environment, check=True,
                                   capture_output=True, text=True).stdout
            for line in shown.splitlines():
                key, _, value = line.removeprefix("export ").partition("=")
                environment[key.strip()] = shlex.split(value.rstrip(";"))[0]
            (folder / "job.sub").write_text(JOB + "queue\n")
            for command in ("condor_submit", "condor_submit", "condor_rm"):
                subprocess.run([BIN / command, "2" if command == "condor_rm" else "job.sub"], cwd=folder,
                               env=environment, check=True, stdout=subprocess.DEVNULL)
            measured(folder, environment, rounds)
        finally:
            subprocess.run([BIN / "condor_personal", "stop", *place], env=environment, check=True,
                           stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=40)
    main(arguments.parse_args().rounds)
