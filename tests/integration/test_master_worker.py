"""An executor on a real pool: its workers are killed, cut off, vacated and sent away, and each result comes once."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import condor_actors as condor
from condor_actors.master_worker import MasterWorker, TaskCrashed, WorkersFailed
from tests.pool_fixture import PersonalPool, fresh_folder, until

ROOT = Path(__file__).resolve().parents[2]


def worker_python() -> str:
    """An interpreter of this version that jobs may execute: what root submits has nobody's rights."""
    real = Path(sys.executable).resolve()
    if os.geteuid() != 0 or all(folder.stat().st_mode & 0o001 for folder in real.parents):
        return sys.executable
    found = shutil.which(f"python3.{sys.version_info[1]}", path="/usr/local/bin:/usr/bin")
    if found is None:
        pytest.skip(f"no Python 3.{sys.version_info[1]} that the user nobody may execute")
    return found


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=6)
        before = dict(os.environ)
        os.environ.update({name: value for name, value in made.environment.items() if "CONDOR" in name.upper()})
        condor.reload_config()
        yield made
        os.environ.clear()
        os.environ.update(before)
        condor.reload_config()
        made.stop()


@pytest.fixture(scope="module")
def shared(pool: PersonalPool) -> Iterator[MasterWorker]:
    with MasterWorker(4, python=worker_python(), reconnect_s=1.0, crash_limit=1000) as made:
        yield made
    assert condor.Schedd().query() == []


def worker_pids(pool: PersonalPool) -> list[int]:
    return [pid for pid, command in pool.processes().items() if "worker.zip" in command]


def test_values_come_in_order_and_failures_as_they_were_raised(shared: MasterWorker) -> None:
    offset = 100
    seen: list[tuple[int, int]] = []
    found = list(shared.map(lambda a, b: a * b + offset, range(50), range(50), chunksize=7,
                            progress=lambda done, rows: seen.append((done, rows))))
    assert found == [number * number + 100 for number in range(50)]
    until(lambda: len(seen) == 8, "the last report")
    assert sorted(seen)[-1] == (50, 50)
    assert shared.submit(dict, one=1, two={2}).result(60) == {"one": 1, "two": {2}}

    class Odd(Exception):
        pass

    def refuse(number: int) -> int:
        raise Odd(number)

    failed = shared.submit(refuse, 7)
    with pytest.raises(Odd, match="7") as caught:
        failed.result(60)
    assert "in refuse" in str(caught.value.__cause__)
    with pytest.raises(TypeError, match="cannot pickle"):
        shared.submit(print, threading.Lock()).result(60)
    with pytest.raises(TypeError, match="cannot pickle") as caught:
        shared.submit(threading.Lock).result(60)
    assert "worker.zip" in str(caught.value.__cause__)


def test_it_is_an_executor_for_asyncio(shared: MasterWorker) -> None:
    async def program() -> list[int]:
        loop = asyncio.get_running_loop()
        return list(await asyncio.gather(*(loop.run_in_executor(shared, pow, 2, number) for number in range(20))))

    assert asyncio.run(program()) == [2 ** number for number in range(20)]


def test_the_secret_is_the_workers_alone(shared: MasterWorker) -> None:
    def look() -> tuple[int, bool, int]:
        there = os.stat("worker.pem")
        return there.st_mode & 0o077, there.st_uid == os.getuid(), os.stat(".").st_mode & 0o007

    assert shared.submit(look).result(60) == (0, True, 0)


def test_each_result_comes_once_however_workers_vanish(pool: PersonalPool, shared: MasterWorker) -> None:
    def work(number: int) -> int:
        time.sleep(0.004)
        return number * number

    chance = random.Random(4)
    came: Counter[int] = Counter()
    futures = {}
    for number in range(4000):
        futures[number] = shared.submit(work, number)
        futures[number].add_done_callback(lambda _, number=number: came.update([number]))  # type: ignore[misc]
    killed = cut = 0
    while not all(future.done() for future in futures.values()):
        time.sleep(0.1)
        pids = worker_pids(pool)
        if pids and killed < 8 and chance.random() < 0.4:
            os.kill(chance.choice(pids), signal.SIGKILL)
            killed += 1
        links = list(shared._master.links)
        if links and cut < 40 and chance.random() < 0.7:
            shared._master.loop.call_soon_threadsafe(chance.choice(links).cut)
            cut += 1
    assert killed > 2
    assert cut > 10
    assert [future.result() for future in futures.values()] == [number * number for number in range(4000)]
    assert came == Counter(range(4000))


def test_a_worker_that_is_vacated_gives_back_what_it_has(pool: PersonalPool, shared: MasterWorker) -> None:
    futures = [shared.submit(time.sleep, 0.02) for _ in range(200)]
    until(futures[3].done, "the first tasks")
    pool.run("condor_vacate_job", *(f"{cluster}.{proc}" for cluster, proc in shared.jobs[:2]))
    assert [future.result(90) for future in futures] == [None] * 200


def test_workers_come_with_tasks_and_leave_without(pool: PersonalPool) -> None:
    with MasterWorker(2, python=worker_python(), idle_s=0.3) as executor:
        assert executor.jobs == []
        assert executor.submit(pow, 3, 2).result(60) == 9
        assert len(executor.jobs) == 1
        until(lambda: executor.jobs == [], "the end of the idle worker's job")
        assert sorted(executor.map(abs, [-1, -2, -3])) == [1, 2, 3]
        executor.submit(pow, 0, 0).result(60)


def test_what_kills_every_worker_is_given_up_and_the_rest_goes_on(pool: PersonalPool) -> None:
    with MasterWorker(1, python=worker_python(), crash_limit=2, reconnect_s=0.5) as executor:
        deadly = executor.submit(lambda: os.kill(os.getpid(), signal.SIGKILL))
        harmless = executor.submit(pow, 2, 2)
        with pytest.raises(TaskCrashed, match="2 workers vanished"):
            deadly.result(90)
        assert harmless.result(90) == 4


def test_data_only_takes_no_objects(pool: PersonalPool) -> None:
    with MasterWorker(1, python=worker_python(), results="data") as executor:
        assert executor.submit(divmod, 7, 2).result(60) == (3, 1)
        with pytest.raises(Exception, match="no plain data"):
            executor.submit(Path, "x").result(60)
        with pytest.raises(TaskCrashed, match="does not let its exception"):
            executor.submit(divmod, 1, 0).result(60)


def test_without_workers_there_is_no_waiting(pool: PersonalPool) -> None:
    executor = MasterWorker(1, python="/bin/false")
    future = executor.submit(pow, 2, 2)
    with pytest.raises(WorkersFailed, match=r"3 workers in a row did not come.*python="):
        future.result(90)
    with pytest.raises(WorkersFailed):
        executor.submit(pow, 2, 2)
    executor.shutdown()


def test_the_end(pool: PersonalPool) -> None:
    executor = MasterWorker(1, python=worker_python(), submit={"requirements": "false"})
    futures = [executor.submit(pow, 2, 2) for _ in range(3)]
    futures[0].cancel()
    until(lambda: executor.jobs, "the worker's job")
    executor.shutdown(cancel_futures=True)
    assert all(future.cancelled() for future in futures)
    assert condor.Schedd().query(constraint='JobBatchName == "master-worker" && Requirements =?= false') == []
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(pow, 2, 2)


def test_what_cannot_be_is_said_at_once(pool: PersonalPool) -> None:
    for wrong, words in (({"max_workers": 0}, "at least one"), ({"results": "all"}, "neither"),
                         ({"crash_limit": 0}, "crash_limit"), ({"submit": {"Log": "x"}}, "log cannot be set")):
        with pytest.raises(ValueError, match=words):
            MasterWorker(**wrong)
    with pytest.raises(condor.NotSupported, match="this machine's"):
        MasterWorker(schedd=condor.Schedd("elsewhere"))


def test_a_program_that_just_ends_leaves_no_jobs(pool: PersonalPool) -> None:
    program = ("import time\nfrom condor_actors.master_worker import MasterWorker\n"
               f"executor = MasterWorker(1, python={worker_python()!r})\n"
               "assert executor.submit(pow, 2, 3).result(60) == 8\nprint(executor.jobs[0][0])\n")
    done = subprocess.run([sys.executable, "-c", program], env=pool.environment, cwd=pool.work, capture_output=True,
                          text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    until(lambda: pool.status_of(f"{done.stdout.strip()}.0") == 0, "the end of its worker's job")


def test_the_page_runs_as_printed(pool: PersonalPool) -> None:
    page = (ROOT / "docs/master-worker.md").read_text()
    program = "\n".join(re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE))
    program = program.replace("max_workers=4", f"max_workers=4, python={worker_python()!r}")
    done = subprocess.run([sys.executable, "-c", program], env=pool.environment, cwd=pool.work, capture_output=True,
                          text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "pi is about 3.1" in done.stdout


def test_waiting_has_an_end(shared: MasterWorker) -> None:
    with pytest.raises(concurrent.futures.TimeoutError):
        list(shared.map(time.sleep, [5], timeout=0.05))
