"""The list of parameters that no code reads yet, held against what the code reads."""

from __future__ import annotations

import re
from pathlib import Path

from condor_actors.config import all_parameters
from condor_actors.config.parameters.not_in_force import NOT_IN_FORCE
from condor_actors.config.template_texts import TEMPLATES
from condor_actors.cores.startd.policy_evaluation import POLICY_NAMES, UNIVERSE_SUFFIXES

PACKAGE = Path(__file__).parents[3] / "condor_actors"
BUILDING_BLOCKS = {
    # Macros for people to use in the values of others.
    "BIN", "SBIN", "LIB", "LIBEXEC", "LOCK", "SECOND", "CONSOLEBUSY", "CPU_IDLE", "CPU_BUSY", "MACHINEBUSY",
    "ISSTANDARD",
    "JUSTCPU", "POOL_CRL", "DC_DAEMON_LIST", "MASTER", "COLLECTOR", "NEGOTIATOR", "SCHEDD", "STARTD", "KBDD",
    "CKPT_SERVER", "GATEWAY",
}  # fmt: skip


BUILT_BUT_UNREAD: set[str] = set()
"""Names that fit what the code puts together, for other words than these."""

LEAST_LITERAL = 15
"""How much of a name that is put together must stand in the code to say which parameter is meant."""


def read_names(known: set[str]) -> tuple[set[str], list[re.Pattern[str]]]:
    """Names that the code reads, and patterns of those whose names it puts together."""
    code = "\n".join(
        path.read_text() for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE / "config/parameters"
    )
    templates = "\n".join(text for category in TEMPLATES.values() for text in category.values())
    defaults = "\n".join(row.default or "" for row in all_parameters())
    names = set(re.findall(r"[\"'(.]([A-Z][A-Z0-9_]{2,})[\"')]", code))
    names |= set(re.findall(r"\$\((\w+)", code + templates + defaults))
    built = [text for text in re.findall(r"f[\"']([A-Z_{}a-z.()\[\]]+)[\"']", code) if "{" in text]
    patterns = [
        re.compile(re.sub(r"\\\{.*?\\\}", "[A-Z0-9_]+", re.escape(text))) for text in built
        if len(re.sub(r"\{.*?\}", "", text)) >= LEAST_LITERAL
    ]
    # Names put together of two words that stand elsewhere: of a policy for one universe, and of devices' variables.
    names |= {f"{name}_{suffix}" for name in POLICY_NAMES for suffix in UNIVERSE_SUFFIXES.values()}
    names |= {name for name in known if name.startswith("ENVIRONMENT_FOR_ASSIGNED")}
    return {name.upper() for name in names}, patterns


def test_the_list_is_true() -> None:
    known = {row.name for row in all_parameters() if not row.is_pattern}
    names, patterns = read_names(known)
    unread = {
        name for name in known - BUILDING_BLOCKS
        if name not in names and not any(pattern.fullmatch(name) for pattern in patterns)
    }
    assert unread - NOT_IN_FORCE.keys() == set(), "nobody reads these: put them into not_in_force.py, or take them out"
    patterns_of_users = {name for name in NOT_IN_FORCE if "<" in name}
    assert patterns_of_users <= {row.name for row in all_parameters()}
    read_now = NOT_IN_FORCE.keys() - patterns_of_users - unread - BUILT_BUT_UNREAD
    assert read_now == set(), "take these out of not_in_force.py"
