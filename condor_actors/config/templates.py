"""Templates: ``use CATEGORY : NAME(arguments)`` stands for a few statements that belong together.

Within a template ``$(1)`` is its first argument, ``$(1:default)`` with a default, ``$(1?)`` 1 if it is given, ``$(2+)``
all from the second on, ``$(0)`` all, ``$(0#)`` how many, ``$(0?)`` 1 when there are any.
"""

from __future__ import annotations

from collections.abc import Callable

from condor_actors.config.template_texts import TEMPLATES
from condor_actors.patterns import late

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Final

__all__ = ["categories", "template_names", "template_statements", "template_text"]

_ARGUMENT: Final = late(r"\$\((\d)([?#+]?)(?=[:)])")


def categories() -> tuple[str, ...]:
    """The categories there are."""
    return tuple(TEMPLATES)


def template_names(category: str) -> tuple[str, ...]:
    """The templates of a category, in the spelling to show."""
    return tuple(TEMPLATES.get(category.upper(), {}))


def template_text(category: str, name: str) -> str | None:
    """What a template stands for before its arguments are put in; None when there is none."""
    for known, text in TEMPLATES.get(category.upper(), {}).items():
        if known.upper() == name.upper():
            return text
    return None


def template_statements(category: str, name: str, arguments: str | None) -> str | None:
    """What ``use category : name(arguments)`` stands for; None when there is no such template."""
    text = template_text(category, name)
    if text is None:
        return None
    given = _split(arguments) if arguments is not None else []
    everything = (arguments or "").strip()

    def argument(index: int, mark: str, default: str) -> str:
        if index == 0:
            if mark == "?":
                return "1" if everything else "0"
            return str(len(given)) if mark == "#" else everything or default
        value = given[index - 1] if index <= len(given) else ""
        if mark == "?":
            return "1" if value else "0"
        if mark == "#":
            return str(max(len(given) - index + 1, 0))
        if mark == "+":
            return ", ".join(given[index - 1 :]) or default
        return value or default

    return _put_in(text, argument)


def _put_in(text: str, argument: Callable[[int, str, str], str]) -> str:
    """Replace the arguments of a template, those within defaults too."""
    done = []
    at = 0
    while (match := _ARGUMENT.search(text, at)) is not None:
        end = match.end()
        level = 1
        while end < len(text) and level:
            level += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        default = _put_in(text[match.end() + 1 : end - 1], argument) if text[match.end()] == ":" else ""
        done += [text[at : match.start()], argument(int(match[1]), match[2], default)]
        at = end
    return "".join((*done, text[at:]))


def _split(arguments: str) -> list[str]:
    """The arguments at the commas that no parenthesis or quotation mark encloses."""
    parts = [""]
    level = 0
    quoted = False
    for letter in arguments:
        if letter == '"':
            quoted = not quoted
        elif not quoted and letter in "([{":
            level += 1
        elif not quoted and letter in ")]}":
            level -= 1
        if letter == "," and level == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
