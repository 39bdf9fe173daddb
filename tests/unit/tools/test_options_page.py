"""The manual names every option that is not carried out, and the end-to-end tests try the same commands."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from tests.conformance.manual_options import EXAMPLES

ROOT = Path(__file__).resolve().parents[3]


def test_the_page_names_what_is_not_carried_out() -> None:
    spec = importlib.util.spec_from_file_location("command_table", ROOT / "docs/command_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.on_page_markdown((ROOT / "docs/commands.md").read_text())
    assert set(module.ASK_AND_ACT) == EXAMPLES.keys()
    for command in EXAMPLES:
        assert f"`{command}`" in page
        for flag in module.flags_of(command):
            if flag.idle or flag.refused:
                assert f"`-{flag.name}`" in page, (command, flag.name)
