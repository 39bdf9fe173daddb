"""Writes the manual pages and the completion of shells: ``python -m condor_actors.tools.manual FOLDER``.

FOLDER is what a prefix has as ``share``.

====================================  ===========================================
``man/man1``, ``man5``, ``man8``      the manual pages
``bash-completion/completions``       for bash, by command
``zsh/site-functions``                for zsh
``fish/vendor_completions.d``         for fish, by command
====================================  ===========================================
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from condor_actors.tools.manual import overviews
from condor_actors.tools.manual.completion import bash, fish, zsh
from condor_actors.tools.manual.lookup import described
from condor_actors.tools.manual.roff import command_page


def files() -> Iterator[tuple[str, str]]:
    """Each file that is written: its path below the folder, and its text."""
    for name, page in described().items():
        yield f"man/man{page.section}/{name}.{page.section}", command_page(name)
        yield f"bash-completion/completions/{name}", bash.script(name)
        yield f"fish/vendor_completions.d/{name}.fish", fish.script(name)
    yield f"zsh/site-functions/{zsh.NAME}", zsh.script()
    for name, section, text in overviews.pages():
        yield f"man/man{section}/{name}.{section}", text


def write(folder: Path) -> int:
    """Write them all; how many there are."""
    count = 0
    for path, text in files():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        count += 1
    return count


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: python -m condor_actors.tools.manual FOLDER")
    print(f"{write(Path(sys.argv[1]))} files are written below {sys.argv[1]}")
