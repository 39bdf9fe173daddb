"""A release after this one, as far as other processes can see: a copy of the package, changed as releases change."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import condor_actors

__all__ = ["NEXT_VERSION", "make_next_release"]

PACKAGE = Path(condor_actors.__file__).parent
NEXT_VERSION = "1.0.1.next"
FIELD = "of_next_release"
_CLASS_WORDS = re.compile(r"^    VERSION: ClassVar\[int\] = \d+\n(?:    LEVEL: .*\n)?", re.MULTILINE)
_NEW_KIND = '''

@message
@records.frozen(kw_only=True)
class OfNextRelease:
    """What no older release knows."""

    KIND: ClassVar[str] = "condor.pool.OfNextRelease"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "READ"
'''


def make_next_release(folder: Path) -> Path:
    """Make it in a folder, which goes to the beginning of a process's PYTHONPATH.

    Each message has one more field, with a default; there is one more kind; links may speak another protocol as well;
    and it has another version.
    """
    made = folder / PACKAGE.name
    shutil.copytree(PACKAGE, made, ignore=shutil.ignore_patterns("__pycache__"))
    count = 0
    for path in (made / "messages").glob("*.py"):
        text, added = _CLASS_WORDS.subn(lambda found: f'{found[0]}\n    {FIELD}: str = ""\n', path.read_text())
        path.write_text(text)
        count += added
    assert count > 100, "messages are not declared as they were"
    change(made / "messages" / "pool.py", "", _NEW_KIND)
    change(made / "wire" / "frames.py", "PROTOCOLS = (1,)", "PROTOCOLS = (1, 2)")
    change(made / "daemons" / "admin.py", 'return metadata.version("condor-actors")', f'return "{NEXT_VERSION}"')
    return folder


def change(path: Path, old: str, new: str) -> None:
    """Replace a text of a file, or add to its end."""
    text = path.read_text()
    assert not old or text.count(old) == 1, f"{path.name}: {old}"
    path.write_text(text.replace(old, new) if old else text + new)
