"""Only :mod:`condor_actors.accounts` asks the user database, and of the programs in C only the helper's child does.

The database may be a directory server that hangs, and its libraries are the site's: a process that asks it waits, and
runs them with its rights.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / "condor_actors"
MODULES = frozenset({"pwd", "grp", "spwd", "getpass"})
CALLS = frozenset({"getpwnam", "getpwuid", "getpwall", "getgrnam", "getgrgid", "getgrall", "getgrouplist", "initgroups",
                   "getlogin", "getuser", "expanduser"})
ASKS = {"accounts.py": "the one module, on threads"}
AT_A_TERMINAL = ("tools", "compat", "wire/certificates/tool_credentials.py", "wire/idtokens/token_files.py",
                 "wire/partners/pool_contact.py")
"""What commands run with the rights of who typed them: they wait as every program does."""
IN_C = {"native/root/rights.c": "in a process without rights, which it forks for each question"}
C_CALLS = re.compile(r"\b(?:get(?:pw|gr|sp)(?:nam|uid|gid|ent)(?:_r)?|getgrouplist|initgroups|getlogin(?:_r)?|cuserid|"
                     r"wordexp|GLOB_TILDE)\b")


def questions(tree: ast.AST) -> Iterator[str]:
    """The names by which a module asks."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            yield node.module
        elif isinstance(node, ast.Attribute) and node.attr in CALLS:
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg in ("user", "group", "extra_groups") and _is_name(node.value):
            yield f"{node.arg}={ast.unparse(node.value)}"


def _is_name(value: ast.expr) -> bool:
    """Whether a program is started as an account that is given by a name, which the library looks up."""
    values = value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]
    return any(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in values)


def sources() -> list[Path]:
    return sorted(path for path in PYTHON.rglob("*.py") if not str(path.relative_to(PYTHON)).startswith(AT_A_TERMINAL))


def test_one_module_asks_the_user_database() -> None:
    found = {str(path.relative_to(PYTHON)): sorted(set(questions(ast.parse(path.read_bytes())))) for path in sources()}
    asking = {name: names for name, names in found.items() if names}
    assert set(asking) == set(ASKS), asking


def test_one_place_of_the_programs_in_c_asks_it() -> None:
    found = {str(path.relative_to(ROOT)): sorted(set(C_CALLS.findall(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))))
             for path in sorted((ROOT / "native").rglob("*.[ch]"))
             for text in (path.read_text(errors="replace"),)}
    assert {name for name, names in found.items() if names} == set(IN_C), found


@pytest.mark.parametrize("line", [
    "import pwd", "from grp import getgrnam", "import getpass", "os.getgrouplist(name, gid)", "os.initgroups(name, 1)",
    "os.path.expanduser(path)", "path.expanduser()", "subprocess.run(words, user='alice')",
    "Popen(words, extra_groups=['staff'])",
])  # fmt: skip
def test_the_check_finds_each_way_to_ask(line: str) -> None:
    assert list(questions(ast.parse(line)))


@pytest.mark.parametrize("line", ["match.group()", "subprocess.run(words, user=1000)", "os.getuid()", "ad.owner"])
def test_what_asks_nothing_is_left_alone(line: str) -> None:
    assert not list(questions(ast.parse(line)))
