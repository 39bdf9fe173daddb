"""Properties are tried with the same examples each time, and take the time they take.

A busy machine is no failure, and a search for new examples is not what decides whether a change is good:
``CONDOR_NEW_EXAMPLES=1`` looks for others.

``make test`` has three workers for each processor (``-n auto --dist loadfile``).  What is marked ``quiet`` or ``alone``
depends on what else the machine does (who types, how busy it is): see :mod:`tests.harness.turns`.
"""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.harness.processor_time import TIME, table
from tests.harness.schedule import SlowFirst, in_order, need_of
from tests.harness.turns import Turns
from tests.pool_fixture import LIVING, PersonalPool, fresh_folder

settings.register_profile("steady", deadline=None, derandomize=not os.environ.get("CONDOR_NEW_EXAMPLES"))
settings.load_profile("steady")

LOG_LINES = 60
MOST_WORKERS = 8
SELDOM = (50_000, 20, 50)
"""When tests look for garbage: trees of syntax and queues of jobs are made of many small objects, and are none."""
TURNS = pytest.StashKey[Turns]()
FOLDER = pytest.StashKey["tempfile.TemporaryDirectory[str]"]()
SCREEN: list[pytest.TerminalReporter] = []
"""Of a run with workers, where there is one."""


def pytest_xdist_auto_num_workers() -> int:
    """Three for each processor: a worker with tests of pools needs a third of one, and waits otherwise."""
    return min(MOST_WORKERS, 3 * len(os.sched_getaffinity(0)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SlowFirst:
    """Which worker gets what, and when."""
    return SlowFirst(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays: to look through it for garbage again and again took a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow files first, then those that need a quiet machine, then the units."""
    items[:] = in_order(items)


def pytest_configure(config: pytest.Config) -> None:
    """A worker is told where the locks of this run are; no test inherits ignored signals."""
    gc.set_threshold(*SELDOM)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):  # a shell's background and nohup ignore them
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)
    folder = getattr(config, "workerinput", {}).get("turns")
    if folder:
        config.stash[TURNS] = Turns(Path(folder))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """All workers of a run share a folder, which goes with the run."""
    if FOLDER not in node.config.stash:
        node.config.stash[FOLDER] = tempfile.TemporaryDirectory(prefix="condor-turns-")
    node.workerinput["turns"] = node.config.stash[FOLDER].name


def pytest_unconfigure(config: pytest.Config) -> None:
    if FOLDER in config.stash:
        config.stash[FOLDER].cleanup()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A worker's test waits for its turn; what it waits is none of the test's time."""
    turns = item.config.stash.get(TURNS, None)
    with ExitStack() as around:
        if turns is not None:
            around.enter_context(turns.turn(need_of(item)))
        around.enter_context(TIME.of(item.nodeid.partition("::")[0]))
        return (yield)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker says what its files cost."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["processor_s"] = dict(TIME.by_file)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Where there are workers, failures are named early: dots do not say whose they are."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if isinstance(reporter, pytest.TerminalReporter) and getattr(session.config.option, "numprocesses", None):
        SCREEN[:] = [reporter]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A failure is named as soon as it is known; what it was is told at the end."""
    if report.failed and SCREEN:
        SCREEN[0].write_line(f"\nfailed: {report.nodeid} ({report.when})", red=True)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """What a worker's files cost is added up."""
    TIME.by_file.update(getattr(node, "workeroutput", {}).get("processor_s", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The most expensive files, where a run has many."""
    if len(TIME.by_file) > 1:
        terminalreporter.section("most expensive files, in processor time")
        for line in table(TIME.by_file):
            terminalreporter.write_line(line)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport,
                                                                                           pytest.TestReport]:
    """What failed on a pool of processes is shown with the ends of their logs, which go with the pool's folder."""
    report = yield
    if report.failed and report.when != "teardown":
        for name, value in getattr(item, "funcargs", {}).items():
            logs = getattr(value, "logs", None)
            if callable(logs):
                report.sections.append((f"logs of {name}", str(logs(LOG_LINES))))
    return report


@pytest.fixture(scope="module", autouse=True)
def no_pool_outlives_its_module() -> Iterator[None]:
    """A fixture that fails after it has started a pool leaves it running, beside the tests of all other modules."""
    yield
    forgotten = [pool for pool in LIVING if pool.processes()]
    LIVING.clear()
    for pool in forgotten:
        pool.end_forgotten()
    assert not forgotten, f"nobody stopped the pools in {[str(pool.folder) for pool in forgotten]}; they were killed"


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    """A pool for all tests of a module that leave it in order."""
    with fresh_folder() as folder:
        made = PersonalPool(folder)
        yield made
        made.stop()


@pytest.fixture
def own_pool() -> Iterator[PersonalPool]:
    """A pool of the test's own, to be broken."""
    with fresh_folder() as folder:
        made = PersonalPool(folder)
        yield made
        made.stop()
