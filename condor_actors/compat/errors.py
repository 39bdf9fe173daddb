"""How the modules for programs written for HTCondor say what is wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from condor_actors.api.errors import CondorError
from condor_actors.classads import ClassAdSyntaxError
from condor_actors.submit import SubmitError


class HTCondorException(Exception):
    """A daemon cannot be reached, refuses, or does not answer; or a description cannot become jobs."""


class NotSupported(HTCondorException, NotImplementedError):
    """Something of HTCondor's that this pool does not have."""


@contextlib.contextmanager
def as_theirs() -> Iterator[None]:
    """Turn what the API raises into `HTCondorException`."""
    try:
        yield
    except (CondorError, SubmitError, ClassAdSyntaxError) as error:
        raise HTCondorException(str(error)) from error
