r"""Arguments and environments: the old and the new syntax, and what the job ad holds of them.

==========  ==============================================  =======================================
syntax      arguments                                       environment
==========  ==============================================  =======================================
old (V1)    ``one \"two\" three``, split at blanks          ``a=1;b=2``
new (V2)    ``"one 'two words' ""3"" four"``                ``"a=1 b='two words'"``
in the ad   ``Args`` (old) or ``Arguments`` (new, raw)      ``Environment`` (new, raw)
==========  ==============================================  =======================================

*Raw* is the new syntax without its outer double quotes: single quotes protect blanks, two of them are one.
**Source**: the manual, condor_submit, commands ``arguments`` and ``environment``.
"""

from __future__ import annotations

from collections.abc import Mapping

from condor_actors.cores import argument_quoting
from condor_actors.cores.argument_quoting import join_raw
from condor_actors.submit.errors import SubmitError


def split_raw(raw: str) -> list[str]:
    """The words of a raw new-syntax string.

    Raises:
        SubmitError: a single quote without its partner.
    """
    try:
        return argument_quoting.split_raw(raw)
    except argument_quoting.UnbalancedQuote as error:
        raise SubmitError(str(error)) from None


def unquote(text: str) -> str | None:
    """What stands within the outer double quotes of new syntax, None when the text is old syntax.

    Raises:
        SubmitError: a closing quote is missing, or something follows it.
    """
    text = text.strip()
    if not text.startswith('"'):
        return None
    out, position = [], 1
    while position < len(text):
        letter = text[position]
        if letter != '"':
            out.append(letter)
            position += 1
        elif text.startswith('""', position):
            out.append('"')
            position += 2
        elif text[position + 1 :].strip():
            raise SubmitError(
                "Unexpected characters following double-quote.  Did you forget to escape the double-quote by "
                f"repeating it?  Here is the quote and trailing characters: {text[position:]}"
            )
        else:
            return "".join(out)
    raise SubmitError(f"Unterminated double-quote: {text[:80]}")


def parse_arguments(text: str) -> tuple[str, str]:
    """The attribute (``Args`` or ``Arguments``) and its value for an ``arguments`` command."""
    raw = unquote(text)
    if raw is not None:
        return "Arguments", join_raw(split_raw(raw))
    words = []
    for word in text.split():
        plain = word.replace('\\"', "\x00")
        if '"' in plain:
            raise SubmitError(
                f'Found illegal unescaped double-quote: {word}  (put the whole list in double quotes, or write \\")'
            )
        words.append(plain.replace("\x00", '"'))
    return "Args", " ".join(words)


def parse_environment(text: str) -> dict[str, str]:
    """Names and values of an ``environment`` command.

    Raises:
        SubmitError: an entry without ``=`` or without a name.
    """
    raw = unquote(text)
    entries = split_raw(raw) if raw is not None else [entry for entry in text.split(";") if entry.strip()]
    return dict(_entry(entry if raw is not None else entry.strip()) for entry in entries)


def _entry(entry: str) -> tuple[str, str]:
    name, equals, value = entry.partition("=")
    if "$$(" in entry and not equals:
        return entry, ""
    if not equals:
        raise SubmitError(f"ERROR: Missing '=' after environment variable '{entry}'.")
    if not name:
        raise SubmitError(f"ERROR: missing variable in '{entry}'.")
    return name, value


def join_environment(variables: Mapping[str, str]) -> str:
    """The raw new-syntax string of an environment."""
    return join_raw(f"{name}={value}" if value or "$$(" not in name else name for name, value in variables.items())


def imported(pattern_text: str, environ: Mapping[str, str]) -> dict[str, str]:
    """What ``getenv`` takes from the caller's environment.

    Args:
        pattern_text: ``true``, ``false``, or a list of names and patterns with ``*``; ``!`` excludes.
    """
    word = pattern_text.strip().lower()
    if word in ("false", "no", "f", "0", ""):
        return {}
    patterns = ["*"] if word in ("true", "yes", "t", "1") else word.replace(";", " ").replace(",", " ").split()
    excluded = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    included = [pattern for pattern in patterns if not pattern.startswith("!")] or ["*"]
    from fnmatch import fnmatchcase

    return {
        name: environ[name]
        for name in sorted(environ)
        if any(fnmatchcase(name.lower(), pattern) for pattern in included)
        and not any(fnmatchcase(name.lower(), pattern) for pattern in excluded)
        and not any(letter in environ[name] for letter in "\n\x00")
    }
