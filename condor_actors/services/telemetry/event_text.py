"""An event of the log in words."""

from __future__ import annotations

from twisted.logger import LogEvent, eventAsText

__all__ = ["one_line", "text_of"]


def one_line(text: str) -> str:
    """A text as one line that does nothing to a terminal: much of what is logged was said by strangers."""
    return text if text.isprintable() else "".join(each if each.isprintable() else " " for each in text)


def text_of(event: LogEvent) -> str:
    """What an event says: one line, whatever its words contain, but for a traceback."""
    if event.get("log_format") == "{text}":
        return one_line(str(event.get("text")))
    text = eventAsText(event, includeSystem=False, includeTimestamp=False)
    return text if "log_failure" in event else one_line(text)
