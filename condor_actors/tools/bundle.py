"""Writes the bundle: ``python -m condor_actors.tools.bundle [--strip FOLDER]``, after each installation.

It holds, compiled, what the commands load that people type again and again: all that their modules import, and what
they load when they have read their words.  Beside it go the programs of the regular expressions that these modules have
(`condor_actors.patterns`).  ``--strip`` removes the beginning of the paths, for an installation that
is put in its place later.  Without a bundle, or when a source has changed since, commands find their modules one by
one (`condor_actors.tools.start`).
"""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
from importlib.util import MAGIC_NUMBER
from pathlib import Path

from condor_actors.config.parameters import MODULES, default_text
from condor_actors.durable import write_whole
from condor_actors.patterns import PROGRAMS, encoded_programs
from condor_actors.tools.start import BUNDLE

ROOTS = (
    "condor_actors.classads.language.references", "condor_actors.config", "condor_actors.messages.advertise",
    "condor_actors.messages.pages", "condor_actors.messages.queue", "condor_actors.messages.submission",
    "condor_actors.tools.jobs.history", "condor_actors.tools.jobs.job_commands",
    "condor_actors.tools.jobs.pool_size", "condor_actors.tools.jobs.q", "condor_actors.tools.jobs.submit",
    "condor_actors.tools.jobs.wait",
    "condor_actors.tools.lib.submit_files", "condor_actors.tools.pool.status", "condor_actors.tools.printing.formats",
    "condor_actors.tools.printing.queue_views", "condor_actors.tools.printing.status_columns",
    "condor_actors.tools.status_totals", "condor_actors.userlog.paths", "re",
    *(f"condor_actors.config.parameters.{module}" for module in MODULES.values()),
)
"""What is loaded for it; all that these load in turn belongs to it."""

DATETIME = b"from _datetime import *\nfrom _datetime import __doc__\n"
SHORTER = {"datetime": DATETIME} if sys.version_info < (3, 12) else {}
"""What a module of Python says in a few words: this one makes all classes in Python, then takes those written in C."""

LOADED = """
import sys
sys.path[:] = sys.argv.pop(1).split(":")
for name in sys.argv[1:]:
    __import__(name)
for name, module in sorted(sys.modules.items()):
    spec = getattr(module, "__spec__", None)
    if spec is not None and spec.has_location:
        print(name, int(spec.submodule_search_locations is not None), spec.origin)
"""


def bundle(strip: str = "") -> bytes:
    """The bundle of this installation.

    Args:
        strip: the beginning of paths that is left out.
    """
    said = subprocess.run([sys.executable, "-I", "-S", "-c", LOADED, ":".join(filter(None, sys.path)), *ROOTS],
                          check=True, stdout=subprocess.PIPE, text=True).stdout
    table, codes, begin = {}, [], 0
    for line in said.splitlines():
        name, is_package, path = line.split(" ", 2)
        shown, status = path.removeprefix(strip), os.stat(path)
        code = b""  # of an extension module only the place is known
        if path.endswith(".py"):
            source = SHORTER.get(name) or Path(path).read_bytes()
            code = marshal.dumps(compile(source, shown, "exec", dont_inherit=True))
        table[name] = shown, is_package == "1", int(status.st_mtime), status.st_size, begin, len(code)
        codes.append(code)
        begin += len(code)
    head = marshal.dumps(table)
    return b"".join((MAGIC_NUMBER, len(head).to_bytes(4, "little"), head, *codes))


def programs() -> bytes:
    """The programs of the patterns that the bundle's modules have."""
    for name in ROOTS:
        __import__(name)
    return encoded_programs([default_text("LOCAL_CONFIG_DIR_EXCLUDE_REGEXP", "TOOL") or ""])


def main() -> None:
    """Write it, whole or not at all."""
    strip = sys.argv[2] if sys.argv[1:2] == ["--strip"] and len(sys.argv) == 3 else ""
    if len(sys.argv) > 1 and not strip:
        raise SystemExit(__doc__)
    for place, content in (BUNDLE, bundle(strip)), (PROGRAMS, programs()):
        path = Path(place)
        path.parent.mkdir(exist_ok=True)
        write_whole(path, content)


if __name__ == "__main__":
    main()
