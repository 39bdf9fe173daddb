"""Every attribute that the daemons read of a job's ad, with values that nobody expects there: the schedd serves others.

The names are found in the source, so that one which is read from tomorrow on is tried as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

import condor_actors
from condor_actors.messages.codes import JobStatus
from condor_actors.messages.queue import ActOnJobs, JobAction, QueryJobs
from condor_actors.messages.submission import ReserveCluster, SubmitPage, Submitted
from tests.harness.processor_time import at_most
from tests.harness.submit_side import SubmitPool

SOURCE = Path(condor_actors.__file__).parent
READ = re.compile(r'\b(?:get_int|get_float|get_str|get_bool|evaluate|find)\("([A-Za-z_]+)"')
LEFT_OUT = {"cmd", "iwd", "requirements", "nextjobstartdelay"}
"""Without which no job is queued; and what keeps the next job of the same owner waiting, as it is meant to."""
VALUES = {
    "largest": "9223372036854775807", "least": "-9223372036854775808", "more than a table has": "2147483648",
    "no end": 'real("INF")', "no number": 'real("NaN")', "fraction": "1.0e300", "truth": "true",
    "long": '"' + "A,B\\n;" * 3000 + '"', "empty": '""',
    "list": "{ 1, { 2 }, [ a = 1 ] }", "record": "[ a = a; b = 1 ]",
    "marks": r'"\001\\\"\303$(X)$$(Y)$$([1/0]) ../../../x %s {0}"',
    "names": '"' + ",".join(f"n{number}" for number in range(9000)) + '"',
    "error": "error", "itself": "Rank + 1", "time": "time() / 0",
}
MOST_S = 60.0
"""Of processor time, for what takes a few seconds."""


def attributes() -> list[str]:
    """The names, each once, however it is spelled."""
    found = {}
    for folder in ("cores", "daemons", "userlog"):
        for path in (SOURCE / folder).rglob("*.py"):
            for name in READ.findall(path.read_text(encoding="utf-8")):
                found[name.lower()] = name
    return [name for key, name in sorted(found.items()) if key not in LEFT_OUT]


def submitted(pool: SubmitPool, name: str, value: str) -> int:
    """A job whose ad has this; its cluster, 0: it is refused."""
    cluster = pool.ask(ReserveCluster()).cluster_id
    text = (f'Cmd = "/bin/true"\nIwd = "{pool.home}"\nRequirements = true\nShouldTransferFiles = "YES"\n'
            "JobUniverse = 5\nTransferExecutable = false\nRequestCpus = 1\nRequestMemory = 10\nRequestDisk = 10\n"
            f'JobNotification = 1\nJobMachineAttrs = "Cpus"\nEmailAttributes = "Cmd"\nUserLog = "{pool.home}/log"\n'
            f"{name} = {value}\n").encode()
    answer = pool.ask(SubmitPage(cluster_id=cluster, page=0, cluster_ad=text, procs=(b"",), first_proc=0, last=True))
    return cluster if isinstance(answer, Submitted) else 0


def live(pool: SubmitPool, clusters: Sequence[int]) -> None:
    """The lives of jobs, as far as they get: they run, are held, released, run again, end."""
    for _ in range(2):
        pool.match()
        pool.run(3.0)
        for action in (JobAction.HOLD, JobAction.RELEASE):
            pool.ask(ActOnJobs(action=action, ids=tuple((cluster, -1) for cluster in clusters)))
    pool.match()
    for run_id in [each for each in pool.execute.runs if int(each.partition(".")[0]) in clusters]:
        pool.execute.begin(run_id)
        pool.execute.finish(run_id)
    pool.run(3.0)
    pool.ask(ActOnJobs(action=JobAction.REMOVE_FORCED, ids=tuple((cluster, -1) for cluster in clusters)))


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
def test_the_schedd_stands(tmp_path: Path, value: str) -> None:
    pool = SubmitPool(tmp_path)
    actor = pool.schedd.actor
    with at_most(MOST_S):
        for names in batched(attributes(), 40):
            clusters = [found for name in names if (found := submitted(pool, name, value))]
            assert pool.schedd.actor is actor, f"one of {names} broke it"
            live(pool, clusters)
            assert pool.schedd.actor is actor, f"one of {names} broke it"
        pool.run(700.0)
        for source in ("queue", "history", "epochs"):
            pool.ask(QueryJobs(source=source))
        cluster = pool.submit()
        pool.match()
    assert pool.schedd.actor is actor
    assert pool.status(cluster) == JobStatus.RUNNING


def batched(names: Sequence[str], size: int) -> list[Sequence[str]]:
    """Some at a time."""
    return [names[at:at + size] for at in range(0, len(names), size)]
