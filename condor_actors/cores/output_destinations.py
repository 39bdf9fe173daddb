"""Where a job's outputs go: other names at home, or URLs that the execute machine sends them to.

Theory: TransferOutputRemaps gives a file or a folder another name, and the name may be a URL; Out and Err may be URLs;
OutputDestination takes everything but output and error.  The execute machine sends what has a URL and leaves it out of
what the submit machine fetches; both read the same ad by this module, so that no file belongs to neither.
"""

from __future__ import annotations

from condor_actors.classads import ClassAd
from condor_actors.messages.references.urls import FETCHED, scheme_of, travels_as_url

__all__ = ["MOST_SENT", "STDERR", "STDOUT", "OutputUrls", "remaps_of"]

STDOUT = "_condor_stdout"
STARTER_LOG = ".starter.log"
"""What the starter of a run has written for its user."""
STDERR = "_condor_stderr"
MOST_SENT = 10_000
"""Files of one run that go to URLs."""


def remaps_of(text: str) -> dict[str, str]:
    """``a = b; c = d`` as a dictionary; a backslash stands before what is meant literally."""
    parts, current, escaped = [], [""], False
    for letter in text:
        if escaped:
            current[-1] += letter
            escaped = False
        elif letter == "\\":
            escaped = True
        elif letter == ";":
            parts.append(current)
            current = [""]
        elif letter == "=" and len(current) == 1:
            current.append("")
        else:
            current[-1] += letter
    parts.append(current)
    return {part[0].strip(): part[1].strip() for part in parts if len(part) == 2 and part[0].strip()}


class OutputUrls:
    """The URLs of a job's outputs.

    Args:
        job: its ad.
    """

    def __init__(self, job: ClassAd) -> None:
        remaps = remaps_of(job.get_str("TransferOutputRemaps"))
        self._named = {name.rstrip("/"): url for name, url in remaps.items() if travels_as_url(url)}
        self._remapped = frozenset(name.rstrip("/") for name in remaps) - self._named.keys()
        self._streams = {STDOUT: job.get_str("Out"), STDERR: job.get_str("Err")}
        destination = job.get_str("OutputDestination")
        self._destination = f"{destination.rstrip('/')}/" if travels_as_url(destination) else ""
        self._quotes = scheme_of(destination) in FETCHED

    def __bool__(self) -> bool:
        return bool(self._named or self._destination or any(map(travels_as_url, self._streams.values())))

    def of(self, path: str) -> str:
        """The URL of an output; empty: it goes home.

        Args:
            path: relative, in the sandbox.
        """

        from urllib.parse import quote

        if path in self._named:
            return self._named[path]
        if path in self._streams:
            url = self._streams[path]
            return url if travels_as_url(url) else ""
        top, slash, rest = path.partition("/")
        if slash and top in self._named:
            url = self._named[top]
            rest = quote(rest, errors="surrogateescape") if scheme_of(url) in FETCHED else rest
            return f"{url.rstrip('/')}/{rest}"
        if self._destination and not self._remapped & {path, top}:
            return self._destination + (quote(path, errors="surrogateescape") if self._quotes else path)
        return ""
