"""The daemons as twistd commands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
ASK = """
import json, sys
from twisted.application.service import IServiceMaker
from twisted.plugin import getPlugins
names = sorted(each.tapname for each in getPlugins(IServiceMaker) if each.tapname.startswith("condor-"))
loaded = sorted(name for name in sys.modules if name.startswith("condor_actors"))
print(json.dumps([names, loaded]))
"""


def ask(*command: str) -> str:
    return subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_every_daemon_is_a_plugin_and_none_is_imported() -> None:
    names, loaded = json.loads(ask("-c", ASK))
    assert names == [
        f"condor-{name}" for name in
        ("ckpt-server", "collector", "credd", "defrag", "gateway", "kbdd", "master", "negotiator",
         "rooster", "schedd", "shadow-host", "startd", "starter-host", "web")
    ]
    assert loaded == []


def test_every_plugin_has_options_and_a_service() -> None:
    script = (
        "from twisted.application.service import IServiceMaker\n"
        "from twisted.plugin import getPlugins\n"
        "for each in getPlugins(IServiceMaker):\n"
        "    if each.tapname.startswith('condor-') and each.tapname != 'condor-kbdd':\n"
        "        each.options(); print(each.tapname, callable(each.makeService))\n"
    )
    assert {line.split()[1] for line in ask("-c", script).splitlines()} == {"True"}


def test_twistd_lists_them() -> None:
    text = ask("-m", "twisted", "--help")
    assert "condor-schedd" in text
    assert "job queue of a submit machine" in text
