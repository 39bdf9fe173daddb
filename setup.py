"""What setup.cfg cannot say: the native programs and the cffi module are built with the package.

``build_ext`` also runs ``make -C native``; the programs go to ``condor_actors/machine/native/bin``, in place
when developing and into the wheel otherwise.  Only gcc, make and the installed cffi are used: no network.  A wheel
also carries the manual pages and the completion of shells, which the built package writes itself; when developing,
``make install`` has it do so.  The commands are scripts that start Python in their own way (`COMMAND`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Command, Distribution, Extension, setup
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).resolve().parent
PROGRAM_FOLDER = HERE / "condor_actors" / "machine" / "native" / "bin"
PROGRAMS = ("condor_launcher", "condor_root", "condor_runtime", "condor_benchmark")
CLASSADS = Extension(
    "condor_actors.classads._core",
    sorted(str(path.relative_to(HERE)) for path in (HERE / "native" / "classads").glob("*.c")),
    depends=["native/classads/core.h", "native/classads/tokens.h"],
    extra_compile_args=["-O2", "-std=gnu11", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"],
)
COMMANDS = "condor_actors.commands"
"""The entry points that become commands, each with a script of its own in ``bin``."""
COMMAND = """#!/bin/sh
# A shell finds the Python that belongs to this folder and starts it without site and PYTHON*; Python reads on below.
''':'
here=$0
[ -h "$here" ] && here=$(readlink -f "$here")
open=/proc/self/fd  # to look there takes no descriptor, of which the caller may be allowed few
if [ -e $open ]; then  # a file that is opened later would take the place of one that is closed
    [ -e $open/2 ] || exec 2>/dev/null
    for each in 0 1; do
        [ -e $open/$each ] || eval "exec $each</dev/null"
    done
fi
[ -d /dev/stdin ] && echo "${0##*/}: the standard input is a directory" >&2 && exit 1
python=${here%/*}/{python}
[ -x "$python" ] || python={python}
exec "$python" -I -S "$here" "$@"
':'''
import sys

sys.path += [__file__.rpartition("/bin/")[0] + "/lib/{python}/site-packages"{tree}]
try:
    from condor_actors.tools.start import command
except ModuleNotFoundError:  # it is installed in some other way
    import site

    site.main()
    from condor_actors.tools.start import command

sys.exit(command("{module}", "{function}"))
"""


class NativeDistribution(Distribution):
    """A distribution that always has compiled parts, so that wheels carry the platform's name."""

    def has_ext_modules(self) -> bool:
        return True

    def has_data_files(self) -> bool:
        return True


class BuildNative(build_ext):
    """Builds the extension modules, then the programs that the package executes."""

    def run(self) -> None:
        super().run()
        self.build_programs()

    def build_programs(self) -> None:
        if shutil.which("make") is None:
            raise SystemExit("setup.py: 'make' is missing; install make and gcc (Debian: build-essential)")
        out = Path(self.build_temp).resolve() / "native"
        command = ["make", "-C", str(HERE / "native"), f"OUT={out}", f"PYTHON={sys.executable}"]
        subprocess.run(command, check=True, env={**os.environ, "MAKEFLAGS": ""})
        root = HERE if self.inplace else Path(self.build_lib)
        target = root / PROGRAM_FOLDER.relative_to(HERE)
        target.mkdir(parents=True, exist_ok=True)
        for name in PROGRAMS:
            fresh = target / f".{name}.new"
            shutil.copy2(out / name, fresh)
            fresh.chmod(0o755)
            fresh.replace(target / name)  # a running program keeps its old file


class BuildCommands(Command):
    """Writes the script of each command."""

    user_options = [("build-dir=", "d", "where they are written")]

    def initialize_options(self) -> None:
        self.build_dir: str | None = None

    def finalize_options(self) -> None:
        self.set_undefined_options("build", ("build_scripts", "build_dir"))

    def get_source_files(self) -> list[str]:
        return []

    def run(self) -> None:
        folder = Path(str(self.build_dir))
        folder.mkdir(parents=True, exist_ok=True)
        is_editable = self.get_finalized_command("build_py").editable_mode
        text = COMMAND.replace("{tree}", f", {str(HERE)!r}" if is_editable else "")
        text = text.replace("{python}", f"python{sys.version_info.major}.{sys.version_info.minor}")
        for line in self.distribution.entry_points[COMMANDS]:
            name, _, entry = line.partition("=")
            module, _, function = entry.strip().partition(":")
            path = folder / name.strip()
            path.write_text(text.replace("{module}", module).replace("{function}", function))
            path.chmod(0o755)


class InstallManual(Command):
    """Puts the manual pages and the completion of shells into ``share``."""

    user_options = [("install-dir=", "d", "the prefix")]

    def initialize_options(self) -> None:
        self.install_dir: str | None = None
        self.outfiles: list[str] = []

    def finalize_options(self) -> None:
        self.set_undefined_options("install", ("install_data", "install_dir"))

    def get_inputs(self) -> list[str]:
        return []

    def get_outputs(self) -> list[str]:
        return self.outfiles

    def run(self) -> None:
        if self.get_finalized_command("build_py").editable_mode:
            return
        folder = (Path(self.install_dir) / "share").resolve()
        built = Path(self.get_finalized_command("build").build_lib).resolve()
        command = [sys.executable, "-P", "-m", "condor_actors.tools.manual", str(folder)]
        # What pip has installed for the build alone is found by this variable.
        path = os.pathsep.join(filter(None, (str(built), os.environ.get("PYTHONPATH"))))
        subprocess.run(command, check=True, cwd=built, env={**os.environ, "PYTHONPATH": path})
        self.outfiles = [str(path) for path in folder.rglob("*") if path.is_file()]


if __name__ == "__main__":
    PROGRAM_FOLDER.mkdir(exist_ok=True)  # before the packages are looked for: a folder of data counts as one
    setup(
        distclass=NativeDistribution,
        cmdclass={"build_ext": BuildNative, "build_scripts": BuildCommands, "install_data": InstallManual},
        cffi_modules=["native/binding/build_native.py:ffibuilder"],
        ext_modules=[CLASSADS],
        scripts=[COMMANDS],  # there are some: BuildCommands knows which
    )
