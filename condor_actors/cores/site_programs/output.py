"""What a program of the site prints, as ads: lines ``Name = expression``, and ``- tag update:true`` behind each ad.

Theory: the program is the site's, what it prints may come from anywhere: a web page, a file of a user's.  So the text
is hostile.  Lines, attributes and ads have limits, a line that is none is kept for the log and nothing else, and only
the ends of ads leave this module.
"""

from __future__ import annotations

import re

import attrs

from condor_actors.classads import ClassAd, ClassAdSyntaxError, Expr, as_expr, parse_long_expression
from condor_actors.cores.site_programs.programs import SiteAd, SiteProgram

__all__ = ["MOST_AD_BYTES", "OutputReader", "Printed"]

MOST_AD_BYTES = 16 * 1024
MOST_LINE_BYTES = 8 * 1024
MOST_ATTRIBUTES = 500
MOST_TAG = 100
KEPT_LINES = 20
"""So many lines that are none are kept for the log."""
SHOWN_CHARACTERS = 200

_LINE = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]{0,127})\s*=\s*(\S.*)")
_SEPARATOR = re.compile(r"-\s*+(?:(?!update\s*+:)(\S++)\s*+)?(?:update\s*+:\s*+(true|false))?\s*", re.IGNORECASE)


@attrs.frozen(kw_only=True)
class Printed:
    """An ad whose end was read.

    Attributes:
        ad: what it says.
        update: whether it is to be told at once, as its separator says; None: it does not say.
    """

    ad: SiteAd
    update: bool | None = None


class OutputReader:
    """Reads the output of one run of a program, piece by piece.

    Args:
        program: whose output it is.

    Attributes:
        strange: lines that could not be used, each with the reason; the first :data:`KEPT_LINES`.
        strangers: how many there were.
    """

    def __init__(self, program: SiteProgram) -> None:
        self._program = program
        self._rest = b""
        self._skips = False
        self.strange: list[str] = []
        self.strangers = 0
        self._begin()

    def _begin(self) -> None:
        self._found: dict[str, tuple[str, Expr]] = {}
        self._size = 0
        self._spilt = False

    def feed(self, data: bytes, now_s: float) -> list[Printed]:
        """The ads that end in ``data``, a piece of any length."""
        found: list[Printed] = []
        *lines, rest = (self._rest + data).split(b"\n")
        for line in lines:
            if self._skips:
                self._skips = False
                self._complain(line, f"a line of more than {MOST_LINE_BYTES} bytes")
            else:
                self._line(line, now_s, found)
        if len(rest) > MOST_LINE_BYTES:
            self._skips, rest = True, rest[:SHOWN_CHARACTERS]
        self._rest = rest[:SHOWN_CHARACTERS] if self._skips else rest
        return found

    def end(self, now_s: float) -> list[Printed]:
        """The program has ended: its last ad needs no separator."""
        found = self.feed(b"\n", now_s) if self._rest else []
        if self._found:
            self._close("", None, now_s, found)
        return found

    def _line(self, line: bytes, now_s: float, found: list[Printed]) -> None:
        if len(line) > MOST_LINE_BYTES:
            self._complain(line, f"a line of more than {MOST_LINE_BYTES} bytes")
            return
        text = line.decode(errors="replace").strip()
        if not text or text.startswith("#"):
            return
        if text.startswith("-"):
            match = _SEPARATOR.fullmatch(text)
            tag, update = (match[1] or "", match[2]) if match is not None else ("", None)
            if match is None or len(tag) > MOST_TAG:
                self._complain(line, "no separator; expected - NAME update:true")
            self._close(tag[:MOST_TAG], None if update is None else update.lower() == "true", now_s, found)
            return
        assignment = _LINE.fullmatch(text)
        if assignment is None:
            self._complain(line, "no NAME = VALUE")
            return
        try:
            value = parse_long_expression(assignment[2])
        except ClassAdSyntaxError as error:
            self._complain(line, str(error))
            return
        self._size += len(line) + len(self._program.prefix)
        self._found[assignment[1].lower()] = (assignment[1], value)
        if self._size > MOST_AD_BYTES or len(self._found) > MOST_ATTRIBUTES:
            self._found.clear()
            self._spilt = True

    def _close(self, tag: str, update: bool | None, now_s: float, found: list[Printed]) -> None:
        if self._spilt:
            self._complain(b"", f"an ad of more than {MOST_AD_BYTES} bytes or {MOST_ATTRIBUTES} attributes; dropped")
        elif self._found:
            found.append(Printed(ad=self._ad(tag, now_s), update=update))
        self._begin()

    def _ad(self, tag: str, now_s: float) -> SiteAd:
        """The attributes but for those that say which slots the ad is for."""
        program, found = self._program, self._found
        constraint = found.pop("slotmergeconstraint", None)
        said = ClassAd()
        for name in ("slotname", "name", "slottypeid", "slotid"):
            if name in found:
                said[name] = found.pop(name)[1]
        attributes = {f"{program.prefix}{name}": value for name, value in found.values()}
        attributes[f"{program.prefix}LastUpdate"] = as_expr(int(now_s))
        return SiteAd(
            program=program.name, tag=tag, attributes=attributes, slots=program.slots,
            constraint=constraint[1] if constraint is not None else None,
            slot_name=said.get_str("SlotName") or said.get_str("Name"), slot_type=_number(said, "SlotTypeId"),
            slot_id=_number(said, "SlotId"), size=self._size)

    def _complain(self, line: bytes, why: str) -> None:
        self.strangers += 1
        if len(self.strange) < KEPT_LINES:
            shown = "".join(each if each.isprintable() else " " for each in line.decode(errors="replace"))
            self.strange.append(f"{shown[:SHOWN_CHARACTERS]!r}: {why}")


def _number(ad: ClassAd, name: str) -> int | None:
    value = ad.evaluate(name) if name in ad else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
