"""What can be wrong with the text of an expression or an ad, said so that people can find the place."""

from __future__ import annotations


class ClassAdSyntaxError(ValueError):
    """A text that is no ClassAd expression.

    Attributes:
        reason: What was expected or found, one phrase.
        text: The text that was read.
        position: Index of the offending character in `text`.
        line: Line of that character, from 1.
        column: Column of that character, from 1.
    """

    def __init__(self, reason: str, text: str, position: int) -> None:
        position = min(position, len(text))
        start = text.rfind("\n", 0, position) + 1
        end = text.find("\n", position)
        self.reason = reason
        self.text = text
        self.position = position
        self.line = text.count("\n", 0, position) + 1
        self.column = position - start + 1
        self._shown = text[start : end if end >= 0 else len(text)]
        super().__init__(reason)

    def caret(self) -> str:
        """Show the offending line with a caret under the place.

        Returns:
            Two lines, cut to about 100 characters around the place.
        """
        cut = max(0, self.column - 71)
        shown = self._shown[cut : cut + 100].expandtabs(1)
        return f"{shown}\n{' ' * (self.column - 1 - cut)}^"

    def __str__(self) -> str:
        return f"{self.reason} (line {self.line}, column {self.column})\n{self.caret()}"
