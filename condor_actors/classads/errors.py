"""What can be wrong with the text of an expression or an ad, said so that people can find the place."""

from __future__ import annotations


class ClassAdSyntaxError(ValueError):
    """A text that is no ClassAd expression.

    :ivar reason: what was expected or found, one phrase.
    :ivar text: the text that was read.
    :ivar position: index of the offending character in `text`.
    :ivar line: line of that character, from 1.
    :ivar column: column of that character, from 1.
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

        :returns: two lines, cut to about 100 characters around the place.
        """
        cut = max(0, self.column - 71)
        shown = self._shown[cut : cut + 100].expandtabs(1)
        return f"{shown}\n{' ' * (self.column - 1 - cut)}^"

    def __str__(self) -> str:
        return f"{self.reason} (line {self.line}, column {self.column})\n{self.caret()}"
