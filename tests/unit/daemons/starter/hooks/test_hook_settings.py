"""Hooks as the configuration has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.config import Config, ConfigError, load_config
from condor_actors.cores.starter.hooks import Hooks
from condor_actors.daemons.starter.hooks.hook_settings import hook_settings


def config_of(tmp_path: Path, text: str) -> Config:
    file = tmp_path / "condor_config"
    file.write_text(text)
    return load_config(subsystem="STARTER", environ={"CONDOR_CONFIG": str(file)}, reads_user_file=False)


def test_all_that_can_be_said(tmp_path: Path) -> None:
    found = hook_settings(config_of(tmp_path, """
        atlas_HOOK_PREPARE_JOB = /a
        ATLAS_HOOK_PREPARE_JOB_ARGS = "one 'two three'"
        ATLAS_HOOK_PREPARE_JOB_TIMEOUT = 5
        ATLAS_HOOK_UPDATE_JOB_INFO = /b
        ATLAS_HOOK_JOB_EXIT = /c
        ATLAS_HOOK_JOB_EXIT_TIMEOUT = 60
        CMS_HOOK_JOB_EXIT = /d
        ALICE_HOOK_PREPARE_JOB_BEFORE_TRANSFER = /e
        EMPTY_HOOK_JOB_EXIT =
        STARTER_DEFAULT_JOB_HOOK_KEYWORD = cms
    """))
    assert found.hooks == {
        "ATLAS": Hooks(keyword="ATLAS", prepare="/a", prepare_arguments=("one", "two three"), prepare_s=5.0,
                       update="/b", exit="/c", exit_s=60.0),
        "CMS": Hooks(keyword="CMS", exit="/d"), "ALICE": Hooks(keyword="ALICE", before_transfer="/e")}
    assert (found.forced, found.default) == ("", "cms")


@pytest.mark.parametrize(("line", "said"), [
    ("X_HOOK_JOB_EXIT = bin/x", "bin/x is no absolute path"),
    ("X_HOOK_JOB_EXIT = /x\nX_HOOK_JOB_EXIT_TIMEOUT = soon", "X_HOOK_JOB_EXIT_TIMEOUT = soon is not possible"),
    ("X_HOOK_PREPARE_JOB = /x\nX_HOOK_PREPARE_JOB_ARGS = \"a 'b\"", "Unbalanced quote"),
])  # fmt: skip
def test_what_cannot_be_used_is_told(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(ConfigError, match="condor_config") as error:
        hook_settings(config_of(tmp_path, line))
    assert said in str(error.value)
