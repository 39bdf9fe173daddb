"""Transfer plugins of the machine are asked what they can do."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from condor_actors.cores.transfer_plugins import Plugin
from condor_actors.machine.run.plugin_query import PluginQuery, ask_plugins


def plugin(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_one_that_answers(tmp_path: Path) -> None:
    path = plugin(tmp_path, "box", 'test "$*" = -classad && echo SupportedMethods = \\"box\\"')
    assert ask_plugins([path, path], 60) == ((Plugin(path=path, methods=("box",), several=False),), ())


def test_it_sees_nothing_of_the_daemons_environment(tmp_path: Path) -> None:
    os.environ["CONDOR_TEST_SECRET"] = "hidden"
    try:
        path = plugin(tmp_path, "env", 'echo SupportedMethods = \\"m$CONDOR_TEST_SECRET\\"')
        assert ask_plugins([path], 60)[0][0].methods == ("m",)
    finally:
        del os.environ["CONDOR_TEST_SECRET"]


def test_those_that_do_not_are_left_out_with_the_reason(tmp_path: Path) -> None:
    paths = [
        plugin(tmp_path, "silent", "sleep 600 & wait"), plugin(tmp_path, "endless", "exec yes"),
        plugin(tmp_path, "failing", "exit 3"), plugin(tmp_path, "nothing", "true"), "relative/box",
        str(tmp_path / "missing"),
    ]
    found, problems = ask_plugins(paths, 1)
    assert found == ()
    for name, why in zip(problems, ("took more than 1 s", "wrote more than", "ended with status 3",
                                    "names no SupportedMethods", "no absolute path", "No such file"), strict=True):
        assert why in name


def test_the_newest_question_counts_and_those_who_wait_hear_of_it() -> None:
    waiting: list[tuple[Callable[[], Any], Deferred[Any]]] = []

    def in_thread(function: Callable[[], Any]) -> Deferred[Any]:
        result: Deferred[Any] = Deferred()
        waiting.append((function, result))
        return result

    query = PluginQuery(Logger(), in_thread)
    told: list[str] = []
    query.when_known(lambda: told.append("at first"))
    query.ask(["/one"], 1)
    query.when_known(lambda: told.append("late"))
    query.ask(["/two"], 1)
    answers = [((Plugin(path=path, methods=(path[1:],)),), ()) for path in ("/one", "/two")]
    waiting[0][1].callback(answers[0])
    assert told == ["at first"]
    waiting[1][1].callback(answers[1])
    assert told == ["at first", "late"]
    assert query.table.methods == ("http", "https", "two")
    query.ask([], 1)
    assert query.table.methods == ("http", "https")
