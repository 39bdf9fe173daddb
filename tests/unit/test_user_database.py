"""Nobody but one module asks the user database, and that one does not make a reactor wait for it."""

from __future__ import annotations

import ast
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from condor_actors import accounts
from condor_actors.accounts import MOST_ASKED, MOST_ASKED_BY_STRANGERS, WAIT_S, Entry, NotYet, UserDatabase
from condor_actors.classads import ClassAd, parse_expression
from condor_actors.classads.values import UNDEFINED

PACKAGE = Path(accounts.__file__).parent
DATABASES = {"pwd", "grp", "spwd", "getpass"}
CALLS = {"initgroups", "getgrouplist", "getlogin", "getuser"}
COMMANDS = {"tools", "api", "compat"}
HOME_OF_A_COMMAND = {"wire/certificates/tool_credentials.py", "wire/idtokens/token_files.py",
                     "wire/partners/pool_contact.py"}
"""What commands call, and workers of a shadow host, whose HOME is set: they may wait as long as they like."""


def places(wanted: Callable[[ast.AST], bool]) -> set[str]:
    """The modules that have such a node."""
    return {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")
            if any(wanted(node) for node in ast.walk(ast.parse(path.read_text())))}


def test_one_module_asks() -> None:
    def asks(node: ast.AST) -> bool:
        names = ({each.name for each in node.names} if isinstance(node, ast.Import)
                 else {node.module or ""} if isinstance(node, ast.ImportFrom) else set())
        return bool(names & DATABASES) or (isinstance(node, ast.Attribute) and node.attr in CALLS)

    assert places(asks) == {"accounts.py"}


def test_no_daemon_expands_a_home() -> None:
    """``~`` asks the user database where HOME is not set."""
    found = places(lambda node: isinstance(node, ast.Attribute) and node.attr == "expanduser")
    assert {each for each in found if each.split("/")[0] not in COMMANDS} <= HOME_OF_A_COMMAND


class Server:
    """A directory server that answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.answers = threading.Event()

    def ask(self, key: object) -> Entry | None:
        self.asked.append(key)
        self.answers.wait()
        return Entry(f"user{key}", 7, 7, "/home") if isinstance(key, int) else None


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.answers.set()


@pytest.fixture
def database() -> UserDatabase:
    made = UserDatabase()
    made.be_impatient()
    return made


def until_known(database: UserDatabase, server: Server, key: object) -> object:
    while True:
        try:
            return database.answer(server.ask, key)
        except NotYet:
            time.sleep(0.001)


def test_a_thread_of_its_own_waits(server: Server) -> None:
    server.answers.set()
    assert UserDatabase().answer(server.ask, 1) == Entry("user1", 7, 7, "/home")


def test_a_reactor_waits_once_and_asks_once(database: UserDatabase, server: Server) -> None:
    began_s = time.monotonic()
    for _ in range(1000):
        with pytest.raises(NotYet):
            database.answer(server.ask, 1)
    assert server.asked == [1]
    assert time.monotonic() - began_s < 100 * WAIT_S
    server.answers.set()
    assert until_known(database, server, 1) == Entry("user1", 7, 7, "/home")


def test_what_was_known_stays_known(server: Server) -> None:
    now_s = [0.0]
    database = UserDatabase(lambda: now_s[0])
    server.answers.set()
    database.answer(server.ask, 1)
    database.be_impatient()
    server.answers.clear()
    now_s[0] = 1e6
    assert database.answer(server.ask, 1) == Entry("user1", 7, 7, "/home")
    assert server.asked == [1, 1], "asked again all the same"


def test_a_crowd_takes_so_many_threads(database: UserDatabase, server: Server) -> None:
    for number in range(10 * MOST_ASKED):
        with pytest.raises(NotYet):
            database.answer(server.ask, number)
    assert len(server.asked) == MOST_ASKED


def test_strangers_leave_room_for_others(database: UserDatabase, server: Server) -> None:
    for number in range(100):
        with pytest.raises(NotYet):
            database.answer(server.ask, number, by_stranger=True)
    assert len(server.asked) == MOST_ASKED_BY_STRANGERS
    with pytest.raises(NotYet):
        database.answer(server.ask, "alice")
    assert "alice" in server.asked


def test_groups_are_those_of_the_database() -> None:
    root = accounts.numbered(0)
    assert root is not None
    assert set(accounts.groups_of(root)) == set(os.getgrouplist("root", 0))


def test_an_answer_about_a_number_is_one_about_the_name() -> None:
    database = UserDatabase()
    root = database.answer(accounts._ask_number, 0)
    database.be_impatient()
    assert database._known[accounts._ask_name, "root"][0] == root


def test_an_expression_does_not_wait(monkeypatch: pytest.MonkeyPatch, database: UserDatabase, server: Server) -> None:
    monkeypatch.setattr(accounts, "DATABASE", database)
    monkeypatch.setattr(accounts, "_ask_name", server.ask)
    home = parse_expression('userHome(strcat("nobody", Number), "/somewhere")')
    assert {home.evaluate(ClassAd({"Number": number})) for number in range(100)} == {"/somewhere"}
    assert parse_expression('userHome("nobody7")').evaluate(ClassAd()) is UNDEFINED
