"""What can go wrong between a program and its pool."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from condor_actors.tools.lib.command import ToolError
from condor_actors.wire.errors import RequestRefused, WireError


class CondorError(Exception):
    """A daemon cannot be reached, refuses, or does not answer; the text says which and why."""


class Refused(CondorError):
    """A daemon refuses.

    Attributes:
        code: why, as a word: ``not-found``, ``denied``, ``invalid``, ``busy`` …
    """

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.code = code


class NotSupported(CondorError, NotImplementedError):
    """Something that this pool does not have; the text says what comes nearest."""


@contextlib.contextmanager
def as_condor_errors() -> Iterator[None]:
    """Turn what the commands' parts raise into `CondorError`."""
    try:
        yield
    except ToolError as error:
        text = " ".join(line.strip() for line in error.text.splitlines() if line.strip())
        for word in ("ERROR:", "Error:"):
            text = text.removeprefix(word).strip()
        raise CondorError(text) from error
    except RequestRefused as error:
        raise Refused(str(error), error.code) from error
    except WireError as error:
        raise CondorError(str(error)) from error
