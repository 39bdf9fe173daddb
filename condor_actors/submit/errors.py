"""What is wrong with a submit description, said so that its author can put it right."""

from __future__ import annotations


class SubmitError(ValueError):
    """A description that cannot become jobs.

    Args:
        problem: what is wrong and what would be right, one sentence.
        file: where it stands; empty: not from a file.
        line: counted from 1; 0: no line (the mistake shows only when a job is made).
        parsing: whether the description could not even be read (then no job of it exists).
        command: the command that is to blame, where one is; it has a place in the description.
        remedy: what to do about it.
    """

    def __init__(self, problem: str, *, file: str = "", line: int = 0, parsing: bool = False, command: str = "",
                 remedy: str = "") -> None:
        self.problem = problem
        self.file = file
        self.line = line
        self.parsing = parsing
        self.command = command
        self.remedy = remedy
        super().__init__(f"{file}, line {line}: {problem}" if line else problem)
