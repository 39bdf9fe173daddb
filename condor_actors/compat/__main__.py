"""``python -m condor_actors.compat``: run a program that was written for HTCondor's Python modules.

==============================  =======================================================================
``program.py argument …``       run it, with ``htcondor2``, ``classad2``, ``htcondor``, ``classad`` of this pool
``-m module argument …``        the same for a module
``--install``, ``--remove``     put these names into this Python's site-packages, or take them away again
==============================  =======================================================================
"""

from __future__ import annotations

import runpy
import sys
import sysconfig
from pathlib import Path

from condor_actors.compat.hook import AlreadyThere, install_hook, install_names, remove_names

USAGE = """Usage: python -m condor_actors.compat program.py [argument ...]
       python -m condor_actors.compat -m module [argument ...]
       python -m condor_actors.compat --install | --remove"""


def main(arguments: list[str]) -> int:
    """Do what the command line says; the exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stderr.write(USAGE + "\n")
        return 0 if arguments else 2
    try:
        if arguments[0] in ("--install", "--remove"):
            folder = Path(sysconfig.get_path("purelib"))
            paths = install_names(folder) if arguments[0] == "--install" else remove_names(folder)
            sys.stdout.write("".join(f"{path}\n" for path in paths))
            return 0
        install_hook()
    except (AlreadyThere, OSError) as error:
        sys.stderr.write(f"ERROR: {error}\n")
        return 1
    if arguments[0] == "-m" and len(arguments) > 1:
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path[0] = str(Path(arguments[0]).resolve().parent)
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
