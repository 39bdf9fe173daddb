"""How a command starts: an interpreter without ``site`` and without the caller's ``PYTHON*``, and one file of modules.

Theory: an ordinary start of Python looks for the folders of its modules, runs what ``.pth`` files say, and then asks
the file system about each module again; a command needs a hundred of them.  The scripts in ``bin`` (written by
``setup.py``) run ``python -I -S`` and know where their own modules are.  The modules that commands load most lie
compiled in one file, the bundle (`condor_actors.tools.bundle` writes it).

The bundle never answers for a module whose source has another size or time than when it was written: Python checks
its own compiled files in the same way.  Whatever is not in it, or is there no more, is found on the path as ever; and
what is not found there either, as an ordinary start of Python would find it, so that a library may be installed in any
way that Python knows.
"""

from __future__ import annotations

import atexit
import marshal
import posix
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER, ExtensionFileLoader, SourceFileLoader

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType

    Entry = tuple[str, bool, int, int, int, int]

__all__ = ["BUNDLE", "HEAD_BYTES", "command"]

BUNDLE = f"{__file__.rpartition('/')[0]}/__pycache__/commands.{sys.implementation.cache_tag}.bundle"
"""Where the bundle of this installation is: Python's number for its compiled code, the length of the table of modules
in four bytes, that table, and the codes."""
ENOMEM = 12
INTERRUPTED = 130
HEAD_BYTES = len(MAGIC_NUMBER) + 4


def command(module: str, function: str) -> int:
    """Run a command.

    Args:
        module: where it is.
        function: its entry there.

    Returns:
        the exit status, where the process has threads to end; else it ends here.
    """
    prefix = sys.executable.rpartition("/bin/")[0]
    if _is_file(f"{prefix}/pyvenv.cfg"):
        sys.prefix = sys.exec_prefix = prefix  # as ``site`` sets them
    bundle = _Bundle.read(BUNDLE)
    if bundle is not None:
        sys.meta_path.insert(0, bundle)
    sys.meta_path.append(_EveryWay())
    try:
        __import__(module)
        status: int = getattr(sys.modules[module], function)()
    except KeyboardInterrupt:  # before there was anything to interrupt
        status = INTERRUPTED
    except (MemoryError, ImportError, OSError, SystemError) as error:
        if not _is_of_memory(error):
            raise
        said = f"{sys.argv[0].rpartition('/')[2]}: it may not have as much memory as it needs (see 'ulimit -v')\n"
        posix.write(2, said.encode(errors="replace"))
        status = 1
    if "threading" not in sys.modules:
        _end(status)
    return status


def _is_of_memory(error: Exception) -> bool:
    """Whether it is for want of memory that a command cannot go on.

    Of libraries the loader says so in words, and Python's own importer may fail without an exception.
    """
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == ENOMEM:
        return True
    signs = ("failed to map segment", "annot allocate memory", "error return without exception set")
    return any(words in str(error) for words in signs)


def _end(status: int) -> None:
    """End the process: the kernel takes back its memory at once, Python would look at every object before."""
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return  # Python says what is wrong
    posix._exit(status)


def _is_file(path: str) -> bool:
    try:
        posix.stat(path)
    except OSError:
        return False
    return True


class _Loader(SourceFileLoader):
    """Loads a module from the bundle."""

    def __init__(self, name: str, source: str, code: bytes) -> None:
        super().__init__(name, source)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        """The module, compiled."""
        found: CodeType = marshal.loads(self._code)
        return found


class _Bundle:
    """Finds modules in the bundle.

    Args:
        descriptor: of the open file.
        entries: of each module its source, whether it is a package, the source's time and size, where its code begins
            behind the table and how long it is; of an extension module it is nothing long.
        behind: where the table ends.
    """

    def __init__(self, descriptor: int, entries: dict[str, Entry], behind: int) -> None:
        self._descriptor, self._entries, self._behind = descriptor, entries, behind

    @classmethod
    def read(cls, path: str) -> _Bundle | None:
        """The bundle of a file; None where there is none for this Python."""
        try:
            descriptor = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
        except OSError:
            return None
        head = posix.pread(descriptor, HEAD_BYTES, 0)
        if head[: len(MAGIC_NUMBER)] == MAGIC_NUMBER:
            length = int.from_bytes(head[len(MAGIC_NUMBER) :], "little")
            return cls(descriptor, marshal.loads(posix.pread(descriptor, length, HEAD_BYTES)), HEAD_BYTES + length)
        posix.close(descriptor)
        return None

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
                  ) -> ModuleSpec | None:
        """The module, unless its source has changed."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        source, is_package, time, size, begin, length = entry
        try:
            now = posix.stat(source)
        except OSError:
            return None
        if int(now.st_mtime) != time or now.st_size != size:
            return None
        if length:
            code = posix.pread(self._descriptor, length, self._behind + begin)
            loader: ExtensionFileLoader | _Loader = _Loader(name, source, code)
        else:
            loader = ExtensionFileLoader(name, source)
        spec = ModuleSpec(name, loader, origin=source, is_package=is_package)
        spec.has_location, spec.cached = True, BUNDLE
        if is_package:
            spec.submodule_search_locations = [source.rpartition("/")[0]]
        return spec


class _EveryWay:
    """Asked for what nothing else has: looks where an ordinary start of Python would, once."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
                  ) -> ModuleSpec | None:
        """A module of its own folder; no part of a package that was found."""
        if path is not None:
            return None
        sys.meta_path.remove(self)
        import site
        from importlib.machinery import PathFinder

        before = len(sys.path)
        site.main()
        return PathFinder.find_spec(name, sys.path) if len(sys.path) > before else None
