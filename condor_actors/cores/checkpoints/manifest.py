"""What a checkpoint at a URL consists of: a text that ``sha256sum --check`` reads, with its own digest at its end.

Theory: a destination is another party's.  The submit machine keeps this list, and what comes back from there is held
against it.  HTCondor's form is a line for each file, as sha256sum writes it, and a last one for the list itself; what
such a line cannot say (modes, folders, links, where all of it is) is in comments before it, which sha256sum passes
over::

    # {"base": "https://host/job/0003.2/", "number": 3}
    # {"mode": 493}
    5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03 *state
    …                                                                *_condor_checkpoint_MANIFEST.0003

**Source**: HTCondor's manual, "Checkpoint Destinations", and the MANIFEST files that it writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from condor_actors import records
from condor_actors.messages.manifest import FileEntry
from condor_actors.patterns import late

__all__ = ["BadCheckpoint", "CheckpointList", "file_of_line", "list_name", "number_of", "read_list", "write_list"]

MODE = 0o644
_NAME = late(r"_condor_checkpoint_(MANIFEST|FAILURE|OLD)\.([0-9]{1,12})")
_LINE = late(r"(\\?)([0-9a-f]{64}) [ *](.+)")


class BadCheckpoint(ValueError):
    """A list that is not whole, or no list; the text says why."""


@records.frozen(kw_only=True)
class CheckpointList:
    """What one checkpoint consists of.

    Attributes:
        number: of the job's checkpoints; base: the URL of its folder, empty where the list does not say.
        entries: files with their digests, folders, links.
    """

    number: int
    base: str
    entries: tuple[FileEntry, ...]


def list_name(number: int, kind: str = "MANIFEST") -> str:
    """The name of a list: ``MANIFEST``; of one that is not to be used any more ``FAILURE`` or ``OLD``."""
    return f"_condor_checkpoint_{kind}.{number:04d}"


def number_of(name: str, kinds: str = "MANIFEST") -> int:
    """The number in a name that :func:`list_name` makes; -1: it is another."""
    found = _NAME.fullmatch(name)
    return int(found.group(2)) if found and found.group(1) in kinds else -1


def write_list(checkpoint: CheckpointList) -> bytes:
    """The list as a text."""
    lines = [_comment(base=checkpoint.base, number=checkpoint.number)]
    for entry in checkpoint.entries:
        if entry.kind == "directory":
            lines.append(_comment(directory=entry.path, mode=entry.mode))
        elif entry.kind == "link":
            lines.append(_comment(link=entry.path, target=entry.target))
        else:
            if entry.mode != MODE:
                lines.append(_comment(mode=entry.mode))
            lines.append(_line(entry.digest, entry.path))
    text = "".join(lines).encode(errors="surrogateescape")
    return text + _line(_digest(text), list_name(checkpoint.number)).encode()


def read_list(data: bytes) -> CheckpointList:
    """What a list says.

    Raises:
        BadCheckpoint: it is not whole, or no list.
    """
    head, _, last = data.removesuffix(b"\n").rpartition(b"\n")
    said = _LINE.fullmatch(last.decode(errors="surrogateescape"))
    if said is None or not data.endswith(b"\n"):
        raise BadCheckpoint("it does not end with the digest of itself")
    body = head + b"\n" if head else b""
    if said.group(2) != _digest(body):
        raise BadCheckpoint("it is not what the digest at its end says")
    number = number_of(said.group(3).rpartition("/")[2])
    if number < 0:
        raise BadCheckpoint(f"its last line names {said.group(3)[:100]!r}, which is no name of a list")
    entries: list[FileEntry] = []
    base, mode = "", MODE
    for line in body.decode(errors="surrogateescape").split("\n")[:-1]:
        if line.startswith("#"):
            more = _read_comment(line)
            base, mode = str(more.get("base", base)), _mode(more, MODE)
            if more.get("number", number) != number:
                raise BadCheckpoint(f"it is of checkpoint {str(more['number'])[:20]}, and its last line says {number}")
            entries += _other(more)
            continue
        digest, path = _read_line(line)
        entries.append(FileEntry(path=path, mode=mode, digest=digest))
        mode = MODE
    return CheckpointList(number=number, base=base, entries=tuple(entries))


def file_of_line(line: str) -> tuple[str, str]:
    """(digest, path) of a line for a file.

    Raises:
        BadCheckpoint: it is none.
    """
    return _read_line(line)


def _digest(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()


def _line(digest: str, path: str) -> str:
    """A line of sha256sum's: a name with a line end or a backslash is written another way."""
    written = path.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"{'' if written == path else chr(92)}{digest} *{written}\n"


def _read_line(line: str) -> tuple[str, str]:
    found = _LINE.fullmatch(line)
    if found is None:
        raise BadCheckpoint(f"{line[:100]!r} is no line of a digest and a file")
    path = found.group(3)
    if found.group(1):
        path = re.sub(r"\\(.)", lambda each: {"n": "\n", "r": "\r"}.get(each.group(1), each.group(1)), path)
    return found.group(2), path


def _comment(**facts: Any) -> str:
    return f"# {json.dumps(facts)}\n"


def _read_comment(line: str) -> dict[str, Any]:
    """What a comment says; one that is not of ours says nothing."""
    try:
        facts = json.loads(line[1:])
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


def _mode(facts: dict[str, Any], otherwise: int) -> int:
    mode = facts.get("mode", otherwise)
    if type(mode) is not int or mode & ~0o777:
        raise BadCheckpoint(f"{str(mode)[:20]!r} is no mode of a file")
    return mode


def _other(facts: dict[str, Any]) -> Iterable[FileEntry]:
    """The folder or link of a comment."""
    try:
        if "directory" in facts:
            yield FileEntry(path=_text(facts["directory"]), kind="directory", mode=_mode(facts, 0o755))
        elif "link" in facts:
            yield FileEntry(path=_text(facts["link"]), kind="link", target=_text(facts["target"]))
    except KeyError:
        raise BadCheckpoint("a link in it leads nowhere") from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise BadCheckpoint(f"{str(value)[:40]!r} is no path")
    return value
