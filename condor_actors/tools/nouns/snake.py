"""``htcondor snake``: have Snakemake run a workflow, from a job of the local universe.

**Source**: the manual, htcondor, "Snake Verbs".
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import Any

from condor_actors.cores.argument_quoting import join_raw
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.nouns.words import tell

MEMORY = "512MB"


def submit(given: dict[str, Any]) -> int:
    """Queue the job; it needs Snakemake and its executor for HTCondor where it is submitted."""
    words, folder = _words(list(given["words"]), given["jobdir"])
    snakefile = words.pop(0) if words and not words[0].startswith("-") else "Snakefile"
    if words[:1] == ["--"]:
        del words[0]
    if not os.path.exists(snakefile):
        raise ToolError(f"Could not find Snakefile: {snakefile}")
    program = shutil.which("snakemake")
    if program is None:
        raise ToolError("Could not find 'snakemake' in PATH; activate the environment that has it, and in it "
                        "snakemake-executor-plugin-htcondor")
    os.makedirs(folder, exist_ok=True)
    arguments = ["-s", snakefile, "--executor", "htcondor", "--htcondor-jobdir", folder, *words]
    done = subprocess.run([sys.executable, "-m", "condor_actors.tools.jobs.submit", "-terse"], text=True, check=False,
                          capture_output=True, input=description(program, arguments, folder))
    found = re.match(r"(\d+)\.0", done.stdout)
    if done.returncode or found is None:
        raise ToolError(f"Could not submit local universe job.\n{done.stderr.strip()}")
    tell(f"Snakemake management job submitted with JobID {found[1]}.0", f"Logs can be found in {folder}")
    return 0


def _words(words: list[str], folder: str | None) -> tuple[list[str], str]:
    """The words without --jobdir, which may stand behind the Snakefile too, and the folder that it names."""
    end = words.index("--") if "--" in words else len(words)
    while "--jobdir" in words[:end]:
        place = words.index("--jobdir")
        if place + 1 >= end or words[place + 1].startswith("-"):
            raise ToolError("--jobdir needs a folder")
        folder = words[place + 1]
        del words[place:place + 2]
        end -= 2
    return words, folder or os.path.abspath("logs")


def description(program: str, arguments: list[str], folder: str) -> str:
    """The submit description of the job that runs Snakemake."""
    quoted = join_raw(arguments).replace('"', '""')
    log = os.path.join(folder, "snakemake-mgmt-$(ClusterId)")
    return "\n".join([
        "universe = local", f"executable = {program}", f'arguments = "{quoted}"', "getenv = true",
        "request_cpus = 1", f"request_memory = {MEMORY}", "request_disk = 512MB", f"log = {log}.log",
        f"output = {log}.out", f"error = {log}.err", 'batch_name = snakemake-mgmt-$(ClusterId)', "queue",
    ]) + "\n"
