"""What a program that submits many jobs and waits for them costs: processor time of the program, not of the pool.

    python benchmarks/api.py [JOBS]

The log that it follows is that of the jobs themselves, written by a stand-in for the pool as fast as the program reads:
five events each (submit, three of its run, end), so nothing depends on how many machines a pool has.  The submission
goes to a real schedd of a personal pool, where the jobs wait for a machine that does not come.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

BIN = Path(sys.prefix) / "bin"
PROGRAM = """
import resource
import sys

import condor_actors as condor

jobs = int(sys.argv[1])
schedd = condor.Schedd()
submitted = schedd.submit(condor.Submit(executable="/bin/sleep", arguments="$(Process)", log=sys.argv[2],
                                        requirements="false"), count=jobs)
after_submit = resource.getrusage(resource.RUSAGE_SELF)
print(submitted.cluster, flush=True)
waiting = set(submitted.jobs)
with condor.JobEventLog(sys.argv[2]) as log:
    for event in log:
        if event.number == condor.JobEventType.JOB_TERMINATED:
            waiting.discard((event.cluster, event.proc))
            if not waiting:
                break
end = resource.getrusage(resource.RUSAGE_SELF)
print(after_submit.ru_utime + after_submit.ru_stime, end.ru_utime + end.ru_stime, flush=True)
"""


def events(cluster: int, jobs: int) -> str:
    """The log of the runs of so many jobs."""
    from condor_actors.classads import ClassAd
    from condor_actors.messages.codes import JobEventType
    from condor_actors.userlog.event_text import event_text

    facts = ClassAd({"ExecuteHost": "<127.0.0.1:9618>", "SlotName": "slot1@host", "ExitCode": 0, "ImageSize": 100,
                     "CpusProvisioned": 1, "RequestCpus": 1, "TransferStep": 2})
    kinds = (JobEventType.FILE_TRANSFER, JobEventType.EXECUTE, JobEventType.IMAGE_SIZE, JobEventType.JOB_TERMINATED)
    return "".join(event_text(kind, cluster, proc, 1_700_000_000.0, facts) for proc in range(jobs) for kind in kinds)


def main(jobs: int) -> None:
    """Print the processor seconds of the program until its jobs are queued, and in all."""
    with tempfile.TemporaryDirectory(prefix="condor-api-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        environment = {key: value for key, value in os.environ.items() if "CONDOR" not in key.upper()}
        subprocess.run([BIN / "condor_personal", "start", "--dir", folder / "p", "--slots", "1"], env=environment,
                       check=True, stdout=subprocess.DEVNULL)
        try:
            shown = subprocess.run([BIN / "condor_personal", "env", "--dir", folder / "p"], env=environment,
                                   check=True, capture_output=True, text=True).stdout
            for line in shown.splitlines():
                key, _, value = line.removeprefix("export ").partition("=")
                environment[key.strip()] = shlex.split(value.rstrip(";"))[0]
            with subprocess.Popen([sys.executable, "-c", PROGRAM, str(jobs), str(folder / "log")], env=environment,
                                  stdout=subprocess.PIPE, text=True) as program:
                assert program.stdout is not None
                cluster = int(program.stdout.readline())
                with open(folder / "log", "a") as log:
                    log.write(events(cluster, jobs))
                queued_s, all_s = map(float, program.stdout.readline().split())
        finally:
            subprocess.run([BIN / "condor_personal", "stop", "--dir", folder / "p"], env=environment, check=True,
                           stdout=subprocess.DEVNULL)
    print(f"{jobs} jobs: {queued_s:.2f} s of processor until they are queued, {all_s:.2f} s until all have ended")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
